package realtime_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

const queue = realtime.DefaultMetric

func kaitoScaler(t *testing.T, metrics ...realtime.Metric) realtime.Scaler {
	t.Helper()
	return scaler(t, realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, metrics...))
}

// TestKaitoStory tells the proposal's own story as a transcript: a queue builds up, two samples later a replica is added,
// the cooldown of 600 s passes, another is added, the queue drains, and 1800 s after the last change and 300 s of calm
// a replica goes.
func TestKaitoStory(t *testing.T) {
	waiting := func(ticks int, v float64) scalingtest.Tick {
		return scalingtest.Tick{After: 15 * time.Second, Times: ticks, Readings: []scaling.Reading{scaling.Exactly(queue, v)}}
	}
	first := waiting(1, 5)
	first.After = 0
	scalingtest.Transcript(t, "kaito_story.txt", scaling.New(kaitoScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2})), scalingtest.Episode{
		Spec:  2,
		Ticks: []scalingtest.Tick{first, waiting(3, 5), waiting(4*12, 14), waiting(4*17, 4), waiting(4*45+1, 1)},
	})
}

// proposedLoop is the proposal's loop over several metrics, as its pseudocode has it: it starts from the current count.
func proposedLoop(current int32, perMetric []int32) int32 {
	desired := current
	for _, d := range perMetric {
		desired = max(desired, d)
	}
	return desired
}

// TestProposedLoopCanNeverScaleDown: the proposal's own loop answers the current count even where every metric asks for
// less, with one metric or with two; its text, which holds here, scales down.
func TestProposedLoopCanNeverScaleDown(t *testing.T) {
	require.EqualValues(t, 4, proposedLoop(4, []int32{3}))
	require.EqualValues(t, 4, proposedLoop(4, []int32{3, 3}))

	for _, metrics := range [][]realtime.Metric{
		{{Name: queue, High: 10, Low: 2}},
		{{Name: queue, High: 10, Low: 2}, {Name: "vllm:kv_cache_usage_perc", High: 0.9, Low: 0.3}},
	} {
		s := kaitoScaler(t, metrics...)
		var state realtime.State
		var d scaling.Decision
		for i := range 20 {
			var readings []scaling.Reading
			for _, m := range metrics {
				readings = append(readings, scaling.Exactly(m.Name, m.Low/2))
			}
			require.False(t, d.Acts(), "after %d samples", i)
			state, d = s.Decide(state, start.Add(time.Duration(i)*15*time.Second), scaling.Observation{SpecReplicas: 4, ReadyReplicas: 4, Readings: readings})
		}
		require.Equal(t, scaling.Down, d.Verdict, d.Explain())
		require.EqualValues(t, 3, d.Replicas)
	}
}

