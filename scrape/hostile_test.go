package scrape

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const secret = "s3cr3t-t0ken-that-must-not-leak.0123456789"

func answer(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		_, _ = io.WriteString(w, body)
	}
}

func zipped(tb testing.TB, size int64, start string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, start)
	require.NoError(tb, err)
	_, err = io.CopyN(z, zeros{}, size)
	require.NoError(tb, err)
	require.NoError(tb, z.Close())
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// raw answers a request with bytes and closes the connection.
func raw(answer string) func(net.Conn) {
	return func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, answer)
	}
}

// TestHostilePodsBesideHealthyOnes is one sweep over every kind of bad pod that is known, and three good ones. The bad
// ones may cost neither the others' values, nor time, nor memory, nor the token.
func TestHostilePodsBesideHealthyOnes(t *testing.T) {
	page := waitingPage(7)
	var elsewhere atomic.Int32
	target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		answer(textVersion, waitingPage(1e6))(w, nil)
	})
	var looped atomic.Int32
	// Members of a gzip stream follow each other: a quarter of a GiB in 264 KB.
	bomb := bytes.Repeat(zipped(t, 1<<20, page), 256)
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	rows := []struct {
		name   string
		base   string
		reason Reason
		text   string // part of the error
	}{
		{"redirect to another host", serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target+"/latest/meta-data", http.StatusFound)
		}), Redirect, "another origin"},
		{"redirect that echoes the token", serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target+"/?"+r.Header.Get("Authorization"), http.StatusFound)
		}), Redirect, "another origin"},
		{"redirect to a path of slashes", serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://"+r.Host+"//"+target[len("http://"):])
			w.WriteHeader(http.StatusTemporaryRedirect)
		}), Redirect, "path that is refused"},
		{"redirect without an address", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusFound)
		}), Redirect, "no address"},
		{"redirect loop", serve(t, func(w http.ResponseWriter, r *http.Request) {
			looped.Add(1)
			http.Redirect(w, r, "/metrics?again", http.StatusTemporaryRedirect)
		}), Redirect, "twice"},
		{"endless body", serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", textVersion)
			chunk := bytes.Repeat([]byte("x 1\n"), 1<<14)
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}), TooLarge, "more than 1048576 bytes"},
		{"a length above the limit", serveRaw(t, raw(head+"Content-Length: 99999999999\r\n\r\nx 1\n")), TooLarge, "99999999999 bytes"},
		{"a long length and few bytes", serveRaw(t, raw(head+"Content-Length: 1000000\r\n\r\nx 1\n")), Truncated, "unexpected EOF"},
		{"slow drip", serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", textVersion)
			drip := time.NewTicker(20 * time.Millisecond)
			defer drip.Stop()
			for {
				select {
				case <-r.Context().Done():
					return
				case <-drip.C:
					_, _ = io.WriteString(w, "x 1\n")
					w.(http.Flusher).Flush()
				}
			}
		}), Timeout, "deadline exceeded"},
		{"header of a megabyte", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Fill", strings.Repeat("x", 1<<20))
			answer(textVersion, page)(w, nil)
		}), Header, "exceeded 4096 bytes"},
		{"close-delimited and cut", serveRaw(t, raw("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"+page[:len(page)-2])), Truncated, "inside of a line"},
		{"close-delimited and empty", serveRaw(t, raw("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n")), Truncated, "inside of a line"},
		{"shorter than its length", serveRaw(t, raw(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(page)+1, page))), Truncated, "unexpected EOF"},
		{"chunks without an end", serveRaw(t, raw(fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", head, len(page), page))), Truncated, "unexpected EOF"},
		{"closed without an answer", serveRaw(t, raw("")), Truncated, "EOF"},
		{"HTML", serve(t, answer("text/html; charset=utf-8", "<html>"+page)), ContentType, `"text/html; charset=utf-8" is not text/plain; it begins "<html># TYPE`},
		{"JSON", serve(t, answer("application/json", `{"x": 1}`)), ContentType, `{\"x\": 1}`},
		{"octets", serve(t, answer("application/octet-stream", "\x00\x01")), ContentType, `"\x00\x01"`},
		{"OpenMetrics", serve(t, answer("application/openmetrics-text; version=1.0.0; charset=utf-8", string(loadPage(t, "constructed-vllm-v1-dp1.openmetrics.txt")))), ContentType, "application/openmetrics-text"},
		{"protobuf", serve(t, answer("application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily", "\n\x01")), ContentType, "protobuf"},
		{"HTML said to be text", serve(t, answer(textVersion, "<html>busy</html>")), NotFound, "no family"},
		{"gzip bomb", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(textVersion, string(bomb))(w, nil)
		}), TooLarge, "more than 1048576 bytes"},
		{"broken gzip", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(textVersion, page)(w, nil)
		}), Encoding, "invalid header"},
		{"cut gzip", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(textVersion, string(bomb[:40]))(w, nil)
		}), Truncated, "unexpected EOF"},
		{"brotli", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			answer(textVersion, page)(w, nil)
		}), Encoding, `"br" was not asked for`},
		{"500", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", textVersion)
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, page)
		}), Status, "500 Internal Server Error"},
		{"204", serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), Status, "204 No Content"},
		{"empty body", serve(t, answer(textVersion, "")), NotFound, "no family vllm:num_requests_waiting"},
		{"the token in an HTML page", serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer("text/html", "<p>"+r.Header.Get("Authorization")+" "+r.Header.Get("Authorization")+"</p>")(w, nil)
		}), ContentType, "[redacted]"},
		{"the token's end at the cut", serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer("text/html", strings.Repeat("x", 50)+r.Header.Get("Authorization"))(w, nil)
		}), ContentType, "[redacted]"},
		{"a part of the token", serve(t, answer("text/html", "<p>"+secret[:20]+"</p>")), ContentType, "[redacted]"},
		{"the token in the content type", serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer("x/"+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "")(w, nil)
		}), ContentType, "[redacted]"},
		{"the token as a value", serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer(textVersion, "vllm:num_requests_waiting "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+"\n")(w, nil)
		}), Parse, "[redacted]"},
		{"the token as a label, twice", serve(t, func(w http.ResponseWriter, r *http.Request) {
			line := "vllm:num_requests_waiting{a=\"" + r.Header.Get("Authorization") + "\"} 1\n"
			answer(textVersion, line+line)(w, nil)
		}), Duplicate, "[redacted]"},
		{"the token in braces", serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer(textVersion, "{"+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+" vllm:num_requests_waiting\n")(w, nil)
		}), Parse, "[redacted]"},
		{"the token instead of HTTP", serveRaw(t, func(c net.Conn) {
			_, _ = io.WriteString(c, strings.Split(readRequest(c), "Bearer ")[1])
		}), Header, "[redacted]"},
		{"silence after accepting", serveRaw(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), Timeout, "deadline exceeded"},
		{"a backlog that nobody accepts from", unaccepted(t), Timeout, "deadline exceeded"},
		{"nothing listens", closedPort(t), Refused, "connection refused"},
		{"http spoken to a TLS port", "https" + strings.TrimPrefix(serve(t, answer(textVersion, page)), "http"), TLS, "first record does not look like a TLS handshake"},
	}
	var pods []Pod
	for i, row := range rows {
		pods = append(pods, Pod{Name: fmt.Sprintf("hostile-%02d", i), URL: row.base + "/metrics"})
	}
	for i, v := range []float64{1, 2, 6} {
		pods = append(pods, newFakePod(t, fmt.Sprintf("well-%d", i), waitingPage(v)).pod)
	}
	const timeout = 800 * time.Millisecond
	s := newScraper(t, Config{
		Timeout: timeout, MaxBody: 1 << 20, Token: secret, AllowTokenOverHTTP: true, Concurrency: 64,
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	sweep := s.Scrape(t.Context(), pods)
	took := time.Since(begun)
	runtime.ReadMemStats(&after)

	t.Logf("%d pods in %v, %d MB allotted", len(pods), took, (after.TotalAlloc-before.TotalAlloc)>>20)
	require.Less(t, took, 5*timeout)
	// 256 MiB of zeros, and bodies without an end: what is allotted stays in the order of limit times pods, servers
	// included.
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(40<<20))
	require.Len(t, sweep.Pods, len(pods))
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			value := sweep.Pods[i].Values[0]
			require.False(t, value.OK)
			require.NotNil(t, value.Err)
			require.Equal(t, row.reason, value.Err.Reason, "%v", value.Err)
			require.ErrorContains(t, value.Err, row.text)
			require.Equal(t, row.reason.Fetch(), sweep.Pods[i].Fetches[0].Err != nil)
			if row.reason.Fetch() {
				require.Zero(t, sweep.Pods[i].Fetches[0].Bytes, "of a page that was not had")
			}
			for k := range len(secret) - telling + 1 {
				require.NotContains(t, value.Err.Error(), secret[k:k+telling])
			}
		})
	}
	for _, p := range sweep.Pods[len(rows):] {
		require.True(t, p.Values[0].OK, "%v", p.Values[0].Err)
	}
	r := sweep.Readings[0]
	require.Equal(t, int32(3), r.Values)
	require.Equal(t, count(len(rows)), r.Failed)
	require.InDelta(t, 9/float64(len(pods)), r.Lower, 1e-12)
	require.Zero(t, elsewhere.Load(), "a redirect was followed to another origin")
	require.Equal(t, int32(2), looped.Load(), "one redirect is followed, and no second")
	require.NoError(t, sweep.Err())
}

