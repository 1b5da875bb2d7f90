package policy

// A ProportionalProfile names the numbers that fields have which are not given.
//
// +kubebuilder:validation:Enum=llm;kthena;kpa;hpa
type ProportionalProfile string

// The profiles of the proportional scaler.
const (
	// ProfileLLM suits LLM servers, whose replicas are dear and take minutes to start.
	ProfileLLM ProportionalProfile = "llm"
	// ProfileKthena is what the autoscaler of Kthena 1.0.0 does by default, with a panic, which Kthena has only where a panicPolicy is given.
	ProfileKthena ProportionalProfile = "kthena"
	// ProfileKPA is what Knative's pod autoscaler does by default.
	ProfileKPA ProportionalProfile = "kpa"
	// ProfileHPA is what a HorizontalPodAutoscaler does by default.
	ProfileHPA ProportionalProfile = "hpa"
)

// A ProportionalScaler runs as many replicas as the load needs at a target per replica.
//
// +kubebuilder:validation:XValidation:rule="self.metrics.all(a, self.metrics.exists_one(b, (has(a.source.signal) ? a.source.signal : has(a.source.name) ? a.source.name : 'vllm:num_requests_waiting') == (has(b.source.signal) ? b.source.signal : has(b.source.name) ? b.source.name : 'vllm:num_requests_waiting')))",message="metrics: the name, or the signal, of each source must be unique"
// +kubebuilder:validation:XValidation:rule="(has(self.panic) ? self.panic.windowSeconds : self.profile == 'kthena' ? 15 : self.profile == 'kpa' ? 6 : 0) <= (has(self.stableWindowSeconds) ? self.stableWindowSeconds : self.profile == 'llm' ? 30 : self.profile == 'hpa' ? 0 : 60)",message="panic.windowSeconds: must be at most stableWindowSeconds; what is not given is the profile's"
// +kubebuilder:validation:XValidation:rule="!has(self.forecast) || size(self.metrics) == 1",fieldPath=".forecast",message="must stand beside one metric: it is the load on it that is foreseen"
type ProportionalScaler struct {
	// Profile names the defaults of the fields that are not given.
	// +optional
	// +kubebuilder:default=llm
	Profile ProportionalProfile `json:"profile,omitempty"`

	// Metrics are the metrics and their targets. The metric that asks for the most replicas wins.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Metrics []TargetMetric `json:"metrics"`

	// ScaleUp limits how far one decision scales up.
	// +optional
	ScaleUp *ProportionalRule `json:"scaleUp,omitempty"`

	// ScaleDown limits how far one decision scales down.
	// +optional
	ScaleDown *ProportionalRule `json:"scaleDown,omitempty"`

	// StableWindowSeconds is the window over which loads are averaged; 0 means no averaging. It is at most 600 times
	// intervalSeconds, as every sample in it is stored.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	StableWindowSeconds *int32 `json:"stableWindowSeconds,omitempty"`

	// ResolutionSeconds is the length of the buckets of a window, 1 by default. stableWindowSeconds is at most 3600
	// times that.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ResolutionSeconds *int32 `json:"resolutionSeconds,omitempty"`

	// Panic says when the scaler reacts to a burst at once, and does not scale down.
	// +optional
	Panic *Panic `json:"panic,omitempty"`

	// Stabilization ignores short-lived recommendations.
	// +optional
	Stabilization *Stabilization `json:"stabilization,omitempty"`

	// RateLimits bound changes within periods of time.
	// +optional
	RateLimits *RateLimits `json:"rateLimits,omitempty"`

	// ActivationScale is the minimum count while there is any load; below 2 it has no effect.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ActivationScale *int32 `json:"activationScale,omitempty"`

	// StartupCredit counts requested replicas that are not ready yet as ready, for panic and for scaleDown.maxRate;
	// scaleUp.maxRate always uses the ready replicas.
	// +optional
	StartupCredit *bool `json:"startupCredit,omitempty"`

	// Forecast adds a floor: the replicas for the load that earlier days had at this time. The scaler must have one
	// metric. If unset there is none. A request rate suits it; requests in flight do not, as they also pile up when
	// replicas are short, and the pile would be forecast as load.
	// +optional
	Forecast *Forecast `json:"forecast,omitempty"`
}

