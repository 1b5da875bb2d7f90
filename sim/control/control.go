// Package control makes groups for the simulator of the algorithms that decide for several kinds of replicas at once:
// package hetero, which spreads a total over them, and package saturation, which grows and shrinks them one by one.
package control

import (
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// Hetero returns the group of a fleet's policy. The fleet's types must be those of the scenario, in its order.
func Hetero(policy *hetero.Policy) scaling.Group { return &fleet{Policy: policy} }

type fleet struct {
	*hetero.Policy

	spec, ready []int32
}

func (f *fleet) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	f.spec, f.ready = f.spec[:0], f.ready[:0]
	for _, t := range obs.Targets {
		f.spec, f.ready = append(f.spec, t.SpecReplicas), append(f.ready, t.ReadyReplicas)
	}
	d := f.Policy.Decide(now, hetero.Observation{Spec: f.spec, Ready: f.ready, Readings: obs.Readings})
	return scaling.GroupDecision{Total: d.Total, Targets: d.Types}
}

// Saturation returns the group of a model whose variants are the scenario's types, in its order: each type needs a
// variant of its name, with its cost and bounds. KV cache usage and waiting requests are
// metrics of the names that vLLM has for them.
func Saturation(live *saturation.Model, variants ...saturation.Variant) scaling.Group {
	return &model{Model: live, variants: slices.Clone(variants)}
}

type model struct {
	*saturation.Model

	variants  []saturation.Variant
	replicas  []saturation.Replica
	decisions []scaling.Decision
}

func (m *model) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	kv, queue := -1, -1
	for i, r := range obs.Readings {
		switch r.Metric {
		case saturation.DefaultKV:
			kv = i
		case saturation.DefaultQueue:
			queue = i
		}
	}
	m.replicas, m.decisions = m.replicas[:0], m.decisions[:0]
	for i := range m.variants {
		t := &obs.Targets[i]
		m.variants[i].Name, m.variants[i].Current, m.variants[i].Pending = t.Name, t.SpecReplicas, t.PendingReplicas
		for _, p := range t.Pods {
			r := saturation.Replica{Pod: p.Name, Variant: t.Name, KV: math.NaN(), Queue: math.NaN()}
			if kv >= 0 && queue >= 0 {
				r.KV, r.Queue = p.Values[kv], p.Values[queue]
			}
			m.replicas = append(m.replicas, r)
		}
	}
	plan := m.Model.Decide(now, m.replicas, m.variants)
	for _, t := range obs.Targets {
		m.decisions = append(m.decisions, plan.Target(t.Name).Decision)
	}
	return scaling.GroupDecision{Targets: m.decisions}
}

func (m *model) Applied(now time.Time, from, to []int32) {
	for i := range from {
		if from[i] != to[i] {
			m.Model.Applied(now, from[i], to[i])
		}
	}
}
