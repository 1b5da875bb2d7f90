package oracle

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A Search says what Replay looks for, and within which limits.
type Search struct {
	// Alpha is the share of requests that must meet the SLO.
	Alpha  float64        `json:"alpha"`
	Bounds scaling.Bounds `json:"bounds"`
	// Steps are the slot lengths to plan with; each is tried. None means 1, 2 and 4 times the longer of 15 s and the
	// scenario's control interval: a short slot follows the load, a long one ignores its noise.
	Steps []time.Duration `json:"steps"`
	// Trims is the number of additional runs for making the schedule cheaper than a single safety for all of it; see Replay.
	Trims int `json:"trims"`
}

// A Replayed is a schedule made with foresight that attains the SLO in the simulator: a reference for policies.
type Replayed struct {
	// Plan covers the demand at Safety, in slots of Step. It is within the bounds, and does not include Lead, Tail, repairs
	// and trims.
	Plan Plan          `json:"plan"`
	Step time.Duration `json:"step"`
	// Safety is the divisor of the capacity of a replica. Several replicas together can serve more than each alone, so it
	// may be below 1.
	Safety float64 `json:"safety"`
	// Lead is the least time before its slot at which a replica is requested; Tail is the time for which it stays
	// afterwards.
	Lead time.Duration `json:"lead"`
	Tail time.Duration `json:"tail"`
	// Asked is the requested count at each tick of the controller: at i*Tick, from i = 1 on.
	Asked []int32       `json:"asked"`
	Tick  time.Duration `json:"tick"`
	Alpha float64       `json:"alpha"`
	// Runs is the number of runs of the search, Trimmed that of the trims that were kept.
	Runs    int        `json:"runs"`
	Trimmed int        `json:"trimmed"`
	Result  sim.Result `json:"result"`
}

// Controller returns the controller that replays the schedule in a scenario that begins at start.
func (r *Replayed) Controller(start time.Time) scaling.Group {
	return sim.Schedule(start, r.Tick, r.Asked)
}

// Score returns the ratio of a policy's replica-hours to those of the replayed schedule, on the same scenario and seed. A
// policy that met the SLO for fewer requests than Alpha has the score +Inf, since giving up the SLO makes any policy look
// cheap. Two that have no replicas cost the same.
func Score(policy *sim.Result, replayed *Replayed) float64 {
	if !(policy.Attainment >= replayed.Alpha) {
		return math.Inf(1)
	}
	if policy.ReplicaHours == replayed.Result.ReplicaHours {
		return 1
	}
	return policy.ReplicaHours / replayed.Result.ReplicaHours
}

// Bound returns the replica-hours of a plan in slots of length step, its starts included. For a plan of Cover with the cold
// start in whole slots (rounded down), it is the lowest cost of a fleet whose replicas serve no more than the plan's
// capacity.
func Bound(p Plan, step time.Duration) float64 { return float64(p.Cost) * step.Hours() }

// The safeties that Replay tries: 0.25, 3 % more, ..., 4.
const (
	safeties  = 95
	leastSafe = 0.25
	growth    = 1.03
)

// Replay returns the cheapest schedule, of a family of them, that attains the SLO for a share Alpha of the requests. A run
// of the simulator certifies it. The family has four knobs:
//
//   - the length of a slot, one of Steps;
//   - the safety: the demand is computed with a capacity of PerSecond/safety, and Cover plans for it, with the cold start as
//     the cost of a start and the type's Initial replicas present;
//   - the lead: a replica is requested at the last tick that is early enough for it to be ready, which is the cold start and
//     the write's delay before; if the cold start is random, once, 1.5 times and twice its median;
//   - the tail: if no schedule attains the SLO without it, replicas stay for as long as a request may wait for its first
//     token.
//
// For each combination of the others, the safety is found by bisection among 0.25, 3 % more, and so on up to 4. A few below
// the result are tried too, as chance sometimes lowers attainment where safety grows. If none attains the SLO, constant counts are
// tried, with a safety of 0. Then, if Trims is not 0, schedules of
// less safety get one more replica where most requests are late, until they attain the SLO or cost more. Finally, replicas
// are removed from spans of the schedule, one from one span at a time, the longest spans first, and in halves if the whole
// does not work, as long as the SLO is attained and replica-hours fall.
//
// The schedule is not the optimum, only an upper bound of the optimum of those that begin with the type's Initial replicas.
// A fleet that begins with other replicas can cost less. The schedule is carried out without the controller's faults: writes
// are not refused, the controller does not crash, and nothing is scraped. The replicas' own faults stay.
//
// Replay returns the errors of Scenario.Validate, of the arguments and of the context, and ErrUnattainable, with the best
// attainment and where it was.
func Replay(ctx context.Context, s *sim.Scenario, seed uint64, c Capacity, o Search) (Replayed, error) {
	r, err := newReplayer(s, seed, c, o)
	if err != nil {
		return Replayed{}, err
	}
	for _, tail := range []time.Duration{0, s.SLO.TTFT} {
		for _, step := range r.steps() {
			for _, lead := range r.leads() {
				if err := r.search(ctx, knobs{step: step, lead: lead, tail: tail}); err != nil {
					return Replayed{}, err
				}
			}
		}
		if r.best != nil {
			break
		}
	}
	if r.best == nil {
		if err := r.constant(ctx); err != nil {
			return Replayed{}, err
		}
	}
	if r.best == nil {
		return Replayed{}, r.unattainable()
	}
	end := r.runs + o.Trims
	if err := r.repair(ctx, o.Trims/2); err != nil {
		return Replayed{}, err
	}
	if err := r.trim(ctx, end-r.runs); err != nil {
		return Replayed{}, err
	}
	r.best.Runs = r.runs
	return *r.best, nil
}

