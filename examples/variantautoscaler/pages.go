package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// none is the address that serves nothing.
const none = "0"

// pages are the HTTP servers.
type pages struct{ servers []*http.Server }

// openPages serves /metrics, and /healthz and /readyz, which answer with what is wrong.
func openPages(o options, registry *prometheus.Registry, healthy func(*http.Request) error, ready func() error) (*pages, error) {
	p := &pages{}
	metrics := http.NewServeMux()
	metrics.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	probes := http.NewServeMux()
	probes.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { answer(w, healthy(r)) })
	probes.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, ready()) })
	return p, errors.Join(p.open(o.metrics, metrics), p.open(o.probes, probes))
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // who asked is gone
}

func (p *pages) open(address string, handler http.Handler) error {
	if address == none {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		p.close()
		return err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	p.servers = append(p.servers, server)
	go func() { _ = server.Serve(listener) }() // it ends with close
	return nil
}

// close lets requests end, for a second.
func (p *pages) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, s := range p.servers {
		_ = s.Shutdown(ctx)
	}
}