// unaccepted is a listener that never accepts: the kernel completes the connection and nothing more happens.
func unaccepted(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// closedPort is an address at which nothing listens any more.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "http://" + l.Addr().String()
}

// TestALongLengthTakesNoMemory: memory is taken for what came, not for what is said to come.
func TestALongLengthTakesNoMemory(t *testing.T) {
	length := 16 << 20
	base := serveRaw(t, raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\nx 1\n", length)))
	s := newScraper(t, Config{Concurrency: 1})
	var pods []Pod
	for i := range 20 {
		pods = append(pods, Pod{Name: fmt.Sprint(i), URL: base + "/metrics"})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sweep := s.Scrape(t.Context(), pods)
	runtime.ReadMemStats(&after)
	require.Equal(t, Truncated, sweep.Pods[0].Values[0].Err.Reason)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

// TestHeadersTakeLittleMemory: neither lines that make the largest map of a header, nor those of a page that never comes,
// which holds its place until its timeout.
func TestHeadersTakeLittleMemory(t *testing.T) {
	lines := func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "%03x:\n", i)
		}
		return b.String()
	}
	for size, reason := range map[int]Reason{3 << 10: Timeout, 60 << 10: Header} {
		const pods = 32
		hold := make(chan struct{})
		head := "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n" + lines(size) + "\r\n"
		base := serveRaw(t, func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, 16))
			_, _ = io.WriteString(c, head)
			<-hold
		})
		s := newScraper(t, Config{Timeout: time.Second, Concurrency: pods})
		var all []Pod
		for i := range pods {
			all = append(all, Pod{Name: fmt.Sprint(i), URL: base + "/metrics"})
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		sweep := s.Scrape(t.Context(), all)
		runtime.ReadMemStats(&after)
		close(hold)
		t.Logf("%d bytes of headers: %d KiB for each pod", size, (after.TotalAlloc-before.TotalAlloc)/pods>>10)
		require.Equal(t, reason, reasonOf(sweep.Pods[0].Values[0].Err), "%v", sweep.Pods[0].Values[0].Err)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(pods*512<<10), "%d bytes of headers", size)
	}
}

