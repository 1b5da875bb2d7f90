package certs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/inferscale/inferscale/adapters/certs"
)

const (
	name   = "keda-kaito-scaler-certs"
	caName = "keda-kaito-scaler-ca"
)

// TestEnsure fills what is absent, and writes nothing unless something is due.
func TestEnsure(t *testing.T) {
	c, now := newCluster(), newClock()
	var actions []certs.Action
	k := newKeeper(t, c, now, &actions)
	at, err := k.Ensure(t.Context())
	require.NoError(t, err)
	require.Equal(t, start.Add(time.Hour), at)
	require.Equal(t, []string{"get " + name, "get " + caName, "create " + caName, "create " + name}, c.verbs())
	require.Equal(t, []certs.Code{certs.CreateCA, certs.Publish, certs.IssueClient, certs.IssueServer}, codes(actions))

	s, ca := c.get(t, name), c.get(t, caName)
	require.Equal(t, corev1.SecretTypeTLS, s.Type)
	require.Equal(t, []string{"ca.crt", "server.crt", "server.key", "tls.crt", "tls.key"}, slices.Sorted(maps.Keys(s.Data)))
	require.Equal(t, "2026-01-01T00:00:00Z", s.Annotations[certs.SinceAnnotation])
	require.Equal(t, corev1.SecretTypeTLS, ca.Type)
	require.Equal(t, []string{"state", "tls.crt", "tls.key"}, slices.Sorted(maps.Keys(ca.Data)))
	require.JSONEq(t, `{"version": 1, "phase": "Steady"}`, string(ca.Data["state"]))
	require.NotContains(t, string(bytes.Join(slices.Collect(maps.Values(s.Data)), nil)), string(ca.Data["tls.key"]))
	require.NoError(t, verify(t, materialOf(s), materialOf(s), start))

	now.set(at)
	at, err = k.Ensure(t.Context())
	require.NoError(t, err)
	require.Equal(t, start.Add(2*time.Hour), at)
	require.Equal(t, []string{"get " + name, "get " + caName}, c.verbs())

	due := start.Add(60*day - 100*time.Second)
	now.set(due.Add(-time.Minute))
	at, err = k.Ensure(t.Context())
	require.NoError(t, err)
	require.Equal(t, due, at)
	now.set(due)
	c.verbs()
	_, err = k.Ensure(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"get " + name, "get " + caName, "update " + name}, c.verbs())
}

// TestRotateCA goes through a rotation as its phases are stored.
func TestRotateCA(t *testing.T) {
	c, now := newCluster(), newClock()
	r := rules()
	r.LeafLife = 5 * day
	k, err := certs.NewKeeper(certs.KeeperConfig{Client: c.CoreV1(), Rules: r, Namespace: "keda", Now: now.now})
	require.NoError(t, err)
	require.ErrorIs(t, k.RotateCA(t.Context(), "today"), certs.ErrMissing)
	ensure := func() time.Time {
		at, err := k.Ensure(t.Context())
		require.NoError(t, err)
		return at
	}
	state := func() string { return string(c.get(t, caName).Data["state"]) }
	ensure()
	require.ErrorContains(t, k.RotateCA(t.Context(), ""), `request: "": must not be empty`)
	require.NoError(t, k.RotateCA(t.Context(), "today"))
	ensure()
	require.JSONEq(t, `{"version": 1, "phase": "Publish", "request": "today"}`, state())
	require.Equal(t, []string{"next.crt", "next.key", "state", "tls.crt", "tls.key"}, slices.Sorted(maps.Keys(c.get(t, caName).Data)))
	require.Equal(t, 2, strings.Count(string(c.get(t, name).Data["ca.crt"]), "BEGIN"))
	for at := ensure(); strings.Contains(state(), "Publish"); at = ensure() {
		now.set(at)
	}
	require.JSONEq(t, `{"version": 1, "phase": "Switch", "request": "today", "oldUntil": "2026-01-06T00:00:00Z"}`, state())
	require.Equal(t, []string{"old.crt", "state", "tls.crt", "tls.key"}, slices.Sorted(maps.Keys(c.get(t, caName).Data)))
	for at := ensure(); strings.Contains(state(), "Switch"); at = ensure() {
		now.set(at)
	}
	require.Equal(t, start.Add(5*day+5*time.Minute), now.now())
	require.JSONEq(t, `{"version": 1, "phase": "Steady", "request": "today"}`, state())
	require.Equal(t, 1, strings.Count(string(c.get(t, name).Data["ca.crt"]), "BEGIN"))
}

