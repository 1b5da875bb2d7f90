package e2e

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// A usage is what a process has used and done until a moment.
type usage struct {
	at      time.Time
	cpu     float64 // seconds
	metrics map[string]*dto.MetricFamily
	writes  map[string]int // to the API server, by resource and verb
}

// used reads what the process has used and done.
func (w *world) used(p shipped) usage {
	w.t.Helper()
	u := usage{at: time.Now(), cpu: cpuSeconds(w.t, p.cmd.Process.Pid), metrics: scraped(w.t, p.address), writes: map[string]int{}}
	writes, err := w.cluster.Writes(w.user, "", "*")
	require.NoError(w.t, err)
	for _, one := range writes {
		kind := one.Resource
		if one.Subresource != "" {
			kind += "/" + one.Subresource
		}
		u.writes[kind+" "+one.Verb]++
	}
	return u
}

// A phase is what a process has used and done between two moments.
type phase struct {
	from, to  usage
	now, most int // MiB
}

// measure lets some time pass, and returns what the process used and did.
func (w *world) measure(p shipped, span time.Duration) phase {
	w.t.Helper()
	forgetMost(w.t, p.cmd.Process.Pid)
	from := w.used(p)
	over := time.NewTimer(span)
	defer over.Stop()
	select {
	case <-over.C:
	case <-w.t.Context().Done():
	}
	return phase{
		from: from, to: w.used(p), now: memoryMiB(w.t, p.cmd.Process.Pid, "VmRSS:"), most: memoryMiB(w.t, p.cmd.Process.Pid, "VmHWM:"),
	}
}

func (f *phase) seconds() float64 { return f.to.at.Sub(f.from.at).Seconds() }

// cores returns how many cores it has used.
func (f *phase) cores() float64 { return (f.to.cpu - f.from.cpu) / f.seconds() }

// writes returns the writes to the API server, by resource and verb.
func (f *phase) writes() map[string]int {
	all := map[string]int{}
	for kind, n := range f.to.writes {
		if n -= f.from.writes[kind]; n > 0 {
			all[kind] = n
		}
	}
	return all
}

func (f *phase) String() string {
	rounds := f.count("inferscale_loop_duration_seconds", every)
	writes, requests := 0, f.count("rest_client_requests_total", every)
	for _, n := range f.writes() {
		writes += n
	}
	return fmt.Sprintf("%.0f s: %.2f cores, %d MiB, %d at most; %.1f rounds/s, each %s; late by %s; %.1f requests/s, of which %.2f writes/s %v",
		f.seconds(), f.cores(), f.now, f.most, rounds/f.seconds(),
		f.quantiles("inferscale_loop_duration_seconds", every), f.quantiles("inferscale_round_lateness_seconds", every),
		requests/f.seconds(), float64(writes)/f.seconds(), f.writes())
}

// every selects all series.
func every(map[string]string) bool { return true }

// count returns by how much the series that are selected have grown: counters, or the observations of histograms.
func (f *phase) count(family string, selected func(labels map[string]string) bool) float64 {
	return total(f.to, family, selected) - total(f.from, family, selected)
}

func total(u usage, family string, selected func(labels map[string]string) bool) (sum float64) {
	for _, m := range u.metrics[family].GetMetric() {
		if selected(labelsOf(m)) {
			sum += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// quantile returns a quantile of what the histograms that are selected have observed, in seconds, as Prometheus does: on a
// line between the bounds of a bucket.
func (f *phase) quantile(q float64, family string, selected func(labels map[string]string) bool) float64 {
	buckets := map[float64]float64{}
	for sign, u := range map[float64]usage{1: f.to, -1: f.from} {
		for _, m := range u.metrics[family].GetMetric() {
			if selected(labelsOf(m)) {
				for _, b := range m.GetHistogram().GetBucket() {
					buckets[b.GetUpperBound()] += sign * float64(b.GetCumulativeCount())
				}
			}
		}
	}
	rank, below, lower := q*f.count(family, selected), 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(buckets)) {
		if n := buckets[bound]; n >= rank && n > below {
			return lower + (bound-lower)*(rank-below)/(n-below)
		}
		below, lower = buckets[bound], bound
	}
	return math.Inf(1)
}

// quantiles writes those that are looked at.
func (f *phase) quantiles(family string, selected func(labels map[string]string) bool) string {
	return fmt.Sprintf("%.3f s (p50), %.3f s (p99)", f.quantile(0.5, family, selected), f.quantile(0.99, family, selected))
}

func labelsOf(m *dto.Metric) map[string]string {
	all := make(map[string]string, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

// scraped returns the metrics of the process.
func scraped(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics") //nolint:noctx // a test's loopback
	if err != nil {
		return nil // it may begin only
	}
	defer func() { _ = answer.Body.Close() }()
	parser := expfmt.NewTextParser(prometheus.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	require.NoError(t, err)
	return families
}

// cpuSeconds returns how long a process has computed, by /proc.
func cpuSeconds(t *testing.T, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, err := strconv.ParseFloat(fields[11], 64)
	require.NoError(t, err)
	system, err := strconv.ParseFloat(fields[12], 64)
	require.NoError(t, err)
	return (user + system) / 100
}

// memoryMiB returns a number of a process that is memory: VmRSS:, what is resident, or VmHWM:, the most that was.
func memoryMiB(t *testing.T, pid int, name string) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(data), name)
	require.True(t, found, "the program has ended: it has no %s", name)
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib / 1024
}

// forgetMost lets the most memory that was resident be that of now.
func forgetMost(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		t.Logf("the most memory is that since the start: %v", err)
	}
}
