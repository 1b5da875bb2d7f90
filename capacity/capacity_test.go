package capacity

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

func start() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func slo() sim.SLO { return sim.SLO{TTFT: 3 * time.Second, TPOT: 100 * time.Millisecond} }

func config() Config {
	c := For(scaling.Bounds{Min: 1, Max: 32}, slo(), sim.Qwen32B())
	c.ColdStart = 100 * time.Second
	return c
}

// day is an hour of made-up traffic that rises and falls between two rates, in requests a second.
func day(low, high float64) sim.Scenario {
	length := func(mean, deviation float64, most int32) sim.Length {
		return sim.Length{Mean: mean, Deviation: deviation, Min: 1, Max: most, LogNormal: true}
	}
	var rates []sim.Rate
	for i := range 60 {
		rates = append(rates, sim.Rate{PerSecond: low + (high-low)*(1-math.Abs(float64(i)/30-1))})
	}
	return sim.Scenario{
		Name: "day", Start: start(), Router: sim.LeastLoaded, SLO: slo(), Metrics: Metrics(),
		Workload: sim.Series{Step: time.Minute, Rates: rates, Input: length(4000, 4000, 30000), Output: length(200, 200, 3000)},
		Types:    []sim.Type{{Server: sim.Qwen32B(), Initial: 3, Startup: sim.ColdStart(100 * time.Second)}},
		Scrape:   sim.Scrape{Interval: 15 * time.Second}, Control: sim.Control{Interval: 15 * time.Second}, Grace: 5 * time.Minute,
	}
}

func run(tb testing.TB, s *sim.Scenario, c Config, tuner Tuner) sim.Result {
	tb.Helper()
	return runPolicy(tb, s, func() (scaling.Group, error) {
		scaler, err := New(c, tuner)
		return scaling.GroupOf(scaling.New(scaler)), err
	})
}

func build(t require.TestingT, c Config, tuner Tuner) Scaler {
	s, err := New(c, tuner)
	require.NoError(t, err)
	return s
}

func runPolicy(tb testing.TB, s *sim.Scenario, policy func() (scaling.Group, error)) sim.Result {
	tb.Helper()
	r, err := sim.Run(context.Background(), s, policy, sim.Options{Seed: 1})
	require.NoError(tb, err)
	return r
}

// TestKeepsTheGoalWhateverTheServerIsSaidToBe runs a server that is as the configuration says, and ones that are slower
// and faster: calibration finds out.
func TestKeepsTheGoalWhateverTheServerIsSaidToBe(t *testing.T) {
	long.Skip(t)
	s := day(2, 20)
	least, most := math.Inf(1), 0.0
	for _, said := range []float64{0.75, 1, 1.3} {
		c := config()
		c.Server = slower(c.Server, said)
		r := run(t, &s, c, nil)
		assert.GreaterOrEqual(t, r.Attainment, 0.99, "said to take %g of its time", said)
		least, most = min(least, r.ReplicaHours), max(most, r.ReplicaHours)
	}
	assert.Less(t, most, least*1.25, "what the server is said to be decides the cost")
	fixed := 0.0
	for n := int32(1); fixed < 0.99; n++ {
		f := s
		f.Types = []sim.Type{{Server: sim.Qwen32B(), Initial: n}}
		r, err := sim.Run(context.Background(), &f, func() (scaling.Group, error) { return sim.Static(n), nil }, sim.Options{Seed: 1})
		require.NoError(t, err)
		if fixed = r.Attainment; fixed >= 0.99 {
			assert.Less(t, most, r.ReplicaHours, "a fleet that is never scaled is cheaper")
		}
	}
}

// TestSlownessIsWhatTheServerIs calibrates servers that are said to be what they are not.
func TestSlownessIsWhatTheServerIs(t *testing.T) {
	long.Skip(t)
	for _, said := range []float64{0.5, 1.25} {
		s := day(1, 6)
		var tuned Tuning
		c := config()
		c.Server = slower(c.Server, said)
		run(t, &s, c, watch(func(x Tuning) { tuned = x }))
		assert.InDelta(t, 1, tuned.Slowness*said, 0.1, "said to take %g of its time", said)
	}
}

type watch func(Tuning)

func (w watch) Tune(c *Config, past func() Past) (Tuning, bool) {
	t, ok := Inline{}.Tune(c, past)
	w(t)
	return t, ok
}