// TestEmptySecrets are filled, of whichever type they are, and keep what others have put on them.
func TestEmptySecrets(t *testing.T) {
	mine := metav1.ObjectMeta{Namespace: "keda", Annotations: map[string]string{"mine": "x"}, Labels: map[string]string{"mine": "y"}, ResourceVersion: "1"}
	a, b := mine, mine
	a.Name, b.Name = name, caName
	c, now := newCluster(
		&corev1.Secret{ObjectMeta: a, Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": {}, "tls.key": {}}},
		&corev1.Secret{ObjectMeta: b, Type: corev1.SecretTypeOpaque},
	), newClock()
	_, err := newKeeper(t, c, now, nil).Ensure(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"get " + name, "get " + caName, "update " + caName, "update " + name}, c.verbs())
	for _, n := range []string{name, caName} {
		s := c.get(t, n)
		require.Equal(t, "x", s.Annotations["mine"])
		require.Equal(t, "y", s.Labels["mine"])
		require.NotEmpty(t, s.Data["tls.key"])
	}
}

// TestNotOurs has Secrets that are left alone, and named.
func TestNotOurs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(s, ca *corev1.Secret)
		want   string
		is     error
	}{
		{"no label", func(s, _ *corev1.Secret) { delete(s.Labels, certs.Label) }, "Secret keda/keda-kaito-scaler-certs: ca.crt: must be empty in a Secret without the label autoscaling.inferscale.io/certs: it is not kept", certs.ErrForeign},
		{"no label on the CA", func(_, ca *corev1.Secret) { delete(ca.Labels, certs.Label) }, "Secret keda/keda-kaito-scaler-ca: state: must be empty in", certs.ErrForeign},
		{"the other's label", func(s, _ *corev1.Secret) { s.Labels[certs.Label] = "authority" }, "Secret keda/keda-kaito-scaler-certs: label autoscaling.inferscale.io/certs: must be material", certs.ErrForeign},
		{"another type", func(s, _ *corev1.Secret) { s.Type = corev1.SecretTypeDockercfg }, "type: must be kubernetes.io/tls or Opaque", certs.ErrForeign},
		{"a key is missing", func(s, _ *corev1.Secret) { delete(s.Data, "server.key") }, "Secret keda/keda-kaito-scaler-certs: server.key: must not be empty: it is damaged", certs.ErrDamaged},
		{"a key is another's", func(s, ca *corev1.Secret) { s.Data["tls.key"] = ca.Data["tls.key"] }, "Secret keda/keda-kaito-scaler-certs: tls.key: must be the private key in PEM of tls.crt", certs.ErrDamaged},
		{"since when", func(s, _ *corev1.Secret) { s.Annotations[certs.SinceAnnotation] = "yesterday" }, "annotation autoscaling.inferscale.io/trusted-since: must be a time", certs.ErrDamaged},
		{"no state", func(_, ca *corev1.Secret) { delete(ca.Data, "state") }, "Secret keda/keda-kaito-scaler-ca: state: must not be empty", certs.ErrDamaged},
		{"a newer state", func(_, ca *corev1.Secret) { ca.Data["state"] = []byte(`{"version": 2, "phase": "Steady"}`) }, "state: version must be 1", certs.ErrDamaged},
		{"a field too many", func(_, ca *corev1.Secret) { ca.Data["state"] = []byte(`{"version": 1, "step": "x"}`) }, "state: must be one object in JSON", certs.ErrDamaged},
		{"no phase", func(_, ca *corev1.Secret) { ca.Data["state"] = []byte(`{"version": 1}`) }, "state: phase must be", certs.ErrDamaged},
		{"no end", func(_, ca *corev1.Secret) { ca.Data["state"] = []byte(`{"version": 1, "phase": "Switch"}`) }, "state: oldUntil must be given", certs.ErrDamaged},
		{"no CA", func(_, ca *corev1.Secret) { ca.Data["tls.crt"] = nil }, "Secret keda/keda-kaito-scaler-ca: tls.crt: must not be empty", certs.ErrDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, now := newCluster(), newClock()
			k := newKeeper(t, c, now, nil)
			_, err := k.Ensure(t.Context())
			require.NoError(t, err)
			s, ca := c.get(t, name), c.get(t, caName)
			tt.damage(s, ca)
			require.NoError(t, errors.Join(c.write("update", s), c.write("update", ca)))
			now.set(start.Add(800 * day)) // everything is due
			c.verbs()
			at, err := k.Ensure(t.Context())
			require.ErrorContains(t, err, tt.want)
			require.ErrorIs(t, err, tt.is)
			require.Equal(t, now.now().Add(time.Minute), at)
			require.Equal(t, []string{"get " + name, "get " + caName}, c.verbs())
			var e *certs.SecretError
			require.ErrorAs(t, err, &e)
			require.True(t, strings.HasPrefix(e.Secret, "Secret keda/"))
		})
	}
}

