// Package policy is the document that says how to scale: one vocabulary for the simulator's -config, the LLMAutoScaler's
// spec.scaler, the metadata of KEDA's triggers, the ConfigMap of models with variants, and programs in Go.
//
//	d, err := policy.Read(data, "policy.yaml")     // every wrong field at once, with its line
//	live, err := d.Policies[0].Build(bounds)       // a scaling.Policy
//	text, err := d.Policies[0].Effective()         // every number that is in force
//
// A document is YAML or JSON, and has a scaler, a spec with bounds around it, or a whole LLMAutoScaler; or several:
//
//	realtime:
//	  profile: responsive
//	  metrics:
//	    - source: {engine: VLLM, signal: InFlight}
//	      threshold: {high: 40, low: 20}
//	  scaleUpRule: {cooldownSeconds: 60}
//
// [Scaler] says what there can be and how it is composed, [Example] returns a document that has everything, and
// schema.json, a JSON Schema, tells editors. What is not given is the profile's, and a zero that is given is a zero.
// Times are whole seconds and say so in their names. Numbers that can have a fraction are a [Decimal]: 40, or "0.9".
//
// Documents are read strictly: a field that is not known, given twice or of another type is an error, and so are
// aliases and files of more than a mebibyte. Each error is a [*PositionError]:
//
//	policy.yaml:7: realtime.metrics[0].threshold.high: 1: must be a number above low 2
//
// [ReadModels] reads documents with models, whose variants are decided on together.
//
// What a [MetricSource] means for the pages of pods is known to those who read them; here it is a name.
//
// +kubebuilder:object:generate=true
package policy
