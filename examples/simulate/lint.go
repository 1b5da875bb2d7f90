package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	autoscaling "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/examples/internal/quantity"
	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/scaling"
)

// A finding is something in an autoscaler's document that cannot work, with numbers.
type finding struct{ code, text string }

// An autoscaler is what a HorizontalPodAutoscaler or a ScaledObject says, with the defaults of Kubernetes and KEDA filled in.
type autoscaler struct {
	name     string // kind and name
	keda     bool
	min, max int32
	metrics  []lintMetric
	up, down scalingRules
	// cooldown is how long KEDA waits before it goes to zero.
	cooldown time.Duration

	coldStart, scrape time.Duration // of the surroundings
}

// A lintMetric is one metric of an autoscaler.
type lintMetric struct {
	name    string
	source  string // Pods, Resource, External, Object, or the type of KEDA's trigger
	query   string // PromQL, where it is known
	average bool   // divided by the replicas
	target  float64
}

// scalingRules are one direction's.
type scalingRules struct {
	window    time.Duration
	tolerance float64
	disabled  bool
	least     bool // selectPolicy Min
	policies  []autoscaling.HPAScalingPolicy
}

// lintFile reads the documents of a file and prints what cannot work in them.
func (o *options) lintFile(out io.Writer) error {
	data, err := cli.ReadFile(o.lint, cli.Document)
	if err != nil {
		return misuse("-lint: %w", err)
	}
	all, err := readAutoscalers(data)
	if err != nil {
		return misuse("-lint %s: %w", o.lint, err)
	}
	found, out := 0, cli.Plain(out)
	for _, a := range all {
		a.coldStart, a.scrape = o.coldStart, o.scrapeInterval
		for _, f := range a.findings() {
			fmt.Fprintf(out, "%s: %s: %s\n", a.name, f.code, f.text)
			found++
		}
	}
	if found > 0 {
		return fmt.Errorf("-lint %s: %d of what is in it cannot work", o.lint, found)
	}
	_, err = fmt.Fprintf(out, "%s: nothing found in %d documents, with starts of %s and scrapes each %s\n", o.lint, len(all), o.coldStart, o.scrapeInterval)
	return err
}

// readAutoscalers reads every document of a file; lists too, as kubectl get prints them.
func readAutoscalers(data []byte) ([]*autoscaler, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var all []*autoscaler
	for n := 1; ; n++ {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		switch document.(type) {
		case map[string]any, map[any]any:
			if err == nil {
				err = readAutoscaler(document, false, &all)
			}
		case nil:
		default:
			err = cmp.Or(err, fmt.Errorf("%.50q: must be a mapping, with apiVersion and kind", fmt.Sprint(document)))
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, typed.Error(err))
		}
	}
	if len(all) == 0 {
		return nil, errors.New("has no HorizontalPodAutoscaler and no ScaledObject")
	}
	return all, nil
}

func readAutoscaler(document any, listed bool, all *[]*autoscaler) error {
	text, err := json.Marshal(document) // YAML would indent what is deep
	if err != nil {
		return errors.New("must be what JSON can have: keys that are text, and finite numbers")
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
	}
	if err := sigsyaml.Unmarshal(text, &head); err != nil {
		return typed.Error(err)
	}
	switch head.APIVersion + " " + head.Kind {
	case "v1 List", "autoscaling/v2 HorizontalPodAutoscalerList", "keda.sh/v1alpha1 ScaledObjectList":
		if listed {
			return fmt.Errorf("kind %q: must not be in a list", head.Kind)
		}
		for i, item := range head.Items {
			if err := readAutoscaler(item, true, all); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	}
	if err := quantities("", document); err != nil {
		return err
	}
	switch head.APIVersion + " " + head.Kind {
	case "autoscaling/v2 HorizontalPodAutoscaler":
		var h autoscaling.HorizontalPodAutoscaler
		if err := sigsyaml.UnmarshalStrict(text, &h); err != nil {
			return typed.Error(err)
		}
		a, err := ofHPA(&h)
		*all = append(*all, a)
		return err
	case "keda.sh/v1alpha1 ScaledObject":
		var s scaledObject
		if err := sigsyaml.Unmarshal(text, &s); err != nil {
			return typed.Error(err)
		}
		a, err := s.autoscaler()
		*all = append(*all, a)
		return err
	default:
		return fmt.Errorf("apiVersion %q, kind %q: must be autoscaling/v2 HorizontalPodAutoscaler or keda.sh/v1alpha1 ScaledObject", head.APIVersion, head.Kind)
	}
}

// quantities refuses what would take long to read as a quantity, wherever a document has one.
func quantities(key string, of any) error {
	switch of := of.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if err := quantities(key, of[key]); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range of {
			if err := quantities(key, one); err != nil {
				return err
			}
		}
	case string:
		if slices.Contains([]string{"averageValue", "value", "tolerance"}, key) && !quantity.IsShort(of) && strings.ContainsAny(of[:1], "+-.0123456789") {
			return &scaling.FieldError{Field: key, Value: printable.Cut(of, 32), Rule: quantity.Rule}
		}
	}
	return nil
}

