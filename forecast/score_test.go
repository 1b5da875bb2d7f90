package forecast_test

import (
	"context"
	"flag"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

var score = flag.String("score", "", "score these days, as season/300s/1: what recurs, cold start, seed; all is each of scored")

// scored are days of made-up traffic, each after others of its kind.
const scored = "season/300s/1,season/600s/1,weekend/300s/1,holiday/300s/1,afterlaunch/300s/1,walk/300s/1,flat/300s/1,bursts/300s/1"

const (
	rateMetric = "request_rate"
	fleetMost  = 40
)

// world is a day of traffic and those before it.
type world struct {
	scenario sim.Scenario
	mu       oracle.Capacity
	past     []forecast.Sample // in requests a second
}

func midnight() time.Time { return time.Date(2026, 3, 19, 0, 0, 0, 0, time.UTC) } // a Thursday

// rates returns what is asked for on a day, so many after the one that is scored, in steps of five minutes; 1 is the usual
// peak.
func rates(kind string, day int, seed uint64) []float64 {
	random := splitmix.Stream{State: seed*1000 + uint64(day+100)}
	level, late := 1.0, 0.0
	if day == 0 {
		level, late = 0.88, 5
	} else {
		level += 0.08 * (random.Uniform() - 0.5)
		late = 8 * (random.Uniform() - 0.5)
	}
	if kind == "weekend" && (day%7 == 2-7 || day%7 == 3-7) { // Saturday and Sunday
		level *= 0.45
	}
	noise, walk := 0.0, splitmix.Stream{State: seed + 7}
	at := 0.5
	for range (day + 100) * 288 {
		at = min(max(at+(walk.Uniform()-0.5)*0.06, 0.15), 1)
	}
	all := make([]float64, 288)
	for i := range all {
		hour := (float64(i)*5 - late) / 60
		x := 0.12 + 0.7*ramp(hour, 8, 0.15)*ramp(-hour, -12.2, 0.2) + 0.75*ramp(hour, 13.3, 0.12)*ramp(-hour, -17.5, 0.3) + 0.3*bell(hour, 20.5, 1)
		noise = 0.7*noise + 0.02*(random.Uniform()+random.Uniform()-1)
		switch {
		case kind == "shift":
			x = 0.2 + 0.8*ramp(hour, 9, 0.03)*ramp(-hour, -17.5, 0.3)
		case kind == "flat":
			x, level = 0.55, 1
		case kind == "walk":
			at = min(max(at+(walk.Uniform()-0.5)*0.06, 0.15), 1)
			x, level = at, 1
		case kind == "holiday" && day == 0, kind == "afterholiday" && day == -1:
			x = 0.3 + 0.1*bell(hour, 14, 4)
		case kind == "afterlaunch" && day == -1 && hour > 10 && hour < 16:
			x *= 2.5
		case kind == "bursts":
			x = 0.35
			b := splitmix.Stream{State: seed*77 + uint64(day+100)*31 + uint64(i/12)}
			if b.Uniform() < 0.25 && i%12 > 6 {
				x = 0.9
			}
			level = 1
		}
		all[i] = x * level * (1 + noise)
	}
	return all
}

// ramp rises from 0 to 1 around a time, half of it within about twice the width.
func ramp(x, middle, width float64) float64 { return 1 / (1 + math.Exp(-(x-middle)/width)) }

func bell(x, middle, width float64) float64 {
	return math.Exp(-(x - middle) * (x - middle) / (2 * width * width))
}

func made(tb testing.TB, name string) world {
	tb.Helper()
	part := strings.Split(name, "/")
	require.Len(tb, part, 3, name)
	cold, err := time.ParseDuration(part[1])
	require.NoError(tb, err)
	seed, err := strconv.ParseUint(part[2], 10, 64)
	require.NoError(tb, err)
	length := func(mean, deviation float64, most int32) sim.Length {
		return sim.Length{Mean: mean, Deviation: deviation, Min: 1, Max: most, LogNormal: true}
	}
	w := sim.Series{Step: 5 * time.Minute, Input: length(9000, 6000, 48000), Output: length(200, 150, 2000)}
	today := rates(part[0], 0, seed)
	for _, x := range today {
		w.Rates = append(w.Rates, sim.Rate{PerSecond: x})
	}
	s := sim.Scenario{
		Name: name, Start: midnight(), Router: sim.LeastLoaded, SLO: sim.SLO{TTFT: 6 * time.Second, TPOT: 100 * time.Millisecond},
		Metrics:  []sim.Metric{{Name: rateMetric, Signal: sim.RequestRate}, {Name: sim.MetricInFlight, Signal: sim.InFlight, Fill: 10}},
		Workload: w, Types: []sim.Type{{Server: sim.Qwen32B(), Initial: 1, Startup: sim.ColdStart(cold)}},
		Scrape: sim.Scrape{Interval: 15 * time.Second}, Control: sim.Control{Interval: 15 * time.Second}, Grace: 5 * time.Minute,
	}
	mu, err := oracle.FindCapacity(context.Background(), &s, 0, 0.99, 1)
	require.NoError(tb, err, name)
	const peak = 12
	for i := range w.Rates {
		w.Rates[i].PerSecond *= peak * mu.PerSecond
	}
	s.Workload, s.Types[0].Initial = w, max(1, scaling.Ceil(peak*today[0]+1))
	out := world{scenario: s, mu: mu}
	first := -14
	if part[0] == "first" { // there was no day before
		first = 0
	}
	for day := first; day < 0; day++ {
		for i, x := range rates(part[0], day, seed) {
			out.past = append(out.past, forecast.Sample{At: midnight().AddDate(0, 0, day).Add(time.Duration(i+1) * 5 * time.Minute), Demand: x * peak * mu.PerSecond})
		}
	}
	return out
}

// reactive returns a policy that follows the rate, each replica taking so much of it.
func (w *world) reactive(tb testing.TB, target float64, hold time.Duration) (scaling.Policy, forecast.Source) {
	tb.Helper()
	c := proportional.LLM(scaling.Bounds{Min: 1, Max: fleetMost}, proportional.Metric{Name: rateMetric, Target: target, Measure: proportional.Total})
	c.Stabilization.Down = hold
	p, err := proportional.New(c)
	require.NoError(tb, err)
	return scaling.New(p), c.Metrics[0].Demand
}

func (w *world) run(tb testing.TB, target float64, hold time.Duration, floored bool) sim.Result {
	tb.Helper()
	r, err := sim.Run(context.Background(), &w.scenario, func() (scaling.Group, error) {
		p, source := w.reactive(tb, target, hold)
		if floored {
			c := forecast.For(scaling.Bounds{Min: 1, Max: fleetMost}, time.UTC)
			c.ColdStart = w.scenario.Types[0].Startup.Load.Median
			var err error
			if p, err = forecast.New(p, source, c, w.past...); err != nil {
				return nil, err
			}
		}
		return scaling.GroupOf(p), nil
	}, sim.Options{Seed: 1})
	require.NoError(tb, err)
	return r
}

// best returns the replica-hours of the replay oracle.
func (w *world) best(tb testing.TB) float64 {
	tb.Helper()
	search := oracle.Search{Alpha: 0.99, Bounds: scaling.Bounds{Min: 1, Max: fleetMost}, Steps: []time.Duration{time.Minute}}
	r, err := oracle.Replay(context.Background(), &w.scenario, 1, w.mu, search)
	require.NoError(tb, err)
	return r.Result.ReplicaHours
}

// TestScore prints what reactive policies attain and cost on made-up days, with the floor and without it: the cheapest
// of several targets and holds that attain the goal.
func TestScore(t *testing.T) {
	names := *score
	switch names {
	case "":
		t.Skip("takes minutes: run it with -score all")
	case "all":
		names = scored
	}
	for name := range strings.SplitSeq(names, ",") {
		w := made(t, name)
		best := w.best(t)
		for _, hold := range []time.Duration{time.Minute} {
			for _, share := range []float64{1.5, 1.35, 1.2, 1.05} {
				without, with := w.run(t, share*w.mu.PerSecond, hold, false), w.run(t, share*w.mu.PerSecond, hold, true)
				t.Logf("%-20s hold %5s target %.2f   %6.2f %5.2f x  %3d    with %6.2f %5.2f x  %3d", name, hold, share,
					100*without.Attainment, without.ReplicaHours/best, without.Actions, 100*with.Attainment, with.ReplicaHours/best, with.Actions)
			}
		}
	}
}

// morning cuts the hours from 6 to 11 out of the day.
func (w *world) morning() {
	const from, to = 6 * 12, 11 * 12
	traffic := w.scenario.Workload.(sim.Series)
	day := traffic.Rates
	traffic.Rates = day[from:to]
	w.scenario.Workload = traffic
	w.scenario.Start = w.scenario.Start.Add(from * traffic.Step)
	w.scenario.Types[0].Initial = scaling.Ceil(traffic.Rates[0].PerSecond/w.mu.PerSecond + 1)
	for i, r := range day[:from] { // what came since midnight is known
		w.past = append(w.past, forecast.Sample{At: midnight().Add(time.Duration(i+1) * traffic.Step), Demand: r.PerSecond})
	}
}

// learned runs package capacity. The past is in its unit of work, which is taken from a run without a floor.
func (w *world) learned(tb testing.TB, floored bool, unit float64, request func(sim.Outcome)) (r sim.Result, each float64) {
	tb.Helper()
	s := w.scenario
	s.Metrics = capacity.Metrics()
	c := capacity.For(scaling.Bounds{Min: 1, Max: fleetMost}, s.SLO, s.Types[0].Server)
	c.ColdStart = s.Types[0].Startup.Load.Median
	r, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) {
		scaler, err := capacity.New(c, nil)
		if err != nil {
			return nil, err
		}
		p := scaling.New(scaler)
		if floored {
			f := forecast.For(c.Bounds, time.UTC)
			f.ColdStart = c.ColdStart
			past := slices.Clone(w.past)
			for i := range past {
				past[i].Demand *= unit
			}
			if p, err = forecast.New(p, capacity.Demand, f, past...); err != nil {
				return nil, err
			}
		}
		return scaling.GroupOf(p), nil
	}, sim.Options{Seed: 1, Request: request, Decision: func(now time.Time, _ *scaling.GroupObservation, d *scaling.GroupDecision) {
		work, _ := capacity.Demand(&scaling.Observation{}, &d.Targets[0])
		if at := int(now.Sub(s.Start) / (5 * time.Minute)); work.Known() && at == 12 {
			each = work.Lower / s.Workload.(sim.Series).Rates[at].PerSecond
		}
	}})
	require.NoError(tb, err)
	return r, each
}

