package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// policies returns the algorithms of this module with their named profiles.
func (w *world) policies() ([]contender, error) {
	var all []contender
	for _, name := range policy.Names() {
		p, err := policy.Named(name)
		if err != nil {
			return nil, err
		}
		c, err := w.contender(p)
		if err != nil {
			return nil, err
		}
		c.note = noteOf(p)
		for _, k := range knobs() {
			if k.family == name {
				c.turned = k.own(p)
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// noteOf says in a line what a named policy does.
func noteOf(p policy.Policy) string {
	notes := map[string]string{
		"realtime/kaito":      "more above %g waiting requests per replica; one replica a step, cooldowns of 10 and 30 minutes",
		"realtime/responsive": "more above %g requests in flight per replica; steps and cooldowns that suit slow starts",
		"proportional/llm":    "%g requests in flight per replica, windows and a scale-down delay that suit LLM servers",
		"proportional/kpa":    "%g requests in flight per replica, by the rules of Knative's pod autoscaler",
		"proportional/kthena": "%g requests in flight per replica, by the rules of Kthena's autoscaler",
		"proportional/hpa":    "%g requests in flight per replica, by the rules of a HorizontalPodAutoscaler",
		"saturation/default":  "what is spare in KV cache and queue, with five minutes of calm before a scale-down",
		"saturation/wva":      "what is spare in KV cache and queue, as llm-d's variant autoscaler has it",
	}
	at := p.Metrics()[0].Fill // the target, or the threshold for more
	return strings.Replace(notes[p.Name], "%g", fmt.Sprintf("%g", at), 1)
}

// configured returns the policies of a document, and what is odd about it.
func (w *world) configured(file string) ([]contender, []*policy.PositionError, error) {
	data, err := cli.ReadFile(file, cli.Document)
	if err != nil {
		return nil, nil, misuse("-config: %w", err)
	}
	d, err := policy.Read(data, file)
	if err != nil {
		return nil, nil, misuse("-config: %w", err)
	}
	var all []contender
	for _, p := range d.Policies {
		c, err := w.contender(p)
		if err != nil {
			return nil, nil, misuse("-config: %s: %w", file, err)
		}
		c.note = "from " + file
		all = append(all, c)
	}
	return all, d.Warnings, nil
}

// contender returns the line of a policy.
func (w *world) contender(p policy.Policy) (contender, error) {
	c := contender{name: p.Name, sort: ofPolicy, unnamed: p.Name == p.Scaler.Name()}
	for _, use := range p.Metrics() {
		m, err := simulated(use)
		if err != nil {
			return c, fmt.Errorf("policy %q: %w", p.Name, err)
		}
		c.metrics = append(c.metrics, m)
	}
	plan, err := p.Plan("", w.bounds)
	if err != nil {
		return c, fmt.Errorf("policy %q: %w", p.Name, err)
	}
	c.odd = plan.Warnings
	c.controller = drive(func() (scaling.Policy, error) { return p.Build(w.bounds) })
	return c, nil
}

// simulated returns how a metric is read here. Pods are vLLM servers; which engine a source names does not matter, and
// neither do endpoints, labels and aggregations.
func simulated(use policy.Metric) (sim.Metric, error) {
	name := use.Source.Name
	if s := use.Source.Signal; s != "" {
		name = string(s)
	}
	i := slices.IndexFunc(signals(), func(m sim.Metric) bool { return m.Name == name || name == "" && m.Name == use.Name })
	if i < 0 {
		names := each(signals(), func(m sim.Metric) string { return m.Name })
		return sim.Metric{}, fmt.Errorf("metric %q: the simulator has %s", name, strings.Join(names, ", "))
	}
	m := signals()[i]
	m.Name, m.Fill = use.Name, use.Fill
	if q := use.Source.Quantile; q != nil {
		var err error
		if m.Quantile, err = q.Float(); err != nil {
			return m, err
		}
	}
	return m, nil
}

// signals returns the metrics that policies can read here: signals of engines, families of vLLM, and what is known only
// here. A latency without a quantile is the median, where a cluster has the mean.
func signals() []sim.Metric {
	return []sim.Metric{
		{Name: "Waiting", Signal: sim.Waiting},
		{Name: "Running", Signal: sim.Running},
		{Name: "InFlight", Signal: sim.InFlight},
		{Name: "KVCacheUsage", Signal: sim.KVCacheUsage},
		{Name: "TTFT", Signal: sim.TTFT, Quantile: 0.5},
		{Name: "TPOT", Signal: sim.TPOT, Quantile: 0.5},
		{Name: "PromptTokens", Signal: sim.PromptTokens},
		{Name: "GenerationTokens", Signal: sim.GenerationTokens},
		{Name: "Prefilled", Signal: sim.Prefilled},
		{Name: "TTFTs", Signal: sim.TTFTs},
		{Name: "TPOTs", Signal: sim.TPOTs},
		{Name: sim.MetricWaiting, Signal: sim.Waiting},
		{Name: sim.MetricRunning, Signal: sim.Running},
		{Name: sim.MetricInFlight, Signal: sim.InFlight},
		{Name: sim.MetricKVCacheUsage, Signal: sim.KVCacheUsage},
		{Name: proportional.TTFTP90, Signal: sim.PredictedTTFT},
		{Name: proportional.TPOTP90, Signal: sim.RouterTPOT},
		{Name: "queue_time_p90", Signal: sim.QueueTime},
		{Name: "request_rate", Signal: sim.RequestRate},
	}
}

// sample prints a document for -config.
func sample(out io.Writer) error {
	_, err := io.WriteString(out, policy.Example())
	return err
}
