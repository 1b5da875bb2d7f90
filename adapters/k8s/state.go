package k8s

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/inferscale/inferscale/scaling"
)

// loopKind stamps what a loop stores: the state of its policy, and the writes whose end is not known.
//
//	{"kind":"k8s.loop","version":1,"targets":[{"targetKind":"Deployment",...,"uid":"..."}],
//	"open":[{"targetKind":"Deployment",...,"from":3,"to":4,"at":1700000000000,"resourceVersion":"7"}],
//	"last":{"from":2,"to":3,"at":1699999000000},"policy":{...}}
const (
	loopKind    = "k8s.loop"
	loopVersion = 1
)

type envelope struct {
	scaling.Kind

	Targets []subject       `json:"targets,omitempty"` // whose the memory is; earlier versions did not say
	Open    []intent        `json:"open,omitempty"`
	Last    *change         `json:"last,omitempty"`
	Policy  json.RawMessage `json:"policy"`
}

// A change is what the policy was told of last, all targets together.
type change struct {
	From int32         `json:"from"`
	To   int32         `json:"to"`
	At   scaling.Stamp `json:"at"`
}

// An intent is a write that was about to be made.
type intent struct {
	subject

	From int32         `json:"from"`
	To   int32         `json:"to"`
	At   scaling.Stamp `json:"at"`
	// ResourceVersion is what the write was conditional on: while the target still has it, the write can yet arrive.
	ResourceVersion string `json:"resourceVersion"`
	// Answered says that the answer was a conflict. That may be the write's own doing: a client that is told to try
	// again after a server error does, and the second try finds what the first one wrote.
	Answered bool `json:"answered,omitempty"`
}

// A subject says which target a state, or a part of it, is about.
type subject struct {
	APIVersion string    `json:"apiVersion"`
	KindName   string    `json:"targetKind"`
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"` // not all that was stored has it
}

func subjectOf(s *Scale) subject {
	t := s.Target
	return subject{APIVersion: t.APIVersion, KindName: t.Kind, Namespace: t.Namespace, Name: t.Name, UID: s.UID}
}

// Target returns the target without its UID.
func (s *subject) Target() Target {
	return Target{APIVersion: s.APIVersion, Kind: s.KindName, Namespace: s.Namespace, Name: s.Name}
}

// recreated reports whether a target is there under the same name and is another one.
func (s *subject) recreated(scale *Scale) bool {
	return s.UID != "" && scale.UID != "" && s.UID != scale.UID
}

// about reports whether the subject is a target: by UID, or where that is not known by name, in any version of its API.
func (s *subject) about(scale *Scale) bool {
	if s.UID != "" && scale.UID != "" {
		return s.UID == scale.UID
	}
	return s.Target().same(scale.Target)
}

func intentOf(o *Outcome, now time.Time) intent {
	return intent{
		subject: subjectOf(&o.Scale),
		From:    o.Decision.From, To: o.Decision.Replicas, At: scaling.StampOf(now), ResourceVersion: o.Scale.ResourceVersion,
	}
}

// happened reports whether the write shows in what the target is now. A count that is neither from nor to is somebody
// else's, which is as good a reason to wait; but not if the write was answered.
func (w *intent) happened(s *Scale) bool {
	return !w.recreated(s) && s.Replicas != w.From && (!w.Answered || s.Replicas == w.To)
}

// pending reports whether the write can yet arrive.
func (w *intent) pending(s *Scale) bool { return !w.Answered && s.ResourceVersion == w.ResourceVersion }

// restore loads the state where that is needed. It reports whether there is one to go on with, be it a refused one,
// with which the round says why.
func (r *round) restore(ctx context.Context) bool {
	if r.loaded && r.refused == nil {
		return true
	}
	data, err := r.Store.Load(ctx, r.StateKey)
	if err != nil {
		r.stateErr(fmt.Errorf("load state: %w", err))
		return false
	}
	if r.loaded && bytes.Equal(data, r.stored) {
		r.stateErr(r.refused)
		return true
	}
	r.refused = r.adopt(data)
	r.stored, r.loaded = data, true
	if r.refused != nil {
		r.stateErr(r.refused)
	}
	return true
}

