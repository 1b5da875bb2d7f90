package capacity

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// TestAQueueWithoutAnUpperEndIsNotNone: it counted as empty, so that more seemed to have come than with an upper end that was
// known. Of pods that are not ready it still does, where all gauges have such pods: they have none.
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
	require.Equal(t, Waiting, missing, "the other gauges have no such pod")
	for i := range obs.Readings {
		obs.Readings[i].NotReady, obs.Readings[i].Upper = 1, math.Inf(1)
	}
	for range 2 {
		s, missing := read(start(), &obs, slo())
		require.Empty(t, missing)
		require.Equal(t, s.Waiting, s.Queue)
		obs.Readings[2].Failed = 1 // of a pod that is ready, the caches are not known
	}
}

// TestRegressionAnUncertainQueueBesideAPodThatIsNotReady: the lower end of what waits was taken for all of it, although a pod that is
// not ready does not explain why the queue alone is uncertain. The lower it was, the more seemed to have come since. A fresh seed of
// MissingNeverActs found it.
func TestRegressionAnUncertainQueueBesideAPodThatIsNotReady(t *testing.T) {
	obs := observation(4, 0, 20, 100, 1500, 200)
	obs.Readings[0] = scaling.Reading{Metric: Waiting, Lower: 9, Upper: 10, Values: 4, NotReady: 1}
	x, missing := read(start(), &obs, slo())
	require.Empty(t, missing)
	require.InDelta(t, 45, x.Waiting, 0)
	require.InDelta(t, 50, x.queued(), 0)
}

// TestRegressionAPodThatDidNotAnswerHasNoQueue: where such a pod had an upper end, more may have waited before, so that fewer had certainly
// come since, and the policy asked for fewer replicas than without one. A fresh seed of MissingNeverActs found it.
func TestRegressionAPodThatDidNotAnswerHasNoQueue(t *testing.T) {
	obs := observation(2, 6, 20, 100, 1500, 200)
	for _, most := range []float64{4, 12, math.Inf(1)} {
		obs.Readings[0] = scaling.Reading{Metric: Waiting, Lower: 3, Upper: most, Values: 1, Failed: 1}
		x, missing := read(start(), &obs, slo())
		require.Empty(t, missing)
		require.True(t, x.Partly)
		require.InDelta(t, 6, x.queued(), 0, "what waits at the pods that answered")
	}
}

