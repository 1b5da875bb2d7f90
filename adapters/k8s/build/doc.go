// Package build makes of a spec, as an LLMAutoScaler or a document of package policy has it, what carries it out in a
// cluster: a policy that decides, and a configuration by which the pods' metrics are read.
//
//	plan, err := build.Spec(spec)
//	scraper, err := scrape.New(plan.Scrape)      // if plan.Scrapes()
//	policy := plan.Policy
//
// It is a function of the spec alone: it reads no clock, no file and no cluster. Fields that are not given have their
// documented defaults here too, so that a spec that never saw an API server means the same. How rules are composed is
// told by policy.Scaler.
//
// # Errors
//
// Every wrong field is reported at once, each a *scaling.FieldError whose Field is the path in the object, as
// spec.scaler.realtime.metrics[0].threshold.high. An API server that has the definition of package crd refuses most of
// them before; what is left is what a schema cannot say: schedules that never fire, and time zones that do not exist.
package build
