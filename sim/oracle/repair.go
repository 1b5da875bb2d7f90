package oracle

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/sim"
)

const (
	repairSpan    = 4 // ticks that are considered together
	repairAtATime = 3
)

// repair makes schedules attain the SLO that are slightly too cheap, by adding a replica where most requests miss it, and
// keeps the cheapest. Safety is the same over the whole schedule, so it is wasted where no request is ever late.
func (r *replayer) repair(ctx context.Context, runs int) error {
	end := r.runs + runs
	from := *r.best
	var err error
	if r.work, err = arriving(r.scenario.Workload, r.seed, from.Step, r.capacity); err != nil {
		return err
	}
	for _, less := range []float64{2, 4, 7} {
		k := knobs{step: from.Step, lead: from.Lead, tail: from.Tail, safety: from.Safety / math.Pow(growth, less)}
		asked := r.asked(k, r.plan(k).Counts)
		for r.runs < end && r.hours(asked) < r.best.Result.ReplicaHours {
			missed := make([]float64, len(asked)+repairSpan)
			result, _, err := r.certify(ctx, "replay", asked, false, func(q sim.Outcome) {
				missed[min(int(q.Arrived/r.tick()), len(asked)-1)]++
			})
			if err != nil {
				return err
			}
			if result.Attainment >= r.goal.Alpha {
				if result.ReplicaHours < r.best.Result.ReplicaHours {
					r.best.Asked, r.best.Result = slices.Clone(asked), result
				}
				break
			}
			if !r.raise(asked, missed, k.lead) {
				break
			}
		}
	}
	return nil
}

// hours returns replica-hours that a schedule costs at least: the initial replicas cost until the first tick, and with a write that takes
// time a count is in force up to twice that time after its tick, as there are no decisions meanwhile.
func (r *replayer) hours(asked []int32) float64 {
	least := slices.Clone(asked[:r.costly()])
	if len(least) == 0 {
		return 0
	}
	least[0] = r.scenario.Types[0].Initial
	late := int((2*r.scenario.Control.Delay + r.tick() - 1) / r.tick())
	slide(least, min(late+1, len(least)), -1)
	sum := 0.0
	for _, n := range least {
		sum += float64(n)
	}
	return sum * r.tick().Hours()
}

// raise requests one more replica where most requests miss the SLO, early enough to be ready. A replica that would be gone
// for less than the time of a start stays.
func (r *replayer) raise(asked []int32, missed []float64, lead time.Duration) bool {
	before := slices.Clone(asked)
	excess := -r.mayMiss
	for _, n := range missed {
		excess += n
	}
	early := int((lead+r.tick()-1)/r.tick()) + 1
	for range repairAtATime {
		best, at := 0.0, 0
		for i := range asked {
			sum := 0.0
			for _, n := range missed[i : i+repairSpan] {
				sum += n
			}
			if sum > best {
				best, at = sum, i
			}
		}
		if best == 0 || excess <= 0 {
			break
		}
		excess -= best
		clear(missed[at : at+repairSpan])
		for i := max(0, at-early); i < min(at+repairSpan, len(asked)); i++ {
			asked[i] = min(asked[i]+1, r.goal.Bounds.Max)
		}
	}
	width := min(int(r.cold/r.tick())+1, len(asked))
	padded := append(slices.Clone(asked), make([]int32, width-1)...)
	slide(padded, width, 1)
	slide(padded, width, -1)
	copy(asked, padded[width-1:])
	return !slices.Equal(asked, before)
}