// TestSilentPodsAreVague: of pods that start it is known that they have nothing, but not of silent ones beside them, and not where
// one of the gauges alone is an interval.
func TestSilentPodsAreVague(t *testing.T) {
	for _, row := range []struct {
		gauges int
		failed int32
		vague  bool
	}{
		{gauges: 3}, {gauges: 3, failed: 1, vague: true}, {gauges: 1, vague: true}, {gauges: 1, failed: 1, vague: true}, {gauges: 0},
	} {
		obs := observation(4, 0, 20, 100, 1500, 200)
		for i := range obs.Readings {
			obs.Readings[i].NotReady = 1
		}
		for i := range row.gauges {
			obs.Readings[i].Failed, obs.Readings[i].Upper = row.failed, math.Inf(1)
		}
		x, missing := read(start(), &obs, slo())
		require.Empty(t, missing)
		require.Equal(t, row.vague, x.Vague)
		require.Equal(t, row.failed, x.Silent)
	}
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

// TestWithoutAMetricNothingIsKnown leaves each metric out, and breaks it.
func TestWithoutAMetricNothingIsKnown(t *testing.T) {
	scaler := build(t, config(), nil)
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
	p := fixed(trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0})
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

// partly is what four replicas show of which so many are silent; so many requests of the others were seen.
func partly(silent int32, seen float64) scaling.Observation {
	obs := observation(4, 0, 20, seen, 1500, 200)
	for k := range obs.Histograms {
		obs.Histograms[k].Failed = silent
	}
	for k := range obs.Readings {
		if r := &obs.Readings[k]; silent > 0 {
			r.Lower *= float64(r.Values-silent) / float64(r.Values)
			r.Values, r.Failed, r.Upper = r.Values-silent, silent, math.Inf(1)
		}
	}
	return obs
}

// TestSilentPodsAtTheStartAreNoSurge: two of four pods are silent when a state begins, and answer later, one at once or one after
// the other. Each had served a million requests by then, that seemed to have come since: 66,467 requests/s for 8.
func TestSilentPodsAtTheStartAreNoSurge(t *testing.T) {
	for name, silent := range map[string][]int32{"at once": {2, 2, 2, 0}, "one by one": {2, 1, 1, 0}, "at the end": {2, 2, 2, 2}} {
		t.Run(name, func(t *testing.T) {
			s, each := State{}, 1e6
			for i := range 120 {
				each += 2 * 15
				k := silent[min(i/20, 3)]
				showTo(t, &s, start().Add(time.Duration(i)*15*time.Second), partly(k, float64(4-k)*each))
				for _, w := range [...]float64{15, 60, 300, 900} {
					require.LessOrEqual(t, first(s.rate(w)), 8+1e-6, "%d s, the last %v s", 15*i, w)
				}
				require.LessOrEqual(t, surging(s.back(30), s.last(), 1), 8+1e-6)
			}
			require.InDelta(t, 2*float64(4-silent[3]), first(s.rate(60)), 1e-6)
		})
	}
}

// TestAPodThatIsAlwaysSilentMakesNothingForgotten: one pod of four never answers, and another misses a scrape every minute. What the
// others counted stays known.
func TestAPodThatIsAlwaysSilentMakesNothingForgotten(t *testing.T) {
	s, each, last := State{}, 1e6, 1e6
	for i := range 120 {
		each += 2 * 15
		silent := int32(1)
		if i%4 == 3 {
			silent = 2
		} else {
			last = each
		}
		showTo(t, &s, start().Add(time.Duration(i)*15*time.Second), partly(silent, 2*each+last))
	}
	require.Equal(t, s.Samples[0].At, s.Began)
	require.InDelta(t, 6, first(s.rate(60)), 0.1)
}

// TestPodsThatWereSilentForHoursAreNoSurge: when they answer, no sample is left of the time before they were silent.
func TestPodsThatWereSilentForHoursAreNoSurge(t *testing.T) {
	s, each, last := State{}, 1e6, 1e6
	for i := range 1200 {
		each += 2 * 15
		silent := int32(2)
		if i < 20 || i >= 1100 {
			silent, last = 0, each
		}
		showTo(t, &s, start().Add(time.Duration(i)*15*time.Second), partly(silent, 2*each+2*last))
		for _, w := range [...]float64{15, 60, 300, 900} {
			require.LessOrEqual(t, first(s.rate(w)), 8+1e-6, "%d s, the last %v s", 15*i, w)
		}
	}
	require.InDelta(t, 8, first(s.rate(60)), 1e-6)
}

// TestCountersOfASilentPodAreNoBurstInReplays: what two of four pods counted while they were silent was replayed as if it had come
// when they answered, at once or one after the other. What the others counted of a burst meanwhile stays one.
func TestCountersOfASilentPodAreNoBurstInReplays(t *testing.T) {
	for name, silent := range map[string][]int32{"at once": {0, 2, 2, 2, 0}, "one by one": {0, 1, 2, 1, 0}, "one stays": {0, 1, 2, 2, 1}, "at the start": {2, 1, 1, 1, 0}} {
		t.Run(name, func(t *testing.T) {
			r, err := NewRecorder(config())
			require.NoError(t, err)
			var each, seen [4]float64
			burst := func(i int) bool { return i == 95 }
			for i := range 200 {
				total := 0.0
				for k := range each {
					if each[k] += 30; burst(i) {
						each[k] += 60
					}
					if k >= int(silent[i/40]) {
						seen[k] = each[k]
					}
					total += seen[k]
				}
				require.True(t, r.See(start().Add(time.Duration(i)*15*time.Second), partly(silent[i/40], total)))
			}
			p := r.Past(0)
			for i := 1; i < len(p.Samples); i++ {
				at := (p.Samples[i].At - seconds(start())) / 15
				if burst(int(at + 0.5)) {
					require.Greater(t, p.came(i), 250.0)
				} else {
					require.Less(t, p.came(i), 140.0, "%v", at)
				}
				require.False(t, p.Samples[i].fell(&p.Samples[i-1]))
			}
		})
	}
}

// TestASpreadPastIsOfTheSameCounts: whatever was silent, counts grow to what they were in the end, and samples stay as they are after
// which fewer pods are never silent.
func TestASpreadPastIsOfTheSameCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Past
		x := Sample{At: 1e9}
		for range rapid.IntRange(1, 40).Draw(t, "samples") {
			x.At += rapid.SampledFrom([]float64{15, 15, 1, 600, 0}).Draw(t, "later")
			more := rapid.SampledFrom([]float64{0, 120, 150, 5e-324, 1e300}).Draw(t, "more")
			x.Firsts, x.Timed = x.Firsts+more, x.Timed+math.Floor(more/2)
			x.Running = rapid.Float64Range(0, 100).Draw(t, "running")
			x.Absent = rapid.SampledFrom([]int32{0, 0, 1, 2, 3}).Draw(t, "absent")
			p.Samples = append(p.Samples, x)
		}
		was := slices.Clone(p.Samples)
		p.spread()
		for i := range p.Samples {
			require.True(t, p.Samples[i].valid())
			if i > 0 {
				require.False(t, p.Samples[i].fell(&p.Samples[i-1]), "%d", i)
			}
			least := !slices.ContainsFunc(was[i:], func(x Sample) bool { return x.Absent < was[i].Absent })
			if i == 0 || least {
				require.Equal(t, was[i], p.Samples[i])
			}
		}
	})
}

