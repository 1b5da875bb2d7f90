package history_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
)

// TestAPodThatHasCountedNothing: SGLang creates a counter with its first request. A pod that had no request had no counters, and the
// whole history was refused for it; what came later was spread over all the time before.
func TestAPodThatHasCountedNothing(t *testing.T) {
	r, d := recorded(t)
	want := reduced(t, d)
	steps := d.Steps()
	add := func(d *history.Dump, signal history.Signal, part history.Part, family string, from int, value func(i int) float64) {
		s := history.Series{Signal: signal, Part: part, Family: family, Pod: "late-0", From: from}
		for i := from; i < steps; i++ {
			s.Values = append(s.Values, value(i))
		}
		d.Series = append(d.Series, s)
	}
	const first, begins = 10, 100
	zero := func(int) float64 { return 0 }
	with := func(running func(i int) float64) *history.Dump {
		more := *d
		more.Series = slices.Clone(d.Series)
		add(&more, history.Waiting, history.Whole, "vllm:num_requests_waiting", first, zero)
		add(&more, history.Running, history.Whole, "vllm:num_requests_running", first, running)
		return &more
	}

	idle := reduced(t, with(zero))
	require.True(t, slices.EqualFunc(want.Arrivals, idle.Arrivals, same))
	requireNote(t, idle, history.GenerationTokens, "missing of 1 of")

	// Two requests came, and have not ended.
	busy := reduced(t, with(func(i int) float64 { return float64(min(2, i/begins)) }))
	require.InDelta(t, float64(r.Result.Requests)+2, total(busy), 1e-6)

	// A request that went away must have been counted: what this pod counts is not known.
	gone := reduced(t, with(func(i int) float64 {
		if i == begins {
			return 1
		}
		return 0
	}))
	require.InDelta(t, want.Arrivals[begins-2], gone.Arrivals[begins-2], 1e-9)
	require.True(t, math.IsNaN(gone.Arrivals[begins]))

	later := with(zero)
	add(later, history.GenerationTokens, history.Count, "vllm:request_generation_tokens_count", begins, func(i int) float64 { return float64(i + 1 - begins) })
	f := reduced(t, later)
	for i := range f.Arrivals {
		more := 0.0
		if i+1 >= begins {
			more = 1
		}
		require.InDelta(t, want.Arrivals[i]+more, f.Arrivals[i], 1e-6, "interval %d", i)
	}
	require.Equal(t, want.Repairs.Spread, f.Repairs.Spread)
}

func TestMissingSignalsAreNamed(t *testing.T) {
	for _, row := range []struct {
		signal history.Signal
		check  func(t *testing.T, f *history.Fleet)
	}{
		{history.GenerationTokens, func(t *testing.T, f *history.Fleet) {
			t.Helper()
			_, _, err := f.Workload()
			requireRefused(t, err, history.PromptTokens)
		}},
		{history.PromptTokens, func(t *testing.T, f *history.Fleet) {
			t.Helper()
			_, _, err := f.Workload()
			requireRefused(t, err, history.PromptTokens)
		}},
		{history.TPOT, func(t *testing.T, f *history.Fleet) {
			t.Helper()
			for _, p := range f.Points() {
				require.True(t, math.IsNaN(p.ITL))
			}
		}},
		{history.SpecReplicas, func(t *testing.T, f *history.Fleet) {
			t.Helper()
			_, known := f.ReplicaHours()
			require.Zero(t, known)
		}},
		{history.PodCreated, func(t *testing.T, f *history.Fleet) {
			t.Helper()
			require.Empty(t, f.Starts)
		}},
		{history.KVCacheUsage, func(t *testing.T, f *history.Fleet) {
			t.Helper()
			for _, p := range f.Points() {
				require.True(t, math.IsNaN(p.KVUse))
			}
		}},
		{history.TTFT, func(t *testing.T, f *history.Fleet) {
			t.Helper()
			for i := range f.Spans {
				require.True(t, math.IsNaN(f.Spans[i].TTFT.Quantile(0.5)))
			}
		}},
	} {
		t.Run(string(row.signal), func(t *testing.T) {
			_, d := recorded(t)
			without(d, row.signal)
			f := reduced(t, d)
			requireNote(t, f, row.signal, "missing")
			row.check(t, f)
		})
	}
}

func TestWithoutQueuesRequestsAreKnownLater(t *testing.T) {
	r, d := recorded(t)
	without(d, history.Waiting)
	without(d, history.Running)
	f := reduced(t, d)
	// What a pod finished after its last scrape is not seen.
	require.LessOrEqual(t, total(f), float64(r.Result.Finished))
	require.InDelta(t, 1, total(f)/float64(r.Result.Finished), 0.01)
	requireNote(t, f, history.Waiting, "missing")
	requireNote(t, f, history.Running, "missing")
}

