package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

// A comparison is what came of all runs.
type comparison struct {
	world    *world
	alpha    float64
	seeds    int
	capacity oracle.Capacity
	// noCapacity is why a replica has none, if it misses the SLO by itself. Then there is no demand and no oracle.
	noCapacity string
	// floor is, for each seed, the replica-hours without which nothing can attain alpha.
	floor      []float64
	demand     [][]int32 // for each seed
	demandStep time.Duration
	// replays has the oracle's schedule for each seed; it is empty if nothing within the bounds attains alpha.
	replays      []oracle.Replayed
	unattainable string // why, then
	lines        []*line
	sweep        []*line
	kinds        []*line
	noKinds      string  // why there are none, though asked for
	kindsShare   float64 // of the traffic
	apart        *split  // prefill and decode apart; nil where not asked for
	fidelity     []fidelity
	explained    []explanation
	arrivals     []float64 // requests by day
	changes      *changes
}

// A line is a contender and its results, one for each seed.
type line struct {
	contender
	results   []sim.Result
	summary   summary
	days      [][]tally // for each seed, where there are enough days
	certainty *certainty
}

// trims returns how many runs go into making the oracle's schedule cheaper: fewer where each takes longer.
func trims(requests int) int { return min(40, 6_000_000/max(1, requests)) }

// capacitySeeds is how many runs of a replica say what it can take: seeds 1 to so many.
const capacitySeeds = 3

// steady is how many slots of demand say what a fleet begins with: recordings begin with nothing in flight.
const steady = 5

// A runner makes the runs of a comparison.
type runner struct {
	*comparison

	workers  int
	requests int // of the first seed
	progress *progress
	explain  bool
}

// compare runs everything.
func (o *options) compare(ctx context.Context, w *world, contenders []contender, p *progress) (*comparison, error) {
	r := &runner{
		comparison: &comparison{world: w, alpha: o.alpha, seeds: o.seeds, demandStep: time.Minute},
		workers:    o.parallel, progress: p, explain: o.explain,
	}
	if err := r.measure(ctx); err != nil {
		return nil, err
	}
	p.step()
	foresight, err := r.foresight(ctx)
	if err != nil {
		return nil, err
	}
	contenders = append(contenders, foresight...)
	lines, err := r.runAll(ctx, contenders, 1, r.scenario)
	if err != nil {
		return nil, err
	}
	statics, err := r.statics(ctx)
	if err != nil {
		return nil, err
	}
	r.lines = append(lines, statics...)
	sweep, err := w.sweep()
	if err != nil {
		return nil, err
	}
	if r.sweep, err = r.runAll(ctx, sweep, 0, r.scenario); err != nil {
		return nil, err
	}
	if o.kinds {
		// What has been run is worth showing without these.
		if err := r.runKinds(ctx); isCanceled(err) || errors.Is(err, sim.ErrBookkeeping) {
			return nil, err
		} else if err != nil {
			r.kinds, r.noKinds = nil, err.Error()
		}
	}
	if o.set["disaggregate"] {
		if err := r.runApart(ctx, o); err != nil {
			return nil, err
		}
	}
	r.summarizeAll(r.lines)
	r.summarizeAll(r.sweep)
	slices.SortStableFunc(r.lines, r.order)
	r.resample()
	return r.comparison, r.whatIf(ctx, o)
}

// foresight returns the contenders that know more than a policy, as far as there are any.
func (r *runner) foresight(ctx context.Context) ([]contender, error) {
	if r.noCapacity != "" {
		return nil, nil
	}
	if err := r.replay(ctx); err != nil {
		return nil, err
	}
	all := []contender{r.reactive()}
	if len(r.replays) > 0 {
		all = append(all, r.oracle())
	}
	return all, nil
}

// measure finds what a replica can take and, for each seed, what the traffic needs.
func (r *runner) measure(ctx context.Context) error {
	w := r.world
	var err error
	r.capacity, err = oracle.FindCapacity(ctx, &w.Scenario, 0, r.alpha, capacitySeeds)
	if errors.Is(err, oracle.ErrUnattainable) {
		r.noCapacity = err.Error()
	} else if err != nil {
		return fmt.Errorf("the capacity of a replica: %w", err)
	}
	next := w.Workload.Arrivals(seedOf(0))
	if n := daysIn(w.Workload.Duration()); n >= leastDays {
		r.arrivals = make([]float64, n)
	}
	for q, more := next(); more; q, more = next() {
		r.requests++
		if r.arrivals != nil {
			r.arrivals[r.dayOf(q.At)]++
		}
	}
	r.floor, r.demand = make([]float64, r.seeds), make([][]int32, r.seeds)
	err = inParallel(ctx, r.workers, r.seeds, func(_ context.Context, i int) (err error) {
		if r.floor[i], err = oracle.Floor(&w.Scenario, 0, seedOf(i), r.alpha); err != nil || r.noCapacity != "" {
			return err
		}
		r.demand[i], err = oracle.Demand(w.Workload, seedOf(i), r.demandStep, r.capacity)
		return err
	})
	if err != nil {
		return fmt.Errorf("the demand: %w", err)
	}
	if w.atDemand && r.noCapacity == "" {
		w.Types[0].Initial = w.bounds.Clamp(r.first())
	}
	return nil
}

// first returns the highest demand of the first minutes.
func (r *runner) first() int32 { return slices.Max(r.demand[0][:min(steady, len(r.demand[0]))]) }

