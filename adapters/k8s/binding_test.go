package k8s_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scaling"
)

// A target that was deleted and made anew under its name has no part in the samples, the cooldown or the open writes of
// the one before; be it in the same process or after a restart.
func TestLoopRecreatedTarget(t *testing.T) {
	for _, restart := range []bool{false, true} {
		c, clock, l := breached(t, nil)
		again := func() {
			if restart {
				l = newLoop(t, c, &observer{value: 50}, clock, nil)
			}
		}
		c.Recreate("llama", 1)
		again()
		require.Equal(t, scaling.Hold, tick(t, l).Decision.Verdict, "one sample of its own is no window")
		clock.pass()
		require.Equal(t, k8s.Written, tick(t, l).Write)
		require.Equal(t, []int32{2}, c.Written)

		c.Recreate("llama", 3)
		again()
		clock.pass()
		require.Equal(t, scaling.Hold, tick(t, l).Decision.Verdict)
		clock.pass()
		out := tick(t, l)
		require.Equal(t, k8s.Written, out.Write, "the cooldown was another target's: %s", out.Decision.Reason())
		require.False(t, out.Settled)
	}
}

// A write of which no answer came is none of the target that has the name now.
func TestLoopRecreatedTargetOpenWrite(t *testing.T) {
	c, clock, l := breached(t, nil)
	c.Delay(nothing)
	_, err := l.Tick(context.Background())
	require.ErrorIs(t, err, k8s.ErrUncertain)
	c.Recreate("llama", 2)
	clock.pass()
	require.False(t, tick(t, l).Settled)
	require.NotContains(t, c.ConfigMap.Data["state"], `"open"`)
}

// One that is replaced within a round is decided on in the next: what was observed is the other's.
func TestLoopRecreatedMidRound(t *testing.T) {
	c, clock, l := breached(t, nil)
	c.BeforeWrite(func() { c.Recreate("llama", 1) }, nil)
	tick(t, l)
	require.Empty(t, c.Written)
	clock.pass()
	require.Equal(t, scaling.Hold, tick(t, l).Decision.Verdict)
	require.Empty(t, c.Written)
}

// A loop of another target begins anew, whatever the key has. One of the same target in another version of its API
// goes on.
func TestLoopOtherTarget(t *testing.T) {
	c, clock := newCluster(3, "llama", "other"), &clock{now: start}
	o := &observer{value: 50}
	tick(t, newLoop(t, c, o, clock, nil))
	clock.pass()
	l := newLoop(t, c, o, clock, func(config *k8s.LoopConfig) { config.Target.Name = "other" })
	require.Equal(t, scaling.Hold, tick(t, l).Decision.Verdict)
	require.Empty(t, c.Written)
}

// Earlier versions stored no target: such a state is that of the target that there is, which is stored with it then.
func TestLoopStateWithoutTarget(t *testing.T) {
	for _, bare := range []bool{false, true} {
		c, clock, _ := breached(t, nil)
		const subject = `"targets":[{"key":"Deployment.apps default/llama","id":"uid-llama"}],`
		require.Contains(t, c.ConfigMap.Data["state"], subject)
		old := strings.Replace(c.ConfigMap.Data["state"], subject, "", 1)
		if bare {
			old = c.stored(t)
		}
		c.ConfigMap.Data["state"] = old
		l := newLoop(t, c, &observer{value: 50}, clock, nil)
		require.Equal(t, k8s.Written, tick(t, l).Write, "its samples count")
		require.Contains(t, c.ConfigMap.Data["state"], subject)
	}
}

// The memory of several targets is that of their model: it stays while one of them does.
func TestVariantLoopRecreatedTarget(t *testing.T) {
	c, clock := newCluster(2, "l4", "a100"), &clock{now: start}
	o := &replicas{kv: 0.05, queue: 0}
	every := func(config *k8s.VariantLoopConfig) { config.EveryState = true }
	l := newVariantLoop(t, c, saturated(t), o, clock, []string{"a100", "l4"}, every)
	round := func() {
		_, err := l.Tick(context.Background())
		require.NoError(t, err)
		clock.pass()
	}
	round()
	fresh := c.stored(t)
	round()
	waited := c.stored(t)
	require.NotEqual(t, fresh, waited)
	c.Recreate("l4", 2)
	for range 18 {
		round()
	}
	require.Empty(t, c.Written)
	round()
	require.Len(t, c.Written, 1, "the stabilization of 300 s began before l4 was made anew")

	clock.now = start
	c = newCluster(2, "l4", "a100")
	l = newVariantLoop(t, c, saturated(t), o, clock, []string{"a100", "l4"}, every)
	round()
	c.Recreate("l4", 2)
	c.Recreate("a100", 2)
	for range 20 {
		round()
	}
	require.Empty(t, c.Written, "it began anew with both")
}
