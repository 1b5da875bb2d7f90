package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// A load is how many ScaledObjects, with how many triggers each, are asked for how long.
type load struct {
	objects, triggers int
	lasts, sync       time.Duration
	interval          string
}

// loadOf reads INFERSCALE_LOAD=500x5x30s. Without it, the load is a small one.
func loadOf(t *testing.T) load {
	t.Helper()
	l := load{objects: 60, triggers: 5, lasts: 3 * time.Second, sync: 3 * time.Second, interval: "3"}
	text := os.Getenv("INFERSCALE_LOAD")
	if strings.Count(text, "x") != 2 { // with one x it is for the rotation of package certs
		return l
	}
	var lasts string
	_, err := fmt.Sscanf(text, "%dx%dx%s", &l.objects, &l.triggers, &lasts)
	require.NoError(t, err)
	l.lasts, err = time.ParseDuration(lasts)
	require.NoError(t, err)
	l.sync, l.interval = 15*time.Second, "15"
	return l
}

// An asker makes calls and notes how they went.
type asker struct {
	t        *testing.T
	failures atomic.Int64

	mu   sync.Mutex
	took []time.Duration
	why  map[string]int
}

// note notes a call.
func (a *asker) note(began time.Time, err error) {
	took := time.Since(began)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = append(a.took, took)
	if err != nil {
		a.failures.Add(1)
		a.why[err.Error()]++
	}
}

// quantile is the time that so many of the calls took at most.
func (a *asker) quantile(q float64) time.Duration {
	slices.Sort(a.took)
	return a.took[min(len(a.took)-1, int(q*float64(len(a.took))))]
}

// sync asks for one ScaledObject's values as an HPA with KEDA does: for each of the metrics, every trigger for its spec,
// then the one whose metric it is for its value and whether it is active.
func (a *asker) sync(c caller, refs []*externalscaler.ScaledObjectRef, want []float64) {
	ctx := a.t.Context()
	for i, ref := range refs {
		for _, other := range refs {
			began := time.Now()
			_, err := c.GetMetricSpec(ctx, other)
			a.note(began, err)
		}
		began := time.Now()
		got, err := c.value(ctx, ref, metricOf(i))
		if err == nil && got != want[i] {
			err = fmt.Errorf("%s of %s: %v instead of %v", metricOf(i), ref.GetName(), got, want[i])
		}
		a.note(began, err)
		began = time.Now()
		active, err := c.IsActive(ctx, ref)
		if err == nil && !active.GetResult() {
			err = fmt.Errorf("%s is not active", ref.GetName())
		}
		a.note(began, err)
	}
}

func metricOf(i int) string { return fmt.Sprintf("metric_%d", i) }

// TestLoad asks one scaler over mTLS as an HPA sync of 15 s does for 500 ScaledObjects of five triggers each, while it
// makes the rounds of all 2,500. Half of the ScaledObjects share one connection, as in KEDA do those of the same
// metadata, the others have four. No call may fail. INFERSCALE_LOAD=500x5x30s is in full, without it it is a small one.
func TestLoad(t *testing.T) {
	l := loadOf(t)
	var urls []string
	want := make([]float64, l.triggers)
	for i := range 3 {
		numbers := make(map[string]float64)
		for m := range l.triggers {
			numbers[metricOf(m)] = float64(10*i + m + 1)
			want[m] += numbers[metricOf(m)]
		}
		urls = append(urls, newPage(t, numbers).URL)
	}
	dir := filepath.Join(t.TempDir(), "certs")
	p := start(t, "-static", strings.Join(urls, ","), "-address", "127.0.0.1:0", "-cert-dir", dir)
	address := p.address()
	conns := make([]caller, 5)
	for i := range conns {
		conns[i] = call(t, address, pairOf(t, dir))
	}
	refs := make([][]*externalscaler.ScaledObjectRef, l.objects)
	conn := make([]caller, l.objects)
	for i := range refs {
		conn[i] = conns[0]
		if i%2 == 1 {
			conn[i] = conns[1+i/2%4]
		}
		for m := range l.triggers {
			refs[i] = append(refs[i], trigger(fmt.Sprintf("chat-%d", i), "threshold=10", "interval="+l.interval, "metricName="+metricOf(m)))
		}
	}

	// Warm up, a few at a time.
	turns := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i := range refs {
		wg.Add(1)
		turns <- struct{}{}
		go func() {
			defer wg.Done()
			defer func() { <-turns }()
			for m, ref := range refs[i] {
				_, _ = conn[i].GetMetricSpec(t.Context(), ref)
				_, _ = conn[i].value(t.Context(), ref, metricOf(m))
			}
		}()
	}
	wg.Wait()
	for i := range refs {
		for m, ref := range refs[i] {
			conn[i].comes(t, ref, metricOf(m), want[m])
		}
	}

	a := &asker{t: t, why: make(map[string]int)}
	before, began := p.cpuTime(), time.Now()
	for i := range refs {
		wg.Go(func() {
			// Each has its own place in the sync.
			for at := began.Add(l.sync * time.Duration(i) / time.Duration(l.objects)); at.Sub(began) < l.lasts; at = at.Add(l.sync) {
				timer := time.NewTimer(time.Until(at))
				<-timer.C
				a.sync(conn[i], refs[i], want)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	now, most := p.resident()
	t.Logf("%d ScaledObjects of %d triggers, %s, %d CPUs: %d calls in %.1f s (%.0f/s), %d failures; p50 %s, p99 %s, max %s; scaler: %.2f s CPU (%.0f %% of one), %d MB now, %d MB at most",
		l.objects, l.triggers, l.lasts, runtime.NumCPU(), len(a.took), took.Seconds(), float64(len(a.took))/took.Seconds(), a.failures.Load(),
		a.quantile(0.5), a.quantile(0.99), a.quantile(1), (p.cpuTime() - before).Seconds(), 100*(p.cpuTime()-before).Seconds()/took.Seconds(), now, most)
	require.Zero(t, a.failures.Load(), "%v", a.why)
	require.NotContains(t, p.said(), "round failed")
	p.terminate()
	require.Equal(t, 0, p.code())
}
