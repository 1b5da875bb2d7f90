package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"github.com/inferscale/inferscale/adapters/certs"
	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/examples/internal/webhooks"
)

// A scaler serves KEDA. Every replica does, leader or not.
type scaler struct {
	*options

	logger  *slog.Logger
	server  *grpc.Server
	healthy *health.Server
	engine  *keda.Engine
}

// NeedLeaderElection says that it runs without.
func (*scaler) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (s *scaler) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	s.logger.Info("serving", "address", listener.Addr().String(), "tls", !s.plaintext)
	return serve(ctx, s.Shutdown, s.server, s.healthy, listener, s.engine)
}

// port is the :port of an address.
func port(address string) string {
	_, p, _ := net.SplitHostPort(address) // it was parsed before
	return ":" + p
}

// ready reports whether there is a certificate to serve with, and pods and ScaledObjects are known.
func (p *process) ready(request *http.Request) error {
	if err := certified(p.reader); err != nil {
		return err
	}
	if !p.manager.GetCache().WaitForCacheSync(request.Context()) {
		return errors.New("pods and ScaledObjects are not all known yet")
	}
	return nil
}

// certified returns why there is no certificate to serve with. While a Secret is damaged or missing, the last good one is used:
// all replicas see that Secret at once, and none would be left if they were not ready.
func certified(r *certs.Reader) error {
	if r == nil {
		return nil // plaintext
	}
	if err := r.Err(); err != nil && r.Expires().IsZero() {
		return err
	}
	return nil
}

// A hook serves the webhook. Every replica does.
type hook struct {
	*options

	server *http.Server
}

// NeedLeaderElection says that it runs without.
func (*hook) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (h *hook) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(h.WebhookHost, strconv.Itoa(h.WebhookPort)))
	if err != nil {
		return err
	}
	return webhooks.Serve(ctx, listener, h.server, h.Shutdown)
}

// webhookTLS has the webhook served with the same certificate as KEDA; the API server has none of its own to show.
func (p *process) webhookTLS() *tls.Config {
	inner := p.reader.TLS().GetConfigForClient
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		now, err := inner(hello)
		if err != nil {
			return nil, err
		}
		return &now.Certificates[0], nil
	}}
}
