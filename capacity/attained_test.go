package capacity_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// told is a group that asks for counts, one a minute, and the last for good.
func told(counts ...int32) scaling.Group {
	return sim.Schedule((&sim.Scenario{}).Begin(), time.Minute, counts)
}

// lived runs half an hour of traffic, which rises after ten minutes, under counts; the server is slower than the configuration says.
func lived(t *testing.T, group scaling.Group, initial int32, see func(now time.Time, obs scaling.Observation)) (attained float64) {
	t.Helper()
	server := sim.Qwen32B()
	server.Base, server.PrefillToken, server.Sequence, server.KVToken = 1.2*server.Base, 1.2*server.PrefillToken, 1.2*server.Sequence, 1.2*server.KVToken
	s := simhistory.Chat(server, initial, sim.Stage{Rate: 8, Duration: 10 * time.Minute}, sim.Stage{Rate: 14, Duration: 20 * time.Minute})
	s.Metrics, s.Types[0].Startup = capacity.Metrics(), sim.ColdStart(90*time.Second)
	all, met := 0.0, 0.0
	_, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) { return group, nil }, sim.Options{
		Seed: 1,
		Decision: func(now time.Time, obs *scaling.GroupObservation, _ *scaling.GroupDecision) {
			if see != nil {
				one := &obs.Targets[0]
				see(now, scaling.Observation{SpecReplicas: one.SpecReplicas, ReadyReplicas: one.ReadyReplicas, Readings: obs.Readings, Histograms: obs.Histograms})
			}
		},
		Request: func(o sim.Outcome) {
			if all++; o.Met {
				met++
			}
		},
	})
	require.NoError(t, err)
	return met / all
}

// TestAttainedOfOtherCounts: what the past of one fleet says that other counts would have attained is what a run with those attains, within
// five points, be the server slower than was said, and be the real fleet much larger.
func TestAttainedOfOtherCounts(t *testing.T) {
	long.Skip(t)
	c := capacity.For(scaling.Bounds{Min: 1, Max: 40}, sim.SLO{TTFT: 2 * time.Second, TPOT: 60 * time.Millisecond}, sim.Qwen32B())
	r, err := capacity.NewRecorder(c)
	require.NoError(t, err)
	begin := (&sim.Scenario{}).Begin()
	actual := lived(t, sim.Static(12), 12, func(now time.Time, obs scaling.Observation) { r.See(now, obs) })
	past := r.Past(90 * time.Second)
	for name, counts := range map[string][]int32{"as it was": {12}, "five": {5}, "four": {4}, "three": {3}, "two": {2}, "late": {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 6}} {
		var asked []capacity.Count
		for i, n := range counts {
			if i == 0 || n != counts[i-1] {
				asked = append(asked, capacity.Count{At: begin.Add(time.Duration(i) * time.Minute), Replicas: n})
			}
		}
		truth := lived(t, told(counts...), counts[0], nil)
		a, known := past.Attained(&c, asked)
		require.True(t, known)
		require.InDelta(t, truth, a.Attained, 0.05, name)
		require.InDelta(t, actual, a.Measured, 0.001)
		t.Logf("%-10s %.3f of %d requests, in truth %.3f (measured %.3f, real %.3f), %.2f replica-hours", name, a.Attained, a.Requests, truth, a.Measured, actual, a.ReplicaHours)
	}
}

// TestAttainedOfTooLittle is not known, and of a part of the past it is of that part.
func TestAttainedOfTooLittle(t *testing.T) {
	c := capacity.For(scaling.Bounds{Min: 1, Max: 40}, sim.SLO{TTFT: 2 * time.Second, TPOT: 60 * time.Millisecond}, sim.Qwen32B())
	r, err := capacity.NewRecorder(c)
	require.NoError(t, err)
	begin := (&sim.Scenario{}).Begin()
	past := r.Past(time.Minute)
	_, known := past.Attained(&c, []capacity.Count{{At: begin, Replicas: 1}})
	require.False(t, known, "nothing was seen")
	require.False(t, r.See(begin, scaling.Observation{}))

	lived(t, sim.Static(5), 5, func(now time.Time, obs scaling.Observation) { r.See(now, obs) })
	past = r.Past(time.Minute)
	_, known = past.Attained(&c, nil)
	require.False(t, known)
	_, known = past.Attained(&c, []capacity.Count{{At: begin.Add(29 * time.Minute), Replicas: 4}})
	require.False(t, known, "a minute is too short")
	a, known := past.Attained(&c, []capacity.Count{{At: begin.Add(20 * time.Minute), Replicas: 4}, {At: begin.Add(25 * time.Minute), Replicas: 6}})
	require.True(t, known)
	require.WithinDuration(t, begin.Add(20*time.Minute), a.From, 20*time.Second)
	require.InDelta(t, (4*5+6*5)/60.0, a.ReplicaHours, 0.06)
	again, _ := past.Attained(&c, []capacity.Count{{At: begin.Add(20 * time.Minute), Replicas: 4}, {At: begin.Add(25 * time.Minute), Replicas: 6}})
	require.Equal(t, a, again, "a pure function")
	none, known := past.Attained(&c, []capacity.Count{{At: begin, Replicas: 0}})
	require.True(t, known)
	require.Less(t, none.Attained, 0.01, "without replicas nobody is served")

	c.Goal = 2
	_, err = capacity.NewRecorder(c)
	require.ErrorContains(t, err, "goal")
}
