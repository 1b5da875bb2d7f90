package main

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/internal/cluster/clustertest"
)

// TestRegressionASignalDuringTheStartIsNoFailure: a signal that came while the program asked the API server for what it needs
// to start ended it with exit code 1. What watched the Secret went on for a moment, and logged while the next test set the
// logger.
func TestRegressionASignalDuringTheStartIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{
		"-kubeconfig", clustertest.Unavailable(t, cancel), "-leader-elect=false", "-metrics-address=0", "-health-address=0", "-namespace=keda",
	}, &stdout, &stderr)
	require.Zero(t, code, stderr.String())
	// A request of client-go's Reflector may outlive it: Reflector.list does not wait for the one that it cancels.
	stacks := make([]byte, 1<<20)
	require.NotContains(t, string(stacks[:runtime.Stack(stacks, true)]), "sharedIndexInformer")
}
