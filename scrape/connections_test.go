package scrape

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConnectionsAreUsedAgain: whatever an answer has behind what is read of it.
func TestConnectionsAreUsedAgain(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				http.Redirect(w, r, "/metrics/", http.StatusTemporaryRedirect)
				return
			}
			answer(textVersion, waitingPage(1))(w, r)
		},
		"gzip": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(textVersion, string(zipped(t, 0, waitingPage(1))))(w, nil)
		},
	} {
		var opened, closed atomic.Int32
		base := serveStates(t, handler, &opened, &closed)
		s := newScraper(t, Config{Interval: 4 * time.Second})
		for range 3 {
			sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
			require.NoError(t, sweep.Err())
		}
		require.Equal(t, int32(1), opened.Load(), name)
		require.Zero(t, closed.Load())
		s.Close()
		require.Eventually(t, func() bool { return closed.Load() == 1 }, 3*time.Second, time.Millisecond, "Close closes it, before it is idle for too long")
	}
}

// TestConnectionsOfHTTPSAreKept, as a handshake costs more than a page, until the files change with which they were made.
func TestConnectionsOfHTTPSAreKept(t *testing.T) {
	var opened, closed atomic.Int32
	a := newAuthority(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, ca, a.pem)
	certPEM, keyPEM := a.issue(t, "pod.test")
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(answer(textVersion, waitingPage(1)))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.Config.ConnState = countStates(&opened, &closed)
	server.StartTLS()
	t.Cleanup(server.Close)
	s := newScraper(t, Config{TLS: TLSConfig{CAFile: ca, ServerName: "pod.test"}})
	sweeps := func() {
		for range 3 {
			sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: server.URL + "/metrics"}})
			require.NoError(t, sweep.Err())
		}
	}
	sweeps()
	require.Equal(t, [2]int32{1, 0}, [2]int32{opened.Load(), closed.Load()})
	writeFile(t, ca, append(a.pem, newAuthority(t).pem...))
	sweeps()
	require.Equal(t, int32(2), opened.Load())
	require.Eventually(t, func() bool { return closed.Load() == 1 }, 10*time.Second, time.Millisecond)
	s.Close()
	require.Eventually(t, func() bool { return closed.Load() == 2 }, 10*time.Second, time.Millisecond)
}

func TestConnectionsFollowTheInterval(t *testing.T) {
	for interval, want := range map[time.Duration]int32{4 * time.Second: 1, 5 * time.Second: 3} {
		var connections atomic.Int32
		base := serveCounting(t, &connections)
		s := newScraper(t, Config{Interval: interval})
		for range 3 {
			sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
			require.NoError(t, sweep.Err())
		}
		require.Equal(t, want, connections.Load(), "%v", interval)
	}
}
