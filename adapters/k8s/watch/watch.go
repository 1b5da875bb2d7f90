// Package watch runs the shadows of an object: policies that only watch a target which another policy scales. It shows them
// what the object's rounds observe.
//
//	plan, err := build.Shadows(spec, nil, tuner)         // a shadow that is wrong has its Err; the others can run
//	w := watch.New(&watch.Config{Plan: plan, Observe: ..., Within: interval})
//	...
//	w.Show(now, scale, &seen, nil)                       // after each round, once its decision is written
//	for _, s := range w.States() { ... }                 // what each would ask for, or why that is unknown
//
// The rounds never wait for the shadows: their decisions, the scrapes for them alone and the replays of what their counts
// would have attained run concurrently with the rounds. Errors in shadows affect nothing else. See package shadow for what
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

// An Observer scrapes pods until it is closed. *k8s.PodObserver is the Observer of a cluster.
type Observer interface {
	k8s.Observer
	Close()
}

// A Config has the shadows, and how pods are scraped for them.
type Config struct {
	// Plan is the result of build.Shadows.
	Plan build.ShadowPlan
	// Observe makes the Observer for the metrics that the object's own rounds do not read. It is called until it succeeds
	// once, and never if the Plan scrapes nothing.
	Observe func() (Observer, error)
	// Within is the time limit for scraping the pods.
	Within time.Duration
	// Asks bounds the number of objects whose pods are scraped at once, in all and in the Namespace; nil means no bound.
	Asks *Asks
	// Namespace is the tenant of scrapes and replays.
	Namespace string
	// Beside runs a function concurrently with the rounds; nil means in a goroutine.
	Beside func(func())
	// Replay is the configuration of the replays, with their turn and a receiver of their errors. Its Capacity is replaced
	// with that of the Plan, and its Tenant with the Namespace; if the Plan has no Capacity, nothing is replayed.
	Replay replay.Config
}

// Shadows are the shadows of one object and target. They are safe for concurrent use; nil means that there are none.
type Shadows struct {
	config Config
	ctx    context.Context //nolint:containedctx // for the scrapes, which outlive a round
	cancel context.CancelFunc

	mu       sync.Mutex
	shadows  *shadow.Shadows // nil if no shadow can run
	replays  *replay.Replays // nil if there is no configuration for replays
	observer Observer
	asking   bool
	closed   bool
	trouble  string // why the shadows could not be shown the last round
	lacking  error  // why metrics that are scraped for the shadows alone have no value
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
	s.ctx, s.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // Close cancels it
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
		of.Capacity, of.Tenant = *c.Plan.Capacity, c.Namespace
		if s.replays, err = replay.New(of); err != nil {
			s.replays = nil // the plan's Attainment reports the error
		}
	}
	return s
}

// Scrapes reports whether pods are scraped for the shadows alone.
func (s *Shadows) Scrapes() bool { return s != nil && len(s.config.Plan.Scrape.Metrics) > 0 }

// Show shows the shadows what a round observed, or starts a scrape of the pods for the metrics that they need. Before a
// scrape it calls authorize, unless that is nil, to update the credentials: they may have been replaced or revoked.
func (s *Shadows) Show(now time.Time, scale k8s.Scale, seen *k8s.Observed, authorize func() error) {
	if s == nil {
		return
	}
	if run := s.show(now, scale, seen, authorize); run != nil {
		s.config.Beside(run)
	}
}

// show returns the function to run concurrently with the rounds, or nil.
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

// ready updates the credentials, and makes the observer if there is none yet.
func (s *Shadows) ready(authorize func() error) (err error) {
	if authorize != nil {
		err = authorize()
	}
	if err == nil && s.observer == nil {
		s.observer, err = s.config.Observe()
	}
	return err
}

// ask scrapes the pods, shows the result to the shadows, and runs a replay if one is due.
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
		if p := recover(); p != nil { // a panic must not end the process
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return observer.Observe(ctx, []k8s.Scale{scale})
}

// look shows the shadows what was observed. If a replay is due, it returns the function to run concurrently with the rounds.
// The caller holds the lock.
func (s *Shadows) look(now time.Time, scale k8s.Scale, seen *k8s.Observed) (run func()) {
	s.trouble = ""
	obs := scaling.Observation{SpecReplicas: scale.Replicas, ReadyReplicas: scale.StatusReplicas, Readings: seen.Readings, Histograms: seen.Histograms}
	if len(seen.Fleets) > 0 { // the observed pods count, not the target's status
		obs.ReadyReplicas = seen.Fleets[0].Ready
	}
	s.shadows.Look(now, obs)
	if s.replays == nil {
		return nil
	}
	return s.replays.See(now, obs, s.shadows)
}

// Close ends the scrapes for the shadows. They are shown nothing more.
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

// Wishes returns what the shadows that can run ask for.
func (s *Shadows) Wishes() []shadow.Wish {
	if s == nil || s.shadows == nil {
		return nil
	}
	return s.shadows.Wishes()
}

// Resume takes over the results of shadows with the same names from an earlier process.
func (s *Shadows) Resume(wishes []shadow.Wish) {
	if s != nil && s.shadows != nil {
		s.shadows.Resume(wishes)
	}
}

// A State is the state of one shadow, for display.
type State struct {
	shadow.Wish // has at least its Name
	// Err is what is wrong with the shadow in the document. The shadow does not run.
	Err error
	// Trouble says why the shadow was not shown the last round.
	Trouble string
	// Lacking says why metrics that are scraped for the shadows alone had no value. The shadow was shown the others.
	Lacking error
	// Attained is what the shadow's counts would have attained in a replay, and Actual what the real counts attained; both are
	// nil if unknown.
	Attained, Actual *capacity.Attainment
}

// States returns the states of the shadows, in the order of the document. Two shadows with the same name are both listed.
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
