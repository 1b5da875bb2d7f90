package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
	"github.com/inferscale/inferscale/sim"
)

// TestRegressionPodsThatAreNotReadyAreNotVague: with a limit to what pods that are not ready could have, less was asked for than without.
func TestRegressionPodsThatAreNotReadyAreNotVague(t *testing.T) {
	c := config()
	c.Bounds.Max = 20
	counted := func(name string, bounds ...float64) scalingtest.Counting {
		counts := make([]float64, len(bounds)+1)
		counts[0] = 200
		return scalingtest.Counting{Metric: name, Bounds: bounds, Counts: counts}
	}
	scalingtest.Replay(t, func() scaling.Policy {
		s := build(t, c, quiet{})
		return scaling.New(s)
	}, properties(c), "MissingNeverActs", scalingtest.Episode{
		Spec:    1,
		Changes: []scalingtest.Change{{Metric: KVUse, Upper: math.Inf(1)}},
		Ticks: []scalingtest.Tick{{
			After: 15 * time.Second,
			Readings: []scaling.Reading{
				{Metric: Waiting, Lower: 5, Upper: 5, Values: 1},
				{Metric: Running, Lower: 2, Upper: 2, Values: 1},
				{Metric: KVUse, Lower: 0.2, Upper: 0.4, Values: 1, NotReady: 2},
			},
			Counted: []scalingtest.Counting{
				counted(PromptSize, 100, 1000, 10000), counted(AnswerSize, 10, 100, 1000), counted(Prefilled, 100, 1000, 10000),
				counted(TTFT, 0.1, 1, 3, 10), counted(TPOT, 0.01, 0.05, 0.1, 1),
			},
		}},
	})
}

// TestWhatAFleetWithoutNodesMissesIsNotRemembered: an hour in which there were no nodes for what was asked for made the fleet half as
// large again for a day. What is missed within starts, however long the load rises, is remembered.
func TestWhatAFleetWithoutNodesMissesIsNotRemembered(t *testing.T) {
	scaler := build(t, config(), found(someTrial()))
	for name, ready := range map[string]func(i int) (spec, ready int32){
		"nodes are lost":        func(int) (int32, int32) { return 5, 3 },
		"a rise has no nodes":   func(i int) (int32, int32) { return min(5, 3+int32(i)), 3 },
		"starts take 90 s":      func(i int) (int32, int32) { return 5 + int32(i)/2, 5 + max(0, int32(i)/2-3) },
		"all that was asked":    func(int) (int32, int32) { return 5, 5 },
		"one never starts":      func(int) (int32, int32) { return 10, 9 },
		"less is asked for":     func(i int) (int32, int32) { return 5 - int32(i)/100, 3 - int32(i)/100 },
		"nodes come at the end": func(i int) (int32, int32) { return 5, 3 + 2*int32(i/200) },
	} {
		var s State
		for i := range 240 {
			spec, ready := ready(i)
			obs := observation(spec, 0, 20, 40*float64(i), 1500, 200)
			obs.ReadyReplicas = ready
			obs.Histograms[3].Bounds[0], obs.Histograms[3].Counts = 3, []float64{0, 40 * float64(i), 0} // all are late
			s, _ = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), obs)
		}
		p := s.past(100)
		all, of := p.missed(0)
		blamed, ofThese := p.blamed(0)
		require.InDelta(t, all-blamed, of-ofThese, 1e-9, "all are late")
		switch name {
		case "starts take 90 s", "all that was asked", "one never starts":
			require.Zero(t, all-blamed, name)
		case "nodes come at the end":
			require.InDelta(t, 40*200, all-blamed, 80, name)
		default:
			require.InDelta(t, 40*240, all-blamed, 160, name)
		}
		require.NoError(t, s.Validate())
	}
}

// TestRegressionMissesBelowMaxAreNotRemembered: of an hour with a Max that was too low, the fleet had half as many replicas again for
// hours. What is wanted beyond Max counts as what was asked for.
func TestRegressionMissesBelowMaxAreNotRemembered(t *testing.T) {
	c := config()
	c.Bounds.Max = 2
	scaler := build(t, c, found(someTrial()))
	for name, every := range map[string]time.Duration{"as scraped": 15 * time.Second, "often": 5 * time.Second} {
		s, late := State{}, 0.0
		for i := range int(time.Hour / every) {
			late = 5 * float64(i) * every.Seconds()
			obs := observation(2, 0, 20, late, 1500, 200)
			obs.Histograms[3].Bounds[0], obs.Histograms[3].Counts = 3, []float64{0, late, 0}
			s, _ = scaler.Decide(s, start().Add(time.Duration(i)*every), obs)
		}
		require.Greater(t, s.Wanted, c.Bounds.Max)
		p := s.past(100)
		blamed, _ := p.blamed(0)
		require.Less(t, blamed, 0.02*late, name)
	}
}

// TestRegressionAPodThatIsNotReadyHasNoQueue: with a limit to what it could have, it counted as a full queue for ever.
func TestRegressionAPodThatIsNotReadyHasNoQueue(t *testing.T) {
	obs := observation(7, 0, 0, 0, 1500, 200)
	obs.SpecReplicas = 8
	for i := range obs.Readings {
		obs.Readings[i].NotReady, obs.Readings[i].Upper = 1, 5.0/8
	}
	x, missing := read(start(), &obs, slo())
	require.Empty(t, missing)
	require.Zero(t, x.Queue)
	obs.Readings[0].NotReady, obs.Readings[0].Failed = 0, 1
	x, _ = read(start(), &obs, slo())
	require.Zero(t, x.Queue, "nor has one that never answers")
	require.True(t, x.Partly)
}

// TestRegressionARequestThatMissesBothIsNoBias: histograms count it twice, a replay did not. So an overload made the policy think that
// twice as many miss the SLO as it can see.
func TestRegressionARequestThatMissesBothIsNoBias(t *testing.T) {
	long.Skip(t)
	s := day(3, 3)
	w := s.Workload.(sim.Series)
	w.Rates = w.Rates[:40]
	s.Workload, s.Types[0].Initial = w, 1
	c := config()
	c.Bounds.Max = 1
	most := 0.0
	r := run(t, &s, c, watch(func(x Tuning) { most = max(most, x.Bias) }))
	require.Less(t, r.Attainment, 0.7)
	require.Less(t, most, 1.5)
}
