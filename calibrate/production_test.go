package calibrate_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// production is what the pods of a simulated fleet say of themselves, as points.
type production struct {
	server   sim.Server
	workload sim.Workload
	replicas []int32 // by hour
	scrape   time.Duration
	failures float64 // of scrapes
	crashes  float64 // of replicas, an hour
	counted  bool    // whether generated tokens are counted
	answers  bool    // whether times per token are those of answers that finished
	seed     uint64
}

func (p production) points(tb testing.TB) []calibrate.Point {
	tb.Helper()
	s := sim.Scenario{
		Name: "production", Workload: p.workload, SLO: sim.SLO{TTFT: 3 * time.Second, TPOT: 100 * time.Millisecond},
		Types:  []sim.Type{{Server: p.server, Initial: p.replicas[0], Startup: sim.ColdStart(100 * time.Second), CrashesPerHour: p.crashes}},
		Scrape: sim.Scrape{Interval: p.scrape, FailureRate: p.failures}, Control: sim.Control{Interval: 15 * time.Second}, Grace: 5 * time.Minute,
	}
	type last struct {
		at time.Time
		sim.Page
		tpotSum, tpots float64
	}
	before := map[string]last{}
	var points []calibrate.Point
	_, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) {
		return sim.Schedule(s.Begin(), time.Hour, p.replicas), nil
	}, sim.Options{Seed: p.seed, Pages: func(now time.Time, pages []sim.Page) {
		for _, page := range pages {
			if !page.Answered {
				continue
			}
			count := 0.0
			for _, n := range page.TPOT.Counts {
				count += n
			}
			x := calibrate.Point{
				At: now, Pod: page.Pod, Running: float64(page.Running), KVUse: page.KVUse, KVTokens: page.KVUse * float64(p.server.KVTokens),
				PromptRate: math.NaN(), TokenRate: math.NaN(), ITL: math.NaN(),
			}
			if b, ok := before[page.Pod]; ok && page.Steps >= b.Steps && page.ITLs >= b.ITLs && page.PromptTokens >= b.PromptTokens {
				dt := now.Sub(b.at).Seconds()
				x.PromptRate = (page.PromptTokens - b.PromptTokens) / dt
				x.Weight = page.ITLs - b.ITLs
				x.ITL = (page.ITLSeconds - b.ITLSeconds) / x.Weight
				if p.answers {
					x.Weight = count - b.tpots
					x.ITL = (page.TPOT.Sum - b.tpotSum) / x.Weight
				}
				if p.counted {
					x.TokenRate = (page.ITLs - b.ITLs) / dt
				}
			}
			points = append(points, x)
			before[page.Pod] = last{now, page, page.TPOT.Sum, count}
		}
	}})
	require.NoError(tb, err)
	return points
}

func lengths(mean, deviation float64, most int32) sim.Length {
	return sim.Length{Mean: mean, Deviation: deviation, Min: 1, Max: most, LogNormal: true}
}

// day is traffic of so many hours, that goes up and down and changes what it is about.
func day(hours int, low, high float64, prompt, answer sim.Length) sim.Series {
	s := sim.Series{Step: 15 * time.Minute, Input: prompt, Output: answer}
	n := hours * 4
	for i := range n {
		x := 2 * math.Pi * float64(i) / float64(n)
		s.Rates = append(s.Rates, sim.Rate{
			PerSecond: low + (high-low)*(1-math.Cos(x))/2,
			Input:     prompt.Mean * (1 + 0.3*math.Sin(3*x)),
			Output:    answer.Mean * (1 + 0.25*math.Cos(5*x)),
		})
	}
	return s
}

func off(got, want float64) float64 {
	if want == 0 {
		return got
	}
	return got/want - 1
}

// TestRegressionStartsOfSomeDays: most pods are there within a minute, and one in seven waits a day for a card. The simulator refused
// such a start.
func TestRegressionStartsOfSomeDays(t *testing.T) {
	var took []time.Duration
	for i := range 70 {
		if took = append(took, time.Minute); i%7 == 0 {
			took[i] = 30 * time.Hour
		}
	}
	starts, err := calibrate.Starts(took)
	require.NoError(t, err)
	s := sim.Ramp()
	s.Types[0].Startup = starts.Sim()
	require.NoError(t, s.Validate())
}
