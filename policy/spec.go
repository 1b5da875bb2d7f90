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
	// ScaleTargetRef points to what is scaled: a resource with the scale subresource, in the same namespace.
	ScaleTargetRef ScaleTargetReference `json:"scaleTargetRef"`

	// MinReplicas is the fewest replicas that the target may be asked to run. With 0, metrics may take the last replica
	// away and cannot bring one back, as there is no pod to ask: that takes cron, or somebody who scales by hand.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the most replicas that the target may be asked to run. It must not be below minReplicas.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	MaxReplicas int32 `json:"maxReplicas"`

	// DryRun decides, reports and writes nothing to the target.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// Paused decides, reports and writes nothing to the target, until it is taken away: then it acts at once on what it
	// has seen meanwhile. Cooldowns go on from the last write. A dry run shows the pace of cooldowns; a pause does not.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// IntervalSeconds is how often the metrics are read and a decision is made.
	// +optional
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
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

// A Scrape says where pods are asked for their metrics, whom to trust, and how to be known.
//
// Secrets are read in the LLMAutoScaler's own namespace, and only if they have the label
// autoscaling.inferscale.io/scrape-credentials: "true", so that who can write an LLMAutoScaler cannot have any Secret
// sent to a pod. The controller needs a role in the namespace to read them.
type Scrape struct {
	// PortName is the name that the port has at which pods serve metrics. It is looked up in each pod, and replaces
	// the port of every source; all sources then have one protocol.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[0-9]*[a-z]([a-z0-9-]*[a-z0-9])?$`
	PortName string `json:"portName,omitempty"`
	// TLS is for sources whose protocol is https.
	// +optional
	TLS *ScrapeTLS `json:"tls,omitempty"`
	// BearerTokenSecretRef names the key of a Secret that holds a token. All sources must be https then: it is never
	// sent in the open. The key is token if unset.
	// +optional
	BearerTokenSecretRef *SecretKeyReference `json:"bearerTokenSecretRef,omitempty"`
}

// A ScrapeTLS says whom to trust.
//
// +kubebuilder:validation:XValidation:rule="!has(self.insecureSkipVerify) || !self.insecureSkipVerify || !has(self.caSecretRef)",fieldPath=".caSecretRef",message="must not be given with insecureSkipVerify"
type ScrapeTLS struct {
	// CASecretRef names the key of a Secret that holds the authorities to trust, in PEM. The key is ca.crt if unset;
	// without the reference the authorities of the controller's image are trusted.
	// +optional
	CASecretRef *SecretKeyReference `json:"caSecretRef,omitempty"`
	// ServerName is the name that certificates are checked for, as they seldom have a pod's address.
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
