// Package defaulting fills in what a user left out of a KEDA ScaledObject that uses this external scaler, as a mutating
// admission webhook:
//
//	d, err := defaulting.New(defaulting.Default())
//	patch, warnings, err := d.Default(object) // a pure function from an object to a JSON patch
//	server := defaulting.NewServer(d, config) // what an API server asks; d.Review is the same without HTTP
//
// The webhook adds only fields that are absent, and refuses only what the scaler would refuse ([Config].Check).
// [Defaulter.Default] says where it adds fields, [Default] which values and why, and [Config] what depends on the mode.
//
// # Installing
//
// A MutatingWebhookConfiguration has the rule CREATE and UPDATE of scaledobjects in keda.sh/v1alpha1, without
// subresources; admissionReviewVersions v1, sideEffects None, matchPolicy Equivalent, a timeoutSeconds of a few and
// failurePolicy Ignore. So a webhook that is down blocks nobody, and an object that was admitted meanwhile gets its defaults at
// its next update. Until then KEDA cannot find a scaler if scalerAddress is missing. Reinvocation is not needed.
//
// # What is wrong stays
//
// A trigger that is not an object, and a value of the wrong type, are left to KEDA and the schema; if they concern this
// scaler, a warning names them. Defaults that were stored once belong to the user: after a change of mode the behavior of the
// old mode stays (a warning says so), and the defaults of a later version do not reach old objects.
//
// # Differences from Kaito's proposal
//
// The protocol is http, not https: the servers in question serve metrics over plain http. The proposal's key metricPorotocol is
// read as metricProtocol, with a warning. Its spec.minReplicas and maxReplicas do not exist. An API server drops them before
// admission, so the warning about them appears only where Default is called on a file. metricType is new: KEDA
// does not tell an external scaler how the HPA will use a value.
package defaulting
