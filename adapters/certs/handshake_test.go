package certs_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/certs"
)

// TestHandshake is what both sides agree on.
func TestHandshake(t *testing.T) {
	c := newClock()
	m := next(t, rules(), certs.State{}, "", start).State.Material
	for _, version := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
		client := clientTLS(t, m, c.now)
		client.MaxVersion = version
		state, byServer, byClient := shake(t, serverTLS(m, c.now), client)
		require.NoError(t, byServer)
		require.NoError(t, byClient)
		require.Equal(t, version, state.Version)
		require.Equal(t, "h2", state.NegotiatedProtocol)
	}
	for _, name := range append(certs.ServiceNames("scaler", "keda", ""), "127.0.0.1") {
		client := clientTLS(t, m, c.now)
		client.ServerName = name
		_, byServer, byClient := shake(t, serverTLS(m, c.now), client)
		require.NoError(t, byServer, name)
		require.NoError(t, byClient, name)
	}
}

// TestStrangers are clients that are not let in.
func TestStrangers(t *testing.T) {
	c := newClock()
	m := next(t, rules(), certs.State{}, "", start).State.Material
	other := next(t, rules(), certs.State{}, "", start).State.Material
	for _, tt := range []struct {
		name string
		bend func(*tls.Config)
		want string
	}{
		{"no certificate", func(c *tls.Config) { c.Certificates = nil }, "client didn't provide a certificate"},
		{"another CA's", func(c *tls.Config) { c.Certificates = clientTLS(t, other, c.Time).Certificates }, "certificate signed by unknown authority"},
		{"the server's own", func(c *tls.Config) { c.Certificates = []tls.Certificate{pair(t, m.Server)} }, "incompatible key usage"},
		{"old TLS", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, "unsupported versions"},
		{"cipher without AEAD", func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
		}, "no cipher suite supported by both"},
		{"another protocol", func(c *tls.Config) { c.NextProtos = []string{"spdy"} }, "unsupported application protocols"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := clientTLS(t, m, c.now)
			tt.bend(client)
			// The choice of a certificate by the CAs that the server names is left out: a stranger sends what he has.
			if len(client.Certificates) > 0 {
				sent := client.Certificates[0]
				client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &sent, nil }
			}
			_, byServer, byClient := shake(t, serverTLS(m, c.now), client)
			require.ErrorContains(t, byServer, tt.want)
			require.Error(t, byClient)
		})
	}
	// A client takes no client's certificate for the server's.
	client := clientTLS(t, m, c.now)
	server := serverTLS(m, c.now)
	inner, err := server.GetConfigForClient(nil)
	require.NoError(t, err)
	inner = inner.Clone()
	inner.Certificates = []tls.Certificate{pair(t, m.Client)}
	_, _, byClient := shake(t, inner, client)
	require.ErrorContains(t, byClient, "certificate is not valid for any names")
}

func pair(t *testing.T, p certs.Pair) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	require.NoError(t, err)
	return c
}

// TestSeedConfigFails has the proposal's sketch fail: what GetConfigForClient returns replaces the configuration, with
// its GetCertificate, and the sketch returns one without a certificate.
func TestSeedConfigFails(t *testing.T) {
	c := newClock()
	m := next(t, rules(), certs.State{}, "", start).State.Material
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(m.Bundle))
	sketch := &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			p := pair(t, m.Server)
			return &p, nil
		},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12, Time: c.now}, nil
		},
		MinVersion: tls.VersionTLS12,
	}
	_, byServer, byClient := shake(t, sketch, clientTLS(t, m, c.now))
	require.EqualError(t, byServer, "tls: no certificates configured")
	require.ErrorContains(t, byClient, "tls: unrecognized name")

	_, byServer, byClient = shake(t, serverTLS(m, c.now), clientTLS(t, m, c.now))
	require.NoError(t, byServer)
	require.NoError(t, byClient)
}

// TestPhases has real handshakes of what was read in each phase with what the server has in each, and who is refused by
// whom.
func TestPhases(t *testing.T) {
	c := newClock()
	r := rules()
	r.DropAfter = day
	names := []string{"before", "published", "switched", "dropped"}
	step := next(t, r, certs.State{}, "", start)
	phases := []certs.Material{step.State.Material}
	step.Next = start
	for range 3 {
		step = next(t, r, step.State, "today", step.Next)
		phases = append(phases, step.State.Material)
	}
	require.Equal(t, certs.PhaseSteady, step.State.Authority.Phase)
	refused := map[[2]string]string{ // client, server
		{"before", "switched"}:   "client",
		{"before", "dropped"}:    "client",
		{"published", "dropped"}: "server",
		{"switched", "before"}:   "server",
		{"dropped", "before"}:    "client",
		{"dropped", "published"}: "client",
	}
	c.set(start.Add(3 * day))
	for i, client := range phases {
		for j, server := range phases {
			t.Run(names[i]+" with "+names[j], func(t *testing.T) {
				_, byServer, byClient := shake(t, serverTLS(server, c.now), clientTLS(t, client, c.now))
				var unknown x509.UnknownAuthorityError
				switch refused[[2]string{names[i], names[j]}] {
				case "client":
					require.ErrorAs(t, byClient, &unknown)
				case "server":
					// A client does not even send a certificate whose CA the server does not name.
					require.EqualError(t, byServer, "tls: client didn't provide a certificate")
				default:
					require.NoError(t, byServer)
					require.NoError(t, byClient)
				}
			})
		}
	}
}

// TestNoResumption has a client with a cache of sessions do whole handshakes: a resumed session would outlive its CA.
func TestNoResumption(t *testing.T) {
	c := newClock()
	first := next(t, rules(), certs.State{}, "", start).State.Material
	other := next(t, rules(), certs.State{}, "", start).State.Material
	var source memory
	source.put(first, "1")
	server := certs.NewReader(certs.ReaderConfig{Source: &source, Now: c.now}).TLS()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		source.put(first, "1")
		client := clientTLS(t, first, c.now)
		client.MaxVersion = version
		client.ClientSessionCache = tls.NewLRUClientSessionCache(4)
		for range 3 {
			state, byServer, byClient := shake(t, server, client)
			require.NoError(t, byServer)
			require.NoError(t, byClient)
			require.False(t, state.DidResume)
		}
		source.put(other, "2")
		_, byServer, _ := shake(t, server, client)
		require.Error(t, byServer)
	}
}

// TestExpiredClient is refused by the server's clock.
func TestExpiredClient(t *testing.T) {
	c := newClock()
	m := next(t, rules(), certs.State{}, "", start).State.Material
	late := newClock()
	late.set(start.Add(91 * day))
	_, byServer, _ := shake(t, serverTLS(m, late.now), clientTLS(t, m, c.now))
	var invalid x509.CertificateInvalidError
	require.ErrorAs(t, byServer, &invalid)
	require.Equal(t, x509.Expired, invalid.Reason)
}

func BenchmarkNext(b *testing.B) {
	step, err := certs.Next(rules(), certs.State{}, "", start, rand.Reader)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := certs.Next(rules(), step.State, "", start, rand.Reader); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkConfigForClient is what a handshake costs beside the handshake.
func BenchmarkConfigForClient(b *testing.B) {
	step, err := certs.Next(rules(), certs.State{}, "", start, rand.Reader)
	require.NoError(b, err)
	config := serverTLS(step.State.Material, func() time.Time { return start })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := config.GetConfigForClient(nil); err != nil {
			b.Fatal(err)
		}
	}
}
