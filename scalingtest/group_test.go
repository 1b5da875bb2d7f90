package scalingtest_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// The codes of a filler.
const (
	crowded scaling.Code = "Crowded queue > high"
	quiet   scaling.Code = "Quiet queue < low"
	right   scaling.Code = "Right queue"
	stays   scaling.Code = "Stays"
	absent  scaling.Code = "Absent"
	pauses  scaling.Code = "Pauses elapsed:s < pause:s"
)

// A filler is a small scaling.Group: as the pods of all its targets are on average, the first target by name that may
// gets a replica more, or the last one less. A pod that says nothing is idle on the way up, and full on the way down.
// After a change it waits for a minute. It can have a fault.
type filler struct {
	fault   string
	seen    time.Time
	changed time.Time
}

// most is the highest count of a filler's target; the lowest is 1.
const most = 5

func newFiller(fault string) scaling.Group { return &filler{fault: fault} }

// newGroup returns the group that the tests here are about. With the environment variable it is a faulty one.
func newGroup() scaling.Group { return newFiller(os.Getenv("SCALINGTEST_FAULT")) }

// ofFiller are the options for a filler.
func ofFiller() scalingtest.Options {
	bounds := scaling.Bounds{Min: 1, Max: most}
	return scalingtest.Options{
		Metrics: []scalingtest.Metric{{Name: "queue", Low: 4, High: 10}},
		Targets: []scalingtest.Target{{Name: "a", Bounds: bounds}, {Name: "b", Bounds: bounds}},
		Memory:  5 * time.Minute, Ticks: 16,
		MaxState: 150, Monotone: true, NoFlap: true, Refused: true,
		DeadZone:    []scalingtest.Metric{{Name: "queue", Low: 4, High: 10}},
		Cooldown:    &scalingtest.Cooldown{Up: time.Minute, Down: time.Minute},
		Convergence: &scalingtest.Convergence{Within: 60},
	}
}

func (g *filler) Decide(now time.Time, obs scaling.GroupObservation) (d scaling.GroupDecision) {
	back := !g.seen.IsZero() && now.Before(g.seen)
	if back {
		g.changed = g.changed.Add(now.Sub(g.seen))
	}
	g.seen = now
	at := slices.IndexFunc(obs.Readings, func(r scaling.Reading) bool { return r.Metric == "queue" })
	low, high, n := 0.0, 0.0, 0
	var known []float64
	for _, t := range obs.Targets {
		for _, p := range t.Pods {
			n++
			if g.fault == "changes what pods said" && at >= 0 {
				p.Values[at] = max(0, p.Values[at])
			}
			if at >= 0 && p.Values[at] >= 0 && !math.IsInf(p.Values[at], 0) {
				known = append(known, p.Values[at])
			} else {
				high = math.Inf(1)
			}
		}
	}
	slices.Sort(known) // so that the sum is the same in any order
	for _, v := range known {
		low, high = low+v, high+v
	}
	low, high = low/float64(n), high/float64(n)
	if g.fault == "reads the wrong end" {
		low, high = high, low
	}
	grows, shrinks := -1, -1
	d.Targets = make([]scaling.Decision, len(obs.Targets))
	total := int32(0)
	for i, t := range obs.Targets {
		total = scaling.Plus(total, t.SpecReplicas)
		d.Targets[i] = scaling.HoldAt(t.SpecReplicas)
		switch {
		case t.Missing && g.fault == "a missing target has none":
			d.Targets[i].To(1, scaling.BelowMin, t.Name, 0, 1)
		case t.Missing:
			d.Targets[i] = scaling.UnknownAt(t.SpecReplicas, absent, t.Name)
		default:
			d.Targets[i].To(t.SpecReplicas, stays, t.Name)
			d.Targets[i].Clamp(scaling.Bounds{Min: 1, Max: most})
			if d.Targets[i].Acts() {
				continue
			}
			first := func(before int) bool {
				return before < 0 || obs.Targets[before].Name > t.Name && g.fault != "the first in the order given"
			}
			if t.SpecReplicas < most && first(grows) {
				grows = i
			}
			if t.SpecReplicas > 1 && (shrinks < 0 || obs.Targets[shrinks].Name < t.Name) {
				shrinks = i
			}
		}
	}
	d.Total = scaling.HoldAt(total)
	step := func(i int, by int32, code scaling.Code, numbers ...float64) {
		d.Targets[i].To(scaling.Plus(d.Targets[i].From, by), code, obs.Targets[i].Name, numbers...)
	}
	elapsed := now.Sub(g.changed)
	switch {
	case len(known) == 0:
		d.Total = scaling.UnknownAt(total, unknown, "queue")
	case back, !g.changed.IsZero() && elapsed < time.Minute:
		d.Total.To(total, pauses, "", min(elapsed.Seconds(), 59), 60)
	case scaling.Exceeds(low, 10) && grows >= 0:
		step(grows, 1, crowded, low, 10)
	case scaling.Exceeds(4, high) && shrinks >= 0:
		step(shrinks, -1, quiet, high, 4)
	default:
		d.Total.To(total, right, "queue", low)
	}
	sum := int32(0)
	for _, t := range d.Targets {
		sum = scaling.Plus(sum, t.Replicas)
	}
	d.Total.To(sum, right, "", low)
	if d.Acts() && d.Total.Verdict == scaling.Unknown {
		d.Total.Verdict = scaling.Hold
	}
	return d
}

