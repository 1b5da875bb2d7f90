package cluster

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// ForTest is [Start] for a test: the end of the test stops the cluster. Without the programs the test is skipped, or
// fails if the environment has CI=true, with the command that builds them. When the test fails, its log has the end of
// the servers' logs, and the folder with all of them stays.
func ForTest(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	c, err := Start(ctx, o)
	if errors.Is(err, ErrNoAssets) && (os.Getenv("CI") != "true" || os.Getenv(AssetsVariable) == "none") {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if !tb.Failed() {
			c.Stop()
			return
		}
		tb.Logf("the control plane's logs are in %s and end with\n%s", c.Dir(), c.LogTails(20))
		c.stopProcesses()
	})
	return c
}

// FreeAddress is an address of [FreePort].
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	port, err := FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	return Address(port)
}
