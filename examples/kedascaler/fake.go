package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// fakePages serve what vLLM servers might say whose queues grow and shrink within two minutes.
type fakePages struct {
	urls    []string
	servers []*http.Server
	wg      sync.WaitGroup
}

const (
	fakePeriod = 2 * time.Minute
	fakePeak   = 24 // requests that wait at each page
)

func startPages(n int) (*fakePages, error) {
	p := &fakePages{}
	began := time.Now()
	for i := range n {
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			p.stop()
			return nil, err
		}
		server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			phase := 2 * math.Pi * (float64(time.Since(began))/float64(fakePeriod) + float64(i)/float64(8*n))
			load := (1 - math.Cos(phase)) / 2
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprintf(w, "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{model_name=\"fake\"} %.0f\n", fakePeak*load)
			fmt.Fprintf(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"fake\"} %.0f\n", math.Ceil(8*load))
			fmt.Fprintf(w, "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{model_name=\"fake\"} %.3f\n", 0.95*load)
		})}
		p.servers = append(p.servers, server)
		p.urls = append(p.urls, "http://"+listener.Addr().String()+"/metrics")
		p.wg.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				fmt.Println(err)
			}
		})
	}
	return p, nil
}

func (p *fakePages) stop() {
	for _, s := range p.servers {
		_ = s.Close()
	}
	p.wg.Wait()
}
