package suite_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
	"github.com/inferscale/inferscale/sim/suite"
)

func scenario(t *testing.T, name string) (sim.Scenario, oracle.Capacity) {
	t.Helper()
	row, err := suite.Parse(name)
	require.NoError(t, err)
	s, c, err := row.Scenario(context.Background())
	require.NoError(t, err)
	return s, c
}

func schedule(t *testing.T, s *sim.Scenario, asked []int32, o sim.Options) sim.Result {
	t.Helper()
	o.Seed = 1
	r, err := sim.Run(context.Background(), s, func() (scaling.Group, error) {
		return sim.Schedule(s.Start, s.Control.Interval, asked), nil
	}, o)
	require.NoError(t, err)
	return r
}

// Who lets everything go before the end, when it is too late to be seen, wins less than the share of requests that may
// be missed: what arrives in the last minutes counts, and a replica costs until it has drained.
func TestNobodyWinsByTheEnd(t *testing.T) {
	s, c := scenario(t, "code/steady/30s/a100")
	honest, err := oracle.Limit(context.Background(), &s, 1, c, oracle.Search{Alpha: suite.Goal, Bounds: suite.Bounds()}, 0)
	require.NoError(t, err)
	require.True(t, honest.Attains)
	for _, early := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute} {
		asked := slices.Clone(honest.Asked)
		for i := len(asked) - 1 - int(early/honest.Tick); i < len(asked); i++ {
			asked[i] = 1
		}
		r := schedule(t, &s, asked, sim.Options{})
		t.Logf("%s before the end: %.4f at %.3f of the cost", early, r.Attainment, r.ReplicaHours/honest.Result.ReplicaHours)
		if r.Attainment >= suite.Goal {
			require.Greater(t, r.ReplicaHours, (suite.Goal-0.005)*honest.Result.ReplicaHours, "%s", early)
		}
	}
}

// All begin with the same replicas; who asks for more at once waits for a cold start, and pays from then on.
func TestNobodyBeginsWithMore(t *testing.T) {
	s, _ := scenario(t, "code/ramp/100s/a100")
	const many = 20
	asked := slices.Repeat([]int32{many}, int(s.Workload.Duration()/s.Control.Interval)+1)
	r := schedule(t, &s, asked, sim.Options{Timeline: 10 * time.Second})
	for _, m := range r.Timeline {
		if m.At < 100*time.Second {
			require.LessOrEqual(t, m.Ready, s.Types[0].Initial, "%s", m.At)
		}
		if m.At > s.Control.Interval {
			require.Equal(t, int32(many), m.Replicas, "%s: booting costs", m.At)
		}
	}
	require.InEpsilon(t, many*s.Workload.Duration().Hours(), r.ReplicaHours, 0.01)
}

// A request that meets one of the two misses the SLO: batches that answer soon, and then slowly, attain nothing.
func TestTTFTAloneIsNothing(t *testing.T) {
	s, _ := scenario(t, "reason/steady/30s/a100")
	alone := false
	for n := int32(1); n <= suite.Replicas; n++ {
		r := schedule(t, &s, slices.Repeat([]int32{n}, int(s.Workload.Duration()/s.Control.Interval)+1), sim.Options{})
		t.Logf("%d replicas: TTFT %.4f, TPOT %.4f, both %.4f", n, r.AttainedTTFT, r.AttainedTPOT, r.Attainment)
		require.LessOrEqual(t, r.Attainment, min(r.AttainedTTFT, r.AttainedTPOT))
		alone = alone || r.AttainedTTFT > 0.95 && r.Attainment < 0.1
	}
	require.True(t, alone, "there is a fleet that has the one without the other")
}

// What the board says does not hang on a server's parameters: by 30 % slower or faster, a row needs other replicas, and
// the policy that is told the present costs about as much over the best schedule.
func TestRowsAreNotSensitiveToTheServer(t *testing.T) {
	long.Skip(t)
	var ratios []float64
	for _, factor := range []float64{0.7, 1, 1.3} {
		s, c := scenario(t, "docs/ramp/100s/a100")
		v := &s.Types[0].Server
		v.Base, v.PrefillToken, v.Sequence, v.KVToken = v.Base*factor, v.PrefillToken*factor, v.Sequence*factor, v.KVToken*factor
		c.PerSecond /= factor
		search := oracle.Search{Alpha: suite.Goal, Bounds: suite.Bounds(), Trims: 20}
		replayed, err := oracle.Replay(context.Background(), &s, 1, c, search)
		require.NoError(t, err)
		present, err := oracle.Limit(context.Background(), &s, 1, c, search, 0)
		require.NoError(t, err)
		require.True(t, present.Attains)
		ratios = append(ratios, present.Result.ReplicaHours/replayed.Result.ReplicaHours)
	}
	t.Logf("the present over the oracle, 30 %% faster, as it is, 30 %% slower: %.3f", ratios)
	require.Less(t, slices.Max(ratios)-slices.Min(ratios), 0.15)
}
