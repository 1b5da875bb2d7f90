package history_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/sim"
)

func recorded(t *testing.T) (*simhistory.Recording, *history.Dump) {
	t.Helper()
	r := record(t, scenario(sim.Qwen32B(), ramp(), 0))
	return r, dumped(t, r)
}

// cut takes the values of steps in [from, to) out of the series that are chosen.
func cut(d *history.Dump, from, to int, chosen func(*history.Series) bool) {
	for i := range d.Series {
		s := &d.Series[i]
		if !chosen(s) {
			continue
		}
		s.Values = slices.Clone(s.Values)
		for k := range s.Values {
			if at := s.From + k*max(1, s.Every); at >= from && at < to {
				s.Values[k] = math.NaN()
			}
		}
	}
}

func all(*history.Series) bool { return true }

func of(pod string) func(*history.Series) bool {
	return func(s *history.Series) bool { return s.Pod == pod }
}

func without(d *history.Dump, signal history.Signal) {
	d.Series = slices.DeleteFunc(d.Series, func(s history.Series) bool { return s.Signal == signal })
}

func requireNote(t *testing.T, f *history.Fleet, signal history.Signal, text string) {
	t.Helper()
	for _, n := range f.Notes {
		if n.Signal == signal && strings.Contains(n.Text, text) {
			return
		}
	}
	require.Fail(t, "no such note", "%s %q in %v", signal, text, f.Notes)
}

func requireRefused(t *testing.T, err error, signal history.Signal) {
	t.Helper()
	var refused *history.RefusedError
	require.True(t, errors.As(err, &refused), "%v", err)
	require.Equal(t, signal, refused.Signal)
}

func total(f *history.Fleet) float64 {
	n, _ := f.Requests()
	return n
}

func TestGapKeepsTheSumAndSaysSo(t *testing.T) {
	r, d := recorded(t)
	cut(d, 60, 70, all)
	f := reduced(t, d)
	require.InDelta(t, float64(r.Result.Requests), total(f), 1e-6)
	requireNote(t, f, history.Waiting, "gaps")
	require.Positive(t, f.Repairs.Gaps)
	require.Positive(t, f.Repairs.Spread)
	_, filled, err := f.Workload()
	require.NoError(t, err)
	require.Zero(t, filled) // shorter than five minutes
	for _, p := range f.Points() {
		at := int(p.At.Sub(f.Start) / f.Step)
		require.False(t, at >= 60 && at <= 70 && !math.IsNaN(p.ITL), "a point across a gap at %d", at)
	}
}

func TestLongGapIsRefusedAsTraffic(t *testing.T) {
	r, d := recorded(t)
	cut(d, 40, 100, all)
	f := reduced(t, d)
	require.InDelta(t, float64(r.Result.Requests), total(f), float64(r.Result.Requests)) // pods that came within it are unknown
	_, known := f.ReplicaHours()
	require.Less(t, known, 1.0)
	requireNote(t, f, history.SpecReplicas, "not known for")
	_, _, err := f.Workload()
	requireRefused(t, err, history.Finished)
}

// TestPodThatWasSeenTwiceDoesNotSayHowOftenAllAre: with a distance of half an hour between the two values of one pod, no gap was
// long, and pods that came within that time were said to have counts from before.
func TestPodThatWasSeenTwiceDoesNotSayHowOftenAllAre(t *testing.T) {
	seenTwice := func(d *history.Dump) {
		for _, s := range slices.Clone(d.Series) {
			if s.Pod == "replica-1" && s.Every <= 1 && !strings.HasPrefix(s.Family, "kube_") {
				s.Pod, s.From, s.Values = "odd", 10, make(history.Values, 121)
				for i := range s.Values[1:120] {
					s.Values[1+i] = nan
				}
				d.Series = append(d.Series, s)
			}
		}
	}
	_, d := recorded(t)
	without(d, history.PodCreated)
	want := total(reduced(t, d))
	seenTwice(d)
	f := reduced(t, d)
	require.Equal(t, 1, f.Repairs.Gaps, "that of the odd one")
	require.InDelta(t, want, total(f), 1e-6)
	requireNote(t, f, history.Finished, "3 pods have counts from before they were first seen") // the first ones
	for _, n := range f.Notes {
		require.NotContains(t, n.Text, "scraped every")
	}

	_, d = recorded(t)
	cut(d, 40, 100, all) // as in TestLongGapIsRefusedAsTraffic
	seenTwice(d)
	_, _, err := reduced(t, d).Workload()
	requireRefused(t, err, history.Finished)
}

