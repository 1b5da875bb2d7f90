package k8s

import (
	"context"
	"errors"
)

// A Store keeps state under keys. It never overwrites what it did not see: Save is a compare-and-swap.
type Store interface {
	// Load returns what is stored under key, or nothing.
	Load(ctx context.Context, key string) ([]byte, error)
	// Save replaces old, as returned by Load or given to Save, by state. Where something else than old is stored, the
	// error is an ErrStateConflict and nothing is written.
	Save(ctx context.Context, key string, old, state []byte) error
}

// A Pruner is a Store that drops what nobody will ask for any more.
type Pruner interface {
	Store
	// SaveAndDrop is Save, which in the same write drops every other state of which drop says so. Where nothing is written,
	// nothing is dropped.
	SaveAndDrop(ctx context.Context, key string, old, state []byte, drop func(key string, state []byte) bool) error
}

// ErrStateConflict means that somebody else has written the state: two loops drive one target. Nothing was written.
var ErrStateConflict = errors.New("stored state was written by somebody else: is a second controller at work? load it again")
