package scrape

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scrape/internal/page"
)

// fiveFamilies are what a scaler with a latency objective reads: four gauges and counters, and a histogram.
func fiveFamilies() []string {
	return []string{
		"vllm:num_requests_waiting", "vllm:num_requests_running", "vllm:kv_cache_usage_perc", "vllm:num_preemptions_total",
		"vllm:time_to_first_token_seconds",
	}
}

// benchmarkPage takes the wanted families out of a page.
func benchmarkPage(b *testing.B, text []byte, wanted []string) {
	b.Helper()
	b.Run("filtered", func(b *testing.B) {
		r, f := page.NewReader(nil), page.NewFilter(wanted)
		source := bytes.NewReader(nil)
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			source.Reset(text)
			r.Reset(f, defaultMaxSeries, func(int) bool { return true })
			if _, err := r.Read(b.Context(), source, 1<<40); err != nil || r.First(0) == nil {
				b.Fatal(err)
			}
		}
	})
}

func benchmarkPages(b *testing.B, wanted []string) {
	b.Helper()
	for _, p := range []struct{ name, file string }{
		{"64KB", "constructed-vllm-v1-dp1.txt"},
		{"1MB", "constructed-vllm-v1-dp16-lora600.txt.gz"},
	} {
		b.Run(p.name, func(b *testing.B) { benchmarkPage(b, loadPage(b, p.file), wanted) })
	}
}

func BenchmarkOneGauge(b *testing.B) { benchmarkPages(b, fiveFamilies()[:1]) }

func BenchmarkFiveFamilies(b *testing.B) { benchmarkPages(b, fiveFamilies()) }

// BenchmarkReduce is all that is done for a page beside fetching it: filter, parse and reduction to four metrics, with
// the deltas of a counter and a histogram and their creation times.
func BenchmarkReduce(b *testing.B) {
	p95, err := VLLM.Quantile(TTFT, 0.95)
	require.NoError(b, err)
	for _, file := range []string{"constructed-vllm-v1-dp1.txt", "constructed-vllm-v1-dp8.txt"} {
		b.Run(file, func(b *testing.B) {
			tape := newPageTape(b, signal(b, VLLM, Waiting), signal(b, VLLM, KVCacheUsage), signal(b, VLLM, Preemptions), p95)
			page, at := loadPage(b, file), origin()
			tape.read(page, at)
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			for b.Loop() {
				at = at.Add(time.Second)
				shares, fails := tape.read(page, at)
				if fails[0] != nil || fails[3] != nil || shares[0].value == 0 {
					b.Fatal(fails)
				}
			}
		})
	}
}

// loopbackPods listens on addresses 127.x.y.z of one port and serves the 64 KB page.
func loopbackPods(b *testing.B, n int) (pods []Pod, port int) {
	b.Helper()
	page := loadPage(b, "constructed-vllm-v1-dp1.txt")
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", textVersion)
		_, _ = w.Write(page)
	})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	var group sync.WaitGroup
	for i := range n {
		host := fmt.Sprintf("127.%d.%d.%d", 1+i/62500, i/250%250, 1+i%250)
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			b.Skipf("no listener on %s: %v", host, err)
		}
		port = l.Addr().(*net.TCPAddr).Port
		pods = append(pods, Pod{Name: fmt.Sprintf("pod-%04d", i), Host: host})
		group.Add(1)
		go func() {
			defer group.Done()
			_ = server.Serve(l)
		}()
	}
	b.Cleanup(func() {
		_ = server.Close()
		group.Wait()
	})
	return pods, port
}

// BenchmarkFanOut sweeps 1,000 pods with 64 workers, kept connections and new ones. The servers are in the same process.
func BenchmarkFanOut(b *testing.B) {
	const n = 1000
	pods, port := loopbackPods(b, n)
	for _, v := range []struct {
		name     string
		interval time.Duration
	}{{"ours/kept", 4 * time.Second}, {"ours/new", 15 * time.Second}} {
		b.Run(v.name, func(b *testing.B) {
			m := Named("vllm:num_requests_waiting")
			m.Endpoint.Port = port
			s := newScraper(b, Config{
				// Generous, so that a busy machine is slow and not wrong.
				Metrics: []Metric{m}, Interval: v.interval, Timeout: v.interval - 1, DialTimeout: v.interval, SweepTimeout: time.Minute,
			})
			b.ReportAllocs()
			for b.Loop() {
				sweep := s.Scrape(b.Context(), pods)
				if sweep.Readings[0].Values != n || sweep.Readings[0].Lower != 8 {
					b.Fatal(sweep.Readings[0], sweep.Err())
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "pages/s")
		})
	}
}
