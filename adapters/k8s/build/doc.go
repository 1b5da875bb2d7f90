// Package build turns a spec, of an LLMAutoScaler or of a document of package policy, into what runs in a cluster: a policy
// that decides, and the configuration of the scraper that reads the pods' metrics.
//
//	plan, err := build.Spec(spec)
//	scraper, err := scrape.New(plan.Scrape)      // if plan.Scrapes()
//	policy := plan.Policy
//
// The result depends on the spec alone: no clock, no file and no cluster is read. Fields that are not given get their
// documented defaults here too, so that a spec that never passed through an API server means the same. policy.Scaler
// documents how rules are composed.
//
// # Errors
//
// Every wrong field is reported at once, each a *scaling.FieldError whose Field is the path in the object, such as
// spec.scaler.realtime.metrics[0].threshold.high. An API server with the definition of package crd refuses most errors
// earlier. Left for this package is what a schema cannot express: schedules that never fire, and time zones that do not exist.
package build