// TestBackgroundFindsTheSame tunes beside the decisions what Inline tunes inside them.
func TestBackgroundFindsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long where a program is emulated")
	}
	s, least := day(1, 6), 5
	if long.Slow() { // two tunings have as many goroutines
		w := s.Workload.(sim.Series)
		w.Rates = w.Rates[:20]
		s.Workload, least = w, 1
	}
	n := 0
	run(t, &s, config(), both{t, &Background{}, &n})
	assert.Greater(t, n, least)
}

type both struct {
	t *testing.T
	b *Background
	n *int
}

func (b both) Tune(c *Config, past func() Past) (Tuning, bool) {
	want, _ := Inline{}.Tune(c, past)
	for range 1_000_000 {
		if got, ok := b.b.Tune(c, past); ok {
			assert.Equal(b.t, want, got)
			*b.n++
			return got, true
		}
		time.Sleep(time.Millisecond) // of the goroutine, at most a thousand seconds
	}
	b.t.Fatal("it never ends")
	return Tuning{}, false
}

func TestZeroScalerDecidesUnknown(t *testing.T) {
	p := scaling.New(Scaler{})
	d := p.Decide(start(), observation(4, 0, 10, 100, 1000, 100))
	assert.Equal(t, scaling.Unknown, d.Verdict)
	assert.Equal(t, scaling.NotConfigured, d.Code())
	_, err := New(Config{}, nil)
	for _, field := range []string{"bounds", "slo.ttft", "slo.tpot", "goal", "server", "coldStart", "scrape", "control"} {
		assert.ErrorContains(t, err, field)
	}
}

// fixed is a policy whose capacity is given, as in a replay.
func fixed(try trial) scaling.Policy {
	c := config()
	return scaling.New(Scaler{config: &c, fixed: &try})
}

func genTrial(t *rapid.T) trial {
	capacity := rapid.Float64Range(0.05, 2).Draw(t, "capacity")
	return trial{
		Capacity: capacity, PromptToken: 1e-4, AnswerToken: 2e-4,
		Fleet: capacity * rapid.Float64Range(1, 2).Draw(t, "fleet over capacity"), Mean: rapid.Float64Range(0, 4).Draw(t, "mean"),
		Hold: rapid.SampledFrom([]float64{0, 60, 900}).Draw(t, "hold"), Trend: rapid.Bool().Draw(t, "trend"), Level: rapid.Bool().Draw(t, "level"),
	}
}

// TestOnlyTheRatioOfWorkToCapacityCounts multiplies the work of tokens and the capacity by the same number.
func TestOnlyTheRatioOfWorkToCapacityCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		try := genTrial(t)
		other := try
		times := math.Exp2(float64(rapid.IntRange(-8, 8).Draw(t, "times"))) // exact in floating point
		other.Capacity, other.PromptToken, other.AnswerToken = try.Capacity*times, try.PromptToken*times, try.AnswerToken*times
		other.Fleet, other.Mean = try.Fleet*times, try.Mean*times
		p, q := fixed(try), fixed(other)
		served, spec := 0.0, int32(4)
		for i := range 40 {
			served += rapid.Float64Range(0, 300).Draw(t, "came")
			now, obs := start().Add(time.Duration(i)*15*time.Second), observation(spec, 0, 20, served, 1500, 200)
			a, b := p.Decide(now, obs), q.Decide(now, obs)
			require.Equal(t, a.Replicas, b.Replicas)
			spec = a.Replicas
		}
	})
}

// TestMoreWorkNeverNeedsFewer compares two fleets alike, of which one has more to do from some time on.
func TestMoreWorkNeverNeedsFewer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		try := genTrial(t)
		try.Trend = false // a trend may be above or below that of more traffic
		p, q := fixed(try), fixed(try)
		less, more := 0.0, 0.0
		for i := range 40 {
			came := rapid.Float64Range(0, 300).Draw(t, "came")
			less += came
			more += came + rapid.Float64Range(0, 100).Draw(t, "more")
			now := start().Add(time.Duration(i) * 15 * time.Second)
			a, b := p.Decide(now, observation(4, 0, 20, less, 1500, 200)), q.Decide(now, observation(4, 0, 20, more, 1500, 200))
			require.GreaterOrEqual(t, b.Replicas, a.Replicas)
		}
	})
}

