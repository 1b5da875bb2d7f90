package scalingtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// An Event is a line of a step table: the observation at a time, and the expected decision.
type Event struct {
	At       time.Duration // since Start
	Readings []scaling.Reading
	Spec     Count // the count to which someone else has scaled the target; if not set, the count after the previous event
	Ready    Count // if not set, all replicas are ready
	// Want is the verdict, the code, the count and the reason, as far as they are given: "Up", "Up AboveHigh", "Up AboveHigh
	// 5", "Up AboveHigh 5 queue lower=12 > high=10". Empty means any decision.
	Want   string
	Refuse bool // the write fails
}

// At returns an event with readings at a time.
func At(at time.Duration, want string, readings ...scaling.Reading) Event {
	return Event{At: at, Want: want, Readings: readings}
}

// On returns the event with a count to which someone else has scaled the target.
func (e Event) On(spec int32) Event {
	e.Spec = CountOf(spec)
	return e
}

// WithReady returns the event with this many ready replicas.
func (e Event) WithReady(ready int32) Event {
	e.Ready = CountOf(ready)
	return e
}

// Refused returns the event with a failing write.
func (e Event) Refused() Event {
	e.Refuse = true
	return e
}

// Steps drives a policy, which starts at spec replicas, through events and compares its decisions with what each event
// wants. Requested changes are carried out and reported, unless they are refused. Each decision must be explained, and after
// each event the policy is stored and restored.
func Steps(tb testing.TB, p scaling.Policy, spec int32, events ...Event) {
	tb.Helper()
	for _, e := range events {
		if e.Spec.Set {
			spec = e.Spec.N
		}
		ready := spec
		if e.Ready.Set {
			ready = e.Ready.N
		}
		now := Start().Add(e.At)
		d := p.Decide(now, scaling.Observation{SpecReplicas: spec, ReadyReplicas: ready, Readings: e.Readings})
		got := fmt.Sprintf("%s %s %d %s", d.Verdict, d.Code(), d.Replicas, because(&d))
		if e.Want != "" && !strings.HasPrefix(got+" ", e.Want+" ") {
			tb.Errorf("at %s: want %q, got %q\n%s", e.At, e.Want, got, d.Explain())
		}
		if err := Explained(&d); err != nil {
			tb.Errorf("at %s: %v\n%s", e.At, err, d.Explain())
		}
		if d.Acts() && !e.Refuse {
			p.Applied(now, spec, d.Replicas)
			spec = d.Replicas
		}
		state, err := p.MarshalJSON()
		require.NoError(tb, err, "at %s", e.At)
		require.NoError(tb, p.UnmarshalJSON(state), "at %s", e.At)
	}
}

// because returns the reason of the step that decided.
func because(d *scaling.Decision) string {
	text := ""
	for _, s := range d.Steps() {
		if s.Branch == 0 {
			text = s.Because()
		}
	}
	return text
}
