package capacity

import (
	"sync"

	"github.com/inferscale/inferscale/internal/turns"
)

// A Shared carries out the tunings of many policies, one at a time and beside their decisions. Tenants take turns by how much was
// replayed for each, so that a tenant waits for at most the one tuning of another that is running; within a tenant the order is
// first in, first out. At most 32 pasts wait, of at most 0.6 MB each. When the queue is full, a tenant with less than an equal part
// of it replaces the newest past of the tenant with the most; the policy of that past asks again at its next decision. The zero
// value is ready to use. A Shared has no goroutine while there is nothing to do.
type Shared struct {
	// Go runs a function beside its caller; nil means a goroutine.
	Go func(func())

	mu    sync.Mutex
	queue turns.Queue[*job] // the work is counted in replayed requests
	busy  bool
}

// mostReplicas is how many replicas a shared replay may have, or twice the ready ones if that is more.
const mostReplicas = 1024

// A job is a requested tuning.
type job struct {
	past    Past
	config  Config
	tuning  Tuning
	done    bool
	dropped bool
}

// Tuner returns the Tuner of one policy of a tenant.
func (s *Shared) Tuner(tenant string) Tuner { return &turn{shared: s, tenant: tenant} }

// A turn is the Tuner of one policy.
type turn struct {
	shared *Shared
	tenant string
	job    *job
}

// Tune asks for a tuning, or returns one that is done.
func (t *turn) Tune(c *Config, past func() Past) (Tuning, bool) {
	s := t.shared
	tuning, done, begin := t.ask(c, past)
	if begin {
		if s.Go != nil {
			s.Go(s.run)
		} else {
			go s.run()
		}
	}
	return tuning, done
}

// ask returns a tuning that is done, or queues one; begin says that no goroutine is working yet.
func (t *turn) ask(c *Config, past func() Past) (tuning Tuning, done, begin bool) {
	s := t.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	switch j := t.job; {
	case j == nil || j.dropped:
	case j.done:
		t.job = nil
		return j.tuning, true, false
	default:
		return Tuning{}, false, false
	}
	t.job = nil
	other, replaces, ok := s.queue.Room(t.tenant)
	if !ok {
		return Tuning{}, false, false
	}
	if replaces {
		other.dropped = true
	}
	t.job = &job{past: past(), config: *c}
	s.queue.Put(t.tenant, t.job)
	begin, s.busy = !s.busy, true
	return Tuning{}, false, begin
}

// run works until the queue is empty.
func (s *Shared) run() {
	for {
		s.mu.Lock()
		tenant, j, ok := s.queue.Take()
		if !ok {
			s.busy = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		tuning := j.tune()
		s.mu.Lock()
		s.queue.Did(tenant, 1+tuning.Spent)
		j.tuning, j.done, j.past = tuning, true, Past{}
		s.mu.Unlock()
	}
}

// tune carries out the tuning, with bounded replicas. If it panics, the policy keeps its last tuning.
func (j *job) tune() (t Tuning) {
	defer func() {
		if recover() != nil {
			t = j.past.Last
		}
	}()
	ready := int32(0)
	if n := len(j.past.Samples); n > 0 {
		ready = j.past.Samples[n-1].Ready
	}
	most := max(mostReplicas, min(ready, 1<<20)*2)
	j.config.Bounds.Max = min(j.config.Bounds.Max, most)
	j.config.Bounds.Min = min(j.config.Bounds.Min, j.config.Bounds.Max)
	return j.past.Tune(&j.config)
}
