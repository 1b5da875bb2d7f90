package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workspace is a model to serve, the kind of nodes to serve it on, and how many replicas of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workspaces,scope=Namespaced,shortName=wk;wks,categories=workspace
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.inference.replicas,statuspath=.status.inference.replicas,selectorpath=.status.inference.selector
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.spec.resource.instanceType`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.inference.replicas`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.inference.replicas`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.inference.targetNodeCount`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="InferenceReady")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="InferenceReady")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be no longer than 63 characters: it is the value of a label of the pods"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.inference) || (has(self.status) && has(self.status.inference))",message="status.inference cannot be removed: its perReplicaNodeCount is constant"
type Workspace struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WorkspaceSpec   `json:"spec"`
	Status WorkspaceStatus `json:"status,omitempty"`

	// Unreadable says why spec, status or both are empty, if they could not be read: see UnmarshalJSON.
	Unreadable string `json:"-"`
}

// WorkspaceList is a list of Workspaces.
//
// +kubebuilder:object:root=true
type WorkspaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Workspace `json:"items"`
}

// WorkspaceSpec is what people ask for.
//
// +kubebuilder:validation:XValidation:rule="has(self.inference) || !has(oldSelf.inference)",message="spec.inference cannot be removed: delete the workspace, or scale it to 0"
type WorkspaceSpec struct {
	// Resource says on which nodes to run.
	Resource ResourceSpec `json:"resource"`

	// Inference says what to serve. A workspace without it runs no inference and cannot be scaled.
	// +optional
	Inference *InferenceSpec `json:"inference,omitempty"`
}

