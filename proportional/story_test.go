package proportional_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestBurstStory tells of a burst as a transcript: a steady load, four times as much for a minute, panic in, the calm
// after it, panic out, and the scale-down when the delay has passed. Replicas take 100 s to start.
func TestBurstStory(t *testing.T) {
	c := proportional.Kthena(scaling.Bounds{Min: 1, Max: 20}, proportional.Metric{Name: "inflight", Target: 50, Measure: proportional.Total})
	inFlight := func(ticks int, v float64) scalingtest.Tick {
		return scalingtest.Tick{After: 15 * time.Second, Times: ticks, Readings: []scaling.Reading{scaling.Exactly("inflight", v)}}
	}
	first := inFlight(1, 150)
	first.After = 0
	scalingtest.Transcript(t, "burst_story.txt", scaling.New(build(t, c)), scalingtest.Episode{
		Spec: 3, Startup: 100 * time.Second,
		Ticks: []scalingtest.Tick{first, inFlight(4*5-1, 150), inFlight(4, 600), inFlight(4*19+1, 150)},
	})
}

// TestSteps goes through single runs, one line an event. The configuration has a stable window of 10 s, a panic window
// of 2 s, panic at 200 %, tolerance 10 %, target 10, bounds 1 to 20.
func TestSteps(t *testing.T) {
	type event struct {
		at   float64 // seconds
		load float64 // -1 for no reading
		spec int32
		want string // verdict, count and the codes of the deciding line
	}
	var warm []event
	for at := 0.0; at <= 10; at += 2 {
		warm = append(warm, event{at, 40, 4, "Hold 4: Within"})
	}
	after := func(events ...event) []event { return append(append([]event{}, warm...), events...) }
	for name, run := range map[string][]event{
		"exactly at the tolerance holds, beyond it does not": {
			{0, 44, 4, "Hold 4: Within"}, {20, 44.1, 4, "Up 5: AboveTarget"}, {40, 36, 4, "Hold 4: Within"},
		},
		"nothing goes before a window is covered": {
			{0, 10, 4, "Hold 4: Uncovered"}, {5, 10, 4, "Hold 4: Uncovered"}, {9, 10, 4, "Hold 4: Uncovered"}, {10, 10, 4, "Down 1: BelowTarget"},
		},
		"what is needed by a part of a replica stays": after(event{12, 31, 4, "Hold 4: Within"}, event{21, 31, 4, "Hold 4: Needed"}),
		"more at once, by the average":                after(event{11, 70, 4, "Up 5: AboveTarget"}),
		"a burst panics, and only a full window of calm ends it": after(
			event{11, 200, 4, "Up 12: Panicked Burst"},
			event{12, 200, 12, "Up 20: Burst"},
			event{13, 0, 20, "Hold 20: BelowTarget NoFewer"},
			event{21, 0, 20, "Hold 20: BelowTarget NoFewer"}, // ten seconds since 11
			event{22, 0, 20, "Down 1: BelowTarget BelowMin"},
		),
		"a missed sample is missing, not zero": after(event{11, -1, 4, "Hold 4: Within"}, event{12, -1, 4, "Hold 4: Within"}),
		"silence for a window is unknown":      after(event{19, -1, 4, "Hold 4: Within"}, event{20, -1, 4, "Unknown 4: NoSample"}),
		"after silence a window is covered anew": after(
			event{30, -1, 4, "Unknown 4: NoSample"}, event{31, 0, 4, "Hold 4: Uncovered"},
			event{36, 0, 4, "Hold 4: Uncovered"}, event{41, 0, 4, "Down 1: BelowTarget BelowMin"},
		),
		"bounds come first": {{0, 500, 30, "Down 20: AboveMax"}, {1, 500, 0, "Up 1: BelowMin"}},
		"a clock that steps back holds and loses nothing": after(
			event{3, 10, 4, "Hold 4: ClockBack"}, event{4, 10, 4, "Hold 4: Needed"}, event{13, 10, 4, "Down 1: BelowTarget"},
		),
	} {
		t.Run(name, func(t *testing.T) {
			c := proportional.Config{
				Bounds: scaling.Bounds{Min: 1, Max: 20}, Metrics: []proportional.Metric{inflight},
				Up: proportional.Rule{Tolerance: 0.1}, Down: proportional.Rule{Tolerance: 0.1},
				StableWindow: 10 * time.Second, Resolution: time.Second,
				Panic: proportional.Panic{Window: 2 * time.Second, Threshold: 2},
			}
			s := build(t, c)
			var state proportional.State
			for _, e := range run {
				var readings []scaling.Reading
				if e.load >= 0 {
					readings = append(readings, scaling.Exactly("inflight", e.load))
				}
				var d scaling.Decision
				state, d = s.Decide(state, at(e.at), holding(e.spec, readings...))
				var codes []string
				for _, step := range d.Steps() {
					codes = append(codes, step.Code.String())
				}
				require.Equal(t, e.want, fmt.Sprintf("%s %d: %s", d.Verdict, d.Replicas, strings.Join(codes, " ")), "at %v s\n%s", e.at, d.Explain())
			}
		})
	}
}

