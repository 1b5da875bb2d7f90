package kedacluster

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// Need skips a test, before it starts a cluster, if the programs are not there. It fails the test instead if the
// environment has INFERSCALE_KEDA_E2E=1, with the command that builds them.
func Need(tb testing.TB) {
	tb.Helper()
	if _, err := Assets(); err != nil {
		if os.Getenv(DemandVariable) == "1" && os.Getenv(AssetsVariable) != "none" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
}

// ForTest is [Need] and [Start] for a test: the end of the test stops KEDA. When the test fails, its log has the end of
// KEDA's logs, which are in the cluster's folder.
func ForTest(tb testing.TB, c *cluster.Cluster, o Options) *KEDA {
	tb.Helper()
	Need(tb)
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	k, err := Start(ctx, c, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("KEDA's logs end with\n%s", k.LogTails(30))
		}
		k.Stop()
	})
	return k
}
