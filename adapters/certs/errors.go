package certs

import "errors"

// The errors that a [SecretError] wraps. Each says what the caller should do.
var (
	// ErrForeign means that the Secret has content that a Keeper has not written. The Keeper does not change it: choose
	// another name, delete the Secret, or do not run a Keeper and only read it.
	ErrForeign = errors.New("it is not kept by this program and is left alone: choose another name, delete it, or switch the keeping off")
	// ErrDamaged means that the content cannot be used. A Keeper does not change it; a Reader continues with the last good
	// version.
	ErrDamaged = errors.New("it is damaged: mend it, or delete it to have it made anew")
	// ErrClock means that the clock contradicts the existing certificates, or another clock. Nothing is done with such a
	// clock.
	ErrClock = errors.New("set the clock right; if it is right and another was wrong, delete both Secrets to have them made anew")
	// ErrMissing means that there is no content to read yet.
	ErrMissing = errors.New("there is no certificate yet")
)

// A SecretError names the key of a Secret, or the file of a folder, and the rule that it breaks. It never contains a value.
type SecretError struct {
	Secret string // "Secret keda/keda-kaito-scaler-certs", "folder certs"; in errors of Next "authority" or "material"
	Key    string // "server.key", "label ..."; empty if the error is about the whole
	Rule   string // "must be the private key of server.crt"
	Err    error  // ErrForeign, ErrDamaged, ErrMissing; or an error of the file system
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
