package main

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The simulated servers: slots for running requests, a decoding speed, a KV cache, and a minute to start.
const (
	slots           = 16
	tokensPerSecond = 25.0
	kvTokens        = 40_000.0
	coldStart       = 60 * time.Second
	mostSlow        = 10.0 // of -slow

	inTime = 2 * time.Second // within which a first token is in time
)

// A request waits or runs on a server.
type request struct {
	came      time.Time
	input     float64 // tokens of the prompt
	remaining float64 // tokens still to be written
	written   float64
}

// A server is one replica: a queue in front of a batch, and its /metrics page on a port of 127.0.0.1.
type server struct {
	name     string
	readyAt  time.Time
	draining bool
	http     *http.Server
	addr     string

	mu      sync.Mutex // the page is read while the simulation goes on
	waiting []request
	running []request
	hung    bool
	started float64 // Unix seconds
	tokens  float64 // of prompts
	counted map[string]*counts
}

// A fleet is the servers behind a router that sends every request to the least loaded one.
type fleet struct {
	page    page
	servers []*server
	started int
	slow    float64   // the factor by which answers are slower than they were; 0 is 1
	backlog []request // requests that came while no server was ready

	served, inTime int // requests with a first token, and those that got it in time
}

// scale starts or stops servers until spec of them are there. Those that stop finish what runs; what waits moves on.
func (f *fleet) scale(now time.Time, spec int) error {
	for f.spec() < spec {
		s, err := f.start(now)
		if err != nil {
			return err
		}
		f.servers = append(f.servers, s)
	}
	for f.spec() > spec {
		f.drain(now)
	}
	return nil
}

// spec is how many servers are there that are not stopping.
func (f *fleet) spec() (n int) {
	for _, s := range f.servers {
		if !s.draining {
			n++
		}
	}
	return n
}

// ready is how many servers take requests.
func (f *fleet) ready(now time.Time) (n int) {
	for _, s := range f.servers {
		if s.ready(now) {
			n++
		}
	}
	return n
}

func (s *server) ready(now time.Time) bool { return !s.draining && !now.Before(s.readyAt) }

func (f *fleet) start(now time.Time) (*server, error) {
	f.started++
	s := &server{name: fmt.Sprintf("vllm-%d", f.started), readyAt: now.Add(coldStart), started: float64(now.Unix())}
	s.counted = map[string]*counts{firstTokens: {}, eachToken: {}, promptTokens: {}, answerTokens: {}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	s.addr = listener.Addr().String()
	s.http = &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, hung := s.page(f.page)
		if hung {
			<-r.Context().Done() // until the client gives up
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=1.0.0; charset=utf-8")
		_, _ = w.Write(text) // the client may have gone
	})}
	go func() { _ = s.http.Serve(listener) }() // ends with ErrServerClosed
	return s, nil
}

// drain stops the server that has least to do; one that is not ready has nothing.
func (f *fleet) drain(now time.Time) {
	var least *server
	for _, s := range f.servers {
		if s.draining {
			continue
		}
		if least == nil || !s.ready(now) && least.ready(now) || s.ready(now) == least.ready(now) && s.load() <= least.load() {
			least = s
		}
	}
	least.draining = true
	least.mu.Lock()
	defer least.mu.Unlock()
	f.backlog = append(f.backlog, least.waiting...)
	least.waiting = nil
}

// step moves the fleet on by one second in which a arrived.
func (f *fleet) step(now time.Time, a arrivals) {
	for range a.requests {
		f.backlog = append(f.backlog, request{
			came:      now,
			input:     float64(a.input) / float64(a.requests),
			remaining: max(1, float64(a.output)/float64(a.requests)),
		})
	}
	for len(f.backlog) > 0 && f.route(now, f.backlog[0]) {
		f.backlog = f.backlog[1:]
	}
	for _, s := range f.servers {
		served, inTime := s.step(now, tokensPerSecond/max(1, f.slow))
		f.served, f.inTime = f.served+served, f.inTime+inTime
	}
	f.servers = slices.DeleteFunc(f.servers, func(s *server) bool {
		gone := s.draining && s.load() == 0
		if gone {
			_ = s.http.Close() // nobody is left to be told
		}
		return gone
	})
}

// route gives a request to the least loaded server that is ready; false if none is.
func (f *fleet) route(now time.Time, r request) bool {
	var least *server
	for _, s := range f.servers {
		if s.ready(now) && (least == nil || s.load() < least.load()) {
			least = s
		}
	}
	if least == nil {
		return false
	}
	least.mu.Lock()
	defer least.mu.Unlock()
	least.waiting = append(least.waiting, r)
	return true
}

func (s *server) load() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) + len(s.running)
}

// step admits what fits and writes one second's tokens. It returns how many requests got their first token, and how many in time.
func (s *server) step(now time.Time, speed float64) (served, timely int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) > 0 && len(s.running) < slots && s.kv()+s.waiting[0].input <= kvTokens {
		r := s.waiting[0]
		s.tokens += r.input
		first := now.Sub(r.came).Seconds() + 1/speed
		s.counted[firstTokens].add(first)
		if served++; first <= inTime.Seconds() {
			timely++
		}
		s.running = append(s.running, r)
		s.waiting = s.waiting[1:]
	}
	for i := range s.running {
		s.running[i].remaining -= speed
		s.running[i].written += speed
	}
	s.running = slices.DeleteFunc(s.running, func(r request) bool {
		if r.remaining > 0 {
			return false
		}
		s.counted[eachToken].add(1 / speed)
		s.counted[promptTokens].add(r.input)
		s.counted[answerTokens].add(r.written + r.remaining)
		return true
	})
	return served, timely
}

// kv is how many tokens the cache holds.
func (s *server) kv() (tokens float64) {
	for _, r := range s.running {
		tokens += r.input + r.written
	}
	return tokens
}

// page is the server's page, unless it hangs.
func (s *server) page(p page) (text []byte, hung bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.render(gauges{
		waiting: len(s.waiting), running: len(s.running), kvUsage: min(1, s.kv()/kvTokens),
		started: s.started, tokens: s.tokens, counted: s.counted,
	}), s.hung
}

func (s *server) hang(hung bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung = hung
}

func (f *fleet) close() {
	for _, s := range f.servers {
		_ = s.http.Close() // the program ends
	}
}
