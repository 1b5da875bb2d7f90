package policy

// A Scaler has the rules to scale by: what an LLMAutoScaler has at spec.scaler.
//
//	wish   = the most that realtime, proportional, saturation, capacity and static ask for, of those that are given
//	floor  = at least what cron asks for; cron alone is exact
//	then     stabilization, rateLimits and the bounds, in this order
//
// +kubebuilder:validation:XValidation:rule="has(self.realtime) || has(self.proportional) || has(self.saturation) || has(self.capacity) || has(self.static) || has(self.cron)",message="must have at least one of realtime, proportional, saturation, capacity, static and cron"
// +kubebuilder:validation:XValidation:rule="!has(self.realtime) || !has(self.proportional) || self.realtime.metrics.all(a, self.proportional.metrics.all(b, (has(a.source.signal) ? a.source.signal : has(a.source.name) ? a.source.name : 'vllm:num_requests_waiting') != (has(b.source.signal) ? b.source.signal : has(b.source.name) ? b.source.name : 'vllm:num_requests_waiting') || (a.source.protocol == b.source.protocol && (has(a.source.engine) ? a.source.engine : '-') == (has(b.source.engine) ? b.source.engine : '-') && (has(a.source.signal) ? a.source.signal : '-') == (has(b.source.signal) ? b.source.signal : '-') && (has(a.source.quantile) ? double(a.source.quantile) : 0.0) == (has(b.source.quantile) ? double(b.source.quantile) : 0.0) && (has(a.source.port) ? int(a.source.port) : 0) == (has(b.source.port) ? int(b.source.port) : 0) && (has(a.source.path) ? a.source.path : '-') == (has(b.source.path) ? b.source.path : '-') && (has(a.source.labels) ? dyn(a.source.labels) : dyn('-')) == (has(b.source.labels) ? dyn(b.source.labels) : dyn('-')) && (has(a.source.aggregation) ? a.source.aggregation : '-') == (has(b.source.aggregation) ? b.source.aggregation : '-'))))",message="sources of realtime and proportional with one name, or signal, must be the same"
type Scaler struct {
	// Realtime scales by thresholds, one step at a time.
	// +optional
	Realtime *RealtimeScaler `json:"realtime,omitempty"`
	// Proportional runs as many replicas as the load needs at a target per replica.
	// +optional
	Proportional *ProportionalScaler `json:"proportional,omitempty"`
	// Saturation scales by the spare room of KV caches and queues.
	// +optional
	Saturation *SaturationScaler `json:"saturation,omitempty"`
	// Capacity scales by the arriving work, in tokens, and learns how much work a replica can take.
	// +optional
	Capacity *CapacityScaler `json:"capacity,omitempty"`
	// Static always asks for the same count.
	// +optional
	Static *StaticScaler `json:"static,omitempty"`
	// Cron asks for replica counts by the clock.
	// +optional
	Cron *CronScaler `json:"cron,omitempty"`
	// Stabilization ignores short-lived recommendations of the scalers beside it. If unset there is none.
	// +optional
	Stabilization *Stabilization `json:"stabilization,omitempty"`
	// RateLimits bound how fast the count changes, whatever the scalers beside them ask for. If unset there are none.
	// +optional
	RateLimits *RateLimits `json:"rateLimits,omitempty"`
}

// A StaticScaler asks for one count.
type StaticScaler struct {
	// Replicas is the replica count.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Replicas int32 `json:"replicas"`
}

// A Composite is a Scaler that can contain further scalers. It takes the place of an LLMAutoScaler's Scaler in other
// documents, because a CustomResourceDefinition cannot describe a recursive type.
type Composite struct {
	Scaler `json:",inline"`

	// Highest are further scalers. The one that asks for most wins, among these and the realtime, proportional, saturation,
	// capacity and static scalers of this object. With those in them there may be 1,000, at most 8 deep.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Highest []Member `json:"highest,omitempty"`
}

// A Member is one of several scalers; the one that asks for most wins.
type Member struct {
	// Name is its unique name, in states and reasons. If unset it is that of the algorithm with its profile.
	// +optional
	Name string `json:"name,omitempty"`
	// MinReplicas is the fewest replicas that it asks for. It must be given only together with maxReplicas, and is then 1 if
	// unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// MaxReplicas is the most replicas that it asks for. If unset, the bounds of the enclosing object count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

	Composite `json:",inline"`
}