// adopt takes a stored state over.
func (e *engine) adopt(data []byte) error {
	e.open, e.subjects, e.last = nil, nil, nil
	if len(data) == 0 {
		return e.policy.UnmarshalJSON(e.fresh)
	}
	w, err := unwrap(data)
	if err != nil {
		return err
	}
	if err := e.policy.UnmarshalJSON(w.Policy); err != nil {
		return err
	}
	e.open, e.subjects, e.last = w.Open, w.Targets, w.Last
	return nil
}

// unwrap reads a stored state. The bare state of a policy, as one without this adapter stores it, is one too.
func unwrap(data []byte) (envelope, error) {
	var w envelope
	if err := json.Unmarshal(data, &w); err != nil {
		return envelope{}, &scaling.StateError{Policy: scaling.Kind{Name: loopKind, Version: loopVersion}, Err: err}
	}
	if w.Name != loopKind {
		return envelope{Policy: data}, nil
	}
	var err error
	switch {
	case w.Version > loopVersion:
		err = scaling.ErrNewerState
	case w.Version < 1:
		err = fmt.Errorf("version %d does not exist", w.Version)
	case len(w.Policy) == 0:
		err = errors.New("the field policy is missing")
	default:
		return w, nil
	}
	return envelope{}, &scaling.StateError{Stored: w.Kind, Policy: scaling.Kind{Name: loopKind, Version: loopVersion}, Err: err}
}

// wrap is what is stored of a state.
func wrap(w envelope) ([]byte, error) {
	w.Kind = scaling.Kind{Name: loopKind, Version: loopVersion}
	return json.Marshal(w)
}

// bind begins anew if the state is that of other targets: of none that is there, nor of one that may be there and
// cannot be found. A state that does not say whose it is, as earlier versions stored it, is that of these targets.
func (r *round) bind(ctx context.Context) bool {
	if r.refused != nil {
		return true
	}
	mine := make([]subject, 0, len(r.members))
	same := len(r.subjects) == 0
	for i, m := range r.members {
		n := slices.IndexFunc(r.subjects, func(s subject) bool {
			if r.views[i].Found {
				return s.about(&r.views[i].Scale)
			}
			return s.Target().same(m.target)
		})
		same = same || n >= 0
		switch {
		case r.views[i].Found:
			mine = append(mine, subjectOf(&r.views[i].Scale))
		case n >= 0:
			mine = append(mine, r.subjects[n])
		}
	}
	if !same {
		r.Logger.InfoContext(ctx, "the stored state is that of another target: beginning anew", "target", r.members[0].target.String())
		if err := r.adopt(nil); err != nil {
			r.stateErr(err)
			return false
		}
	}
	r.subjects = mine
	return true
}

// bound reports whether the targets are still those that the round began with.
func (r *round) bound() bool {
	return !slices.ContainsFunc(r.views, func(v VariantView) bool {
		return v.Found && !slices.ContainsFunc(r.subjects, func(s subject) bool { return s.about(&v.Scale) })
	})
}

// save stores the state if it changed. It reports whether the store has it.
func (r *round) save(ctx context.Context) bool {
	policy, err := r.policy.MarshalJSON()
	if err != nil {
		r.stateErr(fmt.Errorf("state of the policy: %w", err))
		return false
	}
	data, err := wrap(envelope{Targets: r.subjects, Open: r.open, Last: r.last, Policy: policy})
	if err != nil {
		r.stateErr(fmt.Errorf("state of the policy: %w", err))
		return false
	}
	if bytes.Equal(data, r.stored) {
		return true
	}
	if err := r.Store.Save(ctx, r.StateKey, r.stored, data); err != nil {
		r.stateErr(fmt.Errorf("store state: %w", err))
		if size := (*SizeError)(nil); r.DryRun && errors.As(err, &size) {
			return true // the state of the real loop has the room; a dry run has nothing to lose but its own memory
		}
		r.loaded = false // whatever the store has now is what counts
		return false
	}
	r.stored = data
	return true
}
