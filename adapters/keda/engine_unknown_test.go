package keda

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/inferscale/inferscale/adapters/k8s/build"
)

// TestScaledObjectsThatDoNotExistTakeNoPlaces: whoever has KEDA's certificate says which namespace it is. Each that was made up
// counted as a tenant, so that of five triggers one was left of ten places.
func TestScaledObjectsThatDoNotExistTakeNoPlaces(t *testing.T) {
	w := newWorld(t)
	triggers, err := NewTriggers(TriggersConfig{
		Scales:  w,
		Observe: func(plan *build.Plan) (Observer, error) { return eyes{w, plan.Scrape.Metrics[0].Name}, nil },
		Objects: func(ref Ref) (Object, error) {
			if ref != chat {
				return Object{}, fmt.Errorf("ScaledObject %s: not found", ref)
			}
			return w.object, nil
		},
	})
	require.NoError(t, err)
	clock := newFakeClock()
	e, err := NewEngine(t.Context(), EngineConfig{Build: triggers.Build, MaxTriggers: 10, Now: clock.Now})
	require.NoError(t, err)
	e.at = clock.At
	t.Cleanup(e.Close)
	served := func() (good int) {
		for i := range 5 {
			if _, err := e.Spec(chat, metricMode("metricName", fmt.Sprint("m", i))); err == nil {
				good++
			}
		}
		return good
	}
	require.Equal(t, 5, served())
	refused := 0
	for i := range 30 {
		if _, err = e.Spec(Ref{fmt.Sprint("no-such-", i), "x"}, metricMode()); err != nil {
			require.Equal(t, codes.ResourceExhausted, code(err))
			refused++
		}
	}
	require.Equal(t, 5, served())
	require.Equal(t, 29, refused, "one of ten places is theirs")
	require.ErrorContains(t, err, "ScaledObject no-such-29/x: not found: there are 6 triggers, which take 6 places, those of ScaledObjects that are not known 1, and no more than 10 and 1 are allowed")
}

// TestTriggersMoveToTheirNamespace when their ScaledObject is known, as KEDA may know it before, and from it when it is gone.
func TestTriggersMoveToTheirNamespace(t *testing.T) {
	var mu sync.Mutex
	known := map[string]bool{}
	s := newStage(t, func(c *EngineConfig) {
		c.MaxTriggers = 20
		build := c.Build
		c.Build = func(ref Ref, metadata map[string]string) (Plan, error) {
			plan, err := build(ref, metadata)
			plan.Object = func() error {
				mu.Lock()
				defer mu.Unlock()
				switch is, ok := known[ref.Namespace]; {
				case !ok:
					return errors.New("not found")
				case !is:
					panic("no way to know")
				}
				return nil
			}
			return plan, err
		}
	})
	knows := func(namespace string, is ...bool) {
		mu.Lock()
		defer mu.Unlock()
		delete(known, namespace)
		for _, is := range is {
			known[namespace] = is
		}
	}
	made := 0
	ask := func(namespace string) error {
		made++
		_, err := s.engine.Spec(Ref{Namespace: namespace, Name: "chat"}, s.add(fmt.Sprint(made), counting()))
		s.settled()
		return err
	}
	has := func(of map[string]int, unknown int) {
		t.Helper()
		s.engine.mu.RLock()
		defer s.engine.mu.RUnlock()
		require.Equal(t, of, maps.Clone(s.engine.of))
		require.Equal(t, unknown, s.engine.unknown)
	}
	knows("known", true)
	require.NoError(t, ask("known"))
	require.NoError(t, ask("late"))
	require.NoError(t, ask("never"))
	require.Equal(t, codes.ResourceExhausted, code(ask("late")), "a tenth is 2")
	has(map[string]int{"known": 1}, 2)

	knows("late", true)
	s.tick()
	has(map[string]int{"known": 1, "late": 1}, 1)
	knows("late", false)
	s.tick()
	has(map[string]int{"known": 1}, 2)
	knows("late", true)
	s.tick()
	require.NoError(t, ask("never"))
	has(map[string]int{"known": 1, "late": 1}, 2)
	for range 16 {
		require.NoError(t, ask("known"))
	}
	has(map[string]int{"known": 17, "late": 1}, 2)

	// There is no room. Who is known takes the places of those who are not, the newest first, and these take none.
	require.Equal(t, codes.ResourceExhausted, code(ask("never")))
	require.NoError(t, ask("known"))
	has(map[string]int{"known": 18, "late": 1}, 1)
	require.Equal(t, 1, s.triggers["5"].wasClosed(), "the newest")
	require.Zero(t, s.triggers["3"].wasClosed())
	require.Equal(t, codes.ResourceExhausted, code(ask("never")), "there is a place of theirs, and none at all")
	require.NoError(t, ask("known"))
	has(map[string]int{"known": 19, "late": 1}, 0)
	require.Equal(t, 1, s.triggers["3"].wasClosed())
	require.Equal(t, codes.ResourceExhausted, code(ask("never")))
	require.Equal(t, codes.ResourceExhausted, code(ask("known")))
	require.NoError(t, ask("late"))
	has(map[string]int{"known": 18, "late": 2}, 0)
	s.clock.advance(DefaultIdle + time.Second)
	require.Eventually(t, func() bool { return s.engine.running() == 0 }, patience, time.Millisecond)
	has(map[string]int{}, 0)
}