func TestGapOfAllPodsThatCameWithinItIsNotZero(t *testing.T) {
	_, d := recorded(t)
	without(d, history.PodCreated)
	without(d, history.PodReady)
	for i := range d.Series {
		if s := &d.Series[i]; s.Pod == "replica-3" && s.Every <= 1 {
			cut(d, 0, 130, of("replica-3"))
		}
	}
	cut(d, 100, 130, all) // Prometheus was away while replica-3 came
	f := reduced(t, d)
	requireNote(t, f, history.Finished, "counts from before they were first seen")
}

// hour is one in which a pod named a finishes a request a step.
func hour() *history.Dump {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	d := &history.Dump{Version: 1, Engine: history.VLLM, Start: start, End: start.Add(time.Hour), Step: history.Seconds(15 * time.Second)}
	serve(d, "a", 0, func(i int) float64 { return float64(i) })
	return d
}

// serve adds a pod that has finished so many requests at each step, and has none in flight.
func serve(d *history.Dump, pod string, from int, finished func(i int) float64) {
	var done, idle history.Values
	for i := from; i < d.Steps(); i++ {
		done, idle = append(done, finished(i)), append(idle, 0*finished(i))
	}
	d.Series = append(
		d.Series,
		history.Series{Signal: history.Waiting, Family: "vllm:num_requests_waiting", Pod: pod, From: from, Values: idle},
		history.Series{Signal: history.Running, Family: "vllm:num_requests_running", Pod: pod, From: from, Values: idle},
		history.Series{Signal: history.GenerationTokens, Part: history.Count, Family: "vllm:request_generation_tokens_count", Pod: pod, From: from, Values: done},
	)
}

// unclear returns how many intervals the traffic of a dump has that are not known.
func unclear(t *testing.T, d *history.Dump) int {
	t.Helper()
	for _, s := range []history.Signal{history.PromptTokens, history.GenerationTokens} {
		for _, le := range []string{"100", "+Inf"} {
			b := history.Series{Signal: s, Part: history.Bucket, Pod: "a", Every: 20, Labels: map[string]string{"le": le}}
			b.Family = map[history.Signal]string{history.PromptTokens: "vllm:request_prompt_tokens_bucket", history.GenerationTokens: "vllm:request_generation_tokens_bucket"}[s]
			for i := 0; i < d.Steps(); i += 20 {
				b.Values = append(b.Values, float64(i))
			}
			d.Series = append(d.Series, b)
		}
	}
	_, filled, err := reduced(t, d).Workload()
	require.NoError(t, err)
	return filled
}

// TestGapAcrossWhichNothingCameIsKnown: counters that are the same before and after a gap have counted nothing within it.
func TestGapAcrossWhichNothingCameIsKnown(t *testing.T) {
	for more, want := range []int{0, 38} {
		d := hour()
		serve(d, "b", 0, func(i int) float64 {
			switch {
			case i <= 100:
				return 7
			case i < 138:
				return nan
			}
			return float64(7 + more)
		})
		require.Equal(t, want, unclear(t, d))
	}
}

// TestPodThatWasCreatedWhilePrometheusWasAway: all that it had done by its first scrape came within one step.
func TestPodThatWasCreatedWhilePrometheusWasAway(t *testing.T) {
	d := hour()
	cut(d, 101, 200, all)
	serve(d, "b", 200, func(i int) float64 { return 3 * float64(i-110) })
	for _, s := range []struct {
		signal history.Signal
		family string
		value  float64
	}{
		{history.PodCreated, "kube_pod_created", float64(d.Start.Add(105 * 15 * time.Second).Unix())},
		{history.PodReady, "kube_pod_status_ready", 1},
	} {
		d.Series = append(d.Series, history.Series{Signal: s.signal, Family: s.family, Pod: "b", From: 200, Values: slices.Repeat(history.Values{s.value}, 41)})
	}
	f := reduced(t, d)
	require.InDelta(t, 240+3*130, total(f), 1e-9)
	require.InDelta(t, 1+3*90.0/95, f.Arrivals[199], 1e-9)
	require.InDelta(t, 1+3*90.0/95, f.Arrivals[110], 1e-9)
	require.InDelta(t, 1, f.Arrivals[104], 1e-9)
}

