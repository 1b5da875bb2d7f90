package certs

import "errors"

// What a [SecretError] wraps. Each says what the caller is to do.
var (
	// ErrForeign means that the Secret has content that is not ours. It is left alone: choose another name, delete it,
	// or do not keep it and only read it.
	ErrForeign = errors.New("it is not kept by this program and is left alone: choose another name, delete it, or switch the keeping off")
	// ErrDamaged means that what is there cannot be used. A Keeper leaves it alone, a Reader stays with what it has.
	ErrDamaged = errors.New("it is damaged: mend it, or delete it to have it made anew")
	// ErrClock means that the clock does not fit what was made by it, or another clock. Nothing is done by such a clock.
	ErrClock = errors.New("set the clock right; if it is right and another was wrong, delete both Secrets to have them made anew")
	// ErrMissing means that there is nothing to read yet.
	ErrMissing = errors.New("there is no certificate yet")
)

// A SecretError says which key of which Secret, or which file of which folder, breaks which rule. It never holds a
// value.
type SecretError struct {
	Secret string // "Secret keda/keda-kaito-scaler-certs", "folder certs"; of Next "authority" or "material"
	Key    string // "server.key", "label ..."; empty if it is about the whole
	Rule   string // "must be the private key of server.crt"
	Err    error  // ErrForeign, ErrDamaged, ErrMissing; or what the file system said
}

// Error returns "Secret namespace/name: key: rule: what to do".
func (e *SecretError) Error() string {
	s := e.Secret
	if e.Key != "" {
		s += ": " + e.Key
	}
	s += ": " + e.Rule
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *SecretError) Unwrap() error { return e.Err }
