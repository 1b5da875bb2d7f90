package keda

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/scaling"
)

// Scales reads /scale of targets. *k8s.Scales is the one of a cluster.
type Scales interface {
	Get(ctx context.Context, t k8s.Target) (k8s.Scale, error)
}

// An Observer asks a target's pods. *k8s.PodObserver is the one of a cluster.
type Observer interface {
	k8s.Observer
	Close()
}

// TriggersConfig says where triggers look. Scales and Observe must be set.
type TriggersConfig struct {
	// ScalerName is what the metadata's scalerName must be, "keda-kaito-scaler" by default.
	ScalerName string
	// Scales reads the targets.
	Scales Scales
	// Observe makes the observer of a trigger.
	Observe func(*build.Plan) (Observer, error)
	// Objects returns what a ScaledObject says. Nil means that metadata name the target, and bounds that are not given
	// are KEDA's.
	Objects func(Ref) (Object, error)
	// Store returns where the state of a ScaledObject's triggers in Mode Replicas is kept. Nil keeps it in memory, to be
	// lost at a restart and not known to other replicas of the scaler.
	Store func(Ref) (k8s.Store, error)
	// CrossNamespace lets metadata name a target outside the ScaledObject's namespace. Whoever may write a ScaledObject
	// then learns the load of pods in any namespace.
	CrossNamespace bool
	// Logger gets warnings about metadata; nil means none.
	Logger *slog.Logger
}

// Triggers builds the triggers that scrape the pods of a target.
type Triggers struct {
	c TriggersConfig
}

// NewTriggers returns the Triggers of a configuration, or every field that is wrong.
func NewTriggers(c TriggersConfig) (*Triggers, error) {
	if c.ScalerName == "" {
		c.ScalerName = DefaultScalerName
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var e scaling.FieldErrors
	e.Check(c.Scales != nil, "scales", nil, "must be set")
	e.Check(c.Observe != nil, "observe", nil, "must be set")
	return &Triggers{c}, e.Err()
}

// Build is an EngineConfig.Build. It asks nobody: what is wrong with the metadata is said at once, what is wrong with
// the rest by the snapshots.
func (t *Triggers) Build(ref Ref, metadata map[string]string) (Plan, error) {
	m, err := ParseMetadata(metadata)
	if err != nil {
		return Plan{}, err
	}
	if m.ScalerName != t.c.ScalerName {
		return Plan{}, &scaling.FieldError{Field: m.written("scalerName"), Value: shown(m.keys, "scalerName", m.ScalerName), Rule: "must be " + t.c.ScalerName + ", the name of this scaler"}
	}
	anything := Object{Target: k8s.Target{APIVersion: "v1", Kind: "Any", Name: "any"}, Min: 0, Max: math.MaxInt32}
	target, bounds, err := m.resolve(ref, anything, t.c.CrossNamespace)
	if err != nil {
		return Plan{}, err
	}
	plan, err := m.plan(target, bounds)
	if err != nil {
		return Plan{}, err
	}
	if t.c.Objects == nil && m.Target.Name == "" && m.Target.Kind == "" {
		m.Target = k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Name: ref.Name}
	}
	p := &podTrigger{c: &t.c, ref: ref, meta: m}
	if m.Mode == Replicas && t.c.Store != nil {
		if p.store, err = t.c.Store(ref); err != nil {
			return Plan{}, fmt.Errorf("store: %w", err)
		}
	}
	p.store = cmp.Or[k8s.Store](p.store, new(memory))
	for _, w := range m.Warnings {
		t.c.Logger.Warn("metadata", "scaledObject", ref.String(), "warning", w)
	}
	if len(m.Unknown) > 0 {
		t.c.Logger.Warn("metadata", "scaledObject", ref.String(), "warning", "unknown keys", "keys", m.Unknown)
	}
	out := Plan{Trigger: p, Spec: m.Spec(), Interval: plan.Interval}
	if m.Mode == Replicas {
		out.Identity = m.identity()
	}
	return out, nil
}
