package k8s

import (
	"slices"
	"sync"
)

// A FairQueue is a work queue in which tenants take turns: each tenant with waiting items gets one of them processed before
// any tenant gets a second, and no tenant has more than its share in process at a time. So the slow rounds of a tenant whose
// pods do not answer delay only that tenant's rounds. The items of one tenant are processed in their order.
//
// It is a workqueue.TypedInterface of client-go and keeps its rules: an item is never processed twice at the same time, and
// an item that is added several times before it is processed is processed once. It is the Queue of a
// workqueue.TypedDelayingQueueConfig, whose queue is the DelayingQueue of a workqueue.TypedRateLimitingQueueConfig:
//
//	queue := k8s.NewFairQueue(func(r reconcile.Request) string { return r.Namespace }, workers/4).Workers(workers)
type FairQueue[T comparable] struct {
	of      func(T) string
	share   int
	workers int

	mu      sync.Mutex
	change  *sync.Cond
	waiting map[string][]T // by tenant
	turns   []string       // tenants with waiting items, in their order
	dirty   map[T]struct{} // waiting, or added again while in process
	busy    map[T]struct{}
	active  map[string]int // items in process, by tenant
	down    bool
}

// NewFairQueue returns a FairQueue. The function of returns the tenant of an item. share is the most items that a tenant may
// have in process; below 1 there is no limit.
func NewFairQueue[T comparable](of func(T) string, share int) *FairQueue[T] {
	q := &FairQueue[T]{
		of: of, share: share, waiting: make(map[string][]T), dirty: make(map[T]struct{}), busy: make(map[T]struct{}), active: make(map[string]int),
	}
	q.change = sync.NewCond(&q.mu)
	return q
}

// Workers tells the queue the number of workers, and reserves half of them for tenants with few items in process. While at
// least half of the workers are busy, a tenant with items in process gets another one only if it has fewer than half the
// workers divided by the number of tenants with items in process plus one. So even several tenants with slow rounds do not
// block the others. Without Workers, or with 0, only the share limits tenants. It must be called before the queue is used,
// and returns the queue.
func (q *FairQueue[T]) Workers(n int) *FairQueue[T] {
	q.workers = n
	return q
}

// may reports whether a tenant may have another item in process.
func (q *FairQueue[T]) may(tenant string) bool {
	active := q.active[tenant]
	if q.share > 0 && active >= q.share {
		return false
	}
	half := q.workers / 2
	return active == 0 || half == 0 || len(q.busy) < half || active < half/(len(q.active)+1)
}

// Add adds an item, unless it waits already. An item in process waits until it is done.
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

// Len returns the number of waiting items.
func (q *FairQueue[T]) Len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, items := range q.waiting {
		n += len(items)
	}
	return n
}

// Get waits for an item to process; the caller must call Done for it. After ShutDown it returns the items that still wait,
// and then true.
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

// next takes the first item of the first tenant that may have another one in process. That tenant then goes to the end of the
// line.
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

// Forget removes an item that waits, or that was added again while in process.
func (q *FairQueue[T]) Forget(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.dirty, item)
	tenant := q.of(item)
	items := q.waiting[tenant]
	i := slices.Index(items, item)
	if i < 0 {
		return
	}
	if items = slices.Delete(items, i, i+1); len(items) > 0 {
		q.waiting[tenant] = items
		return
	}
	delete(q.waiting, tenant)
	q.turns = slices.DeleteFunc(q.turns, func(t string) bool { return t == tenant })
	q.change.Broadcast()
}

// Done marks an item as processed.
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

// ShutDown makes Add do nothing, and makes Get return true once no item waits.
func (q *FairQueue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.down = true
	q.change.Broadcast()
}

// ShutDownWithDrain is ShutDown, and waits until no item is in process.
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
