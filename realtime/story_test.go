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

	"github.com/inferscale/inferscale/internal/golden"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

const queue = realtime.DefaultMetric

func seedScaler(t *testing.T, metrics ...realtime.Metric) realtime.Scaler {
	t.Helper()
	s, err := realtime.New(realtime.Seed(scaling.Bounds{Min: 1, Max: 8}, metrics...))
	require.NoError(t, err)
	return s
}

// TestSeedStory tells the seed's own story as a transcript: a queue builds up, two samples later a replica is added,
// the cooldown of 600 s passes, another is added, the queue drains, and 1800 s after the last change and 300 s of calm
// a replica goes.
func TestSeedStory(t *testing.T) {
	policy := scaling.New(seedScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2}))
	load := func(elapsed time.Duration) float64 {
		switch {
		case elapsed < time.Minute:
			return 5
		case elapsed < 13*time.Minute:
			return 14
		case elapsed < 30*time.Minute:
			return 4
		default:
			return 1
		}
	}
	var story strings.Builder
	spec, last := int32(2), ""
	for elapsed := time.Duration(0); elapsed <= 75*time.Minute; elapsed += 15 * time.Second {
		now := start.Add(elapsed)
		d := policy.Decide(now, scaling.Observation{
			SpecReplicas: spec, ReadyReplicas: spec,
			Readings: []scaling.Reading{scaling.Exactly(queue, load(elapsed))},
		})
		if code := d.Code().String(); d.Acts() || code != last { // one entry a turn of the story
			fmt.Fprintf(&story, "%s  %s", now.Format(time.TimeOnly), d.Explain())
			last = code
		}
		if d.Acts() {
			policy.Applied(now, spec, d.Replicas)
			spec, last = d.Replicas, ""
		}
	}
	golden.Compare(t, "seed_story.txt", story.String())
}

// seedLoop is the seed's loop over several metrics, as its pseudocode has it: it starts from the current count.
func seedLoop(current int32, perMetric []int32) int32 {
	desired := current
	for _, d := range perMetric {
		desired = max(desired, d)
	}
	return desired
}