// ofHPA returns what an HPA says.
func ofHPA(h *autoscaling.HorizontalPodAutoscaler) (*autoscaler, error) {
	a := &autoscaler{name: "HorizontalPodAutoscaler " + h.Name, min: 1, max: h.Spec.MaxReplicas}
	if m := h.Spec.MinReplicas; m != nil {
		a.min = *m
	}
	a.behave(h.Spec.Behavior)
	for i := range h.Spec.Metrics {
		m := &h.Spec.Metrics[i]
		x := lintMetric{source: string(m.Type)}
		var target autoscaling.MetricTarget
		switch {
		case m.Pods != nil:
			x.name, target = m.Pods.Metric.Name, m.Pods.Target
		case m.External != nil:
			x.name, target = m.External.Metric.Name, m.External.Target
		case m.Object != nil:
			x.name, target = m.Object.Metric.Name, m.Object.Target
		case m.Resource != nil:
			x.name, target = string(m.Resource.Name), m.Resource.Target
		case m.ContainerResource != nil:
			x.name, target = string(m.ContainerResource.Name), m.ContainerResource.Target
		default:
			return a, fmt.Errorf("spec.metrics[%d]: has no source of its type, %q", i, m.Type)
		}
		x.average = target.Type == autoscaling.AverageValueMetricType
		for _, q := range []*resource.Quantity{target.AverageValue, target.Value} {
			if q != nil {
				x.target = q.AsApproximateFloat64()
			}
		}
		a.metrics = append(a.metrics, x)
	}
	return a, a.validate()
}

// validate refuses what no API server holds.
func (a *autoscaler) validate() error {
	switch {
	case a.min < 0:
		return fmt.Errorf("%s: the least replicas are %d: must not be negative", a.name, a.min)
	case a.max < max(1, a.min):
		return fmt.Errorf("%s: the most replicas are %d: must be at least 1 and not below the least, %d", a.name, a.max, a.min)
	}
	for _, r := range []*scalingRules{&a.up, &a.down} {
		for _, p := range r.policies {
			if p.Value < 1 || p.PeriodSeconds < 1 || p.Type != autoscaling.PodsScalingPolicy && p.Type != autoscaling.PercentScalingPolicy {
				return fmt.Errorf("%s: a policy of type %q, value %d and periodSeconds %d: the type must be Pods or Percent, the others at least 1", a.name, p.Type, p.Value, p.PeriodSeconds)
			}
		}
	}
	return nil
}

// behave fills in spec.behavior, with Kubernetes' defaults.
func (a *autoscaler) behave(b *autoscaling.HorizontalPodAutoscalerBehavior) {
	a.up = scalingRules{tolerance: 0.1, policies: []autoscaling.HPAScalingPolicy{
		{Type: autoscaling.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}, {Type: autoscaling.PercentScalingPolicy, Value: 100, PeriodSeconds: 15},
	}}
	a.down = scalingRules{window: 5 * time.Minute, tolerance: 0.1, policies: []autoscaling.HPAScalingPolicy{{Type: autoscaling.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}}}
	if b == nil {
		return
	}
	a.up.apply(b.ScaleUp)
	a.down.apply(b.ScaleDown)
}

func (r *scalingRules) apply(from *autoscaling.HPAScalingRules) {
	if from == nil {
		return
	}
	if from.StabilizationWindowSeconds != nil {
		r.window = time.Duration(*from.StabilizationWindowSeconds) * time.Second
	}
	if from.Tolerance != nil {
		r.tolerance = from.Tolerance.AsApproximateFloat64()
	}
	if from.SelectPolicy != nil {
		r.disabled, r.least = *from.SelectPolicy == autoscaling.DisabledPolicySelect, *from.SelectPolicy == autoscaling.MinChangePolicySelect
	}
	if len(from.Policies) > 0 {
		r.policies = from.Policies
	}
}

// A scaledObject is the part of KEDA's that matters here.
type scaledObject struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		CooldownPeriod   *int32 `json:"cooldownPeriod"`
		IdleReplicaCount *int32 `json:"idleReplicaCount"`
		MinReplicaCount  *int32 `json:"minReplicaCount"`
		MaxReplicaCount  *int32 `json:"maxReplicaCount"`
		Advanced         struct {
			HPA struct {
				Behavior *autoscaling.HorizontalPodAutoscalerBehavior `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
			ScalingModifiers struct {
				Formula    string `json:"formula"`
				MetricType string `json:"metricType"`
			} `json:"scalingModifiers"`
		} `json:"advanced"`
		Triggers []struct {
			Type       string            `json:"type"`
			Name       string            `json:"name"`
			MetricType string            `json:"metricType"`
			Metadata   map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// autoscaler returns what a ScaledObject says.
func (s *scaledObject) autoscaler() (*autoscaler, error) {
	a := &autoscaler{name: "ScaledObject " + s.Metadata.Name, keda: true, max: 100, cooldown: 5 * time.Minute}
	for _, n := range []*int32{s.Spec.MinReplicaCount, s.Spec.IdleReplicaCount} {
		if n != nil {
			a.min = *n
		}
	}
	if n := s.Spec.MaxReplicaCount; n != nil {
		a.max = *n
	}
	if n := s.Spec.CooldownPeriod; n != nil {
		a.cooldown = time.Duration(*n) * time.Second
	}
	a.behave(s.Spec.Advanced.HPA.Behavior)
	for i := range s.Spec.Triggers {
		t := &s.Spec.Triggers[i]
		x := lintMetric{name: cmp.Or(t.Name, fmt.Sprintf("triggers[%d]", i)), source: t.Type, query: t.Metadata["query"], average: t.MetricType == "" || t.MetricType == string(autoscaling.AverageValueMetricType)}
		for _, key := range []string{"threshold", "targetValue", "value"} {
			if _, err := fmt.Sscanf(t.Metadata[key], "%g", &x.target); err == nil {
				break
			}
		}
		if s.Spec.Advanced.ScalingModifiers.Formula != "" {
			x.target = 0 // the formula's target is another
			x.average = s.Spec.Advanced.ScalingModifiers.MetricType == "" || s.Spec.Advanced.ScalingModifiers.MetricType == string(autoscaling.AverageValueMetricType)
		}
		a.metrics = append(a.metrics, x)
	}
	return a, a.validate()
}
