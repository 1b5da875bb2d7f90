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
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/loop/shadow/replay"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// Scales reads /scale of targets. *k8s.Scales is the implementation for a cluster.
type Scales interface {
	Get(ctx context.Context, t k8s.Target) (k8s.Scale, error)
}

// An Observer scrapes a target's pods. *k8s.PodObserver is the implementation for a cluster.
type Observer = watch.Observer

// TriggersConfig is the configuration of Triggers. Scales and Observe must be set.
type TriggersConfig struct {
	// ScalerName is the required scalerName of the metadata, "keda-kaito-scaler" by default.
	ScalerName string
	// Scales reads the targets.
	Scales Scales
	// Observe makes the observer of a trigger. The plan's Scrape has the Budget, and the ScaledObject's namespace as its
	// Tenant.
	Observe func(*build.Plan) (Observer, error)
	// Budget bounds the memory for the metrics pages of all triggers; nil means 64 MiB.
	Budget *scrape.Budget
	// Objects returns a ScaledObject. Nil means that the metadata name the target, in whole or in part: the kind is a Deployment of
	// apps/v1 and the name that of the ScaledObject if they do not say. Missing bounds are KEDA's defaults.
	Objects func(Ref) (Object, error)
	// Store returns the store for the state of a ScaledObject's triggers in Mode Replicas. Nil keeps the state in memory: it
	// is lost at a restart, and other replicas of the scaler do not know it. In a k8s.Pruner the states of triggers that the
	// ScaledObject no longer has are dropped, if Objects returns all of its triggers.
	Store func(Ref) (k8s.Store, error)
	// CrossNamespace lets metadata name a target outside the ScaledObject's namespace. Then everybody who may write a
	// ScaledObject can learn the load of pods in any namespace.
	CrossNamespace bool
	// Logger receives warnings about metadata; nil means none.
	Logger *slog.Logger

	shadowBudget *scrape.Budget // like Budget, for the scrapes of shadows
	asks         *watch.Asks    // limits the scrapes of shadows
	replays      *replay.Turn   // turn of the replays of shadows
	beside       func(func())   // runs a function concurrently with the rounds; nil means in a goroutine
}

// mostMetadata is the maximum size of a trigger's metadata, in bytes of keys and values: they are kept as long as the
// trigger.
const mostMetadata = 32 << 10

// Triggers builds triggers that scrape the pods of a target.
type Triggers struct {
	c       TriggersConfig
	tunings capacity.Shared
	// shadowTunings are the tunings of shadows, separate so that they do not delay the others.
	shadowTunings capacity.Shared
}

// NewTriggers returns the Triggers of a configuration, or an error with every wrong field.
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
	c.shadowBudget, c.asks, c.replays = budget, new(watch.Asks), new(replay.Turn)
	return &Triggers{c: c}, e.Err()
}

// read parses metadata and builds their plan, or returns an error with every wrong key, and with the unknown keys.
func (t *Triggers) read(ref Ref, metadata map[string]string, o Object) (Metadata, made, error) {
	if size := sizeOf(metadata); size > mostMetadata {
		return Metadata{}, made{}, &scaling.FieldError{Field: "metadata", Value: size, Rule: fmt.Sprintf("must be at most %d bytes", mostMetadata)}
	}
	if err := tooManyKeys(metadata); err != nil {
		return Metadata{}, made{}, err
	}
	m, err := parse(metadata)
	wrong := typed.Split(err)
	if m.ScalerName != "" && m.ScalerName != t.c.ScalerName {
		wrong = append(wrong, m.fault("scalerName", m.ScalerName, "must be "+t.c.ScalerName+", the name of this scaler"))
	}
	made, err := m.make(ref, o, t.c.CrossNamespace)
	for _, e := range typed.Split(err) {
		if !follows(e, wrong) {
			wrong = append(wrong, e)
		}
	}
	if len(wrong) > 0 {
		return Metadata{}, made, m.complain(errors.Join(wrong...))
	}
	return m, made, nil
}

// sizeOf returns the size of metadata, in bytes of keys and values.
func sizeOf(metadata map[string]string) (size int) {
	for key, value := range metadata {
		size += len(key) + len(value)
	}
	return size
}

// follows reports whether there is already an error about the field of err, or about a field that contains it.
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

// Check reports everything that this scaler would refuse in a ScaledObject, each as a *scaling.FieldError with the path of
// its field. It checks the triggers of type external or external-push that have the scaler's name, and those parts of the
// rest that they need. The value of a key that ends in FromEnv is unknown before KEDA has read it, so a trigger with such a
// key is skipped; it is checked when KEDA sends it. Check sends no requests.
func (t *Triggers) Check(scaledObject map[string]any) error {
	u := &unstructured.Unstructured{Object: scaledObject}
	var e scaling.FieldErrors
	o, err := ObjectOf(u)
	all := o.externals()
	if err != nil {
		o.Target, o.Min, o.Max = anything().Target, anything().Min, anything().Max
	}
	ref := Ref{Namespace: u.GetNamespace(), Name: u.GetName()}
	ours := slices.ContainsFunc(typed.Split(err), func(err error) bool { return strings.HasPrefix(err.Error(), "spec.triggers: ") }) // too many triggers to check all
	for _, trigger := range all {
		if trigger.Metadata["scalerName"] != t.c.ScalerName {
			continue
		}
		ours = true
		if trigger.fromEnvironment() {
			continue
		}
		_, made, err := t.read(ref, trigger.Metadata, o)
		for _, err := range append(typed.Split(err), typed.Split(made.shadowErr)...) {
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

// Build can be used as EngineConfig.Build. It sends no requests. It returns errors in the metadata at once; other errors
// appear in the snapshots.
func (t *Triggers) Build(ref Ref, metadata map[string]string) (Plan, error) {
	m, made, err := t.read(ref, metadata, anything())
	if err != nil {
		return Plan{}, err
	}
	if t.c.Objects == nil {
		m.Target.Name = cmp.Or(m.Target.Name, ref.Name)
		if m.Target.Kind == "" {
			m.Target.APIVersion, m.Target.Kind = "apps/v1", "Deployment"
		}
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
		p.key = m.identity()
		out.Identity = p.key
	}
	if t.c.Objects != nil {
		out.Object = func() error {
			_, err := t.c.Objects(ref)
			return err
		}
	}
	return out, nil
}
