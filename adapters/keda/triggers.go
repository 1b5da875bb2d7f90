package keda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/k8s/watch"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop/shadow/replay"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// Scales reads /scale of targets. *k8s.Scales is the one of a cluster.
type Scales interface {
	Get(ctx context.Context, t k8s.Target) (k8s.Scale, error)
}

// An Observer asks a target's pods. *k8s.PodObserver is the one of a cluster.
type Observer = watch.Observer

// TriggersConfig says where triggers look. Scales and Observe must be set.
type TriggersConfig struct {
	// ScalerName is what the metadata's scalerName must be, "keda-kaito-scaler" by default.
	ScalerName string
	// Scales reads the targets.
	Scales Scales
	// Observe makes the observer of a trigger, of a plan whose Scrape has the Budget, and the ScaledObject's namespace as
	// its Tenant.
	Observe func(*build.Plan) (Observer, error)
	// Budget bounds the memory that the pages of all triggers take; nil means 64 MiB.
	Budget *scrape.Budget
	// Objects returns what a ScaledObject says. Nil means that metadata name the target, and bounds that are not given
	// are KEDA's.
	Objects func(Ref) (Object, error)
	// Store returns where the state of a ScaledObject's triggers in Mode Replicas is kept. Nil keeps it in memory, to be
	// lost at a restart and not known to other replicas of the scaler. Of a k8s.Pruner it has those dropped that triggers
	// have left which the ScaledObject, if Objects tells all of its triggers, does not have any more.
	Store func(Ref) (k8s.Store, error)
	// CrossNamespace lets metadata name a target outside the ScaledObject's namespace. Whoever may write a ScaledObject
	// then learns the load of pods in any namespace.
	CrossNamespace bool
	// Logger gets warnings about metadata; nil means none.
	Logger *slog.Logger

	shadowBudget *scrape.Budget // as Budget, of what policies that watch read
	asks         *watch.Asks    // for them
	replays      replay.Turn    // of what they would have attained
	beside       func(func())   // runs a function beside the rounds; nil means a goroutine
}

// mostMetadata is how many bytes the metadata of a trigger may have, keys and values: they are kept as long as it is.
const mostMetadata = 32 << 10

// Triggers builds the triggers that scrape the pods of a target.
type Triggers struct {
	c       TriggersConfig
	tunings capacity.Shared
	// shadowTunings are those of policies that watch: they take no turn from others.
	shadowTunings capacity.Shared
}

// NewTriggers returns the Triggers of a configuration, or every field that is wrong.
func NewTriggers(c TriggersConfig) (*Triggers, error) {
	c.ScalerName = cmp.Or(c.ScalerName, DefaultScalerName)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var e scaling.FieldErrors
	e.Check(c.Scales != nil, "scales", nil, "must be set")
	e.Check(c.Observe != nil, "observe", nil, "must be set")
	if c.Budget == nil {
		budget, err := scrape.NewBudget(0)
		e.Add(err)
		c.Budget = budget
	}
	budget, err := scrape.NewBudget(0)
	e.Add(err)
	c.shadowBudget, c.asks, c.replays = budget, new(watch.Asks), replay.NewTurn()
	return &Triggers{c: c}, e.Err()
}

// read parses metadata and makes of them what carries them out, or returns every key that is wrong, and with it those that
// are not known.
func (t *Triggers) read(ref Ref, metadata map[string]string, o Object) (Metadata, made, error) {
	if size := sizeOf(metadata); size > mostMetadata {
		return Metadata{}, made{}, &scaling.FieldError{Field: "metadata", Value: size, Rule: fmt.Sprintf("must be at most %d bytes", mostMetadata)}
	}
	if err := tooManyKeys(metadata); err != nil {
		return Metadata{}, made{}, err
	}
	m, err := parse(metadata)
	wrong := each(err)
	if m.ScalerName != "" && m.ScalerName != t.c.ScalerName {
		wrong = append(wrong, m.fault("scalerName", m.ScalerName, "must be "+t.c.ScalerName+", the name of this scaler"))
	}
	made, err := m.make(ref, o, t.c.CrossNamespace)
	for _, e := range each(err) {
		if !follows(e, wrong) {
			wrong = append(wrong, e)
		}
	}
	if len(wrong) > 0 {
		return Metadata{}, made, m.complain(errors.Join(wrong...))
	}
	return m, made, nil
}

