package certs_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/certs"
)

// TestReaderStays has material that cannot be used reported once, and what was in force before stay.
func TestReaderStays(t *testing.T) {
	c := newClock()
	m := next(t, rules(), certs.State{}, "", start).State.Material
	var source memory
	var reports []error
	r := certs.NewReader(certs.ReaderConfig{Source: &source, Now: c.now, OnError: func(err error) { reports = append(reports, err) }})
	shakes := func() bool {
		_, byServer, byClient := shake(t, r.TLS(), clientTLS(t, m, c.now))
		return byServer == nil && byClient == nil
	}

	source.err = errors.New("no cache")
	_, byServer, byClient := shake(t, r.TLS(), clientTLS(t, m, c.now))
	require.EqualError(t, byServer, "no cache")
	require.ErrorContains(t, byClient, "internal error")
	require.Len(t, reports, 2) // the error, and the handshake that failed for it
	require.True(t, r.Expires().IsZero())
	require.False(t, shakes())
	require.Len(t, reports, 3)

	source.err = nil
	source.put(certs.Material{}, "0")
	require.ErrorIs(t, r.Err(), certs.ErrMissing)
	require.EqualError(t, r.Err(), "memory: ca.crt: must not be empty: there is no certificate yet")
	require.False(t, shakes())

	source.put(m, "1")
	require.True(t, shakes())
	require.NoError(t, r.Err())
	require.Equal(t, start.Add(90*day), r.Expires())

	reports = nil
	bad := m
	bad.Server.Key = m.Client.Key
	source.put(bad, "2")
	require.True(t, shakes())
	require.True(t, shakes())
	require.EqualError(t, r.Err(), "memory: server.key: must be the private key in PEM of server.crt: it is damaged: mend it, or delete it to have it made anew")
	require.Len(t, reports, 1)
	require.Equal(t, start.Add(90*day), r.Expires())

	source.err = errors.New("no cache")
	require.True(t, shakes())
	require.EqualError(t, r.Err(), "no cache")
	require.Len(t, reports, 2)

	source.err = nil
	source.put(m, "3")
	require.True(t, shakes())
	require.NoError(t, r.Err())
	require.Len(t, reports, 2)
}

// TestReaderFaults names each part that is wrong.
func TestReaderFaults(t *testing.T) {
	m := next(t, rules(), certs.State{}, "", start).State.Material
	for _, tt := range []struct {
		want   string
		damage func(*certs.Material)
	}{
		{"ca.crt: must be certificates of CAs in PEM, and nothing else in PEM", func(m *certs.Material) { m.Bundle = m.Server.Key }},
		{"ca.crt: must be certificates of CAs in PEM, and nothing else in PEM", func(m *certs.Material) { m.Bundle = m.Server.Cert }},
		{"ca.crt: must be certificates of CAs in PEM, and nothing else in PEM", func(m *certs.Material) { m.Bundle = []byte("x") }},
		{"server.crt: must not be empty", func(m *certs.Material) { m.Server.Cert = nil }},
		{"server.crt: must be certificates in PEM", func(m *certs.Material) { m.Server.Cert = m.Server.Key }},
		{"server.crt: must be allowed as the certificate of a server, with names", func(m *certs.Material) { m.Server = m.Client }},
		{"server.key: must be the private key in PEM of server.crt", func(m *certs.Material) { m.Server.Key = m.Client.Key }},
		{"server.key: must not be empty", func(m *certs.Material) { m.Server.Key = nil }},
	} {
		bad := m
		tt.damage(&bad)
		err := certs.NewReader(certs.ReaderConfig{Source: serve(bad)}).Err()
		require.ErrorContains(t, err, "memory: "+tt.want)
		_, err = certs.TLS(serve(bad)).GetConfigForClient(nil)
		require.ErrorContains(t, err, "memory: "+tt.want)
	}
	bad := m
	bad.Bundle = append([]byte("# the first\n"), m.Bundle...)
	require.NoError(t, certs.NewReader(certs.ReaderConfig{Source: serve(bad)}).Err(), "text around is a comment")
}