// TestPodsThatAreNotAskedCostLittle: thousands of replicas that have no pod cost no memory for each metric, in a sweep or
// between two.
func TestPodsThatAreNotAskedCostLittle(t *testing.T) {
	s := newScraper(t, Config{Metrics: manyMetrics(MaxMetrics)})
	var pods []Pod
	for i := range 4096 {
		pods = append(pods, Pod{Name: fmt.Sprintf("(absent %d of chat)", i+1), State: NotReady})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sweep := s.Scrape(t.Context(), pods)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
	require.Empty(t, s.memory)
	require.Len(t, sweep.Pods, len(pods))
	require.Equal(t, int32(len(pods)), sweep.Readings[MaxMetrics-1].NotReady)
	require.Len(t, sweep.Pods[0].Values, MaxMetrics)
}

// TestAPodThatIsNotReadyForAWhileIsRemembered: its counters go on from where they were.
func TestAPodThatIsNotReadyForAWhileIsRemembered(t *testing.T) {
	clock := newTestClock()
	a, b := newFakePod(t, "a", "tokens_total 100\n"), newFakePod(t, "b", "tokens_total 100\n")
	s := newScraper(t, Config{Now: clock.now, Metrics: []Metric{{Name: "rate", Terms: []Series{{Families: []string{"tokens_total"}, Read: Rate}}}}})
	waits := a.pod
	waits.State = NotReady
	for _, pods := range [][]Pod{{a.pod, b.pod}, {waits, b.pod}} {
		s.Scrape(t.Context(), pods)
		clock.advance(10 * time.Second)
	}
	a.say("tokens_total 500\n")
	sweep := s.Scrape(t.Context(), []Pod{a.pod, b.pod})
	require.Equal(t, 20.0, sweep.Pods[0].Values[0].Value)
}

// TestReadingEndsWithItsTimeout: a page that never ends, of lines that are wanted, of comments, or of what gzip makes of
// nothing, costs its timeout and no more, as a sweep does.
func TestReadingEndsWithItsTimeout(t *testing.T) {
	endless := func(chunk []byte, header ...string) string {
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", textVersion)
			for _, h := range header {
				w.Header().Set("Content-Encoding", h)
			}
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})
	}
	bases := []string{
		endless(bytes.Repeat([]byte("# TYPE vllm:num_requests_waiting gauge\n"), 1000)),
		endless(bytes.Repeat([]byte("# HELP vllm:num_requests_waiting_sum x\n\ufeff\n"), 1000)),
		endless(zipped(t, 64<<20, "x 1\n"), "gzip"),
	}
	const timeout = 300 * time.Millisecond
	for _, config := range []Config{
		{Timeout: timeout, MaxBody: 1 << 39},
		{Timeout: 10 * time.Second, SweepTimeout: timeout, MaxBody: 1 << 39},
	} {
		for i, base := range bases {
			s := newScraper(t, config)
			begun := time.Now()
			sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
			require.Less(t, time.Since(begun), 4*timeout, "page %d", i)
			require.Contains(t, []Reason{Timeout, Deadline, TooLarge}, sweep.Pods[0].Values[0].Err.Reason, "%v", sweep.Pods[0].Values[0].Err)
		}
	}
}

// TestASweepReadsSoMuch: however long the pages may be, a sweep reads 64 MiB and 1 MiB for each pod.
func TestASweepReadsSoMuch(t *testing.T) {
	var sent atomic.Int64
	chunk := bytes.Repeat([]byte("x 1\n"), 1<<16)
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", textVersion)
		for range 15 * 4 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	var pods []Pod
	for i := range 20 {
		pods = append(pods, Pod{Name: fmt.Sprint(i), URL: base + "/metrics"})
	}
	s := newScraper(t, Config{Concurrency: 2, Interval: time.Minute, Timeout: 30 * time.Second})
	sweep := s.Scrape(t.Context(), pods)
	require.Equal(t, [2]int64{64 << 20, 1 << 20}, [2]int64{sweepBytes, podBytes}, "as the error says")
	large := 0
	for _, p := range sweep.Pods {
		if p.Values[0].Err.Reason == TooLarge {
			require.ErrorContains(t, p.Values[0].Err, "the pages of this sweep are longer than")
			large++
		}
	}
	require.InDelta(t, 20-(64+20)/15, large, 1)
	require.Less(t, sent.Load(), int64((64+20+20*8)<<20))
}
