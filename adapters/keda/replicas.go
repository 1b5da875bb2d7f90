package keda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// saves is the number of attempts to store a round when another replica has stored a round without a value meanwhile.
const saves = 3

// errUnseen is the reason for which the loop drops the state of a round.
var errUnseen = errors.New("no pod was seen")

// decide makes the snapshot of Mode Replicas, or returns that of another replica of the scaler, if it has made this round.
func (t *podTrigger) decide(ctx context.Context, now time.Time) (Snapshot, error) {
	if err := t.load(ctx); err != nil {
		if stateError := new(scaling.StateError); errors.As(err, &stateError) {
			return t.silent(now, err), nil // the refused state is kept unchanged
		}
		return Snapshot{}, err
	}
	interval := t.plan.Interval
	if t.last.fresh(t.config, now, interval) && (t.last.Unknown == "" || t.own) {
		return t.last.snapshot(t.meta.Spec(), interval, now), nil
	}
	scale, seen, s, done, err := t.look(ctx, now)
	if done {
		return s, err
	}
	for range saves {
		r := t.ask(now, scale, seen)
		if r.Unknown != "" && !t.own {
			if s, done, err := t.follow(ctx, now); done {
				return s, err
			}
			r = t.ask(now, scale, seen)
		}
		if err = t.save(ctx, r); err == nil {
			s = r.snapshot(t.meta.Spec(), interval, now)
			s.At, s.Next = now, time.Time{}
			t.watch(now, scale, &seen)
			return s, nil
		}
		if !errors.Is(err, k8s.ErrStateConflict) || t.load(ctx) != nil || !t.last.fresh(t.config, now, interval) {
			break
		}
		if t.last.Unknown == "" || r.Unknown != "" {
			return t.last.snapshot(t.meta.Spec(), interval, now), nil // another replica has made the round meanwhile
		}
		// The other replica got no value, and this one did: make the round again, on top of the other's state.
	}
	return Snapshot{}, err
}

// ask lets the policy decide on an observation. The HorizontalPodAutoscaler writes the count, and the loop finds out whether
// it has.
func (t *podTrigger) ask(now time.Time, scale k8s.Scale, seen k8s.Observed) record {
	found := t.loop.Read(now, loop.Target{Key: t.target.String(), ID: string(scale.UID), Replicas: scale.Replicas})
	if found.Anew {
		t.c.Logger.Info("the stored state is that of another target: beginning anew", "scaledObject", t.ref.String(), "target", t.target.String())
	}
	ready := scale.StatusReplicas
	if len(seen.Fleets) > 0 {
		ready = seen.Fleets[0].Ready
	}
	step := t.loop.Decide(now, scaling.GroupObservation{
		Targets: []scaling.TargetObservation{{ReadyReplicas: ready}}, Readings: seen.Readings, Histograms: seen.Histograms,
	})
	d := &step.Targets[0]
	r := record{
		Kind: recordKind(), Config: t.config, At: scaling.StampOf(now), From: d.From, To: d.Replicas, Because: d.Reason(), Loop: step.Store,
	}
	if r.Loop == nil {
		r.Loop = t.loop.Stored()
	}
	if d.Verdict == scaling.Unknown {
		r.Unknown = d.Reason()
		if err := errors.Join(step.Err, seen.Err); err != nil {
			r.Unknown += ": " + t.meta.veiled(err).Error() // it is stored
		}
	}
	return r
}

// follow answers with the result of another replica of the scaler if this one got no value. This one must not store its
// round: the other may be the one that reaches the pods, and a round without a value restarts windows. The other's result
// counts until the other has missed a whole round. follow resets the loop to its state before the round.
func (t *podTrigger) follow(ctx context.Context, now time.Time) (s Snapshot, done bool, err error) {
	t.loop.Saved(errUnseen)
	if err := t.load(ctx); err != nil {
		return s, true, err
	}
	interval := t.plan.Interval
	s = t.last.snapshot(t.meta.Spec(), interval, now)
	if t.last.fresh(t.config, now, interval) {
		return s, true, nil
	}
	s.Next = now.Add(interval / 4) // the other's round is late
	return s, t.last.Unknown == "" && t.last.within(t.config, now, interval, 2*interval), nil
}

// load reads the stored record, and restores the loop from it if it differs from the one that this trigger stored or loaded
// last.
func (t *podTrigger) load(ctx context.Context) error {
	data, err := t.store.Load(ctx, t.key)
	if err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	if !t.loop.NeedsRestore() && bytes.Equal(data, t.stored) {
		return nil
	}
	r, err := parseRecord(data, t.target.String())
	if err == nil {
		err = t.loop.Restore(r.Loop)
	}
	if err != nil {
		return err
	}
	t.own = t.own && bytes.Equal(data, t.stored)
	t.last, t.stored = r, data
	return nil
}

// save stores the result of a round. If another replica has stored a record meanwhile, the round fails, and the next one uses
// that record.
func (t *podTrigger) save(ctx context.Context, r record) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = t.swap(ctx, r.At.Time(), data)
	}
	t.loop.Saved(err)
	if err != nil {
		return fmt.Errorf("store state: %w", err)
	}
	t.last, t.stored, t.own = r, data, true
	return nil
}

// swap stores a record. It also drops the states of triggers that the ScaledObject no longer has, because each edit of
// metrics, algorithms or names begins a new state.
func (t *podTrigger) swap(ctx context.Context, now time.Time, data []byte) error {
	states, told := t.object.owners.identities()
	if pruner, ok := t.store.(k8s.Pruner); ok && told {
		return pruner.SaveAndDrop(ctx, t.key, t.stored, data, func(key string, state []byte) bool {
			return !states[key] && isIdentity(key) && left(now, state)
		})
	}
	return t.store.Save(ctx, t.key, t.stored, data)
}

// left reports whether a state is a record of a known version that has not been written for so long that its trigger is
// forgotten. Until then KEDA, or another replica of the scaler, may know another version of the ScaledObject.
func left(now time.Time, state []byte) bool {
	var r struct {
		scaling.Kind

		At scaling.Stamp `json:"at"`
	}
	kind := recordKind()
	if json.Unmarshal(state, &r) != nil || r.Name != kind.Name || r.Version < 1 || r.Version > kind.Version || r.At.IsZero() {
		return false
	}
	return now.Sub(r.At.Time()) > DefaultIdle
}

// A memory is a Store for one state. It keeps the state in memory only.
type memory struct{ state []byte }

func (m *memory) Load(context.Context, string) ([]byte, error) { return m.state, nil }

func (m *memory) Save(_ context.Context, _ string, _, state []byte) error {
	m.state = state
	return nil
}
