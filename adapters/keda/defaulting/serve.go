package defaulting

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

const (
	// MaxBody is the largest request body, in bytes, that ServeHTTP reads. An API server accepts objects of 3 MiB and stores
	// objects of 1.5 MiB, and an update has both the new object and the old one.
	MaxBody = 6 << 20
	// MaxPending limits the bytes of requests that ServeHTTP has read and not answered, because anybody who reaches the port
	// can send requests, and the process has other work. One client may use half of it; several clients share it. A client
	// with less than an equal part is served even when MaxPending is used up, so the total can exceed it, up to twice
	// MaxPending.
	MaxPending = 2 * MaxBody
	// MaxOfNamespace limits the bytes of one namespace's requests that are being answered for one client. All requests come from
	// a few API servers, so that without it the author of large ScaledObjects would use up the part of all others. A single
	// request may be larger.
	MaxOfNamespace = MaxPending / 8
	// MaxValues is the maximum number of JSON values of a request: a body of MaxBody can take a hundred times as much memory
	// when decoded.
	MaxValues = 100_000
	// bodyTime is the time limit for reading a body. An API server sends it at once.
	bodyTime = 2 * time.Second
	// step is how many bytes of a body are read at a time.
	step = 16 << 10
)

// ServeHTTP answers an AdmissionReview of admission.k8s.io/v1 with another. Other requests are answered with a status from
// 400 to 499, which an API server handles according to its failurePolicy. So is a body that takes longer than 2 s, or one
// that exceeds its client's part of MaxPending, or its namespace's MaxOfNamespace. A client is an IP address; the bytes that it has sent count, not the length
// that it announces. NewServer limits the rest: connections, and requests that never begin.
func (d *Defaulter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	answer, problem, status := d.serve(w, req)
	if status != http.StatusOK {
		if status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		http.Error(w, problem, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // fails only if the API server is gone
}

func (d *Defaulter) serve(w http.ResponseWriter, req *http.Request) (answer []byte, problem string, status int) {
	if req.Method != http.MethodPost {
		return nil, "the method must be POST", http.StatusMethodNotAllowed
	}
	if media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, "the Content-Type must be application/json", http.StatusUnsupportedMediaType
	}
	body, release, problem, status := d.pending.body(w, req)
	defer release()
	if status != http.StatusOK {
		return nil, problem, status
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, "the body is not an AdmissionReview", http.StatusBadRequest
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Request == nil {
		return nil, "the body must be an AdmissionReview of admission.k8s.io/v1 with a request", http.StatusBadRequest
	}
	leave, ok := d.answering.enter(clientOf(req.RemoteAddr)+" "+review.Request.Namespace, len(body))
	if !ok {
		return nil, errCrowded.Error(), http.StatusTooManyRequests
	}
	defer leave()
	answer, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: d.Review(review.Request)})
	if err != nil { // not reached: all fields can be marshalled
		return nil, "the answer cannot be written", http.StatusInternalServerError
	}
	return answer, "", http.StatusOK
}

// errFull is the error for a client that has sent more than its part.
var errFull = fmt.Errorf("more than this client's part of %d bytes of requests are being answered", MaxPending)

// errCrowded is the error for a namespace with too many bytes of requests.
var errCrowded = fmt.Errorf("more than %d bytes of requests of this namespace are being answered", MaxOfNamespace)

// A crowd counts the bytes of the requests that are being answered, by client and namespace.
type crowd struct {
	mu sync.Mutex
	of map[string]int
}

// enter adds a request of n bytes, unless it and those before have too many. leave removes it.
func (c *crowd) enter(from string, n int) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if has := c.of[from]; has > 0 && has+n > MaxOfNamespace {
		return nil, false
	}
	if c.of == nil {
		c.of = make(map[string]int)
	}
	c.of[from] += n
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.of[from] -= n; c.of[from] <= 0 {
			delete(c.of, from)
		}
	}, true
}

// A budget counts how much of MaxPending each client uses.
type budget struct {
	mu    sync.Mutex
	total int
	of    map[string]int
}

// take reserves n bytes for a client, or returns false if they are not available.
func (b *budget) take(client string, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = make(map[string]int)
	}
	clients, has := len(b.of), b.of[client]
	if has == 0 {
		clients++
	}
	if has+n > MaxPending/2 || b.total+n > MaxPending && has+n > MaxPending/clients || b.total+n > 2*MaxPending {
		return false
	}
	b.of[client] = has + n
	b.total += n
	return true
}

func (b *budget) give(client string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n == 0 {
		return
	}
	b.total -= n
	if b.of[client] -= n; b.of[client] <= 0 {
		delete(b.of, client)
	}
}

// read reads a body and reserves its bytes. release returns them.
func (b *budget) read(client string, from io.Reader) (body []byte, release func(), err error) {
	taken := 0
	release = func() { b.give(client, taken) }
	for {
		if len(body) == cap(body) {
			body = append(body, make([]byte, step)...)[:len(body)]
		}
		n, err := from.Read(body[len(body):min(cap(body), len(body)+step)])
		if n > 0 && !b.take(client, n) {
			return nil, release, errFull
		}
		taken += n
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, release, nil
		case err != nil:
			return nil, release, err
		}
	}
}

// clientOf returns the host of an address.
func clientOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