// knobs are the knobs of the family.
type knobs struct {
	step, lead, tail time.Duration
	safety           float64
}

// A replayer searches for the schedule.
type replayer struct {
	scenario sim.Scenario
	seed     uint64
	capacity Capacity
	goal     Search
	horizon  time.Duration
	cold     time.Duration

	mayMiss float64   // requests that may miss the SLO
	closed  bool      // the requests are those of sessions
	work    []float64 // by slot of the present step
	runs    int
	tried   []trial
	best    *Replayed // the cheapest that attains the SLO
	most    trial     // the one with the highest attainment
}

// A trial is a schedule that was run.
type trial struct {
	knobs

	asked  []int32
	result sim.Result
}

func newReplayer(s *sim.Scenario, seed uint64, c Capacity, o Search) (*replayer, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	horizon := cmp.Or(s.Horizon, s.Workload.Duration())
	var e scaling.FieldErrors
	e.Check(len(s.Types) == 1, "types", len(s.Types), "must be one: a schedule is for one type")
	e.Add(c.Validate("capacity"))
	e.Check(o.Alpha > 0 && o.Alpha <= 1, "alpha", o.Alpha, "must be above 0 and at most 1")
	e.Add(o.Bounds.Validate("bounds"))
	e.Check(o.Trims >= 0, "trims", o.Trims, "must not be negative")
	for i, step := range o.Steps {
		field := fmt.Sprintf("steps[%d]", i)
		e.Check(step > 0, field, step, "must be above 0")
		e.Check(step <= 0 || (horizon-1)/step < maxDemandSlots, field, step, fmt.Sprintf("must not cut the horizon, %s, into more than %d slots", horizon, maxDemandSlots))
	}
	if quota := s.Types[0].Quota; quota > 0 {
		e.Check(o.Bounds.Min <= quota, "bounds.min", o.Bounds.Min, fmt.Sprintf("must not be above the quota, %d", quota))
		o.Bounds.Max = min(o.Bounds.Max, quota)
	}
	if err := e.Err(); err != nil {
		return nil, err
	}
	r := &replayer{scenario: *s, seed: seed, capacity: c, goal: o, horizon: horizon}
	startup := s.Types[0].Startup
	r.cold = startup.Provision.Median + startup.Load.Median
	r.scenario.Metrics = nil
	r.scenario.Scrape = sim.Scrape{Interval: 24 * time.Hour}
	r.scenario.Control.RejectRate, r.scenario.Control.CrashRate = 0, 0
	if r.scenario.Start.IsZero() {
		r.scenario.Start = time.Unix(0, 0).UTC()
	}
	return r, r.keep()
}

func (r *replayer) tick() time.Duration { return r.scenario.Control.Interval }

func (r *replayer) steps() []time.Duration {
	if len(r.goal.Steps) > 0 {
		return r.goal.Steps
	}
	step := max(r.tick(), 15*time.Second)
	return []time.Duration{step, 2 * step, 4 * step}
}

func (r *replayer) leads() []time.Duration {
	delay := r.scenario.Control.Delay
	startup := r.scenario.Types[0].Startup
	if startup.FailureRate == 0 && startup.Provision.Sigma == 0 && startup.Load.Sigma == 0 {
		return []time.Duration{r.cold + delay}
	}
	return []time.Duration{r.cold + delay, r.cold + r.cold/2 + delay, 2*r.cold + delay}
}

// search finds the lowest safety that attains the SLO.
func (r *replayer) search(ctx context.Context, k knobs) error {
	var err error
	if r.work, err = arriving(r.scenario.Workload, r.seed, k.step, r.capacity); err != nil {
		return err
	}
	const below = 3
	return halve(safeties, below, func(i int) (bool, error) {
		k.safety = leastSafe * math.Pow(growth, float64(i))
		plan := r.plan(k)
		return r.try(ctx, trial{knobs: k, asked: r.asked(k, plan.Counts)}, plan)
	})
}

