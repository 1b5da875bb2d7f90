package scrape_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
	"github.com/inferscale/inferscale/sim"
)

// The policy that needs no tuning reads what vLLM and SGLang say: three readings, and then five histograms.
func Example_capacity() {
	pod := httptest.NewServer(http.FileServer(http.Dir("testdata/pages")))
	defer pod.Close()

	names := map[scrape.Signal]string{
		scrape.Waiting: capacity.Waiting, scrape.Running: capacity.Running, scrape.KVCacheUsage: capacity.KVUse,
		scrape.PromptTokens: capacity.PromptSize, scrape.GenerationTokens: capacity.AnswerSize, scrape.Prefilled: capacity.Prefilled,
		scrape.TTFTs: capacity.TTFT, scrape.TPOTs: capacity.TPOT,
	}
	c := scrape.Config{AllowLocal: true}
	for _, signal := range append(scrape.Signals(), scrape.Histograms()...) {
		if name, ok := names[signal]; ok {
			m, err := scrape.VLLM.Metric(signal)
			if err != nil {
				panic(err)
			}
			m.Name = name
			c.Metrics = append(c.Metrics, m)
		}
	}
	scraper, err := scrape.New(c)
	if err != nil {
		panic(err)
	}
	defer scraper.Close()

	slo := sim.SLO{TTFT: 2 * time.Second, TPOT: 100 * time.Millisecond}
	scaler, err := capacity.New(capacity.For(scaling.Bounds{Min: 1, Max: 8}, slo, sim.Llama70BH100x4()), &capacity.Background{})
	if err != nil {
		panic(err)
	}
	policy := scaling.New(scaler)

	sweep := scraper.Scrape(context.Background(), []scrape.Pod{{Name: "vllm-0", URL: pod.URL + "/constructed-vllm-v1-dp1.txt"}})
	d := policy.Decide(time.Now(), scaling.Observation{
		SpecReplicas: 1, ReadyReplicas: 1, Readings: sweep.Readings, Histograms: sweep.Histograms,
	})
	fmt.Println(d.Explain())
	// Output:
	// Hold at 1
	//   Warming           1 -> 1    finished=0 < needed=60
}
