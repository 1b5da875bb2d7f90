package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// heldOut is the share of a history that a server is calibrated on, to be checked on the rest.
const heldOut = 0.5

// A check is a replay of what was.
type check struct {
	world  *world
	fleet  *history.Fleet
	from   int        // the interval at which the world begins
	server sim.Server // calibrated on the first part
	since  time.Time  // the rest begins
}

// trust replays the recorded replicas and compares hour by hour what is simulated with what was recorded. Where they differ
// too much there is no verdict.
func (w *world) trust(ctx context.Context) error {
	c := w.check
	if c == nil {
		return nil
	}
	recorded := c.recorded()
	simulated, spec, err := c.replay(ctx, recorded)
	if err != nil {
		return err
	}
	hours := 0.0
	for _, n := range w.recordedSpec {
		hours += float64(n) * c.fleet.Step.Hours()
	}
	// What is checked is the rest; the replicas are those of the whole.
	late := func(t calibrate.Times) bool { return t.From.Before(c.since) }
	t, err := calibrate.Compare(slices.DeleteFunc(recorded, late), slices.DeleteFunc(simulated, late), hours, spec,
		calibrate.Check{TTFT: w.SLO.TTFT.Seconds() / 10, TPOT: w.SLO.TPOT.Seconds() / 10})
	if err != nil {
		return err
	}
	w.notes = append(w.notes, fmt.Sprintf("Checked from %s on: %s.", c.since.UTC().Format("2006-01-02 15:04"), strings.TrimSuffix(strings.Split(t.String(), "\n")[0], ".")))
	if t.Trusted() {
		return nil
	}
	return &refusedError{errors.New("the simulation is not what was recorded, so a ranking by it would be worth nothing:\n  " + strings.Join(t.Reasons, "\n  "))}
}

// recorded returns the times of the hours that are within the world.
func (c *check) recorded() (all []calibrate.Times) {
	for i := range c.fleet.Spans {
		s := &c.fleet.Spans[i]
		if s.From < c.from || c.at(s.To).After(c.world.Start.Add(c.world.Workload.Duration())) {
			continue // a part of an hour only
		}
		all = append(all, calibrate.Times{From: c.at(s.From), TTFT: s.TTFT, TPOT: s.TPOT})
	}
	return all
}

// at returns the time at which an interval begins.
func (c *check) at(i int) time.Time { return c.fleet.Start.Add(time.Duration(i) * c.fleet.Step) }

// replay runs the recorded replicas, and returns the times of the same hours and the replica-hours that were asked for.
func (c *check) replay(ctx context.Context, recorded []calibrate.Times) (all []calibrate.Times, hours float64, err error) {
	w := c.world
	for _, r := range recorded {
		all = append(all, calibrate.Times{From: r.From, TTFT: like(r.TTFT), TPOT: like(r.TPOT)})
	}
	place := func(at time.Time) int {
		i, found := slices.BinarySearchFunc(all, at, func(t calibrate.Times, at time.Time) int { return t.From.Compare(at) })
		if !found {
			i--
		}
		if i < 0 || i == len(all)-1 && at.Sub(all[i].From) > time.Duration(historyHour(c.fleet))*c.fleet.Step {
			return -1
		}
		return i
	}
	s := w.Scenario
	s.Types = slices.Clone(s.Types)
	s.Types[0].Server, s.Types[0].Initial = c.server, w.incumbent.initial
	s.Metrics = w.incumbent.metrics
	result, err := sim.Run(ctx, &s, func() (scaling.Group, error) { return w.incumbent.controller(1) }, sim.Options{
		Policy: incumbentName, Seed: 1,
		Request: func(o sim.Outcome) {
			first, last := w.Start.Add(o.Arrived+o.TTFT), w.Start.Add(o.Arrived+o.Total)
			if i := place(first); i >= 0 {
				all[i].TTFT.(*calibrate.Histogram).Add(o.TTFT.Seconds())
			}
			if i := place(last); i >= 0 && o.Output > 1 {
				all[i].TPOT.(*calibrate.Histogram).Add((o.Total - o.TTFT).Seconds() / float64(o.Output-1))
			}
		},
	})
	return all, result.AverageSpec * w.length().Hours(), err
}

// historyHour is how many intervals the longest span of a fleet has.
func historyHour(f *history.Fleet) (most int) {
	for i := range f.Spans {
		most = max(most, f.Spans[i].To-f.Spans[i].From)
	}
	return most
}

// like returns an empty histogram with the bounds of another.
func like(d calibrate.Distribution) *calibrate.Histogram {
	m, _ := d.(history.Mixture)
	best := -1
	for i := range m {
		if best < 0 || m[i].Total() > m[best].Total() {
			best = i
		}
	}
	if best < 0 {
		return calibrate.NewHistogram([]float64{math.MaxFloat64})
	}
	return calibrate.NewHistogram(m[best].Bounds)
}
