package policy

// The defaults of a spec.
const (
	DefaultMinReplicas     = 1
	DefaultIntervalSeconds = 15
)

// A Settings is what a spec says beside its rules: what is scaled, within which bounds, how often and how pods are asked.
//
// In documents that are no LLMAutoScaler none of it need be given.
type Settings struct {
	// ScaleTargetRef is the target: a resource with the scale subresource, in the same namespace.
	ScaleTargetRef ScaleTargetReference `json:"scaleTargetRef"`

	// MinReplicas is the minimum replica count of the target. With 0, metrics can remove the last replica but cannot
	// bring one back, as no pod is left to read: only cron, or scaling by hand, does.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the maximum replica count of the target. It must not be below minReplicas.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	MaxReplicas int32 `json:"maxReplicas"`

	// DryRun makes the controller decide and report without writing to the target.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// Paused makes the controller decide and report without writing to the target until the field is removed; it then
	// acts at once on what it has seen meanwhile. Cooldowns keep counting from the last real write, while in a dry run
	// they count from the writes that would have been made.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// IntervalSeconds is the time between two rounds, each of which reads the metrics and decides.
	// +optional
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`

	// Grouping says which pods form a replica: Pod, each pod by itself; LeaderWorkerSet, the pods of a group;
	// KaitoWorkspace, the pods of a Workspace. Metrics are read from the leader of each group.
	// +optional
	// +kubebuilder:default=Pod
	// +kubebuilder:validation:Enum=Pod;LeaderWorkerSet;KaitoWorkspace
	Grouping string `json:"grouping,omitempty"`

	// Scrape says at which port pods serve metrics, which CAs to trust, and which token to send.
	// +optional
	Scrape *Scrape `json:"scrape,omitempty"`
}

// A Spec says what is scaled, within which bounds and by which rules: what an LLMAutoScaler has at spec.
type Spec struct {
	Settings `json:",inline"`

	// Scaler says by what rules to scale.
	Scaler Composite `json:"scaler"`

	// Shadow are policies that watch: what each would ask for, with a count of its own, is told, and never written. The load
	// that they see is the real fleet's, over their own count.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	Shadow []Shadow `json:"shadow,omitempty"`

	// Attainment says by what the shadows' counts are judged: what each would have attained is then simulated from the live
	// load. If unset the first capacity scaler says it, of the spec's own or of a shadow; without one it is not known.
	// +optional
	Attainment *Attainment `json:"attainment,omitempty"`
}

// A ScaleTargetReference names a resource that has the scale subresource.
type ScaleTargetReference struct {
	// APIVersion is the group and version of the target, like apps/v1.
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[a-z]([a-z0-9-]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion"`
	// Kind is the kind of the target, like Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name is the name of the target.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// A Scrape says where pods are asked for their metrics, whom to trust, and how to be known.
//
// Secrets are read in the LLMAutoScaler's own namespace, and only if they have the label
// autoscaling.inferscale.io/scrape-credentials: "true", so that who can write an LLMAutoScaler cannot have any Secret
// sent to a pod. The controller needs a role in the namespace to read them.
type Scrape struct {
	// PortName is the name of the container port at which pods serve metrics. It is looked up in each pod and replaces
	// the port of every source; all sources must then have the same protocol.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[0-9]*[a-z]([a-z0-9-]*[a-z0-9])?$`
	PortName string `json:"portName,omitempty"`
	// TLS applies to sources whose protocol is https.
	// +optional
	TLS *ScrapeTLS `json:"tls,omitempty"`
	// BearerTokenSecretRef names the key of a Secret with a bearer token. All sources must then be https, so that the
	// token is never sent in the open. If unset, the key is token.
	// +optional
	BearerTokenSecretRef *SecretKeyReference `json:"bearerTokenSecretRef,omitempty"`
}

// A ScrapeTLS says whom to trust.
//
// +kubebuilder:validation:XValidation:rule="!has(self.insecureSkipVerify) || !self.insecureSkipVerify || !has(self.caSecretRef)",fieldPath=".caSecretRef",message="must not be given with insecureSkipVerify"
type ScrapeTLS struct {
	// CASecretRef names the key of a Secret with the CA certificates to trust, in PEM. If unset, the key is ca.crt.
	// Without the reference the CAs of the controller's image are trusted.
	// +optional
	CASecretRef *SecretKeyReference `json:"caSecretRef,omitempty"`
	// ServerName is the name that certificates are verified for, as they seldom contain a pod's address.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`
	ServerName string `json:"serverName,omitempty"`
	// InsecureSkipVerify accepts any certificate.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// A SecretKeyReference names a key of a Secret in the same namespace.
type SecretKeyReference struct {
	// Name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the key in the Secret's data.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}
