// Package control makes controllers for the simulator of the algorithms that decide for several kinds of replicas at
// once: package hetero, which spreads a total over them, and package saturation, which grows and shrinks them one by
// one. For one kind of replica, sim.Drive takes any policy.
package control

import (
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// Hetero returns the controller of a fleet's policy. The fleet's types must be those of the scenario, in its order.
func Hetero(policy *hetero.Policy) sim.Controller { return &fleet{Policy: policy} }

type fleet struct {
	*hetero.Policy

	spec, ready []int32
}

func (f *fleet) Decide(now time.Time, v *sim.View) []scaling.Decision {
	f.spec, f.ready = f.spec[:0], f.ready[:0]
	for _, t := range v.Types {
		f.spec, f.ready = append(f.spec, t.Spec), append(f.ready, t.Ready)
	}
	d := f.Policy.Decide(now, hetero.Observation{Spec: f.spec, Ready: f.ready, Readings: v.Readings})
	return d.Types
}

// Saturation returns the controller of a model whose variants are the scenario's types, in its order: each type needs
// a variant of its name, with its cost and bounds. The scenario's metrics must have sim.KVCacheUsage and sim.Waiting.
func Saturation(live *saturation.Model, variants ...saturation.Variant) sim.Controller {
	return &model{Model: live, variants: slices.Clone(variants)}
}

type model struct {
	*saturation.Model

	variants  []saturation.Variant
	replicas  []saturation.Replica
	decisions []scaling.Decision
}

func (m *model) Decide(now time.Time, v *sim.View) []scaling.Decision {
	kv, queue := -1, -1
	for i := range v.Metrics {
		if signal := v.Metrics[i].Signal; signal == sim.KVCacheUsage {
			kv = i
		} else if signal == sim.Waiting {
			queue = i
		}
	}
	m.replicas, m.decisions = m.replicas[:0], m.decisions[:0]
	for _, p := range v.Pods {
		if !p.Ready {
			continue
		}
		r := saturation.Replica{Pod: p.Name, Variant: v.Types[p.Type].Name, KV: math.NaN(), Queue: math.NaN()}
		if kv >= 0 && queue >= 0 {
			r.KV, r.Queue = p.Values[kv], p.Values[queue]
		}
		m.replicas = append(m.replicas, r)
	}
	for i := range m.variants {
		t := &v.Types[i]
		m.variants[i].Name, m.variants[i].Current, m.variants[i].Pending = t.Name, t.Spec, t.Spec-t.Ready
	}
	plan := m.Model.Decide(now, m.replicas, m.variants)
	for _, t := range v.Types {
		m.decisions = append(m.decisions, plan.Target(t.Name).Decision)
	}
	return m.decisions
}

func (m *model) Applied(now time.Time, from, to []int32) {
	for i := range from {
		if from[i] != to[i] {
			m.Model.Applied(now, from[i], to[i])
		}
	}
}
