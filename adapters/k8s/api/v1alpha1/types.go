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

// An LLMAutoScalerSpec names the target, the bounds and the rules of scaling.
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

	// Scaler has the rules of scaling. Of realtime, proportional, saturation, capacity and static the one that asks for
	// the most replicas wins. Beside any of them cron is a lower bound; alone it sets the exact count.
	Scaler policy.Scaler `json:"scaler"`

	// Shadow are policies that only watch. What each would ask for is in metrics, events and status.shadows, and is
	// never written. They see the load of the real fleet, divided by their own replica count.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Shadow []Shadow `json:"shadow,omitempty"`

	// Attainment is the SLO and the server by which the counts of shadows are judged: what each would have attained is
	// simulated from the live load, and is in metrics and status.shadows. If unset, those of the first capacity scaler
	// are used, of spec.scaler or of a shadow; without one, attainment is unknown. A wrong attainment is ignored, and
	// the rest of the spec is carried out.
	// +optional
	Attainment *policy.Attainment `json:"attainment,omitempty"`
}

// A Shadow is a policy that only watches.
type Shadow struct {
	// Name is the unique name of the shadow in metrics, events and the status.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Scaler has the rules of the shadow, within the same bounds: like spec.scaler, and with everything that a scaler
	// of a policy document can have. The webhook validates it. A wrong one is left out, and the rest of the spec is
	// carried out.
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
