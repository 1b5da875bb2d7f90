package realtime_test

import (
	"encoding/json"
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
	s := scaler(t, c)
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
	s := scaler(t, c)
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

// TestTheFirstMetricByNameDecides: of several that ask for the same, whatever their order in the configuration.
func TestTheFirstMetricByNameDecides(t *testing.T) {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8})
	for _, name := range []string{"c", "a", "b"} {
		c.Metrics = append(c.Metrics, realtime.Metric{Name: name, High: 10, Low: 2})
	}
	c.Up.Window, c.Down.Window = 0, 0
	s := scaler(t, c)
	for value, want := range map[float64]string{11: "Up AboveHigh a", 1: "Down BelowLow a"} {
		_, d := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{
			scaling.Exactly("a", value), scaling.Exactly("b", value), scaling.Exactly("c", value),
		}})
		require.Equal(t, want, d.Verdict.String()+" "+d.Code().String()+" "+d.Steps()[0].Subject)
	}
}

// TestReasonsHaveTheNumbers: of a metric that may not ask for what it would.
func TestReasonsHaveTheNumbers(t *testing.T) {
	for role, row := range map[realtime.Role]struct {
		value float64
		want  string
	}{
		realtime.DownVeto: {11, "Hold at 3: Vetoed vllm:num_requests_waiting lower=11 > high=10"},
		realtime.UpOnly:   {1, "Hold at 3: Ignored vllm:num_requests_waiting upper=1 < low=2"},
	} {
		s := kaitoScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2, Role: role})
		_, d := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(queue, row.value)}})
		require.Equal(t, row.want, d.Reason())
	}
}

// TestACooldownInScopeAnyCountsFromTheLaterChange: a scale-up after a scale-down.
func TestACooldownInScopeAnyCountsFromTheLaterChange(t *testing.T) {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: queue, High: 10, Low: 2})
	c.Up.Window = 0
	s := scaler(t, c)
	state := s.Applied(realtime.State{}, start, 4, 3)
	state = s.Applied(state, start.Add(500*time.Second), 3, 4)
	for after, want := range map[time.Duration]scaling.Verdict{1099 * time.Second: scaling.Hold, 1100 * time.Second: scaling.Up} {
		_, d := s.Decide(state, start.Add(after), scaling.Observation{SpecReplicas: 4, ReadyReplicas: 4, Readings: []scaling.Reading{scaling.Exactly(queue, 11)}})
		require.Equal(t, want, d.Verdict, "%s: %s", after, d.Explain())
	}
}

// TestAMillisecondBackIsAStepBack: it holds, and where it came before a report it is turned back once only.
func TestAMillisecondBackIsAStepBack(t *testing.T) {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: queue, High: 10, Low: 2})
	c.Up = realtime.Rule{Step: 1, Cooldown: time.Minute}
	s := scaler(t, c)
	obs := scaling.Observation{SpecReplicas: 4, ReadyReplicas: 4, Readings: []scaling.Reading{scaling.Exactly(queue, 11)}}
	decided, _ := s.Decide(realtime.State{}, start.Add(time.Millisecond), obs)
	_, d := s.Decide(decided, start, obs)
	require.Equal(t, "Hold at 4: ClockBack back=1ms", d.Reason())
	reported := s.Applied(decided, start, 3, 4)
	_, d = s.Decide(reported, start, obs)
	require.Equal(t, "Hold at 4: BeforeChange vllm:num_requests_waiting age=0s >= elapsed=0s", d.Reason())
}

// TestAReportIsNoDecision: the time between two decisions, over which a streak is carried on, does not count from it.
func TestAReportIsNoDecision(t *testing.T) {
	s := kaitoScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2})
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(queue, 11)}}
	state, _ := s.Decide(realtime.State{}, start, obs)
	state = s.Applied(state, start.Add(20*time.Second), 0, 3) // a repair
	_, d := s.Decide(state, start.Add(31*time.Second), obs)
	require.Equal(t, "Hold at 3: UpWindow vllm:num_requests_waiting lower=11 > high=10, held=15s < window=30s; DecidedTooRarely vllm:num_requests_waiting gap=31s > most=30s", d.Reason())
}

// TestAStreakIsItsMetricsOwn: it is found again where metrics were added before it, never taken by another metric with
// the same thresholds, and forgotten with its metric.
func TestAStreakIsItsMetricsOwn(t *testing.T) {
	a, b := realtime.Metric{Name: "a", High: 10, Low: 2}, realtime.Metric{Name: "b", High: 10, Low: 2}
	of := func(values ...float64) scaling.Observation {
		obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3}
		for i, v := range values {
			obs.Readings = append(obs.Readings, scaling.Exactly(string(rune('a'+i)), v))
		}
		return obs
	}
	onlyB, _ := kaitoScaler(t, b).Decide(realtime.State{}, start, of(11, 11))
	both, d := kaitoScaler(t, a, b).Decide(onlyB, start.Add(15*time.Second), of(11, 11))
	require.Equal(t, scaling.Up, d.Verdict)
	require.Equal(t, "AboveHigh b", d.Code().String()+" "+d.Steps()[0].Subject, d.Explain())

	onlyA, _ := kaitoScaler(t, a).Decide(realtime.State{}, start, of(11))
	_, d = kaitoScaler(t, b).Decide(onlyA, start.Add(15*time.Second), of(0, 11))
	require.Equal(t, scaling.Hold, d.Verdict, d.Explain())

	fewer, _ := kaitoScaler(t, a).Decide(both, start.Add(30*time.Second), of(11))
	require.Equal(t, make([]realtime.Streak, realtime.MaxMetrics-1), fewer.Streaks[1:])
}

// TestAStateIsReadAsItWasWritten: with all the streaks there can be, over one that had others, and after a step back of
// the clock before a report.
func TestAStateIsReadAsItWasWritten(t *testing.T) {
	var metrics []realtime.Metric
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3}
	for i := range realtime.MaxMetrics {
		metrics = append(metrics, realtime.Metric{Name: fmt.Sprint("m", i), High: 10, Low: 2})
		obs.Readings = append(obs.Readings, scaling.Exactly(metrics[i].Name, 11))
	}
	full, _ := kaitoScaler(t, metrics...).Decide(realtime.State{}, start, obs)
	one, _ := kaitoScaler(t, metrics[0]).Decide(realtime.State{}, start, obs)
	var read realtime.State
	for _, s := range []realtime.State{full, one, kaitoScaler(t, metrics[0]).Applied(one, start.Add(-time.Hour), 3, 4)} {
		text, err := json.Marshal(s)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &read), string(text))
		require.Equal(t, s.Streaks, read.Streaks)
		require.NoError(t, read.Validate())
	}
	require.Equal(t, make([]realtime.Streak, realtime.MaxMetrics-1), read.Streaks[1:], "a place without a streak has no times")
	require.Equal(t, scaling.Kind{Name: "realtime", Version: 1}, kaitoScaler(t, metrics...).Kind(), "a promise to stored states")
}
