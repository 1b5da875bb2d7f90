package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

// The two kinds of replicas: one that is cheap and slow, and one that is dear and fast. Costs are of eight accelerators
// for an hour, relative to the cheap kind: about what clouds ask.
const (
	cheapKind, dearKind = "a100x8", "h100x8"
	cheapCost, dearCost = 1.0, 1.6
	kindsMax            = 8 // of each
	// kindsTarget is the requests in flight per replica that suit the cheap kind with its slower steps.
	kindsTarget = 20
)

// A pair is the two kinds and what each can take.
type pair struct {
	scenario   sim.Scenario
	capacities [2]float64 // requests per second
	share      float64    // of the world's traffic
}

// runKinds compares the algorithms that choose among kinds of replicas.
func (r *runner) runKinds(ctx context.Context) error {
	if r.noCapacity != "" {
		return errors.New("without a demand it is not known how much of the traffic is for them")
	}
	p := pair{scenario: r.world.Scenario}
	p.scenario.Types = []sim.Type{
		{Name: cheapKind, Server: sim.Llama70BA100(), Cost: cheapCost},
		{Name: dearKind, Server: sim.Llama70BH100x8(), Cost: dearCost},
	}
	err := inParallel(ctx, r.workers, len(p.scenario.Types), func(ctx context.Context, k int) error {
		s := p.scenario
		c, err := oracle.FindCapacity(ctx, &s, k, r.alpha, 1)
		p.capacities[k] = c.PerSecond
		return err
	})
	if err != nil {
		return err
	}
	p.scale(r)
	for k := range p.scenario.Types {
		t := &p.scenario.Types[k]
		t.Weight = p.capacities[k] / p.capacities[0]
		t.Startup = r.world.Types[0].Startup
	}
	r.kindsShare = p.share
	r.kinds, err = r.runAll(ctx, p.contenders(), 0, p.of)
	r.apartFromOracle().summarizeAll(r.kinds)
	return err
}

// scale takes as much of the traffic as half of the replicas can take at the highest demand.
func (p *pair) scale(r *runner) {
	peak := float64(slices.Max(r.demand[0])) * r.capacity.PerSecond
	p.share = min(1, math.Floor(100*kindsMax/2*(p.capacities[0]+p.capacities[1])/peak)/100)
	p.scenario.Workload = sim.Scaled(p.scenario.Workload, p.share)
	rate := p.share * float64(r.first()) * r.capacity.PerSecond
	p.scenario.Types[1].Initial = 1
	p.scenario.Types[0].Initial = max(1, min(kindsMax, scaling.Ceil((rate-p.capacities[1])/p.capacities[0])))
}

// of returns the scenario as a contender meets it.
func (p *pair) of(c *contender, _ int) sim.Scenario {
	s := p.scenario
	s.Metrics = c.metrics
	if c.initial > 0 {
		s.Types = slices.Clone(s.Types)
		s.Types[0].Initial, s.Types[1].Initial = c.initial, c.initial
	}
	return s
}

func (p *pair) contenders() []contender {
	fleetAt := func(rate float64) func(uint64) (scaling.Group, error) {
		return func(uint64) (scaling.Group, error) {
			var types []hetero.Type
			for _, t := range p.scenario.Types {
				types = append(types, hetero.Type{Name: t.Name, Cost: t.Cost, Min: 1, Max: kindsMax, Weight: t.Weight})
			}
			fleet, err := hetero.New(hetero.Config{Types: types, ExpansionRate: rate})
			if err != nil {
				return nil, err
			}
			total, err := proportional.New(proportional.LLM(scaling.Bounds{Min: 2, Max: 2 * kindsMax},
				proportional.Metric{Name: sim.MetricInFlight, Target: kindsTarget}))
			if err != nil {
				return nil, err
			}
			return hetero.NewGroup(scaling.New(total), fleet, hetero.Options{})
		}
	}
	inFlight := []sim.Metric{{Name: sim.MetricInFlight, Signal: sim.InFlight, Fill: kindsTarget}}
	return []contender{
		{name: "hetero, rate 2", sort: ofPolicy, note: "proportional/llm spread as Kthena does, in doubling batches", metrics: inFlight, controller: fleetAt(hetero.DefaultExpansionRate)},
		{name: "hetero, rate 1", sort: ofPolicy, note: "proportional/llm spread cheapest first", metrics: inFlight, controller: fleetAt(1)},
		{
			name: "saturation", sort: ofPolicy, note: "the cheapest variant grows, the dearest shrinks",
			metrics: []sim.Metric{
				{Name: saturation.DefaultKV, Signal: sim.KVCacheUsage, Fill: 1},
				{Name: saturation.DefaultQueue, Signal: sim.Waiting, Fill: saturation.Recommended().QueueLength},
			},
			controller: func(uint64) (scaling.Group, error) {
				c := saturation.GroupConfig{Config: saturation.Defaults()}
				for _, t := range p.scenario.Types {
					c.Variants = append(c.Variants, saturation.Variant{Name: t.Name, Cost: t.Cost, Capacity: t.Weight, Min: 1, Max: kindsMax})
				}
				return saturation.NewGroup(c)
			},
		},
		{name: "all of both", sort: ofStatic, note: "a fleet that is never scaled", initial: kindsMax, controller: func(uint64) (scaling.Group, error) {
			return sim.Static(kindsMax, kindsMax), nil
		}},
	}
}

func kindsHeadings() []string {
	return []string{"policy", "attained %", "cost", cheapKind + " h", dearKind + " h", "TTFT p99 s", "actions", "reversals", "starts"}
}

// hoursOfType writes the replica-hours of a type.
func (l *line) hoursOfType(k int) string {
	return over(l.results, func(r *sim.Result) float64 { return r.Types[k].ReplicaHours }).text("%.2f", 1)
}

// kindsCells returns a line of the table of two kinds.
func (l *line) kindsCells() []string {
	s := &l.summary
	return []string{
		l.name, s.attainedText(), over(l.results, func(r *sim.Result) float64 { return r.Cost }).text("%.2f", 1), l.hoursOfType(0), l.hoursOfType(1),
		seconds(s.p99), count(s.actions), count(s.reversals), count(s.starts),
	}
}

func (c *comparison) kindsIntroduction() string {
	return fmt.Sprintf("Llama-2-70B on 8 A100 at %g and on 8 H100 at %g an hour, 1 to %d of each, with %.0f %% of the traffic. Cost is in that unit. "+
		"Hetero spreads the total of proportional/llm, with %d requests in flight per replica: at rate 2 in batches that double, as Kthena does, at rate 1 the cheapest first.",
		cheapCost, dearCost, kindsMax, 100*c.kindsShare, kindsTarget)
}