// sizeOf returns how many bytes metadata have, keys and values.
func sizeOf(metadata map[string]string) (size int) {
	for key, value := range metadata {
		size += len(key) + len(value)
	}
	return size
}

// follows reports whether an error is of a field about which, or about what it is part of, another has been said.
func follows(err error, said []error) bool {
	field := func(err error) string {
		if f := new(scaling.FieldError); errors.As(err, &f) {
			return f.Field
		}
		return ""
	}
	of := field(err)
	return of != "" && slices.ContainsFunc(said, func(other error) bool {
		rest, within := strings.CutPrefix(of, field(other))
		return within && field(other) != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Check reports what this scaler would refuse of a ScaledObject, all at once, each a *scaling.FieldError with the path of its
// field: of the triggers of type external or external-push that have the scaler's name, and of what they need of the rest.
// What a key that ends in FromEnv will come to is not known before KEDA has read it, so that a trigger with one is passed
// over, and seen to when KEDA sends it. It asks nobody.
func (t *Triggers) Check(scaledObject map[string]any) error {
	u := &unstructured.Unstructured{Object: scaledObject}
	var e scaling.FieldErrors
	o, err := ObjectOf(u)
	all := o.externals()
	if err != nil {
		o.Target, o.Min, o.Max = anything().Target, anything().Min, anything().Max
	}
	ref := Ref{Namespace: u.GetNamespace(), Name: u.GetName()}
	ours := slices.ContainsFunc(each(err), func(err error) bool { return strings.HasPrefix(err.Error(), "spec.triggers: ") }) // too many to tell
	for _, trigger := range all {
		if trigger.Metadata["scalerName"] != t.c.ScalerName {
			continue
		}
		ours = true
		if trigger.fromEnvironment() {
			continue
		}
		_, made, err := t.read(ref, trigger.Metadata, o)
		for _, err := range append(each(err), each(made.shadowErr)...) {
			f := new(scaling.FieldError)
			if errors.As(err, &f) {
				err = &scaling.FieldError{Field: fmt.Sprintf("spec.triggers[%d].metadata.%s", trigger.Index, f.Field), Value: f.Value, Rule: f.Rule}
			}
			e.Add(err)
		}
	}
	if ours {
		e.Add(err)
	}
	return few(e.Err())
}

// Build is an EngineConfig.Build. It asks nobody: what is wrong with the metadata is said at once, what is wrong with
// the rest by the snapshots.
func (t *Triggers) Build(ref Ref, metadata map[string]string) (Plan, error) {
	m, made, err := t.read(ref, metadata, anything())
	if err != nil {
		return Plan{}, err
	}
	if t.c.Objects == nil && m.Target.Name == "" && m.Target.Kind == "" {
		m.Target = k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Name: ref.Name}
	}
	m.tuner = func() capacity.Tuner { return t.tunings.Tuner(ref.Namespace) }
	m.shadowTuner = func() capacity.Tuner { return t.shadowTunings.Tuner(ref.Namespace) }
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
	if err := made.shadowErr; err != nil {
		t.c.Logger.Warn("metadata", "scaledObject", ref.String(), "warning", "policies that watch are left out", "error", err)
	}
	if len(m.Unknown) > 0 {
		t.c.Logger.Warn("metadata", "scaledObject", ref.String(), "warning", "unknown keys", "keys", m.Unknown)
	}
	out := Plan{Trigger: p, Spec: m.Spec(), Interval: made.plan.Interval}
	if m.Mode == Replicas {
		out.Identity = m.identity()
	}
	if t.c.Objects != nil {
		out.Object = func() error {
			_, err := t.c.Objects(ref)
			return err
		}
	}
	return out, nil
}
