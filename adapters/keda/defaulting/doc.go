// Package defaulting fills in what a user left out of a KEDA ScaledObject that uses this external scaler, as a mutating
// admission webhook:
//
//	d, err := defaulting.New(defaulting.Default())
//	patch, warnings, err := d.Default(object) // a pure function from an object to a JSON patch
//	server := defaulting.NewServer(d, config) // what an API server asks; d.Review is the same without HTTP
//
// It only adds what is absent, and refuses nothing but what the scaler would refuse ([Config].Check). [Defaulter.Default]
// says to what, [Default] how much and why, and [Config] what depends on the mode.
//
// # Installing
//
// A MutatingWebhookConfiguration has the rule CREATE and UPDATE of scaledobjects in keda.sh/v1alpha1, without
// subresources; admissionReviewVersions v1, sideEffects None, matchPolicy Equivalent, a timeoutSeconds of a few and
// failurePolicy Ignore: a webhook that is down stops nobody, and an object that came in meanwhile gets its defaults at
// its next update. Until then KEDA cannot find a scaler without scalerAddress. Reinvocation is not needed.
//
// # What is wrong stays
//
// A trigger that is no object or a value of the wrong type, is left to KEDA and the schema; where it is ours a warning
// names it. Defaults that were stored once are the user's from then on: a changed mode keeps the old mode's behavior (a
// warning says so), and a later version's defaults do not reach old objects.
//
// # Differences from seed 001
//
// The protocol is http, not https: the servers meant serve plain metrics. The key metricPorotocol of the seed is read
// as metricProtocol, with a warning. Its spec.minReplicas and maxReplicas do not exist; an API server drops them before
// admission, so that the warning about them is seen only where Default is called on a file. metricType is new: KEDA
// does not tell an external scaler how the HPA will use a value.
package defaulting