// TestASurgeIsSeenBesideASilentPod: the rate began at the last sample that was whole, so that of 60 requests/s after 6, of which one
// of four pods showed none, 5.8 were seen after two minutes when that pod had been silent for an hour.
func TestASurgeIsSeenBesideASilentPod(t *testing.T) {
	for name, from := range map[string]int{"for an hour": 1, "since the start": 0, "for a minute": 236} {
		t.Run(name, func(t *testing.T) {
			p, s := fixed(trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0}), State{}
			seen, each, now, d := 3e6, 1e6, start(), scaling.Decision{}
			for i := range 249 {
				rate := 6.0
				if i > 240 {
					rate = 60
				}
				each += rate / 4 * 15
				silent := int32(0)
				if i >= from {
					silent = 1
					seen += 3 * rate / 4 * 15
				} else {
					seen += rate * 15
				}
				now = now.Add(15 * time.Second)
				showTo(t, &s, now, partly(silent, seen))
				d = p.Decide(now, partly(silent, seen))
			}
			require.InDelta(t, 45, s.steady(), 1e-6)
			c := Scaler{config: &Config{SLO: slo()}}
			try := trial{PromptToken: 1, Dispersion: 1}
			came := c.came(&s, &try, 100, &scaling.Decision{})
			require.InEpsilon(t, 45, came.work/came.each, 1e-6)
			require.Equal(t, scaling.Up, d.Verdict, d.Explain())
		})
	}
}

// TestAPodThatTakesAnothersSilenceIsNoSurge: pods that answer in turn, as many at each time, show in one sample what each had counted in
// its silence, be it an hour; as much in each of them is what came.
func TestAPodThatTakesAnothersSilenceIsNoSurge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := State{}, start()
		var each, seen [4]float64
		silent, since := 3, 0
		for i := range rapid.IntRange(10, 300).Draw(t, "samples") {
			if i-since > 20 && rapid.IntRange(0, 9).Draw(t, "turn") == 0 {
				silent, since = (silent+1)%4, i
			}
			total := 0.0
			for k := range each {
				if each[k] += 30; k != silent {
					seen[k] = each[k]
				}
				total += seen[k]
			}
			now = now.Add(15 * time.Second)
			obs := partly(1, total)
			x, _ := read(now, &obs, slo())
			s.see(x, &obs)
			require.LessOrEqual(t, s.steady(), 8+1e-6, "%d", i)
		}
	})
}

// TestPodsThatAnswerAtLastTakeNothingAway: until a rate is known again, what runs is kept, as at a fresh start.
func TestPodsThatAnswerAtLastTakeNothingAway(t *testing.T) {
	scaler := build(t, config(), found(someTrial()))
	p, each := scaling.New(scaler), 1e6
	for i := range 120 {
		each += 2 * 15
		silent := int32(0)
		if i < 60 {
			silent = 2
		}
		d := p.Decide(start().Add(time.Duration(i)*15*time.Second), partly(silent, float64(4-silent)*each))
		if i < 80 {
			require.NotEqual(t, scaling.Down, d.Verdict, "%d s: %s", 15*i, d.Explain())
		}
	}
}

