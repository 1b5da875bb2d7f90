package k8s

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// Who takes writes back is asked once, as long as it goes on, and anew when it happens again.
func TestWhoContendsIsAskedOnce(t *testing.T) {
	asked, fails := 0, error(nil)
	e := &engine{rivals: make(map[int]string)}
	e.LastWriter = func(context.Context, Target) (string, error) { asked++; return "kubectl", fails }
	said := func(c *loop.ContendedError) error {
		r := &round{engine: e, outcomes: make([]Outcome, 1)}
		r.contend(t.Context(), &loop.Step{Contended: []*loop.ContendedError{c}})
		return r.outcomes[0].WriteErr
	}
	require.NoError(t, said(nil))
	require.Zero(t, asked)
	for range 2 {
		require.ErrorContains(t, said(&loop.ContendedError{Times: 3}), "kubectl took back the last 3 writes")
		require.Equal(t, 1, asked)
	}
	require.NoError(t, said(nil))
	fails = errors.New("forbidden")
	require.ErrorContains(t, said(&loop.ContendedError{Times: 3}), "somebody (not known who: forbidden) took back the last 3 writes")
	require.Equal(t, 2, asked)
	e.LastWriter, e.rivals = nil, make(map[int]string)
	require.ErrorContains(t, said(&loop.ContendedError{Times: 3}), "somebody else took back")
}

// A round says one line of what is not as it should be, and none of what is.
func TestWhatIsLogged(t *testing.T) {
	hold := scaling.HoldAt(3)
	up := scaling.HoldAt(3)
	up.To(4, "AboveHigh", "m")
	unknown := Outcome{Decided: true, Decision: scaling.UnknownAt(3, "NoSample", "m"), Scale: Scale{Replicas: 3}, Bounds: scaling.Bounds{Max: 8}}
	unknown.Observed.Err = errors.New("absent")
	atZero := unknown
	atZero.Scale.Replicas = 0
	for _, row := range []struct {
		name    string
		outcome Outcome
		want    []string
	}{
		{"nothing", Outcome{}, nil},
		{"hold", Outcome{Decided: true, Decision: hold}, []string{"level=DEBUG msg=decided"}},
		{"up", Outcome{Decided: true, Decision: up}, []string{"level=INFO msg=decided"}},
		{"hold, with a metric that is absent", Outcome{Decided: true, Decision: hold, Observed: Observed{Err: errors.New("absent")}}, []string{"level=DEBUG msg=decided"}},
		{"unknown", unknown, []string{"level=DEBUG msg=decided", `level=WARN msg="metrics without a value"`}},
		{"at zero", atZero, []string{"level=DEBUG msg=decided"}},
		{"an error", Outcome{ScaleErr: errors.New("away")}, []string{`level=WARN msg="round with errors"`}},
		{"an error and unknown", Outcome{Decided: true, Decision: unknown.Decision, WriteErr: errors.New("away"), Observed: unknown.Observed}, []string{"level=DEBUG msg=decided", `level=WARN msg="round with errors"`}},
	} {
		var text bytes.Buffer
		r := &engine{Settings: Settings{Logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))}}
		r.log(t.Context(), &row.outcome, time.Millisecond)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(row.want) == 0 {
			require.Empty(t, text.String(), row.name)
			continue
		}
		require.Len(t, lines, len(row.want), row.name)
		for i, line := range lines {
			require.Contains(t, line, row.want[i], row.name)
			require.Equal(t, strings.Contains(line, "msg=decided"), strings.Contains(line, " took=1ms"), row.name)
		}
	}
}

// failing is a Store with one state, whose next writes fail.
type failing struct {
	state []byte
	fails int
}

func (s *failing) Load(context.Context, string) ([]byte, error) { return s.state, nil }

func (s *failing) Save(_ context.Context, _ string, old, state []byte) error {
	if s.fails--; s.fails >= 0 {
		return errors.New("away")
	}
	if !bytes.Equal(old, s.state) {
		return ErrStateConflict
	}
	s.state = state
	return nil
}

// A state that was upgraded replaces the one that is stored, also when that is tried again.
func TestUpgradedStateIsReplaced(t *testing.T) {
	s := upgraded{Store: &failing{state: []byte(`{"kind":"k8s.loop","version":1}`), fails: 1}}
	loaded, err := s.Load(t.Context(), "k")
	require.NoError(t, err)
	require.Contains(t, string(loaded), `"kind":"loop"`)
	require.EqualError(t, s.Save(t.Context(), "k", loaded, []byte("one")), "away")
	require.NoError(t, s.Save(t.Context(), "k", loaded, []byte("one")))
	require.NoError(t, s.Save(t.Context(), "k", []byte("one"), []byte("two")))
	require.ErrorIs(t, s.Save(t.Context(), "k", loaded, []byte("three")), ErrStateConflict)
}

// Get waits for what is added, for room, and for the end.
func TestGetWaits(t *testing.T) {
	q := NewFairQueue(func(string) string { return "tenant" }, 1)
	got := make(chan string, 3)
	go func() {
		for {
			item, down := q.Get()
			if down {
				close(got)
				return
			}
			got <- item
		}
	}()
	receive := func() string {
		select {
		case item := <-got:
			return item
		case <-time.After(10 * time.Second):
			return "nothing"
		}
	}
	q.Add("one")
	require.Equal(t, "one", receive())
	q.Add("two")
	require.Equal(t, 1, q.Len(), "the tenant has its share at work")
	q.Done("one")
	require.Equal(t, "two", receive())
	q.Done("two")
	for range 100 { // it waits again by the time of most of them
		q.Add("again")
		require.Equal(t, "again", receive())
		q.Done("again")
	}
	require.Empty(t, q.active, "who has nothing at work takes no part")
	q.ShutDown()
	require.Empty(t, receive(), "it has ended")
	q.ShutDownWithDrain()
}

// TestTargetsAreOne in any version of their API, and by nothing less than group, kind, namespace and name.
func TestTargetsAreOne(t *testing.T) {
	of := func(apiVersion, kind, namespace, name string) Target {
		return Target{apiVersion, kind, namespace, name}
	}
	chat := of("apps/v1", "Deployment", "models", "chat")
	for _, row := range []struct {
		other Target
		same  bool
	}{
		{chat, true},
		{of("apps/v1beta2", "Deployment", "models", "chat"), true},
		{of("extensions/v1", "Deployment", "models", "chat"), false},
		{of("apps/v1", "StatefulSet", "models", "chat"), false},
		{of("apps/v1", "Deployment", "other", "chat"), false},
		{of("apps/v1", "Deployment", "models", "other"), false},
		{of("a/b/c", "Deployment", "models", "chat"), false},
	} {
		require.Equal(t, row.same, chat.same(row.other), "%v", row.other)
		require.Equal(t, row.same, row.other.same(chat), "%v", row.other)
	}
	require.False(t, of("a/b/c", "", "", "").same(of("a/b/c", "", "", "")), "of a group that is none")
}
