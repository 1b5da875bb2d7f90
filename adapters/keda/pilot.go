package keda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/build"
	"github.com/inferscale/inferscale/scaling"
)

const (
	// buildAgain is when what could not be built is tried again; it asks nobody.
	buildAgain = time.Second
	// saves is how often a round is stored after one that saw nothing has been stored meanwhile.
	saves = 3
)

// A pilot is the Trigger of a target's pods.
type pilot struct {
	c      *TriggersConfig
	ref    Ref
	meta   Metadata
	object Object // that the rest was built for

	target   k8s.Target
	plan     build.Plan
	observer Observer // nil if the clock alone decides
	built    bool

	store  k8s.Store // nil: nothing is kept
	fresh  []byte    // the policy's state before it has seen anything
	stored []byte
	last   record
	loaded bool
	mine   []byte // what this pilot stored last itself
}

// Close drops connections.
func (p *pilot) Close() {
	if p.observer != nil {
		p.observer.Close()
	}
}

// Round looks and decides.
func (p *pilot) Round(ctx context.Context, now time.Time) (Snapshot, error) {
	if err := p.build(); err != nil {
		s := p.silent(now, err)
		s.Next = now.Add(buildAgain) // KEDA may know a ScaledObject before the informer here does
		return s, nil
	}
	if p.meta.Mode == Metric {
		return p.measure(ctx, now)
	}
	return p.decide(ctx, now)
}

// silent is a snapshot of nothing known.
func (p *pilot) silent(now time.Time, err error) Snapshot {
	return Snapshot{At: now, Spec: p.meta.Spec(), Unknown: err, ActiveUnknown: err}
}

// build makes of metadata and ScaledObject what carries them out, once and whenever the ScaledObject has changed.
func (p *pilot) build() error {
	object := Object{Min: DefaultMinReplicaCount, Max: DefaultMaxReplicaCount}
	if p.c.Objects != nil {
		var err error
		if object, err = p.c.Objects(p.ref); err != nil {
			return err
		}
	}
	if p.built && object == p.object {
		return nil
	}
	target, bounds, err := p.meta.resolve(p.ref, object, p.c.CrossNamespace)
	if err != nil {
		return err
	}
	plan, err := p.meta.plan(target, bounds)
	if err != nil {
		return err
	}
	var observer Observer
	if plan.Scrapes() {
		if observer, err = p.c.Observe(&plan); err != nil {
			return err
		}
	}
	state, err := plan.Policy.MarshalJSON()
	if err != nil {
		return fmt.Errorf("state of the policy: %w", err)
	}
	p.Close()
	if p.built && p.meta.Mode == Replicas && p.store == nil { // the state goes on under the new bounds
		old, err := p.plan.Policy.MarshalJSON()
		if err != nil {
			return fmt.Errorf("state of the policy: %w", err)
		}
		if err := plan.Policy.UnmarshalJSON(old); err != nil {
			return err
		}
	}
	p.object, p.target, p.plan, p.observer, p.fresh, p.built = object, target, plan, observer, state, true
	p.loaded = false
	return nil
}

// look reads the target and asks its pods. Done says that s is the whole answer.
func (p *pilot) look(ctx context.Context, now time.Time) (scale k8s.Scale, seen k8s.Observed, s Snapshot, done bool, err error) {
	scale, err = p.c.Scales.Get(ctx, p.target)
	switch {
	case errors.Is(err, k8s.ErrNotFound):
		// What does not exist is not active, and that is certain.
		return scale, seen, Snapshot{At: now, Spec: p.meta.Spec(), Unknown: err}, true, nil
	case errors.Is(err, k8s.ErrNoScale):
		// A kind can be missing for a moment, while what serves it is away: that is not a reason to go to zero.
		return scale, seen, p.silent(now, err), true, nil
	case err != nil:
		return scale, seen, s, true, err
	case p.observer == nil:
		return scale, seen, s, false, nil
	}
	seen, err = p.observer.Observe(ctx, []k8s.Scale{scale})
	switch {
	case err == nil:
		return scale, seen, s, false, nil
	case ctx.Err() != nil:
		return scale, seen, s, true, err
	}
	return scale, seen, Snapshot{At: now, Spec: p.meta.Spec(), Unknown: err, Active: p.meta.Mode == Metric || scale.Replicas > 0}, true, nil
}

