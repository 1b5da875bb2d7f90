// Package replay says what the counts of shadows would have attained: the last hour's requests are simulated with each, every
// five minutes, beside whatever runs.
//
//	r, err := replay.New(replay.Config{Capacity: c})   // the SLO, and how fast a replica is
//	...
//	s.Look(now, obs)                                   // s is a *shadow.Shadows
//	if f := r.See(now, obs, s); f != nil {
//		go f()                                     // up to a second for each shadow
//	}
//	found := r.Found()                                 // plain data, nil until it is known
//
// Observations must have the metrics of capacity.Metrics; one that lacks some is passed over. Nothing is written, and what
// panics in a simulation is told as Config.Failed and ends nothing else. The memory of a Replays is bounded as that of a
// capacity.Recorder is.
package replay

import (
	"fmt"
	"sync"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/scaling"
)

// Every is how often the past is replayed at most.
const Every = 5 * time.Minute

// A Turn lets one replay run at a time, of all that share it.
type Turn chan struct{}

// NewTurn returns a Turn.
func NewTurn() Turn { return make(Turn, 1) }

// A Config says by what counts are judged.
type Config struct {
	// Capacity has the SLO and the server. Its bounds and goal are not looked at.
	Capacity capacity.Config
	// Turn is shared by those of which one is to replay at a time: one that finds another at it asks again when it sees the
	// next observation. Nil means one of its own.
	Turn Turn
	// Failed is told of a panic; nil means nobody is.
	Failed func(why string)
}

// A Found is what counts would have attained.
type Found struct {
	// Actual is what the real counts attain, by the simulator (Attained) and in truth (Measured).
	Actual capacity.Attainment
	// Shadows is what each shadow's counts would have attained, by its name. One of which too little is known is not in it.
	Shadows map[string]capacity.Attainment
}

// Replays gathers the past of one fleet. It is safe for concurrent use; the Shadows that it is given are not.
type Replays struct {
	config Config

	mu       sync.Mutex
	recorder *capacity.Recorder
	last     time.Time // when one was begun, or the first observation came
	running  bool
	found    *Found
}

// New returns Replays, or every rule that the configuration breaks.
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

// See notes what the shadows were shown, and returns what is to be run beside, if a replay is due: it must be run, as the turn
// is taken until it is done. It returns at once.
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

// Found returns what was found last, or nil. It is not to be changed.
func (r *Replays) Found() *Found {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

// replay replays the past with each of the counts. It is nothing if too little came, or on trouble.
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