// TestSeedLoopCanNeverScaleDown: the seed's own loop answers the current count even where every metric asks for less,
// with one metric or with two; its text, which holds here, scales down.
func TestSeedLoopCanNeverScaleDown(t *testing.T) {
	require.EqualValues(t, 4, seedLoop(4, []int32{3}))
	require.EqualValues(t, 4, seedLoop(4, []int32{3, 3}))

	for _, metrics := range [][]realtime.Metric{
		{{Name: queue, High: 10, Low: 2}},
		{{Name: queue, High: 10, Low: 2}, {Name: "vllm:kv_cache_usage_perc", High: 0.9, Low: 0.3}},
	} {
		s := seedScaler(t, metrics...)
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
	type event struct {
		at     int // seconds
		reads  scaling.Reading
		spec   int32
		want   string // verdict and code
		refuse bool   // the write fails
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
	for name, run := range map[string][]event{
		"two breaching samples cover the window": {
			{0, exactly(11), 3, "Hold UpWindow", false},
			{15, exactly(11), 3, "Up AboveHigh", false},
		},
		"at the threshold is not above it": {
			{0, exactly(10), 3, "Hold Between", false},
			{15, exactly(10), 3, "Hold Between", false},
		},
		"one sample seen twice counts once": {
			{0, sampled(11, 0), 3, "Hold UpWindow", false},
			{7, sampled(11, 0), 3, "Hold UpWindow", false},
			{14, sampled(11, 0), 3, "Hold UpWindow", false},
			{16, sampled(11, 15), 3, "Up AboveHigh", false},
		},
		"a gap of two periods is bridged": {
			{0, exactly(11), 3, "Hold UpWindow", false},
			{30, exactly(11), 3, "Up AboveHigh", false},
		},
		"a longer gap starts the window anew": {
			{0, exactly(11), 3, "Hold UpWindow", false},
			{31, exactly(11), 3, "Hold UpWindow", false},
			{46, exactly(11), 3, "Up AboveHigh", false},
		},
		"a sample older than two periods is none": {
			{0, sampled(11, -31), 3, "Unknown NoSample", false},
			{15, sampled(11, -30), 3, "Unknown NoSample", false},
		},
		"no sample starts the window anew": {
			{0, exactly(11), 3, "Hold UpWindow", false},
			{15, none, 3, "Unknown NoSample", false},
			{30, exactly(11), 3, "Hold UpWindow", false},
		},
		"missing pods do not cause a scale-up": {
			{0, between(9, 14), 3, "Hold Between", false},
			{15, between(9, 14), 3, "Hold Between", false},
		},
		"missing pods block a scale-down": {
			{0, between(0, 2), 3, "Hold Between", false},
			{15, between(0, 2), 3, "Hold Between", false},
			{30, between(0, 2), 3, "Hold Between", false},
			{45, between(0, 2), 3, "Hold Between", false},
		},
		"a cooldown holds and ends exactly": {
			{0, exactly(11), 1, "Hold UpWindow", false},
			{15, exactly(11), 1, "Up AboveHigh", false},
			{30, exactly(11), 3, "Hold Cooldown", false},
			{45, exactly(11), 3, "Hold Cooldown", false},
			{60, exactly(11), 3, "Hold Cooldown", false},
			{74, exactly(11), 3, "Hold Cooldown", false},
			{75, exactly(11), 3, "Up AboveHigh", false},
		},
		"a refused write starts no cooldown": {
			{0, exactly(11), 3, "Hold UpWindow", false},
			{15, exactly(11), 3, "Up AboveHigh", true},
			{30, exactly(11), 3, "Up AboveHigh", false},
		},
		"a step is cut at the bound": {
			{0, exactly(11), 5, "Hold UpWindow", false},
			{15, exactly(11), 5, "Up AboveMax", false},
		},
		"a spec outside the bounds is repaired at once, and the repair cools nothing": {
			{0, none, 9, "Down AboveMax", false},
			{1, exactly(11), 0, "Up BelowMin", false},
			{16, exactly(11), 1, "Up AboveHigh", false},
		},
		"a clock that steps back holds and loses nothing": {
			{100, exactly(11), 3, "Hold UpWindow", false},
			{20, exactly(11), 3, "Hold ClockBack", false},
			{35, exactly(11), 3, "Up AboveHigh", false},
			{36, exactly(11), 5, "Hold Cooldown", false},
			{10, exactly(11), 5, "Hold ClockBack", false},
			{40, exactly(11), 5, "Hold Cooldown", false},
		},
		"down takes its own window": {
			{0, exactly(1), 3, "Hold DownWindow", false},
			{15, exactly(1), 3, "Hold DownWindow", false},
			{30, exactly(1), 3, "Hold DownWindow", false},
			{45, exactly(1), 3, "Down BelowLow", false},
			{60, exactly(1), 2, "Hold Cooldown", false},
		},
		"readings that are no numbers are no sample": {
			{0, between(5, 4), 3, "Unknown NoSample", false},
			{15, between(-1, 4), 3, "Unknown NoSample", false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := realtime.New(realtime.Config{
				Bounds: scaling.Bounds{Min: 1, Max: 6}, Metrics: []realtime.Metric{metric}, Period: 15 * time.Second,
				Up:   realtime.Rule{Step: 2, Cooldown: time.Minute, Window: 30 * time.Second},
				Down: realtime.Rule{Step: 1, Cooldown: 2 * time.Minute, Window: time.Minute},
			})
			require.NoError(t, err)
			var state realtime.State
			for _, e := range run {
				now := start.Add(time.Duration(e.at) * time.Second)
				var d scaling.Decision
				state, d = s.Decide(state, now, scaling.Observation{SpecReplicas: e.spec, ReadyReplicas: e.spec, Readings: []scaling.Reading{e.reads}})
				require.Equal(t, e.want, d.Verdict.String()+" "+d.Code().String(), "at %d s\n%s", e.at, d.Explain())
				if d.Acts() && !e.refuse {
					state = s.Applied(state, now, e.spec, d.Replicas)
				}
			}
		})
	}
}

// TestFutureScaleCostsOneCooldown: a last change in the future, as after a restore on a machine whose clock is behind,
// never acts and costs one cooldown from now, not the years until then.
func TestFutureScaleCostsOneCooldown(t *testing.T) {
	s := seedScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2})
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
	state, _ := seedScaler(t, a, b).Decide(realtime.State{}, start, obs)

	a.High = 12
	changed := seedScaler(t, a, b)
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
			c := realtime.Seed(scaling.Bounds{Min: 1, Max: 8}, queueUp, realtime.Metric{Name: "other", High: 10, Low: 2, Role: row.role})
			c.Up.Window, c.Down.Window = 0, 0
			s, err := realtime.New(c)
			require.NoError(t, err)
			_, d := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{
				scaling.Exactly("queue", row.queue), scaling.Exactly("other", row.other),
			}})
			steps := d.Steps()
			assert.Equal(t, row.want, fmt.Sprintf("%s %s %s", d.Verdict, d.Code(), steps[0].Subject), d.Explain())
		})
	}
	t.Run("only metrics without a say never scale down", func(t *testing.T) {
		c := realtime.Seed(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: "queue", High: 10, Low: 2, Role: realtime.UpOnly})
		c.Down.Window = 0
		s, err := realtime.New(c)
		require.NoError(t, err)
		_, d := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 3, Readings: []scaling.Reading{scaling.Exactly("queue", 0)}})
		assert.Equal(t, "Hold Ignored", d.Verdict.String()+" "+d.Code().String())
	})
}

