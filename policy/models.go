package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// The algorithms of a Model.
const (
	AlgorithmSaturation = "saturation"
	AlgorithmHetero     = "hetero"
)

// DefaultModelInterval is the time between two decisions on a model that sets no interval.
const DefaultModelInterval = DefaultIntervalSeconds * time.Second

// A Model is served by several variants, and one decision sets the counts of all of them. It is an entry of a document that
// ReadModels reads.
//
// +kubebuilder:object:generate=false
type Model struct {
	// Name is unique in its namespace.
	Name string `json:"name"`
	// Namespace is the namespace of its variants.
	Namespace string `json:"namespace"`
	// Algorithm is saturation or hetero.
	// +kubebuilder:validation:Enum=saturation;hetero
	Algorithm string `json:"algorithm"`
	// Interval is the time between two decisions, from 1s to 1h. If unset it is 15s.
	Interval time.Duration `json:"interval,omitempty"`
	// DryRun decides and reports, but writes nothing to the targets.
	DryRun bool `json:"dryRun,omitempty"`
	// Variants are the workloads that serve the model.
	// +kubebuilder:validation:MinItems=1
	Variants []Variant `json:"variants"`
	// Saturation configures the algorithm saturation. If unset, everything has its default.
	Saturation *VariantSaturation `json:"saturation,omitempty"`
	// Hetero says how to distribute a total over the variants. It must be given with algorithm hetero.
	Hetero *Placement `json:"hetero,omitempty"`
}

// A Variant is one workload that serves a model. It has the name of its target.
//
// +kubebuilder:object:generate=false
type Variant struct {
	// Target is the workload to scale, in the model's namespace.
	Target ScaleTargetReference `json:"target"`
	// Cost is the cost of a replica, above 0, in any unit that all variants share.
	Cost float64 `json:"cost"`
	// Capacity is the capacity of a replica, above 0, in any unit that all variants share. Only saturation uses it. If unset
	// it is 1.
	Capacity *float64 `json:"capacity,omitempty"`
	// Min is the fewest replicas.
	// +kubebuilder:validation:Minimum=0
	Min int32 `json:"min"`
	// Max is the most replicas.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Max int32 `json:"max"`
	// Port is the number or the name of the port at which pods serve metrics, the same for all variants of a model.
	Port NumberOrName `json:"port,omitempty"`
}

// A VariantSaturation decides by the spare KV cache and queue capacity of the replicas.
//
// +kubebuilder:object:generate=false
type VariantSaturation struct {
	SaturationScaler `json:",inline"`

	// ThresholdsFrom names the ConfigMap with the thresholds, in the namespace of the controller.
	ThresholdsFrom *ConfigMapReference `json:"thresholdsFrom,omitempty"`
}

// A ConfigMapReference names a ConfigMap.
//
// +kubebuilder:object:generate=false
type ConfigMapReference struct {
	// ConfigMap is its name.
	ConfigMap string `json:"configMap"`
}

// A Placement says how many replicas a model has, and how they are distributed over its variants.
//
// +kubebuilder:object:generate=false
type Placement struct {
	// ExpansionRate is the factor by which each batch of a variant is larger than the one before. If unset it is 2. With 1 or
	// less the cheapest variant is filled up first.
	// +kubebuilder:validation:Minimum=0
	ExpansionRate *float64 `json:"expansionRate,omitempty"`
	// Exchanges is how many replicas one decision may move from one variant to another: a number, or unlimited. If unset it is
	// 0.
	Exchanges NumberOrName `json:"exchanges,omitempty"`
	// WhenReady allows exchanges only while every replica is ready.
	WhenReady bool `json:"whenReady,omitempty"`
	// Total is the scaler, or the spec, that decides how many replicas all variants have together. A capacity scaler treats
	// them as replicas of one kind: the mean of those that run.
	Total Policy `json:"total"`
}

// A NumberOrName is a whole number or a name, for example 8000 or http.
//
// +kubebuilder:object:generate=false
type NumberOrName string

