package shadow

import (
	"slices"
	"time"
)

// TrailSpan is how far back a trail goes, at least where it has no more than 256 changes.
const TrailSpan = time.Hour

// mostChanges is how many changes a trail has.
const mostChanges = 256

// A Count is how many replicas were asked for from a time on.
type Count struct {
	At       time.Time `json:"at"`
	Replicas int32     `json:"replicas"`
}

// Trails returns which counts were asked for in the last hour: of the real fleet, as they were seen, and of each shadow, in the
// order of Wishes. The first of each says what was there when the hour began. It is what a simulator needs to say what the counts would have attained,
// as capacity.Past.Attained does. ColdStart is how long a start takes: the median of those that were seen.
func (s *Shadows) Trails() (incumbent []Count, shadows [][]Count, coldStart time.Duration) {
	s.collect()
	for _, one := range s.all {
		shadows = append(shadows, slices.Clone(one.trail))
	}
	return slices.Clone(s.trail), shadows, s.starts.typical(s.config.ColdStart)
}

// A trail has the counts of the last hour, oldest first.
type trail []Count

// note notes a count. What is older than the hour goes, but for the one that it began with.
func (t *trail) note(at time.Time, n int32) {
	if len(*t) == 0 || (*t)[len(*t)-1].Replicas != n {
		*t = append(*t, Count{at, n})
	}
	old := max(0, len(*t)-mostChanges)
	for old+1 < len(*t) && !(*t)[old+1].At.After(at.Add(-TrailSpan)) {
		old++
	}
	*t = slices.Delete(*t, 0, old)
}

func (t *trail) back(by time.Duration) {
	for i := range *t {
		(*t)[i].At = (*t)[i].At.Add(-by)
	}
}
