package certs_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/certs"
)

const (
	host = "scaler.keda.svc.cluster.local"
	day  = 24 * time.Hour
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func rules() certs.Rules {
	return certs.Rules{DNSNames: certs.ServiceNames("scaler", "keda", ""), IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

// A clock is moved by hand.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: start} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

// A fatal is what testing and rapid have in common.
type fatal interface {
	require.TestingT
	Helper()
}

func next(t fatal, r certs.Rules, s certs.State, request string, now time.Time) certs.Step {
	t.Helper()
	step, err := certs.Next(r, s, request, now, rand.Reader)
	require.NoError(t, err)
	return step
}

func codes(actions []certs.Action) []certs.Code {
	var out []certs.Code
	for _, a := range actions {
		out = append(out, a.Code)
	}
	return out
}

func parse(t fatal, data []byte) []*x509.Certificate {
	t.Helper()
	var out []*x509.Certificate
	for {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			return out
		}
		c, err := x509.ParseCertificate(b.Bytes)
		require.NoError(t, err)
		out = append(out, c)
	}
}

func leaf(t fatal, p certs.Pair) *x509.Certificate {
	t.Helper()
	all := parse(t, p.Cert)
	require.Len(t, all, 1)
	return all[0]
}

// verify is a handshake without keys: each side judges the other's certificate by the bundle that it has.
func verify(t fatal, client, server certs.Material, at time.Time) error {
	t.Helper()
	pool := func(m certs.Material) *x509.CertPool {
		p := x509.NewCertPool()
		require.True(t, p.AppendCertsFromPEM(m.Bundle))
		return p
	}
	_, byClient := leaf(t, server.Server).Verify(x509.VerifyOptions{
		DNSName: host, Roots: pool(client), CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	_, byServer := leaf(t, client.Client).Verify(x509.VerifyOptions{
		Roots: pool(server), CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return errors.Join(byClient, byServer)
}

// A memory is a Source of what was put into it.
type memory struct {
	mu  sync.Mutex
	s   certs.Served
	err error
}

func (m *memory) Load() (certs.Served, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s, m.err
}

func (m *memory) put(x certs.Material, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s = certs.Served{Where: "memory", Version: version, CA: x.Bundle, Pair: x.Server, Keys: certs.Keys{CA: "ca.crt", Cert: "server.crt", Key: "server.key"}}
}

func serve(m certs.Material) certs.Source {
	var s memory
	s.put(m, "1")
	return &s
}

// shake does a handshake in memory, and one byte from server to client: only with it does a client of TLS 1.3 know
// that it was let in.
func shake(t *testing.T, server, client *tls.Config) (tls.ConnectionState, error, error) {
	t.Helper()
	a, b := net.Pipe()
	deadline := time.Now().Add(10 * time.Second)
	require.NoError(t, errors.Join(a.SetDeadline(deadline), b.SetDeadline(deadline)))
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte{1})
		}
		_ = a.Close()
		done <- err
	}()
	err := c.Handshake()
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	state := c.ConnectionState()
	_ = b.Close()
	return state, <-done, err
}

func clientTLS(t fatal, m certs.Material, now func() time.Time) *tls.Config {
	t.Helper()
	c, err := certs.ClientTLS(m, host)
	require.NoError(t, err)
	c.Time = now
	return c
}

func serverTLS(m certs.Material, now func() time.Time) *tls.Config {
	return certs.NewReader(certs.ReaderConfig{Source: serve(m), Now: now}).TLS()
}