func TestRestart(t *testing.T) {
	s := scenario(sim.Qwen32B(), ramp(), 0)
	s.Types[0].CrashesPerHour = 2
	r := record(t, s)
	f := reduced(t, dumped(t, r))
	require.Positive(t, f.Repairs.Restarts)
	requireNote(t, f, history.Finished, "restarts")
	got := total(f)
	// What a crashed pod had in flight was sent again, and what it finished after its last scrape is lost.
	require.InDelta(t, float64(r.Result.Requests+r.Result.Retried), got, 0.02*float64(r.Result.Requests))
}

func TestRestartWithinAGapThatOneCounterHides(t *testing.T) {
	_, d := recorded(t)
	whole := total(reduced(t, d))
	// replica-0 is away for 4 steps and comes back with counters of its own, of which that of answers is higher.
	cut(d, 80, 84, of("replica-0"))
	lost := 0.0
	for i := range d.Series {
		s := &d.Series[i]
		if s.Pod != "replica-0" || s.Every > 1 || s.From > 79 {
			continue
		}
		cumulative := s.Part != history.Whole || s.Signal == history.Prompted || s.Signal == history.Generated || s.Signal == history.PrefixCacheQueries
		if !cumulative || s.Signal == history.GenerationTokens && s.Part == history.Count {
			if s.Signal == history.GenerationTokens {
				lost = s.Values[79-s.From]
			}
			continue
		}
		base := s.Values[79-s.From]
		for k := 84 - s.From; k < len(s.Values); k++ {
			s.Values[k] -= base
		}
	}
	f := reduced(t, d)
	require.Equal(t, 1, f.Repairs.Restarts, "%v", f.Notes)
	// The counter of answers counts since the restart: it is no increase over the value before.
	require.Greater(t, total(f), whole+lost-200)
}

func TestRelabelledSeriesGoOn(t *testing.T) {
	r, d := recorded(t)
	var more []history.Series
	for i := range d.Series {
		s := &d.Series[i]
		if s.Pod != "replica-0" || s.Signal == history.PodCreated || s.Signal == history.PodReady || s.Every > 1 {
			continue
		}
		later := *s
		later.From, later.Values = s.From+60, slices.Clone(s.Values[60:])
		s.Values = slices.Clone(s.Values[:60])
		more = append(more, later)
	}
	d.Series = append(d.Series, more...)
	f := reduced(t, d)
	require.InDelta(t, float64(r.Result.Requests), total(f), 1e-6)
	require.Positive(t, f.Repairs.Relabelled)
	require.Equal(t, 5, f.Repairs.Pods)
	require.Zero(t, f.Repairs.Gaps)
}

func TestSeriesThatAreThereTwiceCountOnce(t *testing.T) {
	r, d := recorded(t)
	var twins []history.Series
	for i := range d.Series {
		twin := d.Series[i]
		if twin.Every > 1 || len(twin.Values) < 3 || twin.Signal == history.SpecReplicas {
			twins = append(twins, twin)
			continue
		}
		twin.Values = slices.Concat(twin.Values[:1], twin.Values[:len(twin.Values)-1]) // scraped a little earlier
		twins = append(twins, twin)
	}
	// Each is away for a while, so that the other goes on.
	cut(d, 50, 55, all)
	other := history.Dump{Series: twins}
	cut(&other, 90, 95, all)
	d.Series = append(d.Series, other.Series...)
	f := reduced(t, d)
	require.InDelta(t, float64(r.Result.Requests), total(f), 1e-6)
	require.Equal(t, 5, f.Repairs.Duplicated)
	require.Zero(t, f.Repairs.Restarts)
	requireNote(t, f, history.Finished, "twice")
}

func TestSeriesThatDifferInSomethingUnknownAreRefused(t *testing.T) {
	_, d := recorded(t)
	for i := range d.Series {
		s := d.Series[i]
		if s.Signal == history.GenerationTokens && s.Part == history.Count {
			s.Values = slices.Clone(s.Values)
			for k := range s.Values {
				s.Values[k] *= 3 // another tenant's
			}
			d.Series = append(d.Series, s)
		}
	}
	_, err := history.Reduce(d)
	requireRefused(t, err, history.GenerationTokens)
	require.ErrorContains(t, err, "matcher")
}