// replay searches the oracle's schedule for each seed.
func (r *runner) replay(ctx context.Context) error {
	replays := make([]oracle.Replayed, r.seeds)
	r.progress.more(r.seeds)
	err := inParallel(ctx, r.workers, r.seeds, func(ctx context.Context, i int) (err error) {
		defer r.progress.step()
		s := r.scenario(&contender{}, i)
		replays[i], err = oracle.Replay(ctx, &s, seedOf(i), r.capacity, oracle.Search{Alpha: r.alpha, Bounds: r.world.bounds, Trims: trims(r.requests)})
		return err
	})
	if errors.Is(err, oracle.ErrUnattainable) {
		r.unattainable = err.Error()
		return nil
	}
	r.replays = replays
	return err
}

// seedOf returns the seed at a place.
func seedOf(i int) uint64 { return uint64(i) + 1 }

// scenario returns the world's scenario as a contender meets it at a seed's place.
func (r *runner) scenario(c *contender, i int) sim.Scenario {
	s := r.world.Scenario
	s.Metrics = c.metrics
	s.Demand, s.DemandStep = r.demand[i], r.demandStep
	if c.initial > 0 {
		s.Types = slices.Clone(s.Types)
		s.Types[0].Initial = c.initial
	}
	return s
}

// runAll runs contenders with every seed, in the scenario of each. The first so many seeds are recorded for pictures.
func (r *runner) runAll(ctx context.Context, contenders []contender, recorded int, scenario func(*contender, int) sim.Scenario) ([]*line, error) {
	lines := make([]*line, len(contenders))
	for i, c := range contenders {
		lines[i] = &line{contender: c, results: make([]sim.Result, r.seeds), days: make([][]tally, r.seeds)}
	}
	explained := make([]explanation, len(contenders))
	n := len(contenders) * r.seeds
	r.progress.more(n)
	err := inParallel(ctx, r.workers, n, func(ctx context.Context, i int) (err error) {
		defer r.progress.step()
		c, seed := lines[i/r.seeds], i%r.seeds
		o := sim.Options{Policy: c.name, Seed: seedOf(seed)}
		done := func(*sim.Result) {}
		if recorded > 0 {
			done = r.byDay(c, seed, &o)
		}
		if seed < recorded {
			o.Timeline = r.interval()
			if r.explain {
				explained[i/r.seeds].name, explained[i/r.seeds].origin = c.name, r.world.origin
				o.Decision = explained[i/r.seeds].note
			}
		}
		s := scenario(&c.contender, seed)
		c.results[seed], err = sim.Run(ctx, &s, func() (scaling.Group, error) { return c.controller(o.Seed) }, o)
		if done(&c.results[seed]); seed >= recorded {
			c.results[seed].Timeline = nil
		}
		return err
	})
	if recorded > 0 && r.explain {
		r.explained = append(r.explained, explained...)
	}
	return lines, err
}

// interval returns the time between two points of a picture: at most about 300 of them.
func (r *runner) interval() time.Duration {
	return max(15*time.Second, (r.world.length() / 300).Round(time.Second))
}

// length returns how long cost is counted.
func (w *world) length() time.Duration {
	if w.Horizon > 0 {
		return w.Horizon
	}
	return w.Workload.Duration()
}

// reactive returns the controller that sees the demand at once.
func (r *runner) reactive() contender {
	return contender{
		name: reactiveName, sort: ofReactive,
		note: "sees the demand of the present minute at once, holds for five; what does not predict cannot be faster",
		controller: func(seed uint64) (scaling.Group, error) {
			return oracle.ZeroLag(r.world.Start, r.demand[seed-1], r.demandStep, 5*time.Minute, r.world.bounds)
		},
	}
}

// oracle returns the replayed schedules.
func (r *runner) oracle() contender {
	return contender{
		name: oracleName, sort: ofOracle, note: "a schedule made with foresight, certified in the simulator",
		controller: func(seed uint64) (scaling.Group, error) { return r.replays[seed-1].Controller(r.world.Start), nil },
	}
}

// statics runs fleets that are never scaled: the smallest, the smallest that attains alpha, and the largest. Others go
// into the sweep.
func (r *runner) statics(ctx context.Context) ([]*line, error) {
	low, high := r.world.bounds.Min, r.world.bounds.Max
	known := map[int32]*line{}
	try := func(n int32) (bool, error) {
		if _, ok := known[n]; !ok {
			lines, err := r.runAll(ctx, []contender{static(n)}, 1, r.scenario)
			if err != nil {
				return false, err
			}
			known[n] = lines[0]
		}
		return r.summarize(known[n].results).attains, nil
	}
	most, err := try(high)
	if err != nil {
		return nil, err
	}
	if _, err := try(low); err != nil {
		return nil, err
	}
	shown := []int32{low, high}
	if most {
		enough, err := least(low-1, high, try)
		if err != nil {
			return nil, err
		}
		shown = []int32{low, enough, high}
	}
	var lines []*line
	for _, n := range slices.Compact(shown) {
		lines = append(lines, known[n])
	}
	return lines, nil
}

// least returns the smallest number above one below that is enough, given that the most is.
func least(below, most int32, enough func(n int32) (bool, error)) (int32, error) {
	for most-below > 1 {
		middle := below + (most-below)/2
		if ok, err := enough(middle); err != nil {
			return 0, err
		} else if ok {
			most = middle
		} else {
			below = middle
		}
	}
	return most, nil
}

func isCanceled(err error) bool { return errors.Is(err, context.Canceled) }
