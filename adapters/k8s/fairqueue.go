package k8s

import (
	"slices"
	"sync"
)

// A FairQueue is a work queue in which tenants take turns: of those that have something to do, each gets one item to work
// on before any gets a second, and none has more than a share at work at a time. So rounds that are slow, of a tenant whose
// pods do not answer, cost that tenant's rounds and nobody else's. Within a tenant the first comes first.
//
// It is a workqueue.TypedInterface of client-go, and keeps its rules: an item is worked on once at a time, and one that is
// added again before that is worked on once. It goes into workqueue.TypedDelayingQueueConfig, and that into
// workqueue.TypedRateLimitingQueueConfig:
//
//	queue := k8s.NewFairQueue(func(r reconcile.Request) string { return r.Namespace }, workers/4).Workers(workers)
type FairQueue[T comparable] struct {
	of      func(T) string
	share   int
	workers int

	mu      sync.Mutex
	change  *sync.Cond
	waiting map[string][]T // by tenant
	turns   []string       // of tenants that have something waiting
	dirty   map[T]struct{} // waiting, or to wait when it is done
	busy    map[T]struct{}
	active  map[string]int // items at work, by tenant
	down    bool
}

// NewFairQueue returns a FairQueue. The tenant of an item is what of says; a share below 1 is no limit.
func NewFairQueue[T comparable](of func(T) string, share int) *FairQueue[T] {
	q := &FairQueue[T]{
		of: of, share: share, waiting: make(map[string][]T), dirty: make(map[T]struct{}), busy: make(map[T]struct{}), active: make(map[string]int),
	}
	q.change = sync.NewCond(&q.mu)
	return q
}

// Workers says how many items are worked on at a time at most, and has half of them kept for tenants that have little at
// work: while half are busy, a tenant that has something at work gets more only up to an equal part of that half, of the
// tenants that have any and one more. So several tenants with slow rounds keep no other waiting either. Without it, or
// with 0, there is only the share. It is to be called before the queue is used, and returns the queue.
func (q *FairQueue[T]) Workers(n int) *FairQueue[T] {
	q.workers = n
	return q
}

// may reports whether a tenant may have another item at work.
func (q *FairQueue[T]) may(tenant string) bool {
	active := q.active[tenant]
	if q.share > 0 && active >= q.share {
		return false
	}
	half := q.workers / 2
	return active == 0 || half == 0 || len(q.busy) < half || active < half/(len(q.active)+1)
}

// Add adds an item, unless it waits already. One that is at work waits until that is done.
func (q *FairQueue[T]) Add(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.dirty[item]; ok || q.down {
		return
	}
	q.dirty[item] = struct{}{}
	if _, ok := q.busy[item]; !ok {
		q.push(item)
	}
}

func (q *FairQueue[T]) push(item T) {
	tenant := q.of(item)
	if len(q.waiting[tenant]) == 0 {
		q.turns = append(q.turns, tenant)
	}
	q.waiting[tenant] = append(q.waiting[tenant], item)
	q.change.Broadcast()
}

// Len returns how many items wait.
func (q *FairQueue[T]) Len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, items := range q.waiting {
		n += len(items)
	}
	return n
}

// Get waits for an item to work on; Done is to be called for it. After ShutDown it returns what still waits, and then true.
func (q *FairQueue[T]) Get() (item T, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if item, ok := q.next(); ok {
			return item, false
		}
		if q.down && len(q.turns) == 0 {
			return item, true
		}
		q.change.Wait()
	}
}

// next takes the first item of the first tenant that may have another one at work, whose turn is then the last.
func (q *FairQueue[T]) next() (item T, ok bool) {
	i := slices.IndexFunc(q.turns, q.may)
	if i < 0 {
		return item, false
	}
	tenant := q.turns[i]
	q.turns = slices.Delete(q.turns, i, i+1)
	items := q.waiting[tenant]
	item = items[0]
	if len(items) > 1 {
		q.waiting[tenant] = items[1:]
		q.turns = append(q.turns, tenant)
	} else {
		delete(q.waiting, tenant)
	}
	delete(q.dirty, item)
	q.busy[item] = struct{}{}
	q.active[tenant]++
	return item, true
}

// Done says that an item is no longer worked on.
func (q *FairQueue[T]) Done(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.busy[item]; !ok {
		return
	}
	delete(q.busy, item)
	tenant := q.of(item)
	if q.active[tenant]--; q.active[tenant] == 0 {
		delete(q.active, tenant)
	}
	if _, again := q.dirty[item]; again {
		q.push(item)
	}
	q.change.Broadcast()
}

// ShutDown makes Add do nothing, and Get end once nothing waits.
func (q *FairQueue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.down = true
	q.change.Broadcast()
}

// ShutDownWithDrain is ShutDown, and waits until nothing is worked on.
func (q *FairQueue[T]) ShutDownWithDrain() {
	q.ShutDown()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.busy) > 0 {
		q.change.Wait()
	}
}

// ShuttingDown reports whether ShutDown was called.
func (q *FairQueue[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.down
}
