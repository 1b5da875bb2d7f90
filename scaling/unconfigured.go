package scaling

import (
	"errors"
	"time"
)

// NotConfigured can say nothing: what should decide was not made by its New, or its New returned an error that nobody
// looked at.
const NotConfigured Code = "NotConfigured"

// unconfigured is the Policy that New returns without an algorithm, and a composition beside an error: it never acts,
// refuses every state, and marshals the one that it was given unchanged, so that nothing is overwritten.
type unconfigured struct{ envelope Envelope }

var errNotConfigured = errors.New("the policy was not configured")

func (u *unconfigured) Decide(_ time.Time, obs Observation) Decision {
	return UnknownAt(obs.SpecReplicas, NotConfigured, "")
}

func (u *unconfigured) Applied(time.Time, int32, int32) {}

func (u *unconfigured) MarshalJSON() ([]byte, error) {
	return u.envelope.Seal(Kind{}, func() (any, error) { return nil, &StateError{Err: errNotConfigured} })
}

func (u *unconfigured) UnmarshalJSON(data []byte) error {
	return u.envelope.Open(Kind{}, data, func([]byte) error { return errNotConfigured })
}
