// Package webhooks serves admission webhooks as controller-runtime does, but so that whoever reaches the port can neither take
// the memory of the process nor the place of the API server: it bounds connections, times and bodies as adapters/keda/defaulting.
package webhooks

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
)

const (
	// mostGrace is how long a server may go on after it was told to stop, for reviews that are under way.
	mostGrace = 10 * time.Second
	// leaving is how long it takes connections then: until API servers have heard that the pod leaves, they send it reviews.
	leaving = 3 * time.Second
)

// Config says where webhooks are served, and with which certificate.
type Config struct {
	Host string
	Port int
	// CertDir has tls.crt and tls.key, which are read again when they change, unless Certificate says the certificate.
	CertDir     string
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Grace is how long the process waits for what it has to end, 10 s by default: a server takes no longer.
	Grace time.Duration
}

// A Server is a webhook.Server, whose Register and mux are controller-runtime's.
type Server struct {
	webhook.Server

	config  Config
	mux     *http.ServeMux
	address atomic.Pointer[string] // once it serves
}

// NewServer returns the server of a configuration.
func NewServer(c Config) *Server {
	mux := http.NewServeMux()
	return &Server{Server: webhook.NewServer(webhook.Options{WebhookMux: mux}), config: c, mux: mux}
}

// WebhookMux returns what handlers are registered with.
func (s *Server) WebhookMux() *http.ServeMux { return s.mux }

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.config.Certificate}
	if config.GetCertificate == nil {
		watcher, err := certwatcher.New(filepath.Join(s.config.CertDir, "tls.crt"), filepath.Join(s.config.CertDir, "tls.key"))
		if err != nil {
			return err
		}
		watching, stop := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			if err := watcher.Start(watching); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "the webhooks' certificate is not read again")
			}
		}()
		defer func() { stop(); <-watched }()
		config.GetCertificate = watcher.GetCertificate
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(s.config.Host, strconv.Itoa(s.config.Port)))
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	s.address.Store(&address)
	grace := min(cmp.Or(s.config.Grace, mostGrace), mostGrace)
	return Serve(ctx, listener, defaulting.NewServer(defaulting.Bounded(s.mux), config), grace)
}

// Serve serves by TLS until ctx ends, and then for as long as API servers may not know yet that it does, but for half of the
// grace at most. Reviews that are under way have the rest to end.
func Serve(ctx context.Context, listener net.Listener, server *http.Server, grace time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	timer := time.NewTimer(min(leaving, grace/2))
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
	}
	return server.Shutdown(ctx)
}

// StartedChecker reports whether connections are taken.
func (s *Server) StartedChecker() healthz.Checker {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // whether it answers is all that is asked
	}}
	return func(r *http.Request) error {
		address := s.address.Load()
		if address == nil {
			return errors.New("the webhooks are not served yet")
		}
		conn, err := dialer.DialContext(r.Context(), "tcp", *address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}
