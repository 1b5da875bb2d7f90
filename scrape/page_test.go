package scrape

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pageNames are the pages of testdata/pages that are text of version 0.0.4.
func pageNames() []string {
	return []string{
		"constructed-vllm-v1-dp1.txt",
		"constructed-vllm-v1-dp8.txt",
		"constructed-vllm-v1-dp16-lora600.txt.gz",
		"debian-node-exporter-1.5.txt",
		"llmd-sim-idle.txt",
		"sglang-docs-real.txt",
		"small-vllm-gauges.txt",
		"triton-trtllm-readme.txt",
		"vllm-v0-aibrix-docs-excerpt.txt",
		"vllm-v0-kubeai.txt",
	}
}

func loadPage(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "pages", name))
	require.NoError(tb, err)
	if strings.HasSuffix(name, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(b))
		require.NoError(tb, err)
		b, err = io.ReadAll(r)
		require.NoError(tb, err)
	}
	return b
}

// origin is the time of the first page in tests.
func origin() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// A pageTape reads pages one after another as the scraper would those of one pod, without a network.
type pageTape struct {
	plan   *plan
	worker *worker
	memory *memory
}

func newPageTape(tb testing.TB, metrics ...Metric) *pageTape {
	tb.Helper()
	for _, m := range metrics {
		require.NoError(tb, m.Validate())
	}
	p := newPlan(metrics)
	return &pageTape{plan: p, worker: newWorker(nil), memory: p.memory(newBudget(defaultBudget), "")}
}

// read returns the share or the failure of every metric.
func (r *pageTape) read(text []byte, at time.Time) ([]*share, []*Error) {
	shares, failures := make([]*share, len(r.plan.metrics)), make([]*Error, len(r.plan.metrics))
	r.worker = r.worker.release()
	r.worker.page.Reset(r.plan.filter, defaultMaxSeries, func(int) bool { return true })
	if _, err := r.worker.page.Read(context.Background(), bytes.NewReader(text), 1<<40); err != nil {
		for i := range failures {
			failures[i] = &Error{Reason: TooMany, Err: err}
		}
		return shares, failures
	}
	now := moment{at: at, staleness: 30 * time.Second}
	r.plan.read(r.worker, &r.plan.static, now, r.memory, func(i int, s *share, f *Error) {
		shares[i], failures[i] = s, f
	})
	return shares, failures
}

// readOne reads one page for one metric.
func readOne(tb testing.TB, page string, m Metric) (*share, *Error) {
	tb.Helper()
	shares, failures := newPageTape(tb, m).read([]byte(page), origin())
	return shares[0], failures[0]
}

func signal(tb testing.TB, e Engine, s Signal) Metric {
	tb.Helper()
	m, err := e.Metric(s)
	require.NoError(tb, err)
	return m
}

func reasonOf(e *Error) Reason {
	if e == nil {
		return None
	}
	return e.Reason
}

func TestDP8PageAsPeersReadIt(t *testing.T) {
	// No complete captured page of vLLM V1 could be had: this one is constructed. Peers read 8 (first series) or 3 (last
	// series) of 147 waiting, and a KV usage of 4.57 (sum) instead of 0.57.
	page := string(loadPage(t, "constructed-vllm-v1-dp8.txt"))
	for _, row := range []struct {
		signal          Signal
		value, min, max float64
		series          int
	}{
		{Waiting, 147, 0, 39, 8},
		{Running, 1180, 26, 243, 8},
		{InFlight, 1327, 29, 262, 16},
		{KVCacheUsage, 0.57, 0.12, 0.91, 8},
	} {
		t.Run(row.signal.String(), func(t *testing.T) {
			s, fail := readOne(t, page, signal(t, VLLM, row.signal))
			require.Nil(t, fail)
			require.InDelta(t, row.value, s.value, 0.005)
			require.InDelta(t, row.min, s.min, 0.005)
			require.InDelta(t, row.max, s.max, 0.005)
			require.Equal(t, row.series, s.series)
			require.Equal(t, 8, s.engines)
		})
	}
	t.Run("unknown rule", func(t *testing.T) {
		m := Metric{Name: "kv", Terms: []Series{{Families: []string{"vllm:kv_cache_usage_perc"}}}}
		_, fail := readOne(t, page, m)
		require.Equal(t, Ambiguous, reasonOf(fail))
		require.ErrorContains(t, fail, `ambiguous: 8 series: {engine="0",model_name=`)
		require.ErrorContains(t, fail, " ...")
		require.Equal(t, 3, strings.Count(fail.Error(), "{"), "three of them are shown")
	})
}
