package k8s_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/k8stest"
	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
)

// breached is a loop whose policy asks for one more in the next round: step 1, cooldown 60 s.
func breached(t *testing.T, change func(*k8s.LoopConfig)) (*cluster, *clock, *k8s.Loop) {
	t.Helper()
	c, clock := newCluster(3), &clock{now: start}
	l := newLoop(t, c, &observer{value: 50}, clock, change)
	require.Equal(t, scaling.Hold, tick(t, l).Decision.Verdict)
	clock.pass()
	return c, clock, l
}

// holds does rounds until a cooldown that begins now is over, and one more.
func holds(t *testing.T, c *cluster, clock *clock, l *k8s.Loop) {
	t.Helper()
	for range 3 {
		clock.pass()
		require.Equal(t, scaling.Hold, tick(t, l).Decision.Verdict)
		require.Equal(t, []int32{4}, c.Written)
	}
	clock.pass()
	require.Equal(t, k8s.Written, tick(t, l).Write)
	require.Equal(t, []int32{4, 5}, c.Written)
}

// unanswered does a round whose write has no answer.
func unanswered(t *testing.T, l *k8s.Loop) {
	t.Helper()
	_, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrUncertain)
}

// finds does a round that finds an older write to have happened, writes nothing itself, and begins a cooldown.
func finds(t *testing.T, c *cluster, clock *clock, l *k8s.Loop) {
	t.Helper()
	out := tick(t, l)
	require.True(t, out.Settled)
	require.Equal(t, k8s.NoWrite, out.Write)
	holds(t, c, clock, l)
}

func nothing() {}

// A write without an answer arrives after the next round has read the target: that round's own write is a conflict,
// and it finds the older one.
func TestLoopLateArrivalMidRound(t *testing.T) {
	c, clock, l := breached(t, nil)
	arrive := c.Delay(nothing)
	unanswered(t, l)
	clock.pass()
	c.BeforeWrite(arrive, nil)
	out := tick(t, l)
	require.True(t, out.Settled)
	require.Equal(t, scaling.Hold, out.Decision.Verdict, out.Decision.Reason())
	require.Equal(t, 1, out.Conflicts)
	require.Equal(t, k8s.NoWrite, out.Write)
	holds(t, c, clock, l)
}

// A write without an answer arrives while the next round waits for its reading of the target: its cooldown runs from
// when it was found, not from when that round began.
func TestLoopLateArrivalDuringTheReading(t *testing.T) {
	c, clock, l := breached(t, nil)
	arrive := c.Delay(nothing)
	unanswered(t, l)
	clock.pass()
	c.Fault = func(call string, effect func()) error {
		if call == k8stest.GetScale {
			c.Fault = nil
			clock.now = clock.now.Add(20 * time.Second)
			arrive()
		}
		effect()
		return nil
	}
	finds(t, c, clock, l)
}

// The same when the process ends with its write under way, and another one goes on.
func TestLoopLateArrivalHandOver(t *testing.T) {
	c, clock, l := breached(t, nil)
	arrive := c.Delay(func() { panic(crash{}) })
	require.Panics(t, func() { _, _ = l.Tick(context.Background()) })
	clock.pass()
	l = newLoop(t, c, &observer{value: 50}, clock, nil)
	c.BeforeWrite(arrive, nil)
	finds(t, c, clock, l)
}

// That a later write was turned down says nothing of an older one.
func TestLoopLateArrivalAfterRefusal(t *testing.T) {
	c, clock, l := breached(t, nil)
	arrive := c.Delay(nothing)
	unanswered(t, l)
	clock.pass()
	c.BeforeWrite(nothing, apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "llama", errors.New("quota")))
	out, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrForbidden)
	require.Equal(t, k8s.Refused, out.Write)
	arrive()
	clock.pass()
	finds(t, c, clock, l)
}

// Nor does it that a later write was a conflict, when there are no more attempts in that round.
func TestLoopLateArrivalAfterConflicts(t *testing.T) {
	c, clock, l := breached(t, func(config *k8s.LoopConfig) { config.NoRetry = true })
	arrive := c.Delay(nothing)
	unanswered(t, l)
	clock.pass()
	c.BeforeWrite(arrive, nil)
	out, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrConflict)
	require.Equal(t, k8s.Conflict, out.Write)
	clock.pass()
	finds(t, c, clock, l)
}

// A write that takes longer than its cooldown has its cooldown before it.
func TestLoopLateArrivalAfterCooldown(t *testing.T) {
	c, clock, l := breached(t, nil)
	arrive := c.Delay(nothing)
	unanswered(t, l)
	clock.now = clock.now.Add(2 * time.Minute)
	arrive()
	out := tick(t, l)
	require.True(t, out.Settled)
	holds(t, c, clock, l)
}

