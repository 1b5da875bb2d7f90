package sim

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/long"
)

// TestAgendaEqualsSearch: the heap gives what a search over all slots gives.
func TestAgendaEqualsSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const slots = 12
		var a agenda
		a.grow(slots)
		due := [slots]int64{}
		for i := range due {
			due[i] = never
			a.ranks[i] = int64(i * 7 % slots) // not the order of the slots
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			s := rapid.Int32Range(0, slots-1).Draw(t, "slot")
			at := rapid.SampledFrom([]int64{0, 1, 2, 3, 5, 8, 13, never}).Draw(t, "at")
			a.set(s, at)
			due[s] = at
			best, least := int32(-1), never
			for i, at := range due {
				if at != never && (at < least || at == least && a.ranks[i] < a.ranks[best]) {
					best, least = int32(i), at
				}
			}
			slot, when := a.next()
			require.Equal(t, best, slot)
			require.Equal(t, least, when)
		}
	})
}

// TestStepsEqualsCounting: the closed form for the steps of a stretch equals counting them.
func TestStepsEqualsCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(1, 1e9).Draw(t, "first")
		growth := rapid.SampledFrom([]int64{0, 1, 39_000, 1e8}).Draw(t, "growth")
		limit := rapid.Int64Range(1, 3000).Draw(t, "limit")
		at := rapid.Int64Range(0, sum(limit, first, growth)+1).Draw(t, "at")
		want, t2 := int64(1), first
		for want < limit && t2 < at {
			t2 += first + growth*want
			want++
		}
		require.Equal(t, want, steps(at, first, growth, limit))
		require.Equal(t, t2, sum(want, first, growth))
	})
}

// TestSketchIsWithinOnePercent: quantiles are those of the sorted times, within the promise.
func TestSketchIsWithinOnePercent(t *testing.T) {
	bounds := sketchBounds()
	rapid.Check(t, func(t *rapid.T) {
		h := newSketch(&bounds)
		var all []float64
		for range rapid.IntRange(1, 300).Draw(t, "n") {
			x := math.Exp(rapid.Float64Range(math.Log(1e-4), math.Log(80_000)).Draw(t, "log"))
			h.add(x)
			all = append(all, x)
		}
		slices.Sort(all)
		for _, q := range []float64{0.5, 0.95, 0.99, 1} {
			want := all[int(math.Ceil(q*float64(len(all))))-1]
			require.InEpsilon(t, want, h.quantile(q), 0.0101, "quantile %g", q)
		}
		require.Equal(t, all[len(all)-1], h.most)
		share := 0.0
		for _, b := range h.bars() {
			require.Less(t, b.From, b.To)
			share += b.Share
		}
		require.InDelta(t, 1, share, 1e-9)
	})
	h := newSketch(&bounds)
	require.Zero(t, h.quantiles())
	h.add(0)
	h.add(1e9)
	require.Equal(t, 1e9, h.quantile(1))
}

// TestPlaceIsTheFirstEndThatIsNotExceeded, looked for one after another.
func TestPlaceIsTheFirstEndThatIsNotExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends := rapid.SliceOfNDistinct(rapid.Float64Range(1e-5, 1e5), 1, 50, rapid.ID).Draw(t, "ends")
		slices.Sort(ends)
		b := newBuckets(ends...)
		near := rapid.SampledFrom(ends).Draw(t, "near")
		for _, x := range []float64{0, near, math.Nextafter(near, 0), math.Nextafter(near, 1e6), rapid.Float64Range(0, 1e6).Draw(t, "any"), math.Inf(1)} {
			want := 0
			for want < len(ends) && x > ends[want] {
				want++
			}
			require.Equal(t, want, b.place(x), "%g", x)
		}
	})
	none := buckets{}
	require.Zero(t, none.place(3), "one bucket for all")
}

// TestBucketsQuantile follows the examples of Prometheus's documentation of histogram_quantile: a straight line within
// the bucket, from 0 in the first, and the highest bound for what is beyond it.
func TestBucketsQuantile(t *testing.T) {
	b := newBuckets(1, 2, 4)
	for _, c := range []struct {
		q      float64
		counts []int64
		want   float64
	}{
		{0.5, []int64{10, 0, 0, 0}, 0.5},
		{0.9, []int64{0, 10, 0, 0}, 1.9},
		{0.5, []int64{5, 0, 5, 0}, 1},
		{0.75, []int64{5, 0, 5, 0}, 3},
		{0.9, []int64{1, 0, 0, 9}, 4},
	} {
		got, ok := b.quantile(c.q, c.counts)
		require.True(t, ok)
		require.InDelta(t, c.want, got, 1e-12, "%v", c)
	}
	_, ok := b.quantile(0.5, []int64{0, 0, 0, 0})
	require.False(t, ok)
	require.Equal(t, 0, b.place(1), "an upper end belongs to its bucket")
	require.Equal(t, 3, b.place(4.1))
}

