package controller

import (
	"context"
	"sync/atomic"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// How many rounds are made at a time, of all models and of those of one namespace, as by default in llmautoscaler. A round
// asks the API server one thing after the other, so that no more requests than these wait for their turn.
const (
	mostRounds = 64
	mostOfOne  = 16
)

// A turnstile lets rounds begin: namespaces take turns, and none has more than its part of the places. So the rounds of one
// with many models, or with slow pods, are late by themselves.
type turnstile struct {
	queue  *k8s.FairQueue[*turn]
	places chan struct{}
}

// A turn is a round that waits or is made.
type turn struct {
	namespace string
	settled   atomic.Bool // it may begin, or it was given up; the first of both counts
	begin     chan struct{}
}

// newTurnstile returns a turnstile that works until it is closed.
func newTurnstile() *turnstile {
	t := &turnstile{
		queue:  k8s.NewFairQueue(func(r *turn) string { return r.namespace }, mostOfOne).Workers(mostRounds),
		places: make(chan struct{}, mostRounds),
	}
	go t.work()
	return t
}

func (t *turnstile) work() {
	for {
		t.places <- struct{}{}
		r, closed := t.queue.Get()
		switch {
		case closed:
			return
		case r.settled.CompareAndSwap(false, true):
			close(r.begin)
		default:
			t.end(r)
		}
	}
}

// enter waits until a round of a namespace may begin, and returns what is to be called at its end; nil if the context has
// ended before.
func (t *turnstile) enter(ctx context.Context, namespace string) (leave func()) {
	r := &turn{namespace: namespace, begin: make(chan struct{})}
	t.queue.Add(r)
	select {
	case <-r.begin:
		return func() { t.end(r) }
	case <-ctx.Done():
	}
	if !r.settled.CompareAndSwap(false, true) {
		<-r.begin
		t.end(r)
	}
	return nil
}

func (t *turnstile) end(r *turn) {
	t.queue.Done(r)
	<-t.places
}

// close ends what newTurnstile began. No round may wait or be made any more.
func (t *turnstile) close() { t.queue.ShutDown() }
