package capacity

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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
	r, err := sim.Run(context.Background(), s, func() (scaling.Group, error) {
		scaler, err := New(c, tuner)
		return scaling.GroupOf(scaling.New(scaler)), err
	}, sim.Options{Seed: 1})
	require.NoError(tb, err)
	return r
}

// TestKeepsTheGoalWhateverTheServerIsSaidToBe runs a server that is as the configuration says, and ones that are slower
// and faster: calibration finds out.
func TestKeepsTheGoalWhateverTheServerIsSaidToBe(t *testing.T) {
	if underRace {
		t.Skip("has no goroutines, and takes minutes under the race detector")
	}
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
	if underRace {
		t.Skip("has no goroutines, and takes minutes under the race detector")
	}
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
	s := day(1, 6)
	n := 0
	run(t, &s, config(), both{t, &Background{}, &n})
	assert.Greater(t, n, 5)
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

// TestAQueueWithoutAnUpperEndIsNotNone: of pods that all answered it counted as empty, so that more seemed to have come than
// with an upper end that was known. Of pods that are not ready it still does: they have none.
func TestAQueueWithoutAnUpperEndIsNotNone(t *testing.T) {
	obs := observation(2, 0, 4, 100, 1000, 100)
	for i := range obs.Readings {
		if obs.Readings[i].Metric == Waiting {
			obs.Readings[i].Upper = math.Inf(1)
		}
	}
	_, missing := read(start(), &obs, slo())
	require.Equal(t, Waiting, missing)
	for i := range obs.Readings {
		if obs.Readings[i].Metric == Waiting {
			obs.Readings[i].NotReady = 1
		}
	}
	_, missing = read(start(), &obs, slo())
	require.Empty(t, missing)
}

// observation is what a fleet shows that has served so many requests of such lengths.
func observation(spec int32, waiting, running float64, served, prompt, answer float64) scaling.Observation {
	reading := func(name string, value float64) scaling.Reading {
		return scaling.Reading{Metric: name, Lower: value / float64(spec), Upper: value / float64(spec), Values: spec}
	}
	histogram := func(name string, n, each float64) scaling.Histogram {
		return scaling.Histogram{Metric: name, Bounds: []float64{each, 1e6}, Counts: []float64{n, 0, 0}, Sum: n * each}
	}
	return scaling.Observation{
		SpecReplicas: spec, ReadyReplicas: spec,
		Readings: []scaling.Reading{reading(Waiting, waiting), reading(Running, running), reading(KVUse, 0.2*float64(spec))},
		Histograms: []scaling.Histogram{
			histogram(PromptSize, served, prompt), histogram(AnswerSize, served, answer), histogram(Prefilled, served, prompt),
			histogram(TTFT, served, 0.5), histogram(TPOT, served, 0.05),
		},
	}
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

// TestWithoutAMetricNothingIsKnown leaves each metric out, and breaks it.
func TestWithoutAMetricNothingIsKnown(t *testing.T) {
	scaler, err := New(config(), nil)
	require.NoError(t, err)
	whole := observation(4, 0, 10, 100, 1000, 100)
	for i := range whole.Readings {
		obs := observation(4, 0, 10, 100, 1000, 100)
		obs.Readings[i].Lower = math.NaN()
		d := scaling.New(scaler).Decide(start(), obs)
		assert.Equal(t, scaling.Unknown, d.Verdict)
		assert.Contains(t, d.Reason(), whole.Readings[i].Metric)
	}
	for i := range whole.Histograms {
		obs := observation(4, 0, 10, 100, 1000, 100)
		obs.Histograms[i].Counts[0] = -1
		d := scaling.New(scaler).Decide(start(), obs)
		assert.Equal(t, scaling.Unknown, d.Verdict)
		assert.Contains(t, d.Reason(), whole.Histograms[i].Metric)
	}
}

// fixed is a policy whose capacity is given, as in a replay.
func fixed(try trial) scaling.Policy {
	c := config()
	return scaling.New(Scaler{config: &c, fixed: &try})
}

func genTrial(t *rapid.T) trial {
	return trial{
		Capacity: rapid.Float64Range(0.05, 2).Draw(t, "capacity"), PromptToken: 1e-4, AnswerToken: 2e-4,
		Hold: rapid.SampledFrom([]float64{0, 60, 900}).Draw(t, "hold"), Trend: rapid.Bool().Draw(t, "trend"),
	}
}

// TestOnlyTheRatioOfWorkToCapacityCounts multiplies the work of tokens and the capacity by the same number.
func TestOnlyTheRatioOfWorkToCapacityCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		try := genTrial(t)
		other := try
		times := math.Exp2(float64(rapid.IntRange(-8, 8).Draw(t, "times"))) // exact in floating point
		other.Capacity, other.PromptToken, other.AnswerToken = try.Capacity*times, try.PromptToken*times, try.AnswerToken*times
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

// TestSilentPodsNeverTakeAwayReplicas lets pods fail to answer, whatever they last said.
func TestSilentPodsNeverTakeAwayReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := fixed(genTrial(t))
		served := 0.0
		for i := range 40 {
			served += rapid.Float64Range(0, 300).Draw(t, "came")
			obs := observation(6, 0, 20, served, 1500, 200)
			silent := rapid.IntRange(0, 2).Draw(t, "silent") == 0
			if silent {
				k := rapid.IntRange(0, len(obs.Readings)+len(obs.Histograms)-1).Draw(t, "which")
				if k < len(obs.Readings) {
					obs.Readings[k].Failed, obs.Readings[k].Values = 2, 4
					obs.Readings[k].Upper = math.Inf(1)
				} else {
					obs.Histograms[k-len(obs.Readings)].Failed = 2
				}
			}
			if d := p.Decide(start().Add(time.Duration(i)*15*time.Second), obs); silent {
				require.NotEqual(t, scaling.Down, d.Verdict, d.Explain())
			}
		}
	})
}

