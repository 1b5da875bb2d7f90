package webhooks_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
	"github.com/inferscale/inferscale/examples/internal/webhooks"
)

// TestRegressionReviewsAreAnsweredWhileAPodLeaves: a server that was told to stop took no connections any more, while API
// servers still sent reviews to its pod, for a second or two: with each rollout some writes were refused, or let in without a
// look.
func TestRegressionReviewsAreAnsweredWhileAPodLeaves(t *testing.T) {
	pair, _ := certificate(t)
	start := func(grace time.Duration) (address string, stop func(), ended chan error) {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		mux := http.NewServeMux()
		mux.HandleFunc("/allow", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
		ctx, stop := context.WithCancel(t.Context())
		ended = make(chan error, 1)
		go func() {
			ended <- webhooks.Serve(ctx, listener, defaulting.NewServer(mux, tlsOf(pair)), grace)
		}()
		return listener.Addr().String(), stop, ended
	}
	address, stop, ended := start(10 * time.Second)
	stop()
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(200 * time.Millisecond) {
		status, _ := review(t, "127.0.0.1", address)
		require.Equal(t, http.StatusOK, status)
	}
	require.NoError(t, <-ended)
	_, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.Error(t, err)

	_, stop, ended = start(100 * time.Millisecond) // whoever has no time leaves at once
	began := time.Now()
	stop()
	require.NoError(t, <-ended)
	require.Less(t, time.Since(began), 2*time.Second)
}

func tlsOf(pair tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
}
