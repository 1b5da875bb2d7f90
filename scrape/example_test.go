package scrape_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/inferscale/inferscale/scrape"
)

// engine serves what a vLLM pod with two data-parallel engines says.
func engine(first, second int) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=1.0.0; charset=utf-8")
		_, _ = fmt.Fprintf(w, "# TYPE vllm:num_requests_waiting gauge\n"+
			"vllm:num_requests_waiting{engine=\"0\"} %d\nvllm:num_requests_waiting{engine=\"1\"} %d\n", first, second)
	}))
}

// Three pods, of which one is still booting: the reading is an interval.
func Example() {
	a, b := engine(6, 3), engine(1, 2)
	defer a.Close()
	defer b.Close()

	waiting, err := scrape.VLLM.Metric(scrape.Waiting)
	if err != nil {
		panic(err)
	}
	waiting.Fill = 10 // what a pod without a value may be waiting for at most: the threshold for scaling up
	scraper, err := scrape.New(scrape.Config{Metrics: []scrape.Metric{waiting}, AllowLocal: true})
	if err != nil {
		panic(err)
	}
	defer scraper.Close()

	sweep := scraper.Scrape(context.Background(), []scrape.Pod{
		{Name: "vllm-0", URL: a.URL},
		{Name: "vllm-1", URL: b.URL},
		{Name: "vllm-2", State: scrape.NotReady},
	})
	r := sweep.Readings[0]
	fmt.Printf("%s: %g to %g, %d of %d pods\n", r.Metric, r.Lower, r.Upper, r.Values, len(sweep.Pods))
	for _, p := range sweep.Pods {
		v := p.Values[0]
		fmt.Printf("%s %v: %v %g (engines %d, least %g, most %g)\n", p.Name, p.State, v.OK, v.Value, v.Engines, v.Min, v.Max)
	}
	// Output:
	// Waiting: 4 to 7.333333333333333, 2 of 3 pods
	// vllm-0 Ready: true 9 (engines 2, least 3, most 6)
	// vllm-1 Ready: true 3 (engines 2, least 1, most 2)
	// vllm-2 NotReady: false 0 (engines 0, least 0, most 0)
}

// A family that no preset knows is read when it has one series. How several become one number must be said.
func ExampleNamed() {
	known := scrape.Named("vllm:kv_cache_usage_perc")
	unknown := scrape.Named("my_queue_depth")
	fmt.Println(known.Terms[0].Across, unknown.Terms[0].Across)
	unknown.Terms[0].Across = scrape.Sum
	fmt.Println(unknown.Validate())
	// Output:
	// Average Only
	// <nil>
}

// The latency that 95 of 100 first tokens keep, over all engines of all pods, since the last sweep.
func ExampleEngine_Quantile() {
	m, err := scrape.SGLang.Quantile(scrape.TTFT, 0.95)
	fmt.Println(m.Name, m.Terms[0].Families, m.Endpoint, err)
	_, err = scrape.LlamaCPP.Quantile(scrape.TTFT, 0.95)
	fmt.Println(err)
	// Output:
	// TTFT [sglang:time_to_first_token_seconds] http://:30000/metrics <nil>
	// LlamaCPP has no TTFT
}
