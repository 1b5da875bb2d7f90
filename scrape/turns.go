package scrape

import (
	"context"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A page is long if it has more bytes than this: real ones reach 1 MB.
	longPage = 1 << 20
	// longPause is the shortest time between pieces, of 64 KiB, of long pages: 64 MiB per second for the whole process.
	longPause = time.Millisecond
)

const (
	// lead is how many bytes a tenant may be behind others and still catch up: some pages.
	lead = 1 << 20
	// leastPiece is the size that a shorter piece counts as: its turn has a cost too.
	leastPiece = 1 << 10
	// tagsLimit is for how many tenants the parsed bytes are remembered, at least of the latest ones.
	tagsLimit = 1 << 14
)

// A turnstile limits how many pieces of pages are parsed at the same time. Waiting pieces are served by tenant: first the
// tenant of which least was parsed lately, and of equal ones the one that waited first. In bytes, with V the highest start
// so far:
//
//	start = max(tag, V - lead)    tag = start + max(bytes, leastPiece)    V = max(V, start)
//
// A tenant whose pods send much delays a tenant whose pods send less only by the pieces that are being parsed when those of
// the other arrive. While a piece is the first of its tenant, at most lead and two pieces of each other tenant are parsed
// before it.
type turnstile struct {
	mu      sync.Mutex
	free    int
	most    int64              // V
	tags    map[string]int64   // entries of V - lead or less are removed at some time
	waiting map[string][]piece // by tenant
	turns   []string           // the tenants that wait
}

// A piece is a waiting piece of a page.
type piece struct {
	bytes int
	turn  chan struct{} // closed when it is its turn
}

func newTurnstile(free int) *turnstile {
	return &turnstile{free: free, tags: make(map[string]int64), waiting: make(map[string][]piece)}
}

// enter waits for a turn for so many bytes, or returns the error of ctx.
func (t *turnstile) enter(ctx context.Context, tenant string, bytes int) error {
	turn := t.join(tenant, bytes)
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		t.quit(tenant, turn)
		return ctx.Err()
	}
}

// join takes a turn, or returns a channel that is closed when there is one.
func (t *turnstile) join(tenant string, bytes int) (turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		t.count(tenant, bytes)
		return nil
	}
	turn = make(chan struct{})
	if len(t.waiting[tenant]) == 0 {
		t.turns = append(t.turns, tenant)
	}
	t.waiting[tenant] = append(t.waiting[tenant], piece{bytes, turn})
	return turn
}

// quit ends a wait. If the turn came at the same time, it goes to the next.
func (t *turnstile) quit(tenant string, turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.waiting[tenant]
	if i := slices.IndexFunc(queue, func(p piece) bool { return p.turn == turn }); i >= 0 {
		t.put(tenant, slices.Delete(queue, i, i+1))
		return
	}
	t.next()
}

// leave ends a turn.
func (t *turnstile) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next gives a turn to the tenant with the lowest start, if any tenant waits.
func (t *turnstile) next() {
	if len(t.turns) == 0 {
		t.free++
		return
	}
	at := 0
	for i, tenant := range t.turns {
		if t.start(tenant) < t.start(t.turns[at]) {
			at = i
		}
	}
	tenant := t.turns[at]
	t.turns = append(slices.Delete(t.turns, at, at+1), tenant)
	queue := t.waiting[tenant]
	t.count(tenant, queue[0].bytes)
	close(queue[0].turn)
	t.put(tenant, slices.Delete(queue, 0, 1))
}

func (t *turnstile) start(tenant string) int64 { return max(t.tags[tenant], t.most-lead) }

// count counts a piece that has its turn.
func (t *turnstile) count(tenant string, bytes int) {
	start := t.start(tenant)
	t.most = max(t.most, start)
	t.tags[tenant] = start + max(int64(bytes), leastPiece)
	if len(t.tags) > tagsLimit {
		maps.DeleteFunc(t.tags, func(_ string, tag int64) bool { return tag <= t.most-lead })
		if len(t.tags) > tagsLimit/2 {
			clear(t.tags)
		}
	}
}

func (t *turnstile) put(tenant string, queue []piece) {
	if len(queue) > 0 {
		t.waiting[tenant] = queue
		return
	}
	delete(t.waiting, tenant)
	t.turns = slices.DeleteFunc(t.turns, func(one string) bool { return one == tenant })
}

// turnstiles are the one of all pieces, and the one that pieces of long pages pass before it.
type turnstiles struct{ all, long *turnstile }

// newTurnstiles leaves one core to other work, if there are several.
func newTurnstiles() turnstiles {
	return turnstiles{newTurnstile(max(1, runtime.GOMAXPROCS(0)-1)), newTurnstile(1)}
}

// A bodyReader returns a page in pieces. It counts the bytes that a sweep reads, after decompression. It has a turn from the
// end of each Read to the beginning of the next, while the piece is parsed. For a compressed page it has a turn while it
// decompresses too, but not while it waits for the network.
type bodyReader struct {
	io.Reader

	ctx    context.Context //nolint:containedctx // that of the request: an io.Reader has none
	left   *atomic.Int64   // bytes that the sweep may still read
	tenant string
	turns  turnstiles
	zipped bool // Reader decompresses, which takes a turn
	read   int64
	paced  bool // it has a turn of long
	parsed bool // it has a turn of all
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.rest()
	if r.zipped {
		if err := r.enter(len(p)); err != nil {
			return 0, err
		}
	}
	n, err := r.Reader.Read(p)
	if r.left.Add(-int64(n)) < 0 {
		return n, errSweep
	}
	if r.read += int64(n); n == 0 || r.zipped {
		return n, err
	}
	if err := r.enter(n); err != nil {
		return n, err
	}
	return n, err
}

// enter waits for the turns for so many bytes.
func (r *bodyReader) enter(bytes int) error {
	if r.read > longPage {
		if err := r.turns.long.enter(r.ctx, r.tenant, bytes); err != nil {
			return err
		}
		r.paced = true
	}
	err := r.turns.all.enter(r.ctx, r.tenant, bytes)
	r.parsed = err == nil
	return err
}

// rest ends the turns.
func (r *bodyReader) rest() {
	if r.parsed {
		r.turns.all.leave()
	}
	if r.paced {
		wait(r.ctx, longPause)
		r.turns.long.leave()
	}
	r.parsed, r.paced = false, false
}

// compressed reads the compressed form of a page: it has no turn while it waits for the network.
type compressed struct {
	io.Reader

	page *bodyReader
}

func (r compressed) Read(p []byte) (int, error) {
	r.page.rest()
	n, err := r.Reader.Read(p)
	if n > 0 {
		if err := r.page.enter(n); err != nil {
			return n, err
		}
	}
	return n, err
}
