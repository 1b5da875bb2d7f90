package policyfile

import (
	"errors"
	"fmt"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// The keys under which a file has the algorithms.
const (
	kindRealtime     = "realtime"
	kindProportional = "proportional"
	kindSaturation   = "saturation"
	kindCron         = "cron"
	kindStatic       = "static"
	kindFloor        = "floor"
	kindHighest      = "highest"
)

func algorithms() []string {
	return []string{kindRealtime, kindProportional, kindSaturation, kindCron, kindStatic, kindFloor, kindHighest}
}

// A Policy is an algorithm with its configuration. It comes from Parse or Named; its zero value can do nothing.
type Policy struct {
	Name      string
	Algorithm string          // its key in a file
	Profile   string          // what its fields started from; empty if the algorithm has no profiles
	Bounds    *scaling.Bounds // nil if the file has none

	body        body
	stabilized  *scaling.Stabilization
	rateLimited *scaling.RateLimits
}

// A MetricUse is a metric that a policy reads.
type MetricUse struct {
	Name string
	// Fill is what a missing pod should count in the reading's upper end: the metric's threshold for scaling up, or its
	// target. Where a metric is read several times it is the highest.
	Fill float64
}

// Metrics returns the metrics that the policy reads, in the order of its configuration.
func (p Policy) Metrics() []MetricUse {
	var all []MetricUse
	if p.body == nil {
		return nil
	}
next:
	for _, m := range p.body.metrics() {
		for i := range all {
			if all[i].Name == m.Name {
				all[i].Fill = max(all[i].Fill, m.Fill)
				continue next
			}
		}
		all = append(all, m)
	}
	return all
}

var errEmpty = errors.New("policy: must come from Parse or Named")

// Build returns the live policy, with a fresh state. Bounds are used where the file has none.
func (p Policy) Build(bounds scaling.Bounds) (scaling.Policy, error) {
	live, err := p.build(bounds)
	if err != nil {
		return nil, fmt.Errorf("policy %q: %w", p.Name, err)
	}
	return live, nil
}

func (p Policy) build(bounds scaling.Bounds) (scaling.Policy, error) {
	if p.body == nil {
		return nil, errEmpty
	}
	if p.Bounds != nil {
		bounds = *p.Bounds
	}
	if err := bounds.Validate("bounds"); err != nil {
		return nil, err
	}
	live, err := p.body.build(bounds)
	if err == nil && p.stabilized != nil {
		live, err = scaling.Stabilized(live, *p.stabilized)
	}
	if err == nil && p.rateLimited != nil {
		live, err = scaling.RateLimited(live, *p.rateLimited)
	}
	if err == nil && p.loose() {
		live, err = scaling.Bounded(live, bounds)
	}
	return live, err
}

// loose reports whether what was built can leave the bounds: they go around what may hold a count outside of them, and
// around members that have bounds of their own.
func (p Policy) loose() bool {
	if h, ok := p.body.(highestBody); ok {
		for _, m := range h.Members {
			if m.Bounds != nil {
				return true
			}
		}
	}
	return p.stabilized != nil || p.rateLimited != nil
}

// A body is the configuration of an algorithm.
type body interface {
	// build returns the live policy within bounds, or every rule that the configuration breaks.
	build(bounds scaling.Bounds) (scaling.Policy, error)
	metrics() []MetricUse
}

type (
	realtimeBody     struct{ realtime.Config }
	proportionalBody struct{ proportional.Config }
	saturationBody   struct{ saturation.SingleConfig }
	cronBody         struct{ cronscale.Config }
	staticBody       struct{ Replicas int32 }
	floorBody        struct {
		Base Policy
		Cron cronBody
	}
	highestBody struct{ Members []Policy }
)
