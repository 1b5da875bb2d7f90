package keda

import (
	"cmp"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

const (
	// DefaultScalerName is the default of the scalerName of this scaler's triggers.
	DefaultScalerName = "keda-kaito-scaler"
	// DefaultInterval is the default time between two rounds of a trigger.
	DefaultInterval = 15 * time.Second
	// DefaultScrapeTimeout is the default time that a pod has to answer.
	DefaultScrapeTimeout = 5 * time.Second
	// ReplicasMetric is the metric name in Mode Replicas.
	ReplicasMetric = "desired-replicas"
	// maxBody is the maximum size of a metrics page, in bytes. Real pages reach 1 MB, and the pods of all ScaledObjects share
	// the scaler's memory.
	maxBody = 2 << 20
	// fromEnv is the suffix of a key whose value KEDA has taken from the environment of the target's container.
	fromEnv = "FromEnv"
)

// A Mode is the meaning of a trigger's value.
type Mode string

// The modes.
const (
	// Metric sends the metric of the pods, and the HorizontalPodAutoscaler decides. The value is the total over the pods if
	// the trigger's metricType is AverageValue, and their mean if it is Value. Pods without an answer cause no scaling: of the
	// totals that are possible, the one nearest to "hold" is sent. The trigger is active as long as the target exists and can
	// be scaled, because without pods nothing could tell that one is needed.
	Metric Mode = "metric"
	// Replicas sends the replica count that a scaling.Policy asks for, with a target of 1, and is active while the count is
	// above 0. The state of its loop is stored before a result is used for answers. Each round is made by one replica of the
	// scaler, and the others answer with its result. A replica of the scaler that gets no answer from the pods uses the result
	// of another.
	//
	// A HorizontalPodAutoscaler has a tolerance of 0.1, so that from 10 replicas on it ignores a step of 1. Set
	// spec.advanced.horizontalPodAutoscalerConfig.behavior.{scaleUp,scaleDown}.tolerance to 0, as package defaulting does.
	// This needs Kubernetes 1.33 with the feature gate, or 1.35. With older versions use steps of more than a tenth, or start
	// the controller manager with --horizontal-pod-autoscaler-tolerance=0.
	Replicas Mode = "replicas"
)

// A MetricType says how the HorizontalPodAutoscaler uses a value. KEDA does not send it, but the ScaledObject has it.
type MetricType string

// The metric types.
const (
	// AverageValue divides the value by the target: the value must be the total over all replicas.
	AverageValue MetricType = "AverageValue"
	// Value multiplies value / target by the number of ready pods: the value must be the mean over the ready pods.
	Value MetricType = "Value"
)

// Metadata is the parsed metadata of a trigger. ParseMetadata documents the keys.
type Metadata struct {
	ScalerName string
	Mode       Mode
	MetricType MetricType
	// Target is the target in the metadata; empty fields are taken from the ScaledObject's scaleTargetRef.
	Target k8s.Target
	// MinReplicas and MaxReplicas, if given, replace those of the ScaledObject. They exist only in Mode Replicas.
	MinReplicas, MaxReplicas *int32
	// Threshold is the target of Mode Metric.
	Threshold float64
	// Scaler has the rules of Mode Replicas. In Mode Metric it is a proportional scaler that names the metric to read.
	Scaler        policy.Composite
	Interval      time.Duration
	ScrapeTimeout time.Duration
	PortName      string
	Grouping      string
	TLS           *policy.ScrapeTLS
	// Shadow is a list of shadows in the form of spec.shadow of an LLMAutoScaler; empty means none.
	Shadow string
	// Attainment says how the shadows' counts are judged, in the form of spec.attainment of an LLMAutoScaler; if it is empty,
	// the SLO and server of a capacity scaler are used.
	Attainment string
	// StateName distinguishes the state of this trigger from those of others.
	StateName string

	// Unknown are the keys without a meaning here, sorted.
	Unknown []string
	// Warnings say what is questionable about known keys.
	Warnings []string

	keys    map[string]string     // the spelling of each key in the metadata
	policy  string                // the policy that threshold is for; empty without threshold
	bounded bool                  // whether a document gives bounds, of which the lower is 1 if it is not given
	whole   string                // the key with all the rules: scaler or policy; empty if there is neither
	address string                // KEDA's key scalerAddress
	sent    map[string]string     // the metadata as received
	tuner   func() capacity.Tuner // makes the tuners of capacity scalers; nil if nothing is decided

	shadowTuner func() capacity.Tuner // makes the tuners of shadows; nil if nothing is decided
}

// written returns the spelling of a key in the metadata.
func (m *Metadata) written(key string) string { return cmp.Or(m.keys[key], key) }

// ParseMetadata reads the metadata of a trigger, or reports the wrong keys, each as a *scaling.FieldError. No error contains
// a value that KEDA took from the environment (FromEnv), or the value of an unknown key.
//
//	scalerName          required
//	mode                "metric" (default) or "replicas"
//	threshold           required in mode metric, at least 0.001: the target, to thousandths. In mode replicas the load of
//	                    one replica (policy proportional) or the upper boundary of the pods' average (policy realtime)
//	metricType          "AverageValue" (default) or "Value": the trigger's own metricType. Mode metric only. If the
//	                    ScaledObject is read, its metricType counts, and this key must agree with it
//
//	metricName          default vllm:num_requests_waiting
//	metricProtocol      "http" (default) or "https"; metricPorotocol, the proposal's spelling, is accepted too
//	metricPort          default 5000; a number, or the name of the container's port
//	metricPath          default /metrics; a page may have up to 2 MiB
//	aggregation         Only, Sum, Average, Max or Min: makes one number of several series of one pod
//	engine, signal      instead of metricName: a signal of an inference server, for example VLLM and KVCacheUsage
//	quantile            with the signals TTFT and TPOT
//	scrapeTimeout       default 5 (seconds), or a duration as 1500ms
//	tlsServerName       the name that the pods' certificates are checked for
//	tlsInsecureSkipVerify  "true" accepts any certificate of the pods
//
//	workspaceName       default the name of spec.scaleTargetRef; targetName is the same
//	workspaceNamespace  default the ScaledObject's; targetNamespace is the same
//	targetAPIVersion    default that of spec.scaleTargetRef
//	targetKind          default that of spec.scaleTargetRef
//	grouping            "Pod" (default), "LeaderWorkerSet", or "KaitoWorkspace" for an InferenceSet with several nodes per
//	                    replica: which pods form a replica
//	interval            default 15 (seconds), or a duration, between 1s and 1h: how often pods are scraped
//
// and in mode replicas:
//
//	policy              "proportional" (default) or "realtime": which policy threshold is for
//	profile             the policy's profile
//	lowThreshold        the lower boundary of the pods' average, required with policy realtime
//	minReplicas         default spec.minReplicaCount, and at least 1 unless the scaler has cron
//	maxReplicas         default spec.maxReplicaCount
//	stateName           distinguishes the trigger from others of the ScaledObject in mode replicas with the same metric of the
//	                    same pods: the state is kept under the algorithms, metrics, target and this name
//	shadow              at most 8 shadows as YAML, in a list like spec.shadow of an LLMAutoScaler: the count that each would
//	                    ask for is in Metrics, and is never written. Wrong shadows are left out, and refused by Check
//	attainment          how their counts are judged, as YAML like spec.attainment of an LLMAutoScaler: an SLO and the server
//	                    that simulate -write-server writes. The share that each would have attained is then in Metrics
//	realtime.…          a field of the policy by its path in an LLMAutoScaler's spec.scaler, for example
//	proportional.…      realtime.scaleUpRule.cooldownSeconds: "60"; lists and objects are YAML
//	capacity.…
//	cron.…
//	policy              also, in place of its name, a document of package policy as YAML, such as a whole
//	                    LLMAutoScaler. Its bounds, interval, grouping and scrape count unless a key overrides them; the target
//	                    is the ScaledObject's. Then threshold and the keys that belong to it must not be given
//	scaler              the whole of spec.scaler as YAML, likewise
//
// If cron or capacity decides alone, or if the given policies have their metrics in realtime.metrics and
// proportional.metrics, omit threshold, and with it the policy and the metric that it is for.
//
// KEDA's own keys (scalerAddress, enableTLS, unsafeSsl) are ignored, and a known key may end in FromEnv.
//
// The metadata may have 256 keys. A field may be nested 16 deep, counting the names in its key and the lists and mappings in
// its value.
func ParseMetadata(metadata map[string]string) (Metadata, error) {
	if err := tooManyKeys(metadata); err != nil {
		return Metadata{}, err
	}
	m, err := parse(metadata)
	if err != nil {
		return Metadata{}, m.complain(err)
	}
	return m, nil
}

// mostKeys is the maximum number of keys of a trigger's metadata, more than are known. It bounds the work of comparing each
// wrong key with all others.
const mostKeys = 256

func tooManyKeys(metadata map[string]string) error {
	var e scaling.FieldErrors
	e.Check(len(metadata) <= mostKeys, "metadata", len(metadata), fmt.Sprintf("must have at most %d keys", mostKeys))
	return e.Err()
}

// parse returns what could be read, and an error for the rest.
func parse(metadata map[string]string) (Metadata, error) {
	p := parser{given: make(map[string]string), keys: make(map[string]string)}
	p.sort(metadata)
	p.m.sent = metadata
	return p.parse(), p.errs.Err()
}

// complain returns a limited number of errors, and adds the unknown keys: one of them may be a misspelt key.
func (m *Metadata) complain(err error) error {
	var e scaling.FieldErrors
	e.Add(err)
	for _, key := range m.Unknown {
		e.Check(false, shortened(key), hidden{}, "is no key of this scaler")
	}
	return few(e.Err())
}

// Spec returns the metric that KEDA is told for the trigger.
func (m *Metadata) Spec() Spec {
	if m.Mode == Replicas {
		return Spec{Metric: ReplicasMetric, Target: 1}
	}
	s := m.Scaler.Proportional.Metrics[0].Source
	return Spec{Metric: cmp.Or(s.Name, string(s.Signal), policy.DefaultMetricName), Target: m.Threshold}
}

// complete sets the timeouts and the page limit of a scrape configuration.
func (m *Metadata) complete(c *scrape.Config) {
	c.Timeout = m.ScrapeTimeout
	c.DialTimeout = min(m.ScrapeTimeout, time.Second)
	c.SweepTimeout = max(m.ScrapeTimeout, c.Interval*9/10)
	c.MaxBody = maxBody
}