// TestCountersOfASilentPodDoNotComeAsABurst: what a pod counted while it was silent came over all of that time.
func TestCountersOfASilentPodDoNotComeAsABurst(t *testing.T) {
	p := fixed(trial{Capacity: 0.5, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0})
	at := func(i int) time.Time { return start().Add(time.Duration(i) * 15 * time.Second) }
	served := 0.0
	want := int32(0)
	for i := range 20 {
		served += 150
		want = p.Decide(at(i), observation(4, 0, 20, served, 1500, 200)).Replicas
	}
	seen := served
	for i := 20; i < 26; i++ { // half of it is not seen for a minute and a half
		served += 150
		seen += 75
		obs := observation(4, 0, 20, seen, 1500, 200)
		for k := range obs.Histograms {
			obs.Histograms[k].Failed = 2
		}
		assert.LessOrEqual(t, p.Decide(at(i), obs).Replicas, max(want, 4))
	}
	served += 150
	assert.Equal(t, want, p.Decide(at(26), observation(4, 0, 20, served, 1500, 200)).Replicas)
}

// TestNothingIsTakenAwayWhileCachesAreVague: full caches that are known within limits only may be full.
func TestNothingIsTakenAwayWhileCachesAreVague(t *testing.T) {
	p := fixed(trial{Capacity: 0.5, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0})
	for i := range 40 {
		obs := observation(6, 0, 20, float64(i+1)*15, 1500, 200)
		obs.Readings[2].Lower, obs.Readings[2].Upper = 0.1, 0.9
		d := p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
		require.Equal(t, int32(6), d.Replicas, d.Explain())
	}
	d := p.Decide(start().Add(40*15*time.Second), observation(6, 0, 20, 41*15, 1500, 200))
	require.Equal(t, scaling.Down, d.Verdict, d.Explain())
}

// TestRequestsThatWaitAreServed: a queue asks for more for as long as it is there, beside silent pods too, and whatever it
// asked for is not held.
func TestRequestsThatWaitAreServed(t *testing.T) {
	for _, silent := range []int32{0, 2} {
		p := fixed(trial{Capacity: 0.5, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 60})
		decide := func(i int, waiting float64) scaling.Decision {
			obs := observation(6, waiting, 20, float64(i+1)*75, 1500, 200)
			for k := range obs.Histograms {
				obs.Histograms[k].Failed = silent
			}
			return p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
		}
		for i := range 20 {
			decide(i, 900)
		}
		d := decide(20, 900)
		assert.Equal(t, Behind, d.Code(), d.Explain())
		assert.Greater(t, d.Replicas, int32(6), d.Explain())
		d = decide(21, 0)
		assert.NotEqual(t, Behind, d.Code(), d.Explain())
		assert.LessOrEqual(t, d.Replicas, int32(6), d.Explain())
	}
}

