package scrape

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape/internal/page"
)

// A Budget bounds the memory for the pages of all its Scrapers, and shares it between tenants: half of it for pages that are
// being read, half for what is remembered of pods. A process should have one Budget, which then bounds the process. Its
// methods may be called by several goroutines.
//
// In each half, a tenant gets what it asks for while at most half of it is used. Of the rest it gets up to an equal share,
// counting the tenants that hold or wait for memory and one more. So no tenant can take all of it. Of the tenants that wait,
// the one that holds least is served first.
//
// Pages are decompressed and parsed in pieces of 64 KiB. One core is left free if there are several. Of the tenants that
// wait, the next one is that of which least was parsed lately. The part of a page beyond 1 MiB, which real pages do not
// reach, is read at 64 MiB per second for all pages together.
type Budget struct {
	mu            sync.Mutex
	reading, kept pot
	turns         turnstiles
	workers       chan *worker // that read no page at present
	spares        page.Spares
}

const (
	defaultBudget = 64 << 20
	leastBudget   = 4 * page.Most
	// keptWorkers is how many workers stay for the next pages, with 128 KiB each. A sync.Pool would lose them at every second
	// garbage collection.
	keptWorkers = 32
)

// NewBudget returns a budget of so many bytes, at least 32 MiB; 0 means 64 MiB.
func NewBudget(bytes int64) (*Budget, error) {
	bytes = cmp.Or(bytes, defaultBudget)
	var e scaling.FieldErrors
	e.Check(bytes >= leastBudget && bytes < 1<<50, "budget", bytes, "must be at least 32 MiB, or 0 for 64 MiB")
	if err := e.Err(); err != nil {
		return nil, err
	}
	return newBudget(bytes), nil
}

func newBudget(bytes int64) *Budget {
	return &Budget{
		turns:   newTurnstiles(),
		workers: make(chan *worker, keptWorkers),
		reading: pot{size: bytes / 2, accounts: make(map[string]account)},
		kept:    pot{size: bytes / 2, accounts: make(map[string]account)},
	}
}

// Acquire reserves bytes for a page before it is read. It waits until there is room for the tenant, or returns the error of
// ctx.
func (b *Budget) Acquire(ctx context.Context, tenant string, bytes int64) error {
	b.mu.Lock()
	if len(b.reading.accounts[tenant].queue) == 0 && b.reading.take(tenant, bytes) {
		b.mu.Unlock()
		return nil
	}
	w := &waiter{bytes: bytes, granted: make(chan struct{})}
	b.reading.wait(tenant, w)
	b.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.granted:
		b.reading.give(tenant, bytes)
	default:
		b.reading.leave(tenant, w)
	}
	return ctx.Err()
}

// TryAcquire reserves more bytes for a page that is being read, if there is room for the tenant at once.
func (b *Budget) TryAcquire(tenant string, bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reading.take(tenant, bytes)
}

// Release frees what was acquired.
func (b *Budget) Release(tenant string, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading.give(tenant, bytes)
}

// keep changes the memory of a tenant's remembered pods by bytes. A decrease is always granted.
func (b *Budget) keep(tenant string, bytes int64) bool {
	if bytes == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes < 0 {
		b.kept.give(tenant, -bytes)
		return true
	}
	return b.kept.take(tenant, bytes)
}

// A pot is memory that tenants share.
type pot struct {
	size, used int64
	accounts   map[string]account // of tenants that hold or wait for memory
}

type account struct {
	held  int64
	queue []*waiter
}

type waiter struct {
	bytes   int64
	granted chan struct{} // closed when the bytes are granted
}

// fits reports whether a tenant may have so many bytes more now.
func (p *pot) fits(tenant string, bytes int64) bool {
	held := p.accounts[tenant].held
	return p.used+bytes <= p.size && (held == 0 || p.used+bytes <= p.size/2 || held+bytes <= p.size/2/int64(len(p.accounts)+1))
}

func (p *pot) take(tenant string, bytes int64) bool {
	if !p.fits(tenant, bytes) {
		return false
	}
	p.used += bytes
	a := p.accounts[tenant]
	a.held += bytes
	p.accounts[tenant] = a
	return true
}

// give frees bytes and serves waiting requests, those of the tenant that holds least first.
func (p *pot) give(tenant string, bytes int64) {
	p.used -= bytes
	a := p.accounts[tenant]
	a.held -= bytes
	p.put(tenant, a)
	p.serve()
}

func (p *pot) put(tenant string, a account) {
	if a.held == 0 && len(a.queue) == 0 {
		delete(p.accounts, tenant)
		return
	}
	p.accounts[tenant] = a
}

func (p *pot) serve() {
	for {
		next, found := "", false
		for t, a := range p.accounts {
			if len(a.queue) > 0 && p.fits(t, a.queue[0].bytes) && (!found || a.held < p.accounts[next].held) {
				next, found = t, true
			}
		}
		if !found {
			return
		}
		a := p.accounts[next]
		w := a.queue[0]
		a.queue = a.queue[1:]
		p.accounts[next] = a
		p.take(next, w.bytes)
		close(w.granted)
	}
}

func (p *pot) wait(tenant string, w *waiter) {
	a := p.accounts[tenant]
	a.queue = append(a.queue, w)
	p.accounts[tenant] = a
}

// leave removes a waiter that was not granted anything. The waiter behind it may need less.
func (p *pot) leave(tenant string, w *waiter) {
	a := p.accounts[tenant]
	a.queue = slices.DeleteFunc(a.queue, func(x *waiter) bool { return x == w })
	p.put(tenant, a)
	p.serve()
}

// A lease is the memory of a page from a budget, and the worker that reads the page.
type lease struct {
	budget *Budget
	tenant string
	left   *atomic.Int64 // bytes that the sweep may still read
	held   int64
	*worker
}

// begin waits for the memory of a page.
func (l *lease) begin(ctx context.Context) *Error {
	if err := l.budget.Acquire(ctx, l.tenant, page.Start); err != nil {
		return &Error{Reason: Memory, Err: fmt.Errorf("the budget had no room in time: %w", err)}
	}
	l.held = page.Start
	select {
	case l.worker = <-l.budget.workers:
	default:
		l.worker = newWorker(&l.budget.spares)
	}
	return nil
}

// reader returns the reader of a page.
func (l *lease) reader(ctx context.Context, body io.Reader) *bodyReader {
	return &bodyReader{Reader: body, ctx: ctx, left: l.left, tenant: l.tenant, turns: l.budget.turns}
}

func (l *lease) more(bytes int) bool {
	if !l.budget.TryAcquire(l.tenant, int64(bytes)) {
		return false
	}
	l.held += int64(bytes)
	return true
}

// end frees everything.
func (l *lease) end() {
	if l.worker != nil {
		select {
		case l.budget.workers <- l.release():
		default:
		}
		l.budget.Release(l.tenant, l.held)
	}
}
