package keda

import (
	"errors"
	"math"
	"strings"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// made is what is built from metadata and a ScaledObject.
type made struct {
	target     k8s.Target
	plan       build.Plan
	metricType MetricType
	shadows    build.ShadowPlan
	shadowErr  error // what is wrong with the key shadow; the trigger runs nevertheless
}

// make builds the plan of the metadata, or returns an error with every wrong key.
func (m *Metadata) make(ref Ref, o Object, crossNamespace bool) (made, error) {
	var e scaling.FieldErrors
	target, bounds, err := m.resolve(ref, o, crossNamespace)
	e.Add(err)
	if err != nil { // the other keys can still be checked
		_, bounds, _ = m.resolve(ref, anything(), true)
		target = anything().Target
	}
	kind, err := m.metricTypeIn(o)
	e.Add(err)
	plan, err := m.plan(target, bounds)
	e.Add(err)
	out := made{target: target, plan: plan, metricType: kind}
	if err == nil {
		out.shadows, out.shadowErr = m.shadows(target, bounds)
	}
	return out, e.Err()
}

// anything returns a ScaledObject without errors.
func anything() Object {
	return Object{Target: k8s.Target{APIVersion: "v1", Kind: "Any", Name: "any"}, Min: 0, Max: math.MaxInt32}
}

// spec returns the metadata as a policy document.
func (m *Metadata) spec(target k8s.Target, bounds scaling.Bounds) policy.Spec {
	seconds := int32(m.Interval.Seconds())
	return policy.Spec{
		Settings: policy.Settings{
			ScaleTargetRef:  policy.ScaleTargetReference{APIVersion: target.APIVersion, Kind: target.Kind, Name: target.Name},
			MinReplicas:     &bounds.Min,
			MaxReplicas:     bounds.Max,
			IntervalSeconds: &seconds,
			Grouping:        m.Grouping,
			Scrape:          &policy.Scrape{PortName: m.PortName, TLS: m.TLS},
		},
		Scaler: *m.Scaler.DeepCopy(),
	}
}

// plan builds the plan of the metadata, or returns an error with every wrong key.
func (m *Metadata) plan(target k8s.Target, bounds scaling.Bounds) (build.Plan, error) {
	spec := m.spec(target, bounds)
	plan, err := build.With(&spec, m.tuner)
	if err != nil {
		return build.Plan{}, m.inKeys(err)
	}
	if plan.Scrapes() {
		m.complete(&plan.Scrape)
		if err := plan.Scrape.Validate(); err != nil {
			return build.Plan{}, m.inKeys(err)
		}
	}
	return plan, nil
}

// fault returns an error about a key.
func (m *Metadata) fault(key string, value any, rule string) error {
	return m.inKeysAs(key, m.written(key), &scaling.FieldError{Value: value, Rule: rule})
}

// inKeys replaces the field of each error with the metadata key that sets it.
func (m *Metadata) inKeys(err error) error {
	if all := typed.Split(err); len(all) > 1 {
		said := make([]error, 0, len(all))
		for _, e := range all {
			said = append(said, m.inKeys(e))
		}
		return errors.Join(said...)
	}
	var field *scaling.FieldError
	if !errors.As(err, &field) {
		return err
	}
	key, written := m.keyOf(field.Field)
	return m.inKeysAs(key, written, field)
}

// inKeysAs returns the error about a field as an error about the key that sets it, in its spelling in the metadata.
func (m *Metadata) inKeysAs(key, written string, f *scaling.FieldError) error {
	rule, value := f.Rule, shown(m.keys, key, f.Value)
	if m.whole == "" || m.keys["interval"] != "" { // otherwise the rule may refer to the document's own intervalSeconds
		rule = strings.NewReplacer("spec.intervalSeconds", m.written("interval"), "intervalSeconds", m.written("interval")).Replace(rule)
	}
	if secret(m.keys, key) {
		rule, _, _ = strings.Cut(rule, ": ") // the rest can quote the value
	}
	if value == nil {
		value = "" // the key is not given
	}
	return &scaling.FieldError{Field: printable.Cut(written, mostRule), Value: value, Rule: printable.Cut(rule, mostRule)}
}

// keyOf returns the metadata key that sets a field of a spec or of a target, and its spelling in the metadata.
func (m *Metadata) keyOf(path string) (key, written string) {
	for _, key := range []string{"shadow", "attainment"} {
		if rest, ok := strings.CutPrefix(path, "spec."+key); ok {
			return key, m.written(key) + rest
		}
	}
	rest, ok := strings.CutPrefix(path, "spec.scaler.")
	switch {
	case ok && m.whole != "":
		return m.whole, m.written(m.whole) + "." + rest
	case ok:
		key = m.ruleKey(rest)
		return key, m.written(key)
	}
	key = strings.TrimPrefix(path, "spec.")
	switch path {
	case "spec.intervalSeconds":
		key = "interval"
	case "spec.scrape.portName":
		key = "metricPort"
	case "timeout", "spec.scrape.timeout":
		key = "scrapeTimeout"
	case "spec.scrape.tls.serverName":
		key = "tlsServerName"
	case "target.apiVersion", "target.kind", "target.namespace", "target.name":
		own := map[string]string{"apiVersion": "targetAPIVersion", "kind": "targetKind", "namespace": "targetNamespace", "name": "targetName"}
		if given := own[strings.TrimPrefix(path, "target.")]; m.keys[given] != "" {
			key = given
		}
	}
	return key, m.written(key)
}

// ruleKey returns the key that sets a field of a scaler: one of the keys that belong to threshold, or the field's path.
func (m *Metadata) ruleKey(path string) string {
	rest, ok := strings.CutPrefix(path, m.policy+".")
	if !ok {
		return path
	}
	rest, ok = strings.CutPrefix(rest, "metrics[0].")
	switch {
	case !ok && rest == "profile" && m.keys["profile"] != "":
		return "profile"
	case !ok:
		return path
	case rest == "target" || rest == "threshold.high":
		return "threshold"
	case rest == "threshold.low":
		return "lowThreshold"
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(rest, "source."), "[")
	switch name {
	case "source":
		return "metricName"
	case "name", "protocol", "port", "path":
		return "metric" + strings.ToUpper(name[:1]) + name[1:]
	}
	return name
}
