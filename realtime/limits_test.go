package realtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// TestLimitsOfAConfig: as many metrics as fit into the state and no more, and a period of a millisecond and no less.
func TestLimitsOfAConfig(t *testing.T) {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8})
	for i := range realtime.MaxMetrics {
		c.Metrics = append(c.Metrics, realtime.Metric{Name: fmt.Sprint("m", i), High: 10, Low: 2})
	}
	c.Period = time.Millisecond
	require.NoError(t, c.Validate())
	c.Metrics = append(c.Metrics, realtime.Metric{Name: "one more", High: 10, Low: 2})
	require.EqualError(t, c.Validate(), "metrics: 9: must be at most 8")
	c.Metrics, c.Period = c.Metrics[:8], time.Millisecond-1
	require.EqualError(t, c.Validate(), "period: 999.999µs: must be at least one millisecond")
}

// TestProfiles: the numbers of the profiles are a promise.
func TestProfiles(t *testing.T) {
	b := scaling.Bounds{Min: 1, Max: 8}
	require.Equal(t, realtime.Config{
		Bounds: b, Period: 15 * time.Second,
		Up:   realtime.Rule{Step: 1, Cooldown: 600 * time.Second, Window: 30 * time.Second},
		Down: realtime.Rule{Step: 1, Cooldown: 1800 * time.Second, Window: 300 * time.Second},
	}, realtime.Kaito(b))
	require.Equal(t, realtime.Config{
		Bounds: b, Period: 15 * time.Second, CooldownScope: realtime.PerDirection,
		Up:   realtime.Rule{Step: 2, Cooldown: 30 * time.Second, Window: 15 * time.Second},
		Down: realtime.Rule{Step: 1, Cooldown: 60 * time.Second, Window: 300 * time.Second},
	}, realtime.Responsive(b))
	require.Equal(t, []int{40, 20, 8}, []int{realtime.InFlightHigh, realtime.InFlightLow, realtime.MaxMetrics})
}

// TestAHoldNamesWhatStandsInTheWay: the metric that is on its way up, else the first by name that blocks a scale-down, else
// the first.
func TestAHoldNamesWhatStandsInTheWay(t *testing.T) {
	for _, row := range []struct {
		a, b realtime.Role
		x, y float64
		want string
	}{
		{realtime.Both, realtime.Both, 5, 5, "Between a"},
		{realtime.Both, realtime.Both, 5, 20, "UpWindow b"},
		{realtime.Both, realtime.Both, 20, 5, "UpWindow a"},
		{realtime.Both, realtime.Both, 20, 20, "UpWindow a"},
		{realtime.Both, realtime.Both, 1, 5, "DownWindow a"}, // not yet covered: it blocks
		{realtime.UpOnly, realtime.Both, 1, 5, "Between b"},
		{realtime.UpOnly, realtime.DownVeto, 5, 20, "Vetoed b"},
		{realtime.UpOnly, realtime.UpOnly, 1, 5, "Ignored a"},
		{realtime.DownVeto, realtime.Both, 20, 5, "Vetoed a"},
	} {
		s := kaitoScaler(t, realtime.Metric{Name: "b", High: 10, Low: 2, Role: row.b}, realtime.Metric{Name: "a", High: 10, Low: 2, Role: row.a})
		_, d := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{
			scaling.Exactly("a", row.x), scaling.Exactly("b", row.y),
		}})
		require.Equal(t, scaling.Hold, d.Verdict)
		require.Equal(t, row.want, d.Code().String()+" "+d.Steps()[0].Subject, "%+v", row)
	}
}

// TestACooldownIsWholeAfterAStepBackBeforeApplied: the clock steps back between a decision and the report that it was
// carried out. The cooldown counts from the report.
func TestACooldownIsWholeAfterAStepBackBeforeApplied(t *testing.T) {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: queue, High: 10, Low: 2})
	c.Up = realtime.Rule{Step: 1, Cooldown: time.Minute}
	s, err := realtime.New(c)
	require.NoError(t, err)
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(queue, 11)}}
	state, d := s.Decide(realtime.State{}, start.Add(time.Hour), obs)
	require.Equal(t, scaling.Up, d.Verdict)
	state = s.Applied(state, start, 3, 4)
	obs.SpecReplicas = 4
	for at := 5 * time.Second; at < time.Minute; at += 5 * time.Second {
		state, d = s.Decide(state, start.Add(at), obs)
		require.False(t, d.Acts(), "%s after the change: %s", at, d.Explain())
	}
	_, d = s.Decide(state, start.Add(time.Minute), obs)
	require.Equal(t, scaling.Up, d.Verdict, d.Explain())
}

// TestASampleOfTheInstantOfAChangeIsBeforeIt: without cooldowns the same sample does not ask twice.
func TestASampleOfTheInstantOfAChangeIsBeforeIt(t *testing.T) {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: queue, High: 10, Low: 2})
	c.Up, c.Down = realtime.Rule{Step: 1}, realtime.Rule{Step: 1}
	s, err := realtime.New(c)
	require.NoError(t, err)
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(queue, 11)}}
	state, d := s.Decide(realtime.State{}, start, obs)
	require.Equal(t, scaling.Up, d.Verdict)
	state = s.Applied(state, start, 3, 4)
	obs.SpecReplicas = 4
	state, d = s.Decide(state, start, obs)
	require.Equal(t, "Hold at 4: BeforeChange vllm:num_requests_waiting age=0s >= elapsed=0s", d.Reason())
	_, d = s.Decide(state, start.Add(time.Millisecond), obs)
	require.Equal(t, scaling.Up, d.Verdict)
}