func TestNothingIsRefused(t *testing.T) {
	_, d := recorded(t)
	d.Series = nil
	_, err := history.Reduce(d)
	requireRefused(t, err, history.Waiting)
	_, d = recorded(t)
	for _, s := range []history.Signal{history.GenerationTokens, history.PromptTokens, history.TTFT} {
		without(d, s)
	}
	_, err = history.Reduce(d)
	requireRefused(t, err, history.Finished)
}

// TestWhatIsMissingOfAHistogramIsNamed: where buckets were dropped, or those for all values, the error was that lengths are not known, and
// where all of a histogram was, that the engine does not count requests.
func TestWhatIsMissingOfAHistogramIsNamed(t *testing.T) {
	dropped := func(drop func(s *history.Series) bool) *history.Dump {
		_, d := recorded(t)
		d.Series = slices.DeleteFunc(d.Series, func(s history.Series) bool { return drop(&s) })
		return d
	}
	for _, drop := range []func(s *history.Series) bool{
		func(s *history.Series) bool { return s.Part == history.Bucket },
		func(s *history.Series) bool { return s.Labels["le"] == "+Inf" },
		func(s *history.Series) bool { return s.Part == history.Bucket && s.Labels["le"] != "+Inf" },
	} {
		f := reduced(t, dropped(drop))
		for _, s := range []history.Signal{history.PromptTokens, history.GenerationTokens, history.TTFT, history.TPOTs} {
			requireNote(t, f, s, `has no buckets`)
		}
		requireNote(t, f, history.PromptTokens, `vllm:request_prompt_tokens_bucket, among them those with le="+Inf"`)
	}
	_, err := history.Reduce(dropped(func(s *history.Series) bool { return s.Part != history.Whole }))
	requireRefused(t, err, history.Finished)
	require.ErrorContains(t, err, "no pod has a value of vllm:request_generation_tokens_count, vllm:request_prompt_tokens_count, vllm:time_to_first_token_seconds_count")
}

// TestNoTrafficIsCalledThat, and not that lengths are not known.
func TestNoTrafficIsCalledThat(t *testing.T) {
	_, d := recorded(t)
	for i := range d.Series {
		if s := &d.Series[i]; !strings.HasPrefix(s.Family, "kube_") {
			clear(s.Values)
		}
	}
	_, _, err := reduced(t, d).Workload()
	requireRefused(t, err, history.Finished)
	require.ErrorContains(t, err, "no request came in this range")
}

// TestRegressionATimeThatIsNoneIsNotTheBeginning: a pod that is said to be ready in the year 10^292 had counted from the first step
// on, as such a number of steps does not fit, on some processors.
func TestRegressionATimeThatIsNoneIsNotTheBeginning(t *testing.T) {
	arrivals := func(ready float64) []float64 {
		d := hour()
		d.Series = nil
		serve(d, "b", 0, func(int) float64 { return 5 })
		serve(d, "a", 100, func(i int) float64 { return float64(i - 90) })
		created, readyTime := float64(d.Start.Unix()+99*15), "kube_pod_status_ready_time"
		d.Series = append(
			d.Series,
			history.Series{Signal: history.PodCreated, Family: "kube_pod_created", Pod: "a", From: 100, Values: history.Values{created}},
			history.Series{Signal: history.PodReadyTime, Family: readyTime, Pod: "a", From: 100, Values: history.Values{ready}},
		)
		f := reduced(t, d)
		require.Len(t, f.Starts, 1)
		require.True(t, f.Starts[0].Ready.After(f.Starts[0].Created))
		return f.Arrivals
	}
	want := arrivals(float64(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Unix()))
	require.Zero(t, want[50])
	require.Equal(t, want, arrivals(1e300))
}

// TestFirstTokensAreWhatCame: where only these are counted, a request that runs has had its first token, and is not counted once more while
// many run at once.
func TestFirstTokensAreWhatCame(t *testing.T) {
	d := dump(history.VLLM, 1)
	for _, s := range []struct {
		history.Series

		value func(i int) float64
	}{
		{history.Series{Signal: history.Waiting, Family: "vllm:num_requests_waiting"}, func(i int) float64 { return float64(i % 2) }},
		{history.Series{Signal: history.Running, Family: "vllm:num_requests_running"}, func(i int) float64 { return float64(max(0, 40-(i-120)*(i-120))) }},
		{history.Series{Signal: history.TTFT, Part: history.Count, Family: "vllm:time_to_first_token_seconds_count"}, func(i int) float64 { return float64(5 * i) }},
	} {
		s.Pod = "a"
		for i := range d.Steps() {
			s.Values = append(s.Values, s.value(i))
		}
		d.Series = append(d.Series, s.Series)
	}
	f := reduced(t, d)
	for i, n := range f.Arrivals {
		require.InDelta(t, 5-1+2*float64((i+1)%2), n, 1e-9, "interval %d", i)
	}
	requireNote(t, f, history.Finished, "missing: requests are counted at their first token")
}
