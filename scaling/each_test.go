package scaling_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestEachDecidesForItsOwn: every policy decides on one target, in order, is told of its changes alone, and what one cannot say does
// not silence the others.
func TestEachDecidesForItsOwn(t *testing.T) {
	now := time.Unix(1700000000, 0)
	group := scaling.Each(scaling.New(always{5}), scaling.New(always{2}), nil)
	obs := scaling.GroupObservation{Targets: []scaling.TargetObservation{{Name: "prefill", SpecReplicas: 3}, {Name: "decode", SpecReplicas: 2}, {Name: "c", SpecReplicas: 1}}}
	d := group.Decide(now, obs)
	require.Equal(t, "Up 3 -> 5: Always replicas=5", d.Targets[0].Reason())
	require.Equal(t, scaling.Hold, d.Targets[1].Verdict)
	require.Equal(t, scaling.Unknown, d.Targets[2].Verdict)
	require.Equal(t, "Up 6 -> 8: Summed targets=3", d.Total.Reason())

	obs.Targets[0].Missing = true
	d = group.Decide(now, obs)
	require.Equal(t, []scaling.Verdict{scaling.Unknown, scaling.Hold, scaling.Unknown}, []scaling.Verdict{d.Targets[0].Verdict, d.Targets[1].Verdict, d.Targets[2].Verdict})
	obs.Targets = obs.Targets[:2]
	d = group.Decide(now, obs)
	require.Equal(t, "Unknown at 3: NotEach prefill targets=2, policies=3", d.Targets[0].Reason())
}

// TestEachKnowsNothingIfNobodyDoes: a total that holds would say that the counts are right.
func TestEachKnowsNothingIfNobodyDoes(t *testing.T) {
	obs := scaling.GroupObservation{Targets: []scaling.TargetObservation{{Name: "prefill", SpecReplicas: 3}, {Name: "decode", SpecReplicas: 2}}}
	group := scaling.Each(nil, scaling.New(always{2}))
	d := group.Decide(time.Unix(1700000000, 0), obs)
	require.Equal(t, "Hold at 5: Summed targets=2", d.Total.Reason(), "one of them knows")

	obs.Targets[1].Missing = true
	d = group.Decide(time.Unix(1700000015, 0), obs)
	require.Equal(t, "Unknown at 5: Summed targets=2", d.Total.Reason())
	require.NoError(t, scalingtest.Explained(&d.Total))
}

// TestEachStoresAList: the state is the list of states; a list of another length is refused, kept as it was, and a good one ends that.
func TestEachStoresAList(t *testing.T) {
	now := time.Unix(1700000000, 0)
	group := scaling.Each(scaling.New(always{5}), scaling.New(always{2}))
	group.Applied(now, []int32{3, 2}, []int32{5, 2})
	group.Applied(now, []int32{3}, []int32{5})
	stored, err := group.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `[{"kind": "asks", "version": 1, "state": 1}, {"kind": "asks", "version": 1, "state": 0}]`, string(stored))

	other := scaling.Each(scaling.New(always{5}), scaling.New(always{2}))
	for _, bad := range []string{"{", "[]", `[{"kind": "asks", "version": 1, "state": 1}]`} {
		require.Error(t, other.UnmarshalJSON([]byte(bad)))
		kept, err := other.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, bad, string(kept))
		d := other.Decide(now, scaling.GroupObservation{Targets: make([]scaling.TargetObservation, 2)})
		require.Equal(t, scaling.StateRefused, d.Targets[0].Code())
	}
	require.ErrorContains(t, other.UnmarshalJSON([]byte(`[{"kind": "asks", "version": 1, "state": 7}, {"kind": "else", "version": 1, "state": 0}]`)), "else")
	d := other.Decide(now, scaling.GroupObservation{Targets: make([]scaling.TargetObservation, 2)})
	require.Equal(t, scaling.Up, d.Targets[0].Verdict)
	require.Equal(t, scaling.Unknown, d.Targets[1].Verdict)
	require.NoError(t, other.UnmarshalJSON(stored))
	again, err := other.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, string(stored), string(again))
}

// TestEachRefusesWithAStateError: what cannot be its state is refused as every policy's is, with the kind that it says it is of.
func TestEachRefusesWithAStateError(t *testing.T) {
	for state, says := range map[string]string{
		"{":  "state refused: unexpected end of JSON input",
		"[]": "state refused: state: 0: must have one state for each of 2 policies",
		`{"kind": "realtime", "version": 1, "state": {}}`: "state of realtime version 1 refused: state is of another kind of policy",
	} {
		group := scaling.Each(scaling.New(always{5}), scaling.New(always{2}))
		var refused *scaling.StateError
		require.ErrorAs(t, group.UnmarshalJSON([]byte(state)), &refused, state)
		require.EqualError(t, refused, says)
		kept, err := group.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, state, string(kept))
	}
	var other *scaling.StateError
	require.ErrorAs(t, scaling.Each().UnmarshalJSON([]byte(`{"kind": "realtime", "version": 1, "state": {}}`)), &other)
	require.ErrorIs(t, other, scaling.ErrOtherState)
}

// TestRegressionOnePolicyForTwoTargets: it decided on both with one state, so that the counts of one target were taken for those of
// the other, and it was told of the changes of both.
func TestRegressionOnePolicyForTwoTargets(t *testing.T) {
	one, other := scaling.New(always{5}), scaling.New(always{5})
	group := scaling.Each(one, other, one)
	obs := scaling.GroupObservation{Targets: []scaling.TargetObservation{{Name: "a", SpecReplicas: 3}, {Name: "b", SpecReplicas: 3}, {Name: "c", SpecReplicas: 3}}}
	d := group.Decide(time.Unix(1700000000, 0), obs)
	require.Equal(t, []scaling.Verdict{scaling.Up, scaling.Up, scaling.Unknown}, []scaling.Verdict{d.Targets[0].Verdict, d.Targets[1].Verdict, d.Targets[2].Verdict})
	require.Equal(t, scaling.NotConfigured, d.Targets[2].Code())
	_, err := group.MarshalJSON()
	var wrong *scaling.FieldError
	require.ErrorAs(t, err, &wrong)
	require.EqualError(t, wrong, `policies[2]: "asks": must not be that of an earlier target, as it would decide twice in a round`)
	_, err = scaling.Each(nil).MarshalJSON()
	require.ErrorContains(t, err, "policies[0]: <nil>: must be set")
}
