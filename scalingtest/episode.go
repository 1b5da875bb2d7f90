package scalingtest

import (
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// An Episode is what a policy lives through: plain data, so that a failure can be printed, kept and played again.
type Episode struct {
	// Spec is how many replicas are asked for at the start. Writes of the policy that are not refused change it.
	Spec int32
	// Specs are the counts of a group's targets at the start, in place of Spec.
	Specs []int32
	// Startup is how long a replica that was added takes to be ready. Zero: it is ready at once.
	Startup time.Duration
	// Loads are loads of the whole fleet that stay as they are through the episode: each tick has a reading of them
	// beside its own, which is divided by the count that is asked for then.
	Loads []Load
	Ticks []Tick

	// Shift is what property TimeShift adds to every time.
	Shift time.Duration
	// Changes are what the properties MissingNeverActs and Monotone do to the readings in a second run, which they
	// compare with the first.
	Changes []Change
}

// A Tick is one decision, or several of a kind.
type Tick struct {
	// After is the time since the tick before, or since the start. Negative: the clock steps back.
	After time.Duration
	// Times is how often the tick takes place in all, each After the one before. Zero means once.
	Times int
	// Spec, if set, is what someone else scales the target to before the decision.
	Spec Count
	// NotReady is how many of the replicas that are asked for are not ready; negative: more are ready than that.
	NotReady int32
	// Readings are what is observed. A policy gets a copy of them.
	Readings []scaling.Reading
	// Counted are what is counted in histograms up to then. A policy gets what they have come to.
	Counted []Counting
	// Refuse says that a write fails: it is not reported and the count stays.
	Refuse bool
	// Restart says that the policy is stored before the decision, and a new one takes its state back.
	Restart bool
	// Targets are a group's, in the order of Options.Targets, in place of Spec and NotReady. Those that are left out
	// are zero.
	Targets []TargetTick
}

// A Count is a number of replicas that may be left out. Its zero value is left out.
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
	Whole  bool // the metric reads the load of the fleet and not that of a replica
}

// A Change is done to the known readings of a metric at one tick; the ticks are counted one by one, from 0.
type Change struct {
	Tick   int
	Metric string
	Lower  float64 // is added to Lower, which is 0 at least; if it is above 0, also to what pods say
	Upper  float64 // is added to Upper
	Gone   bool    // there is no reading
	Silent int32   // so many of the pods that gave a value do not answer: they move from Values to Failed, all but one at most
	Pods   int32   // so many pods of each target of a group give no value
}

// Start returns the time at which episodes start unless Options say otherwise: 2026-01-15 08:00 UTC.
func Start() time.Time { return time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC) }

// each calls f for every tick one by one, until it returns false.
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

// count returns the number of ticks one by one.
func (e *Episode) count() (n int) {
	for i := range e.Ticks {
		n += max(1, e.Ticks[i].Times)
	}
	return n
}

// until returns the episode with so many ticks of it.
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

// without returns the episode without a tick and what is changed at it.
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

// length returns the time that the episode takes, and whether the clock ever steps back.
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

// changed returns readings as the changes of a tick make them.
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
					r.Stuck = 0 // what counted nothing may still come
				}
				if silent := min(c.Silent, r.Values-1); silent > 0 {
					r.Values -= silent
					r.Failed = scaling.Plus(r.Failed, silent)
					r.Reused = min(r.Reused, r.Values)
				}
			}
		}
		if c.Gone {
			readings = slices.DeleteFunc(readings, func(r scaling.Reading) bool { return r.Metric == c.Metric })
		}
	}
	return readings
}
