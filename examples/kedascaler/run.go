package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/inferscale/inferscale/adapters/certs"
)

// An everywhere is what every replica does until ctx ends, leader or not.
type everywhere func(ctx context.Context) error

// Start does it.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection says that it runs without.
func (everywhere) NeedLeaderElection() bool { return false }

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
