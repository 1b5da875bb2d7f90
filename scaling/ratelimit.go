package scaling

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/enum"
	"github.com/inferscale/inferscale/internal/window"
)

// A Limit bounds the change of the count within a sliding period. Exactly one of Replicas and Percent is set.
//
// Let start be the count at the beginning of the period: the present count minus the replicas added and plus the replicas
// removed in the period. The limit is
//
//	up:    start + Replicas    or  start + ceil(start * Percent / 100), at least start + 1
//	down:  start - Replicas    or  start - ceil(start * Percent / 100)
//
// Percentages round away from start, so that no percentage is too small to allow a change. An up limit is never below the
// present count and a down limit never above it.
type Limit struct {
	Replicas int32         `json:"replicas,omitempty"`
	Percent  int32         `json:"percent,omitempty"`
	Period   time.Duration `json:"period"`
}

// Select says which of several limits of one direction applies.
type Select int8

// The choices among several limits.
const (
	// SelectMax takes the limit that allows the largest change. It is the default.
	SelectMax Select = iota
	// SelectMin takes the limit that allows the smallest change.
	SelectMin
	// SelectDisabled allows no change in the direction.
	SelectDisabled
)

// String returns the choice's name as Kubernetes spells it.
func (s Select) String() string { return enum.Name(int8(s), "Select", "Max", "Min", "Disabled") }

// RateLimit has the limits of one direction. The zero value does not limit.
type RateLimit struct {
	Limits []Limit `json:"limits,omitempty"`
	Select Select  `json:"select,omitempty"`
}

// RateLimits bounds how fast a count changes, as the policies of a HorizontalPodAutoscaler's behavior do. The zero
// value does not limit.
type RateLimits struct {
	Up   RateLimit `json:"up"`
	Down RateLimit `json:"down"`
}

// Validate reports every wrong field. The errors prefix the field names with field.
func (l RateLimits) Validate(field string) error {
	var e FieldErrors
	e.Add(l.Up.validate(field + ".up"))
	e.Add(l.Down.validate(field + ".down"))
	return e.Err()
}

func (l RateLimit) validate(field string) error {
	var e FieldErrors
	e.Check(SelectMax <= l.Select && l.Select <= SelectDisabled, field+".select", l.Select, "must be Max, Min or Disabled")
	for i, limit := range l.Limits {
		at := fmt.Sprintf("%s.limits[%d].", field, i)
		e.Check(limit.Replicas >= 0, at+"replicas", limit.Replicas, "must not be negative")
		e.Check(limit.Percent >= 0, at+"percent", limit.Percent, "must not be negative")
		e.Check(limit.Replicas == 0 || limit.Percent == 0, at+"percent", limit.Percent, "must not be set beside replicas")
		e.Check(limit.Replicas != 0 || limit.Percent != 0, at+"replicas", limit.Replicas, "must be set, or percent")
		e.Check(limit.Period >= time.Second, at+"period", limit.Period, "must be at least one second")
	}
	return e.Err()
}

// Changes is the memory of RateLimits: the changes that were carried out, each with its time in Unix milliseconds. Its zero value is
// empty. It covers the longest period, with at most one entry per second and direction: changes of one second are one change, at the
// time of the last.
type Changes struct { //nolint:recvcheck // a plain value; rewind changes it in place
	Applied []Change `json:"applied,omitempty"`
}

// A Change says how many replicas were added (or, if negative, removed) at a time.
type Change struct {
	At    int64 `json:"at"`
	Delta int32 `json:"delta"`
}

// Clone returns a copy that shares no memory.
func (c Changes) Clone() Changes { return Changes{slices.Clone(c.Applied)} }

// Validate reports changes that no RateLimits can have recorded: out of order, or with a time out of range.
func (c Changes) Validate() error {
	for i, e := range c.Applied {
		if e.At < -window.Far || e.At > window.Far || i > 0 && e.At < c.Applied[i-1].At {
			return fmt.Errorf("applied[%d].at: %d: must be a time in milliseconds, not before the one before it", i, e.At)
		}
	}
	return nil
}

// Record adds a change that was carried out, and drops changes older than the longest period.
func (l RateLimits) Record(c *Changes, now time.Time, from, to int32) {
	at := window.Milli(now)
	c.rewind(at)
	longest := window.Millis(max(l.Up.longest(), l.Down.longest()))
	c.Applied = slices.DeleteFunc(c.Applied, func(e Change) bool { return e.At <= at-longest })
	delta := int64(to) - int64(from)
	if delta == 0 {
		return
	}
	for i := len(c.Applied) - 1; i >= 0 && second(c.Applied[i].At) == second(at); i-- {
		if e := c.Applied[i]; (e.Delta > 0) == (delta > 0) {
			delta += int64(e.Delta)
			c.Applied = slices.Delete(c.Applied, i, i+1)
			break
		}
	}
	c.Applied = append(c.Applied, Change{At: at, Delta: clampDelta(delta)})
}

