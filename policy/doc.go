// Package policy is the document that says how to scale. Simulator (-config), LLMAutoScaler (spec.scaler), metadata of
// KEDA's triggers, ConfigMap of models with variants, and programs in Go share this one vocabulary.
//
//	d, err := policy.Read(data, "policy.yaml")     // every wrong field at once, with its line
//	live, err := d.Policies[0].Build(bounds)       // a scaling.Policy
//	text, err := d.Policies[0].Effective()         // every number that is in force
//
// A document is YAML or JSON. It has a scaler, a spec with bounds around it, or a whole LLMAutoScaler; or several of them:
//
//	realtime:
//	  profile: responsive
//	  metrics:
//	    - source: {engine: VLLM, signal: InFlight}
//	      threshold: {high: 40, low: 20}
//	  scaleUpRule: {cooldownSeconds: 60}
//
// [Scaler] says which rules there are and how they are composed, [Example] returns a document with every field, and
// schema.json is a JSON Schema for editors. Fields that are not given are the profile's; a zero that is given means zero.
// Times are whole seconds and say so in their names. Numbers that can have a fraction are a [Decimal]: 40, or "0.9".
//
// Documents are read strictly: a field that is unknown, given twice or of another type is an error, and so are
// aliases, files of more than a mebibyte and lists of more than 1,000 entries. Each error is a [*PositionError]:
//
//	policy.yaml:7: realtime.metrics[0].threshold.high: 1: must be a number above low 2
//
// [ReadModels] reads documents with models, whose variants are decided on together.
//
// Packages that read the pages of pods know what a [MetricSource] means; here it is a name.
//
// +kubebuilder:object:generate=true
package policy
