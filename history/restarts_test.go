package history_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
)

// dump is an empty one of so many hours.
func dump(engine history.Engine, hours int) *history.Dump {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	return &history.Dump{
		Version: 1, Engine: engine, Start: start, End: start.Add(time.Duration(hours) * time.Hour), Step: history.Seconds(15 * time.Second),
	}
}

// TestRegressionACounterThatComesLaterIsNoSecondRestart: SGLang has the counter of cached tokens only from the first hit on. After a restart
// with a hit a quarter of an hour later, all that the pod had served in between was counted again.
func TestRegressionACounterThatComesLaterIsNoSecondRestart(t *testing.T) {
	for _, hit := range []int{100, 160} {
		d := dump(history.SGLang, 1)
		var done, cached, zero history.Values
		for i := range d.Steps() {
			zero = append(zero, 0)
			switch {
			case i < 100:
				done, cached = append(done, float64(4*i)), append(cached, float64(100*i))
				continue
			case i < hit:
				cached = append(cached, nan)
			default:
				cached = append(cached, float64(10*(i-hit)))
			}
			done = append(done, float64(i-100))
		}
		for _, s := range []history.Series{
			{Signal: history.Waiting, Family: "sglang:num_queue_reqs", Values: zero},
			{Signal: history.Running, Family: "sglang:num_running_reqs", Values: zero},
			{Signal: history.GenerationTokens, Part: history.Count, Family: "sglang:generation_tokens_histogram_count", Values: done},
			{Signal: history.Cached, Family: "sglang:cached_tokens_total", Values: cached},
		} {
			s.Pod = "a"
			d.Series = append(d.Series, s)
		}
		f := reduced(t, d)
		require.InDelta(t, 4*99+d.Steps()-1-100, total(f), 1e-9, "first hit at %d", hit)
		require.Equal(t, 1, f.Repairs.Restarts)
	}
}

// TestRegressionAPartThatComesLaterIsNoGap: a router has the counter of a model only from its first request on. After a restart all models
// counted as unknown until the rarest was asked for again, so that an hour of rest and three of work became four alike, and a history was
// refused for a gap that it does not have.
func TestRegressionAPartThatComesLaterIsNoGap(t *testing.T) {
	d := dump(history.VLLM, 6)
	serve(d, "a", 0, func(i int) float64 { return float64(i) })
	var common, rare history.Values
	for i := range d.Steps() {
		switch {
		case i < 200:
			common, rare = append(common, float64(10*i)), append(rare, 4)
			continue
		case i < 1300:
			rare = append(rare, nan)
		default:
			rare = append(rare, 1)
		}
		common = append(common, float64(20*max(0, i-600)))
	}
	for model, values := range map[string]history.Values{"base": common, "rare": rare} {
		d.Series = append(d.Series, history.Series{
			Signal: history.Requests, Router: true, Family: "inference_objective_request_total", Pod: "epp",
			Labels: map[string]string{"target_model_name": model}, Values: values,
		})
	}
	for signal, family := range map[history.Signal]string{
		history.PromptTokens: "vllm:request_prompt_tokens_bucket", history.GenerationTokens: "vllm:request_generation_tokens_bucket",
	} {
		for _, le := range []string{"100", "+Inf"} {
			b := history.Series{Signal: signal, Part: history.Bucket, Family: family, Pod: "a", Every: 20, Labels: map[string]string{"le": le}}
			for i := 0; i < d.Steps(); i += 20 {
				b.Values = append(b.Values, float64(i))
			}
			d.Series = append(d.Series, b)
		}
	}
	f := reduced(t, d)
	require.Zero(t, f.Arrivals[400])
	require.InDelta(t, 20, f.Arrivals[1000], 1e-9)
	_, _, err := f.Workload()
	require.NoError(t, err)
}

// TestRegressionTwoServersOfWhichOneWasAway: a pod counted as seen only where the first of its series has a value. While the first of two
// Prometheus servers was away, the fleet had a gap, pods that were ready were not known to be, and those that started then were from before.
func TestRegressionTwoServersOfWhichOneWasAway(t *testing.T) {
	d := hour()
	serve(d, "b", 150, func(i int) float64 { return 2 * float64(i-149) })
	want := total(reduced(t, d))
	twins := slices.Clone(d.Series)
	for i := range twins {
		twins[i].Values = slices.Clone(twins[i].Values)
	}
	cut(d, 100, 200, all)
	d.Series = append(d.Series, twins...)
	f := reduced(t, d)
	require.InDelta(t, want, total(f), 1e-9)
	require.Zero(t, f.Repairs.Gaps)
	require.False(t, slices.ContainsFunc(f.Ready, math.IsNaN))
}

// TestRegressionARouterThatWasNotScrapedBeforeIsNotNew: what a router had counted before its first scrape came within one step, as where it
// is scraped from some day of the history on: only a count of finished requests, which it may not have, showed that it was there before.
func TestRegressionARouterThatWasNotScrapedBeforeIsNotNew(t *testing.T) {
	const first = 100
	router := func(before float64) *history.Fleet {
		d := hour()
		s := history.Series{Signal: history.Requests, Router: true, Family: "inference_objective_request_total", Pod: "epp", From: first}
		for i := first; i < d.Steps(); i++ {
			s.Values = append(s.Values, before+2*float64(i-first+1))
		}
		d.Series = append(d.Series, s)
		return reduced(t, d)
	}
	f := router(1e6)
	require.True(t, math.IsNaN(f.Arrivals[first-1]), "%v", f.Arrivals[first-1])
	require.InDelta(t, 2*float64(len(f.Arrivals)-first), total(f), 1e-9)
	require.InDelta(t, 2*float64(len(f.Arrivals)-first+1), total(router(0)), 1e-9, "one that is new")
}
