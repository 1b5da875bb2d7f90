package oracle

import (
	"context"
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A Limited is the cheapest policy of a family that is told the true work: the best that a policy with that much knowledge
// of the future, and no more, can hope for.
type Limited struct {
	Ahead  time.Duration `json:"ahead"`  // how far into the future it is told the work
	Margin float64       `json:"margin"` // divisor of the capacity of a replica
	Hold   time.Duration `json:"hold"`   // how long it keeps replicas that were needed
	// Attains says whether Result attains the requested share. If no policy of the family does, Result is the one with the
	// highest attainment.
	Attains bool          `json:"attains"`
	Asked   []int32       `json:"asked"` // at each tick, as in Replayed
	Tick    time.Duration `json:"tick"`
	Runs    int           `json:"runs"`
	Result  sim.Result    `json:"result"`
}

// Controller returns the controller that asks for the same counts in a scenario that begins at start.
func (l *Limited) Controller(start time.Time) scaling.Group {
	return sim.Schedule(start, l.Tick, l.Asked)
}

const (
	toldSpan   = 30 * time.Second // window over which work is averaged
	toldSpread = 0.3              // replicas for the noise of the arrivals, times the square root of the work
	toldFresh  = time.Minute      // no scale-down before
	margins    = 63               // 0.25, 4 % more, ..., 2.8
	leastTold  = 0.25
	mostTold   = 1000
	toldGrowth = 1.04
)

// Limit returns the cheapest policy that is told the true work of the last 30 s and of the time ahead. Its margin and hold
// are fitted in hindsight on the same run on which it is measured. At each tick t
//
//	r(t)   = max over u in [t, t + ahead] of  work that arrives in [u - 30 s, u] / (30 s PerSecond)
//	n(t)   = ceil(margin r + 0.3 sqrt(r))
//	count  = max over the last hold of n,   within bounds
//
// with the ticks, the write delay and the cold starts that every controller has. With an ahead of 0 the policy knows the
// present: no lag, no noise in its readings, and a capacity that is known for the traffic to come. With ahead equal to a
// cold start it requests a replica at the time at which it must be requested. No real policy has this knowledge. What a
// policy loses beyond this one is not lost because it does not know the future.
//
// The holds are 0, 1, 5 and 15 minutes. The margin is found by bisection among 0.25, 4 % more, and so on up to 2.8, and the
// two below the result are tried too. In the first minute there is no scale-down. Search.Steps and Search.Trims have no
// effect. As in Replay, no write is refused and the controller does not crash.
//
// Limit returns the errors of Scenario.Validate, of the arguments and of the context.
func Limit(ctx context.Context, s *sim.Scenario, seed uint64, c Capacity, o Search, ahead time.Duration) (Limited, error) {
	l, err := newLimiter(s, seed, c, o, ahead)
	if err != nil {
		return Limited{}, err
	}
	for _, hold := range []time.Duration{0, time.Minute, 5 * time.Minute, 15 * time.Minute} {
		if err := l.search(ctx, hold); err != nil {
			return Limited{}, err
		}
	}
	l.best.Runs = l.runs
	return l.best, nil
}

// Told returns the policy of the family of Limit that has this margin, above 0, and this hold: nothing is fitted. With the
// same two in many scenarios it shows how much of what Limit attains comes from its hindsight.
//
// Told returns the errors of Limit.
func Told(ctx context.Context, s *sim.Scenario, seed uint64, c Capacity, o Search, ahead time.Duration, margin float64, hold time.Duration) (Limited, error) {
	var e scaling.FieldErrors
	e.Check(margin > 0 && margin <= mostTold, "margin", margin, "must be above 0 and at most 1000")
	e.Check(hold >= 0 && hold <= sim.MaxDuration, "hold", hold, "must be within 0 and 90 days")
	if err := e.Err(); err != nil {
		return Limited{}, err
	}
	l, err := newLimiter(s, seed, c, o, ahead)
	if err != nil {
		return Limited{}, err
	}
	if _, err := l.fit(ctx, margin, hold); err != nil {
		return Limited{}, err
	}
	l.best.Runs = l.runs
	return l.best, nil
}

// ticksIn returns the number of the controller's ticks up to the end of the horizon and of the workload, plus one.
func (r *replayer) ticksIn() int {
	return int(max(r.horizon, r.scenario.Workload.Duration())/r.tick()) + 1
}

// costly returns the number of ticks up to the horizon: what is asked for later costs nothing.
func (r *replayer) costly() int { return int(r.horizon / r.tick()) }

// told returns the load, in replicas, that the policy is told at each tick.
func told(s *sim.Scenario, seed uint64, c Capacity, ticks int, ahead time.Duration) ([]float64, error) {
	work, err := arriving(s.Workload, seed, time.Second, c)
	if err != nil {
		return nil, err
	}
	until := make([]float64, len(work)+1) // cumulative work up to each second
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

// A limiter fits the margin and the hold.
type limiter struct {
	*replayer

	ahead time.Duration
	load  []float64
	best  Limited
	known bool // whether there is a best
}

func newLimiter(s *sim.Scenario, seed uint64, c Capacity, o Search, ahead time.Duration) (*limiter, error) {
	r, err := newReplayer(s, seed, c, o)
	if err != nil {
		return nil, err
	}
	var e scaling.FieldErrors
	e.Check(ahead >= 0 && ahead <= sim.MaxDuration, "ahead", ahead, "must be within 0 and 90 days")
	if err := e.Err(); err != nil {
		return nil, err
	}
	load, err := told(&r.scenario, seed, c, r.ticksIn(), ahead)
	if err != nil {
		return nil, err
	}
	return &limiter{replayer: r, ahead: ahead, load: load}, nil
}

// search finds the lowest margin that attains the SLO with a hold. It skips runs that cost more than the best so far.
func (l *limiter) search(ctx context.Context, hold time.Duration) error {
	const below = 2
	return halve(margins, below, func(i int) (bool, error) {
		return l.fit(ctx, leastTold*math.Pow(toldGrowth, float64(i)), hold)
	})
}

// fit runs a margin and a hold, and keeps them if they are the best. It reports whether a lower margin should be tried: the
// SLO is attained, or a policy that attains it is known that costs less.
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
	if l.best.Attains && l.hours(asked) > l.best.Result.ReplicaHours {
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
