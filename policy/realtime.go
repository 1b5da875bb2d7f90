package policy

// A RealtimeProfile names the numbers that fields have which are not given.
//
// +kubebuilder:validation:Enum=kaito;responsive;seed
type RealtimeProfile string

// The profiles of the realtime scaler.
const (
	// ProfileKaito has the numbers of Kaito's LLMAutoScaler proposal. It was called seed.
	ProfileKaito RealtimeProfile = "kaito"
	// ProfileResponsive has the numbers that score best in the simulator, with requests in flight.
	ProfileResponsive RealtimeProfile = "responsive"
)

// A RealtimeScaler scales by thresholds: up by a step if any metric is above its high threshold for a while, down by a
// step if every metric is below its low threshold for a while.
//
// +kubebuilder:validation:XValidation:rule="self.metrics.all(a, self.metrics.exists_one(b, (has(a.source.signal) ? a.source.signal : has(a.source.name) ? a.source.name : 'vllm:num_requests_waiting') == (has(b.source.signal) ? b.source.signal : has(b.source.name) ? b.source.name : 'vllm:num_requests_waiting')))",message="metrics: the name, or the signal, of each source must be unique"
type RealtimeScaler struct {
	// Profile names the defaults of the fields that are not given. kaito: step 1 and 1 (up and down), cooldown 600 s
	// and 1800 s, window 30 s and 300 s, one cooldown for both directions. responsive: step 2 and 1, cooldown 30 s and
	// 60 s, window 15 s and 300 s, a cooldown for each direction. seed is the old name of kaito, and is still read.
	// +optional
	// +kubebuilder:default=kaito
	Profile RealtimeProfile `json:"profile,omitempty"`

	// Metrics are the metrics and their thresholds. The scaler scales up if any metric asks for it, and down only if
	// every metric does.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Metrics []ThresholdMetric `json:"metrics"`

	// ScaleUpRule says how replicas are added. Fields that are not given are the profile's.
	// +optional
	ScaleUpRule *ScalerRule `json:"scaleUpRule,omitempty"`

	// ScaleDownRule says how replicas are removed. Fields that are not given are the profile's.
	// +optional
	ScaleDownRule *ScalerRule `json:"scaleDownRule,omitempty"`

	// CooldownScope says from which change a cooldown counts: Any, the last in either direction; PerDirection, the last
	// in the same direction. If unset it is the profile's.
	// +optional
	// +kubebuilder:validation:Enum=Any;PerDirection
	CooldownScope string `json:"cooldownScope,omitempty"`

	// HoldWhilePending adds no replicas while requested ones are not ready yet.
	// +optional
	HoldWhilePending bool `json:"holdWhilePending,omitempty"`
}

// A ThresholdMetric is a metric with its thresholds.
type ThresholdMetric struct {
	// Source is the metric to read, and where pods serve it. If unset it is vllm:num_requests_waiting at
	// http://{pod}:5000/metrics.
	// +optional
	// +kubebuilder:default={}
	Source MetricSource `json:"source,omitempty"`

	// Threshold has the boundaries for the pods' average.
	Threshold MetricThreshold `json:"threshold"`

	// Role says in which direction the metric counts: Both, UpOnly (for latencies, which an idle fleet does not have)
	// or DownVeto (for preemptions, which prevent a scale-down but ask for nothing).
	// +optional
	// +kubebuilder:default=Both
	// +kubebuilder:validation:Enum=Both;UpOnly;DownVeto
	Role string `json:"role,omitempty"`
}

// A MetricThreshold is the boundaries of a metric.
//
// +kubebuilder:validation:XValidation:rule="double(string(self.high)) > double(string(self.low))",fieldPath=".high",messageExpression="string(self.high) + ': must be above low ' + string(self.low)"
type MetricThreshold struct {
	// High is the upper boundary: above it the metric asks for more replicas.
	High Decimal `json:"high"`
	// Low is the lower boundary: below it the metric asks for fewer replicas. No value is below 0, so with a low of 0
	// the metric prevents every scale-down.
	Low Decimal `json:"low"`
}

// A ScalerRule says how one direction acts.
type ScalerRule struct {
	// ScaleStep is the number of replicas of one change.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ScaleStep *int32 `json:"scaleStep,omitempty"`

	// CooldownSeconds is the time to wait after a change before the next one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`

	// StabilizationWindowSeconds is how long the metric must have been beyond the threshold.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	StabilizationWindowSeconds *int32 `json:"stabilizationWindowSeconds,omitempty"`
}
