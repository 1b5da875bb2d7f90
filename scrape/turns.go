package scrape

import (
	"context"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A page is long beyond so many bytes: real ones reach 1 MB.
	longPage = 1 << 20
	// longPause lets pieces of long pages, of 64 KiB, follow each other no faster: 64 MiB a second, in all of a process.
	longPause = time.Millisecond
)

// A turnstile lets so many pieces of pages be parsed at a time. Who waits is served by tenants in turn, so that what a
// tenant's pods send costs others at most the piece that is being parsed.
type turnstile struct {
	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{} // by tenant
	turns   []string                   // of tenants who wait
}

func newTurnstile(free int) *turnstile {
	return &turnstile{free: free, waiting: make(map[string][]chan struct{})}
}

// enter waits for a turn, or returns the error of ctx.
func (t *turnstile) enter(ctx context.Context, tenant string) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if len(t.waiting[tenant]) == 0 {
		t.turns = append(t.turns, tenant)
	}
	t.waiting[tenant] = append(t.waiting[tenant], turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.waiting[tenant]
	if i := slices.Index(queue, turn); i >= 0 {
		t.put(tenant, slices.Delete(queue, i, i+1))
		return ctx.Err()
	}
	t.next() // it came at the same time
	return ctx.Err()
}

// leave ends a turn.
func (t *turnstile) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next gives a turn to the first in turn, or nobody.
func (t *turnstile) next() {
	if len(t.turns) == 0 {
		t.free++
		return
	}
	tenant := t.turns[0]
	t.turns = append(slices.Delete(t.turns, 0, 1), tenant)
	queue := t.waiting[tenant]
	close(queue[0])
	t.put(tenant, slices.Delete(queue, 0, 1))
}

func (t *turnstile) put(tenant string, queue []chan struct{}) {
	if len(queue) > 0 {
		t.waiting[tenant] = queue
		return
	}
	delete(t.waiting, tenant)
	t.turns = slices.DeleteFunc(t.turns, func(one string) bool { return one == tenant })
}

// turnstiles are those of pages, and of long ones.
type turnstiles struct{ all, long *turnstile }

func newTurnstiles() turnstiles {
	return turnstiles{newTurnstile(runtime.GOMAXPROCS(0)), newTurnstile(1)}
}

// A bodyReader hands a page over by pieces. It counts what a sweep reads, after decompression, and has a turn from the
// end of each Read to the begin of the next, while the piece is parsed.
type bodyReader struct {
	io.Reader

	ctx    context.Context //nolint:containedctx // that of the request: an io.Reader has none
	left   *atomic.Int64   // bytes that the sweep may still read
	tenant string
	turns  turnstiles
	read   int64
	turn   *turnstile // that it has, if any
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.rest()
	n, err := r.Reader.Read(p)
	if r.left.Add(-int64(n)) < 0 {
		return n, errSweep
	}
	if r.read += int64(n); n == 0 {
		return n, err
	}
	turn := r.turns.all
	if r.read > longPage {
		turn = r.turns.long
	}
	if err := turn.enter(r.ctx, r.tenant); err != nil {
		return n, err
	}
	r.turn = turn
	return n, err
}

// rest ends the turn.
func (r *bodyReader) rest() {
	if r.turn == nil {
		return
	}
	if r.turn == r.turns.long {
		wait(r.ctx, longPause)
	}
	r.turn.leave()
	r.turn = nil
}
