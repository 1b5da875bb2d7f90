package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// twoOfEach is a group that scales two targets, each by itself.
func twoOfEach(t *testing.T) scaling.Group {
	t.Helper()
	s, err := realtime.New(realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: "q", High: 10, Low: 2}))
	require.NoError(t, err)
	return scaling.Each(scaling.New(s), scaling.New(s))
}

// TestTheBareStateOfEachIsTaken, which is a list.
func TestTheBareStateOfEachIsTaken(t *testing.T) {
	bare, err := twoOfEach(t).MarshalJSON()
	require.NoError(t, err)
	l, err := loop.New(twoOfEach(t), loop.Config{})
	require.NoError(t, err)
	require.NoError(t, l.Restore(bare))
}

// TestEachRefusesNoState: without one it holds, as after any state that it refuses.
func TestEachRefusesNoState(t *testing.T) {
	g := twoOfEach(t)
	require.Error(t, g.UnmarshalJSON(nil))
	d := g.Decide(time.Unix(1e9, 0), scaling.GroupObservation{Targets: []scaling.TargetObservation{{SpecReplicas: 20}, {SpecReplicas: 2}}})
	require.False(t, d.Acts(), "%s", d.Targets[0].Reason())
}
