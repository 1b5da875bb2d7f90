package keda

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/k8s/watch"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/loop/shadow/replay"
	"github.com/inferscale/inferscale/scaling"
)

// buildAgain is the time before a failed build is tried again. A build sends no requests.
const buildAgain = time.Second

// A podTrigger is the Trigger that scrapes a target's pods.
type podTrigger struct {
	c      *TriggersConfig
	ref    Ref
	meta   Metadata
	object Object // the ScaledObject for which the rest was built

	made
	observer Observer // nil if the clock alone decides
	built    bool
	refused  Object // the ScaledObject for which nothing could be built, and why
	why      error

	// Only in Mode Replicas.
	store  k8s.Store
	key    string // of the state in the store: to find the identity, all rules are built
	loop   *loop.Loop
	config string // hash of metadata, target and bounds
	stored []byte
	last   record // the stored record
	own    bool   // whether this replica of the scaler has stored it

	watchers atomic.Pointer[watch.Shadows] // nil if there are no shadows
	watched  types.UID                     // UID of the target that the shadows were shown
}

// Close closes the connections to pods.
func (t *podTrigger) Close() {
	if t.observer != nil {
		t.observer.Close()
	}
	t.watchers.Load().Close()
}

// Round observes and decides. Its errors contain no value that KEDA took from the environment.
func (t *podTrigger) Round(ctx context.Context, now time.Time) (Snapshot, error) {
	s, err := t.round(ctx, now)
	s.Unknown, s.ActiveUnknown = t.meta.veiled(s.Unknown), t.meta.veiled(s.ActiveUnknown)
	return s, t.meta.veiled(err)
}

func (t *podTrigger) round(ctx context.Context, now time.Time) (Snapshot, error) {
	if err := t.build(); err != nil {
		s := t.silent(now, err)
		s.Next = now.Add(buildAgain) // KEDA may know a ScaledObject before this process's informer does
		return s, nil
	}
	if t.meta.Mode == Metric {
		return t.measure(ctx, now)
	}
	return t.decide(ctx, now)
}

// silent returns a snapshot in which nothing is known.
func (t *podTrigger) silent(now time.Time, err error) Snapshot {
	return Snapshot{At: now, Spec: t.meta.Spec(), Unknown: err, ActiveUnknown: err}
}

// build builds the plan of the metadata and the ScaledObject, at first and whenever the ScaledObject has changed.
func (t *podTrigger) build() error {
	object := Object{Min: minReplicaCount, Max: maxReplicaCount}
	if t.c.Objects != nil {
		var err error
		if object, err = t.c.Objects(t.ref); err != nil {
			return err
		}
	}
	if t.built && object.same(t.object) {
		return nil
	}
	if t.why != nil && object.same(t.refused) {
		return t.why
	}
	made, err := t.meta.make(t.ref, object, t.c.CrossNamespace)
	if t.refused, t.why = object, err; err != nil {
		return err
	}
	plan := made.plan
	var observer Observer
	if plan.Scrapes() {
		plan.Scrape.Budget, plan.Scrape.Tenant = t.c.Budget, t.ref.Namespace
		if observer, err = t.c.Observe(&plan); err != nil {
			return err
		}
	}
	steps, err := loop.New(scaling.GroupOf(plan.Policy), loop.Config{Delegated: true})
	if err != nil {
		return err
	}
	t.Close()
	t.object, t.made, t.observer, t.loop, t.built = object, made, observer, steps, true
	t.config = hashOf(t.meta, t.target, plan.Bounds)
	t.watchers.Store(t.watchersOf(made.shadows))
	return nil
}

// watchersOf returns the shadows of a plan, ready to run.
func (t *podTrigger) watchersOf(shadows build.ShadowPlan) *watch.Shadows {
	plan := t.plan
	plan.Scrape, plan.Port = shadows.Scrape, shadows.Port
	plan.Scrape.Budget, plan.Scrape.Tenant = t.c.shadowBudget, t.ref.Namespace
	return watch.New(&watch.Config{
		Plan: shadows, Observe: func() (watch.Observer, error) { return t.c.Observe(&plan) }, Within: plan.Interval,
		Asks: t.c.asks, Namespace: t.ref.Namespace, Beside: t.c.beside,
		Replay: replay.Config{Turn: t.c.replays, Failed: func(why string) {
			t.c.Logger.Error("policies that watch not replayed", "scaledObject", t.ref.String(), "panic", why)
		}},
	})
}

// watch shows the shadows what a round observed, after its decision was stored. If the target has been replaced, the shadows
// start afresh.
func (t *podTrigger) watch(now time.Time, scale k8s.Scale, seen *k8s.Observed) {
	w := t.watchers.Load()
	if t.watched != "" && t.watched != scale.UID {
		w.Close()
		plan, _ := t.meta.shadows(t.target, t.plan.Bounds) // its errors have been reported before
		w = t.watchersOf(plan)
		t.watchers.Store(w)
	}
	t.watched = scale.UID
	w.Show(now, scale, seen, nil)
}

func (t *podTrigger) watching() []watcher { return toldOf(t.watchers.Load()) }

// look reads the target and scrapes its pods. done says that s is the final snapshot of the round.
func (t *podTrigger) look(ctx context.Context, now time.Time) (scale k8s.Scale, seen k8s.Observed, s Snapshot, done bool, err error) {
	scale, err = t.c.Scales.Get(ctx, t.target)
	switch {
	case errors.Is(err, k8s.ErrNotFound):
		// A target that does not exist is certainly not active.
		return scale, seen, Snapshot{At: now, Spec: t.meta.Spec(), Unknown: err}, true, nil
	case errors.Is(err, k8s.ErrNoScale):
		// A kind can be missing for a moment, while the server of its API is away: that is not a reason to scale to zero.
		return scale, seen, t.silent(now, err), true, nil
	case err != nil:
		return scale, seen, s, true, err
	case t.observer == nil:
		return scale, seen, s, false, nil
	}
	seen, err = t.observer.Observe(ctx, []k8s.Scale{scale})
	switch {
	case err == nil:
		return scale, seen, s, false, nil
	case ctx.Err() != nil:
		return scale, seen, s, true, err
	}
	return scale, seen, Snapshot{At: now, Spec: t.meta.Spec(), Unknown: err, Active: t.meta.Mode == Metric || scale.Replicas > 0}, true, nil
}

// measure makes the snapshot of Mode Metric. The trigger is active because the target exists and can be scaled: without pods
// nothing could tell that one is needed. So there is a value at 0 replicas too.
func (t *podTrigger) measure(ctx context.Context, now time.Time) (Snapshot, error) {
	scale, seen, s, done, err := t.look(ctx, now)
	if done {
		return s, err
	}
	s = Snapshot{At: now, Spec: t.meta.Spec(), Active: true}
	s.Value, s.Because, s.Unknown = metricValue(t.metricType, t.meta.Threshold, seen.Readings[0], scale.Replicas, seen.Fleets[0].Ready)
	if s.Unknown != nil && seen.Err != nil {
		s.Unknown = seen.Err
	}
	return s, nil
}