// TestBoundsAreNumbers: Prometheus 3 writes le="5.0" where 2 wrote le="5", and what a pod had counted in its life was new then.
func TestBoundsAreNumbers(t *testing.T) {
	_, d := recorded(t)
	want := reduced(t, d)
	for i, s := range slices.Clone(d.Series) {
		half := len(s.Values) / 2
		if s.Part != history.Bucket || strings.ContainsAny(s.Labels["le"], ".eI") || half == 0 {
			continue
		}
		d.Series[i].Values = s.Values[:half]
		s.Labels = maps.Clone(s.Labels)
		s.Labels["le"] += ".0"
		s.From, s.Values = s.From+half*max(1, s.Every), s.Values[half:]
		d.Series = append(d.Series, s)
	}
	f := reduced(t, d)
	require.Equal(t, want.Spans, f.Spans)
	require.Zero(t, f.Repairs.Rebucketed)
}

// TestAPodUnderANewNameIsNotNew: without Kubernetes a pod that appears beside others was taken for a new one. Where pods got other
// names, or were scraped from then on, all that they had ever counted came again, within one step.
func TestAPodUnderANewNameIsNotNew(t *testing.T) {
	r, d := recorded(t)
	d.Series = slices.DeleteFunc(d.Series, func(s history.Series) bool { return strings.HasPrefix(s.Family, "kube_") })
	before := reduced(t, d)
	const step = 200
	for i, s := range slices.Clone(d.Series) {
		k := (step - s.From + max(1, s.Every) - 1) / max(1, s.Every)
		if s.Pod != "replica-0" || k <= 0 || k >= len(s.Values) {
			continue
		}
		d.Series[i].Values = s.Values[:k]
		s.Pod, s.From, s.Values = "other-0", s.From+k*max(1, s.Every), s.Values[k:]
		d.Series = append(d.Series, s)
	}
	f := reduced(t, d)
	requireNote(t, f, history.Finished, "counts from before they were first seen")
	require.InEpsilon(t, float64(r.Result.Requests), total(f), 0.02)
	require.InDelta(t, slices.Max(before.Arrivals), slices.Max(f.Arrivals), 3)
}

// TestTwoNamesAreNotOneHistogram: SGLang has had times per token by request and by token at the same time, in other buckets. The
// buckets that only the older name had were taken for buckets of the newer one, with counts of tokens in place of requests.
func TestTwoNamesAreNotOneHistogram(t *testing.T) {
	_, d := recorded(t)
	want := reduced(t, d)
	alone := slices.Clone(d.Series)
	for _, s := range alone {
		if s.Signal != history.TPOTs {
			continue
		}
		s.Family, s.Labels, s.Values = "vllm:inter_token_latency_seconds_bucket", maps.Clone(s.Labels), slices.Clone(s.Values)
		if end, err := strconv.ParseFloat(s.Labels["le"], 64); err == nil && !math.IsInf(end, 1) {
			s.Labels["le"] = strconv.FormatFloat(end*0.9, 'g', -1, 64)
		}
		for k := range s.Values {
			s.Values[k] *= 200
		}
		d.Series = append(d.Series, s)
	}
	f := reduced(t, d)
	require.Equal(t, want.Spans, f.Spans)
	require.Equal(t, want.Repairs, f.Repairs)

	// A server that gets a new version in its place has the one name after the other.
	const step = 120
	for i := range d.Series {
		s := &d.Series[i]
		if s.Signal != history.TPOTs {
			continue
		}
		older := i >= len(alone)
		s.Values = slices.Clone(s.Values)
		for k := range s.Values {
			if at := s.From + k*s.Every; (at > step) == older {
				s.Values[k] = math.NaN()
			}
		}
	}
	both := reduced(t, d)
	for i := range both.Spans {
		require.Len(t, both.Spans[i].TPOT, 2)
	}
	require.Equal(t, want.Spans[0].TTFT, both.Spans[0].TTFT)
}

