package oracle

import (
	"context"
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A Limited is the cheapest policy of a family that is told the true work: what a policy can hope for that knows so much
// of the future, and no more.
type Limited struct {
	Ahead  time.Duration `json:"ahead"`  // how much of the future it is told
	Margin float64       `json:"margin"` // by what the capacity of a replica was divided
	Hold   time.Duration `json:"hold"`   // for how long it keeps what was needed
	// Attains says whether its Result attains the share that was asked for. Where nothing in the family does, Result is
	// that of the highest attainment.
	Attains bool          `json:"attains"`
	Asked   []int32       `json:"asked"` // at each tick, as in Replayed
	Tick    time.Duration `json:"tick"`
	Runs    int           `json:"runs"`
	Result  sim.Result    `json:"result"`
}

// Controller returns the controller that asks for the same in a scenario that starts at a time.
func (l *Limited) Controller(start time.Time) scaling.Group {
	return sim.Schedule(start, l.Tick, l.Asked)
}

const (
	toldSpan   = 30 * time.Second // over which work is averaged
	toldSpread = 0.3              // replicas for the noise of the arrivals, times the square root of the work
	toldFresh  = time.Minute      // nothing is taken away before
	margins    = 63               // 0.25, 4 % more, ..., 2.8
	leastTold  = 0.25
	toldGrowth = 1.04
)

// Limit returns the cheapest policy that is told the true work of the last 30 s and so much of the future, with its
// margin and hold fitted in hindsight on the very run that it is measured on. At each tick t
//
//	r(t)   = max over u in [t, t + ahead] of  work that arrives in [u - 30 s, u] / (30 s PerSecond)
//	n(t)   = ceil(margin r + 0.3 sqrt(r))
//	count  = max over the last hold of n,   within bounds
//
// with the ticks, the write delay and the cold starts that every controller has. An ahead of 0 is a policy that knows the
// present: no lag, no noise in what it reads, and a capacity that is known for the traffic as it will be. With one cold
// start ahead it asks for a replica when that must be asked for. Nothing of it can be had; what a policy loses beyond it
// is lost to something else than not knowing the future.
//
// The holds are 0, 1, 5 and 15 minutes; the margin is found by bisection among 0.25, 4 % more, and so on up to 2.8, and two
// below the one that is found are tried too. In the first minute nothing is taken away. Search.Steps and Search.Trims do
// not matter. As for Replay, no write is refused and the controller does not crash.
//
// Errors: those of Scenario.Validate and of the arguments, and the context's.
func Limit(ctx context.Context, s *sim.Scenario, seed uint64, c Capacity, o Search, ahead time.Duration) (Limited, error) {
	r, err := newReplayer(s, seed, c, o)
	if err != nil {
		return Limited{}, err
	}
	var e scaling.FieldErrors
	e.Check(ahead >= 0 && ahead <= sim.MaxDuration, "ahead", ahead, "must be within 0 and 90 days")
	if err := e.Err(); err != nil {
		return Limited{}, err
	}
	l := limiter{replayer: r, ahead: ahead}
	if l.load, err = told(&r.scenario, seed, c, r.ticksIn(), ahead); err != nil {
		return Limited{}, err
	}
	for _, hold := range []time.Duration{0, time.Minute, 5 * time.Minute, 15 * time.Minute} {
		if err := l.search(ctx, hold); err != nil {
			return Limited{}, err
		}
	}
	best := l.best
	best.Runs = l.runs
	return best, nil
}

// ticksIn returns how many ticks the controller has up to the horizon, and one more.
func (r *replayer) ticksIn() int { return int(r.horizon/r.tick()) + 1 }

// told returns for each tick the load that is told, in replicas.
func told(s *sim.Scenario, seed uint64, c Capacity, ticks int, ahead time.Duration) ([]float64, error) {
	work, err := arriving(s.Workload, seed, time.Second, c)
	if err != nil {
		return nil, err
	}
	until := make([]float64, len(work)+1) // the work up to each second
	for i, x := range work {
		until[i+1] = until[i] + x
	}
	at := func(t time.Duration) float64 {
		return until[min(max(0, int(t/time.Second)), len(work))]
	}
	tick := s.Control.Interval
	load := make([]float64, ticks)
	for i := range load {
		t := time.Duration(i) * tick
		for u := t; ; u += min(tick, t+ahead-u) {
			span := min(max(u, time.Second), toldSpan)
			load[i] = max(load[i], (at(u)-at(u-span))/span.Seconds()/c.PerSecond)
			if u >= t+ahead {
				break
			}
		}
	}
	return load, nil
}

// A limiter fits.
type limiter struct {
	*replayer

	ahead time.Duration
	load  []float64
	best  Limited
	known bool // whether there is a best
}

// search finds the least margin that attains the SLO with a hold. What costs more than the best so far is not run.
func (l *limiter) search(ctx context.Context, hold time.Duration) error {
	const below = 2
	return halve(margins, below, func(i int) (bool, error) {
		return l.fit(ctx, leastTold*math.Pow(toldGrowth, float64(i)), hold)
	})
}

// fit runs a margin and a hold, and keeps them if they are the best. It reports whether a lower margin is worth a try:
// the SLO is attained, or what attains it is had for less.
func (l *limiter) fit(ctx context.Context, margin float64, hold time.Duration) (bool, error) {
	tick := l.tick()
	asked := make([]int32, len(l.load))
	for i, r := range l.load {
		n := scaling.Ceil(margin*r + toldSpread*math.Sqrt(r))
		if time.Duration(i)*tick <= toldFresh {
			n = max(n, l.scenario.Types[0].Initial)
		}
		asked[i] = l.goal.Bounds.Clamp(n)
	}
	slide(asked, min(int(hold/tick)+1, len(asked)), 1)
	if l.best.Attains && hours(asked, tick) > l.best.Result.ReplicaHours {
		return true, nil
	}
	result, hopeless, err := l.certify(ctx, "limit", asked, l.best.Attains, nil)
	if err != nil || hopeless {
		return false, err
	}
	ok, best := result.Attainment >= l.goal.Alpha, &l.best.Result
	better := !l.known || ok && !l.best.Attains ||
		ok && result.ReplicaHours < best.ReplicaHours ||
		!ok && !l.best.Attains && result.Attainment > best.Attainment
	if better {
		l.best = Limited{Ahead: l.ahead, Margin: margin, Hold: hold, Attains: ok, Asked: asked, Tick: tick, Result: result}
		l.known = true
	}
	return ok || l.best.Attains && result.ReplicaHours > best.ReplicaHours, nil
}
