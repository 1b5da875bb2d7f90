package scalingtest

import (
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// An Episode is the input of a run: plain data, so that a failure can be printed, kept and played again.
type Episode struct {
	// Spec is the requested count at the start. Writes of the policy change it unless they are refused.
	Spec int32
	// Specs are the counts of a group's targets at the start, in place of Spec.
	Specs []int32
	// Startup is the time until an added replica is ready. Zero means at once.
	Startup time.Duration
	// Loads are loads of the whole fleet that are constant over the episode. Each tick has a reading of them beside its own
	// readings: the load divided by the requested count at that tick.
	Loads []Load
	Ticks []Tick

	// Shift is what the property TimeShift adds to every time.
	Shift time.Duration
	// Changes are the changes that the properties MissingNeverActs and Monotone make to the readings in a second run, which
	// they compare with the first.
	Changes []Change
}

// A Tick is one decision, or several decisions of the same kind.
type Tick struct {
	// After is the time since the previous tick, or since the start. If it is negative, the clock steps back.
	After time.Duration
	// Times is how often the tick takes place in total, each After the one before. Zero means once.
	Times int
	// Spec, if set, is the count to which someone else scales the target before the decision.
	Spec Count
	// NotReady is how many of the requested replicas are not ready. If it is negative, more than requested are ready.
	NotReady int32
	// Readings are the observed readings. A policy gets a copy of them.
	Readings []scaling.Reading
	// Counted are the counts of histograms up to this tick. A policy gets their totals.
	Counted []Counting
	// Refuse says that the write fails: it is not reported, and the count stays.
	Refuse bool
	// Restart says that before the decision the policy is stored and a new one restores its state.
	Restart bool
	// Targets are the targets of a group, in the order of Options.Targets, in place of Spec and NotReady. Missing entries
	// are zero.
	Targets []TargetTick
}

// A Count is a number of replicas, or not set, which is its zero value.
type Count struct {
	Set bool
	N   int32
}

// CountOf returns the count n.
func CountOf(n int32) Count { return Count{Set: true, N: n} }

// A Load is a load of the whole fleet. A metric reads Sum / max(1, count), or Sum itself if it is Whole.
type Load struct {
	Metric string
	Sum    float64
	Whole  bool // the metric reads the load of the fleet, not of a replica
}

// A Change is made to the known readings of a metric at one tick; the ticks are counted one by one, from 0.
type Change struct {
	Tick    int
	Metric  string
	Lower   float64 // added to Lower, which stays at least 0; if it is above 0, also added to the values of pods
	Upper   float64 // added to Upper
	Gone    bool    // the reading is missing; with Silent or Booting it is there, and no pod gave a value
	Silent  int32   // this many of the pods with a value do not answer: they move from Values to Failed, except for at least one
	Booting int32   // this many of the pods with a value are not ready: they move from Values to NotReady, except for at least one; the first fits on no node, the second crashes
	Pods    int32   // this many pods of each target of a group give no value
}

// removes reports whether the reading is not there at all.
func (c *Change) removes() bool { return c.Gone && c.Silent == 0 && c.Booting == 0 }

// Start returns the time at which episodes start unless Options say otherwise: 2026-01-15 08:00 UTC.
func Start() time.Time { return time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC) }

// each calls f for every tick one by one, until f returns false.
func (e *Episode) each(f func(i int, tick *Tick, first bool) bool) {
	n := 0
	for i := range e.Ticks {
		for k := range max(1, e.Ticks[i].Times) {
			if !f(n, &e.Ticks[i], k == 0) {
				return
			}
			n++
		}
	}
}

// count returns the number of ticks, counted one by one.
func (e *Episode) count() (n int) {
	for i := range e.Ticks {
		n += max(1, e.Ticks[i].Times)
	}
	return n
}

// until returns the episode up to so many ticks.
func (e *Episode) until(ticks int) Episode {
	short := *e
	short.Ticks = nil
	short.Changes = slices.DeleteFunc(slices.Clone(e.Changes), func(c Change) bool { return c.Tick >= ticks })
	for _, t := range e.Ticks {
		if t.Times = min(max(1, t.Times), ticks); ticks > 0 {
			short.Ticks = append(short.Ticks, t)
			ticks -= t.Times
		}
	}
	return short
}

// without returns the episode without a tick and the changes at it.
func (e *Episode) without(i int) Episode {
	smaller := *e
	smaller.Ticks = slices.Delete(slices.Clone(e.Ticks), i, i+1)
	first := (&Episode{Ticks: e.Ticks[:i]}).count()
	times := max(1, e.Ticks[i].Times)
	smaller.Changes = nil
	for _, c := range e.Changes {
		if c.Tick >= first+times {
			c.Tick -= times
		} else if c.Tick >= first {
			continue
		}
		smaller.Changes = append(smaller.Changes, c)
	}
	return smaller
}

// length returns the duration of the episode, and whether the clock ever steps back.
func (e *Episode) length() (length time.Duration, back bool) {
	for i := range e.Ticks {
		t := &e.Ticks[i]
		length += t.After * time.Duration(max(1, t.Times))
		back = back || t.After < 0
	}
	return length, back
}

// readings returns the readings of a tick and of the loads at a count.
func (e *Episode) readings(tick *Tick, spec int32) []scaling.Reading {
	readings := slices.Clone(tick.Readings)
	for _, l := range e.Loads {
		value := l.Sum
		if !l.Whole {
			value /= float64(max(1, spec))
		}
		readings = append(readings, scaling.Exactly(l.Metric, value))
	}
	return readings
}

// changed returns readings with the changes of a tick.
func (e *Episode) changed(i int, readings []scaling.Reading) []scaling.Reading {
	readings = slices.Clone(readings)
	for _, c := range e.Changes {
		if c.Tick != i {
			continue
		}
		for k := range readings {
			if r := &readings[k]; r.Metric == c.Metric && r.Known() {
				r.Lower = max(0, r.Lower+c.Lower)
				r.Upper += c.Upper
				if c.Upper > 0 {
					r.Stuck = 0 // a stuck pod that counted 0 may still become ready
				}
				least := int32(1)
				if c.Gone {
					least = 0
				}
				if silent := min(c.Silent, r.Values-least); silent > 0 {
					r.Values -= silent
					r.Failed = scaling.Plus(r.Failed, silent)
				}
				if booting := min(c.Booting, r.Values-least); booting > 0 {
					r.Values -= booting
					r.NotReady = scaling.Plus(r.NotReady, booting)
					r.Unschedulable = scaling.Plus(r.Unschedulable, 1)
					r.Crashing = scaling.Plus(r.Crashing, min(booting-1, 1))
				}
				if c.Gone {
					r.Lower, r.Upper, r.Values = 0, 0, 0
				}
				r.Reused = min(r.Reused, r.Values)
			}
		}
		if c.removes() {
			readings = slices.DeleteFunc(readings, func(r scaling.Reading) bool { return r.Metric == c.Metric })
		}
	}
	return readings
}
