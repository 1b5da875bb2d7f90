package loop

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

const (
	// Reversals is how many writes of a target somebody else must take back within ContestWindow before the Loop leaves the
	// target alone.
	Reversals = 3
	// ContestWindow is how long a write that was taken back counts.
	ContestWindow = time.Hour

	firstBackOff = 5 * time.Minute
	lastBackOff  = time.Hour
	lastLevel    = 8
)

// A contest has the writes of one target that somebody else took back: another autoscaler, or whoever applies a manifest with a
// count.
type contest struct {
	Key   string          `json:"key"`
	Times []scaling.Stamp `json:"times"`           // when the latest ones were found
	Until scaling.Stamp   `json:"until,omitzero"`  // until when the target is left alone
	Level int             `json:"level,omitempty"` // how often it was left alone
}

// A ContendedError says that a target is not written because somebody else takes its writes back.
type ContendedError struct {
	Key   string
	Times int       // writes that were taken back
	Last  time.Time // when the last one was found
	Until time.Time // when the Loop writes again
}

// Error says what to do.
func (e *ContendedError) Error() string {
	return fmt.Sprintf("somebody else took back the last %d writes of %s: left alone until %s; one of the two has to go",
		e.Times, cmp.Or(e.Key, "the target"), e.Until.UTC().Format(time.RFC3339))
}

// contend compares the targets with their last writes and notes the writes that were taken back: the count has moved in the
// opposite direction since, at another version than that on which the write was conditional. It returns the targets that are left
// alone from now on.
func (l *Loop) contend(now time.Time) (contended []int) {
	contests := l.contests()
	for i := range l.targets {
		t := &l.targets[i]
		w, ok := l.wrote[t.Key]
		back := ok && (w.To > w.From && t.Replicas < w.To || w.To < w.From && t.Replicas > w.To)
		switch {
		case !ok || t.Missing || w.Version != "" && t.Version == w.Version:
			continue // nothing to compare, or it was read as it was before the write, from a cache that lags behind
		case back:
			delete(l.wrote, t.Key)
			if l.note(contests, t.Key, now) {
				contended = append(contended, i)
			}
		case t.Replicas != w.To || now.Sub(w.At.Time()).Abs() >= ContestWindow:
			delete(l.wrote, t.Key)
		}
	}
	l.memory.Contests = slices.DeleteFunc(l.memory.Contests, func(c contest) bool {
		last := c.Times[len(c.Times)-1].Time()
		return now.Sub(last) >= ContestWindow && !now.Before(c.Until.Time().Add(ContestWindow)) || l.index(c.Key) < 0
	})
	return contended
}

// contests returns the places of the contests, by key.
func (l *Loop) contests() map[string]int {
	places := make(map[string]int, len(l.memory.Contests))
	for i := range l.memory.Contests {
		places[l.memory.Contests[i].Key] = i
	}
	return places
}

// note notes a write that was taken back, and reports whether the target is to be left alone for it.
func (l *Loop) note(places map[string]int, key string, now time.Time) bool {
	i, ok := places[key]
	if !ok {
		i = len(l.memory.Contests)
		places[key] = i
		l.memory.Contests = append(l.memory.Contests, contest{Key: key})
	}
	c := &l.memory.Contests[i]
	c.Times = slices.DeleteFunc(c.Times, func(s scaling.Stamp) bool { return now.Sub(s.Time()).Abs() >= ContestWindow && c.Level == 0 })
	c.Times = append(c.Times, scaling.StampOf(now))
	if len(c.Times) < Reversals {
		return false
	}
	c.Times = c.Times[len(c.Times)-Reversals:]
	level := min(c.Level, lastLevel) // a stored one may be any
	c.Until = scaling.StampOf(now.Add(min(firstBackOff<<level, lastBackOff)))
	c.Level = level + 1
	return true
}

// reason returns why its target is left alone, or nil.
func (c *contest) reason(now time.Time) *ContendedError {
	if until := c.Until.Time(); now.Before(until) && until.Sub(now) <= lastBackOff {
		return &ContendedError{Key: c.Key, Times: len(c.Times), Last: c.Times[len(c.Times)-1].Time(), Until: until}
	}
	return nil
}