func TestChangedBucketsAreKeptApart(t *testing.T) {
	_, d := recorded(t)
	want := reduced(t, d)
	d.Series = slices.DeleteFunc(d.Series, func(s history.Series) bool {
		return s.Signal == history.PromptTokens && s.Part == history.Bucket && s.Pod == "replica-1" && s.Labels["le"] == "5000"
	})
	f := reduced(t, d)
	require.Positive(t, f.Repairs.Rebucketed)
	for i := range f.Spans {
		require.InDelta(t, want.Spans[i].Prompts.Total(), f.Spans[i].Prompts.Total(), 1e-6)
		require.InDelta(t, want.Spans[i].Prompts.Mean(), f.Spans[i].Prompts.Mean(), 1e-6)
		require.Len(t, f.Spans[i].Prompts, 2)
	}
	_, _, err := f.Workload()
	require.NoError(t, err)
}

// TestFewValuesDoNotTakeMuchMemory: ten pods with two values each, two million steps apart, took gigabytes.
func TestFewValuesDoNotTakeMuchMemory(t *testing.T) {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	d := &history.Dump{Version: 1, Engine: history.VLLM, Start: start, End: start.Add((history.MaxSteps - 1) * time.Second), Step: history.Seconds(time.Second)}
	for _, pod := range []string{"a", "b", "c"} {
		for _, from := range []int{0, history.MaxSteps - 1} {
			d.Series = append(d.Series, history.Series{Signal: history.Waiting, Family: "vllm:num_requests_waiting", Pod: pod, From: from, Values: history.Values{1}})
		}
	}
	_, err := history.Reduce(d)
	requireRefused(t, err, history.Waiting)
	require.ErrorContains(t, err, "pods have 6291456 steps together, and 6 values: must be at most 4194304 steps")
}

// TestRequestsAreBounded: those of an interval are all in memory.
func TestRequestsAreBounded(t *testing.T) {
	_, d := recorded(t)
	w, _, err := reduced(t, d).Workload()
	require.NoError(t, err)
	w.Counts[3] = 1e8
	require.EqualError(t, w.Validate("workload"), "workload.counts[3]: 1e+08: must be within 0 and 10000000")
	for i := range w.Counts {
		w.Counts[i] = 1e7
	}
	require.ErrorContains(t, w.Validate("workload"), "must be at most 1000000000 together")
}

func TestAnHourWithoutPodsIsNoRequestsOnlyIfNoneWereAskedFor(t *testing.T) {
	_, d := recorded(t)
	d.End = d.End.Add(20 * time.Minute)
	f := reduced(t, d)
	require.True(t, math.IsNaN(f.Arrivals[len(f.Arrivals)-1]))
	d.Series = append(d.Series, history.Series{
		Signal: history.SpecReplicas, Family: "kube_deployment_spec_replicas", From: d.Steps() - 10, Values: make(history.Values, 10),
	})
	f = reduced(t, d)
	require.Zero(t, f.Arrivals[len(f.Arrivals)-1])
}

// TestAnEngineThatSizedItsCacheAnew: after a restart of the container the size that the engine says is another; both were added up.
func TestAnEngineThatSizedItsCacheAnew(t *testing.T) {
	d := hour()
	d.Series = nil
	serve(d, "a", 0, func(i int) float64 { return float64(i % 120) })
	for _, said := range []struct {
		engine, blocks string
		from, upTo     int
	}{{"0", "21000", 0, 120}, {"0", "20998", 120, 240}, {"1", "21000", 0, 240}} {
		s := history.Series{
			Signal: history.CacheBlocks, Family: "vllm:cache_config_info", Pod: "a", Every: 20, From: said.from,
			Labels: map[string]string{"block_size": "16", "num_gpu_blocks": said.blocks, "engine": said.engine},
		}
		for i := said.from; i < said.upTo; i += 20 {
			s.Values = append(s.Values, 1)
		}
		d.Series = append(d.Series, s)
	}
	f, err := history.Reduce(d)
	require.NoError(t, err)
	require.InDelta(t, 16*(20998+21000), f.Pods[0].KVTokens, 0)
}

// TestManyBuckets: buckets with values at two of 200,000 steps were looked for at each step, so that a small dump took minutes.
func TestManyBuckets(t *testing.T) {
	d := hour()
	d.Series, d.End = nil, d.Start.Add(200_000*15*time.Second)
	serve(d, "a", 0, func(i int) float64 { return float64(i) })
	for i := range d.Series {
		d.Series[i].Values = d.Series[i].Values[:1]
	}
	last := d.Series[0]
	last.From = d.Steps() - 1
	d.Series = append(d.Series, last)
	more := func(from, upTo int) {
		for k := from; k < upTo; k++ {
			for _, from := range []int{20, 199_980} {
				d.Series = append(d.Series, history.Series{
					Signal: history.GenerationTokens, Part: history.Bucket, Family: "vllm:request_generation_tokens_bucket", Pod: "a", Every: 20, From: from,
					Labels: map[string]string{"le": strconv.Itoa(k)}, Values: history.Values{1},
				})
			}
		}
	}
	more(0, 1024)
	_, err := history.Reduce(d)
	require.NoError(t, err)
	more(1024, 1025)
	_, err = history.Reduce(d)
	require.ErrorContains(t, err, "pod a has 1025 buckets: must be at most 1024")
}

