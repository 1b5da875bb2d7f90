// Package replay finds out how many requests would have met the SLO with the counts of shadows. Every five minutes it simulates
// the last hour's requests with the counts of the real fleet and of each shadow, concurrently with the caller.
//
//	r, err := replay.New(replay.Config{Capacity: c})   // the SLO, and how fast a replica is
//	...
//	s.Look(now, obs)                                   // s is a *shadow.Shadows
//	if f := r.See(now, obs, s); f != nil {
//		go f()                                     // up to a second for each shadow
//	}
//	found := r.Found()                                 // plain data, nil until it is known
//
// Observations must have the metrics of capacity.Metrics; an observation that lacks one is ignored. Nothing is written. A panic
// in a simulation is reported to Config.Failed and stops nothing else. The memory of a Replays is bounded like that of a
// capacity.Recorder.
package replay

import (
	"fmt"
	"sync"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/scaling"
)

// Every is the shortest time between two replays.
const Every = 5 * time.Minute

// A Turn lets only one replay run at a time among all Replays that share it.
type Turn chan struct{}

// NewTurn returns a Turn.
func NewTurn() Turn { return make(Turn, 1) }

// A Config says how counts are judged.
type Config struct {
	// Capacity has the SLO and the server. Its bounds and goal are not used.
	Capacity capacity.Config
	// Turn is shared by Replays of which only one is to replay at a time: if another one is replaying, a Replays tries again
	// with the next observation. Nil means a Turn of its own.
	Turn Turn
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
	last     time.Time // when the last replay began, or else when the first observation came
	running  bool
	found    *Found
}

// New returns Replays, or an error with every rule that the configuration breaks.
func New(c Config) (*Replays, error) {
	recorder, err := capacity.NewRecorder(c.Capacity)
	if err != nil {
		return nil, err
	}
	if c.Turn == nil {
		c.Turn = NewTurn()
	}
	return &Replays{config: c, recorder: recorder}, nil
}

// See records the observation that the shadows were shown. If a replay is due, it returns a function that the caller must run
// concurrently: the Turn is taken until that function returns. See itself returns at once.
func (r *Replays) See(now time.Time, obs scaling.Observation, of *shadow.Shadows) (run func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.recorder.See(now, obs) {
		return nil
	}
	if since := now.Sub(r.last); r.running || !r.last.IsZero() && since < Every && since >= 0 {
		return nil
	}
	if r.last.IsZero() { // nothing is known yet
		r.last = now
		return nil
	}
	select {
	case r.config.Turn <- struct{}{}:
	default:
		return nil
	}
	r.running, r.last = true, now
	actual, trails, start := of.Trails()
	past, wishes := r.recorder.Past(start), of.Wishes()
	return func() {
		defer func() { <-r.config.Turn }()
		found := r.replay(&past, actual, trails, wishes)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.running = false; found != nil {
			r.found = found
		}
	}
}

// Found returns the results of the last replay, or nil. The caller must not change them.
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
