package policy

// A SaturationProfile names the numbers that fields have which are not given.
//
// +kubebuilder:validation:Enum=default;wva;literal
type SaturationProfile string

// The profiles of the saturation scaler.
const (
	// ProfileDefault counts a saturated replica as one with nothing to spare, and waits before it removes a replica.
	ProfileDefault SaturationProfile = "default"
	// ProfileWVA follows llm-d's variant autoscaler to the letter. Its old name is literal.
	ProfileWVA SaturationProfile = "wva"
)

// A SaturationScaler scales by what is spare in KV caches and queues. Of one target it looks at the pods' averages; in a
// model with variants, at each pod.
type SaturationScaler struct {
	// Profile names the defaults of the fields that are not given. Both have thresholds of 0.8 and 5 and triggers of
	// 0.1 and 3. default: mode Default, a transition timeout of 600 s, a down stabilization of 300 s. wva: mode
	// Literal, without timeout and stabilization. literal is the old name of wva, and is still read.
	// +optional
	// +kubebuilder:default=default
	Profile SaturationProfile `json:"profile,omitempty"`

	// KVCacheThreshold is the KV cache usage, a fraction, at and above which a replica is saturated.
	// +optional
	// +kubebuilder:validation:XValidation:rule="double(string(self)) <= 1.0",messageExpression="'%s: must be at most 1'.format([string(self)])"
	KVCacheThreshold *Decimal `json:"kvCacheThreshold,omitempty"`
	// QueueLengthThreshold is the number of waiting requests at and above which a replica is saturated.
	// +optional
	QueueLengthThreshold *Decimal `json:"queueLengthThreshold,omitempty"`
	// KVSpareTrigger is the spare KV cache below which the scaler adds replicas: the average fraction below
	// kvCacheThreshold. 0 never adds any.
	// +optional
	KVSpareTrigger *Decimal `json:"kvSpareTrigger,omitempty"`
	// QueueSpareTrigger is the spare queue room below which the scaler adds replicas: the average number of requests
	// below queueLengthThreshold. 0 never adds any.
	// +optional
	QueueSpareTrigger *Decimal `json:"queueSpareTrigger,omitempty"`

	// Mode is Default, or Literal, which leaves saturated replicas out of the averages as llm-d does. If unset it is the
	// profile's.
	// +optional
	// +kubebuilder:validation:Enum=Default;Literal
	Mode string `json:"mode,omitempty"`
	// TransitionTimeoutSeconds is how long starting and stopping replicas block a decision; 0 means without limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	TransitionTimeoutSeconds *int32 `json:"transitionTimeoutSeconds,omitempty"`
	// DownStabilizationSeconds is how long removing a replica must have been safe without interruption.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	DownStabilizationSeconds *int32 `json:"downStabilizationSeconds,omitempty"`
	// Step is the size of a scale-up: One replica at a time, or Deficit, as many as the deficit needs. A scale-down is
	// always by one. If unset it is One.
	// +optional
	// +kubebuilder:validation:Enum=One;Deficit
	Step string `json:"step,omitempty"`

	// KVCacheSource is the metric with the KV cache usage. If unset it is vllm:kv_cache_usage_perc.
	// +optional
	KVCacheSource *MetricSource `json:"kvCacheSource,omitempty"`
	// QueueSource is the metric with the waiting requests. If unset it is vllm:num_requests_waiting.
	// +optional
	QueueSource *MetricSource `json:"queueSource,omitempty"`
}
