package v1alpha1

// DefaultMetricName is the family that is read where a source names neither a family nor a signal.
const DefaultMetricName = "vllm:num_requests_waiting"

// A ProtocolType is how pods are asked.
//
// +kubebuilder:validation:Enum=http;https
type ProtocolType string

// The protocols.
const (
	HTTP  ProtocolType = "http"
	HTTPS ProtocolType = "https"
)

// An Engine is an inference server whose metrics are known.
//
// +kubebuilder:validation:Enum=VLLM;SGLang;TGI;TRTLLM;Triton;Dynamo;LlamaCPP
type Engine string

// A Signal is a number that engines have under names of their own.
//
// +kubebuilder:validation:Enum=Waiting;Running;InFlight;KVCacheUsage;TTFT;TPOT;PrefixCacheHitRate;Preemptions
type Signal string

// An Aggregation makes one number of several series of one pod, as a data-parallel server has them.
//
// +kubebuilder:validation:Enum=Only;Sum;Average;Max;Min
type Aggregation string

// A MetricSource says which number of a pod is read, and where. Either name is given, or engine and signal; without any
// of them the name is vllm:num_requests_waiting.
//
// +kubebuilder:validation:XValidation:rule="has(self.engine) == has(self.signal)",message="engine and signal must be given together"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !has(self.signal)",fieldPath=".name",message="must not be given beside engine and signal"
// +kubebuilder:validation:XValidation:rule="!has(self.aggregation) || !has(self.signal)",fieldPath=".aggregation",message="must not be given beside engine and signal: how a signal is aggregated is known"
// +kubebuilder:validation:XValidation:rule="!has(self.quantile) || (has(self.signal) && self.signal in ['TTFT', 'TPOT'])",message="quantile: must be given only with the signals TTFT and TPOT"
// +kubebuilder:validation:XValidation:rule="!has(self.quantile) || (double(string(self.quantile)) > 0.0 && double(string(self.quantile)) < 1.0)",message="quantile: must be above 0 and below 1"
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(k, size(k) > 0)",message="labels: must not have an empty name"
// +kubebuilder:validation:XValidation:rule="!has(self.signal) || !(self.engine + '/' + self.signal in ['TGI/TTFT', 'TGI/PrefixCacheHitRate', 'TGI/Preemptions', 'TRTLLM/Preemptions', 'Triton/TPOT', 'Triton/PrefixCacheHitRate', 'Triton/Preemptions', 'Dynamo/Preemptions', 'LlamaCPP/KVCacheUsage', 'LlamaCPP/TTFT', 'LlamaCPP/TPOT', 'LlamaCPP/PrefixCacheHitRate', 'LlamaCPP/Preemptions'])",messageExpression="'signal: ' + self.signal + ': ' + self.engine + ' has none'"
type MetricSource struct {
	// Name is a metric family of the pods' pages. If neither it nor a signal is given, vllm:num_requests_waiting is
	// read.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_:][a-zA-Z0-9_:]*$`
	Name string `json:"name,omitempty"`

	// Engine is the inference server that the pods run. With it and signal, names through the engine's versions, their
	// aggregation and where they are served are known.
	// +optional
	Engine Engine `json:"engine,omitempty"`

	// Signal is the number to read of the engine. TTFT and TPOT are means of what was observed between two readings, in
	// seconds, or a quantile.
	// +optional
	Signal Signal `json:"signal,omitempty"`

	// Quantile reads TTFT or TPOT as a quantile, as "0.99".
	// +optional
	Quantile *Decimal `json:"quantile,omitempty"`

	// Protocol is how the pods are asked.
	// +optional
	// +kubebuilder:default=http
	Protocol ProtocolType `json:"protocol,omitempty"`

	// Port is the port at which pods serve metrics: a number, with or without quotes. If unset it is the engine's own,
	// and 5000 without an engine. Where ports have a name, scrape.portName is there instead.
	// +optional
	Port *PortNumber `json:"port,omitempty"`

	// Path is the path at which pods serve metrics. If unset it is the engine's own, and /metrics without an engine.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/(([A-Za-z0-9._~!$&()*+,;=:@-]|%[0-9A-Fa-f]{2})([A-Za-z0-9._~!$&()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?(\?[A-Za-z0-9._~!$&()*+,;=:@/?%\[\]-]*)?$`
	Path string `json:"path,omitempty"`

	// Labels keep only the series that have each of these labels with this value.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Aggregation makes one number of several series of one pod. If unset it is what is known of the family by its
	// name; of others several series are an error.
	// +optional
	Aggregation Aggregation `json:"aggregation,omitempty"`
}

// A LabelValue is the value of a label of a series.
//
// +kubebuilder:validation:MaxLength=256
type LabelValue string

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
	// BearerTokenSecretRef names the key of a Secret that holds a token, sent to https sources only. The key is token
	// if unset.
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
