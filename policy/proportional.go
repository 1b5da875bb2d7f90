package policy

// A ProportionalProfile names the numbers that fields have which are not given.
//
// +kubebuilder:validation:Enum=llm;kthena;kpa;hpa
type ProportionalProfile string

// The profiles of the proportional scaler.
const (
	// ProfileLLM suits LLM servers, whose replicas are dear and take minutes to start.
	ProfileLLM ProportionalProfile = "llm"
	// ProfileKthena is what Kthena's autoscaler does by default.
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
	// Profile names the numbers that fields have which are not given.
	// +optional
	// +kubebuilder:default=llm
	Profile ProportionalProfile `json:"profile,omitempty"`

	// Metrics are what is read, and the targets. The metric that asks for most wins.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Metrics []TargetMetric `json:"metrics"`

	// ScaleUp says how far one decision goes up.
	// +optional
	ScaleUp *ProportionalRule `json:"scaleUp,omitempty"`

	// ScaleDown says how far one decision goes down.
	// +optional
	ScaleDown *ProportionalRule `json:"scaleDown,omitempty"`

	// StableWindowSeconds is what loads are averaged over; 0 is none. It is at most 600 times intervalSeconds, as every
	// sample in it is stored.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	StableWindowSeconds *int32 `json:"stableWindowSeconds,omitempty"`

	// ResolutionSeconds is the length of the buckets by which a window is kept: 1, if there is a window. stableWindowSeconds
	// is at most 3600 times it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ResolutionSeconds *int32 `json:"resolutionSeconds,omitempty"`

	// Panic says when a burst is answered at once, and nothing is taken away.
	// +optional
	Panic *Panic `json:"panic,omitempty"`

	// Stabilization holds against recommendations that come and go.
	// +optional
	Stabilization *Stabilization `json:"stabilization,omitempty"`

	// RateLimits bound changes within periods of time.
	// +optional
	RateLimits *RateLimits `json:"rateLimits,omitempty"`

	// ActivationScale is the least count for any load at all; below 2 it does nothing.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ActivationScale *int32 `json:"activationScale,omitempty"`

	// StartupCredit counts replicas that were asked for and are not ready as if they were, where the ready ones are the
	// measure.
	// +optional
	StartupCredit *bool `json:"startupCredit,omitempty"`

	// Forecast is a floor for the load that other days had at this time, of a scaler with one metric. If unset there is
	// none. A rate of requests suits it; requests in flight pile up where replicas are short, and are foreseen as a load.
	// +optional
	Forecast *Forecast `json:"forecast,omitempty"`
}

// A TargetMetric is a load and how much of it one replica should carry.
type TargetMetric struct {
	// Source says which number is read, and where. If unset it is vllm:num_requests_waiting at
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
	// Tolerance is the share of the target, "0.1" for a tenth, by which the load may be off without a change.
	// +optional
	Tolerance *Decimal `json:"tolerance,omitempty"`
	// MaxRate bounds a decision to so many times what is ready, or to what is ready divided by it. 0 is no bound.
	// +optional
	MaxRate *Decimal `json:"maxRate,omitempty"`
	// MaxStep bounds a decision to so many replicas. 0 is no bound.
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
	// WindowSeconds is the short window that sees a burst.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	WindowSeconds int32 `json:"windowSeconds"`
	// Threshold is how many times the ready replicas the burst must need.
	Threshold Decimal `json:"threshold"`
}

// A Stabilization holds against recommendations that come and go. What is not given is the profile's.
type Stabilization struct {
	// UpSeconds is the window of which the lowest recommendation counts for scaling up.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	UpSeconds *int32 `json:"upSeconds,omitempty"`
	// DownSeconds is the window of which the highest recommendation counts for scaling down.
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
	// Down limits how fast replicas are taken away.
	// +optional
	Down *RateLimit `json:"down,omitempty"`
}

// A RateLimit is the limits of one direction.
type RateLimit struct {
	// Limits are the limits; none do not limit.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Limits []Limit `json:"limits,omitempty"`
	// Select says which of several limits counts: the one that allows the largest change, the smallest, or Disabled, by
	// which there is no change in this direction.
	// +optional
	// +kubebuilder:default=Max
	// +kubebuilder:validation:Enum=Max;Min;Disabled
	Select string `json:"select,omitempty"`
}

// A Limit bounds the change within a period, to replicas or to a percentage of what there was.
//
// +kubebuilder:validation:XValidation:rule="has(self.replicas) != has(self.percent)",message="must have either replicas or percent"
type Limit struct {
	// Replicas is the most replicas that are added, or taken away, in the period.
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