// TestRegressionManySeriesOfANumberAreRefused: each of them was looked at at each step of the pod, or for each of its lives, so that
// a dump of a few megabytes took hours.
func TestRegressionManySeriesOfANumberAreRefused(t *testing.T) {
	const steps, many = 600_000, 4000
	zero := history.Values{0}
	waiting := history.Series{Signal: history.Waiting, Family: "vllm:num_requests_waiting", Pod: "a", From: steps - 1, Values: zero}
	ready := waiting
	ready.Signal, ready.Family, ready.Values = history.PodReadyTime, "kube_pod_status_ready_time", history.Values{0}
	for name, of := range map[string]history.Series{"a gauge": waiting, "of Kubernetes": ready} {
		start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
		d := &history.Dump{Version: 1, Engine: history.VLLM, Start: start, Step: history.Seconds(time.Second)}
		d.End = start.Add((steps - 1) * time.Second)
		serve(d, "a", 0, func(i int) float64 { return float64(i) })
		first := of
		first.From = 0
		d.Series = append(d.Series, first)
		d.Series = append(d.Series, slices.Repeat([]history.Series{of}, many)...)
		_, err := history.Reduce(d)
		requireRefused(t, err, history.Waiting)
		require.ErrorContains(t, err, "values are looked for more than 2147483648 times: choose a shorter range", name)
	}
}

// TestRegressionReplicasOfTwoClusters: of two workloads of one name, as in two clusters behind one Prometheus, the replicas of any were taken.
func TestRegressionReplicasOfTwoClusters(t *testing.T) {
	_, d := recorded(t)
	for i := range d.Series {
		if s := &d.Series[i]; s.Signal == history.SpecReplicas {
			other := *s
			s.Values = slices.Repeat(history.Values{4}, len(s.Values))
			other.Values = slices.Clone(s.Values)
			for at := 40; at < 140; at++ {
				other.Values[at-s.From] = 9
			}
			other.Values[20-s.From] = 9 // scraped a little earlier
			d.Series = slices.Insert(d.Series, i+1, other)
			break
		}
	}
	f := reduced(t, d)
	for i, n := range f.Spec {
		if at := i + 1; at >= 40 && at < 140 {
			require.True(t, math.IsNaN(n), "interval %d: %v", i, n)
		} else if !math.IsNaN(n) {
			require.Equal(t, 4.0, n)
		}
	}
	requireNote(t, f, history.SpecReplicas, "workloads of one name, as in two clusters or of two kinds, differ for 25m0s")
}

// TestRegressionPodsOfTwoClusters: pods of a StatefulSet have one name in each cluster. They began anew when that of the other cluster was
// created, so that what their counters had by then came at once.
func TestRegressionPodsOfTwoClusters(t *testing.T) {
	_, d := recorded(t)
	honest := reduced(t, d)
	names := map[string]bool{}
	for _, s := range slices.Clone(d.Series) {
		if s.Signal != history.PodCreated && s.Signal != history.PodReady {
			continue
		}
		if from := 80 - s.From; from >= 0 && from+30 < len(s.Values) {
			s.Labels, s.From, s.Values = map[string]string{"uid": "other"}, 80, slices.Clone(s.Values[from:])
			for i := range s.Values {
				if s.Signal == history.PodCreated {
					s.Values[i] = float64(d.Start.Add(20 * time.Minute).Unix())
				}
			}
			d.Series = append(d.Series, s)
			names[s.Pod] = true
		}
	}
	f := reduced(t, d)
	require.InDelta(t, total(honest), total(f), 0.02*total(honest))
	require.Equal(t, honest.Repairs.Pods, f.Repairs.Pods)
	requireNote(t, f, history.PodCreated, strconv.Itoa(len(names))+" names are of several pods at once, as in two clusters")
}