// TestSteps goes through single runs, one line an event. The configuration has windows of 30 s and 60 s, cooldowns of
// 60 s and 120 s, a period of 15 s, steps of 2 and 1, bounds 1 to 6.
func TestSteps(t *testing.T) {
	metric := realtime.Metric{Name: queue, High: 10, Low: 2}
	on := func(at int, want string, reads scaling.Reading) scalingtest.Event {
		return scalingtest.At(time.Duration(at)*time.Second, want, reads)
	}
	exactly := func(v float64) scaling.Reading { return scaling.Exactly(queue, v) }
	between := func(lo, hi float64) scaling.Reading {
		return scaling.Reading{Metric: queue, Lower: lo, Upper: hi, Values: 2, NotReady: 1}
	}
	sampled := func(v float64, at int) scaling.Reading {
		r := exactly(v)
		r.At = start.Add(time.Duration(at) * time.Second)
		return r
	}
	none := scaling.Reading{Metric: queue}
	for name, run := range map[string][]scalingtest.Event{
		"two breaching samples cover the window": {
			on(0, "Hold UpWindow", exactly(11)),
			on(15, "Up AboveHigh", exactly(11)),
		},
		"at the threshold is not above it": {
			on(0, "Hold Between", exactly(10)),
			on(15, "Hold Between", exactly(10)),
		},
		"one sample seen twice counts once": {
			on(0, "Hold UpWindow", sampled(11, 0)),
			on(7, "Hold UpWindow", sampled(11, 0)),
			on(14, "Hold UpWindow", sampled(11, 0)),
			on(16, "Up AboveHigh", sampled(11, 15)),
		},
		"a gap of two periods is bridged": {
			on(0, "Hold UpWindow", exactly(11)),
			on(30, "Up AboveHigh", exactly(11)),
		},
		"a longer gap starts the window anew": {
			on(0, "Hold UpWindow", exactly(11)),
			on(31, "Hold UpWindow", exactly(11)),
			on(46, "Up AboveHigh", exactly(11)),
		},
		"a sample older than two periods is none": {
			on(0, "Unknown NoSample", sampled(11, -31)),
			on(15, "Unknown NoSample", sampled(11, -30)),
		},
		"no sample leaves the window as it is": {
			on(0, "Hold UpWindow", exactly(11)),
			on(15, "Unknown NoSample", none),
			on(30, "Up AboveHigh", exactly(11)),
		},
		"nor do two in a row": {
			on(0, "Hold UpWindow", exactly(11)),
			on(15, "Unknown NoSample", none),
			on(30, "Unknown NoSample", none),
			on(46, "Up AboveHigh", exactly(11)),
		},
		"three start the window anew": {
			on(0, "Hold UpWindow", exactly(11)),
			on(15, "Unknown NoSample", none),
			on(30, "Unknown NoSample", none),
			on(45, "Unknown NoSample", none),
			on(60, "Hold UpWindow", exactly(11)),
		},
		"no sample after a gap starts the window anew": {
			on(0, "Hold UpWindow", exactly(11)),
			on(31, "Unknown NoSample", none),
			on(46, "Hold UpWindow", exactly(11)),
		},
		"a calm sample between two that are missing starts the window anew": {
			on(0, "Hold UpWindow", exactly(11)),
			on(15, "Unknown NoSample", none),
			on(30, "Hold Between", exactly(10)),
			on(45, "Unknown NoSample", none),
			on(60, "Hold UpWindow", exactly(11)),
		},
		"a sample older than a calm one begins no window": {
			on(6, "Hold Between", exactly(10)),
			on(12, "Hold UpWindow", sampled(11, 4)),
			on(20, "Hold UpWindow", exactly(11)),
			on(35, "Up AboveHigh", exactly(11)),
		},
		"a calm sample older than a high one ends its window": {
			on(6, "Hold UpWindow", exactly(11)),
			on(12, "Hold Between", sampled(10, 4)),
			on(22, "Hold UpWindow", exactly(11)),
		},
		"what is missing asks for nothing by itself": {
			on(0, "Hold UpWindow", exactly(11)),
			on(15, "Up AboveHigh", exactly(11)).Refused(),
			on(30, "Unknown NoSample", none),
			on(45, "Up AboveHigh", exactly(11)),
		},
		"missing pods do not cause a scale-up": {
			on(0, "Hold Between", between(9, 14)),
			on(15, "Hold Between", between(9, 14)),
		},
		"missing pods block a scale-down": {
			on(0, "Hold Between", between(0, 2)),
			on(15, "Hold Between", between(0, 2)),
			on(30, "Hold Between", between(0, 2)),
			on(45, "Hold Between", between(0, 2)),
		},
		"a cooldown holds and ends exactly": {
			on(0, "Hold UpWindow", exactly(11)).On(1),
			on(15, "Up AboveHigh", exactly(11)),
			on(30, "Hold Cooldown", exactly(11)),
			on(45, "Hold Cooldown", exactly(11)),
			on(60, "Hold Cooldown", exactly(11)),
			on(74, "Hold Cooldown", exactly(11)),
			on(75, "Up AboveHigh", exactly(11)),
		},
		"a refused write starts no cooldown": {
			on(0, "Hold UpWindow", exactly(11)),
			on(15, "Up AboveHigh", exactly(11)).Refused(),
			on(30, "Up AboveHigh", exactly(11)),
		},
		"a step is cut at the bound": {
			on(0, "Hold UpWindow", exactly(11)).On(5),
			on(15, "Up AboveMax", exactly(11)),
		},
		"a spec outside the bounds is repaired at once, and the repair cools nothing": {
			on(0, "Down AboveMax", none).On(9),
			on(1, "Up BelowMin", exactly(11)).On(0),
			on(16, "Up AboveHigh", exactly(11)),
		},
		"a clock that steps back holds and loses nothing": {
			on(100, "Hold UpWindow", exactly(11)),
			on(20, "Hold ClockBack", exactly(11)),
			on(35, "Up AboveHigh", exactly(11)),
			on(36, "Hold Cooldown", exactly(11)),
			on(10, "Hold ClockBack", exactly(11)),
			on(40, "Hold Cooldown", exactly(11)),
		},
		"nor does a cooldown begin anew": {
			on(0, "Hold UpWindow", exactly(11)).On(1),
			on(15, "Up AboveHigh", exactly(11)),
			on(30, "Hold Cooldown", exactly(11)),
			on(45, "Hold Cooldown", exactly(11)),
			on(60, "Hold Cooldown", exactly(11)),
			on(20, "Hold ClockBack", exactly(11)),
			on(34, "Hold Cooldown", exactly(11)),
			on(35, "Up AboveHigh", exactly(11)),
		},
		"a sample missing before a decision that comes two periods later": {
			on(0, "Hold UpWindow", exactly(11)),
			on(15, "Unknown NoSample", none),
			on(45, "Up AboveHigh", exactly(11)),
		},
		"a sample of two periods ago is one": {
			on(0, "Hold UpWindow", sampled(11, -30)),
			on(1, "Unknown NoSample", sampled(11, -30)),
		},
		"of two samples of one instant the later one counts": {
			on(0, "Hold Between", exactly(5)),
			on(0, "Hold UpWindow", exactly(11)),
			on(15, "Up AboveHigh", exactly(11)),
		},
		"down takes its own window": {
			on(0, "Hold DownWindow", exactly(1)),
			on(15, "Hold DownWindow", exactly(1)),
			on(30, "Hold DownWindow", exactly(1)),
			on(45, "Down BelowLow", exactly(1)),
			on(60, "Hold Cooldown", exactly(1)),
		},
		"readings that are no numbers are no sample": {
			on(0, "Unknown NoSample", between(5, 4)),
			on(15, "Unknown NoSample", between(-1, 4)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := realtime.New(realtime.Config{
				Bounds: scaling.Bounds{Min: 1, Max: 6}, Metrics: []realtime.Metric{metric}, Period: 15 * time.Second,
				Up:   realtime.Rule{Step: 2, Cooldown: time.Minute, Window: 30 * time.Second},
				Down: realtime.Rule{Step: 1, Cooldown: 2 * time.Minute, Window: time.Minute},
			})
			require.NoError(t, err)
			scalingtest.Steps(t, scaling.New(s), 3, run...)
		})
	}
}

