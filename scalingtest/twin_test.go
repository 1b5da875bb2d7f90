package scalingtest_test

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// naive is the stepper once more: it keeps the age of the last change instead of its time.
type naive struct {
	last  *time.Time
	since time.Duration
	any   bool
}

func newTwin() scalingtest.Naive { return &naive{} }

func (n *naive) pass(now time.Time) (back bool) {
	if n.last != nil {
		if now.Before(*n.last) {
			back = true
		} else {
			n.since += now.Sub(*n.last)
		}
	}
	n.last = &now
	return back
}

func (n *naive) Decide(now time.Time, obs scaling.Observation) (scaling.Verdict, int32) {
	back := n.pass(now)
	switch {
	case obs.SpecReplicas < 1:
		return scaling.Up, 1
	case obs.SpecReplicas > 8:
		return scaling.Down, 8
	case back:
		return scaling.Hold, obs.SpecReplicas
	}
	high, low, known := 0, 0, 0
	for name, limits := range map[string][2]float64{"queue": {4, 10}, "cache": {0.25, 0.75}} {
		for _, r := range obs.Readings {
			if r.Metric != name || !r.Known() {
				continue
			}
			known++
			if r.Lower > limits[1] {
				high++
			}
			if r.Upper < limits[0] {
				low++
			}
		}
	}
	switch {
	case known == 0:
		return scaling.Unknown, obs.SpecReplicas
	case high > 0 && obs.SpecReplicas < 8 && (!n.any || n.since >= time.Minute):
		return scaling.Up, obs.SpecReplicas + 1
	case low == 2 && obs.SpecReplicas > 1 && (!n.any || n.since >= 2*time.Minute):
		return scaling.Down, obs.SpecReplicas - 1
	}
	return scaling.Hold, obs.SpecReplicas
}

func (n *naive) Applied(_ time.Time, from, _ int32) {
	if 1 <= from && from <= 8 {
		n.any, n.since = true, 0
	}
}