// String returns "namespace/name".
func (m *Model) String() string { return m.Namespace + "/" + m.Name }

// Build returns the group that decides on the variants, with a fresh state: a [*saturation.Group] or a [*hetero.Group]. Its
// targets have the names of the variants. For a model that was made in Go, the error names every wrong field.
func (m *Model) Build() (scaling.Group, error) { return m.BuildWith(nil) }

// BuildWith is Build with a function that makes tuners, see Spec.PlanWith.
func (m *Model) BuildWith(tuner func() capacity.Tuner) (scaling.Group, error) {
	var e scaling.FieldErrors
	for i := range m.Variants {
		m.Variants[i].checkNumbers(fmt.Sprintf("variants[%d]", i), m.Algorithm, &e)
	}
	m.checkAlgorithm("", &e)
	if err := e.Err(); err != nil {
		return nil, err
	}
	if m.Algorithm == AlgorithmHetero {
		return m.place(tuner)
	}
	single := m.saturation().Config()
	c := saturation.GroupConfig{Config: single.Config, KV: single.KV, Queue: single.Queue}
	for _, v := range m.Variants {
		c.Variants = append(c.Variants, saturation.Variant{
			Name: v.Target.Name, Cost: v.Cost, Capacity: or(v.Capacity, 0), Min: v.Min, Max: v.Max,
		})
	}
	group, err := saturation.NewGroup(c)
	if err != nil {
		return nil, err
	}
	return group, nil
}

func (m *Model) place(tuner func() capacity.Tuner) (scaling.Group, error) {
	c := hetero.Config{ExpansionRate: or(m.Hetero.ExpansionRate, hetero.DefaultExpansionRate)}
	for _, v := range m.Variants {
		c.Types = append(c.Types, hetero.Type{Name: v.Target.Name, Cost: v.Cost, Min: v.Min, Max: v.Max})
	}
	fleet, err := hetero.New(c)
	if err != nil {
		return nil, err
	}
	total, err := m.Hetero.Total.BuildWith(fleet.Bounds(), tuner)
	if err != nil {
		return nil, err
	}
	exchanges, _ := m.Hetero.exchanges()
	group, err := hetero.NewGroup(total, fleet, hetero.Options{Exchanges: exchanges, WhenReady: m.Hetero.WhenReady})
	if err != nil {
		return nil, err
	}
	return group, nil
}

// Metrics returns the metrics that the algorithm reads from the pods.
func (m *Model) Metrics() []Metric {
	if m.Algorithm == AlgorithmHetero {
		if m.Hetero == nil {
			return nil
		}
		return m.Hetero.Total.Metrics()
	}
	p := Policy{Spec: Spec{Scaler: Composite{Scaler: Scaler{Saturation: m.saturation()}}}}
	return p.Metrics()
}

func (m *Model) saturation() *SaturationScaler {
	return &cmp.Or(m.Saturation, &VariantSaturation{}).SaturationScaler
}

// exchanges returns the parsed limit; ok is false if it is neither unlimited nor a number.
func (p *Placement) exchanges() (int32, bool) {
	if p.Exchanges == "unlimited" {
		return hetero.Unlimited, true
	}
	n, err := strconv.ParseUint(string(p.Exchanges), 10, 31)
	return int32(n), err == nil || p.Exchanges == ""
}

// ReadModels reads a document with models, as strictly as Read reads policies. file is the name of the document in errors.
// The error joins all errors, each a [*PositionError].
//
//	models:
//	  - name: meta/llama-70b            # the model_id of its thresholds
//	    namespace: serving
//	    algorithm: saturation           # or hetero
//	    variants:
//	      - {target: {apiVersion: apps/v1, kind: Deployment, name: llama-h100}, cost: 98, capacity: 2, min: 1, max: 8}
//	    saturation:
//	      kvCacheThreshold: "0.8"
//	      thresholdsFrom: {configMap: saturation-thresholds}
//
// and with the other algorithm
//
//	hetero:
//	  exchanges: 1
//	  total: {proportional: {profile: llm}}
func ReadModels(data []byte, file string) ([]Model, error) {
	r := newReader(file)
	var d struct {
		Models []Model `json:"models"`
	}
	r.one(r.documents(data, "must have models; models: [] is none"), &d, "", oneDocument)
	r.models(d.Models)
	if err := r.err(); err != nil {
		return nil, err
	}
	return d.Models, nil
}

