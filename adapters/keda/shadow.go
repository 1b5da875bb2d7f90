package keda

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/k8s/watch"
	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// shadowsOf reads the key shadow: a list in the form of spec.shadow of an LLMAutoScaler. As in a policy document there are no aliases,
// which can make a small text large.
func shadowsOf(text string) (all []policy.RawShadow, err error) {
	var whole yaml.Node
	if err := yaml.Unmarshal([]byte(text), &whole); err != nil {
		return nil, err
	}
	if aliased(&whole) {
		return nil, errors.New("all must be written out: aliases are not taken")
	}
	for _, list := range whole.Content {
		if n := len(list.Content); list.Kind == yaml.SequenceNode && n > policy.MaxShadows {
			return nil, fmt.Errorf("there are %d: must be at most %d", n, policy.MaxShadows)
		}
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	var list []struct {
		Name   string    `yaml:"name"`
		Scaler yaml.Node `yaml:"scaler"`
	}
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); err != io.EOF { //nolint:errorlint // package yaml returns io.EOF itself
		return nil, fmt.Errorf("must be one list")
	}
	for i := range list {
		var scaler []byte
		if !list[i].Scaler.IsZero() {
			if scaler, err = yaml.Marshal(&list[i].Scaler); err != nil {
				return nil, err
			}
		}
		all = append(all, policy.RawShadow{Name: list[i].Name, Scaler: scaler})
	}
	return all, nil
}

func aliased(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, aliased)
}

// shadows builds the shadows. The error has what is wrong with them, by key; the valid shadows can run nevertheless.
func (m *Metadata) shadows(target k8s.Target, bounds scaling.Bounds) (plan build.ShadowPlan, err error) {
	if m.Shadow == "" && m.Attainment == "" {
		return plan, nil
	}
	if m.Shadow == "" {
		return plan, m.fault("attainment", m.Attainment, "must stand beside shadow: it is the counts of the policies that watch that are judged")
	}
	defer func() {
		if p := recover(); p != nil { // no document may end the trigger's own rounds
			plan, err = build.ShadowPlan{}, m.fault("shadow", m.Shadow, fmt.Sprintf("panic: %v", p))
		}
	}()
	raw, err := shadowsOf(m.Shadow)
	if err != nil {
		return plan, m.fault("shadow", m.Shadow, "must be a list of name and scaler, as spec.shadow of an LLMAutoScaler is: "+strings.Join(strings.Fields(err.Error()), " "))
	}
	spec := m.spec(target, bounds)
	if m.Attainment != "" {
		var bad error
		if spec.Attainment, bad = policy.ReadAttainment([]byte(m.Attainment), "spec.attainment"); bad != nil {
			bad = m.inKeys(bad)
		}
		defer func() { err = errors.Join(append(typed.Split(err), typed.Split(bad)...)...) }()
	}
	plan, err = build.Shadows(&spec, raw, m.shadowTuner)
	if len(plan.Scrape.Metrics) > 0 {
		m.complete(&plan.Scrape)
	}
	if err != nil {
		err = m.inKeys(err)
	}
	return plan, err
}

// A watcher is the state of a shadow for Metrics.
type watcher struct {
	watch.State

	leftOut bool
}

// toldOf returns the states of the shadows, in their order.
func toldOf(w *watch.Shadows) (all []watcher) {
	for _, s := range w.States() {
		s.Name = strings.ToValidUTF8(printable.Cut(s.Name, 63), "")
		if slices.ContainsFunc(all, func(other watcher) bool { return other.Name == s.Name }) {
			continue // the second is wrong, and two series must not have the same labels
		}
		all = append(all, watcher{State: s, leftOut: s.Err != nil || s.Out != shadow.None || s.Trouble != ""})
	}
	return all
}
