package oracle

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// ZeroLag returns the controller that sees the demand of the present slot at once, in a scenario that begins at start. It
// asks for the highest demand of the slots of the last hold, or of the present slot alone if hold is shorter than a step:
//
//	count = max over the slots u with t-hold < u <= t of  demand[u],   within bounds
//
// It does not wait for a scrape, average over a window or have a threshold, but it has the same ticks and the same cold
// start as every other controller: a policy that does not predict cannot react faster to the same demand. After the last
// slot it keeps the last count.
func ZeroLag(start time.Time, demand []int32, step, hold time.Duration, bounds scaling.Bounds) (scaling.Group, error) {
	var e scaling.FieldErrors
	e.Check(len(demand) > 0, "demand", len(demand), "must have at least one slot")
	e.Check(step > 0, "step", step, "must be above 0")
	e.Check(hold >= 0, "hold", hold, "must not be negative")
	e.Add(bounds.Validate("bounds"))
	if err := e.Err(); err != nil {
		return nil, err
	}
	counts := make([]int32, len(demand))
	for t, d := range demand {
		counts[t] = bounds.Clamp(d)
	}
	slots := (max(hold, 1)-1)/step + 1 // rounded up
	slide(counts, int(min(slots, time.Duration(len(counts)))), 1)
	return sim.Schedule(start, step, counts), nil
}
