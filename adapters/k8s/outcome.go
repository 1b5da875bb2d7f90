package k8s

import (
	"errors"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A WriteResult says what became of a decision's write.
type WriteResult uint8

// The results. The zero value is NoWrite.
const (
	NoWrite   WriteResult = iota // the decision asked for none, or it was not reached
	Written                      // replicas were written
	Would                        // dry run, or paused: replicas would have been written
	Conflict                     // the target changed at every attempt
	Refused                      // the API server or a webhook said no
	Uncertain                    // no clear answer; the next round finds out
)

// String returns the name of the result, as in the label result of the metric inferscale_writes_total.
func (r WriteResult) String() string {
	switch r {
	case NoWrite:
		return "none"
	case Written:
		return "written"
	case Would:
		return "would"
	case Conflict:
		return "conflict"
	case Refused:
		return "refused"
	case Uncertain:
		return "uncertain"
	}
	return "unknown"
}

// An Outcome is what one round came to, for one target.
type Outcome struct {
	Target Target
	// Autoscaler is the name of Settings.Object, or empty.
	Autoscaler string
	// Bounds are those that the loop was configured with, to show; the zero value shows none.
	Bounds scaling.Bounds
	At     time.Time // when the targets were read, the now of its decision; when the round began, if it ended before that
	DryRun bool
	Paused bool
	// Disabled says that the target is left alone, as somebody has scaled it to 0: see Settings.LeaveAtZero.
	Disabled bool
	// Late is how long after it was due the round began, where that is more than an interval: what schedules rounds sets it,
	// to be shown. Zero otherwise.
	Late time.Duration

	// Scale is the target as it was decided on. It is meaningful if ScaleErr is nil.
	Scale Scale
	// Observed is what the decision saw. In a VariantLoop it is the same in every target's outcome; Fleet is the
	// target's place in Observed.Fleets.
	Observed Observed
	Fleet    int
	// Decided reports whether a decision was made; without, Decision is Unknown and StateErr, ScaleErr or ObserveErr
	// says why.
	Decided  bool
	Decision scaling.Decision
	// Write is what became of it.
	Write WriteResult
	// Conflicts is how often the target had changed, so that it was decided again.
	Conflicts int
	// Settled reports that the round found an earlier write without an answer to have happened, and told the policy.
	Settled bool
	// Changed is when the round's write was answered, or an earlier one found to have happened: cooldowns count from then.
	// Zero if there was neither.
	Changed time.Time

	// Errors of the steps, in their order. None of them ended in a write that was not decided.
	StateErr   error // loading or storing the state, or a state that was refused
	ScaleErr   error // reading the target
	ObserveErr error // observing
	ConfigErr  error // configuration that was refused, so that the last good one is in force
	WriteErr   error // writing replicas

	// Next is when time alone could change the answer, as in Decision.Next; zero for never.
	Next time.Time
}

// Err joins the errors of the steps, or is nil.
func (o *Outcome) Err() error {
	return errors.Join(o.StateErr, o.ScaleErr, o.ObserveErr, o.ConfigErr, o.WriteErr)
}

// View returns what there is of the target.
func (o *Outcome) View() FleetView {
	if o.Fleet < len(o.Observed.Fleets) {
		return o.Observed.Fleets[o.Fleet]
	}
	return FleetView{}
}