// TestQueueEqualsSlice: the ring gives what a slice gives.
func TestQueueEqualsSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []int32
		for i := range rapid.Int32Range(1, 100).Draw(t, "steps") {
			switch {
			case rapid.Bool().Draw(t, "push"):
				q.Push(i)
				want = append(want, i)
			case rapid.Bool().Draw(t, "front"):
				q.PushFront(i)
				want = slices.Insert(want, 0, i)
			case len(want) > 0:
				require.Equal(t, want[0], q.front())
				require.Equal(t, want[0], q.pop())
				want = want[1:]
			}
			require.Equal(t, len(want), q.Len())
			for k, v := range want {
				require.Equal(t, v, *q.At(k))
			}
		}
	})
}

// all draws a whole workload.
func all(w Workload, seed uint64) (requests []Request) {
	next := w.Arrivals(seed)
	for r, ok := next(); ok; r, ok = next() {
		requests = append(requests, r)
	}
	return requests
}

// TestWorkloads checks each kind of traffic against what it promises: order, bounds, rate and spread.
func TestWorkloads(t *testing.T) {
	long.Skip(t)
	length := Length{Mean: 100, Deviation: 30, Min: 10, Max: 300}
	day := Diurnal(1, 9, 24*time.Hour, 10*time.Minute, Burst{At: 12 * time.Hour, Duration: time.Hour, Factor: 3})
	for name, c := range map[string]struct {
		w    Workload
		mean float64 // requests
		cv   float64 // of the gaps; 0 for not checked
	}{
		"poisson":      {Stages{Stages: []Stage{{2, 5 * time.Hour}}, Input: length, Output: length, CV: 1}, 36_000, 1},
		"bursty":       {Stages{Stages: []Stage{{2, 5 * time.Hour}}, Input: length, Output: length, CV: 3}, 36_000, 3},
		"smooth":       {Stages{Stages: []Stage{{2, 5 * time.Hour}}, Input: length, Output: length, CV: 0.5}, 36_000, 0.5},
		"like a clock": {Stages{Stages: []Stage{{2, 5 * time.Hour}}, Input: length, Output: length}, 36_000, 0},
		"exact":        {Stages{Stages: []Stage{{2, time.Hour}, {0, time.Hour}, {5, time.Hour}}, Input: length, Output: length, CV: 1, Exact: true}, 25_200, 0},
		"series":       {Series{Step: 10 * time.Minute, Rates: day, Input: length, Output: length}, 24*3600*5 + 2*3600*9, 0},
		"half":         {Scaled(Stages{Stages: []Stage{{2, 5 * time.Hour}}, Input: length, Output: length, CV: 1}, 0.5), 18_000, 1},
		"2.5 times":    {Scaled(Stages{Stages: []Stage{{2, 5 * time.Hour}}, Input: length, Output: length, CV: 1}, 2.5), 90_000, 0},
		"lognormal":    {Stages{Stages: []Stage{{2, 5 * time.Hour}}, Input: Length{Mean: 100, Deviation: 100, Min: 1, Max: 100_000, LogNormal: true}, Output: length, CV: 1}, 36_000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.w.Validate("workload"))
			requests := all(c.w, 11)
			require.Equal(t, requests, all(c.w, 11), "the same seed")
			require.NotEqual(t, requests, all(c.w, 12), "another seed")
			require.InEpsilon(t, c.mean, len(requests), 0.05)
			var gaps []float64
			input := 0.0
			last := time.Duration(0)
			for _, r := range requests {
				require.True(t, r.At >= last && r.At < c.w.Duration())
				require.True(t, r.Input >= 1 && r.Output >= 10 && r.Output <= 300)
				gaps = append(gaps, (r.At - last).Seconds())
				input += float64(r.Input)
				last = r.At
			}
			require.InEpsilon(t, 100, input/float64(len(requests)), 0.03)
			if mean, spread := meanAndError(gaps); c.cv > 0 {
				require.InEpsilon(t, c.cv, spread*math.Sqrt(float64(len(gaps)))/mean, 0.06)
			}
		})
	}
	exact := Stages{Stages: []Stage{{2, time.Hour}, {5, time.Hour}}, Input: length, Output: length, CV: 1, Exact: true}
	require.Len(t, all(exact, 1), 7*3600)
	trace := Trace{Requests: []Request{{At: 0, Input: 1, Output: 1}, {At: time.Second, Input: 2, Output: 2}}}
	require.Equal(t, trace.Requests, all(trace, 99))
	require.Equal(t, time.Second+1, trace.Duration())
}

