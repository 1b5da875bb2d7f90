package capacity

import (
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/sim/oracle"
	"github.com/inferscale/inferscale/sim/suite"
)

var score = flag.String("score", "", "score these scenarios, as chat/ramp/100s/qwen,docs/walk/300s/a100: shape/pattern/cold start/server; all is each of scored")

// scored are scenarios of the suite. They take some minutes.
const scored = "chat/ramp/100s/qwen,chat/walk/300s/a100,chat/steady/100s/a100,chat/day/300s/a100,code/walk/30s/small,code/flash/30s/qwen," +
	"docs/ramp/100s/small,docs/day/300s/qwen,docs/walk/600s/small,reason/day/30s/a100,reason/onoff/100s/a100,reason/ramp/600s/qwen,reason/walk/100s/small"

// TestScore prints what the policy attains and costs on made-up traffic, with its server as it is said to be, and with one
// that is a third slower: beside the replay oracle, and beside a policy that is told the work that arrives now.
func TestScore(t *testing.T) {
	names := *score
	switch names {
	case "":
		t.Skip("takes minutes: run it with -score all")
	case "all":
		names = scored
	}
	t.Logf("%-26s %10s %9s %9s %12s %9s %8s", "", "attained %", "x oracle", "actions", "slower: att.", "x oracle", "present")
	for name := range strings.SplitSeq(names, ",") {
		row, err := suite.Parse(name)
		require.NoError(t, err)
		s, mu, err := row.Scenario(context.Background())
		require.NoError(t, err, name)
		s.Metrics = Metrics()
		search := oracle.Search{Alpha: suite.Goal, Bounds: suite.Bounds(), Trims: 20}
		replayed, err := oracle.Replay(context.Background(), &s, 1, mu, search)
		require.NoError(t, err, name)
		present, err := oracle.Limit(context.Background(), &s, 1, mu, search, 0)
		require.NoError(t, err, name)
		c := For(suite.Bounds(), s.SLO, s.Types[0].Server)
		c.ColdStart, c.Control = s.Types[0].Startup.Load.Median, s.Control.Interval
		asSaid := run(t, &s, c, nil)
		c.Server = slower(c.Server, 0.75)
		slow := run(t, &s, c, nil)
		t.Logf("%-26s %10.2f %9.2f %9d %12.2f %9.2f %8.2f", name, 100*asSaid.Attainment, asSaid.ReplicaHours/replayed.Result.ReplicaHours, asSaid.Actions,
			100*slow.Attainment, slow.ReplicaHours/replayed.Result.ReplicaHours, present.Result.ReplicaHours/replayed.Result.ReplicaHours)
	}
}
