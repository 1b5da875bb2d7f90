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

// A Plan is what carries a spec out.
type Plan struct {
	policy.Plan

	// Scrape says what is read of the pods. It has no metrics if the clock alone decides: then nothing is to be read.
	// Its credentials are to be filled in from what the spec's Scrape refers to.
	Scrape scrape.Config
	// Port is where the pods are asked, if they have a named port for it.
	Port k8s.Port
	// Grouping says which pods make a replica.
	Grouping k8s.Grouping
	// DryRun and Paused say that nothing is written.
	DryRun, Paused bool
}

// Scrapes reports whether there is anything to read of the pods.
func (p *Plan) Scrapes() bool { return len(p.Scrape.Metrics) > 0 }

// Spec builds the plan of a spec, or reports every field that is wrong.
//
// What has a capacity to find does so inside its decisions: a process that decides is to use With.
func Spec(spec *policy.Spec) (Plan, error) { return With(spec, nil) }

// With is Spec, with the tuners of what has a capacity to find, one for each: see capacity.Shared.
func With(spec *policy.Spec, tuner func() capacity.Tuner) (Plan, error) {
	s := *spec
	least := int32(policy.DefaultMinReplicas)
	s.MinReplicas = cmp.Or(s.MinReplicas, &least) // so that the bounds are the spec's own, however wrong they are
	var e scaling.FieldErrors
	ref := s.ScaleTargetRef // the namespace is the object's own, which the spec does not say
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

// around takes what a spec says of how pods are asked.
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
