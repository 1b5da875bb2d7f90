package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// The states of the way to the API server.
type weather int

const (
	calm     weather = iota // everything arrives, and so does every answer
	faulty                  // each request may meet a fault
	refusing                // the API server is away: connections are broken off
	hanging                 // the API server is away: nothing answers
)

// The requests that are told apart.
const (
	readScale  = "read of /scale"
	writeScale = "write of /scale"
	saveState  = "save of the state"
	saveStatus = "save of the status"
	holdLease  = "lease"
	other      = "other"
	watching   = "watch"
)

func kindOf(r *http.Request) string {
	path, write := r.URL.Path, r.Method != http.MethodGet
	switch {
	case r.URL.Query().Get("watch") != "":
		return watching
	case strings.HasSuffix(path, "/scale") && write:
		return writeScale
	case strings.HasSuffix(path, "/scale"):
		return readScale
	case strings.Contains(path, "/llmautoscalers/") && strings.HasSuffix(path, "/status"):
		return saveStatus
	case strings.Contains(path, "/llmautoscalers/") && write:
		return saveState
	case strings.Contains(path, "/leases"):
		return holdLease
	}
	return other
}

// The faults of one request.
const (
	conflict    = "conflict"     // 409, and the request does not arrive
	touched     = "touched"      // the Deployment changes before the write arrives: a conflict of the API server's own
	failed      = "failed"       // 500, 503 or 504, and the request does not arrive
	cut         = "cut"          // the connection breaks before the request arrives
	delayed     = "delayed"      // the request arrives up to three seconds later
	late        = "late"         // the connection breaks, and the request arrives up to six seconds later
	lost        = "lost answer"  // the request is carried out, and the connection breaks before its answer
	failedAfter = "failed after" // the request is carried out, and the answer is a server error
	none        = ""
)

// faults says how many of a hundred requests of a kind meet which fault.
func faults(kind string) []struct {
	fault   string
	percent int
} {
	type list = []struct {
		fault   string
		percent int
	}
	switch kind {
	case writeScale:
		return list{{conflict, 8}, {touched, 12}, {failed, 8}, {cut, 5}, {delayed, 6}, {late, 12}, {lost, 15}, {failedAfter, 8}}
	case saveState:
		return list{{conflict, 8}, {failed, 5}, {cut, 3}, {delayed, 4}, {late, 6}, {lost, 8}, {failedAfter, 4}}
	case saveStatus:
		return list{{conflict, 5}, {failed, 5}, {late, 5}, {lost, 5}}
	case holdLease:
		return list{{conflict, 2}, {failed, 2}, {cut, 2}, {lost, 4}}
	case readScale:
		return list{{failed, 4}, {cut, 2}, {lost, 2}, {delayed, 8}}
	case other:
		return list{{failed, 4}, {cut, 2}, {lost, 2}}
	}
	return nil
}

// A written is a write of /scale that was forwarded to the API server.
type written struct {
	replica  int
	name     string
	version  string // that it is on condition of
	to       int32
	sent     time.Time
	answered time.Time // zero: the API server did not answer
	code     int
	revision uint64 // that it left
}

// A trap does something when a replica makes a request: before that is forwarded, or when it was carried out and is not
// answered yet.
type trap struct {
	replica int
	kind    string
	after   bool
	spring  func()
}

// A proxy is what stands between the replicas of the controller and the API server: each has an address of its own.
type proxy struct {
	transport http.RoundTripper
	upstream  *url.URL
	servers   []*httptest.Server
	touch     func(name string)
	ctx       context.Context //nolint:containedctx // of the test: what a proxy does for a while ends with it

	mu      sync.Mutex
	random  *rand.Rand
	weather weather
	changed chan struct{} // closed when the weather changes
	trap    *trap
	writes  []*written
	met     map[string]int // faults
	held    map[string]int // the replicas that have held the lease, by the identity of the process
}

func newProxy(t *testing.T, config *rest.Config, replicas int, seed uint64, touch func(string)) *proxy {
	t.Helper()
	transport, err := rest.TransportFor(config) // a client sends no token over http
	require.NoError(t, err)
	upstream, err := url.Parse(config.Host)
	require.NoError(t, err)
	p := &proxy{
		transport: transport, upstream: upstream, touch: touch, ctx: t.Context(), random: rand.New(rand.NewPCG(seed, 7)),
		changed: make(chan struct{}), met: make(map[string]int), held: make(map[string]int),
	}
	for i := range replicas {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(i, w, r) }))
		p.servers = append(p.servers, server)
		t.Cleanup(func() {
			p.become(calm)
			server.CloseClientConnections()
			server.Close()
		})
	}
	return p
}

// become changes the weather. Connections that are there break when the API server goes away.
func (p *proxy) become(w weather) {
	p.mu.Lock()
	p.weather = w
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	if w == refusing || w == hanging {
		for _, s := range p.servers {
			s.CloseClientConnections()
		}
	}
}

// set sets a trap; nil takes it away. It reports whether there was one.
func (p *proxy) set(t *trap) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.trap
	p.trap = t
	return was != nil
}

