package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"

	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

//go:embed data/demo.yaml
var demoDocument string

// A decider is what decides: a policy of a document, and how its metrics are read.
type decider struct {
	policy  scaling.Policy
	metrics []scrape.Metric
}

// first is the metric that tables show.
func (d *decider) first() string {
	if len(d.metrics) == 0 {
		return realtime.DefaultMetric
	}
	return d.metrics[0].Name
}

// page is what servers show: of histograms what they count, if that is looked at.
func (d *decider) page() page {
	counting := slices.ContainsFunc(d.metrics, func(m scrape.Metric) bool { return m.Terms[0].Read == scrape.Counts })
	return newPage(vllmPage, counting)
}

// configured returns what the document of -config has, or otherwise. Bounds are for documents that have none. A tuner is for
// what has a capacity to find; without one that is done inside the decisions.
func (o *options) configured(otherwise string, bounds scaling.Bounds, tuner func() capacity.Tuner, stderr io.Writer) (*decider, error) {
	data, file := []byte(otherwise), "demo.yaml"
	if o.config != "" {
		var err error
		if data, err = cli.ReadFile(o.config, cli.Document); err != nil {
			return nil, &usageError{fmt.Errorf("-config: %w", err)}
		}
		file = o.config
	}
	document, err := policy.Read(data, file)
	if err != nil {
		return nil, &usageError{fmt.Errorf("-config: %w", err)}
	}
	for _, warning := range document.Warnings {
		fmt.Fprintf(stderr, "quickstart: warning: %v\n", warning)
	}
	if n := len(document.Policies); n != 1 {
		return nil, &usageError{fmt.Errorf("-config %s: must have one policy, not %d", file, n)}
	}
	plan, err := document.Policies[0].PlanWith("", bounds, tuner)
	if err != nil {
		return nil, &usageError{fmt.Errorf("-config: %w", err)}
	}
	for _, warning := range plan.Warnings {
		fmt.Fprintf(stderr, "quickstart: warning: %s: %v\n", file, warning)
	}
	d := &decider{policy: plan.Policy}
	for _, m := range plan.Metrics {
		metric, err := build.Metric(m)
		if err != nil {
			return nil, &usageError{err}
		}
		d.metrics = append(d.metrics, metric)
	}
	return d, nil
}