// TestScoreCapacity prints what package capacity attains and costs in a made-up morning, with the floor and without it.
func TestScoreCapacity(t *testing.T) {
	if *score == "" || *score == "all" {
		t.Skip("takes minutes: run it with -score and names")
	}
	for name := range strings.SplitSeq(*score, ",") {
		w := made(t, name)
		w.morning()
		best := w.best(t)
		without, unit := w.learned(t, false, 0, nil)
		with, _ := w.learned(t, true, unit, nil)
		t.Logf("%-20s capacity   %6.2f %5.2f x  %3d    with %6.2f %5.2f x  %3d", name,
			100*without.Attainment, without.ReplicaHours/best, without.Actions, 100*with.Attainment, with.ReplicaHours/best, with.Actions)
	}
}

// TestScoreDays prints what package capacity attains and costs in four days in a row, of which it knows none in advance, by day.
func TestScoreDays(t *testing.T) {
	if *score == "" || *score == "all" {
		t.Skip("takes ten minutes: run it with -score and names")
	}
	const days = 4
	for name := range strings.SplitSeq(*score, ",") {
		w := made(t, name)
		part := strings.Split(name, "/")
		seed, err := strconv.ParseUint(part[2], 10, 64)
		require.NoError(t, err)
		traffic := w.scenario.Workload.(sim.Series)
		traffic.Rates, w.past = nil, nil
		for day := -days; day < 0; day++ {
			for _, x := range rates(part[0], day, seed) {
				traffic.Rates = append(traffic.Rates, sim.Rate{PerSecond: 6 * x * w.mu.PerSecond})
			}
		}
		w.scenario.Workload, w.scenario.Start, w.scenario.Types[0].Initial = traffic, midnight().AddDate(0, 0, -days), 2
		best := w.best(t)
		for _, floored := range []bool{false, true} {
			var met, all [days]float64
			r, _ := w.learned(t, floored, 0, func(x sim.Outcome) {
				day := min(int(x.Arrived/(24*time.Hour)), days-1)
				all[day]++
				if x.Met {
					met[day]++
				}
			})
			for i := range met {
				met[i] *= 100 / all[i]
			}
			t.Logf("%-20s floor %-5t  %6.2f %5.2f x  %4d  %.2f by day", name, floored, 100*r.Attainment, r.ReplicaHours/best, r.Actions, met)
		}
	}
}
