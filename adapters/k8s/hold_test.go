package k8s_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// A count that is scaled to 0 by hand stays there, as with a HorizontalPodAutoscaler, until somebody scales up.
func TestScaledToZeroByHand(t *testing.T) {
	c, clock, o := newCluster(3), &clock{now: start}, &observer{value: 50}
	l := newLoop(t, c, o, clock, func(config *k8s.LoopConfig) { config.LeaveAtZero = true })
	c.Targets["llama"].Spec.Replicas = 0
	c.Touch("llama")
	for range 20 {
		out := tick(t, l)
		require.True(t, out.Disabled)
		require.Equal(t, k8s.NoWrite, out.Write)
		require.Equal(t, k8s.ReasonScalingDisabled, conditionsOf(&out)[k8s.ConditionScalingActive].Reason)
		clock.pass()
	}
	require.Zero(t, c.Updates)
	c.Targets["llama"].Spec.Replicas = 1
	c.Touch("llama")
	for range 4 {
		tick(t, l)
		clock.pass()
	}
	require.NotEmpty(t, c.Written)
}

// A write that takes 1.5 s begins its cooldown when it is answered: 5 s were 4.
func TestCooldownCountsFromTheAnswer(t *testing.T) {
	c, clock := newCluster(3), &clock{now: start}
	l := newCounting(t, c, &observer{value: 50}, func(config *k8s.LoopConfig) { config.Now = clock.read })
	c.Fault = func(call string, effect func()) error {
		effect()
		if call == "update scale" {
			clock.now = clock.now.Add(90 * time.Second)
		}
		return nil
	}
	require.Equal(t, k8s.Written, tick(t, l).Write)
	require.Equal(t, start.Add(90*time.Second).Unix(), counted(t, c).At)
}

// The write names the object that was read: another one of its name, at whatever version, is not written.
func TestWriteHasAPreconditionOnTheUID(t *testing.T) {
	c := newCluster(3)
	scales := c.Scales()
	read, err := scales.Get(context.Background(), target)
	require.NoError(t, err)
	c.Targets["llama"].UID = "another one"
	_, err = scales.Set(context.Background(), target, read, 4)
	require.ErrorIs(t, err, k8s.ErrConflict)
	require.Empty(t, c.Written)
}
