package watch

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// ready asks for as many replicas as it is shown ready.
type ready struct{ scaling.Policy }

func (ready) Decide(_ time.Time, obs scaling.Observation) scaling.Decision {
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(obs.ReadyReplicas, "Ready", "")
	return d
}

func (ready) Applied(time.Time, int32, int32) {}

// pods answer as they are told, and count how they were used.
type pods struct {
	answer        func(context.Context) (k8s.Observed, error)
	asked, closed int
}

func (p *pods) Observe(ctx context.Context, _ []k8s.Scale) (k8s.Observed, error) {
	p.asked++
	return p.answer(ctx)
}

func (p *pods) Close() { p.closed++ }

func atOnce(f func()) { f() }

func planOf(names ...string) (plan build.ShadowPlan) {
	for _, name := range names {
		plan.All = append(plan.All, policy.ShadowPlan{Policy: shadow.Policy{Name: name, Policy: ready{}}})
	}
	return plan
}

// TestReadyIsOfThePods: what shadows are told of readiness is what was seen of the pods, and what the target's status says only
// where nobody looked at pods.
func TestReadyIsOfThePods(t *testing.T) {
	scale, now := k8s.Scale{Replicas: 4, StatusReplicas: 4}, time.Unix(1_800_000_000, 0)
	for _, row := range []struct {
		seen k8s.Observed
		want int32
	}{{k8s.Observed{Fleets: []k8s.FleetView{{Ready: 3}}}, 3}, {k8s.Observed{}, 4}} {
		w := New(&Config{Plan: planOf("a"), Beside: atOnce})
		w.Show(now, scale, &row.seen, nil)
		require.Equal(t, row.want, w.States()[0].Replicas)
	}
}

// TestWhatCannotBeRunEndsNothing: no time to start in, and no shadows.
func TestWhatCannotBeRunEndsNothing(t *testing.T) {
	plan := planOf("a")
	plan.ColdStart = -time.Second
	w := New(&Config{Plan: plan, Beside: atOnce})
	w.Show(time.Now(), k8s.Scale{}, &k8s.Observed{}, nil)
	require.Contains(t, w.States()[0].Trouble, "coldStart")

	require.Nil(t, New(&Config{}))
	w = nil
	w.Show(time.Now(), k8s.Scale{}, &k8s.Observed{}, nil)
	w.Resume(nil)
	w.Close()
	require.Empty(t, w.States())
	require.Empty(t, w.Wishes())
	require.False(t, w.Scrapes())
}

// TestWhatAsksPodsEndsWithClose: a round of theirs that is under way is given up, and the observer closed once, after it.
func TestWhatAsksPodsEndsWithClose(t *testing.T) {
	var later []func()
	p := &pods{answer: func(ctx context.Context) (k8s.Observed, error) { return k8s.Observed{}, ctx.Err() }}
	plan := planOf("a")
	plan.Scrape.Metrics = []scrape.Metric{{}}
	w := New(&Config{
		Plan: plan, Observe: func() (Observer, error) { return p, nil }, Within: time.Minute,
		Beside: func(f func()) { later = append(later, f) },
	})
	w.Show(time.Now(), k8s.Scale{}, &k8s.Observed{}, nil)
	w.Close()
	require.Zero(t, p.closed, "it is being asked")
	require.ErrorIs(t, w.ctx.Err(), context.Canceled)
	later[0]()
	w.Close()
	require.Equal(t, 1, p.closed)
	w.Show(time.Now(), k8s.Scale{}, &k8s.Observed{}, nil)
	require.Len(t, later, 1, "it is closed")
}

// TestMetricsWithoutAValueAreNoTrouble: shadows are shown the others, and what they lack is told beside.
func TestMetricsWithoutAValueAreNoTrouble(t *testing.T) {
	absent := errors.New("absent")
	p := &pods{answer: func(context.Context) (k8s.Observed, error) {
		return k8s.Observed{Fleets: []k8s.FleetView{{Ready: 3}}, Err: absent}, nil
	}}
	for _, scrapes := range []bool{false, true} {
		plan := planOf("a")
		if scrapes {
			plan.Scrape.Metrics = []scrape.Metric{{}}
		}
		w := New(&Config{Plan: plan, Observe: func() (Observer, error) { return p, nil }, Within: time.Minute, Beside: atOnce})
		seen, _ := p.answer(t.Context())
		w.Show(time.Now(), k8s.Scale{Replicas: 4}, &seen, nil)
		state := w.States()[0]
		require.Empty(t, state.Trouble)
		require.Equal(t, int32(3), state.Replicas)
		require.Equal(t, scrapes, state.Lacking != nil, "of a round's own metrics the round tells")
	}
}

// TestAPanicOfWhatAsksPodsEndsNothing: it is told, the place is given back, and the next round asks again.
func TestAPanicOfWhatAsksPodsEndsNothing(t *testing.T) {
	p := &pods{answer: func(context.Context) (k8s.Observed, error) { panic("no pods") }}
	plan := planOf("a")
	plan.Scrape.Metrics = []scrape.Metric{{}}
	var asks Asks
	w := New(&Config{Plan: plan, Observe: func() (Observer, error) { return p, nil }, Within: time.Minute, Beside: atOnce, Asks: &asks})
	for range mostAsksOf + 1 {
		w.Show(time.Now(), k8s.Scale{}, &k8s.Observed{}, nil)
		require.Equal(t, "pods were not observed: panic: no pods", w.States()[0].Trouble)
	}
	require.Equal(t, mostAsksOf+1, p.asked)
}
