// Package watch shows the shadows of an object what its rounds see: policies that watch a target which another one scales.
//
//	plan, err := build.Shadows(spec, raw, tuner)         // those that are wrong say so; the others can be carried out
//	w := watch.New(&watch.Config{Plan: plan, Observe: ..., Within: interval})
//	...
//	w.Show(now, scale, &seen, nil)                       // after each round, once its decision is written
//	for _, s := range w.States() { ... }                 // what each would ask for, or why it says nothing
//
// Nothing of them is waited for: they decide beside the rounds, pods that are asked for their sake alone are asked beside the rounds,
// and so is replayed what their counts would have attained. What is wrong with them ends nothing else. See package shadow for what
// they are shown.
package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/loop/shadow/replay"
	"github.com/inferscale/inferscale/scaling"
)

// An Observer asks pods until it is closed. *k8s.PodObserver is that of a cluster.
type Observer interface {
	k8s.Observer
	Close()
}

// A Config says who watches, and how pods are asked for them.
type Config struct {
	// Plan is what Build made of the document.
	Plan build.ShadowPlan
	// Observe makes what asks pods for what the object's own rounds do not read. It is called once, unless it fails, and never if
	// the Plan scrapes nothing.
	Observe func() (Observer, error)
	// Within is how long pods may be asked.
	Within time.Duration
	// Asks bounds how many objects' pods are asked at once, of all and of a Namespace; nil is no bound.
	Asks      *Asks
	Namespace string
	// Beside runs what nobody waits for; nil is in a goroutine.
	Beside func(func())
	// Replay says in whose turn their counts are replayed, and who is told of what failed. Its Capacity is that of the Plan;
	// without one nothing is replayed.
	Replay replay.Config
}

// Shadows are those of one object and target. They may be used by several goroutines; nil are none.
type Shadows struct {
	config Config
	ctx    context.Context //nolint:containedctx // of what asks pods, which outlives a round
	cancel context.CancelFunc

	mu       sync.Mutex
	shadows  *shadow.Shadows // nil if none can be carried out
	replays  *replay.Replays // nil where nobody says by what to judge
	observer Observer
	asking   bool
	closed   bool
	trouble  string // why nothing could be shown to them
	lacking  error  // why, of what the pods were asked for them, metrics have no value
}

// New returns the shadows of a plan, or nil if it has none.
func New(c *Config) *Shadows {
	if len(c.Plan.All) == 0 {
		return nil
	}
	s := &Shadows{config: *c}
	if s.config.Beside == nil {
		s.config.Beside = func(f func()) { go f() }
	}
	s.ctx, s.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // it ends with Close
	right := shadow.Config{Go: s.config.Beside, ColdStart: c.Plan.ColdStart}
	for i := range c.Plan.All {
		if c.Plan.All[i].Err == nil {
			right.Policies = append(right.Policies, c.Plan.All[i].Policy)
		}
	}
	if len(right.Policies) == 0 {
		return s
	}
	var err error
	if s.shadows, err = shadow.New(right); err != nil {
		s.shadows, s.trouble = nil, err.Error()
		return s
	}
	if of := c.Replay; c.Plan.Capacity != nil {
		of.Capacity = *c.Plan.Capacity
		if s.replays, err = replay.New(of); err != nil {
			s.replays = nil // the plan's Attainment says what is wrong with it
		}
	}
	return s
}

// Scrapes reports whether pods are asked for the shadows alone.
func (s *Shadows) Scrapes() bool { return s != nil && len(s.config.Plan.Scrape.Metrics) > 0 }

// Show shows them what a round saw, or has pods asked for what they need. Before that authorize, which may be nil, brings the
// credentials up to date: they may have been replaced, or taken back.
func (s *Shadows) Show(now time.Time, scale k8s.Scale, seen *k8s.Observed, authorize func() error) {
	if s == nil {
		return
	}
	if run := s.show(now, scale, seen, authorize); run != nil {
		s.config.Beside(run)
	}
}

// show returns what is to be done beside the rounds.
func (s *Shadows) show(now time.Time, scale k8s.Scale, seen *k8s.Observed, authorize func() error) (run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.shadows == nil || s.closed:
		return nil
	case !s.Scrapes():
		return s.look(now, scale, seen)
	case s.asking:
		s.trouble = "the pods that were asked in the round before have not answered yet"
		return nil
	}
	if err := s.ready(authorize); err != nil {
		s.trouble = "pods cannot be asked: " + err.Error()
		return nil
	}
	if !s.config.Asks.begin(s.config.Namespace) {
		s.trouble = "the pods of other objects are being asked for their shadows"
		return nil
	}
	s.asking = true
	return func() { s.ask(now, scale) }
}