func TestErrorsNameEveryField(t *testing.T) {
	nan := math.NaN()
	_, err := proportional.New(proportional.Config{
		Bounds: scaling.Bounds{Min: -1, Max: -2},
		Metrics: []proportional.Metric{
			{Name: "a", Target: 0}, {Name: "a", Target: nan, Measure: 9}, {Target: math.Inf(1)},
		},
		Up:              proportional.Rule{Tolerance: nan, MaxRate: 1, MaxStep: -1},
		Down:            proportional.Rule{Tolerance: -1.5, MaxRate: nan, MaxStep: -2},
		StableWindow:    10 * time.Second,
		Panic:           proportional.Panic{Threshold: 1, Window: time.Minute},
		Stabilization:   scaling.Stabilization{Up: -1, Down: -1},
		RateLimits:      scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{}}}},
		ActivationScale: -1,
	})
	scalingtest.Golden(t, "errors.txt", err.Error()+"\n")
	var field *scaling.FieldError
	require.True(t, errors.As(err, &field))
	require.Equal(t, "bounds.min", field.Field)

	for _, row := range []struct {
		change func(*proportional.Config)
		want   string
	}{
		{func(c *proportional.Config) { c.Metrics = nil }, "metrics: 0: must be at least one"},
		{func(c *proportional.Config) { c.Resolution = 0 }, "resolution: 0s: must be of whole milliseconds, at least one"},
		{func(c *proportional.Config) { c.StableWindow = -1 }, "stableWindow: -1ns: must not be negative"},
		{func(c *proportional.Config) { c.StableWindow = 2 * time.Hour }, "stableWindow: 2h0m0s: must be at most 3600 times resolution"},
		{func(c *proportional.Config) { c.Panic.Threshold = 0 }, "panic.window: 6s: must be 0 without a threshold"},
		{func(c *proportional.Config) { c.Panic.Window = 0 }, "panic.window: 0s: must be above 0"},
		{func(c *proportional.Config) { c.StableWindow = time.Second }, "panic.window: 6s: must be at most stableWindow 1s"},
	} {
		c := proportional.KPA(scaling.Bounds{Min: 1, Max: 2}, inflight)
		row.change(&c)
		assert.ErrorContains(t, c.Validate(), row.want)
	}
}

// TestProfiles: the constructors give the numbers of the documentation, and they are valid.
func TestProfiles(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: 8}
	var page strings.Builder
	for _, p := range []struct {
		name   string
		config proportional.Config
	}{
		{"KPA", proportional.KPA(bounds, inflight)}, {"HPA", proportional.HPA(bounds, inflight)}, {"Kthena", proportional.Kthena(bounds, inflight)}, {"LLM", proportional.LLM(bounds, inflight)},
	} {
		require.NoError(t, p.config.Validate())
		data, err := json.MarshalIndent(p.config, "", " ")
		require.NoError(t, err)
		var back proportional.Config
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, p.config, back)
		fmt.Fprintf(&page, "%s %s\n", p.name, data)
	}
	scalingtest.Golden(t, "profiles.txt", page.String())
}

// TestScalerKeepsNothingOfTheCaller: changing the configuration that a Scaler was made of does not change it.
func TestScalerKeepsNothingOfTheCaller(t *testing.T) {
	c := proportional.HPA(scaling.Bounds{Min: 1, Max: 100}, inflight)
	s := build(t, c)
	c.RateLimits.Up.Limits[0].Replicas = 50
	c.Metrics[0].Target = 1
	_, d := s.Decide(proportional.State{}, start, holding(4, scaling.Exactly("inflight", 1000)))
	require.EqualValues(t, 8, d.Replicas, d.Explain())
}