// TestSinceRemoved counts anew.
func TestSinceRemoved(t *testing.T) {
	c, now := newCluster(), newClock()
	k := newKeeper(t, c, now, nil)
	_, err := k.Ensure(t.Context())
	require.NoError(t, err)
	c.edit(t, name, func(s *corev1.Secret) { delete(s.Annotations, certs.SinceAnnotation) })
	now.set(start.Add(day))
	_, err = k.Ensure(t.Context())
	require.NoError(t, err)
	require.Equal(t, "2026-01-02T00:00:00Z", c.get(t, name).Annotations[certs.SinceAnnotation])
}

// TestDeleted has either Secret, or both, deleted by somebody.
func TestDeleted(t *testing.T) {
	c, now := newCluster(), newClock()
	var actions []certs.Action
	k := newKeeper(t, c, now, &actions)
	ensure := func() {
		actions = nil
		_, err := k.Ensure(t.Context())
		require.NoError(t, err)
	}
	ensure()
	c.remove(t, name)
	ensure()
	require.Equal(t, []certs.Code{certs.Publish, certs.IssueClient, certs.IssueServer}, codes(actions))
	before := c.get(t, name)
	c.remove(t, caName)
	ensure()
	require.Equal(t, []certs.Code{certs.AdoptCA, certs.Publish}, codes(actions))
	require.Equal(t, before.Data["tls.crt"], c.get(t, name).Data["tls.crt"])
	require.Empty(t, c.get(t, caName).Data["tls.key"])
	require.Contains(t, c.get(t, caName).Data, "tls.key", "the type wants it")
	ensure()
	require.Empty(t, actions)
	c.remove(t, name)
	c.remove(t, caName)
	ensure()
	require.Equal(t, certs.CreateCA, actions[0].Code)
}

// TestConflicts begins again, and gives up in the end.
func TestConflicts(t *testing.T) {
	c, now := newCluster(), newClock()
	k := newKeeper(t, c, now, nil)
	_, err := k.Ensure(t.Context())
	require.NoError(t, err)
	now.set(start.Add(61 * day))
	tries := 0
	c.before = func(string, *corev1.Secret) error {
		tries++
		c.edit(t, name, func(s *corev1.Secret) { s.Labels["tries"] = fmt.Sprint(tries) })
		return nil
	}
	_, err = k.Ensure(t.Context())
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "cannot update Secret keda/keda-kaito-scaler-certs: ")
	require.Equal(t, 4, tries)

	c.before = func(string, *corev1.Secret) error {
		c.before = func(string, *corev1.Secret) error { return nil }
		c.edit(t, name, func(s *corev1.Secret) { s.Labels["tries"] = "no more" })
		return nil
	}
	_, err = k.Ensure(t.Context())
	require.NoError(t, err)
	require.Equal(t, "no more", c.get(t, name).Labels["tries"])
}