// models checks the models against the rules, and sets their default intervals.
func (r *reader) models(all []Model) {
	var e scaling.FieldErrors
	taken := map[string]string{} // where each value that must be unique was first used
	unique := func(is, at, field, value, rule string) {
		if first, has := taken[is]; has {
			e.Check(false, at+field, value, rule+": "+first+" has it")
		} else {
			taken[is] = at
		}
	}
	for i := range all {
		m, at := &all[i], fmt.Sprintf("models[%d]", i)
		if _, given := r.lines[at+".interval"]; !given {
			m.Interval = DefaultModelInterval
		}
		m.check(at, &e)
		if m.Name != "" {
			unique(m.String(), at, ".name", m.Name, "must be unique in its namespace")
		}
		for v := range m.Variants {
			if t := m.Variants[v].Target; t.Name != "" {
				is := fmt.Sprintf("%s %s/%s", t.Kind, m.Namespace, t.Name)
				group, _, found := strings.Cut(t.APIVersion, "/")
				if !found {
					group = "" // of the core; a kind is the same in all versions of its group
				}
				unique(group+" "+is, fmt.Sprintf("%s.variants[%d]", at, v), ".target", is, "must be unique")
			}
		}
	}
	r.rules(e.Err())
	for i := range all {
		if m := &all[i]; len(r.errs) == 0 {
			_, err := m.Build()
			for _, f := range fieldErrors(err) {
				field := fmt.Sprintf("models[%d].%s", i, m.Algorithm)
				r.errs = append(r.errs, r.position(field, nil, f.Field+": "+f.Rule))
			}
		}
	}
}

// check records what is wrong with the model, which is at a path.
func (m *Model) check(at string, e *scaling.FieldErrors) {
	e.Check(m.Name != "", at+".name", m.Name, "must not be empty")
	e.Check(printable.Is(m.Name), at+".name", m.Name, printable.Rule)
	e.Check(isLabel(m.Namespace), at+".namespace", m.Namespace, "must be the name of a namespace: at most 63 of a-z, 0-9 and -, which is neither first nor last")
	e.Check(m.Interval >= time.Second && m.Interval <= time.Hour, at+".interval", m.Interval, "must be between 1s and 1h")
	e.Check(len(m.Variants) > 0, at+".variants", 0, "must be at least one")
	for i := range m.Variants {
		v, path := &m.Variants[i], fmt.Sprintf("%s.variants[%d]", at, i)
		v.check(path, m.Algorithm, e)
		first := m.Variants[0].Port
		e.Check(v.Port == first, path+".port", printable.Plain(v.Port),
			fmt.Sprintf("must be that of the first variant, %s: ports of different numbers can have one name", first))
		same := func(o Variant) bool { return o.Target.Name == v.Target.Name }
		if f := slices.IndexFunc(m.Variants, same); v.Target.Name != "" {
			e.Check(f == i, path+".target.name", v.Target.Name, fmt.Sprintf("must be unique: %s.variants[%d] has it", at, f))
		}
	}
	m.checkAlgorithm(at+".", e)
	if s := m.Saturation; m.Algorithm == AlgorithmSaturation && s != nil && s.ThresholdsFrom != nil {
		e.Check(s.ThresholdsFrom.ConfigMap != "", at+".saturation.thresholdsFrom.configMap", "", "must not be empty")
	}
	if h := m.Hetero; m.Algorithm == AlgorithmHetero && h != nil && h.Total.IntervalSeconds == nil {
		h.Total.IntervalSeconds = pointer(int32(m.Interval / time.Second))
	}
}

