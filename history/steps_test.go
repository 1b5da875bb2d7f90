package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
)

// TestRegressionBucketsAreOfFiveMinutesAtEveryStep: they were of twenty steps, and a span of 240: of four hours with steps of a minute.
func TestRegressionBucketsAreOfFiveMinutesAtEveryStep(t *testing.T) {
	for step, want := range map[time.Duration][2]time.Duration{
		15 * time.Second: {5 * time.Minute, time.Hour},
		time.Minute:      {5 * time.Minute, time.Hour},
		7 * time.Second:  {42 * 7 * time.Second, 12 * 42 * 7 * time.Second},
		10 * time.Minute: {10 * time.Minute, time.Hour},
		time.Hour:        {time.Hour, time.Hour},
	} {
		o := history.Options{Model: "m", Step: step}
		queries, err := history.Queries(history.VLLM, o)
		require.NoError(t, err)
		steps := int(24*time.Hour/step) + 1
		d := &history.Dump{Version: 1, Model: "m", Engine: history.VLLM, Start: time.Unix(1.7e9, 0).UTC(), Step: history.Seconds(step)}
		d.End = d.Start.Add(time.Duration(steps-1) * step)
		for i := range queries {
			q := &queries[i]
			family := map[history.Signal]string{
				history.PromptTokens: "vllm:request_prompt_tokens", history.GenerationTokens: "vllm:request_generation_tokens",
			}[q.Signal]
			if family == "" {
				continue
			}
			if q.Part == history.Bucket {
				require.Equal(t, want[0], q.Step(&o))
			}
			one := history.Series{Signal: q.Signal, Part: q.Part, Family: family + "_" + string(q.Part), Pod: "p", Every: q.Every}
			for k := 0; k < steps; k += q.Every {
				one.Values = append(one.Values, float64(k)*step.Seconds())
			}
			labels := []map[string]string{nil}
			if q.Part == history.Bucket {
				labels = []map[string]string{{"le": "200"}, {"le": "+Inf"}}
			}
			for _, l := range labels {
				one.Labels = l
				d.Series = append(d.Series, one)
			}
		}
		f, err := history.Reduce(d)
		require.NoError(t, err)
		require.Equal(t, want[1], time.Duration(f.Spans[0].To-f.Spans[0].From)*step)
	}
}
