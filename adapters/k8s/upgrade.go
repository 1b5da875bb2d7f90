package k8s

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/inferscale/inferscale/scaling"
)

// UpgradeState converts a state that a loop of version 0.1 stored into the form that package loop reads. Any other data is
// returned unchanged. Loops do this themselves; it is for programs that read states without a loop, for example for
// loop.CarryOver.
func UpgradeState(stored []byte) []byte {
	var old struct {
		scaling.Kind

		Targets []oldSubject    `json:"targets"`
		Open    []oldIntent     `json:"open"`
		Last    json.RawMessage `json:"last"`
		Policy  json.RawMessage `json:"policy"`
	}
	if json.Unmarshal(stored, &old) != nil || old.Name != "k8s.loop" {
		return stored
	}
	state := map[string]any{}
	if len(old.Policy) > 0 {
		state["group"] = old.Policy
	}
	if len(old.Last) > 0 {
		state["last"] = old.Last
	}
	var targets, open []map[string]any
	for _, t := range old.Targets {
		targets = append(targets, t.upgrade())
	}
	for _, w := range old.Open {
		o := w.upgrade()
		o["from"], o["to"], o["at"], o["version"], o["answered"] = w.From, w.To, w.At, w.ResourceVersion, w.Answered
		open = append(open, o)
	}
	state["targets"], state["open"] = targets, open
	upgraded, err := json.Marshal(map[string]any{"kind": "loop", "version": old.Version, "state": state})
	if err != nil {
		return stored
	}
	return upgraded
}

type oldSubject struct {
	APIVersion string `json:"apiVersion"`
	KindName   string `json:"targetKind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

func (s *oldSubject) upgrade() map[string]any {
	t := Target{APIVersion: s.APIVersion, Kind: s.KindName, Namespace: s.Namespace, Name: s.Name}
	return map[string]any{"key": t.key(), "id": s.UID}
}

type oldIntent struct {
	oldSubject

	From            int32         `json:"from"`
	To              int32         `json:"to"`
	At              scaling.Stamp `json:"at"`
	ResourceVersion string        `json:"resourceVersion"`
	Answered        bool          `json:"answered"`
}

// An upgraded store upgrades the states that it loads. When it saves, it replaces the original of the loaded state.
type upgraded struct {
	Store

	had, has []byte // the loaded state, and the same upgraded
}

func (s *upgraded) Load(ctx context.Context, key string) (data []byte, err error) {
	s.had, err = s.Store.Load(ctx, key)
	s.has = UpgradeState(s.had)
	return s.has, err
}

func (s *upgraded) Save(ctx context.Context, key string, old, state []byte) error {
	if bytes.Equal(old, s.has) {
		old = s.had
	}
	err := s.Store.Save(ctx, key, old, state)
	if err == nil {
		s.had, s.has = nil, nil
	}
	return err
}
