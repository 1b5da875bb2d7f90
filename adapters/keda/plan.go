package keda

import (
	"errors"
	"math"
	"strings"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// made is what carries metadata out for a ScaledObject.
type made struct {
	target     k8s.Target
	plan       build.Plan
	metricType MetricType
	shadows    build.ShadowPlan
	shadowErr  error // what is wrong with the key shadow, which ends nothing else
}

// make returns what carries the metadata out, or every key that is wrong.
func (m *Metadata) make(ref Ref, o Object, crossNamespace bool) (made, error) {
	var e scaling.FieldErrors
	target, bounds, err := m.resolve(ref, o, crossNamespace)
	e.Add(err)
	if err != nil {
		target, bounds, _ = m.resolve(ref, anything(), true) // to see what else is wrong
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

// anything is a ScaledObject with which nothing is wrong.
func anything() Object {
	return Object{Target: k8s.Target{APIVersion: "v1", Kind: "Any", Name: "any"}, Min: 0, Max: math.MaxInt32}
}

// spec is the document that the metadata are.
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

// plan builds what carries the metadata out, or reports every key that is wrong.
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

// fault is what is wrong with a key.
func (m *Metadata) fault(key string, value any, rule string) error {
	return m.inKeysAs(key, m.written(key), &scaling.FieldError{Value: value, Rule: rule})
}

// inKeys says of each wrong field by which key of the metadata it is set.
func (m *Metadata) inKeys(err error) error {
	if all := each(err); len(all) > 1 {
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

// inKeysAs says of a wrong field that a key sets it, as it was written.
func (m *Metadata) inKeysAs(key, written string, f *scaling.FieldError) error {
	rule, value := f.Rule, shown(m.keys, key, f.Value)
	if m.whole == "" || m.keys["interval"] != "" { // otherwise it may be the document's own intervalSeconds
		rule = strings.NewReplacer("spec.intervalSeconds", m.written("interval"), "intervalSeconds", m.written("interval")).Replace(rule)
	}
	if secret(m.keys, key) {
		rule, _, _ = strings.Cut(rule, ": ") // what follows quotes from the value
	}
	if value == nil {
		value = "" // it is not given
	}
	return &scaling.FieldError{Field: printable.Cut(written, mostRule), Value: value, Rule: printable.Cut(rule, mostRule)}
}

// keyOf returns the key of the metadata that sets a field of a spec, or of a target, and how it was written.
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

// ruleKey returns the key that sets a field of a scaler: one of those that go with threshold, or the field's path.
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