func TestCooldownScopes(t *testing.T) {
	for _, row := range []struct {
		scope realtime.CooldownScope
		want  string
	}{{realtime.Any, "Hold Cooldown"}, {realtime.PerDirection, "Down BelowLow"}} {
		c := realtime.Seed(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: queue, High: 10, Low: 2})
		c.CooldownScope, c.Down.Window = row.scope, 0
		s, err := realtime.New(c)
		require.NoError(t, err)
		state := s.Applied(realtime.State{}, start, 3, 4) // up
		_, d := s.Decide(state, start.Add(time.Minute), scaling.Observation{SpecReplicas: 4, ReadyReplicas: 4, Readings: []scaling.Reading{scaling.Exactly(queue, 0)}})
		require.Equal(t, row.want, d.Verdict.String()+" "+d.Code().String(), row.scope.String())
	}
}

func TestHoldWhilePending(t *testing.T) {
	c := realtime.Seed(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: queue, High: 10, Low: 2})
	c.Up.Window, c.HoldWhilePending = 0, true
	s, err := realtime.New(c)
	require.NoError(t, err)
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
	c := realtime.Seed(scaling.Bounds{Min: 0, Max: huge}, realtime.Metric{Name: queue, High: 10, Low: 2})
	c.Up.Window, c.Up.Step, c.Down.Window, c.Down.Step = 0, huge, 0, huge
	s, err := realtime.New(c)
	require.NoError(t, err)
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
	golden.Compare(t, "errors.txt", err.Error()+"\n")
	var field *scaling.FieldError
	require.True(t, errors.As(err, &field))
	require.Equal(t, "bounds.min", field.Field)

	_, err = realtime.New(realtime.Config{})
	require.ErrorContains(t, err, "metrics: 0: must be at least one")
	require.NoError(t, realtime.Seed(scaling.Bounds{Max: 1}, realtime.Metric{Name: "a", High: 1}).Validate())
}

// TestStateIsSmall: with three metrics, all of them on a streak and every stamp set, at most 400 bytes.
func TestStateIsSmall(t *testing.T) {
	metrics := []realtime.Metric{
		{Name: "vllm:num_requests_waiting", High: 10, Low: 2},
		{Name: "vllm:kv_cache_usage_perc", High: 0.9, Low: 0.2},
		{Name: "vllm:num_requests_running", High: 100, Low: 20},
	}
	policy := scaling.New(seedScaler(t, metrics...))
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
		`{"kind":"realtime","version":1,"state":{"streaks":[{"metric":"00","side":1,"since":1,"last":2}]}}`,
		`{"kind":"realtime","version":1,"state":{"streaks":[{"metric":"0000000000000001","side":2,"since":1,"last":2}]}}`,
		`{"kind":"realtime","version":1,"state":{"streaks":[{"metric":"0000000000000001","side":1,"since":3,"last":2}]}}`,
		`{"kind":"realtime","version":1,"state":{"streaks":[{},{},{},{},{},{},{},{},{}]}}`,
		`{"kind":"realtime","version":1,"state":{"seen":"yesterday"}}`,
		`{"kind":"realtime","version":1,"state":{"unheard":1}}`,
	} {
		policy := scaling.New(seedScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2}))
		require.Error(t, json.Unmarshal([]byte(state), policy), state)
		d := policy.Decide(start, scaling.Observation{SpecReplicas: 9})
		require.Equal(t, scaling.Unknown, d.Verdict)
		kept, err := json.Marshal(policy)
		require.NoError(t, err)
		require.JSONEq(t, state, string(kept))
	}
}
