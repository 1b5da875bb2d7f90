package scaling

import (
	"cmp"
	"errors"
	"time"
)

// NotConfigured decides Unknown: the policy was not made by its New, or an error of its New was ignored.
const NotConfigured Code = "NotConfigured"

// unconfigured is the Policy that New returns for nil, and that the constructors of compositions return with an error. It never
// acts, refuses every state, and marshals the state that it was given unchanged, so that nothing is overwritten.
type unconfigured struct {
	envelope Envelope
	why      error // what MarshalJSON says; nil means errNotConfigured
}

var errNotConfigured = errors.New("the policy was not configured")

func (u *unconfigured) Decide(_ time.Time, obs Observation) Decision {
	return UnknownAt(obs.SpecReplicas, NotConfigured, "")
}

func (u *unconfigured) Applied(time.Time, int32, int32) {}

func (u *unconfigured) MarshalJSON() ([]byte, error) {
	return u.envelope.Seal(Kind{}, func() (any, error) { return nil, &StateError{Err: cmp.Or(u.why, errNotConfigured)} })
}

func (u *unconfigured) UnmarshalJSON(data []byte) error {
	return u.envelope.Open(Kind{}, data, func([]byte) error { return errNotConfigured })
}
