package certs

import (
	"bytes"
	"crypto/rand"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// FuzzSecrets has any content in both Secrets: nothing panics, an error quotes no key, and what is accepted leads to
// Secrets that can be read again and that hold what was decided.
func FuzzSecrets(f *testing.F) {
	rules := Rules{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first, err := Next(rules, State{}, "", now, rand.Reader)
	require.NoError(f, err)
	publish, err := Next(rules, first.State, "today", now, rand.Reader)
	require.NoError(f, err)
	a, m, p := first.State.Authority, first.State.Material, publish.State.Authority
	const since = "2026-01-01T00:00:00Z"
	f.Add("authority", "material", a.CA.Cert, a.CA.Key, []byte{}, []byte{}, []byte{}, []byte(`{"version":1,"phase":"Steady"}`), m.Bundle, m.Client.Cert, m.Client.Key, m.Server.Cert, m.Server.Key, since)
	f.Add("authority", "material", p.CA.Cert, p.CA.Key, p.Next.Cert, p.Next.Key, []byte{}, []byte(`{"version":1,"phase":"Publish","request":"today"}`), publish.State.Material.Bundle, m.Client.Cert, m.Client.Key, m.Server.Cert, m.Server.Key, since)
	f.Add("authority", "material", p.CA.Cert, []byte{}, p.Next.Cert, p.Next.Key, []byte{}, []byte(`{"version":1,"phase":"Publish"}`), []byte{}, []byte{}, []byte{}, []byte{}, []byte{}, "")
	f.Add("authority", "", p.Next.Cert, p.Next.Key, []byte{}, []byte{}, p.CA.Cert, []byte(`{"version":1,"phase":"Switch","oldUntil":"2026-04-01T00:00:00Z"}`), []byte{}, []byte{}, []byte{}, []byte{}, []byte{}, "")
	f.Add("", "material", []byte{}, []byte{}, []byte{}, []byte{}, []byte{}, []byte{}, m.Bundle, m.Client.Cert, m.Client.Key, m.Server.Cert, m.Server.Key, "x")
	f.Add("material", "authority", []byte("x"), []byte("-----BEGIN CERTIFICATE-----"), []byte{}, []byte{}, []byte{}, []byte("{"), []byte{0}, []byte{}, []byte{}, []byte{}, []byte{}, "")
	f.Fuzz(func(t *testing.T, caLabel, label string, caCert, caKey, nextCert, nextKey, old, state, bundle, cert, key, serverCert, serverKey []byte, since string) {
		ca := &corev1.Secret{Data: map[string][]byte{keyTLSCert: caCert, keyTLSKey: caKey, keyNextCert: nextCert, keyNextKey: nextKey, keyOldCert: old, keyState: state}}
		secret := &corev1.Secret{Data: map[string][]byte{keyCA: bundle, keyTLSCert: cert, keyTLSKey: key, keyServerCert: serverCert, keyServerKey: serverKey}}
		ca.Labels, secret.Labels = map[string]string{}, map[string]string{}
		if caLabel != "" {
			ca.Labels[Label] = caLabel
		}
		if label != "" {
			secret.Labels[Label] = label
		}
		secret.Annotations = map[string]string{SinceAnnotation: since}
		quotes := func(err error) {
			var e *SecretError
			require.ErrorAs(t, err, &e)
			for _, part := range [][]byte{key, serverKey, caKey, nextKey} {
				require.False(t, len(part) > 64 && strings.Contains(err.Error(), string(part[28:64])))
			}
		}
		authorities, materials := codec{where: "Secret a", role: roleAuthority}, codec{where: "Secret b", role: roleMaterial}
		var s State
		var err error
		if s.Authority, err = authorities.authority(ca); err != nil {
			quotes(err)
		}
		var mErr error
		if s.Material, mErr = materials.material(secret); mErr != nil {
			quotes(mErr)
		}
		if err == nil && mErr == nil {
			step, err := Next(rules, s, "", now, rand.Reader)
			require.NoError(t, err, "what was read can be used")
			require.NoError(t, authorities.putAuthority(ca, step.State.Authority))
			materials.putMaterial(secret, step.State.Material)
			a, err := authorities.authority(ca)
			require.NoError(t, err, "what was written can be read")
			m, err := materials.material(secret)
			require.NoError(t, err)
			wrote, read := step.State, State{Authority: a, Material: m}
			for _, part := range []func(State) []byte{
				func(s State) []byte { return s.Authority.CA.Cert }, func(s State) []byte { return s.Authority.CA.Key },
				func(s State) []byte { return s.Authority.Next.Key }, func(s State) []byte { return s.Authority.Old },
				func(s State) []byte { return s.Material.Bundle }, func(s State) []byte { return s.Material.Server.Key },
			} {
				require.True(t, bytes.Equal(part(wrote), part(read)))
			}
			require.Equal(t, wrote.Authority.Phase, a.Phase)
			require.Equal(t, wrote.Authority.Request, a.Request)
			require.True(t, wrote.Authority.OldUntil.Equal(a.OldUntil) && wrote.Material.Since.Equal(m.Since))
			again, err := Next(rules, State{Authority: a, Material: m}, "", now, rand.Reader)
			require.NoError(t, err)
			require.Equal(t, step.State.Authority.Phase, again.State.Authority.Phase)
		}
		served := Served{Where: "x", CA: bundle, Pair: Pair{Cert: serverCert, Key: serverKey}}
		if _, _, err := served.parse(); err != nil {
			quotes(err)
		}
	})
}