// TestCrashes has each write of a rotation fail once: the next Ensure does the rest, and nobody is shut out.
func TestCrashes(t *testing.T) {
	r := rules()
	r.LeafLife, r.DropAfter = 5*day, day
	for nth := range 8 {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			c, now := newCluster(), newClock()
			k, err := certs.NewKeeper(certs.KeeperConfig{Client: c.CoreV1(), Rules: r, Namespace: "keda", Now: now.now})
			require.NoError(t, err)
			writes, failed := 0, false
			c.before = func(string, *corev1.Secret) error {
				if writes++; writes == nth+1 {
					failed = true
					return errors.New("the lights go out")
				}
				return nil
			}
			var last certs.Material
			for range 400 {
				at, err := k.Ensure(t.Context())
				if err != nil {
					require.ErrorContains(t, err, "the lights go out")
					continue
				}
				m := materialOf(c.get(t, name))
				if last.Bundle != nil {
					require.NoError(t, verify(t, last, m, now.now()))
					require.NoError(t, verify(t, m, last, now.now()))
				}
				last = m
				now.set(at)
				if at.Sub(start).Hours() > 8 && c.get(t, caName).Annotations[certs.RotateAnnotation] == "" {
					c.edit(t, caName, func(s *corev1.Secret) { s.Annotations = map[string]string{certs.RotateAnnotation: "today"} })
				}
				if strings.Contains(string(c.get(t, caName).Data["state"]), `"Steady","request"`) {
					break
				}
			}
			require.True(t, failed)
			require.Contains(t, string(c.get(t, caName).Data["state"]), `"Steady","request":"today"`)
		})
	}
}

// TestKeepersAtOnce is for the race detector, and has one pair in the end.
func TestKeepersAtOnce(t *testing.T) {
	c, now := newCluster(), newClock()
	var wg sync.WaitGroup
	for range 4 {
		k := newKeeper(t, c, now, nil)
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := k.Ensure(context.Background()); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	m := materialOf(c.get(t, name))
	require.NoError(t, verify(t, m, m, start))
	require.Equal(t, c.get(t, caName).Data["tls.crt"], m.Bundle)
}

// TestKeeperConfig names every field that is wrong.
func TestKeeperConfig(t *testing.T) {
	_, err := certs.NewKeeper(certs.KeeperConfig{Name: "a", CAName: "a"})
	for _, want := range []string{"client: <nil>: must be set", `namespace: "": must not be empty`, `caName: "a": must not be the Secret that KEDA reads`, "dnsNames: []: must have a name"} {
		require.ErrorContains(t, err, want)
	}
	k, err := certs.NewKeeper(certs.KeeperConfig{Client: newCluster().CoreV1(), Namespace: "keda", Name: "mine", CANamespace: "scaler", Rules: rules()})
	require.NoError(t, err)
	require.Equal(t, "mine-ca", k.CAName)
}

// TestNoKeys has no private key in any error, printed form or JSON.
func TestNoKeys(t *testing.T) {
	c, now := newCluster(), newClock()
	k := newKeeper(t, c, now, nil)
	_, err := k.Ensure(t.Context())
	require.NoError(t, err)
	s, ca := c.get(t, name), c.get(t, caName)
	m := materialOf(s)
	state := next(t, rules(), certs.State{}, "", start)
	keys := [][]byte{s.Data["tls.key"], s.Data["server.key"], ca.Data["tls.key"], state.State.Authority.CA.Key, state.State.Material.Client.Key, state.State.Material.Server.Key}

	dir := t.TempDir() + "/certs"
	require.NoError(t, certs.WriteFiles(dir, m))
	files := &certs.Files{Dir: dir}
	reader := certs.NewReader(certs.ReaderConfig{Source: files})
	require.NoError(t, reader.Err())
	served, err := files.Load()
	require.NoError(t, err)

	var said []string
	for _, v := range []any{m, state, state.State, state.Actions, files, reader, served, k, m.Client, &m.Client} {
		said = append(said, fmt.Sprintf("%v", v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v))
		if j, err := json.Marshal(v); err == nil {
			said = append(said, string(j))
		}
	}
	// Each key in the place of each part: whatever is wrong, the error does not quote it.
	for _, key := range keys {
		for _, damage := range []func(s, ca *corev1.Secret){
			func(s, _ *corev1.Secret) { s.Data["ca.crt"] = key },
			func(s, _ *corev1.Secret) { s.Data["tls.crt"] = key },
			func(s, _ *corev1.Secret) { s.Data["tls.key"] = key[:len(key)-30] },
			func(s, _ *corev1.Secret) { s.Data["server.crt"] = key },
			func(s, _ *corev1.Secret) { s.Data["server.key"] = key[30:] },
			func(s, _ *corev1.Secret) { s.Annotations[certs.SinceAnnotation] = string(key) },
			func(_, ca *corev1.Secret) { ca.Data["tls.crt"] = key },
			func(_, ca *corev1.Secret) { ca.Data["tls.key"] = key[1:] },
			func(_, ca *corev1.Secret) { ca.Data["next.key"] = key },
			func(_, ca *corev1.Secret) { ca.Data["old.crt"] = key },
			func(_, ca *corev1.Secret) { ca.Data["state"] = key },
			func(_, ca *corev1.Secret) {
				ca.Data["state"] = []byte(`{"version": 1, "phase": "` + string(key[30:60]) + `"}`)
			},
			func(_, ca *corev1.Secret) { ca.Labels[certs.Label] = string(key) },
		} {
			badS, badCA := s.DeepCopy(), ca.DeepCopy()
			damage(badS, badCA)
			_, err := newKeeper(t, newCluster(badS, badCA), now, nil).Ensure(t.Context())
			require.Error(t, err)
			e, jsonErr := json.Marshal(err)
			require.NoError(t, jsonErr)
			said = append(said, err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err), string(e))
			if err := certs.NewReader(certs.ReaderConfig{Source: serve(materialOf(badS))}).Err(); err != nil {
				said = append(said, err.Error())
			}
		}
	}
	for _, key := range keys {
		// Where the secret number stands, after the header and before the public key, which certificates have too.
		lines := bytes.Split(key, []byte("\n"))
		for _, part := range []string{string(lines[1][48:64]), string(lines[2][:16])} {
			numbers := strings.Trim(fmt.Sprintf("%v", []byte(part)), "[]")
			hexes := strings.Trim(fmt.Sprintf("%#v", []byte(part)), "[]byte{}")
			for _, text := range said {
				require.NotContains(t, text, part)
				require.NotContains(t, text, numbers)
				require.NotContains(t, text, hexes)
			}
		}
	}
}

