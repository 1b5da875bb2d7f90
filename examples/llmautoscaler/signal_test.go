package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/internal/cluster/clustertest"
)

// TestRegressionASignalDuringTheStartIsNoFailure: a signal that came while the program asked the API server for what it needs to start
// ended it with exit code 1.
func TestRegressionASignalDuringTheStartIsNoFailure(t *testing.T) {
	for _, signalled := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		kubeconfig := clustertest.Unavailable(t, func() {
			if signalled {
				cancel()
			}
		})
		var stdout, stderr bytes.Buffer
		code := run(ctx, []string{"-kubeconfig", kubeconfig, "-leader-elect=false", "-metrics-address=0", "-health-address=0"}, &stdout, &stderr)
		require.Equal(t, signalled, code == 0, stderr.String())
	}
}
