package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/inferscale/inferscale/policy"
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
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.status.conditions[?(@.type=="ScalingActive")].reason`
// +kubebuilder:printcolumn:name="Cooldown-Until",type=string,priority=1,JSONPath=`.status.cooldownUntil`
// +kubebuilder:printcolumn:name="Dry-Run",type=boolean,priority=1,JSONPath=`.spec.dryRun`
// +kubebuilder:printcolumn:name="Paused",type=boolean,priority=1,JSONPath=`.spec.paused`
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
// +kubebuilder:validation:XValidation:rule="!has(self.scaler.capacity) || self.intervalSeconds <= 600",fieldPath=".intervalSeconds",messageExpression="'%d: must be at most 600 with scaler.capacity'.format([self.intervalSeconds])"
// +kubebuilder:validation:XValidation:rule="!has(self.scrape) || !has(self.scrape.portName) || !has(self.scaler.capacity) || ((!has(self.scaler.realtime) || self.scaler.realtime.metrics[0].source.protocol == self.scaler.capacity.source.protocol) && (!has(self.scaler.proportional) || self.scaler.proportional.metrics[0].source.protocol == self.scaler.capacity.source.protocol))",message="scrape.portName: the sources of scaler.capacity and of other metrics must have one protocol"
type LLMAutoScalerSpec struct {
	policy.Settings `json:",inline"`

	// Scaler says by what rules to scale. Of realtime, proportional, saturation, capacity and static the one that asks for most
	// wins; beside any of them cron is a floor, and alone it is exact.
	Scaler policy.Scaler `json:"scaler"`

	// Shadow are policies that watch: what each would ask for, with a count of its own, is in metrics, events and
	// status.shadows, and never written. The load that they see is the real fleet's, over their own count.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Shadow []Shadow `json:"shadow,omitempty"`

	// Attainment says by what the shadows' counts are judged: what each would have attained is then simulated from the live
	// load, and is in metrics and status.shadows. If unset the first capacity scaler says it, of spec.scaler or of a shadow;
	// without one it is not known. One that is wrong is passed over, and the rest of the spec is carried out.
	// +optional
	Attainment *policy.Attainment `json:"attainment,omitempty"`
}

// A Shadow is a policy that watches.
type Shadow struct {
	// Name tells it from the others, in metrics, events and the status.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Scaler says by what rules it would scale, within the same bounds: as spec.scaler, and with everything that a scaler
	// of a policy document can have. The webhook judges it. One that is wrong is left out, and the rest of the spec is carried out.
	// +kubebuilder:pruning:PreserveUnknownFields
	Scaler runtime.RawExtension `json:"scaler"`
}

// Shadows returns the shadows as they were written.
func (s *LLMAutoScalerSpec) Shadows() []policy.RawShadow {
	var all []policy.RawShadow
	for i := range s.Shadow {
		all = append(all, policy.RawShadow{Name: s.Shadow[i].Name, Scaler: s.Shadow[i].Scaler.Raw})
	}
	return all
}

// Document returns the spec as documents have it, without its shadows.
func (s *LLMAutoScalerSpec) Document() *policy.Spec {
	return &policy.Spec{Settings: s.Settings, Scaler: policy.Composite{Scaler: s.Scaler}, Attainment: s.Attainment}
}