// ResourceSpec says on which nodes a workspace runs.
type ResourceSpec struct {
	// InstanceType is the instance type of the nodes, as the cloud calls it. It cannot change: the number of nodes of a
	// replica was estimated for it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.resource.instanceType is immutable: the nodes of a replica were estimated for it"
	InstanceType string `json:"instanceType"`

	// Count was the number of nodes.
	// Deprecated: it is ignored. The number of nodes is status.inference.targetNodeCount.
	// +kubebuilder:validation:Minimum=1
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Count *int32 `json:"count,omitempty"`

	// PreferredNodes are nodes that exist already, by name. A workspace that has them cannot be scaled.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	PreferredNodes []string `json:"preferredNodes,omitempty"`

	// LabelSelector selects the nodes that the pods may run on. Empty: all.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// InferenceSpec says what to serve and how often.
//
// +kubebuilder:validation:XValidation:rule="has(self.preset) != has(self.template)",message="spec.inference needs exactly one of preset and template; a workspace without inference settings cannot be scaled"
// +kubebuilder:validation:XValidation:rule="has(self.template) == has(self.model)",message="spec.inference.model describes the model of a template: set both, or a preset"
// +kubebuilder:validation:XValidation:rule="has(self.preset) == has(oldSelf.preset)",message="spec.inference cannot change from preset to template or back: the nodes of a replica were estimated for it"
type InferenceSpec struct {
	// Replicas is the number of inference servers that are wanted. The /scale subresource reads and writes it.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Replicas *int32 `json:"replicas,omitempty"`

	// Preset is a model that the controller knows.
	// +optional
	Preset *PresetSpec `json:"preset,omitempty"`

	// Template is a container of one's own.
	// +optional
	Template *TemplateSpec `json:"template,omitempty"`

	// Model describes the model of a template, for the estimate of its nodes.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.inference.model is immutable: the nodes of a replica were estimated for it"
	// +optional
	Model *ModelSpec `json:"model,omitempty"`
}

// PresetSpec names a model that the controller knows how to serve.
//
// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="spec.inference.preset.name is immutable: the nodes of a replica were estimated for it"
// +kubebuilder:validation:XValidation:rule="has(self.contextTokens) == has(oldSelf.contextTokens) && (!has(self.contextTokens) || self.contextTokens == oldSelf.contextTokens)",message="spec.inference.preset.contextTokens is immutable: the nodes of a replica were estimated for it"
type PresetSpec struct {
	// Name is that of the preset, as llama-3.1-8b-instruct.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`

	// ContextTokens is the longest sequence to serve. Default: what the model was trained for.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16777216
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ContextTokens *int32 `json:"contextTokens,omitempty"`

	// AccessSecret is the name of a Secret with the key HF_TOKEN, for models that are not public.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	AccessSecret string `json:"accessSecret,omitempty"`
}

// TemplateSpec is the container of an inference server.
type TemplateSpec struct {
	// Image is the container image.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// Args are the arguments of its entry point.
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// Port is where it serves requests, GET /health and GET /metrics.
	// +kubebuilder:default=8000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Port int32 `json:"port,omitempty"`
}

// Precision is how a parameter of a model is stored.
//
// +kubebuilder:validation:Enum=fp32;bf16;fp16;fp8;int8;int4
type Precision string

// The precisions that are known.
const (
	FP32 Precision = "fp32"
	BF16 Precision = "bf16"
	FP16 Precision = "fp16"
	FP8  Precision = "fp8"
	Int8 Precision = "int8"
	Int4 Precision = "int4"
)

// ModelSpec is what the memory that a model needs is estimated from.
//
// +kubebuilder:validation:XValidation:rule="has(self.parametersMillion) != has(self.weights)",message="spec.inference.model needs exactly one of parametersMillion and weights"
type ModelSpec struct {
	// ParametersMillion is the number of parameters in millions: 8030 for a model of 8.03 billion.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ParametersMillion *int64 `json:"parametersMillion,omitempty"`

	// Precision is how each parameter is stored.
	// +kubebuilder:default=bf16
	// +optional
	Precision Precision `json:"precision,omitempty"`

	// Weights is the memory that the weights take, as 15Gi, instead of parameters and precision.
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? size(self) <= 32 && !self.matches('[eE][+-]?[0-9]{3}') && quantity(self).isGreaterThan(quantity('0')) : int(self) > 0",message="must be a quantity above 0, of 32 characters and an exponent of two digits at most"
	// +optional
	Weights *resource.Quantity `json:"weights,omitempty"`

	// KVBytesPerToken is what one token takes in the key/value cache:
	// 2 * layers * key/value heads * head dimension * bytes per value.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1073741824
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	KVBytesPerToken int64 `json:"kvBytesPerToken"`

	// ContextTokens is the longest sequence to serve: one of that length must fit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16777216
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ContextTokens int32 `json:"contextTokens"`
}

// WorkspaceStatus is what the controller knows.
type WorkspaceStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Inference is the state of the inference servers. Absent until the nodes of a replica are known.
	// +optional
	Inference *InferenceStatus `json:"inference,omitempty"`

	// Conditions: NodesEstimated, Scalable, InferenceReady. Others' conditions are left alone, as ResourceReady of a
	// program that provides nodes.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, (!has(c.observedGeneration) || c.observedGeneration <= 9007199254740991) && c.lastTransitionTime >= timestamp('0001-01-01T00:00:00Z'))",message="each must have a time, and an observedGeneration of at most 9007199254740991"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// InferenceStatus is the state of the inference servers.
//
// +kubebuilder:validation:XValidation:rule="self.targetNodeCount % self.perReplicaNodeCount == 0",message="status.inference.targetNodeCount must be a multiple of perReplicaNodeCount"
type InferenceStatus struct {
	// Replicas is the number of pods that exist. It is for display and for /scale; nothing is decided on it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Replicas int32 `json:"replicas"`

	// PerReplicaNodeCount is the number of nodes of one replica. It does not change during the life of a workspace.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="status.inference.perReplicaNodeCount is immutable"
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	PerReplicaNodeCount int32 `json:"perReplicaNodeCount"`

	// TargetNodeCount is the number of nodes to provide: perReplicaNodeCount * spec.inference.replicas.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	TargetNodeCount int32 `json:"targetNodeCount"`

	// Selector selects the pods, in the form of a query. HorizontalPodAutoscalers and other readers of /scale need it.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Selector string `json:"selector,omitempty"`
}
