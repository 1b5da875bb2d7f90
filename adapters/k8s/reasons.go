package k8s

import (
	"errors"
	"regexp"

	"github.com/inferscale/inferscale/scaling"
)

// The reasons of events and conditions that are not the code of a decision. They are stable.
const (
	ReasonScaledUp           = "ScaledUp"
	ReasonScaledDown         = "ScaledDown"
	ReasonWouldScaleUp       = "WouldScaleUp"   // dry run, paused
	ReasonWouldScaleDown     = "WouldScaleDown" // dry run, paused
	ReasonPaused             = "Paused"
	ReasonHeld               = "Held"
	ReasonLate               = "Late" // rounds begin more than an interval after they are due
	ReasonUnknown            = "Unknown"
	ReasonScalingDisabled    = "ScalingDisabled" // somebody has scaled to 0, which the configuration does not do
	ReasonNotDecided         = "NotDecided"
	ReasonScaleRead          = "ScaleRead"
	ReasonScaleNotRead       = "ScaleNotRead"
	ReasonTargetNotFound     = "TargetNotFound"
	ReasonNoScale            = "NoScaleSubresource"
	ReasonForbidden          = "Forbidden"
	ReasonNoSelector         = "NoSelector"
	ReasonStateRefused       = "StateRefused"
	ReasonStateConflict      = "StateConflict"
	ReasonStateTooLarge      = "StateTooLarge"
	ReasonStateNotStored     = "StateNotStored"
	ReasonNotObserved        = "NotObserved"
	ReasonConfigRefused      = "ConfigRefused"
	ReasonWriteConflict      = "WriteConflict"
	ReasonWriteRefused       = "WriteRefused"
	ReasonWriteUncertain     = "WriteUncertain"
	ReasonMetricsUnavailable = "MetricsUnavailable"
	ReasonMetricsPartial     = "MetricsPartial"
	ReasonMetricsKnown       = "MetricsKnown"
	ReasonNoMetrics          = "NoMetricsUsed"
	ReasonNotLimited         = "WithinLimits"
	ReasonReady              = "Ready"
	ReasonContended          = "Contended"      // another writer reverts the loop's writes again and again
	ReasonNotContended       = "NoOtherWriter"  // that has ended
	ReasonAtZero             = "AtZeroReplicas" // no replicas, as the bounds allow: there is no pod to ask
)

func stateReason(err error) string {
	var refused *scaling.StateError
	var size *SizeError
	switch {
	case errors.As(err, &refused):
		return ReasonStateRefused
	case errors.As(err, &size):
		return ReasonStateTooLarge
	case errors.Is(err, ErrStateConflict):
		return ReasonStateConflict
	}
	return ReasonStateNotStored
}

// targetReason returns the reason for an error about a target; otherwise is that for an unknown error.
func targetReason(err error, otherwise string) string {
	switch {
	case errors.Is(err, ErrNotFound):
		return ReasonTargetNotFound
	case errors.Is(err, ErrNoScale):
		return ReasonNoScale
	case errors.Is(err, ErrForbidden):
		return ReasonForbidden
	case errors.Is(err, ErrNoSelector):
		return ReasonNoSelector
	}
	return otherwise
}

func writeReason(err error) string {
	contended := (*ContendedError)(nil)
	switch {
	case errors.As(err, &contended):
		return ReasonContended
	case errors.Is(err, ErrConflict):
		return ReasonWriteConflict
	case errors.Is(err, ErrUncertain):
		return ReasonWriteUncertain
	}
	return targetReason(err, ReasonWriteRefused)
}

// validReason is what a code must be to be the reason of a condition.
var validReason = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*$`)

// codeReason returns a decision's code as the reason of a condition, or its verdict if it has no code, or one of another module
// that is not a valid reason.
func codeReason(d *scaling.Decision) string {
	if code := d.Code().String(); validReason.MatchString(code) {
		return code
	}
	return d.Verdict.String()
}