// constant finds the smallest count that attains the SLO if it is asked for throughout: a burst within a slot may need more than any
// safety gives. It tries at most 16 times the largest count that the safeties gave, and 64.
func (r *replayer) constant(ctx context.Context) error {
	largest := int32(4)
	for i := range r.tried {
		largest = max(largest, slices.Max(r.tried[i].asked))
	}
	bounds := r.goal.Bounds
	most := max(bounds.Min, int32(min(int64(bounds.Max), 16*int64(largest))))
	k := knobs{step: r.steps()[0], lead: r.leads()[0]}
	start := int64((r.cold + k.step/2) / k.step)
	return halve(int(most-bounds.Min)+1, 0, func(i int) (bool, error) {
		count := bounds.Min + int32(i)
		counts := slices.Repeat([]int32{count}, int((r.horizon+k.step-1)/k.step))
		asked := slices.Repeat([]int32{count}, r.ticksIn())
		return r.try(ctx, trial{knobs: k, asked: asked}, Cover(counts, start, r.scenario.Types[0].Initial))
	})
}

// halve finds by bisection the lowest index up to n that attains the SLO, and then tries a few below it: if one index
// attains it, the next need not.
func halve(n, below int, attains func(place int) (bool, error)) error {
	low, high := -1, n // the result is above low, and not above high
	for high-low > 1 {
		middle := (low + high) / 2
		ok, err := attains(middle)
		if err != nil {
			return err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	for i := low - 1; i >= max(0, low-below); i-- {
		if _, err := attains(i); err != nil {
			return err
		}
	}
	return nil
}

// plan covers the demand at a safety, within the bounds, up to the horizon.
func (r *replayer) plan(k knobs) Plan {
	slots := max(len(r.work), int((r.horizon+k.step-1)/k.step))
	demand := make([]int32, slots)
	need(demand, r.work, r.capacity.PerSecond/k.safety*k.step.Seconds())
	for t := range demand {
		demand[t] = r.goal.Bounds.Clamp(demand[t])
	}
	start := int64((r.cold + k.step/2) / k.step)
	return Cover(demand, start, r.scenario.Types[0].Initial)
}

// asked returns the requested count at each tick: the highest count of the slots from the one for which a replica requested
// now is ready up to the one for which a replica requested at the next tick is.
func (r *replayer) asked(k knobs, counts []int32) []int32 {
	tick := r.tick()
	asked := make([]int32, r.ticksIn())
	for i := range asked {
		from := max(0, time.Duration(i)*tick-k.tail)
		to := time.Duration(i+1)*tick + k.lead
		first := min(int(from/k.step), len(counts)-1)
		last := min(int((to+k.step-1)/k.step), len(counts))
		asked[i] = slices.Max(counts[first:max(last, first+1)])
	}
	return asked
}

// try runs a schedule, unless it was run already, and keeps it if it is the best.
func (r *replayer) try(ctx context.Context, t trial, plan Plan) (bool, error) {
	for i := range r.tried {
		if old := &r.tried[i]; slices.Equal(old.asked, t.asked) {
			return old.result.Attainment >= r.goal.Alpha, nil
		}
	}
	var err error
	var hopeless bool
	if t.result, hopeless, err = r.certify(ctx, "replay", t.asked, r.best != nil, nil); err != nil {
		return false, err
	}
	r.tried = append(r.tried, t)
	if hopeless {
		return false, nil
	}
	if r.runs == 1 || t.result.Attainment > r.most.result.Attainment {
		r.most = t
	}
	if !(t.result.Attainment >= r.goal.Alpha) {
		return false, nil
	}
	if r.best == nil || t.result.ReplicaHours < r.best.Result.ReplicaHours {
		r.best = &Replayed{
			Plan: plan, Step: t.step, Safety: t.safety, Lead: t.lead, Tail: t.tail,
			Asked: t.asked, Tick: r.tick(), Alpha: r.goal.Alpha, Result: t.result,
		}
	}
	return true, nil
}

// unattainable reports the best attainment and its schedule.
func (r *replayer) unattainable() error {
	at := &r.most
	if len(r.tried) == 0 {
		return ErrUnattainable
	}
	limit := ""
	if slices.Contains(at.asked, r.goal.Bounds.Max) {
		limit = fmt.Sprintf(", where it asks for the most that there can be, %d", r.goal.Bounds.Max)
	}
	return fmt.Errorf("%w by a schedule within %d and %d replicas that begins with %d: the best of %d attains %.4f of %.4f, at safety %.2f in slots of %s, a lead of %s and a tail of %s%s",
		ErrUnattainable, r.goal.Bounds.Min, r.goal.Bounds.Max, r.scenario.Types[0].Initial, r.runs, at.result.Attainment, r.goal.Alpha, at.safety, at.step, at.lead, at.tail, limit)
}