// TestFutureScaleCostsOneCooldown: a last change in the future, as after a restore on a machine whose clock is behind,
// never acts and costs one cooldown from now, not the years until then.
func TestFutureScaleCostsOneCooldown(t *testing.T) {
	s := kaitoScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2})
	state := realtime.State{LastUp: scaling.StampOf(start.AddDate(5, 0, 0))}
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(queue, 50)}}
	var acted time.Duration
	for elapsed := time.Duration(0); acted == 0 && elapsed <= time.Hour; elapsed += 15 * time.Second {
		var d scaling.Decision
		state, d = s.Decide(state, start.Add(elapsed), obs)
		if d.Acts() {
			acted = elapsed
		}
	}
	require.Equal(t, 600*time.Second, acted)
}

// TestConfigChangeRestartsThatStreak: a new threshold or window starts the metric's window anew and no other's.
func TestConfigChangeRestartsThatStreak(t *testing.T) {
	a, b := realtime.Metric{Name: "a", High: 10, Low: 2}, realtime.Metric{Name: "b", High: 10, Low: 2}
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly("a", 20), scaling.Exactly("b", 20)}}
	state, _ := kaitoScaler(t, a, b).Decide(realtime.State{}, start, obs)

	a.High = 12
	changed := kaitoScaler(t, a, b)
	_, d := changed.Decide(state, start.Add(15*time.Second), obs)
	require.Equal(t, scaling.Up, d.Verdict)
	codes := map[string]string{}
	for _, s := range d.Steps() {
		codes[s.Subject] = s.Code.String()
	}
	require.Equal(t, map[string]string{"a": "UpWindow", "b": "AboveHigh"}, codes)
}

