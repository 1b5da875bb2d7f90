package k8s

import (
	"errors"
	"fmt"
)

// The errors that a [TargetError] wraps. Each says what the caller should do.
var (
	// ErrConflict means that the target, or the stored state, has changed since it was read for the decision. Nothing was
	// written: read and decide again.
	ErrConflict = errors.New("changed since it was read: decide again")
	// ErrNotFound means that the object does not exist, or that it is a custom resource without a /scale subresource: the API
	// server's answer is the same.
	ErrNotFound = errors.New("not found: check namespace and name, and that a custom resource declares subresources.scale")
	// ErrNoScale means that the API server does not know the kind, or that the kind has no /scale subresource.
	ErrNoScale = errors.New("no /scale subresource: check apiVersion and kind; a custom resource declares it under subresources.scale")
	// ErrForbidden means that a permission is missing.
	ErrForbidden = errors.New("forbidden: allow get of the scale subresource, and update where it is written, to this service account")
	// ErrRefused means that the API server or a webhook refused the write. Nothing was written.
	ErrRefused = errors.New("refused: nothing was written")
	// ErrUncertain means that there was no clear answer: the write may have happened. The next read of the target shows
	// whether it has.
	ErrUncertain = errors.New("no clear answer: whether it was written shows when the target is read again")
	// ErrNoSelector means that the target's /scale has no pod selector. An empty selector would match every pod.
	ErrNoSelector = errors.New("/scale gives no pod selector: a custom resource declares labelSelectorPath and fills it in")
)

// isRefusal reports whether an error means that nothing was written and never will be. After any other error the write may
// have happened.
func isRefusal(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrNoScale)
}

// A TargetError is a failure to read or write one target. It unwraps to one of the errors above and to the error of the API
// server.
type TargetError struct {
	Target Target
	Doing  string // "read", "write replicas 3 -> 4 of"
	What   error  // ErrConflict, ErrNotFound, ...; nil if none fits
	Err    error  // the error of the API server or its client
}

// Error returns "cannot read Kind namespace/name: what to do: error of the API server".
func (e *TargetError) Error() string {
	switch {
	case e.What == nil:
		return fmt.Sprintf("cannot %s %s: %v", e.Doing, e.Target, e.Err)
	case e.Err == nil:
		return fmt.Sprintf("cannot %s %s: %v", e.Doing, e.Target, e.What)
	}
	return fmt.Sprintf("cannot %s %s: %v (%v)", e.Doing, e.Target, e.What, e.Err)
}

// Unwrap returns What and Err.
func (e *TargetError) Unwrap() []error { return []error{e.What, e.Err} }

// A SizeError says that a state is too large for its store.
type SizeError struct {
	Where string // "annotations of ScaledModel default/llama", "ConfigMap default/state"
	Size  int    // bytes with this state, together with the other contents
	Limit int    // maximum bytes that the API server accepts
}

// Error returns where, the size and the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("state does not fit: %s would have %d bytes, the limit is %d", e.Where, e.Size, e.Limit)
}