// TestAReaderThatBeginsAnewIsNoBurst lets all counters fall to what has come since.
func TestAReaderThatBeginsAnewIsNoBurst(t *testing.T) {
	p := fixed(trial{Capacity: 0.5, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0})
	at := func(i int) time.Time { return start().Add(time.Duration(i) * 15 * time.Second) }
	want := int32(0)
	for i := range 20 {
		want = p.Decide(at(i), observation(4, 0, 20, float64(i+1)*150, 1500, 200)).Replicas
	}
	for i := range 20 {
		got := p.Decide(at(20+i), observation(4, 0, 20, float64(i+1)*150, 1500, 200)).Replicas
		assert.Equal(t, want, got, "round %d", i)
	}
}

// TestRestartChangesNoDecision stores and restores the state between any two decisions of a run that tunes.
func TestRestartChangesNoDecision(t *testing.T) {
	if underRace {
		t.Skip("has no goroutines, and takes minutes under the race detector")
	}
	s := day(1, 6)
	plain := run(t, &s, config(), nil)
	scaler, err := New(config(), nil)
	require.NoError(t, err)
	r, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) {
		return scaling.GroupOf(&restored{scaling.New(scaler), scaler}), nil
	}, sim.Options{Seed: 1})
	require.NoError(t, err)
	assert.Equal(t, plain, r)
}

// restored is a policy that is a new one before each decision, with the stored state of the last.
type restored struct {
	scaling.Policy

	scaler Scaler
}

func (r *restored) Decide(now time.Time, obs scaling.Observation) scaling.Decision {
	data, err := json.Marshal(r.Policy)
	if err != nil {
		panic(err)
	}
	r.Policy = scaling.New(r.scaler)
	if err := r.UnmarshalJSON(data); err != nil {
		panic(err)
	}
	return r.Policy.Decide(now, obs)
}

// TestStateIsBounded runs for a day of decisions every second, and looks at what is stored.
func TestStateIsBounded(t *testing.T) {
	scaler, err := New(config(), quiet{})
	require.NoError(t, err)
	p := scaling.New(scaler)
	most := 0
	for i := range 20_000 {
		p.Decide(start().Add(time.Duration(i)*time.Second), observation(4, float64(i%7), 20, float64(i)*3.25, 1500, 200))
		if i%500 == 0 {
			data, err := json.Marshal(p)
			require.NoError(t, err)
			most = max(most, len(data))
		}
	}
	assert.Less(t, most, 256<<10)
}

// quiet leaves the tuning as it is.
type quiet struct{}

func (quiet) Tune(_ *Config, past func() Past) (Tuning, bool) { return past().Last, true }

// TestTrafficIsWhatCame makes requests of a past.
func TestTrafficIsWhatCame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Past{Lengths: []Sizes{{
			Prompts: Buckets{Bounds: []float64{100, 1000, 5000}, Counts: []float64{10, 60, 25, 5}, Sum: 150_000},
			Answers: Buckets{Bounds: []float64{50, 500}, Counts: []float64{40, 60, 0}, Sum: 15_000},
		}}}
		n := rapid.IntRange(2, 60).Draw(t, "samples")
		firsts := 0.0
		for i := range n {
			firsts += float64(rapid.IntRange(0, 200).Draw(t, "came"))
			p.Samples = append(p.Samples, Sample{At: 1e9 + 15*float64(i), Firsts: firsts})
		}
		requests, from, to := p.traffic(1e6, 1, 0)
		came := p.Samples[n-1].Firsts - p.Samples[0].Firsts
		require.Len(t, requests, int(came))
		require.Equal(t, 15*float64(n-1), to-from)
		last := time.Duration(0)
		for _, r := range requests {
			require.GreaterOrEqual(t, r.At, last)
			require.GreaterOrEqual(t, r.Input, int32(1))
			last = r.At
		}
		if came > 3000 {
			prompt, answer := means(requests)
			require.InEpsilon(t, 1500, prompt, 0.15)
			require.InEpsilon(t, 150, answer, 0.15)
		}
		again, _, _ := p.traffic(1e6, 1, 0)
		require.Equal(t, requests, again)
	})
}