func TestRoles(t *testing.T) {
	queueUp := realtime.Metric{Name: "queue", High: 10, Low: 2}
	for _, row := range []struct {
		role         realtime.Role
		queue, other float64
		want         string
	}{
		{realtime.Both, 5, 20, "Up AboveHigh other"},
		{realtime.Both, 1, 5, "Hold Between other"},
		{realtime.Both, 1, 1, "Down BelowLow other"},
		{realtime.UpOnly, 5, 20, "Up AboveHigh other"},
		{realtime.UpOnly, 1, 5, "Down BelowLow queue"},
		{realtime.UpOnly, 1, 1, "Down BelowLow queue"},
		{realtime.DownVeto, 5, 20, "Hold Vetoed other"},
		{realtime.DownVeto, 1, 5, "Hold Between other"},
		{realtime.DownVeto, 1, 1, "Down BelowLow other"},
		{realtime.DownVeto, 20, 1, "Up AboveHigh queue"},
	} {
		t.Run(fmt.Sprintf("%s queue=%v other=%v", row.role, row.queue, row.other), func(t *testing.T) {
			c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, queueUp, realtime.Metric{Name: "other", High: 10, Low: 2, Role: row.role})
			c.Up.Window, c.Down.Window = 0, 0
			s := scaler(t, c)
			_, d := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{
				scaling.Exactly("queue", row.queue), scaling.Exactly("other", row.other),
			}})
			steps := d.Steps()
			assert.Equal(t, row.want, fmt.Sprintf("%s %s %s", d.Verdict, d.Code(), steps[0].Subject), d.Explain())
		})
	}
	t.Run("only metrics without a say never scale down", func(t *testing.T) {
		c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: "queue", High: 10, Low: 2, Role: realtime.UpOnly})
		c.Down.Window = 0
		s := scaler(t, c)
		_, d := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 3, Readings: []scaling.Reading{scaling.Exactly("queue", 0)}})
		assert.Equal(t, "Hold Ignored", d.Verdict.String()+" "+d.Code().String())
	})
}

func TestCooldownScopes(t *testing.T) {
	for _, row := range []struct {
		scope realtime.CooldownScope
		want  string
	}{{realtime.Any, "Hold Cooldown"}, {realtime.PerDirection, "Down BelowLow"}} {
		c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: queue, High: 10, Low: 2})
		c.CooldownScope, c.Down.Window = row.scope, 0
		s := scaler(t, c)
		state := s.Applied(realtime.State{}, start, 3, 4) // up
		_, d := s.Decide(state, start.Add(time.Minute), scaling.Observation{SpecReplicas: 4, ReadyReplicas: 4, Readings: []scaling.Reading{scaling.Exactly(queue, 0)}})
		require.Equal(t, row.want, d.Verdict.String()+" "+d.Code().String(), row.scope.String())
	}
}

func TestHoldWhilePending(t *testing.T) {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: queue, High: 10, Low: 2})
	c.Up.Window, c.HoldWhilePending = 0, true
	s := scaler(t, c)
	obs := scaling.Observation{SpecReplicas: 4, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(queue, 50)}}
	_, d := s.Decide(realtime.State{}, start, obs)
	require.Equal(t, "Hold at 4: AboveHigh vllm:num_requests_waiting lower=50 > high=10, held=15s >= window=0s; Pending ready=3 < spec=4", d.Reason())
	obs.ReadyReplicas = 4
	_, d = s.Decide(realtime.State{}, start, obs)
	require.Equal(t, scaling.Up, d.Verdict)
}

// TestStepsSaturate: counts at the edge of int32 do not wrap.
func TestStepsSaturate(t *testing.T) {
	const huge = 1<<31 - 1
	c := realtime.Kaito(scaling.Bounds{Min: 0, Max: huge}, realtime.Metric{Name: queue, High: 10, Low: 2})
	c.Up.Window, c.Up.Step, c.Down.Window, c.Down.Step = 0, huge, 0, huge
	s := scaler(t, c)
	_, d := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 5, Readings: []scaling.Reading{scaling.Exactly(queue, 50)}})
	require.EqualValues(t, huge, d.Replicas)
	_, d = s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 5, Readings: []scaling.Reading{scaling.Exactly(queue, 0)}})
	require.EqualValues(t, 0, d.Replicas)
}

