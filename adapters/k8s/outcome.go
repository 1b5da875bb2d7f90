package k8s

import (
	"errors"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A WriteResult is the result of a decision's write.
type WriteResult uint8

// The results of a write. The zero value is NoWrite.
const (
	NoWrite   WriteResult = iota // the decision asked for no write, or the round ended before one
	Written                      // replicas were written
	Would                        // dry run, or paused: replicas would have been written
	Conflict                     // the target changed at every attempt
	Refused                      // the API server or a webhook refused the write
	Uncertain                    // no clear answer; the next round finds out
)

// String returns the name of the result, as it is in the label result of the metric inferscale_writes_total.
func (r WriteResult) String() string {
	names := [...]string{"none", "written", "would", "conflict", "refused", "uncertain"}
	if int(r) < len(names) {
		return names[r]
	}
	return "unknown"
}

// An Outcome is the result of one round for one target.
type Outcome struct {
	Target Target
	// Autoscaler is the name of Settings.Object, or empty.
	Autoscaler string
	// Bounds are the bounds of the loop's configuration, for display; the zero value displays none.
	Bounds scaling.Bounds
	At     time.Time // when the targets were read, which is the time of the decision; or when the round began, if it ended before that
	DryRun bool
	Paused bool
	// Disabled says that the target is left alone because somebody has scaled it to 0: see Settings.LeaveAtZero.
	Disabled bool
	// Late is the delay of the round's start, if it is more than an interval, else zero. The scheduler of rounds sets it, for
	// display.
	Late time.Duration

	// Scale is the target as it was read for the decision. It is valid if ScaleErr is nil.
	Scale Scale
	// Observed is the observation for the decision. In a VariantLoop it is the same in every target's outcome; Fleet is the
	// target's index in Observed.Fleets.
	Observed Observed
	Fleet    int
	// Decided reports whether a decision was made. If not, Decision is Unknown, and StateErr, ScaleErr or ObserveErr says why.
	Decided  bool
	Decision scaling.Decision
	// Write is the result of the decision's write.
	Write WriteResult
	// Conflicts is how often the round decided again because the target had changed.
	Conflicts int
	// Settled reports that the round found that an earlier write without an answer had happened, and told the policy.
	Settled bool
	// Anew reports that the stored state was that of another target, so that the policy began afresh in this round: what was
	// known of the last change, as Settings.LastScaled, is not of this target.
	Anew bool
	// Changed is when the round's write was answered, or when an earlier write was found to have happened: cooldowns count
	// from this time. Zero if neither happened.
	Changed time.Time

	// The errors of the steps, in their order. No error leads to a write that was not decided.
	StateErr   error // loading or storing the state, or a state that was refused
	ScaleErr   error // reading the target
	ObserveErr error // observing
	ConfigErr  error // a configuration was refused, and the last good one is in force
	WriteErr   error // writing replicas

	// Next is when the passing of time alone could change the decision, as in Decision.Next; zero means never.
	Next time.Time
}

// Err joins the errors of the steps, or is nil.
func (o *Outcome) Err() error {
	return errors.Join(o.StateErr, o.ScaleErr, o.ObserveErr, o.ConfigErr, o.WriteErr)
}

// View returns the replicas of the target.
func (o *Outcome) View() FleetView {
	if o.Fleet < len(o.Observed.Fleets) {
		return o.Observed.Fleets[o.Fleet]
	}
	return FleetView{}
}
