package k8s_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scrape"
)

// A pod that repeats the token that it was sent, in every place that an answer has, gets it into nothing that is told.
func TestTokenIsNeverTold(t *testing.T) {
	const token = "s3cret-bearer-token-of-the-scraper"
	for name, page := range map[string]func(w http.ResponseWriter, r *http.Request){
		"status": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
		},
		"content type": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Authorization"))
			_, _ = fmt.Fprintln(w, r.Header.Get("Authorization"))
		},
		"line": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = fmt.Fprintf(w, "vllm:num_requests_waiting{x=\"%s\"} %s\n", r.Header.Get("Authorization"), token)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+token+".example/"+token, http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			sent := false
			port := server(t, func(w http.ResponseWriter, r *http.Request) {
				sent = sent || r.Header.Get("Authorization") == "Bearer "+token
				page(w, r)
			})
			o := podObserver(t, scrape.Config{Token: token, AllowTokenOverHTTP: true}, port, pod("a", ip("127.0.0.1")))
			c, clock := newCluster(1), &clock{now: start}
			r := record.NewFakeRecorder(100)
			var log bytes.Buffer
			metrics := k8s.NewMetrics()
			l := newLoop(t, c, o, clock, func(config *k8s.LoopConfig) {
				config.Recorder, config.Metrics = r, metrics
				config.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			var all bytes.Buffer
			for range 3 {
				out, err := l.Tick(context.Background())
				_, _ = fmt.Fprintln(&all, err, k8s.Conditions(&out, 1), out.Observed.Err)
				clock.pass()
			}
			_, _ = fmt.Fprintln(&all, told(r), log.String(), c.ConfigMap.Data)
			registry := prometheus.NewRegistry()
			require.NoError(t, registry.Register(metrics))
			families, err := registry.Gather()
			require.NoError(t, err)
			_, _ = fmt.Fprintln(&all, families)
			require.True(t, sent, "the pod had the token to repeat")
			require.Contains(t, all.String(), waiting)
			require.NotContains(t, all.String(), token)
		})
	}
}
