package k8s

import (
	"context"
	"errors"
)

// A Store keeps states under keys. It never overwrites a state that the caller has not seen: Save is a compare-and-swap.
type Store interface {
	// Load returns the state stored under key, or nothing.
	Load(ctx context.Context, key string) ([]byte, error)
	// Save replaces old, as returned by Load or given to Save, with state. If the stored state is not old, the error is an
	// ErrStateConflict and nothing is written.
	Save(ctx context.Context, key string, old, state []byte) error
}

// A Pruner is a Store that can drop states that are no longer needed.
type Pruner interface {
	Store
	// SaveAndDrop is Save, and in the same write drops every other state for which drop returns true. If nothing is written,
	// nothing is dropped.
	SaveAndDrop(ctx context.Context, key string, old, state []byte, drop func(key string, state []byte) bool) error
}

// ErrStateConflict means that somebody else has written the state: two loops scale the same target. Nothing was written.
var ErrStateConflict = errors.New("stored state was written by somebody else: is a second controller at work? load it again")