// measure makes the snapshot of Mode Metric. The target exists and can be scaled, so it is active: without pods nobody
// could say that one is needed. So at 0 replicas there is a value too.
func (p *pilot) measure(ctx context.Context, now time.Time) (Snapshot, error) {
	scale, seen, s, done, err := p.look(ctx, now)
	if done {
		return s, err
	}
	s = Snapshot{At: now, Spec: p.meta.Spec(), Active: true}
	s.Value, s.Because, s.Unknown = metricValue(p.meta.MetricType, p.meta.Threshold, seen.Readings[0], scale.Replicas, seen.Fleets[0].Ready)
	if s.Unknown != nil && seen.Err != nil {
		s.Unknown = seen.Err
	}
	return s, nil
}

// decide makes the snapshot of Mode Replicas, unless another replica of the scaler has.
func (p *pilot) decide(ctx context.Context, now time.Time) (Snapshot, error) {
	if err := p.load(ctx); err != nil {
		if stateError := new(scaling.StateError); errors.As(err, &stateError) {
			return p.silent(now, err), nil // it is kept as it is
		}
		return Snapshot{}, err
	}
	config := p.config()
	if p.store != nil && p.last.fresh(config, now, p.plan.Interval) && (p.last.Unknown == "" || p.owns()) {
		return p.last.snapshot(p.meta.Spec(), p.plan.Interval), nil
	}
	scale, seen, s, done, err := p.look(ctx, now)
	if done {
		return s, err
	}
	for range saves {
		r := p.ask(now, config, scale, seen)
		if r.Unknown != "" && !p.owns() {
			if s, done, err := p.follow(ctx, config, now); done {
				return s, err
			}
			r = p.ask(now, config, scale, seen)
		}
		if err = p.save(ctx, r); err == nil {
			p.mine = p.stored
			s = r.snapshot(p.meta.Spec(), p.plan.Interval)
			s.At, s.Next = now, time.Time{}
			return s, nil
		}
		if !errors.Is(err, k8s.ErrStateConflict) || p.load(ctx) != nil || !p.last.fresh(config, now, p.plan.Interval) {
			break
		}
		if p.last.Unknown == "" || r.Unknown != "" {
			return p.last.snapshot(p.meta.Spec(), p.plan.Interval), nil // another replica was as fast
		}
		// It saw nothing, and this one did: the round is made again, after that.
	}
	return Snapshot{}, err
}

// owns reports whether the last record is of this pilot, or of nobody else.
func (p *pilot) owns() bool {
	return p.store == nil || (p.mine != nil && bytes.Equal(p.mine, p.stored))
}

// ask has the policy decide on what there is.
func (p *pilot) ask(now time.Time, config string, scale k8s.Scale, seen k8s.Observed) record {
	p.settle(now, scale.Replicas)
	obs := scaling.Observation{SpecReplicas: scale.Replicas, ReadyReplicas: scale.StatusReplicas, Readings: seen.Readings}
	if len(seen.Fleets) > 0 {
		obs.ReadyReplicas = seen.Fleets[0].Ready
	}
	d := p.plan.Policy.Decide(now, obs)
	r := record{
		Kind: scaling.Kind{Name: recordKind, Version: recordVersion}, Config: config, At: scaling.StampOf(now),
		From: d.From, To: d.Replicas, Because: d.Reason(),
	}
	if d.Verdict == scaling.Unknown {
		r.Unknown = d.Reason()
		if seen.Err != nil {
			r.Unknown += ": " + seen.Err.Error()
		}
	}
	return r
}

// follow answers with what another replica of the scaler has found, where this one has found nothing. It is not to store
// that: the other may be the one that sees the pods, and a round without a value begins windows anew. What the other has
// found counts until it has missed a whole round. The policy is put back to before the round.
func (p *pilot) follow(ctx context.Context, config string, now time.Time) (s Snapshot, done bool, err error) {
	p.loaded = false
	if err := p.load(ctx); err != nil {
		return s, true, err
	}
	interval := p.plan.Interval
	s = p.last.snapshot(p.meta.Spec(), interval)
	if p.last.fresh(config, now, interval) {
		return s, true, nil
	}
	s.Next = now.Add(interval / 4) // its round is late
	return s, p.last.Unknown == "" && p.last.within(config, now, interval, 2*interval), nil
}

// settle tells the policy of a change that was carried out: one that went where it had asked to go. Another change,
// by a person or by another trigger, is not the policy's.
func (p *pilot) settle(now time.Time, replicas int32) {
	r := &p.last
	if r.At.IsZero() || r.Unknown != "" {
		return
	}
	if (r.To > r.From && replicas > r.From) || (r.To < r.From && replicas < r.From) {
		p.plan.Policy.Applied(now, r.From, replicas)
	}
}