// TestReplicasThatStartKeepNoOthers: nothing was taken away while a pod was not ready, though it has nothing: where starts take ten minutes a
// fleet that grew by one for a moment stayed as large for as long.
func TestReplicasThatStartKeepNoOthers(t *testing.T) {
	p := fixed(trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0})
	for i := range 40 {
		obs := observation(6, 0, 20, float64(i+1)*15, 1500, 200)
		obs.SpecReplicas = 8
		for k := range obs.Readings {
			obs.Readings[k].NotReady, obs.Readings[k].Upper = 2, math.Inf(1)
		}
		d := p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
		require.LessOrEqual(t, d.Replicas, int32(8), d.Explain())
		if i == 39 {
			require.Equal(t, scaling.Down, d.Verdict, d.Explain())
		}
	}
}

// TestNothingIsTakenAwayWhileCachesAreVague: full caches that are known within limits only may be full.
func TestNothingIsTakenAwayWhileCachesAreVague(t *testing.T) {
	p := fixed(trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0})
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
		p := fixed(trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 60})
		decide := func(i int, waiting float64) scaling.Decision {
			obs := observation(6, waiting, 20, float64(i+1)*75, 1500, 200)
			for k := range obs.Histograms {
				obs.Histograms[k].Failed = silent
			}
			for k := range obs.Readings {
				if r := &obs.Readings[k]; silent > 0 {
					r.Values, r.Failed, r.Upper = r.Values-silent, silent, math.Inf(1)
				}
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
	p := fixed(trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 0})
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

// TestOldCountsSayNothing keeps the time of the scrape, while the clock goes on.
func TestOldCountsSayNothing(t *testing.T) {
	c := config()
	p := scaling.New(Scaler{config: &c, fixed: &trial{Capacity: 0.5, Fleet: 100, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 60}})
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

// first returns what is certain of a rate.
func first(rate, _ float64) float64 { return rate }

// TestRegressionHugeCountsLeaveAStateThatCanBeStored: one pod whose page said 1e200 answers and 1e155 prompt tokens made the work
// infinite, and for an hour the state could not be written as JSON.
func TestRegressionHugeCountsLeaveAStateThatCanBeStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := scaling.New(build(t, config(), found{Capacity: 0.5, Fleet: 0.7, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 600}))
		for i := range 8 {
			obs := observation(4, 0, 20, 50*float64(i), 1500, 200)
			if i > 3 {
				huge := rapid.SampledFrom([]float64{0, 5e15, 1e20, 1e155, 1e200, math.MaxFloat64})
				h := &obs.Histograms[rapid.IntRange(0, len(obs.Histograms)-1).Draw(t, "histogram")]
				h.Counts[0] = max(h.Counts[0], huge.Draw(t, "count"))
				obs.Histograms[rapid.IntRange(0, len(obs.Histograms)-1).Draw(t, "other histogram")].Sum += huge.Draw(t, "sum")
			}
			p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
			data, err := json.Marshal(p)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, scaling.New(build(t, config(), quiet{}))))
		}
	})
}

// TestRegressionHugeCountsHideNoLoad: beside one pod whose page said 1e20 first tokens no arrivals were seen, and of eight
// replicas six went.
func TestRegressionHugeCountsHideNoLoad(t *testing.T) {
	p := scaling.New(build(t, config(), found{Capacity: 0.5, Fleet: 0.7, PromptToken: 1e-4, AnswerToken: 2e-4}))
	for i := range 80 {
		obs := observation(8, 0, 20, 250*float64(i), 1500, 200)
		if i > 40 {
			obs.Histograms[2].Counts[0] += 1e20
		}
		d := p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
		require.GreaterOrEqual(t, d.Replicas, int32(8), d.Explain())
	}
}

// TestCountsThatAreTooLargeTogetherBeginAnew: otherwise they would make every later sample one that is not used.
func TestCountsThatAreTooLargeTogetherBeginAnew(t *testing.T) {
	p := scaling.New(build(t, config(), quiet{}))
	var d scaling.Decision
	for i := range 80 {
		served := 50 * float64(i%20)
		if i == 19 || i == 39 || i == 59 {
			served = 6e11 // 1.2e14 tokens of answers, 9e14 of prompts
		}
		obs := observation(4, 0, 20, served, 15000, 200)
		d = p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
		require.NotEqual(t, scaling.Unknown, d.Verdict, "%d: %s", i, d.Explain())
	}
}
