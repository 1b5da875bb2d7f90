package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/internal/enginemetrics"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// best returns the cheapest policy of this module that attains the goal and that a manifest can have, and its line.
func (c *comparison) best() (policy.Policy, *line, error) {
	var unread []string
	for _, l := range c.lines { // in order: those that attain, the cheapest first
		if l.sort != ofPolicy || !l.summary.attains {
			continue
		}
		if e := cmp.Or(c.world.engine, "VLLM"); learns(l.name) && (e == "VLLM" || e == "SGLang") { // others lack histograms that it needs
			scaler := policy.CapacityOf(c.world.capacity())
			if l.name == reactiveLearnedName {
				scaler.Forecast = &policy.Forecast{Mode: policy.ForecastDisabled}
			}
			return policy.Policy{Name: l.name, Spec: policy.Spec{Scaler: policy.Composite{Scaler: policy.Scaler{Capacity: scaler}}}}, l, nil
		}
		if p, err := policy.Named(l.name); err == nil && slices.Contains(policy.Names(), l.name) {
			if readsOf(&p, cmp.Or(c.world.engine, "VLLM")) {
				return p, l, nil
			}
			unread = append(unread, l.name)
		}
	}
	if len(unread) > 0 {
		return policy.Policy{}, nil, &refusedError{fmt.Errorf("the pods of %s do not say what %s read, so none is recommended: see -policy for others", c.world.engine, strings.Join(unread, ", "))}
	}
	return policy.Policy{}, nil, &refusedError{fmt.Errorf("no policy attains %s %%, so none is recommended: see -max, -slo-ttft and -slo-tpot, or -policy for others", goal(c.alpha))}
}

// readsOf has a policy read what an engine's pods say, at the engine's own port, and reports whether they say it.
func readsOf(p *policy.Policy, engine string) bool {
	all := true
	from := func(signal policy.Signal) policy.MetricSource {
		has := func(signal string) bool { _, is := enginemetrics.Of(engine, signal); return is }
		all = all && (has(string(signal)) || signal == "InFlight" && has("Waiting") && has("Running"))
		return policy.MetricSource{Engine: policy.Engine(engine), Signal: signal}
	}
	if s := p.Scaler.Realtime; s != nil {
		for i := range s.Metrics {
			s.Metrics[i].Source = from(cmp.Or(s.Metrics[i].Source.Signal, "Waiting")) // without a signal it is realtime.DefaultMetric
		}
	}
	if s := p.Scaler.Proportional; s != nil {
		for i := range s.Metrics {
			s.Metrics[i].Source = from(s.Metrics[i].Source.Signal)
		}
	}
	if s := p.Scaler.Saturation; s != nil {
		kv, queue := from("KVCacheUsage"), from("Waiting")
		s.KVCacheSource, s.QueueSource = &kv, &queue
	}
	_, err := p.Build(scaling.Bounds{Max: 1})
	return all && err == nil
}

// manifest fills in a format with words on the recommended policy, what is scaled (its name and namespace, its kind and its name
// again), the bounds, and the policy, indented by so many.
func (c *comparison) manifest(format string, by int) (string, error) {
	w := c.world
	if w.workload == "" {
		return "", errors.New("what is to be scaled is not known: give -workload")
	}
	p, l, err := c.best()
	if err != nil {
		return "", err
	}
	scaler, err := sigsyaml.Marshal(p.Scaler)
	if err != nil {
		return "", err
	}
	if e := w.engine; e != "" {
		scaler = bytes.ReplaceAll(scaler, []byte("engine: VLLM"), []byte("engine: "+e))
	}
	var words strings.Builder
	fmt.Fprintf(&words, "# %s: %s %% of the requests in time at %s replica-hours", l.name, l.summary.attainedText(), l.summary.hours.text("%.2f", 1))
	if r := l.summary.ratio.Mean; r > 0 {
		fmt.Fprintf(&words, ", %.2f times the best schedule known", r)
	}
	for _, other := range c.lines {
		if other.sort == ofIncumbent {
			fmt.Fprintf(&words, ";\n# what there was: %s %% at %s", other.summary.attainedText(), other.summary.hours.text("%.2f", 1))
		}
	}
	fmt.Fprintf(&words, ".\n# %s.\n# By simulation: see docs/history.md for when not to believe it. Try it with dryRun: true.\n", w.title)
	if w.kind == "" || w.namespace == "" {
		words.WriteString("# Warning: kube-state-metrics said nothing of the workload: check its kind and namespace.\n")
	}
	for _, n := range w.notes {
		if strings.HasPrefix(n, "Warning: ") {
			fmt.Fprintf(&words, "# %s\n", strings.Join(strings.Fields(n), " "))
		}
	}
	text := func(name string) string { // in quotes if YAML takes it for a number or the like
		quoted, _ := sigsyaml.Marshal(name)
		return strings.TrimSpace(string(quoted))
	}
	return fmt.Sprintf(format, words.String(), text(w.workload), text(cmp.Or(w.namespace, "default")), cmp.Or(w.kind, "Deployment"), text(w.workload),
		w.bounds.Min, w.bounds.Max, nested(scaler, by)), nil
}

func nested(text []byte, by int) string {
	pad := strings.Repeat(" ", by)
	return pad + strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n"+pad) + "\n"
}

// llmAutoScaler writes the recommended policy as an LLMAutoScaler.
func (c *comparison) llmAutoScaler(out io.Writer) error {
	text, err := c.manifest("%sapiVersion: autoscaling.inferscale.io/v1alpha1\nkind: LLMAutoScaler\nmetadata:\n  name: %s\n  namespace: %s\nspec:\n"+
		"  scaleTargetRef:\n    apiVersion: apps/v1\n    kind: %s\n    name: %s\n  minReplicas: %d\n  maxReplicas: %d\n  scaler:\n%s", 4)
	if err != nil {
		return err
	}
	if _, err := policy.Read([]byte(text), "manifest"); err != nil {
		return fmt.Errorf("the recommended policy is no LLMAutoScaler: %w", err)
	}
	_, err = io.WriteString(out, text)
	return err
}

// scaledObject writes it for KEDA, with the scaler of examples/kedascaler.
func (c *comparison) scaledObject(out io.Writer) error {
	text, err := c.manifest("%sapiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata:\n  name: %s\n  namespace: %s\nspec:\n"+
		"  scaleTargetRef:\n    kind: %s\n    name: %s\n  minReplicaCount: %d\n  maxReplicaCount: %d\n  triggers:\n    - type: external\n      metadata:\n"+
		"        scalerName: keda-kaito-scaler\n        mode: replicas\n        scaler: |\n%s", 10)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}
