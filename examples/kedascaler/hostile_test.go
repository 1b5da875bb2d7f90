package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/internal/long"
)

// ceiling is how much memory the scaler may take, in MB.
const ceiling = 300

const line = "other_metric{pod=\"x\",model_name=\"a long name of a model\"} 1\n"

// full is a little less than a page may have.
const full = 2<<20 - 64<<10

// A pod is what a hostile one does at each path, and how many of its requests are under way.
type hostilePod struct {
	*page

	hanging atomic.Int32
	end     chan struct{}
}

func newHostilePod(t *testing.T) *hostilePod {
	t.Helper()
	h := &hostilePod{page: newPage(t, map[string]float64{waiting: 4}), end: make(chan struct{})}
	t.Cleanup(func() { close(h.end) })
	wait := func(r *http.Request) {
		h.hanging.Add(1)
		defer h.hanging.Add(-1)
		select {
		case <-r.Context().Done():
		case <-h.end:
		}
	}
	text := func(value string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "# TYPE %[1]s gauge\n%[1]s %[2]s\n", waiting, value)
		}
	}
	bomb, other := zipped(t), newPage(t, map[string]float64{waiting: 1000})
	series := bytes.Repeat([]byte("a 1\n"), full/4)
	big := bytes.Repeat([]byte(line), 10<<20/len(line))
	h.handlers = map[string]http.HandlerFunc{
		"/hang": func(_ http.ResponseWriter, r *http.Request) { wait(r) },
		"/headers": func(w http.ResponseWriter, r *http.Request) { // and then no body
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			wait(r)
		},
		"/slow": func(w http.ResponseWriter, r *http.Request) { // a byte now and then
			for range 1 << 20 {
				if _, err := io.WriteString(w, "#"); err != nil || http.NewResponseController(w).Flush() != nil {
					return
				}
				timer := time.NewTimer(50 * time.Millisecond)
				select {
				case <-timer.C:
				case <-r.Context().Done():
					timer.Stop()
					return
				}
			}
		},
		"/endless": func(w http.ResponseWriter, _ *http.Request) {
			for range 1 << 20 { // 64 GB
				if _, err := w.Write(big[:64<<10]); err != nil {
					return
				}
			}
		},
		"/line": func(w http.ResponseWriter, _ *http.Request) { // one endless line
			letters := bytes.Repeat([]byte("a"), 64<<10)
			for range 1 << 20 {
				if _, err := w.Write(letters); err != nil {
					return
				}
			}
		},
		"/bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		},
		"/redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/metrics", http.StatusFound) },
		"/away": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/metrics", http.StatusFound)
		},
		"/loop": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) },
		"/reset": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		},
		"/500":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"/empty":    func(http.ResponseWriter, *http.Request) {},
		"/nan":      text("NaN"),
		"/inf":      text("+Inf"),
		"/minus":    text("-Inf"),
		"/negative": text("-5"),
		"/huge":     text("1e300"),
		"/most":     text("9e999"),
		"/words":    text("many"),
		"/json": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"waiting": 0}`)
		},
		"/protobuf": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
			fmt.Fprintf(w, "# TYPE %[1]s gauge\n%[1]s 4\n", waiting)
		},
		"/10MB": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(big)
			fmt.Fprintf(w, "# TYPE %[1]s gauge\n%[1]s 4\n", waiting)
		},
		"/1MB": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(big[:1<<20/len(line)*len(line)])
			fmt.Fprintf(w, "# TYPE %[1]s gauge\n%[1]s 4\n", waiting)
		},
		"/large": func(w http.ResponseWriter, r *http.Request) { // more than it may, and then nothing
			_, _ = w.Write(big[:full+128<<10])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"/series": func(w http.ResponseWriter, _ *http.Request) { // 4 bytes a series, of the family that is asked for
			_, _ = w.Write(series)
		},
		"/full": func(w http.ResponseWriter, r *http.Request) { // as much as it may, and then nothing
			_, _ = w.Write(big[:full])
			_ = http.NewResponseController(w).Flush()
			wait(r)
		},
	}
	return h
}

// zipped is 64 MB that are 200 KB.
func zipped(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	zeros := bytes.Repeat([]byte("# 0000000000000\n"), 1<<16)
	for range 1 << 6 {
		_, err := z.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

// hostility is what the scaler makes of a page that every pod, or one of two, serves.
var hostility = []struct {
	path string
	// all is the value if both pods do that, half if one does. A negative one means that nothing is known.
	all, half float64
	reason    string
}{
	{"/hang", -1, 14, "Timeout"},
	{"/headers", -1, 14, "Timeout"},
	{"/slow", -1, 14, "Timeout"},
	{"/endless", -1, 14, "TooLarge"},
	{"/line", -1, 14, "TooLarge"},
	{"/bomb", -1, 14, "TooLarge"},
	{"/redirect", 8, 8, ""},       // to itself
	{"/away", -1, 14, "Redirect"}, // to another
	{"/loop", -1, 14, "Redirect"},
	{"/reset", -1, 14, "Truncated"},
	{"/500", -1, 14, "Status"},
	{"/empty", -1, 14, "NotFound"},
	{"/nan", -1, 14, "NonFinite"},
	{"/inf", -1, 14, "NonFinite"},
	{"/minus", -1, 14, "NonFinite"},
	{"/negative", -1, 14, "Negative"},
	{"/huge", -1, -1, "e+300: must be at most 1e+12 to be sent"},
	{"/most", -1, 14, "Parse"},
	{"/words", -1, 14, "Parse"},
	{"/json", -1, 14, "ContentType"},
	{"/protobuf", -1, 14, "ContentType"},
	{"/10MB", -1, 14, "TooLarge"},
	{"/1MB", 8, 8, ""}, // as real pages
}

// What hostile pods do to their own trigger, and nothing to others. The target has two replicas and a threshold of 10,
// and a pod in order says 4: with one that says nothing the total is between 4 and 14, and 20 would be hold.
func TestHostilePods(t *testing.T) {
	a, b := newHostilePod(t), newHostilePod(t)
	for _, h := range hostility {
		a.handlers["/half"+h.path] = a.handlers[h.path] // and the other is in order
	}
	p := start(t, "-static", a.URL+","+b.URL, "-address", "127.0.0.1:0")
	c := call(t, p.address(), nil)
	ref := func(path string, keys ...string) *externalscaler.ScaledObjectRef {
		name := strings.Trim(strings.ReplaceAll(path, "/", "-"), "-")
		return trigger(name, append(keys, "threshold=10", "metricPath="+path)...)
	}
	often := []string{"interval=2", "scrapeTimeout=1"}
	// judged is the trigger of a page. What ends by itself has the time that a busy machine may need for it.
	judged := func(path, reason string) *externalscaler.ScaledObjectRef {
		if reason == "Timeout" {
			return ref(path, often...)
		}
		return ref(path, "interval=60", "scrapeTimeout=30")
	}
	for _, h := range hostility { // all at once
		for _, path := range []string{h.path, "/half" + h.path} {
			_, err := c.GetMetricSpec(t.Context(), judged(path, h.reason))
			require.NoError(t, err)
		}
	}
	for _, h := range hostility {
		for path, want := range map[string]float64{h.path: h.all, "/half" + h.path: h.half} {
			ref := judged(path, h.reason)
			got, err := c.known(t, ref, waiting)
			t.Logf("%-16s %v %v", path, got, err)
			if want < 0 {
				require.Equal(t, codes.Unavailable, status.Code(err), "%s: %v", path, got)
				require.ErrorContains(t, err, h.reason)
			} else {
				require.NoError(t, err, path)
				require.InDelta(t, want, got, 0, path)
			}
			active, err := c.IsActive(t.Context(), ref)
			require.NoError(t, err)
			require.True(t, active.GetResult(), "nobody can say that no pod is needed")
		}
	}
	for _, h := range hostility { // and round after round
		for _, path := range []string{h.path, "/half" + h.path} {
			pressing := ref(path, often...)
			pressing.Name += "-often"
			_, err := c.GetMetricSpec(t.Context(), pressing)
			require.NoError(t, err)
		}
	}
	// Nothing of it keeps others from what is new.
	good := trigger("good", "threshold=10", "interval=1")
	for _, load := range []float64{4, 50, 3} {
		a.wait(load)
		c.comes(t, good, waiting, load+4)
	}
	// In mode replicas what is not known is no reason to scale.
	blind := trigger("blind", "mode=replicas", "threshold=10", "interval=2", "scrapeTimeout=1", "metricPath=/hang")
	_, err := c.known(t, blind, "desired-replicas")
	requireUnavailable(t, err)
	active, err := c.IsActive(t.Context(), blind)
	require.NoError(t, err)
	require.True(t, active.GetResult())

	now, most := p.resident()
	t.Logf("memory: %d MB, %d MB at most", now, most)
	require.Less(t, most, ceiling)
}

// Regression: a page could have 16 MiB, and a hundred pods that sent 9 MB each and then hung took 1.5 GB of the scaler
// that others share.
func TestPagesThatFillMemory(t *testing.T) {
	long.Skip(t)
	a, b := newHostilePod(t), newHostilePod(t)
	p := start(t, "-static", a.URL+","+b.URL, "-address", "127.0.0.1:0")
	c := call(t, p.address(), nil)
	const pairs = 25
	for i := range pairs {
		_, err := c.GetMetricSpec(t.Context(), trigger(fmt.Sprintf("full-%d", i), "threshold=10", "interval=3600", "scrapeTimeout=1800", "metricPath=/full"))
		require.NoError(t, err)
		_, err = c.GetMetricSpec(t.Context(), trigger(fmt.Sprintf("large-%d", i), "threshold=10", "interval=3600", "scrapeTimeout=1800", "metricPath=/large"))
		require.NoError(t, err)
	}
	for i := range pairs {
		_, err := c.known(t, trigger(fmt.Sprintf("large-%d", i), "threshold=10", "interval=3600", "scrapeTimeout=1800", "metricPath=/large"), waiting)
		requireUnavailable(t, err, "TooLarge")
	}
	last := 0
	eventually(t, func() error { // until nothing more comes
		if n := a.hanging.Load() + b.hanging.Load(); n != 2*pairs {
			return fmt.Errorf("%d of %d pages hang", n, 2*pairs)
		}
		now, _ := p.resident()
		if now != last {
			last = now
			return fmt.Errorf("the memory grows: %d MB", now)
		}
		return nil
	})
	now, most := p.resident()
	t.Logf("memory while %d pages of %d KB hang: %d MB, %d MB at most", 2*pairs, full>>10, now, most)
	require.Less(t, most, ceiling)
}

// Regression: a page of 2 MiB, of four bytes a series, became a hundred times as much; the scaler died at the fifth trigger.
func TestPagesOfManySeries(t *testing.T) {
	long.Skip(t)
	a, b := newHostilePod(t), newHostilePod(t)
	p := start(t, "-static", a.URL+","+b.URL, "-address", "127.0.0.1:0", "-scrape-memory", "32")
	c := call(t, p.address(), nil)
	of := func(i int) *externalscaler.ScaledObjectRef {
		return trigger(fmt.Sprintf("series-%d", i), "threshold=10", "interval=60", "metricName=a", "metricPath=/series")
	}
	const triggers = 10
	for i := range triggers {
		_, err := c.GetMetricSpec(t.Context(), of(i))
		require.NoError(t, err)
	}
	for i := range triggers {
		_, err := c.known(t, of(i), "a")
		requireUnavailable(t, err)
	}
	c.comes(t, trigger("good", "threshold=10", "interval=1"), waiting, 8)
	now, most := p.resident()
	t.Logf("memory with %d pages of %d series: %d MB, %d MB at most", 2*triggers, full/4, now, most)
	require.Less(t, most, ceiling)
}

// A pod that nothing listens for is as one that does not answer.
func TestDeadPods(t *testing.T) {
	a := newPage(t, map[string]float64{waiting: 4})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dead := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	p := start(t, "-static", a.URL+","+dead, "-address", "127.0.0.1:0")
	c := call(t, p.address(), nil)
	c.comes(t, trigger("half", "threshold=10", "interval=1"), waiting, 14)
	a.wait(40)
	c.comes(t, trigger("half", "threshold=10", "interval=1"), waiting, 40) // more than hold, whatever the dead one had said

	p = start(t, "-static", dead, "-address", "127.0.0.1:0")
	c = call(t, p.address(), nil)
	_, err = c.known(t, trigger("all", "threshold=10", "interval=1"), waiting)
	requireUnavailable(t, err, "Refused")
}

// Fifty pages hang. No call waits for one of them: the same requests hang before and after it.
func TestCallsWhilePodsHang(t *testing.T) {
	a, b := newHostilePod(t), newHostilePod(t)
	p := start(t, "-static", a.URL+","+b.URL, "-address", "127.0.0.1:0")
	c := call(t, p.address(), nil)
	const stuck, good = 25, 10
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var refs []*externalscaler.ScaledObjectRef
	for i := range stuck {
		// The requests of the first round hang for half an hour.
		refs = append(refs, trigger(fmt.Sprintf("stuck-%d", i), "threshold=10", "interval=3600", "scrapeTimeout=1800", "metricPath=/hang"))
	}
	for i := range good {
		// An answer holds for three intervals, which are longer than this machine may stall.
		refs = append(refs, trigger(fmt.Sprintf("good-%d", i), "threshold=10", "interval=20"))
	}
	for _, ref := range refs {
		_, err := c.GetMetricSpec(ctx, ref)
		require.NoError(t, err)
	}
	eventually(t, func() error {
		if n := a.hanging.Load() + b.hanging.Load(); n != 2*stuck {
			return fmt.Errorf("%d of %d pages hang", n, 2*stuck)
		}
		return nil
	})
	for _, ref := range refs[stuck:] {
		c.comes(t, ref, waiting, 8)
	}
	all := &asker{t: t, why: make(map[string]int)}
	for range 20 {
		for i, ref := range refs {
			began := time.Now()
			_, err := c.GetMetricSpec(ctx, ref)
			all.note(began, err)
			began = time.Now()
			got, err := c.value(ctx, ref, waiting)
			if i < stuck {
				requireUnavailable(t, err, "cold start: no round of default/stuck-")
				err = nil
			} else {
				require.InDelta(t, 8, got, 0)
			}
			all.note(began, err)
			began = time.Now()
			_, err = c.IsActive(ctx, ref)
			if i < stuck {
				requireUnavailable(t, err, "cold start")
				err = nil
			}
			all.note(began, err)
		}
	}
	require.EqualValues(t, 2*stuck, a.hanging.Load()+b.hanging.Load(), "they hang still")
	require.Zero(t, all.failures.Load(), "%v", all.why)
	now, most := p.resident()
	t.Logf("%d calls while %d pages hang: p50 %s, p99 %s, max %s; %d MB, %d MB at most",
		len(all.took), 2*stuck, all.quantile(0.5), all.quantile(0.99), all.quantile(1), now, most)
	require.Less(t, most, ceiling)
	p.terminate()
	require.Equal(t, 0, p.code(), "pages that hang do not keep the process")
}
