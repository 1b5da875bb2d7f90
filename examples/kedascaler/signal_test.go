package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRegressionASignalDuringTheStartIsNoFailure: a signal that came while the program asked the API server for what it needs to start
// ended it with exit code 1.
func TestRegressionASignalDuringTheStartIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: a,
		contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "`+server.URL+`"}}]}`), 0o600))
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"-kubeconfig", file, "-leader-elect=false", "-metrics-address=0", "-health-address=0", "-namespace=keda"}, &stdout, &stderr)
	require.Zero(t, code, stderr.String())
}
