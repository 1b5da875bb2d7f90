package main

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// TestNoConnectionStaysForEver: whoever reaches the ports of metrics and health could keep as many connections as there are
// descriptors, idle or with a body that does not end.
func TestNoConnectionStaysForEver(t *testing.T) {
	p, err := openPages(options{metrics: "127.0.0.1:0", probes: "127.0.0.1:0"}, prometheus.NewRegistry(), nil, nil)
	require.NoError(t, err)
	defer p.close()
	require.Len(t, p.servers, 2)
	for _, s := range p.servers {
		require.Positive(t, s.ReadHeaderTimeout)
		require.Positive(t, s.ReadTimeout, "bodies")
		require.Positive(t, s.WriteTimeout, "answers that nobody reads")
		require.Positive(t, s.IdleTimeout)
		require.LessOrEqual(t, s.MaxHeaderBytes, 64<<10)
		require.Positive(t, s.MaxHeaderBytes)
	}
}
