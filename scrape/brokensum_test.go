package scrape_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
	"github.com/inferscale/inferscale/sim"
)

// TestRegressionABrokenPageIsNotForEver: one page said 1e17 tokens, and so did the histogram of the fleet from then on. Package capacity uses
// no count above 2^53, and decided Unknown until the process ended.
func TestRegressionABrokenPageIsNotForEver(t *testing.T) {
	served, tokens := 0, 0.0
	page := func() string {
		var b strings.Builder
		b.WriteString("vllm:num_requests_waiting 0\nvllm:num_requests_running 5\nvllm:kv_cache_usage_perc 0.1\n")
		for name, sum := range map[string]float64{
			"request_prompt_tokens": tokens, "request_generation_tokens": 100, "time_to_first_token_seconds": 0.1, "request_time_per_output_token_seconds": 0.01,
		} {
			fmt.Fprintf(&b, "# TYPE vllm:%[1]s histogram\nvllm:%[1]s_bucket{le=\"1\"} 0\nvllm:%[1]s_bucket{le=\"+Inf\"} %[2]d\nvllm:%[1]s_count %[2]d\nvllm:%[1]s_sum %[3]g\n", name, served, sum*float64(served))
		}
		for _, name := range []string{"prompt_tokens_total", "prompt_tokens_cached_total"} {
			fmt.Fprintf(&b, "# TYPE vllm:%[1]s counter\nvllm:%[1]s %[2]d\n", name, served)
		}
		return b.String()
	}
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprint(w, page())
	}))
	defer pod.Close()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := scrape.Config{AllowLocal: true, Now: func() time.Time { return now }}
	for _, of := range []struct {
		signal scrape.Signal
		name   string
	}{
		{scrape.Waiting, capacity.Waiting},
		{scrape.Running, capacity.Running},
		{scrape.KVCacheUsage, capacity.KVUse},
		{scrape.PromptTokens, capacity.PromptSize},
		{scrape.GenerationTokens, capacity.AnswerSize},
		{scrape.Prefilled, capacity.Prefilled},
		{scrape.TTFTs, capacity.TTFT},
		{scrape.TPOTs, capacity.TPOT},
	} {
		m, err := scrape.VLLM.Metric(of.signal)
		require.NoError(t, err)
		m.Name = of.name
		c.Metrics = append(c.Metrics, m)
	}
	scraper, err := scrape.New(c)
	require.NoError(t, err)
	defer scraper.Close()
	slo := sim.SLO{TTFT: 2 * time.Second, TPOT: 100 * time.Millisecond}
	scaler, err := capacity.New(capacity.For(scaling.Bounds{Min: 1, Max: 8}, slo, sim.Llama70BH100x4()), &capacity.Background{})
	require.NoError(t, err)
	policy := scaling.New(scaler)
	for i := range 10 {
		served++
		if tokens = 1000; i == 4 {
			tokens = 1e17
		}
		sweep := scraper.Scrape(t.Context(), []scrape.Pod{{Name: "p", URL: pod.URL + "/metrics"}})
		require.NoError(t, sweep.Err())
		d := policy.Decide(now, scaling.Observation{SpecReplicas: 1, ReadyReplicas: 1, Readings: sweep.Readings, Histograms: sweep.Histograms})
		if i != 4 {
			require.NotEqual(t, scaling.Unknown, d.Verdict, "%d: %s", i, d.Explain())
		}
		now = now.Add(15 * time.Second)
	}
}
