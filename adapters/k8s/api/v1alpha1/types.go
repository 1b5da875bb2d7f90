package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The defaults that the schema fills in.
const (
	DefaultMinReplicas     = 1
	DefaultIntervalSeconds = 15
)

// An LLMAutoScaler scales one target, such as a Deployment or a Workspace, by the metrics of its pods, by the clock, or
// by both.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=las,categories=all
// +kubebuilder:printcolumn:name="Kind",type=string,priority=1,JSONPath=`.spec.scaleTargetRef.kind`
// +kubebuilder:printcolumn:name="Reference",type=string,JSONPath=`.spec.scaleTargetRef.name`
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.minReplicas`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.maxReplicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.currentReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.lastDecision.verdict`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.lastDecision.code`
// +kubebuilder:printcolumn:name="Dry-Run",type=boolean,priority=1,JSONPath=`.spec.dryRun`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LLMAutoScaler struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LLMAutoScalerSpec `json:"spec"`
	// +optional
	Status LLMAutoScalerStatus `json:"status,omitempty"`
}

// An LLMAutoScalerList is a list of LLMAutoScalers.
//
// +kubebuilder:object:root=true
type LLMAutoScalerList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LLMAutoScaler `json:"items"`
}

// An LLMAutoScalerSpec says what is scaled, within which bounds and by which rules.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",messageExpression="'%d: must not be above maxReplicas %d'.format([self.minReplicas, self.maxReplicas])"
// +kubebuilder:validation:XValidation:rule="!has(self.scaler.proportional) || !has(self.scaler.proportional.stableWindowSeconds) || self.scaler.proportional.stableWindowSeconds <= 600 * self.intervalSeconds",messageExpression="'scaler.proportional.stableWindowSeconds: %d: must be at most 600 times intervalSeconds %d'.format([self.scaler.proportional.stableWindowSeconds, self.intervalSeconds])"
// +kubebuilder:validation:XValidation:rule="!has(self.scaler.proportional) || !has(self.scaler.proportional.stabilization) || !has(self.scaler.proportional.stabilization.upSeconds) || self.scaler.proportional.stabilization.upSeconds <= 600 * self.intervalSeconds",messageExpression="'scaler.proportional.stabilization.upSeconds: %d: must be at most 600 times intervalSeconds %d'.format([self.scaler.proportional.stabilization.upSeconds, self.intervalSeconds])"
// +kubebuilder:validation:XValidation:rule="!has(self.scaler.proportional) || !has(self.scaler.proportional.stabilization) || !has(self.scaler.proportional.stabilization.downSeconds) || self.scaler.proportional.stabilization.downSeconds <= 600 * self.intervalSeconds",messageExpression="'scaler.proportional.stabilization.downSeconds: %d: must be at most 600 times intervalSeconds %d'.format([self.scaler.proportional.stabilization.downSeconds, self.intervalSeconds])"
// +kubebuilder:validation:XValidation:rule="!has(self.scrape) || !has(self.scrape.portName) || !has(self.scaler.realtime) || self.scaler.realtime.metrics.all(m, m.source.protocol == self.scaler.realtime.metrics[0].source.protocol)",message="scrape.portName: the sources of scaler.realtime.metrics must have one protocol"
// +kubebuilder:validation:XValidation:rule="!has(self.scrape) || !has(self.scrape.portName) || !has(self.scaler.proportional) || self.scaler.proportional.metrics.all(m, m.source.protocol == (has(self.scaler.realtime) ? self.scaler.realtime.metrics[0].source.protocol : self.scaler.proportional.metrics[0].source.protocol))",message="scrape.portName: the sources of scaler.proportional.metrics must have one protocol, that of scaler.realtime.metrics if there are any"
type LLMAutoScalerSpec struct {
	// ScaleTargetRef points to what is scaled: a resource with the scale subresource, in the same namespace.
	ScaleTargetRef ScaleTargetReference `json:"scaleTargetRef"`

	// MinReplicas is the fewest replicas that the target may be asked to run. With 0, metrics may take the last replica
	// away and cannot bring one back, as there is no pod to ask: that takes cron, or somebody who scales by hand.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the most replicas that the target may be asked to run. It must not be below minReplicas.
	// +kubebuilder:validation:Minimum=1
	MaxReplicas int32 `json:"maxReplicas"`

	// Scaler says by what rules to scale. At least one of realtime, proportional and cron is given. Of realtime and
	// proportional the one that asks for more wins; beside either of them cron is a floor, and alone it is exact.
	Scaler Scaler `json:"scaler"`

	// DryRun decides, reports and writes nothing to the target.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// IntervalSeconds is how often the metrics are read and a decision is made.
	// +optional
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`

	// Grouping says which pods make a replica: Pod, each of them, LeaderWorkerSet, the groups of one, or KaitoWorkspace,
	// those of one Workspace. Of groups the leaders are asked for metrics.
	// +optional
	// +kubebuilder:default=Pod
	// +kubebuilder:validation:Enum=Pod;LeaderWorkerSet;KaitoWorkspace
	Grouping string `json:"grouping,omitempty"`

	// Scrape says where pods are asked for their metrics, whom to trust, and by what token to be known.
	// +optional
	Scrape *Scrape `json:"scrape,omitempty"`
}

// A ScaleTargetReference names a resource that has the scale subresource.
type ScaleTargetReference struct {
	// APIVersion is the group and version of the target, as apps/v1.
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[a-z]([a-z0-9-]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion"`
	// Kind is the kind of the target, as Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name is the name of the target.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// A Scaler has the rules to scale by.
//
// +kubebuilder:validation:XValidation:rule="has(self.realtime) || has(self.proportional) || has(self.cron)",message="must have at least one of realtime, proportional and cron"
// +kubebuilder:validation:XValidation:rule="!has(self.realtime) || !has(self.proportional) || self.realtime.metrics.all(a, self.proportional.metrics.all(b, (has(a.source.signal) ? a.source.signal : has(a.source.name) ? a.source.name : 'vllm:num_requests_waiting') != (has(b.source.signal) ? b.source.signal : has(b.source.name) ? b.source.name : 'vllm:num_requests_waiting') || (a.source.protocol == b.source.protocol && (has(a.source.engine) ? a.source.engine : '-') == (has(b.source.engine) ? b.source.engine : '-') && (has(a.source.signal) ? a.source.signal : '-') == (has(b.source.signal) ? b.source.signal : '-') && (has(a.source.quantile) ? double(a.source.quantile) : 0.0) == (has(b.source.quantile) ? double(b.source.quantile) : 0.0) && (has(a.source.port) ? int(a.source.port) : 0) == (has(b.source.port) ? int(b.source.port) : 0) && (has(a.source.path) ? a.source.path : '-') == (has(b.source.path) ? b.source.path : '-') && (has(a.source.labels) ? dyn(a.source.labels) : dyn('-')) == (has(b.source.labels) ? dyn(b.source.labels) : dyn('-')) && (has(a.source.aggregation) ? a.source.aggregation : '-') == (has(b.source.aggregation) ? b.source.aggregation : '-'))))",message="sources of realtime and proportional with one name, or signal, must be the same"
type Scaler struct {
	// Realtime scales by thresholds, one step at a time.
	// +optional
	Realtime *RealtimeScaler `json:"realtime,omitempty"`
	// Proportional runs as many replicas as the load needs at a target per replica.
	// +optional
	Proportional *ProportionalScaler `json:"proportional,omitempty"`
	// Cron asks for replicas by the clock.
	// +optional
	Cron *CronScaler `json:"cron,omitempty"`
}
