package capacity

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

var score = flag.String("score", "", "score these scenarios, as chat/ramp/100s/qwen,docs/walk/300s/a100: shape/pattern/cold start/server; all is each of scored")

// scored are scenarios of made-up traffic. They take some minutes.
const scored = "chat/ramp/100s/qwen,chat/walk/300s/a100,chat/steady/100s/a100,chat/day/300s/a100,code/walk/30s/small,code/spikes/30s/qwen," +
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
		s, mu := made(t, name)
		replayed, err := oracle.Replay(context.Background(), &s, 1, mu, oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 1, Max: 64}, Trims: 20})
		require.NoError(t, err, name)
		c := For(scaling.Bounds{Min: 1, Max: 64}, s.SLO, s.Types[0].Server)
		c.ColdStart, c.Control = s.Types[0].Startup.Load.Median, s.Control.Interval
		asSaid := run(t, &s, c, nil)
		c.Server = slower(c.Server, 0.75)
		slow := run(t, &s, c, nil)
		t.Logf("%-26s %10.2f %9.2f %9d %12.2f %9.2f %8.2f", name, 100*asSaid.Attainment, asSaid.ReplicaHours/replayed.Result.ReplicaHours, asSaid.Actions,
			100*slow.Attainment, slow.ReplicaHours/replayed.Result.ReplicaHours, present(t, &s, mu)/replayed.Result.ReplicaHours)
	}
}

// made makes a scenario of two hours, whose highest rate is what nine replicas take.
func made(t *testing.T, name string) (sim.Scenario, oracle.Capacity) {
	t.Helper()
	part := strings.Split(name, "/")
	require.Len(t, part, 4, name)
	length := func(mean, deviation float64, most int32) sim.Length {
		return sim.Length{Mean: mean, Deviation: deviation, Min: 1, Max: most, LogNormal: true}
	}
	shape := map[string]struct {
		prompt, answer sim.Length
		ttft           time.Duration
	}{
		"chat":   {length(900, 900, 16000), length(250, 250, 4000), 3 * time.Second},
		"code":   {length(1800, 4000, 32000), length(90, 120, 2000), 4 * time.Second},
		"docs":   {length(9000, 6000, 48000), length(200, 150, 2000), 6 * time.Second},
		"reason": {length(400, 400, 8000), length(2500, 1800, 12000), 3 * time.Second},
	}[part[0]]
	server, ok := map[string]sim.Server{
		"qwen": sim.Qwen32B(), "a100": sim.Llama70BA100(),
		"small": {Name: "small", Base: 0.007, PrefillToken: 1.0 / 22000, Sequence: 3e-5, KVToken: 30e-9, MaxSeqs: 256, TokenBudget: 8192, KVTokens: 400_000},
	}[part[3]]
	require.True(t, ok, name)
	cold, err := time.ParseDuration(part[2])
	require.NoError(t, err)
	rates := pattern(part[1])
	w := sim.Series{Step: time.Minute, Input: shape.prompt, Output: shape.answer}
	for _, x := range rates {
		w.Rates = append(w.Rates, sim.Rate{PerSecond: x})
	}
	s := sim.Scenario{
		Name: name, Start: start(), Router: sim.LeastLoaded, SLO: sim.SLO{TTFT: shape.ttft, TPOT: 100 * time.Millisecond}, Metrics: Metrics(),
		Workload: w, Types: []sim.Type{{Server: server, Initial: 1, Startup: sim.ColdStart(cold)}},
		Scrape: sim.Scrape{Interval: 15 * time.Second}, Control: sim.Control{Interval: 15 * time.Second}, Grace: 5 * time.Minute,
	}
	mu, err := oracle.FindCapacity(context.Background(), &s, 0, 0.99, 1)
	require.NoError(t, err, name)
	for i := range w.Rates {
		w.Rates[i].PerSecond *= 9 * mu.PerSecond
	}
	s.Workload, s.Types[0].Initial = w, max(1, scaling.Ceil(9*rates[0]+0.5))
	return s, mu
}

// pattern returns a rate for each minute of two hours, 1 at the most.
func pattern(name string) []float64 {
	rates := make([]float64, 120)
	random := splitmix.Stream{State: 99}
	walk := 0.5
	for i := range rates {
		x := float64(i) / float64(len(rates))
		switch name {
		case "steady":
			rates[i] = 0.6
		case "ramp":
			rates[i] = 0.2 + 0.8*(1-math.Abs(2*x-1))
		case "day":
			rates[i] = 0.6 - 0.4*math.Cos(2*math.Pi*x)
		case "onoff":
			rates[i] = 0.25 + 0.65*float64(int(x*6)%2)
		case "walk":
			walk = min(max(walk+(random.Uniform()-0.5)*0.12, 0.15), 1)
			rates[i] = walk
		case "spikes":
			if rates[i] = 0.4; i%23 > 20 {
				rates[i] = 0.9
			}
		default:
			panic(fmt.Sprintf("there is no pattern %q", name))
		}
	}
	return rates
}

// present returns the replica-hours of the cheapest policy that is told the work of the last 30 s as it is, of several holds
// each with the least margin with which it attains the goal; NaN if none does.
func present(t *testing.T, s *sim.Scenario, mu oracle.Capacity) float64 {
	t.Helper()
	best := math.NaN()
	work := make([]float64, int(s.Workload.Duration()/time.Second)+2)
	next := s.Workload.Arrivals(1)
	for r, ok := next(); ok; r, ok = next() {
		work[int(r.At/time.Second)+1] += mu.Work(r)
	}
	for i := 1; i < len(work); i++ {
		work[i] += work[i-1]
	}
	for _, hold := range []float64{0, 60, 300, 900} {
		for margin := 0.7; margin < 2.6; margin *= step {
			r, err := sim.Run(context.Background(), s, func() (scaling.Group, error) {
				return scaling.GroupOf(scaling.New(told{work, mu.PerSecond, margin, hold})), nil
			}, sim.Options{Seed: 1})
			require.NoError(t, err)
			if r.ReplicaHours > best {
				break
			}
			if r.Attainment >= 0.99 {
				best = r.ReplicaHours
				break
			}
		}
	}
	return best
}

// told is a policy that is told the work that has come.
type told struct {
	work             []float64 // up to each second
	mu, margin, hold float64
}

func (told) Kind() scaling.Kind                             { return scaling.Kind{Name: "told", Version: 1} }
func (told) Applied(s State, _ time.Time, _, _ int32) State { return s }

func (p told) Decide(s State, now time.Time, obs scaling.Observation) (State, scaling.Decision) {
	at := now.Sub(start()).Seconds()
	from := max(0, at-30)
	r := (p.work[min(int(at), len(p.work)-1)] - p.work[min(int(from), len(p.work)-1)]) / (at - from) / p.mu
	n := scaling.Ceil(r*p.margin + spread*math.Sqrt(r))
	if at <= 60 {
		n = max(n, obs.SpecReplicas)
	}
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(max(1, s.hold(at, n, p.hold)), AboveCapacity, "")
	return s, d
}
