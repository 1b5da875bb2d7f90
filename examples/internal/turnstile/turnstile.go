// Package turnstile lets work begin in turn, so that nobody's work makes that of others wait.
package turnstile

import (
	"context"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// A Turnstile lets work begin: tenants take turns, and none has more than its part of the places. So the work of one with
// much of it, or with slow work, is late by itself.
type Turnstile struct {
	queue  *k8s.FairQueue[*turn]
	places chan struct{}
}

// A turn is work that waits or is done.
type turn struct {
	tenant string
	begin  chan struct{}   // has something for who still waits
	gone   <-chan struct{} // closed when nobody does
}

// New returns a Turnstile with so many places, and so many of one tenant, that works until it is closed.
func New(places, ofOne int) *Turnstile {
	t := &Turnstile{
		queue:  k8s.NewFairQueue(func(w *turn) string { return w.tenant }, ofOne).Workers(places),
		places: make(chan struct{}, places),
	}
	go t.work()
	return t
}

func (t *Turnstile) work() {
	for {
		t.places <- struct{}{}
		w, closed := t.queue.Get()
		if closed {
			return
		}
		select {
		case w.begin <- struct{}{}:
		case <-w.gone:
			t.end(w)
		}
	}
}

// Enter waits until work of a tenant may begin, and returns what is to be called at its end; nil if the context has ended
// before.
func (t *Turnstile) Enter(ctx context.Context, tenant string) (leave func()) {
	w := &turn{tenant: tenant, begin: make(chan struct{}), gone: ctx.Done()}
	t.queue.Add(w)
	select {
	case <-w.begin:
		return func() { t.end(w) }
	case <-ctx.Done():
		return nil
	}
}

func (t *Turnstile) end(w *turn) {
	t.queue.Done(w)
	<-t.places
}

// Close ends what New began. No work may wait or be done any more.
func (t *Turnstile) Close() { t.queue.ShutDown() }