// TestOtherClock: by a clock that differs from the API server's nothing is made and nothing is dropped.
func TestOtherClock(t *testing.T) {
	c, now, other := newCluster(), newClock(), newClock()
	asked, fail := 0, error(nil)
	k, err := certs.NewKeeper(certs.KeeperConfig{
		Client: c.CoreV1(), Rules: rules(), Namespace: "keda", Now: now.now,
		Time: func(context.Context) (time.Time, error) { asked++; return other.now(), fail },
	})
	require.NoError(t, err)
	ahead := func(by time.Duration) {
		t.Helper()
		now.set(other.now().Add(by))
		c.verbs()
		due, err := k.Ensure(t.Context())
		require.ErrorIs(t, err, certs.ErrClock)
		require.Equal(t, now.now().Add(time.Minute), due)
		require.Equal(t, []string{"get " + name, "get " + caName}, c.verbs(), "nothing is written")
	}
	ahead(-6 * time.Minute)
	ahead(time.Hour)
	now.set(other.now().Add(4 * time.Minute))
	_, err = k.Ensure(t.Context())
	require.NoError(t, err)

	made := asked
	_, err = k.Ensure(t.Context())
	require.NoError(t, err)
	require.Equal(t, made, asked, "it is asked only where something is to be done")

	ahead(61 * day)  // the leaves would be made anew
	ahead(900 * day) // so would the CA
	now.set(other.now().Add(-day))
	_, err = k.Ensure(t.Context())
	require.EqualError(t, err, "Secret keda/"+caName+": tls.crt: it is valid from 2025-12-31T23:59:00Z only, and the clock says 2025-12-31T00:00:00Z: "+certs.ErrClock.Error())

	other.set(start.Add(70 * day))
	now.set(other.now())
	fail = errors.New("refused")
	_, err = k.Ensure(t.Context())
	require.EqualError(t, err, "cannot compare the clock: refused")
	fail = nil
	_, err = k.Ensure(t.Context())
	require.NoError(t, err)
}
