package saturation

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// live is a Scaler with its state and its working memory: the common part of Group and Single.
type live struct {
	scaler   Scaler
	state    State
	analysis Analysis
	plan     Plan
	envelope scaling.Envelope
}

// Kind names the algorithm and the version of its state.
func (s Scaler) Kind() scaling.Kind { return scaling.Kind{Name: "saturation", Version: 1} }

// decide decides on the last analysis.
func (l *live) decide(now time.Time, variants []Variant) {
	if l.envelope.Refused() {
		l.plan.refuse(&l.analysis, variants, scaling.StateRefused, l.scaler.Kind().Name)
		return
	}
	l.state = l.scaler.Decide(l.state, now, &l.analysis, variants, &l.plan)
}

// warnUnmatched warns of the readings, if no replica has a value and neither of the two metrics is among them.
func warnUnmatched(d *scaling.Decision, readings []scaling.Reading, kv, queue string) {
	if _, blind := d.Find(NoData); blind && d.Verdict == scaling.Unknown {
		d.WarnUnmatched(&scaling.Observation{Readings: readings}, func(name string) bool { return name == kv || name == queue })
	}
}

// Applied records that one target went from one count to another at now: the down stabilization restarts.
func (l *live) Applied(now time.Time, from, to int32) {
	if !l.envelope.Refused() {
		l.state = l.scaler.Applied(l.state, now, from, to)
	}
}

// MarshalJSON writes the state with its kind and version, or the bytes that were refused.
func (l *live) MarshalJSON() ([]byte, error) {
	return l.envelope.Seal(l.scaler.Kind(), func() (any, error) { return l.state, nil })
}

// UnmarshalJSON restores what MarshalJSON wrote. It refuses a state of another kind, of a newer version or with damage, with
// a *scaling.StateError. From then on every decision is Unknown and the refused bytes are marshalled unchanged, until a good
// state is given.
func (l *live) UnmarshalJSON(data []byte) error {
	return l.envelope.Open(l.scaler.Kind(), data, func(stored []byte) error {
		state, err := scaling.DecodeState[State](stored)
		if err == nil {
			l.state = state
		}
		return err
	})
}