func TestErrorsNameEveryField(t *testing.T) {
	_, err := realtime.New(realtime.Config{
		Bounds: scaling.Bounds{Min: -1, Max: -2},
		Metrics: []realtime.Metric{
			{Name: "a", High: 2, Low: 2}, {Name: "a", High: 1, Low: -3, Role: 9}, {},
		},
		Up:            realtime.Rule{Cooldown: -time.Second},
		Down:          realtime.Rule{Step: -1, Window: -time.Minute},
		CooldownScope: 7,
	})
	scalingtest.Golden(t, "errors.txt", err.Error()+"\n")
	var field *scaling.FieldError
	require.True(t, errors.As(err, &field))
	require.Equal(t, "bounds.min", field.Field)

	_, err = realtime.New(realtime.Config{})
	require.ErrorContains(t, err, "metrics: 0: must be at least one")
	require.NoError(t, realtime.Kaito(scaling.Bounds{Max: 1}, realtime.Metric{Name: "a", High: 1}).Validate())
}

// TestStateIsSmall: with three metrics, all of them on a streak and every stamp set, at most 400 bytes.
func TestStateIsSmall(t *testing.T) {
	metrics := []realtime.Metric{
		{Name: "vllm:num_requests_waiting", High: 10, Low: 2},
		{Name: "vllm:kv_cache_usage_perc", High: 0.9, Low: 0.2},
		{Name: "vllm:num_requests_running", High: 100, Low: 20},
	}
	policy := scaling.New(kaitoScaler(t, metrics...))
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3}
	for _, m := range metrics {
		obs.Readings = append(obs.Readings, scaling.Exactly(m.Name, 1000))
	}
	policy.Applied(start, 3, 4)
	policy.Applied(start.Add(time.Second), 4, 3)
	for i := range 100 {
		policy.Decide(start.Add(time.Duration(i)*15*time.Second), obs)
	}
	data, err := json.Marshal(policy)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(data), `"side":1`))
	require.LessOrEqual(t, len(data), 400, string(data))
	t.Logf("%d bytes: %s", len(data), data)
}

func TestDamagedStateHolds(t *testing.T) {
	for _, state := range []string{
		`{"kind":"realtime","version":1,"state":{"seen":9,"streaks":[{"metric":"00","side":1,"since":1,"last":2}]}}`,
		`{"kind":"realtime","version":1,"state":{"seen":9,"streaks":[{"metric":"00000000000000011","side":1,"since":1,"last":2}]}}`,
		`{"kind":"realtime","version":1,"state":{"seen":9,"streaks":[{"metric":"0000000000000001","side":2,"since":1,"last":2}]}}`,
		`{"kind":"realtime","version":1,"state":{"seen":9,"streaks":[{"metric":"0000000000000001","side":-2,"since":1,"last":2}]}}`,
		`{"kind":"realtime","version":1,"state":{"seen":9,"streaks":[{"metric":"0000000000000001","side":1,"since":3,"last":2}]}}`,
		`{"kind":"realtime","version":1,"state":{"seen":1,"streaks":[{"metric":"0000000000000001","side":1,"since":1,"last":2}]}}`,
		`{"kind":"realtime","version":1,"state":{"streaks":[{},{},{},{},{},{},{},{},{}]}}`,
		`{"kind":"realtime","version":1,"state":{"seen":"yesterday"}}`,
		`{"kind":"realtime","version":1,"state":{"unheard":1}}`,
	} {
		policy := scaling.New(kaitoScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2}))
		require.Error(t, json.Unmarshal([]byte(state), policy), state)
		d := policy.Decide(start, scaling.Observation{SpecReplicas: 9})
		require.Equal(t, scaling.Unknown, d.Verdict)
		kept, err := json.Marshal(policy)
		require.NoError(t, err)
		require.JSONEq(t, state, string(kept))
	}
}
