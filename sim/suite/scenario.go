package suite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
	"github.com/inferscale/inferscale/sim/traces"
)

// Goal is the share of requests that must meet the SLO.
const Goal = 0.99

// Bounds are the bounds of a row's fleet: wide, so that they do not help any policy.
func Bounds() scaling.Bounds { return scaling.Bounds{Min: 1, Max: 64} }

// Begin is the time at which every row begins, on a Monday.
func Begin() time.Time { return time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC) }

// Scenario returns the scenario of a row, without metrics, and the capacity of each of its replicas within the fleet.
// Scrapes and decisions are every 15 s. It returns the errors of Validate and of the context, and oracle.ErrUnattainable if
// a replica misses the SLO by itself.
func (r Row) Scenario(ctx context.Context) (sim.Scenario, oracle.Capacity, error) {
	if err := r.Validate(); err != nil {
		return sim.Scenario{}, oracle.Capacity{}, err
	}
	s := sim.Scenario{
		Name: r.String(), Start: Begin(), SLO: sim.SLO{TTFT: shapeOf(r.Shape).ttft, TPOT: 100 * time.Millisecond},
		Types:  []sim.Type{{Server: server(r.Server), Initial: 1, Startup: sim.ColdStart(r.ColdStart)}},
		Scrape: sim.Scrape{Interval: 15 * time.Second}, Control: sim.Control{Interval: 15 * time.Second}, Grace: 5 * time.Minute,
	}
	var err error
	if r.Pattern == recorded {
		err = r.recording(ctx, &s)
	} else {
		err = r.made(ctx, &s)
	}
	if err != nil {
		return sim.Scenario{}, oracle.Capacity{}, fmt.Errorf("%s: %w", r, err)
	}
	c, err := oracle.FindFleetCapacity(ctx, &s, 0, Replicas, Goal, 1)
	if err != nil {
		return sim.Scenario{}, oracle.Capacity{}, fmt.Errorf("%s: %w", r, err)
	}
	if r.Pattern == recorded {
		err = begun(&s, c)
	} else {
		s.Types[0].Initial = max(1, scaling.Ceil(Replicas*pattern(r.Pattern, 1)[0]+0.5))
	}
	return s, c, err
}

// made sets synthetic traffic, each part of which would need Replicas replicas by itself at a load of 1.
func (r Row) made(ctx context.Context, s *sim.Scenario) error {
	w := made{pattern: r.Pattern, agents: r.Shape == "agents", flows: flows(r.Shape)}
	for i := range w.flows {
		alone := made{pattern: "steady", agents: w.agents, flows: []flow{w.flows[i]}}
		alone.flows[0].share = func(float64) float64 { return 1 }
		s.Workload = alone
		c, err := oracle.FindFleetCapacity(ctx, s, 0, Replicas, Goal, 1)
		if err != nil {
			return err
		}
		w.flows[i].perSecond = Replicas * c.PerSecond
		if w.agents {
			w.flows[i].perSecond /= calls(alone)
		}
	}
	s.Workload = w
	return nil
}

// calls returns the mean number of requests of an agent session.
func calls(w made) float64 {
	count := func(next sim.Arrivals) (n float64) {
		for _, more := next(); more; _, more = next() {
			n++
		}
		return n
	}
	all := count(w.Arrivals(1))
	w.agents = false
	return all / count(w.Arrivals(1))
}

// Recorded returns the shapes that are recordings: an hour of conversations, and two hours of the morning of two services of
// which only rates and means were recorded.
func Recorded() []string { return []string{"azure", "servegen-large", "servegen-small"} }

// recording sets the traffic of a recording, scaled so that its busiest minutes need Replicas replicas.
func (r Row) recording(ctx context.Context, s *sim.Scenario) error {
	var base sim.Workload
	var err error
	switch r.Shape {
	case "azure":
		base, err = traces.Azure2023Conversation()
	case "servegen-large":
		base, err = morning(0.15)(traces.ServeGenLarge())
	default:
		base, err = morning(0.04)(traces.ServeGenSmall())
	}
	if err != nil {
		return err
	}
	s.Workload = base
	c, err := oracle.FindFleetCapacity(ctx, s, 0, Replicas, Goal, 1)
	if err != nil {
		return err
	}
	const span = 5 * time.Minute
	peak, err := oracle.Demand(base, 1, span, oracle.Capacity{PerSecond: c.PerSecond / 1000, PromptToken: c.PromptToken, OutputToken: c.OutputToken})
	if err != nil {
		return err
	}
	most := max(1, slices.Max(peak[:max(1, len(peak)-1)])) // the last span may be incomplete
	factor := Replicas * 1000 / float64(most)
	if series, ok := base.(sim.Series); ok {
		s.Workload = times(series, factor)
		return nil
	}
	s.Workload = sim.Scaled(base, factor)
	return nil
}

// morning returns the hours from 8 to 10 of the second day, at approximately the rate of a fleet.
func morning(factor float64) func(s sim.Series, err error) (sim.Series, error) {
	return func(s sim.Series, err error) (sim.Series, error) {
		if err != nil {
			return s, err
		}
		const day = 24 * time.Hour
		s, err = traces.Slice(s, day+8*time.Hour, day+10*time.Hour)
		return times(s, factor), err
	}
}

// times multiplies the rates: much faster than thinning the drawn requests.
func times(s sim.Series, factor float64) sim.Series {
	s.Rates = slices.Clone(s.Rates)
	for i := range s.Rates {
		s.Rates[i].PerSecond *= factor
	}
	return s
}

// begun sets the initial replicas to those that the first five minutes need.
func begun(s *sim.Scenario, c oracle.Capacity) error {
	demand, err := oracle.Demand(s.Workload, 1, 5*time.Minute, c)
	if err != nil {
		return err
	}
	s.Types[0].Initial = Bounds().Clamp(demand[0])
	return nil
}