func (quiet) Tune(_ *Config, past func() Past) (Tuning, bool) { return past().Last, true }

// TestSteadyStateAllocatesNothing decides at rest.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	scaler := build(t, config(), quiet{})
	s := State{Tuning: Tuning{trial: trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 300}, Requests: 100}}
	i := 0
	obs := observation(4, 0, 20, 0, 1500, 200)
	decide := func() {
		i++
		for k := range obs.Histograms {
			obs.Histograms[k].Counts[0] += 150
			obs.Histograms[k].Sum += 150 * obs.Histograms[k].Bounds[0]
		}
		s, _ = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), obs)
	}
	decide()
	s.Tuned = math.MaxFloat64 // no tuning is due
	for range 2000 {
		decide()
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(2000, decide), 0.5)
}

// BenchmarkDecide is a decision between two tunings.
func BenchmarkDecide(b *testing.B) {
	scaler := build(b, config(), quiet{})
	s := State{Tuning: Tuning{trial: trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 300}, Requests: 100}}
	obs := observation(4, 0, 20, 0, 1500, 200)
	i, now := 0, start()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(15 * time.Second)
		if i++; i == 2 {
			s.Tuned = math.MaxFloat64 // no tuning is due
		}
		for k := range obs.Histograms {
			obs.Histograms[k].Counts[0] += 150
			obs.Histograms[k].Sum += 150 * obs.Histograms[k].Bounds[0]
		}
		s, _ = scaler.Decide(s, now, obs)
	}
}

// BenchmarkRound is a round of package loop at rest, after two hours, with a tuning every five minutes: what is gathered, some 100 KB
// as JSON, is copied once and not marshalled.
func BenchmarkRound(b *testing.B) {
	s := build(b, config(), found(someTrial()))
	l, err := loop.New(scaling.GroupOf(scaling.New(s)), loop.Config{Period: 15 * time.Second, Conflicts: 3})
	require.NoError(b, err)
	require.NoError(b, l.Restore(nil))
	now, replicas, served := start(), int32(4), 0.0
	round := func() {
		now, served = now.Add(15*time.Second), served+400
		obs := observation(replicas, 0, 20, served, 1500, 200)
		l.Read(now, loop.Target{Name: "x", ID: "1", Version: "1", Replicas: replicas})
		step := l.Decide(now, scaling.GroupObservation{Targets: []scaling.TargetObservation{{ReadyReplicas: replicas}}, Readings: obs.Readings, Histograms: obs.Histograms})
		if replicas = step.Targets[0].Replicas; step.Store != nil {
			l.Saved(nil)
		}
		l.Advance(now)
	}
	for range 480 {
		round()
	}
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
}

// BenchmarkTune is one tuning of an hour of about 16,000 requests.
func BenchmarkTune(b *testing.B) {
	s := day(1, 6)
	var past Past
	c := config()
	run(b, &s, c, keep(func(p Past) { past = p }))
	b.ReportAllocs()
	for b.Loop() {
		past.Tune(&c)
	}
}

type keep func(Past)

func (k keep) Tune(c *Config, past func() Past) (Tuning, bool) {
	k(past())
	return Inline{}.Tune(c, past)
}

// TestDemandIsWhatWasDecidedOn reads the work and the capacity off a decision; of silent pods it has no upper end.
func TestDemandIsWhatWasDecidedOn(t *testing.T) {
	obs := observation(2, 0, 10, 100, 500, 100)
	d := scaling.HoldAt(2)
	_, each := Demand(&obs, &d)
	assert.Zero(t, each, "nothing was decided")
	d.To(3, AboveCapacity, "", 3, 2, 1.5, 0.6)
	work, each := Demand(&obs, &d)
	assert.Equal(t, scaling.Exactly("work", 1.5), work)
	assert.InDelta(t, 0.6, each, 0)
	idle := scaling.HoldAt(2)
	idle.To(1, Unused, "", 3600, 3600, 0.6)
	work, each = Demand(&obs, &idle)
	assert.Equal(t, scaling.Exactly("work", 0), work)
	assert.InDelta(t, 0.6, each, 0)
	obs.Histograms[2].Failed = 1
	work, _ = Demand(&obs, &d)
	assert.True(t, math.IsInf(work.Upper, 1))
	assert.Equal(t, int32(1), work.Failed)
}