// TestReaderParsesOnce has the same configuration returned until the version changes.
func TestReaderParsesOnce(t *testing.T) {
	m := next(t, rules(), certs.State{}, "", start).State.Material
	var source memory
	source.put(m, "1")
	config := certs.TLS(&source)
	a, err := config.GetConfigForClient(nil)
	require.NoError(t, err)
	b, err := config.GetConfigForClient(nil)
	require.NoError(t, err)
	require.Same(t, a, b)
	source.put(m, "2")
	b, err = config.GetConfigForClient(nil)
	require.NoError(t, err)
	require.NotSame(t, a, b)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = config.GetConfigForClient(nil) }))
}

// TestReaderConcurrently is for the race detector, and has what was in force stay in force for all handshakes, whatever
// comes after it.
func TestReaderConcurrently(t *testing.T) {
	first := next(t, rules(), certs.State{}, "", start).State.Material
	other := next(t, rules(), certs.State{}, "", start).State.Material
	var source memory
	source.put(first, "0")
	r := certs.NewReader(certs.ReaderConfig{Source: &source})
	require.NoError(t, r.Err()) // in force before the first change, which may be to none
	config := r.TLS()
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 200 {
				if _, err := config.GetConfigForClient(nil); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for i := range 50 {
		source.put([]certs.Material{first, other, {}}[i%3], string(rune('a'+i)))
	}
	wg.Wait()
}

// TestSecretSource reads the cache of an informer.
func TestSecretSource(t *testing.T) {
	c := newClock()
	m := next(t, rules(), certs.State{}, "", start).State.Material
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	lister := corelisters.NewSecretLister(indexer).Secrets("keda")
	r := certs.NewReader(certs.ReaderConfig{Now: c.now, Source: certs.SecretSource{Lister: lister, Namespace: "keda", Name: "certs"}})
	require.EqualError(t, r.Err(), "Secret keda/certs: must exist: there is no certificate yet")
	require.ErrorIs(t, r.Err(), certs.ErrMissing)

	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "keda", Name: "certs", ResourceVersion: "1"},
		Data:       map[string][]byte{"ca.crt": m.Bundle, "server.crt": m.Server.Cert, "server.key": m.Server.Key},
	}
	require.NoError(t, indexer.Add(s))
	require.NoError(t, r.Err())
	_, byServer, byClient := shake(t, r.TLS(), clientTLS(t, m, c.now))
	require.NoError(t, byServer)
	require.NoError(t, byClient)

	// As cert-manager writes it.
	s = s.DeepCopy()
	s.Data = map[string][]byte{"ca.crt": m.Bundle, "tls.crt": m.Server.Cert, "tls.key": m.Server.Key}
	s.ResourceVersion = "2"
	require.NoError(t, indexer.Update(s))
	require.EqualError(t, r.Err(), "Secret keda/certs: server.crt: must not be empty: there is no certificate yet")
	source := certs.SecretSource{Lister: lister, Namespace: "keda", Name: "certs", Keys: certs.Keys{Cert: "tls.crt", Key: "tls.key"}}
	require.NoError(t, certs.NewReader(certs.ReaderConfig{Source: source}).Err())
}

// TestRegressionASecretWithoutAVersionIsReadAnew: fakes of client-go give no resource versions, and a reader kept the first certificate.
func TestRegressionASecretWithoutAVersionIsReadAnew(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	r := certs.NewReader(certs.ReaderConfig{Source: certs.SecretSource{Lister: corelisters.NewSecretLister(indexer).Secrets("keda"), Name: "certs"}})
	for _, at := range []time.Time{start, start.AddDate(0, 0, 1)} {
		m := next(t, rules(), certs.State{}, "", at).State.Material
		require.NoError(t, indexer.Add(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "keda", Name: "certs"},
			Data:       map[string][]byte{"ca.crt": m.Bundle, "server.crt": m.Server.Cert, "server.key": m.Server.Key},
		}))
		require.NoError(t, r.Err())
		require.Equal(t, leaf(t, m.Server).NotAfter, r.Expires())
	}
}
