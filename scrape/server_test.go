package scrape

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// textVersion is the content type of the text format.
const textVersion = "text/plain; version=0.0.4; charset=utf-8"

// serve answers with a handler on a free port of 127.0.0.1 until the test ends, and returns the base URL.
func serve(tb testing.TB, handler http.HandlerFunc) string {
	tb.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // hostile clients and servers make it talk
	s.Start()
	tb.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// serveRaw answers every connection with whatever f writes.
func serveRaw(tb testing.TB, f func(net.Conn)) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	var (
		mu    sync.Mutex
		conns []net.Conn
		group sync.WaitGroup
	)
	group.Add(1)
	go func() {
		defer group.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			group.Add(1)
			go func() {
				defer group.Done()
				defer func() { _ = c.Close() }()
				f(c)
			}()
		}
	}()
	tb.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		group.Wait()
	})
	return "http://" + l.Addr().String()
}

// readRequest waits for the end of a request's header and returns what came.
func readRequest(c net.Conn) string {
	var request []byte
	buffer := make([]byte, 4096)
	for {
		n, err := c.Read(buffer)
		request = append(request, buffer[:n]...)
		if err != nil || len(request) >= 4 && string(request[len(request)-4:]) == "\r\n\r\n" {
			return string(request)
		}
	}
}

// A fakePod serves a page that a test may change. An empty page is status 503.
type fakePod struct {
	page     atomic.Pointer[string]
	requests atomic.Int32
	pod      Pod
}

func newFakePod(tb testing.TB, name, page string) *fakePod {
	tb.Helper()
	p := &fakePod{}
	p.say(page)
	base := serve(tb, func(w http.ResponseWriter, _ *http.Request) {
		p.requests.Add(1)
		page := *p.page.Load()
		if page == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", textVersion)
		_, _ = w.Write([]byte(page))
	})
	p.pod = Pod{Name: name, UID: "uid-" + name, URL: base + "/metrics"}
	return p
}

func (p *fakePod) say(page string) { p.page.Store(&page) }

func waitingPage(n float64) string {
	return "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine=\"0\"} " + strconv.FormatFloat(n, 'g', -1, 64) + "\n"
}

// A testClock stands still until it is moved.
type testClock struct{ nanos atomic.Int64 }

func newTestClock() *testClock {
	c := &testClock{}
	c.nanos.Store(origin().UnixNano())
	return c
}

func (c *testClock) now() time.Time          { return time.Unix(0, c.nanos.Load()).UTC() }
func (c *testClock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

// newScraper returns a scraper for pods of this machine, closed by the test.
func newScraper(tb testing.TB, c Config) *Scraper {
	tb.Helper()
	c.AllowLocal = true
	s, err := New(c)
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	return s
}

func hostPort(tb testing.TB, base string) (string, int) {
	tb.Helper()
	u, err := url.Parse(base)
	require.NoError(tb, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(tb, err)
	return u.Hostname(), port
}

// serveCounting serves a page and counts the connections made for it.
func serveCounting(tb testing.TB, connections *atomic.Int32) string {
	tb.Helper()
	return serveStates(tb, answer(textVersion, waitingPage(1)), connections, new(atomic.Int32))
}

// serveStates answers with a handler and counts the connections that are opened and closed.
func serveStates(tb testing.TB, handler http.HandlerFunc, opened, closed *atomic.Int32) string {
	tb.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ConnState = countStates(opened, closed)
	s.Start()
	tb.Cleanup(s.Close)
	return s.URL
}

func countStates(opened, closed *atomic.Int32) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			closed.Add(1)
		case http.StateActive, http.StateIdle, http.StateHijacked:
		}
	}
}