// second returns the second of a time in milliseconds.
func second(milli int64) int64 { return time.UnixMilli(milli).Unix() }

// rewind handles a clock that went back: if the latest change is in the future, it moves all changes back by the same time, so
// that the latest is now. No change then leaves its period early.
func (c *Changes) rewind(at int64) {
	if n := len(c.Applied); n > 0 && c.Applied[n-1].At > at {
		back := c.Applied[n-1].At - at
		for i := range c.Applied {
			c.Applied[i].At = max(c.Applied[i].At-back, -window.Far)
		}
	}
}

func clampDelta(d int64) int32 { return int32(max(math.MinInt32, min(d, math.MaxInt32))) }

// Apply appends the step that brings the count of d back to what the limits allow, if it is beyond that.
func (l RateLimits) Apply(c *Changes, now time.Time, d *Decision) {
	at := window.Milli(now)
	c.rewind(at)
	switch d.Verdict {
	case Up:
		if limit, frees := l.Up.limit(c, at, d.From, +1); d.Replicas > limit {
			d.To(limit, UpLimited, "", float64(d.Replicas), float64(limit))
			d.NextBy(frees)
		}
	case Down:
		if limit, frees := l.Down.limit(c, at, d.From, -1); d.Replicas < limit {
			d.To(limit, DownLimited, "", float64(d.Replicas), float64(limit))
			d.NextBy(frees)
		}
	case Hold, Unknown:
	}
}

// limit returns the farthest count that a direction (+1 up, -1 down) allows, and when a change that counts against
// it leaves its period.
func (l RateLimit) limit(c *Changes, at int64, current int32, direction int64) (int32, time.Time) {
	if l.Select == SelectDisabled {
		return current, time.Time{}
	}
	if len(l.Limits) == 0 {
		return Saturate(math.Inf(int(direction))), time.Time{}
	}
	var frees Stamp
	best := int64(-1) // the change that is allowed from the present count
	for _, limit := range l.Limits {
		start := int64(current)
		for _, e := range c.Applied {
			if e.At > at-window.Millis(limit.Period) {
				start -= int64(e.Delta)
				if until := e.At + window.Millis(limit.Period); !frees.Set || until < frees.Milli {
					frees = Stamp{Set: true, Milli: until}
				}
			}
		}
		step := int64(limit.Replicas)
		if limit.Percent > 0 {
			step = (max(0, start)*int64(limit.Percent) + 99) / 100 // someone else may have removed more than there was
			if direction > 0 {
				step = max(step, 1)
			}
		}
		allowed := max(0, direction*(start+direction*step-int64(current)))
		if best < 0 || (l.Select == SelectMax) == (allowed > best) {
			best = allowed
		}
	}
	var next time.Time
	if frees.Set {
		next = time.UnixMilli(frees.Milli)
	}
	return Saturate(float64(int64(current) + direction*best)), next
}

func (l RateLimit) longest() (longest time.Duration) {
	for _, limit := range l.Limits {
		longest = max(longest, limit.Period)
	}
	return longest
}

// RateLimited returns base with rate limits applied to its decisions. An Unknown of base is passed on, and so is a step to
// the bounds of base (BelowMin, AboveMax) of a count that is outside of them. Bounded around it keeps any count within.
func RateLimited(base Policy, limits RateLimits) (Policy, error) {
	limits.Up.Limits, limits.Down.Limits = slices.Clone(limits.Up.Limits), slices.Clone(limits.Down.Limits)
	return around(&rateLimited{base: base, limits: limits}, base, limits.Validate("limits"))
}

type rateLimited struct {
	base   Policy
	limits RateLimits
	memory Changes
}

type rateLimitedState struct {
	Base json.RawMessage `json:"base"`
	Changes
}

func (r *rateLimited) kind() Kind { return Kind{"ratelimited", 1} }

func (r *rateLimited) decide(now time.Time, obs Observation) Decision {
	d := r.base.Decide(now, obs)
	r.limits.Apply(&r.memory, now, &d)
	d.clampAgain()
	return d
}

func (r *rateLimited) applied(now time.Time, from, to int32) {
	r.limits.Record(&r.memory, now, from, to)
	r.base.Applied(now, from, to)
}

func (r *rateLimited) save(form form) (any, error) {
	base, err := form.of(r.base)
	return rateLimitedState{base, r.memory}, err
}

func (r *rateLimited) snapshot() (restore func() error, err error) {
	changes := r.memory.Clone()
	return snapshotWith(r.base, func() { r.memory = changes.Clone() })
}

func (r *rateLimited) load(data []byte) error {
	var s rateLimitedState
	if err := decodeStrictly(data, &s); err != nil {
		return err
	}
	if err := r.base.UnmarshalJSON(s.Base); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	r.memory = s.Changes
	return nil
}