// TestSeriesFollowsItsRates: in each hour of a day there are as many requests as the rates say, within four deviations
// of a Poisson count; and a span with lengths of its own has them.
func TestSeriesFollowsItsRates(t *testing.T) {
	rates := Diurnal(1, 9, 24*time.Hour, 10*time.Minute)
	rates[0].Input = 900
	s := Series{Step: 10 * time.Minute, Rates: rates, Input: Length{Mean: 100, Min: 1, Max: 1000}, Output: Length{Mean: 1, Min: 1, Max: 1}}
	counts := [24]float64{}
	for _, r := range all(s, 5) {
		counts[r.At/time.Hour]++
		if r.At < 10*time.Minute {
			require.EqualValues(t, 900, r.Input)
		} else {
			require.EqualValues(t, 100, r.Input)
		}
	}
	for hour, n := range counts {
		want := 0.0
		for i := range 6 {
			want += rates[6*hour+i].PerSecond * 600
		}
		require.InDelta(t, want, n, 4*math.Sqrt(want)+0.02*want, "hour %d", hour)
	}
}

// TestExactCounts: a stage has Rate * Duration requests, rounded down, but not by what a product of floats is off by.
func TestExactCounts(t *testing.T) {
	one := Length{Mean: 1, Min: 1, Max: 1}
	for _, c := range []struct {
		stage Stage
		want  int
	}{
		{Stage{0.29, 100 * time.Second}, 29},
		{Stage{0.57, 100 * time.Second}, 57},
		{Stage{2, 240 * time.Second}, 480},
		{Stage{0.5, 3 * time.Second}, 1},
		{Stage{0.3, time.Second}, 0},
		{Stage{1e6, time.Second}, 1e6},
	} {
		requests := all(Stages{Stages: []Stage{c.stage}, Input: one, Output: one, CV: 1, Exact: true}, 1)
		require.Len(t, requests, c.want, "%v", c.stage)
	}
}

// TestScaledRefusesANegativeTimeAtOnce, whatever waits already.
func TestScaledRefusesANegativeTimeAtOnce(t *testing.T) {
	base := Trace{Requests: []Request{{At: 5 * time.Second, Input: 1, Output: 1}, {At: -time.Second, Input: 1, Output: 1}}, Length: time.Minute}
	n := 0
	for _, err := range Requests(Scaled(base, 3), 1) {
		n++
		require.ErrorContains(t, err, "workload.requests[0]")
	}
	require.Equal(t, 1, n)
}

// TestScaledCopiesDoNotPileUp: the copies of the last requests are spread over what is left of the traffic, and are not
// all at its end.
func TestScaledCopiesDoNotPileUp(t *testing.T) {
	base := Trace{Length: 10 * time.Second, Requests: []Request{{At: 0, Input: 1, Output: 1}, {At: 9500 * time.Millisecond, Input: 1, Output: 1}}}
	at := map[time.Duration]int{}
	late := 0
	for _, r := range all(Scaled(base, 1000), 1) {
		at[r.At]++
		require.Less(t, r.At, base.Length)
		if r.At >= 9750*time.Millisecond {
			late++
		}
	}
	require.InDelta(t, 500, late, 70)
	for when, n := range at {
		require.LessOrEqual(t, n, 2, "%s", when)
	}
}

// TestTinyRateEnds: gaps longer than a duration can hold end the stage; they once became negative times without end.
func TestTinyRateEnds(t *testing.T) {
	w := Stages{Stages: []Stage{{5e-166, time.Hour}, {1, time.Minute}}, Input: Length{Mean: 1, Min: 1, Max: 1}, Output: Length{Mean: 1, Min: 1, Max: 1}, CV: 1}
	for _, r := range all(w, 1) {
		require.GreaterOrEqual(t, r.At, time.Hour)
	}
}

