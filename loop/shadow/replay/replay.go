// Package replay finds out how many requests would have met the SLO with the counts of shadows. Every five minutes it simulates
// the last hour's requests with the counts of the real fleet and of each shadow, concurrently with the caller.
//
//	r, err := replay.New(replay.Config{Capacity: c})   // the SLO, and how fast a replica is
//	...
//	s.Look(now, obs)                                   // s is a *shadow.Shadows
//	if f := r.See(now, obs, s); f != nil {
//		go f()                                     // up to a second for each shadow that waits
//	}
//	found := r.Found()                                 // plain data, nil while it is not known
//
// Observations must have the metrics of capacity.Metrics; an observation that lacks one is ignored. Nothing is written. A panic
// in a simulation is reported to Config.Failed and stops nothing else. The memory of a Replays is bounded like that of a
// capacity.Recorder.
package replay

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/internal/turns"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/scaling"
)

// Every is the shortest time between two replays.
const Every = 5 * time.Minute

// span is how far back a replay goes. What ended longer ago says nothing of the present.
const span = time.Hour

// A Turn lets only one replay run at a time among all Replays that share it. Tenants take turns by how many requests were replayed for
// each; within a tenant the order is first in, first out. At most 32 pasts wait, of at most 0.6 MB each. When the queue is full, a
// tenant with less than an equal part of it replaces the newest past of the tenant with the most. A Replays without a place tries
// again with its next observation. The zero value is ready to use.
type Turn struct {
	mu    sync.Mutex
	queue turns.Queue[*job] // the work is counted in replayed requests
	busy  bool
}

// A job is a replay that waits or runs.
type job struct {
	of      *Replays
	past    capacity.Past
	actual  []shadow.Count
	trails  [][]shadow.Count
	wishes  []shadow.Wish
	dropped bool // guarded by the Turn's mu
}

// put queues a job, or returns nil if there is no room. begin says that no goroutine is working yet.
func (t *Turn) put(tenant string, gather func() *job) (j *job, begin bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	other, replaces, ok := t.queue.Room(tenant)
	if !ok {
		return nil, false
	}
	if replaces {
		other.dropped = true
	}
	j = gather()
	t.queue.Put(tenant, j)
	begin, t.busy = !t.busy, true
	return j, begin
}

// hasDropped reports whether a job has lost its place.
func (t *Turn) hasDropped(j *job) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return j.dropped
}

// work replays until no job waits.
func (t *Turn) work() {
	for {
		t.mu.Lock()
		tenant, j, ok := t.queue.Take()
		t.busy = ok
		t.mu.Unlock()
		if !ok {
			return
		}
		work := j.of.run(j)
		t.mu.Lock()
		t.queue.Did(tenant, 1+work)
		t.mu.Unlock()
	}
}

// A Config says how counts are judged.
type Config struct {
	// Capacity has the SLO and the server. Its bounds and goal are not used, and may be left out.
	Capacity capacity.Config
	// Turn is shared by Replays of which only one is to replay at a time. Nil means a Turn of its own.
	Turn *Turn
	// Tenant is whose turn a replay takes, such as a namespace.
	Tenant string
	// Failed is called after a panic, if it is not nil.
	Failed func(why string)
}

// A Found says how many requests would have met the SLO with which counts.
type Found struct {
	// Actual is for the real counts, according to the simulator (Attained) and as measured (Measured).
	Actual capacity.Attainment
	// Shadows is for the counts of each shadow, by name. It lacks shadows of which too little is known.
	Shadows map[string]capacity.Attainment
}

// Replays gathers the past of one fleet. It is safe for concurrent use, unlike the Shadows that it is given.
type Replays struct {
	config Config

	mu       sync.Mutex
	recorder *capacity.Recorder
	last     time.Time // when the last replay was asked for, or else when the first observation came
	job      *job      // the replay that waits or runs, nil for none
	found    *Found
}

// New returns Replays, or an error with every rule that the configuration breaks.
func New(c Config) (*Replays, error) {
	c.Capacity.Bounds = cmp.Or(c.Capacity.Bounds, scaling.Bounds{Max: 1})
	c.Capacity.Goal = cmp.Or(c.Capacity.Goal, 0.5)
	recorder, err := capacity.NewRecorder(c.Capacity)
	if err != nil {
		return nil, err
	}
	if c.Turn == nil {
		c.Turn = new(Turn)
	}
	return &Replays{config: c, recorder: recorder}, nil
}

// See records the observation that the shadows were shown. If a replay is due, it waits for its turn. The function that See then may
// return carries out every replay that waits, also of others that share the Turn: the caller must run it concurrently. See itself
// returns at once.
func (r *Replays) See(now time.Time, obs scaling.Observation, of *shadow.Shadows) (run func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found != nil && now.Sub(r.found.Actual.To).Abs() > span {
		r.found = nil // also where nothing is observed any more, as of a fleet at zero
	}
	if !r.recorder.See(now, obs) || !r.due(now) {
		return nil
	}
	j, begin := r.config.Turn.put(r.config.Tenant, func() *job {
		j := &job{of: r, wishes: of.Wishes()}
		var start time.Duration
		j.actual, j.trails, start = of.Trails()
		j.past = r.recorder.Past(start)
		return j
	})
	if j != nil {
		r.job, r.last = j, now
	}
	if !begin {
		return nil
	}
	return r.config.Turn.work
}

// due reports whether a replay is to be asked for. The caller holds the lock.
func (r *Replays) due(now time.Time) bool {
	if r.job != nil {
		return r.config.Turn.hasDropped(r.job) // it was due
	}
	if r.last.IsZero() { // nothing is known yet
		r.last = now
		return false
	}
	since := now.Sub(r.last)
	return since >= Every || since < 0
}

// run carries out a job, and returns how many requests it replayed.
func (r *Replays) run(j *job) (work float64) {
	found := r.replay(&j.past, j.actual, j.trails, j.wishes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.job, r.found = nil, found; found == nil {
		return 0
	}
	work = float64(found.Actual.Requests)
	for _, a := range found.Shadows {
		work += float64(a.Requests)
	}
	return work
}

// Found returns the results of the last replay, or nil if there was none within the last hour, or if too little was known for it. The
// caller must not change them.
func (r *Replays) Found() *Found {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

// replay replays the past with each of the counts. found is nil if too few requests came, or after a panic.
func (r *Replays) replay(past *capacity.Past, actual []shadow.Count, trails [][]shadow.Count, wishes []shadow.Wish) (found *Found) {
	defer func() {
		if p := recover(); p != nil {
			found = nil
			if r.config.Failed != nil {
				r.config.Failed(fmt.Sprint(p))
			}
		}
	}()
	found = &Found{Shadows: make(map[string]capacity.Attainment)}
	var known bool
	if found.Actual, known = past.Attained(&r.config.Capacity, counts(actual)); !known {
		return nil
	}
	for i, trail := range trails {
		if a, known := past.Attained(&r.config.Capacity, counts(trail)); known {
			found.Shadows[wishes[i].Name] = a
		}
	}
	return found
}

func counts(trail []shadow.Count) (all []capacity.Count) {
	for _, c := range trail {
		all = append(all, capacity.Count{At: c.At, Replicas: c.Replicas})
	}
	return all
}
