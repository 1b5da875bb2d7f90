package k8s

import (
	"errors"
	"fmt"
)

// What a [TargetError] wraps. Each says what the caller is to do.
var (
	// ErrConflict means that the target, or the stored state, is no longer what the decision was made on. Nothing was
	// written: read again and decide again.
	ErrConflict = errors.New("changed since it was read: decide again")
	// ErrNotFound means that there is no such object, or that its custom resource has no /scale subresource: the API
	// server answers both alike.
	ErrNotFound = errors.New("not found: check namespace and name, and that a custom resource declares subresources.scale")
	// ErrNoScale means that the kind is not known to the API server or has no /scale subresource.
	ErrNoScale = errors.New("no /scale subresource: check apiVersion and kind; a custom resource declares it under subresources.scale")
	// ErrForbidden means that the permission is missing.
	ErrForbidden = errors.New("forbidden: allow get of the scale subresource, and update where it is written, to this service account")
	// ErrRefused means that the API server or a webhook judged the write and said no. Nothing was written.
	ErrRefused = errors.New("refused: nothing was written")
	// ErrUncertain means that no answer came: the write may have happened, and the next reading of the target tells.
	ErrUncertain = errors.New("no clear answer: whether it was written shows when the target is read again")
	// ErrNoSelector means that the target's /scale names no pods. An empty selector would match every pod.
	ErrNoSelector = errors.New("/scale gives no pod selector: a custom resource declares labelSelectorPath and fills it in")
)

// isRefusal reports whether an error says that nothing was written and never will be. What no error of these says is not
// known to have failed.
func isRefusal(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrNoScale)
}

// A TargetError is a failure to read or write one target. It unwraps to one of the errors above and to that of the
// API server.
type TargetError struct {
	Target Target
	Doing  string // "read", "write replicas 3 -> 4 of"
	What   error  // ErrConflict, ErrNotFound, ...; nil if none fits
	Err    error  // what the API server or its client said
}

// Error returns "cannot read Kind namespace/name: what to do: what was said".
func (e *TargetError) Error() string {
	switch {
	case e.What == nil:
		return fmt.Sprintf("cannot %s %s: %v", e.Doing, e.Target, e.Err)
	case e.Err == nil:
		return fmt.Sprintf("cannot %s %s: %v", e.Doing, e.Target, e.What)
	}
	return fmt.Sprintf("cannot %s %s: %v (%v)", e.Doing, e.Target, e.What, e.Err)
}

// Unwrap returns the two causes.
func (e *TargetError) Unwrap() []error { return []error{e.What, e.Err} }

// A SizeError says that a state is too large for where it is to be stored.
type SizeError struct {
	Where string // "annotations of ScaledModel default/llama", "ConfigMap default/state"
	Size  int    // bytes it would take, together with what is there already
	Limit int    // bytes that the API server accepts
}

// Error returns where, the size and the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("state does not fit: %s would have %d bytes, the limit is %d", e.Where, e.Size, e.Limit)
}
