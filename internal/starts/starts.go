// Package starts learns how long replicas take to start: from when a count was asked for to when as many are ready.
package starts

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

const (
	most      = 20 // starts that are remembered
	mostRises = 64
	longest   = 3600.0  // seconds; what takes longer waits for nodes, and says nothing of the next start
	mostKept  = 86400.0 // which a state may say, as it did once
)

// Learned is what is known of starts: plain data, to be embedded in a policy's state, which is why it has no methods. Times are
// in Unix seconds.
type Learned struct {
	Rises  []Rise    `json:"rises,omitempty"`  // counts that were asked for and are not ready yet
	Starts []float64 `json:"starts,omitempty"` // seconds that starts have taken, the latest last
}

// A Rise is a count that was asked for at a time.
type Rise struct {
	At    float64 `json:"at"`
	Count int32   `json:"count"`
}

// Applied notes that a count was asked for. What comes while as many as can be remembered are not ready is let go.
func Applied(l *Learned, at float64, from, to int32) {
	if to > from && len(l.Rises) < mostRises {
		l.Rises = append(l.Rises, Rise{At: at, Count: to})
	}
}

// See looks for what has become ready, and reports whether it learned anything. A rise that was taken back tells nothing, and
// one that is not ready within an hour is let go. Of several that become ready at once the last counts: what they waited for was the
// same, and the others waited longer for it. A start counts as at most twice the P90 of those before it, and a minute: what takes much
// longer waited for nodes too, and if all starts do from now on, a few teach it.
func See(l *Learned, at float64, spec, ready int32) (learned bool) {
	k := 0
	for _, r := range l.Rises {
		switch {
		case spec < r.Count, at-r.At > longest:
		case ready >= r.Count:
			if !learned && len(l.Starts) == most {
				l.Starts = l.Starts[:copy(l.Starts, l.Starts[1:])]
			}
			if learned {
				l.Starts = l.Starts[:len(l.Starts)-1]
			}
			l.Starts = append(l.Starts, min(max(at-r.At, 0), 2*P90(l.Starts, longest)+60))
			learned = true
		default:
			l.Rises[k] = r
			k++
		}
	}
	l.Rises = l.Rises[:k]
	return learned
}

// Clone returns a copy that shares no memory.
func Clone(l Learned) Learned {
	return Learned{Rises: slices.Clone(l.Rises), Starts: slices.Clone(l.Starts)}
}

// Unseen lets go of what has become ready while nobody looked: when it did is not known.
func Unseen(l *Learned, ready int32) {
	l.Rises = slices.DeleteFunc(l.Rises, func(r Rise) bool { return ready >= r.Count })
}

// P90 is how long nine of ten starts took at most, the ceil(0.9 n)-th of n in order, or otherwise where none was seen.
func P90(starts []float64, otherwise float64) float64 {
	n := len(starts)
	if n == 0 {
		return otherwise
	}
	var descending [most/10 + 1]float64
	for _, t := range starts {
		for i := range descending {
			t, descending[i] = min(t, descending[i]), max(t, descending[i])
		}
	}
	return descending[n/10]
}

// Validate reports what cannot have been learned.
func Validate(l *Learned) error {
	if len(l.Starts) > most || len(l.Rises) > mostRises {
		return errors.New("more starts are remembered than there can be")
	}
	for i, r := range l.Rises {
		if math.IsNaN(r.At) || math.IsInf(r.At, 0) {
			return fmt.Errorf("rises[%d]: must be at a time", i)
		}
	}
	for i, t := range l.Starts {
		if !(t >= 0 && t <= mostKept) {
			return fmt.Errorf("starts[%d]: must be seconds, within a day", i)
		}
	}
	return nil
}
