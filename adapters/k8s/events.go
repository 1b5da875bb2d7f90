package k8s

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/inferscale/inferscale/scaling"
)

// maxMessage is the longest message of an event, in bytes, that the API server accepts.
const maxMessage = 1024

// A Recorder emits events. Every record.EventRecorder is one.
type Recorder interface {
	Event(object runtime.Object, kind, reason, message string)
}

// Events reports outcomes as events. A write is always reported. Other outcomes that repeat the same event (the same target,
// reason, verdict and code) are reported once per period. It is not safe for concurrent use.
type Events struct {
	recorder Recorder
	period   time.Duration
	told     map[topic]time.Time
}

// A topic is the content of an event without its numbers.
type topic struct {
	target  Target
	reason  string
	verdict scaling.Verdict
	code    scaling.Code
}

// NewEvents returns the Events of a recorder. A period of 0 means 10 min.
func NewEvents(recorder Recorder, period time.Duration) *Events {
	return &Events{recorder: recorder, period: cmp.Or(period, defaultEventPeriod), told: make(map[topic]time.Time)}
}

// Say reports an outcome. Its events are about object, or about the target if object is nil.
func (e *Events) Say(object runtime.Object, o *Outcome) {
	if object == nil {
		object = o.Target.reference(o.Scale.UID)
	}
	for t, at := range e.told {
		if o.At.Sub(at) >= e.period || at.After(o.At) {
			delete(e.told, t) // also if the clock went back
		}
	}
	for _, w := range []struct {
		err    error
		reason string
	}{
		{o.StateErr, stateReason(o.StateErr)},
		{o.ScaleErr, targetReason(o.ScaleErr, ReasonScaleNotRead)},
		{o.ObserveErr, targetReason(o.ObserveErr, ReasonNotObserved)},
		{o.ConfigErr, ReasonConfigRefused},
		{o.Observed.Err, ReasonMetricsUnavailable},
		{o.WriteErr, writeReason(o.WriteErr)},
	} {
		if w.err != nil {
			e.emit(object, o, corev1.EventTypeWarning, topic{target: o.Target, reason: w.reason}, w.err.Error())
		}
	}
	if o.Decided {
		e.decision(object, o)
	}
}

func (e *Events) decision(object runtime.Object, o *Outcome) {
	d := &o.Decision
	t := topic{target: o.Target, verdict: d.Verdict, code: d.Code()}
	switch {
	case d.Verdict == scaling.Unknown:
		t.reason = ReasonUnknown
		e.emit(object, o, corev1.EventTypeWarning, t, d.Reason())
	case d.Verdict == scaling.Hold:
		t.reason = ReasonHeld
		e.emit(object, o, corev1.EventTypeNormal, t, d.Reason())
	case o.Write == Written || o.Write == Would:
		t.reason = actReason(o)
		message := d.Reason()
		switch {
		case o.Paused:
			message = "paused, nothing was written: " + message // while paused, each round decides the same: report it once per period
		case o.Write == Would:
			message = "dry run, nothing was written: " + message
			fallthrough
		default:
			delete(e.told, t)
		}
		e.emit(object, o, corev1.EventTypeNormal, t, message)
	}
}

func (e *Events) emit(object runtime.Object, o *Outcome, kind string, t topic, message string) {
	if _, told := e.told[t]; told {
		return
	}
	e.told[t] = o.At
	e.recorder.Event(object, kind, t.reason, shorten(message))
}

// actReason returns the reason for a decision that was written or, in a dry run or a pause, would have been.
func actReason(o *Outcome) string {
	up := o.Decision.Verdict == scaling.Up
	switch {
	case o.Write == Would && up:
		return ReasonWouldScaleUp
	case o.Write == Would:
		return ReasonWouldScaleDown
	case up:
		return ReasonScaledUp
	}
	return ReasonScaledDown
}

func shorten(s string) string {
	const dots = "..."
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage-len(dots)], "") + dots
}