// TestNamesRoundTrip: routers and signals are read back from the names that they are written by.
func TestNamesRoundTrip(t *testing.T) {
	s := Ramp()
	s.Router = RoundRobin
	for signal := Waiting; signal <= RequestRate; signal++ {
		s.Metrics = append(s.Metrics, Metric{Name: signal.String(), Signal: signal})
	}
	data, err := json.Marshal(s)
	require.NoError(t, err)
	var back Scenario
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, s.Metrics, back.Metrics)
	require.Equal(t, s.Router, back.Router)
	require.ErrorContains(t, json.Unmarshal([]byte(`{"router":"Random"}`), &back), "must be LeastLoaded, RoundRobin or PrefixCache")
	require.ErrorContains(t, json.Unmarshal([]byte(`{"metrics":[{"signal":"Load"}]}`), &back), "must be the name of a signal")
}

// TestCopiesHaveTheirOwnBlocks: the copies of a request begin like the copies of another one where the requests do, and like no
// request itself.
func TestCopiesHaveTheirOwnBlocks(t *testing.T) {
	base := Trace{Length: 10 * time.Second, Requests: []Request{{Input: 9, Output: 1, Blocks: []uint64{1, 2}}, {At: 5 * time.Second, Input: 9, Output: 1, Blocks: []uint64{1, 3}}}}
	next := Scaled(base, 2).Arrivals(1)
	prefixes, all := map[uint64]int{}, map[uint64]bool{}
	for r, ok := next(); ok; r, ok = next() {
		prefixes[r.Blocks[0]]++
		all[r.Blocks[1]] = true
	}
	require.Len(t, prefixes, 2)
	require.Equal(t, 2, prefixes[1])
	require.Len(t, all, 4)
	require.Equal(t, []uint64{1, 2}, base.Requests[0].Blocks)
}

// TestRegressionAHeavyTailIsWhatItIsSaidToBe: one start in twenty was said to take more than twice the median; it is one in seventy.
func TestRegressionAHeavyTailIsWhatItIsSaidToBe(t *testing.T) {
	h := HeavyTail(100 * time.Second)
	const n = 100_000
	var above, long, twice float64
	for k := range uint64(n) {
		random := draw(1, streamStartup, 0, k)
		switch took := seconds(h.Provision.draw(random) + h.Load.draw(random)); {
		case took > 200:
			twice++
			fallthrough
		case took > 170:
			long++
			fallthrough
		case took > 100:
			above++
		}
	}
	require.InDelta(t, 0.5, above/n, 0.07)
	require.InDelta(t, 1.0/20, long/n, 0.003)
	require.InDelta(t, 1.0/70, twice/n, 0.003)
}

// TestRegressionAGapGoesOnInTheNextStage: an hour at one rate has as many requests in sixty stages as in one. Each stage began with
// a gap of its own, as if a request had come just before: with equal gaps it lost its last request, a stage of one gap had none, and
// bursts came at the begin of each.
func TestRegressionAGapGoesOnInTheNextStage(t *testing.T) {
	one := Length{Mean: 1, Min: 1, Max: 1}
	for _, cv := range []float64{0, 0.5, 3, 4} {
		for _, stages := range []int{1, 60, 360, 3600} {
			w := Stages{Input: one, Output: one, CV: cv}
			for range stages {
				w.Stages = append(w.Stages, Stage{Rate: 1, Duration: time.Hour / time.Duration(stages)}, Stage{Rate: 0, Duration: time.Minute})
			}
			n := 0
			for seed := range uint64(20) {
				n += len(all(w, seed))
			}
			// The mean of 20 runs, each with a first gap from 0 on.
			require.InDelta(t, 3600+(cv*cv-1)/2, float64(n)/20, 4*(cv+0.1)*60/math.Sqrt(20), "CV %g, %d stages", cv, stages)
		}
	}
	var at []time.Duration
	for _, r := range all(Stages{Stages: []Stage{{1, 3 * time.Second}, {2, 2 * time.Second}, {0.25, 9 * time.Second}}, Input: one, Output: one}, 1) {
		at = append(at, r.At)
	}
	const s = time.Second
	require.Equal(t, []time.Duration{1 * s, 2 * s, 3 * s, 3500 * time.Millisecond, 4 * s, 4500 * time.Millisecond, 5 * s, 9 * s, 13 * s}, at)
}
