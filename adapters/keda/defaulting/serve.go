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
	// MaxBody is the most bytes of a request that ServeHTTP reads. An API server takes objects of 3 MiB and stores
	// objects of 1.5 MiB, and an update brings both the new object and the old one.
	MaxBody = 6 << 20
	// MaxPending is the most bytes of requests that ServeHTTP has read and not answered: the process has others to
	// serve, and anybody who reaches the port may send. One client has half of it, and more clients share it: who has
	// less than an equal part is served even when it is used up, so that it can be exceeded, by as much again at most.
	MaxPending = 2 * MaxBody
	// MaxValues is the most values of a request: JSON of MaxBody can be a hundred times as much once it is decoded.
	MaxValues = 100_000
	// bodyTime is how long a body may take. An API server sends it at once.
	bodyTime = 2 * time.Second
	// step is how much is read of a body at a time.
	step = 16 << 10
)

// ServeHTTP answers an AdmissionReview of admission.k8s.io/v1 with one. What is no such review is answered with a status
// from 400 to 499, which an API server takes as its failurePolicy says; so is a body that takes longer than 2 s, and what
// its client sends beyond its part of MaxPending. A client is an address; what counts is what it has sent, not what it
// says that it will send. NewServer bounds the rest: connections, and requests that never begin.
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
	_, _ = w.Write(answer) // an API server that is gone gets no answer
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
	answer, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: d.Review(review.Request)})
	if err != nil { // a field that is no JSON, which none is
		return nil, "the answer cannot be written", http.StatusInternalServerError
	}
	return answer, "", http.StatusOK
}

// errFull is for a client that has sent more than its part.
var errFull = fmt.Errorf("more than this client's part of %d bytes of requests are being answered", MaxPending)

// A budget is how much of MaxPending clients have.
type budget struct {
	mu    sync.Mutex
	total int
	of    map[string]int
}

// take takes n bytes for a client, or reports that they are not to be had.
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

// read reads a body and takes for it what it holds. Release gives that back.
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

// clientOf is the host of an address.
func clientOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
