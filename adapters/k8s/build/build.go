package build

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// A Plan is what is built from a spec: the policy and how to scrape the pods.
type Plan struct {
	policy.Plan

	// Scrape is the configuration of the scraper. It has no metrics if the clock alone decides: then no pods need to be
	// scraped. The caller must fill in the credentials from the Secrets that the spec's Scrape refers to.
	Scrape scrape.Config
	// Port is the named port at which the pods are scraped, if the spec has one.
	Port k8s.Port
	// Grouping says which pods form a replica.
	Grouping k8s.Grouping
	// DryRun and Paused are those of the spec: with either of them no replicas are written.
	DryRun, Paused bool
}

// Scrapes reports whether pods need to be scraped.
func (p *Plan) Scrapes() bool { return len(p.Scrape.Metrics) > 0 }

// Spec builds the plan of a spec, or returns an error with every wrong field. The spec must have a scaleTargetRef, also where it
// is that of a document, which need not have one.
//
// Capacity scalers of this plan tune inside their decisions, which then take seconds now and then: a controller should use
// With.
func Spec(spec *policy.Spec) (Plan, error) { return With(spec, nil) }

// With is Spec with a function that makes a tuner for each capacity scaler, see capacity.Shared.
func With(spec *policy.Spec, tuner func() capacity.Tuner) (Plan, error) {
	s := bounded(spec)
	var e scaling.FieldErrors
	ref := s.ScaleTargetRef // the namespace is the object's own: it is not in the spec
	t := k8s.Target{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: "own", Name: ref.Name}
	e.Add(t.Validate("spec.scaleTargetRef"))
	var plan Plan
	var err error
	plan.Plan, err = s.PlanWith("spec", scaling.Bounds{}, tuner)
	e.Add(err)
	plan.DryRun, plan.Paused = s.DryRun, s.Paused
	switch s.Grouping {
	case "LeaderWorkerSet":
		plan.Grouping = k8s.LeaderWorkerSet()
	case "KaitoWorkspace":
		plan.Grouping = k8s.KaitoWorkspace()
	}
	plan.Scrape, plan.Port, err = scraped(&s, plan.Metrics, plan.Interval)
	e.Add(err)
	if err := e.Err(); err != nil {
		return Plan{}, err
	}
	return plan, nil
}

// bounded returns a copy of a spec that always has bounds of its own, even wrong ones.
func bounded(spec *policy.Spec) policy.Spec {
	s, least := *spec, int32(policy.DefaultMinReplicas)
	s.MinReplicas = cmp.Or(s.MinReplicas, &least)
	return s
}

// around applies the spec's Scrape to a scrape configuration.
func around(c *scrape.Config, s *policy.Scrape) k8s.Port {
	if s == nil {
		return k8s.Port{}
	}
	if s.TLS != nil {
		c.TLS.ServerName, c.TLS.InsecureSkipVerify = s.TLS.ServerName, s.TLS.InsecureSkipVerify
	}
	if s.PortName == "" {
		return k8s.Port{}
	}
	return k8s.Port{Port: intstr.FromString(s.PortName), Scheme: c.Metrics[0].Endpoint.Scheme}
}
