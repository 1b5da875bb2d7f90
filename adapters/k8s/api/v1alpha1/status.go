package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An LLMAutoScalerStatus is what was seen and decided last.
//
// It is written when the decision, a condition or a count changes, and otherwise now and then, so that its readings can
// be some minutes old: the metrics of the controller have each decision.
type LLMAutoScalerStatus struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// LastScaleTime is when the target's replicas were last changed by this autoscaler.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time"
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`

	// CooldownUntil is the end of the cooldown that the last decision waits for; absent if it waits for none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time"
	CooldownUntil *metav1.Time `json:"cooldownUntil,omitempty"`

	// CurrentReplicas is spec.replicas of the target's scale, whoever wrote it. It is absent while that cannot be read.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	CurrentReplicas *int32 `json:"currentReplicas,omitempty"`

	// DesiredReplicas is the decided count. It is absent while no decision is possible.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`

	// LastDecision is the last decision that could be made, with its time and reasons. While no decision is possible,
	// which the condition Ready says, it is out of date.
	// +optional
	LastDecision *Decision `json:"lastDecision,omitempty"`

	// Metrics are the readings on which the last decision was made.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Metrics []MetricReading `json:"metrics,omitempty"`

	// Shadows are what the policies of spec.shadow would ask for.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Shadows []ShadowStatus `json:"shadows,omitempty"`

	// Conditions say whether scaling works: Ready, AbleToScale, ScalingActive, ScalingLimited, MetricsAvailable, Contended.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, (!has(c.observedGeneration) || c.observedGeneration <= 9007199254740991) && c.lastTransitionTime >= timestamp('0001-01-01T00:00:00Z'))",message="each must have a time, and an observedGeneration of at most 9007199254740991"
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A ShadowStatus is what a shadow would ask for. Like the readings it can be some minutes old; the metrics have each
// round.
type ShadowStatus struct {
	// Name is that of spec.shadow.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Replicas is the count that it asked for and assumes to have.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is how many of its replicas would be ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Verdict is Up, Down, Hold or Unknown: its last decision.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Verdict string `json:"verdict,omitempty"`
	// Reason is its last decision in one line, with the numbers.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// LeftOut is why the shadow is left out, if it is: Refused, its scaler is wrong; Overdue, its decision is not made
	// yet; or Failed.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	LeftOut string `json:"leftOut,omitempty"`
	// Message has details about why the shadow is left out.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Since is when it began, with the real count. The sums count from then on.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time"
	Since *metav1.Time `json:"since,omitempty"`
	// RemembersSince is when the shadow's memory of observations began: a restart of the controller and an edit of the
	// spec keep only its count and its sums.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time"
	RemembersSince *metav1.Time `json:"remembersSince,omitempty"`
	// ApartSince is the time since which its count differs from the real one; absent while they are equal.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time"
	ApartSince *metav1.Time `json:"apartSince,omitempty"`
	// LastScaleTime is when it last asked for another count.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time"
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`
	// Time is the time up to which the sums count.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time"
	Time *metav1.Time `json:"time,omitempty"`
	// ReplicaSeconds are the replica-seconds that it has asked for since Since.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ReplicaSeconds int64 `json:"replicaSeconds,omitempty"`
	// RealReplicaSeconds are the replica-seconds that the target was asked for in the same time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	RealReplicaSeconds int64 `json:"realReplicaSeconds,omitempty"`
	// Attained is the share of requests, of the last hour or since the shadow began, that would have met the SLO with
	// the counts that it asked for, like "0.987", according to the simulator. It is known if spec.attainment or a
	// capacity scaler, of the spec or of a shadow, gives the SLO and the server.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	Attained string `json:"attained,omitempty"`
	// RealAttained is the simulated share for the counts that the target really had been asked for.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	RealAttained string `json:"realAttained,omitempty"`
	// MeasuredAttained is the share that really met the SLO. Its distance from RealAttained says how far to trust
	// Attained.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	MeasuredAttained string `json:"measuredAttained,omitempty"`
}

// A Decision is what was decided, and why.
type Decision struct {
	// Verdict is Up, Down, Hold or Unknown. Only Up and Down change anything, and not in a dry run.
	Verdict string `json:"verdict"`
	// Code is the rule that had the last word.
	// +optional
	Code string `json:"code,omitempty"`
	// Reason is the decision in one line, with the numbers.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Explain is the whole chain as a table.
	// +optional
	Explain string `json:"explain,omitempty"`
	// Time is when it was decided.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time"
	Time *metav1.Time `json:"time,omitempty"`
	// DryRun says that nothing was written because of spec.dryRun.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
	// Steps are the chain of rules, followed by the considered steps.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Steps []DecisionStep `json:"steps,omitempty"`
}

// A DecisionStep is a rule, the count before and after it, and the numbers that made it apply.
type DecisionStep struct {
	// Code is the rule.
	Code string `json:"code"`
	// Subject is what the rule is about, for example a metric or a policy.
	// +optional
	Subject string `json:"subject,omitempty"`
	// From is the count before the step.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	From int32 `json:"from"`
	// To is the count after it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	To int32 `json:"to"`
	// Because is the inequality that held, with its numbers.
	// +optional
	Because string `json:"because,omitempty"`
	// Considered marks a step that was evaluated but did not determine the result.
	// +optional
	Considered bool `json:"considered,omitempty"`
}

// A MetricReading is what is known of a metric over the fleet: an interval, in which pods without a value count as 0 in
// the lower end, and as the metric's threshold or target in the upper end. Scaling up uses the lower end, scaling down
// the upper.
type MetricReading struct {
	// Name is the family or the signal.
	Name string `json:"name"`
	// Lower is the lower end; absent if nothing is known.
	// +optional
	Lower string `json:"lower,omitempty"`
	// Upper is the upper end; absent if nothing limits it.
	// +optional
	Upper string `json:"upper,omitempty"`
	// Pods is the number of pods that gave a value.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Pods int32 `json:"pods"`
	// NotReady is the number of pods that cannot have a value yet.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	NotReady int32 `json:"notReady,omitempty"`
	// Failed is the number of ready pods whose value could not be read.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Failed int32 `json:"failed,omitempty"`
	// Error is why nothing is known, or what failed.
	// +optional
	Error string `json:"error,omitempty"`
}
