package certs_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/inferscale/inferscale/adapters/keda/certs"
)

// FuzzSecrets has any content in both Secrets: nothing panics, a Secret that is refused is left alone and its error
// quotes no key, and what is accepted leads to certificates that verify each other, or to none that were not there.
func FuzzSecrets(f *testing.F) {
	step, err := certs.Next(rules(), certs.State{}, "", start, rand.Reader)
	require.NoError(f, err)
	publish, err := certs.Next(rules(), step.State, "today", start, rand.Reader)
	require.NoError(f, err)
	a, m := step.State.Authority, step.State.Material
	const steady = `{"version":1,"phase":"Steady"}`
	f.Add("authority", "material", a.CA.Cert, a.CA.Key, []byte{}, []byte{}, []byte{}, []byte(steady), m.Bundle, m.Client.Cert, m.Client.Key, m.Server.Cert, m.Server.Key, "2026-01-01T00:00:00Z")
	p := publish.State.Authority
	f.Add("authority", "material", p.CA.Cert, p.CA.Key, p.Next.Cert, p.Next.Key, []byte{}, []byte(`{"version":1,"phase":"Publish","request":"today"}`), publish.State.Material.Bundle, m.Client.Cert, m.Client.Key, m.Server.Cert, m.Server.Key, "2026-01-01T00:00:00Z")
	f.Add("authority", "material", p.CA.Cert, []byte{}, p.Next.Cert, p.Next.Key, []byte{}, []byte(`{"version":1,"phase":"Publish"}`), []byte{}, []byte{}, []byte{}, []byte{}, []byte{}, "")
	f.Add("authority", "", p.Next.Cert, p.Next.Key, []byte{}, []byte{}, p.CA.Cert, []byte(`{"version":1,"phase":"Switch","oldUntil":"2026-04-01T00:00:00Z"}`), []byte{}, []byte{}, []byte{}, []byte{}, []byte{}, "")
	f.Add("", "material", []byte{}, []byte{}, []byte{}, []byte{}, []byte{}, []byte{}, m.Bundle, m.Client.Cert, m.Client.Key, m.Server.Cert, m.Server.Key, "x")
	f.Add("material", "authority", []byte("x"), []byte("-----BEGIN CERTIFICATE-----"), []byte{}, []byte{}, []byte{}, []byte("{"), []byte{0}, []byte{}, []byte{}, []byte{}, []byte{}, "")
	f.Fuzz(func(t *testing.T, caLabel, label string, caCert, caKey, nextCert, nextKey, old, state, bundle, cert, key, serverCert, serverKey []byte, since string) {
		secret := func(name, label string, data map[string][]byte) *corev1.Secret {
			s := &corev1.Secret{Data: data}
			s.Namespace, s.Name, s.ResourceVersion = "keda", name, "1"
			if label != "" {
				s.Labels = map[string]string{certs.Label: label}
			}
			if since != "" {
				s.Annotations = map[string]string{certs.SinceAnnotation: since}
			}
			return s
		}
		ca := secret(caName, caLabel, map[string][]byte{"tls.crt": caCert, "tls.key": caKey, "next.crt": nextCert, "next.key": nextKey, "old.crt": old, "state": state})
		s := secret(name, label, map[string][]byte{"ca.crt": bundle, "tls.crt": cert, "tls.key": key, "server.crt": serverCert, "server.key": serverKey})
		c, now := newCluster(ca, s), newClock()
		k := newKeeper(t, c, now, nil)
		_, err := k.Ensure(t.Context())
		if err != nil {
			var e *certs.SecretError
			require.ErrorAs(t, err, &e)
			require.Equal(t, s.Data, c.get(t, name).Data)
			require.Equal(t, ca.Data, c.get(t, caName).Data)
			for _, part := range [][]byte{key, serverKey, caKey, nextKey} {
				if len(part) > 40 {
					require.False(t, strings.Contains(err.Error(), string(part)))
				}
			}
		} else {
			got := materialOf(c.get(t, name))
			require.NoError(t, verify(t, got, got, start))
			_, err := k.Ensure(t.Context())
			require.NoError(t, err, "what was written can be read")
		}
		_ = certs.NewReader(certs.ReaderConfig{Source: serve(materialOf(s))}).Err()
	})
}
