package oracle

import (
	"errors"
	"fmt"

	"github.com/inferscale/inferscale/scaling"
)

// Rules are the limits of a controller even if it knows the future: the bounds, steps and cooldowns of its configuration,
// and the cold start of its replicas. Times are in slots; a controller decides once at the beginning of each slot.
type Rules struct {
	Bounds scaling.Bounds `json:"bounds"`
	// UpStep and DownStep are how many replicas one decision can add or remove at most. 0 is no limit.
	UpStep   int32 `json:"upStep"`
	DownStep int32 `json:"downStep"`
	// UpCooldown and DownCooldown are the number of slots after a change from which an up or a down is allowed again: after
	// any change or, with PerDirection, after the last change in the same direction. 0 and 1 allow it in the next slot.
	UpCooldown   int  `json:"upCooldown"`
	DownCooldown int  `json:"downCooldown"`
	PerDirection bool `json:"perDirection"`
	// MinUp is how many slots a started replica stays: there is no down for that long after an up.
	MinUp int `json:"minUp"`
	// StartSlots is the time from the request of a replica until it is ready. Only ready replicas cover a demand, and a down
	// first removes those that are not ready.
	StartSlots int `json:"startSlots"`
	// Start is the cost of a start, in replica-slots, beyond the slots from the one in which it is requested.
	Start int64 `json:"start"`
	// Initial is how many replicas are ready before the first slot. Earlier changes do not count for a cooldown.
	Initial int32 `json:"initial"`
}

// Validate reports every wrong field at once, each as a scaling.FieldError.
func (r *Rules) Validate() error {
	var e scaling.FieldErrors
	e.Add(r.Bounds.Validate("bounds"))
	e.Check(r.UpStep >= 0, "upStep", r.UpStep, "must not be negative")
	e.Check(r.DownStep >= 0, "downStep", r.DownStep, "must not be negative")
	slots := func(n int, field string) {
		e.Check(n >= 0 && n <= maxSlots, field, n, fmt.Sprintf("must be within 0 and %d", maxSlots))
	}
	slots(r.UpCooldown, "upCooldown")
	slots(r.DownCooldown, "downCooldown")
	slots(r.MinUp, "minUp")
	slots(r.StartSlots, "startSlots")
	e.Check(r.Start >= 0 && r.Start <= maxSlots, "start", r.Start, fmt.Sprintf("must be within 0 and %d", maxSlots))
	e.Check(r.Bounds.Contains(r.Initial), "initial", r.Initial, fmt.Sprintf("must be within the bounds, %d to %d", r.Bounds.Min, r.Bounds.Max))
	return e.Err()
}

// maxSlots is the longest time in Rules.
const maxSlots = 1 << 20

// MaxTable is the largest table of Constrained in bytes, with what is kept beside the slots: 256 MiB.
const MaxTable = 1 << 28

// ErrTooLarge is the error of Constrained for a table of more than MaxTable bytes, and of Optimal for one of more than
// MaxOptimalCells cells.
var ErrTooLarge = errors.New("too many cells: slots times counts times cooldowns, or types times units of demand")

// due returns the lowest count that must be requested in each slot to cover everything that can be covered, and the
// replica-slots that cannot: those above Initial before any requested replica can be ready.
//
// The replicas that are ready in slot t are the lowest count that was requested in any slot from t-StartSlots to t, as downs
// first remove those that are not ready. So the count to request in a slot is the highest demand from it to StartSlots
// later.
func (r *Rules) due(demand []int32) (due []int32, lost int64) {
	lead := min(r.StartSlots, len(demand))
	due = make([]int32, len(demand)+lead)
	for t, d := range demand {
		d = max(0, d)
		if t < lead && d > r.Initial {
			lost += int64(d - r.Initial)
			d = r.Initial
		}
		due[t] = d
	}
	slide(due, lead+1, 1)
	return due[lead:], lost
}

// clocks are the ages on which a decision depends: the slots since the last up and since the last down, each at least 1 and
// only counted up to the limit from which on it makes no difference.
type clocks struct {
	ups, downs int // limits
	// single is set if one age serves for both: that of the last change.
	single bool
}

func (r *Rules) clocks() clocks {
	switch longest := max(r.UpCooldown, r.DownCooldown, 1); {
	case r.PerDirection:
		return clocks{ups: max(r.UpCooldown, r.MinUp, 1), downs: max(r.DownCooldown, 1)}
	case r.MinUp <= r.DownCooldown:
		return clocks{ups: longest, downs: 1, single: true}
	default:
		return clocks{ups: max(longest, r.MinUp), downs: longest}
	}
}

// mayUp and mayDown report whether a change is allowed at these ages.
func (r *Rules) mayUp(c clocks, up, down int) bool {
	if r.PerDirection || c.single {
		return up >= r.UpCooldown
	}
	return min(up, down) >= r.UpCooldown
}

func (r *Rules) mayDown(c clocks, up, down int) bool {
	switch {
	case up < r.MinUp:
		return false
	case r.PerDirection:
		return down >= r.DownCooldown
	case c.single:
		return up >= r.DownCooldown
	default:
		return min(up, down) >= r.DownCooldown
	}
}