// checkAlgorithm records what is wrong with the algorithm and its configuration. The path at ends in a dot.
func (m *Model) checkAlgorithm(at string, e *scaling.FieldErrors) {
	algorithms := []string{AlgorithmSaturation, AlgorithmHetero}
	known := slices.Contains(algorithms, m.Algorithm)
	e.Check(known, at+"algorithm", m.Algorithm, "must be "+oneOf(algorithms))
	saturated, placed := m.Algorithm == AlgorithmSaturation, m.Algorithm == AlgorithmHetero
	e.Check(!known || saturated || m.Saturation == nil, at+"saturation", printable.Plain("a mapping"), "must be given only with algorithm saturation")
	e.Check(!known || placed || m.Hetero == nil, at+"hetero", printable.Plain("a mapping"), "must be given only with algorithm hetero")
	switch {
	case saturated:
		b := newBuilder("", m.Interval)
		b.saturation(m.saturation(), place{at: at, within: unbounded()})
		e.Add(b.errs.Err())
	case placed && m.Hetero == nil:
		e.Check(false, at+"hetero", nil, "must be given")
	case placed:
		h, path := m.Hetero, at+"hetero."
		rate := or(h.ExpansionRate, 0)
		e.Check(rate >= 0, path+"expansionRate", rate, "must be a number that is not negative")
		_, ok := h.exchanges()
		e.Check(ok, path+"exchanges", string(h.Exchanges), "must be unlimited or a whole number from 0 to 2147483647")
	}
}

// check records what is wrong with the variant, which is at a path.
func (v *Variant) check(at, algorithm string, e *scaling.FieldErrors) {
	t := v.Target
	e.Check(regexp.MustCompile(`^[^/]+(/[^/]+)?$`).MatchString(t.APIVersion), at+".target.apiVersion", t.APIVersion, `must be "version" or "group/version"`)
	e.Check(t.Kind != "", at+".target.kind", t.Kind, "must not be empty")
	e.Check(t.Name != "", at+".target.name", t.Name, "must not be empty")
	e.Check(printable.Is(t.Name), at+".target.name", t.Name, printable.Rule)
	v.checkNumbers(at, algorithm, e)
	e.Check(v.Port == "" || v.Port.isPort(), at+".port", printable.Plain(v.Port), "must be a number from 1 to 65535 or the name of a container's port")
}

// checkNumbers records what is wrong with the variant's cost, capacity and bounds.
func (v *Variant) checkNumbers(at, algorithm string, e *scaling.FieldErrors) {
	e.Check(v.Cost > 0 && v.Cost <= hetero.MaxCost, at+".cost", v.Cost, fmt.Sprintf("must be a number above 0 and at most %g", hetero.MaxCost))
	if v.Capacity != nil {
		e.Check(*v.Capacity > 0, at+".capacity", *v.Capacity, "must be a number above 0")
		e.Check(algorithm != AlgorithmHetero, at+".capacity", *v.Capacity, "must be given only with algorithm saturation: hetero places a number of replicas")
	}
	e.Check(v.Min >= 0, at+".min", v.Min, "must not be negative")
	least := max(v.Min, 1)
	e.Check(v.Max >= least && v.Max <= hetero.MaxReplicas, at+".max", v.Max, fmt.Sprintf("must be between %d and %d", least, hetero.MaxReplicas))
}

// isPort reports whether Kubernetes accepts p as the number or the name of a port.
func (p NumberOrName) isPort() bool {
	if n, ok := portOf(string(p)); ok {
		return n >= 1 && n <= 65535
	}
	name := regexp.MustCompile(`^([a-z0-9]+-)*[a-z0-9]+$`)
	return len(p) <= 15 && name.MatchString(string(p)) && strings.ContainsAny(string(p), "abcdefghijklmnopqrstuvwxyz")
}