// A client repeats a write by itself if a server error tells it to, and the conflict that it then gets is of its own
// making.
func TestLoopOwnWriteAnsweredAsConflict(t *testing.T) {
	for _, noRetry := range []bool{false, true} {
		c, clock, l := breached(t, func(config *k8s.LoopConfig) { config.NoRetry = noRetry })
		c.Fault = func(call string, effect func()) error {
			effect()
			if call != "update scale" {
				return nil
			}
			c.Fault = nil
			return apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "llama", errors.New("changed"))
		}
		out, _ := l.Tick(context.Background())
		if noRetry {
			require.Equal(t, k8s.Conflict, out.Write)
			clock.pass()
			out = tick(t, l)
		}
		require.True(t, out.Settled)
		require.Equal(t, k8s.NoWrite, out.Write)
		holds(t, c, clock, l)
	}
}

// A target that cannot be found says nothing of a write to it.
func TestLoopOpenWriteOfMissingTarget(t *testing.T) {
	c, clock, l := breached(t, nil)
	arrive := c.Delay(nothing)
	unanswered(t, l)
	arrive()
	clock.pass()
	gone := c.Targets["llama"]
	delete(c.Targets, "llama")
	_, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrNotFound)
	c.Targets["llama"] = gone
	out := tick(t, l)
	require.True(t, out.Settled)
	holds(t, c, clock, l)
}

// Writes without an answer do not pile up in the state.
func TestLoopOpenWritesAreFew(t *testing.T) {
	c, clock, l := breached(t, nil)
	size := 0
	for i := range 100 {
		c.Delay(nothing)
		_, err := l.Tick(context.Background())
		require.ErrorIs(t, err, k8s.ErrUncertain)
		clock.pass()
		if i == 0 {
			size = len(c.ConfigMap.Data["state"])
		}
	}
	require.Len(t, c.ConfigMap.Data["state"], size)
}

// While a write of one target can yet arrive, no other target is written: both together would be more than was decided.
func TestVariantLoopWaitsForLateWrite(t *testing.T) {
	c, clock := newCluster(4, "dear", "cheap"), &clock{now: start}
	c.Targets["dear"].Spec.Replicas = 0
	f, err := hetero.New(hetero.Config{
		Types: []hetero.Type{{Name: "cheap", Cost: 10, Max: 4}, {Name: "dear", Cost: 20, Max: 8}}, ExpansionRate: 1,
	})
	require.NoError(t, err)
	v, err := hetero.NewGroup(policy(t), f, hetero.Options{})
	require.NoError(t, err)
	o := &observer{value: 50}
	l := newVariantLoop(t, c, v, o, clock, []string{"dear", "cheap"}, nil)
	round := func() []k8s.Outcome {
		outcomes, _ := l.Tick(context.Background())
		clock.pass()
		return outcomes
	}
	round()
	arrive := c.Delay(nothing)
	require.Equal(t, k8s.Uncertain, round()[0].Write)
	o.value = 0
	round()
	outcomes := round()
	require.Equal(t, scaling.Down, outcomes[1].Decision.Verdict)
	require.Equal(t, k8s.NoWrite, outcomes[1].Write)
	require.ErrorIs(t, outcomes[1].WriteErr, k8s.ErrUncertain)
	require.ErrorContains(t, outcomes[1].WriteErr, "cannot tell yet about the write 0 -> 1 of Deployment default/dear")
	require.Empty(t, c.Written)
	arrive()
	outcomes = round()
	require.True(t, outcomes[0].Settled)
	require.Equal(t, scaling.Hold, outcomes[1].Decision.Verdict, "the cooldown runs")
	require.Equal(t, []int32{1}, c.Written)
}

// It does not wait for ever: what has not arrived within two minutes never does.
func TestVariantLoopWaitsNotForEver(t *testing.T) {
	c, clock := newCluster(4, "dear", "cheap"), &clock{now: start}
	c.Targets["dear"].Spec.Replicas = 0
	want := int32(10)
	l := newVariantLoop(t, c, fleet(t, &want, 0), &replicas{}, clock, []string{"dear", "cheap"}, nil)
	c.Delay(nothing)
	outcomes, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrUncertain)
	require.Equal(t, k8s.Uncertain, outcomes[0].Write)
	want = 4
	c.Targets["cheap"].Spec.Replicas = 3
	c.Touch("cheap")
	wait := func() k8s.WriteResult {
		outcomes, _ := l.Tick(context.Background())
		require.Equal(t, scaling.Up, outcomes[1].Decision.Verdict, outcomes[1].Decision.Explain())
		return outcomes[1].Write
	}
	for range 8 {
		require.Equal(t, k8s.NoWrite, wait())
		clock.pass()
	}
	require.Equal(t, k8s.Written, wait())
}