// TestStoredStateIsChecked refuses what no Scaler can have stored.
func TestStoredStateIsChecked(t *testing.T) {
	for name, s := range map[string]State{
		"samples back in time": {Seen: Seen{Samples: []Sample{{At: 2}, {At: 1}}}},
		"a negative counter":   {Seen: Seen{Samples: []Sample{{At: 1, Firsts: -1}}}},
		"needs that rise":      {Seen: Seen{Needs: []Work{{1, 2}, {2, 3}}}},
		"buckets without ends": {Seen: Seen{Lengths: []Sizes{{Prompts: Buckets{Counts: []float64{1, 2}}}}}},
		"an unknown choice":    {Tuning: Tuning{Which: 17}},
		"a guard beyond all":   {Guard: 9},
		"a start of a year":    {Starts: []float64{3e7}},
	} {
		assert.Error(t, s.Validate(), name)
	}
	assert.NoError(t, State{}.Validate())
}

// TestStartsAreLearned asks for more and sees them ready later.
func TestStartsAreLearned(t *testing.T) {
	c := config()
	scaler, err := New(c, quiet{})
	require.NoError(t, err)
	s := State{}
	assert.Equal(t, 100.0, c.start(&s))
	now := start()
	s = scaler.Applied(s, now, 4, 6)
	for i := range 30 {
		obs := observation(6, 0, 10, float64(i)*100, 1000, 100)
		if obs.ReadyReplicas = 4; i >= 16 {
			obs.ReadyReplicas = 6
		}
		s, _ = scaler.Decide(s, now.Add(time.Duration(i)*15*time.Second), obs)
	}
	assert.Equal(t, []float64{240}, s.Starts)
	assert.Equal(t, 240.0, c.start(&s))
}

// TestSteadyStateAllocatesNothing decides at rest.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	scaler, err := New(config(), quiet{})
	require.NoError(t, err)
	s := State{Tuning: Tuning{trial: trial{Capacity: 0.5, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 300}, Requests: 100}}
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
	scaler, err := New(config(), quiet{})
	require.NoError(b, err)
	s := State{Tuning: Tuning{trial: trial{Capacity: 0.5, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 300}, Requests: 100}}
	obs := observation(4, 0, 20, 0, 1500, 200)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if i++; i == 2 {
			s.Tuned = math.MaxFloat64 // no tuning is due
		}
		for k := range obs.Histograms {
			obs.Histograms[k].Counts[0] += 150
			obs.Histograms[k].Sum += 150 * obs.Histograms[k].Bounds[0]
		}
		s, _ = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), obs)
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

// TestAClockThatStepsBackHoldsNothing steps the clock back by a day, and restores a state of a time to come: what is seen
// then counts at once, and counts are followed within minutes.
func TestAClockThatStepsBackHoldsNothing(t *testing.T) {
	c := config()
	scaler := Scaler{config: &c, fixed: &trial{Capacity: 0.5, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 60}}
	for _, jump := range []time.Duration{-time.Second, -24 * time.Hour, -250 * 365 * 24 * time.Hour} {
		s, d := State{}, scaling.Decision{}
		now, served := start(), 0.0
		for range 20 {
			now, served = now.Add(15*time.Second), served+150
			s, d = scaler.Decide(s, now, observation(4, 0, 20, served, 1500, 200))
		}
		before := d.Replicas
		now = now.Add(jump)
		for range 20 {
			now, served = now.Add(15*time.Second), served+1500
			s, d = scaler.Decide(s, now, observation(4, 0, 20, served, 1500, 200))
			require.NoError(t, s.Validate())
		}
		assert.Greater(t, d.Replicas, 5*before, "stepped by %s", jump)
	}
}

// TestOldCountsSayNothing keeps the time of the scrape, while the clock goes on.
func TestOldCountsSayNothing(t *testing.T) {
	c := config()
	p := scaling.New(Scaler{config: &c, fixed: &trial{Capacity: 0.5, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 60}})
	obs := observation(4, 0, 20, 1000, 1500, 200)
	for i := range obs.Histograms {
		obs.Histograms[i].At = start()
	}
	for i := range 20 {
		d := p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
		old := float64(i)*15 > c.stale()
		assert.Equal(t, old, d.Code() == Stale, "%d s", i*15)
		if old {
			assert.Equal(t, scaling.Unknown, d.Verdict)
		}
	}
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
	obs.Histograms[2].Failed = 1
	work, _ = Demand(&obs, &d)
	assert.True(t, math.IsInf(work.Upper, 1))
	assert.Equal(t, int32(1), work.Failed)
}
