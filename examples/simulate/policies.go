package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/internal/llmd"
	"github.com/inferscale/inferscale/internal/policyfile"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// policies returns the algorithms of this module with their named profiles.
func (w *world) policies() ([]contender, error) {
	var all []contender
	for _, name := range policyfile.Names() {
		p, err := policyfile.Named(name)
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
func noteOf(p policyfile.Policy) string {
	at := p.Metrics()[0].Fill // the target, or the threshold for more
	switch p.Name {
	case "realtime/seed":
		return fmt.Sprintf("more above %g waiting requests per replica; one replica a step, cooldowns of 10 and 30 minutes", at)
	case "realtime/responsive":
		return fmt.Sprintf("more above %g requests in flight per replica; steps and cooldowns that suit slow starts", at)
	case "proportional/llm":
		return fmt.Sprintf("%g requests in flight per replica, windows and a scale-down delay that suit LLM servers", at)
	case "proportional/kpa":
		return fmt.Sprintf("%g requests in flight per replica, by the rules of Knative's pod autoscaler", at)
	case "proportional/kthena":
		return fmt.Sprintf("%g requests in flight per replica, by the rules of Kthena's autoscaler", at)
	case "proportional/hpa":
		return fmt.Sprintf("%g requests in flight per replica, by the rules of a HorizontalPodAutoscaler", at)
	case "saturation/default":
		return "what is spare in KV cache and queue, with five minutes of calm before a scale-down"
	case "saturation/literal":
		return "what is spare in KV cache and queue, as llm-d's variant autoscaler has it"
	default:
		return ""
	}
}

// configured returns the policies of a YAML file.
func (w *world) configured(file string) ([]contender, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, &usageError{fmt.Errorf("-config: %w", err)}
	}
	policies, err := policyfile.Parse(data, file)
	if err != nil {
		return nil, &usageError{err}
	}
	var all []contender
	for _, p := range policies {
		c, err := w.contender(p)
		if err != nil {
			return nil, &usageError{fmt.Errorf("%s: %w", file, err)}
		}
		c.note = "from " + file
		all = append(all, c)
	}
	return all, nil
}

// contender returns the line of a policy.
func (w *world) contender(p policyfile.Policy) (contender, error) {
	c := contender{name: p.Name, sort: ofPolicy}
	for _, use := range p.Metrics() {
		i := slices.IndexFunc(signals(), func(m sim.Metric) bool { return m.Name == use.Name })
		if i < 0 {
			var names []string
			for _, m := range signals() {
				names = append(names, m.Name)
			}
			return c, fmt.Errorf("policy %q: metric %q: the simulator has %s", p.Name, use.Name, strings.Join(names, ", "))
		}
		m := signals()[i]
		m.Fill = use.Fill
		c.metrics = append(c.metrics, m)
	}
	if _, err := p.Build(w.bounds); err != nil {
		return c, err
	}
	c.controller = drive(func() (scaling.Policy, error) { return p.Build(w.bounds) })
	return c, nil
}

// signals returns the metrics that policies can read here.
func signals() []sim.Metric {
	return []sim.Metric{
		{Name: sim.MetricWaiting, Signal: sim.Waiting},
		{Name: sim.MetricRunning, Signal: sim.Running},
		{Name: sim.MetricInFlight, Signal: sim.InFlight},
		{Name: sim.MetricKVCacheUsage, Signal: sim.KVCacheUsage},
		{Name: llmd.TTFT, Signal: sim.PredictedTTFT},
		{Name: llmd.TPOT, Signal: sim.RouterTPOT},
		{Name: "queue_time_p90", Signal: sim.QueueTime},
		{Name: "request_rate", Signal: sim.RequestRate},
	}
}

// sample prints a file for -config.
func sample(out io.Writer) error {
	_, err := io.WriteString(out, policyfile.Example())
	return err
}
