package scalingtest

import (
	"errors"
	"fmt"

	"github.com/inferscale/inferscale/scaling"
)

// Explained returns what is wrong with the chain of d, or nil (property Explained):
//
//   - the deciding line has a step, even for a Hold; it starts at From, each step starts where the one before ended, and the
//     last ends at Replicas;
//   - every step's inequality is true of its numbers, see [scaling.Step.Holds];
//   - the verdict is the comparison of Replicas with From, or Unknown without a change;
//   - every considered line starts at From and is linked in the same way.
func Explained(d *scaling.Decision) error {
	steps := d.Steps()
	if len(steps) == 0 {
		return fmt.Errorf("%s at %d has no steps", d.Verdict, d.From)
	}
	at := map[uint16]int32{}
	for i, s := range steps {
		from, seen := at[s.Branch]
		if !seen {
			from = d.From
		}
		if s.From != from {
			return fmt.Errorf("step %d (%s) on branch %d starts at %d, not at %d", i, s.Code, s.Branch, s.From, from)
		}
		if !s.Holds() {
			return fmt.Errorf("step %d does not hold: %s %s", i, s.Code, s.Because())
		}
		at[s.Branch] = s.To
	}
	end, ok := at[0]
	if !ok {
		return errors.New("no step is on the deciding line")
	}
	if end != d.Replicas {
		return fmt.Errorf("the deciding line ends at %d, the decision at %d", end, d.Replicas)
	}
	want := scaling.Hold
	switch {
	case d.Replicas > d.From:
		want = scaling.Up
	case d.Replicas < d.From:
		want = scaling.Down
	}
	if d.Verdict != want && (d.Verdict != scaling.Unknown || want != scaling.Hold) {
		return fmt.Errorf("verdict %s for %d -> %d", d.Verdict, d.From, d.Replicas)
	}
	return nil
}
