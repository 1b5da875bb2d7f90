// Package clustertest has what stands for a cluster in tests that need none.
package clustertest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// Unavailable returns the kubeconfig of an API server that answers every request with 503, after it has called asked.
func Unavailable(tb testing.TB, asked func()) (kubeconfig string) {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked()
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}))
	tb.Cleanup(server.Close)
	kubeconfig = filepath.Join(tb.TempDir(), "config")
	text := `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}],
		clusters: [{name: a, cluster: {server: "` + server.URL + `"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return kubeconfig
}