func (g *filler) Applied(now time.Time, from, to []int32) {
	for i := range from {
		if from[i] != to[i] && 1 <= from[i] && from[i] <= most {
			g.changed = now
		}
	}
}

type storedFiller struct {
	Seen, Changed scaling.Stamp
}

func (g *filler) MarshalJSON() ([]byte, error) {
	var s storedFiller
	if !g.seen.IsZero() {
		s.Seen = scaling.StampOf(g.seen)
	}
	if !g.changed.IsZero() {
		s.Changed = scaling.StampOf(g.changed)
	}
	if g.fault == "forgets its last change" {
		s.Changed = scaling.Stamp{}
	}
	return json.Marshal(s)
}

func (g *filler) UnmarshalJSON(data []byte) error {
	var s storedFiller
	err := json.Unmarshal(data, &s)
	g.seen, g.changed = s.Seen.Time(), s.Changed.Time()
	return err
}

// TestRunGroup: a group without a fault has every property.
func TestRunGroup(t *testing.T) { scalingtest.RunGroup(t, newGroup, ofFiller()) }

// TestGroupFaults: each fault of a group is found by the property that it breaks.
func TestGroupFaults(t *testing.T) {
	setChecks(t, 500)
	setFlag(t, "rapid.seed", "1")
	for _, row := range []struct{ fault, property, says string }{
		{"reads the wrong end", "MissingNeverActs", "became "},
		{"a missing target has none", "WithinBounds", "of a target that does not exist"},
		{"the first in the order given", "Order", "in another order"},
		{"changes what pods said", "Repeatable", "the targets that it was given were changed"},
		{"forgets its last change", "Restart", "Restart: at "},
	} {
		t.Run(row.property+" "+row.fault, func(t *testing.T) {
			failed, log := record(t, func(r *recorder) {
				scalingtest.TryGroup(r, row.property, func() scaling.Group { return newFiller(row.fault) }, ofFiller())
			})
			require.True(t, failed, "it was not found")
			require.Contains(t, log, row.property+": ")
			require.Contains(t, log, row.says)
			require.Contains(t, log, "scalingtest.ReplayGroup(t, newGroup, ")
		})
	}
}

// spread gives every target of an observation the same count, one for each ten requests that wait in all.
type spread struct{ answer []scaling.Decision }

func (g *spread) Decide(_ time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	d := scaling.GroupDecision{Targets: g.answer[:0]}
	total := int32(0)
	for _, t := range obs.Targets {
		readings := scaling.Observation{Readings: obs.Readings}
		waiting := readings.Reading("waiting").Lower
		own := scaling.HoldAt(t.SpecReplicas)
		own.To(scaling.Ceil(waiting/10), needed, t.Name, waiting)
		total = scaling.Plus(total, t.SpecReplicas)
		d.Targets = append(d.Targets, own)
	}
	d.Total, g.answer = scaling.HoldAt(total), d.Targets
	return d
}

func (*spread) Applied(time.Time, []int32, []int32) {}
func (*spread) MarshalJSON() ([]byte, error)        { return []byte("{}"), nil }
func (*spread) UnmarshalJSON([]byte) error          { return nil }

// A test of a group names its targets. What RunGroup finds is printed as a test of ReplayGroup: here that a target
// which is missing is scaled.
func ExampleRunGroup() {
	opts := scalingtest.Options{
		Metrics: []scalingtest.Metric{{Name: "waiting", Low: 5, High: 50}},
		Targets: []scalingtest.Target{{Name: "large"}, {Name: "small", Bounds: scaling.Bounds{Max: 8}}},
	}
	newGroup := func() scaling.Group { return &spread{} }
	_ = func(t *testing.T) { // TestProperties
		t.Helper()
		scalingtest.RunGroup(t, newGroup, opts)
	}

	t := printer{}
	scalingtest.ReplayGroup(t, newGroup, opts, "WithinBounds", scalingtest.Episode{
		Specs: []int32{1, 1},
		Ticks: []scalingtest.Tick{
			{Readings: []scaling.Reading{scaling.Exactly("waiting", 20)}, Targets: []scalingtest.TargetTick{{}, {Missing: true}}},
		},
	})
	// Output:
	// WithinBounds: at 0s it says Up 0 -> 2, of a target that does not exist
	//   at      spec     ready  readings               verdict  count            reason
	//   0s  1 + none  1 + none  waiting=20, large[20]  Up       1 -> 2 + 0 -> 2  large: Needed large waiting=20; small: Needed small waiting=20
}