// A TargetMetric is a load metric and how much of it one replica should carry.
type TargetMetric struct {
	// Source is the metric to read, and where pods serve it. If unset it is vllm:num_requests_waiting at
	// http://{pod}:5000/metrics.
	// +optional
	// +kubebuilder:default={}
	Source MetricSource `json:"source,omitempty"`

	// Target is the load that one replica should carry, in the metric's unit.
	// +kubebuilder:validation:XValidation:rule="double(string(self)) > 0.0",messageExpression="'%s: must be above 0'.format([string(self)])"
	Target Decimal `json:"target"`

	// Measure says how a reading becomes the load of the fleet: PerPod is the pods' average times their number, Average
	// is the average times the ready replicas, Total is the average itself.
	// +optional
	// +kubebuilder:default=PerPod
	// +kubebuilder:validation:Enum=PerPod;Total;Average
	Measure string `json:"measure,omitempty"`
}

// A ProportionalRule says how far one direction goes at one decision. What is not given is the profile's.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxRate) || double(string(self.maxRate)) == 0.0 || double(string(self.maxRate)) > 1.0",message="maxRate: must be above 1, or 0 for none"
type ProportionalRule struct {
	// Tolerance is the share of the target by which the load may differ from it without a change, "0.1" for a tenth.
	// +optional
	Tolerance *Decimal `json:"tolerance,omitempty"`
	// MaxRate limits a decision to the ready replicas times this number, or divided by it when scaling down. 0 means no
	// limit.
	// +optional
	MaxRate *Decimal `json:"maxRate,omitempty"`
	// MaxStep limits a decision to a change of this many replicas. 0 means no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	MaxStep *int32 `json:"maxStep,omitempty"`
}

// A Panic says when a burst is answered at once. Both numbers are 0 for none.
//
// +kubebuilder:validation:XValidation:rule="double(string(self.threshold)) == 0.0 || double(string(self.threshold)) > 1.0",fieldPath=".threshold",messageExpression="'%s: must be above 1, or 0 for none'.format([string(self.threshold)])"
// +kubebuilder:validation:XValidation:rule="(double(string(self.threshold)) == 0.0) == (self.windowSeconds == 0)",fieldPath=".windowSeconds",messageExpression="'%d: must be 0 if and only if threshold is, which is %s'.format([self.windowSeconds, string(self.threshold)])"
type Panic struct {
	// WindowSeconds is the short window in which a burst is detected.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	WindowSeconds int32 `json:"windowSeconds"`
	// Threshold is the ratio of the replicas that a burst needs to the ready replicas, from which on the scaler panics.
	Threshold Decimal `json:"threshold"`
}

// A Stabilization holds against recommendations that come and go. What is not given is the profile's.
type Stabilization struct {
	// UpSeconds is the window whose lowest recommendation limits scaling up.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	UpSeconds *int32 `json:"upSeconds,omitempty"`
	// DownSeconds is the window whose highest recommendation limits scaling down.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	DownSeconds *int32 `json:"downSeconds,omitempty"`
}

// RateLimits bound changes within periods of time. A direction that is not given is the profile's.
type RateLimits struct {
	// Up limits how fast replicas are added.
	// +optional
	Up *RateLimit `json:"up,omitempty"`
	// Down limits how fast replicas are removed.
	// +optional
	Down *RateLimit `json:"down,omitempty"`
}

// A RateLimit is the limits of one direction.
type RateLimit struct {
	// Limits are the limits. Without any, changes are not limited.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Limits []Limit `json:"limits,omitempty"`
	// Select says which of several limits applies: the one that allows the largest change, the one that allows the
	// smallest, or Disabled, which allows no change in this direction.
	// +optional
	// +kubebuilder:default=Max
	// +kubebuilder:validation:Enum=Max;Min;Disabled
	Select string `json:"select,omitempty"`
}

// A Limit bounds the change within a period, in replicas or in percent of the count at its beginning.
//
// +kubebuilder:validation:XValidation:rule="has(self.replicas) != has(self.percent)",message="must have either replicas or percent"
type Limit struct {
	// Replicas is the maximum number of replicas added or removed in the period.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Replicas int32 `json:"replicas,omitempty"`
	// Percent is the largest change in the period, in percent of the count at its beginning.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Percent int32 `json:"percent,omitempty"`
	// PeriodSeconds is the length of the period.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1800
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	PeriodSeconds int32 `json:"periodSeconds"`
}
