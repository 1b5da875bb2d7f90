package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// TestResultsStayTheSame: whatever is added to the simulator, a scenario without it gives the result that it always gave, bit for
// bit. The hashes were taken before prefix caches, gateways and sessions were there, and again when what waits for a ready replica was
// spread over all that become ready at once, and a crash took the first tokens of preempted requests; on other processors the last bits of
// a logarithm may differ.
func TestResultsStayTheSame(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the hashes are of amd64")
	}
	crowded := Ramp()
	crowded.Router = RoundRobin
	crowded.Types[0].Server.KVTokens = 30_000
	crowded.Types[0].CrashesPerHour = 20
	crowded.Types[0].Startup = HeavyTail(time.Minute)
	crowded.Scrape.FailureRate, crowded.Control.RejectRate, crowded.Control.CrashRate = 0.2, 0.2, 0.05
	crowded.Metrics = []Metric{{Name: "in flight", Signal: InFlight, Fill: 5}, {Name: "predicted", Signal: PredictedTTFT}, {Name: "kv", Signal: KVCacheUsage, Fill: 1}}
	for want, s := range map[string]Scenario{
		"e20ac93df3e5733a": Ramp(), "071df6434489aad1": crowded,
	} {
		hash := sha256.New()
		r, err := Run(context.Background(), &s, func() (scaling.Group, error) { return newBoth(1), nil }, Options{
			Seed: 1, Timeline: time.Minute, Request: func(o Outcome) { _, _ = fmt.Fprintln(hash, o) },
		})
		require.NoError(t, err)
		fmt.Fprint(hash, encode(t, r))
		require.Equal(t, want, fmt.Sprintf("%x", hash.Sum(nil)[:8]))
	}
}
