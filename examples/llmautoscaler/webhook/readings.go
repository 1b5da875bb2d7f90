package webhook

import (
	"context"
	"sync"
)

// readAtOnce is how many pages are read at once, of all namespaces together.
const readAtOnce = 4

// readings bounds the pages that are read at once: one of each namespace, so that no namespace makes others wait, and
// readAtOnce in all.
type readings struct {
	mu  sync.Mutex
	all chan struct{}
	of  map[string]*reading
}

// A reading is the place of one namespace.
type reading struct {
	place chan struct{}
	users int // that have it or wait for it
}

// take waits for the namespace's place, and then for one of all, until ctx ends. give returns both.
func (r *readings) take(ctx context.Context, namespace string) (give func(), err error) {
	own, all := r.join(namespace)
	select {
	case own.place <- struct{}{}:
	case <-ctx.Done():
		r.leave(namespace)
		return nil, ctx.Err()
	}
	select {
	case all <- struct{}{}:
	case <-ctx.Done():
		<-own.place
		r.leave(namespace)
		return nil, ctx.Err()
	}
	return func() { <-all; <-own.place; r.leave(namespace) }, nil
}

func (r *readings) join(namespace string) (own *reading, all chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all, r.of = make(chan struct{}, readAtOnce), make(map[string]*reading)
	}
	own = r.of[namespace]
	if own == nil {
		own = &reading{place: make(chan struct{}, 1)}
		r.of[namespace] = own
	}
	own.users++
	return own, r.all
}

func (r *readings) leave(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[namespace].users--; r.of[namespace].users == 0 {
		delete(r.of, namespace)
	}
}
