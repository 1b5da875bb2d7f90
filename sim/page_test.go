package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// TestPagesCountEveryToken: what the pods' pages count is what there was, token by token, and a run with pages is the run
// without.
func TestPagesCountEveryToken(t *testing.T) {
	s := Scenario{
		Name: "pages", Types: []Type{{Server: Qwen32B(), Initial: 2, Startup: ColdStart(40 * time.Second)}}, SLO: SLO{TTFT: 3 * time.Second, TPOT: time.Second},
		Workload: Stages{Stages: []Stage{{Rate: 3, Duration: 10 * time.Minute}}, CV: 1, Input: Length{Mean: 3000, Deviation: 3000, LogNormal: true, Min: 10, Max: 6000}, Output: Length{Mean: 300, Deviation: 300, LogNormal: true, Min: 1, Max: 600}},
		Scrape:   Scrape{Interval: 7 * time.Second, FailureRate: 0.2}, Control: Control{Interval: 15 * time.Second}, Grace: time.Hour, Horizon: 30 * time.Minute,
	}
	type counts struct{ requests, prompt, written, gaps, seconds float64 }
	var want counts
	group := func() (scaling.Group, error) { return Schedule(s.Begin(), time.Minute, []int32{2, 2, 3}), nil }
	o := Options{Seed: 1, Request: func(r Outcome) {
		want.requests++
		want.prompt += float64(r.Input)
		want.written += float64(r.Output)
		want.gaps += float64(r.Output - 1)
		want.seconds += (r.Total - r.TTFT).Seconds()
	}}
	plain, err := Run(context.Background(), &s, group, o)
	require.NoError(t, err)
	expected := want
	last := map[string]Page{}
	failed, booting := 0, 0
	o.Pages = func(now time.Time, pages []Page) {
		for _, p := range pages {
			switch {
			case p.Answered:
				if was := last[p.Pod]; true {
					require.GreaterOrEqual(t, p.Steps, was.Steps)
					require.GreaterOrEqual(t, p.ITLs, was.ITLs)
					require.GreaterOrEqual(t, p.ITLSeconds, was.ITLSeconds)
				}
				last[p.Pod] = p
			case p.Ready:
				failed++
			default:
				booting++
				require.Less(t, now.Sub(p.Asked), 40*time.Second)
			}
		}
	}
	shown, err := Run(context.Background(), &s, group, o)
	require.NoError(t, err)
	require.Equal(t, plain, shown)
	require.Positive(t, failed)
	require.Positive(t, booting)
	var got counts
	for _, p := range last {
		require.Zero(t, p.Running, "the last page is that of a replica at rest")
		got.requests += sumOf(p.TTFT.Counts)
		got.prompt += p.PromptTokens
		got.written += p.GenerationTokens
		got.gaps += p.ITLs
		got.seconds += p.ITLSeconds
	}
	require.InDelta(t, expected.seconds, got.seconds, 1e-6*expected.seconds)
	got.seconds = expected.seconds
	require.Equal(t, expected, got)
}

func sumOf(counts []float64) (n float64) {
	for _, c := range counts {
		n += c
	}
	return n
}
