package shadow

import (
	"slices"
	"time"
)

// trailSpan is how far back a trail goes if it has no more than 256 changes in that time.
const trailSpan = time.Hour

// mostChanges is how many changes a trail has at most.
const mostChanges = 256

// A Count is the replica count that is asked for from a time on.
type Count struct {
	At       time.Time `json:"at"`
	Replicas int32     `json:"replicas"`
}

// Trails returns the counts of the last hour: those of the real fleet, as observed, and those that each shadow asked for, in the
// order of Wishes. The first Count of each is the one in force when the hour began. A simulator needs them to find out how many
// requests would have met the SLO with these counts, as capacity.Past.Attained does. coldStart is the duration of a start: the
// median of the observed ones.
func (s *Shadows) Trails() (incumbent []Count, shadows [][]Count, coldStart time.Duration) {
	s.collect()
	for _, one := range s.all {
		shadows = append(shadows, slices.Clone(one.trail))
	}
	return slices.Clone(s.trail), shadows, s.starts.typical(s.config.ColdStart)
}

// A trail has the counts of the last hour, oldest first.
type trail []Count

// note adds a count. Counts older than the hour are dropped, except the one in force when the hour began.
func (t *trail) note(at time.Time, n int32) {
	if len(*t) == 0 || (*t)[len(*t)-1].Replicas != n {
		*t = append(*t, Count{at, n})
	}
	old := max(0, len(*t)-mostChanges)
	for old+1 < len(*t) && !(*t)[old+1].At.After(at.Add(-trailSpan)) {
		old++
	}
	*t = slices.Delete(*t, 0, old)
}

func (t *trail) back(by time.Duration) {
	for i := range *t {
		(*t)[i].At = (*t)[i].At.Add(-by)
	}
}