func TestDamagedStateHolds(t *testing.T) {
	load := func(rest string) string {
		return `{"kind":"proportional","version":1,"state":{"seen":9000,"loads":[{"metric":"inflight","measure":1,` + rest +
			`}],"recommendations":{"lows":{"newest":0,"samples":[]},"highs":{"newest":0,"samples":[]}},"changes":{}}}`
	}
	good := load(`"since":1000,"last":2000,"window":{"samples":1,"buckets":[[1000,5,0],[2000,6,0]]}`)
	policy := scaling.New(build(t, proportional.KPA(scaling.Bounds{Min: 1, Max: 8}, inflight)))
	require.NoError(t, json.Unmarshal([]byte(good), policy))
	many := `{"kind":"proportional","version":1,"state":{"loads":[` + strings.Repeat(`{},`, proportional.MaxMetrics) + `{}]}}`
	for _, state := range []string{
		load(`"window":{"samples":1,"buckets":[[1000,5,0]]}`),
		load(`"since":3000,"last":2000,"window":{"samples":1,"buckets":[[1000,5,0]]}`),
		load(`"since":1000,"last":2000,"window":{"samples":0,"buckets":[[1000,5,0]]}`),
		load(`"since":1000,"last":2000,"window":{"samples":1,"buckets":[[2000,5,0],[1000,5,0]]}`),
		load(`"since":1000,"last":2000,"window":{"samples":1,"buckets":[[1000.5,5,0]]}`),
		load(`"since":1000,"last":2000,"window":{"samples":1,"buckets":[[1000,-5,0]]}`),
		load(`"since":1000,"last":2000,"window":{"samples":1,"buckets":[[1000,5,-1]]}`),
		load(`"since":1000,"last":2000,"window":{"samples":1,"buckets":[[1000,1e300,0]]}`),
		load(`"since":1000,"last":2000,"window":{"samples":1,"buckets":[[1000,1,0]` + strings.Repeat(`,[1000,1,0]`, proportional.MaxBuckets+1) + `]}`),
		load(`"since":1000,"last":2000,"window":7`),
		load(`"since":1000,"last":9001,"window":{"samples":1,"buckets":[[1000,5,0]]}`),
		`{"kind":"proportional","version":1,"state":{"panic":5}}`,
		`{"kind":"proportional","version":1,"state":{"seen":4,"panic":5}}`,
		many,
		`{"kind":"proportional","version":1,"state":{"seen":"yesterday"}}`,
		`{"kind":"proportional","version":1,"state":{"unheard":1}}`,
	} {
		policy := scaling.New(build(t, proportional.KPA(scaling.Bounds{Min: 1, Max: 8}, inflight)))
		require.Error(t, json.Unmarshal([]byte(state), policy), state)
		d := policy.Decide(start, scaling.Observation{SpecReplicas: 9})
		require.Equal(t, scaling.Unknown, d.Verdict)
	}
}

// TestStateIsSmall: KPA's filled windows of one metric take at most 2 kB.
func TestStateIsSmall(t *testing.T) {
	policy := scaling.New(build(t, proportional.KPA(scaling.Bounds{Min: 1, Max: 8}, inflight)))
	for i := range 300 {
		policy.Decide(at(float64(i)), holding(3, scaling.Exactly("inflight", 27.25+float64(i%3))))
	}
	data, err := json.Marshal(policy)
	require.NoError(t, err)
	require.LessOrEqual(t, len(data), 2048)
	t.Logf("%d bytes", len(data))
}

func TestNames(t *testing.T) {
	for m, want := range map[proportional.Measure]string{
		proportional.PerPod: "PerPod", proportional.Total: "Total", proportional.Average: "Average", 7: "Measure(7)",
	} {
		require.Equal(t, want, m.String())
	}
	require.Equal(t, scaling.Kind{Name: "proportional", Version: 1}, proportional.Scaler{}.Kind())
}

// TestMetricsThatStayKeepTheirWindows: another target, another metric beside it, another order: the loads that were
// seen are still true. Another measure makes them another load.
func TestMetricsThatStayKeepTheirWindows(t *testing.T) {
	c := proportional.KPA(scaling.Bounds{Min: 1, Max: 50}, inflight)
	var state proportional.State
	for i := range 120 {
		state, _ = build(t, c).Decide(state, at(float64(i)), holding(4, scaling.Exactly("inflight", 40)))
	}
	c.Metrics = []proportional.Metric{{Name: "queue", Target: 1, Measure: proportional.Total}, inflight}
	c.Metrics[1].Target = 5
	_, d := build(t, c).Decide(copied(t, state), at(121), holding(4))
	require.Equal(t, "Up 4 -> 8: AboveTarget inflight load=40 > limit=20, target=5", d.Reason()) // and panics, which moves nothing
	c.Metrics[1].Measure = proportional.PerPod
	_, d = build(t, c).Decide(copied(t, state), at(121), holding(4))
	require.Equal(t, scaling.Unknown, d.Verdict)
}

func TestAllocatesNothingOnceFilled(t *testing.T) {
	s := build(t, proportional.LLM(scaling.Bounds{Min: 1, Max: 50}, inflight))
	var state proportional.State
	now := start
	obs := holding(4, scaling.Reading{Metric: "inflight", Lower: 39, Upper: 41, Values: 3, Failed: 1})
	tick := func() {
		now = now.Add(time.Second)
		state, _ = s.Decide(state, now, obs)
	}
	for range 500 {
		tick()
	}
	require.Zero(t, testing.AllocsPerRun(1000, tick))
}
