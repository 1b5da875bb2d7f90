package scaling_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// always is the policy that always for a number of replicas.
type always struct{ replicas int32 }

func (always) Kind() scaling.Kind { return scaling.Kind{Name: "asks", Version: 1} }

func (a always) Decide(s int, _ time.Time, obs scaling.Observation) (int, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(a.replicas, "Always replicas", "", float64(a.replicas))
	return s, d
}

func (always) Applied(s int, _ time.Time, _, _ int32) int { return s + 1 }

func TestGroupOfOne(t *testing.T) {
	policy := scaling.New(always{5})
	group := scaling.GroupOf(policy)
	now := time.Unix(1700000000, 0)
	obs := scaling.GroupObservation{Targets: []scaling.TargetObservation{{Name: "a", SpecReplicas: 3, ReadyReplicas: 2}}}
	d := group.Decide(now, obs)
	require.True(t, d.Acts())
	require.Equal(t, "Up 3 -> 5: Always replicas=5", d.Targets[0].Reason())
	require.Equal(t, d.Targets[0], d.Total)
	require.Equal(t, d.Total.Explain(), d.Explain())
	group.Applied(now, []int32{3}, []int32{5})
	data, err := group.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"kind": "asks", "version": 1, "state": 1}`, string(data), "the state is the policy's")

	obs.Targets[0].Missing = true
	d = group.Decide(now, obs)
	require.False(t, d.Acts())
	require.Equal(t, scaling.Unknown, d.Targets[0].Verdict)
	obs.Targets = append(obs.Targets, scaling.TargetObservation{Name: "b"})
	d = group.Decide(now, obs)
	require.Equal(t, "Unknown at 3\n  NotOne            3 -> 3    targets=2\nUnknown at 3\n  NotOne            3 -> 3    a targets=2\n"+
		"Unknown at 0\n  NotOne            0 -> 0    b targets=2\n", d.Explain())
}

func TestGroupDecisionNext(t *testing.T) {
	at := time.Unix(1700000000, 0)
	d := scaling.GroupDecision{Targets: make([]scaling.Decision, 2)}
	require.True(t, d.Next().IsZero())
	d.Targets[1].Next = at
	require.Equal(t, at, d.Next())
	d.Total.Next = at.Add(-time.Second)
	require.Equal(t, at.Add(-time.Second), d.Next())
}

func TestGroupOfNothing(t *testing.T) {
	group := scaling.GroupOf(nil)
	d := group.Decide(time.Unix(0, 0), scaling.OneTarget(3))
	require.Equal(t, "Unknown at 0: NotConfigured", d.Targets[0].Reason())
	group.Applied(time.Unix(0, 0), []int32{1}, []int32{2})
	_, err := group.MarshalJSON()
	require.Error(t, err)
	require.Error(t, group.UnmarshalJSON([]byte("{}")))
}