func (p *proxy) spring(replica int, kind string, after bool) {
	p.mu.Lock()
	t := p.trap
	if t == nil || t.replica != replica || t.kind != kind || t.after != after {
		p.mu.Unlock()
		return
	}
	p.trap = nil
	p.mu.Unlock()
	t.spring()
}

// draw returns the fault of a request, and a number for what about it is left to chance.
func (p *proxy) draw(kind string) (fault string, chance float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.weather != faulty {
		return none, 0
	}
	n := p.random.IntN(100)
	for _, f := range faults(kind) {
		if n -= f.percent; n < 0 {
			p.met[f.fault]++
			return f.fault, p.random.Float64()
		}
	}
	return none, 0
}

// away breaks the connection off while the API server is away, after a while if it hangs.
func (p *proxy) away(ctx context.Context) {
	p.mu.Lock()
	w, changed := p.weather, p.changed
	p.mu.Unlock()
	switch w {
	case hanging:
		select {
		case <-changed:
		case <-ctx.Done():
		}
	case refusing:
	default:
		return
	}
	panic(http.ErrAbortHandler)
}

func (p *proxy) serve(replica int, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	p.away(r.Context())
	kind := kindOf(r)
	p.spring(replica, kind, false)
	fault, chance := p.draw(kind)
	switch fault {
	case conflict:
		refuse(w, http.StatusConflict, false)
		return
	case failed:
		refuse(w, []int{500, 503, 504}[int(chance*3)], chance > 0.8)
		return
	case cut:
		panic(http.ErrAbortHandler)
	case late:
		timer := time.AfterFunc(time.Duration(chance*6000)*time.Millisecond, func() {
			if answer, err := p.forward(p.ctx, replica, kind, r, body); err == nil {
				_ = answer.Body.Close()
			}
		})
		context.AfterFunc(p.ctx, func() { timer.Stop() })
		panic(http.ErrAbortHandler)
	case delayed:
		timer := time.NewTimer(time.Duration(chance*3000) * time.Millisecond)
		select {
		case <-timer.C:
		case <-p.ctx.Done():
		}
	case touched:
		p.touch(targetOf(r))
	}
	ctx := r.Context()
	if r.Method != http.MethodGet {
		ctx = context.WithoutCancel(ctx) // it arrives, be the client dead
	}
	answer, err := p.forward(ctx, replica, kind, r, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = answer.Body.Close() }()
	if kind == holdLease && r.Method != http.MethodGet && answer.StatusCode < 300 {
		if identity := regexp.MustCompile(`[a-z0-9-]+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).Find(body); identity != nil {
			p.mu.Lock()
			p.held[string(identity)] = replica
			p.mu.Unlock()
		}
	}
	p.spring(replica, kind, true)
	switch fault {
	case lost:
		panic(http.ErrAbortHandler)
	case failedAfter:
		refuse(w, []int{500, 503, 504}[int(chance*3)], chance > 0.5)
		return
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	pass(w, answer.Body)
}

// pass copies an answer piece by piece, as a watch needs it.
func pass(w http.ResponseWriter, body io.Reader) {
	buffer := make([]byte, 32<<10)
	flusher, _ := w.(http.Flusher)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
			flusher.Flush()
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// forward makes a request in the name of a client, and notes what it writes to /scale.
func (p *proxy) forward(ctx context.Context, replica int, kind string, r *http.Request, body []byte) (*http.Response, error) {
	out := r.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = p.upstream.Scheme, p.upstream.Host, "", ""
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.Header.Del("Accept-Encoding")
	if kind != writeScale {
		return p.transport.RoundTrip(out)
	}
	var asked request
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, fmt.Errorf("a write of /scale that is not JSON: %w", err)
	}
	one := &written{replica: replica, name: targetOf(r), version: asked.Metadata.ResourceVersion, to: asked.Spec.Replicas, sent: time.Now()}
	p.mu.Lock()
	p.writes = append(p.writes, one)
	p.mu.Unlock()
	answer, err := p.transport.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	at := time.Now()
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	var left request
	_ = json.Unmarshal(text, &left) // an error has none
	revision, _ := strconv.ParseUint(left.Metadata.ResourceVersion, 10, 64)
	p.mu.Lock()
	one.answered, one.code, one.revision = at, answer.StatusCode, revision
	p.mu.Unlock()
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, nil
}

// carried returns a copy of the writes.
func (p *proxy) carried() []written {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]written, len(p.writes))
	for i, one := range p.writes {
		all[i] = *one
	}
	return all
}

// targetOf returns the name of the Deployment of a request to its /scale.
func targetOf(r *http.Request) string {
	parts := strings.Split(r.URL.Path, "/")
	return parts[len(parts)-2]
}

// refuse answers as an API server does, and asks some clients to try again.
func refuse(w http.ResponseWriter, code int, again bool) {
	reason := map[int]string{409: "Conflict", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}[code]
	if again {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"of the test","reason":%q,"code":%d}`, reason, code)
}