// ready makes what asks pods ready.
func (s *Shadows) ready(authorize func() error) (err error) {
	if authorize != nil {
		err = authorize()
	}
	if err == nil && s.observer == nil {
		s.observer, err = s.config.Observe()
	}
	return err
}

// ask asks the pods, shows what they say, and replays what came if it is time to.
func (s *Shadows) ask(now time.Time, scale k8s.Scale) {
	if run := s.asked(now, scale); run != nil {
		run()
	}
}

func (s *Shadows) asked(now time.Time, scale k8s.Scale) (run func()) {
	ctx, cancel := context.WithTimeout(s.ctx, s.config.Within)
	defer cancel()
	defer s.config.Asks.end(s.config.Namespace)
	seen, err := observed(ctx, s.observer, scale)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking = false; s.closed {
		s.observer.Close()
		return nil
	}
	if err != nil {
		s.trouble = "pods were not observed: " + err.Error()
		return nil
	}
	s.lacking = seen.Err
	return s.look(now, scale, &seen)
}

func observed(ctx context.Context, observer Observer, scale k8s.Scale) (seen k8s.Observed, err error) {
	defer func() {
		if p := recover(); p != nil { // it ends no process
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return observer.Observe(ctx, []k8s.Scale{scale})
}

// look shows them what was seen, and returns what is to be run beside the rounds if a replay is due. The lock is held.
func (s *Shadows) look(now time.Time, scale k8s.Scale, seen *k8s.Observed) (run func()) {
	s.trouble = ""
	obs := scaling.Observation{SpecReplicas: scale.Replicas, ReadyReplicas: scale.StatusReplicas, Readings: seen.Readings, Histograms: seen.Histograms}
	if len(seen.Fleets) > 0 { // what was seen of the pods, and not what the target's status says
		obs.ReadyReplicas = seen.Fleets[0].Ready
	}
	s.shadows.Look(now, obs)
	if s.replays == nil {
		return nil
	}
	return s.replays.See(now, obs, s.shadows)
}

// Close ends what asks pods for them. They are shown nothing more.
func (s *Shadows) Close() {
	if s == nil {
		return
	}
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.closed = true; s.observer != nil && !s.asking {
		s.observer.Close()
	}
}

// Wishes are what those that can be carried out ask for.
func (s *Shadows) Wishes() []shadow.Wish {
	if s == nil || s.shadows == nil {
		return nil
	}
	return s.shadows.Wishes()
}

// Resume takes over what is known of shadows with the same names, as a process before this one had it.
func (s *Shadows) Resume(wishes []shadow.Wish) {
	if s != nil && s.shadows != nil {
		s.shadows.Resume(wishes)
	}
}

// A State is what there is to tell of one.
type State struct {
	shadow.Wish // with its Name at least
	// Err is what is wrong with it in the document: it is left out.
	Err error
	// Trouble is why it was shown nothing of the last round.
	Trouble string
	// Lacking is why metrics had no value that pods were asked for the shadows alone; it was shown the others.
	Lacking error
	// Attained is what its counts would have attained by a replay, and Actual what the real ones do; both are nil where they
	// are not known.
	Attained, Actual *capacity.Attainment
}

// States returns what there is to tell, in the order of the document. Two that have the same name are both there.
func (s *Shadows) States() []State {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	wishes := map[string]shadow.Wish{}
	for _, wish := range s.Wishes() {
		wishes[wish.Name] = wish
	}
	var found *replay.Found
	if s.replays != nil {
		found = s.replays.Found()
	}
	all := make([]State, len(s.config.Plan.All))
	for i := range all {
		p := &s.config.Plan.All[i]
		all[i] = State{Wish: wishes[p.Name], Err: p.Err, Trouble: s.trouble, Lacking: s.lacking}
		all[i].Name = p.Name
		if found == nil {
			continue
		}
		if a, ok := found.Shadows[p.Name]; ok {
			all[i].Attained, all[i].Actual = &a, &found.Actual
		}
	}
	return all
}
