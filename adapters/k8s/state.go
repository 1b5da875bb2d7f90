package k8s

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/inferscale/inferscale/scaling"
)

// loopKind stamps what a loop stores: the state of its policy, and the writes whose end is not known.
//
//	{"kind":"k8s.loop","version":1,"open":[{"kind":"Deployment",...,"from":3,"to":4,"at":1700000000000}],"policy":{...}}
const (
	loopKind    = "k8s.loop"
	loopVersion = 1
)

type envelope struct {
	scaling.Kind

	Open   []intent        `json:"open,omitempty"`
	Policy json.RawMessage `json:"policy"`
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

// adopt takes a stored state over. The bare state of a policy, as one without this adapter stores it, is taken too.
func (e *engine) adopt(data []byte) error {
	e.open = nil
	if len(data) == 0 {
		return e.policy.UnmarshalJSON(e.fresh)
	}
	var w envelope
	if err := json.Unmarshal(data, &w); err != nil {
		return &scaling.StateError{Policy: scaling.Kind{Name: loopKind, Version: loopVersion}, Err: err}
	}
	if w.Name != loopKind {
		return e.policy.UnmarshalJSON(data)
	}
	refuse := func(err error) error {
		return &scaling.StateError{Stored: w.Kind, Policy: scaling.Kind{Name: loopKind, Version: loopVersion}, Err: err}
	}
	switch {
	case w.Version > loopVersion:
		return refuse(scaling.ErrNewerState)
	case w.Version < 1:
		return refuse(fmt.Errorf("version %d does not exist", w.Version))
	case len(w.Policy) == 0:
		return refuse(errors.New("the field policy is missing"))
	}
	if err := e.policy.UnmarshalJSON(w.Policy); err != nil {
		return err
	}
	e.open = w.Open
	return nil
}

// save stores the state if it changed. It reports whether the store has it.
func (r *round) save(ctx context.Context) bool {
	policy, err := r.policy.MarshalJSON()
	if err != nil {
		r.stateErr(fmt.Errorf("state of the policy: %w", err))
		return false
	}
	data, err := json.Marshal(envelope{
		Kind: scaling.Kind{Name: loopKind, Version: loopVersion}, Open: r.open, Policy: policy,
	})
	if err != nil {
		r.stateErr(fmt.Errorf("state of the policy: %w", err))
		return false
	}
	if bytes.Equal(data, r.stored) {
		return true
	}
	if err := r.Store.Save(ctx, r.StateKey, r.stored, data); err != nil {
		r.stateErr(fmt.Errorf("store state: %w", err))
		r.loaded = false // whatever the store has now is what counts
		return false
	}
	r.stored = data
	return true
}
