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
	// DefaultScalerName is the scalerName that triggers of this scaler have.
	DefaultScalerName = "keda-kaito-scaler"
	// DefaultInterval is the time between two rounds of a trigger.
	DefaultInterval = 15 * time.Second
	// DefaultScrapeTimeout is the time that one pod has to answer.
	DefaultScrapeTimeout = 5 * time.Second
	// ReplicasMetric is the name of the metric in Mode Replicas.
	ReplicasMetric = "desired-replicas"
	// maxBody is the limit on the bytes of a page. Real ones reach 1 MB, and the pods of all who have a ScaledObject share
	// the scaler's memory.
	maxBody = 2 << 20
	// fromEnv is what KEDA leaves at a key whose value it has taken from the environment of the target's container.
	fromEnv = "FromEnv"
)

// A Mode says what the value of a trigger means.
type Mode string

// The modes.
const (
	// Metric sends what the pods say, for the HorizontalPodAutoscaler to decide on: the total over the pods where the
	// trigger's metricType is AverageValue, their mean where it is Value. What a missing pod could have said moves
	// nothing: the total is then the one nearest to "hold" that is possible. It is active as long as the target exists
	// and can be scaled, as without pods nobody could say that one is needed.
	Metric Mode = "metric"
	// Replicas sends how many replicas a scaling.Policy wants, with a target of 1, and is active while that is any. The
	// state of its loop is stored before it is answered with; each round is made by one replica of the scaler, and the
	// others answer with what that found. One that finds nothing answers with what another finds.
	//
	// A HorizontalPodAutoscaler has a tolerance of 0.1, so that from 10 replicas on a step of 1 is none to it: set
	// spec.advanced.horizontalPodAutoscalerConfig.behavior.{scaleUp,scaleDown}.tolerance to 0, as package defaulting does,
	// which needs Kubernetes 1.33 with the feature gate or 1.35. On others make steps of more than a tenth, or start the
	// controller manager with --horizontal-pod-autoscaler-tolerance=0.
	Replicas Mode = "replicas"
)

// A MetricType says what the HorizontalPodAutoscaler does with a value. KEDA does not tell, but the ScaledObject does.
type MetricType string

// The metric types.
const (
	// AverageValue divides the value by the target: it wants the total of all replicas.
	AverageValue MetricType = "AverageValue"
	// Value multiplies value / target by the number of ready pods: it wants the mean over those.
	Value MetricType = "Value"
)

// Metadata is what the metadata of a trigger say. ParseMetadata documents the keys.
type Metadata struct {
	ScalerName string
	Mode       Mode
	MetricType MetricType
	// Target has what metadata say of the target; empty fields are those of the ScaledObject's scaleTargetRef.
	Target k8s.Target
	// MinReplicas and MaxReplicas replace the ScaledObject's where they are given. Only Mode Replicas has them.
	MinReplicas, MaxReplicas *int32
	// Threshold is the target of Mode Metric.
	Threshold float64
	// Scaler has the rules of Mode Replicas, and in Mode Metric a proportional one that says which metric is read.
	Scaler        policy.Composite
	Interval      time.Duration
	ScrapeTimeout time.Duration
	PortName      string
	Grouping      string
	TLS           *policy.ScrapeTLS
	// Shadow is a list of policies that watch, as spec.shadow of an LLMAutoScaler; empty for none.
	Shadow string
	// Attainment says by what their counts are judged, as spec.attainment of an LLMAutoScaler; empty for what a capacity scaler says.
	Attainment string
	// StateName tells the state of this trigger from those of others.
	StateName string

	// Unknown are the keys that mean nothing here, sorted.
	Unknown []string
	// Warnings say what is odd about known ones.
	Warnings []string

	keys    map[string]string     // how each key was written
	policy  string                // the one that threshold is for; empty without threshold
	whole   string                // the key that has all the rules: scaler or policy; empty for neither
	address string                // KEDA's key scalerAddress
	sent    map[string]string     // all keys as they came
	tuner   func() capacity.Tuner // of what has a capacity to find; nil where nothing is decided

	shadowTuner func() capacity.Tuner // likewise, of policies that watch
}

// written returns how a key was written.
func (m *Metadata) written(key string) string { return cmp.Or(m.keys[key], key) }

// ParseMetadata reads the metadata of a trigger, or reports the keys that are wrong, each as a *scaling.FieldError. No error
// has what KEDA took from the environment (FromEnv), or the value of a key that is not known.
//
//	scalerName          required
//	mode                "metric" (default) or "replicas"
//	threshold           required in mode metric, at least 0.001: the target, to thousandths. In mode replicas the load of
//	                    one replica (policy proportional) or the upper boundary of the pods' average (policy realtime)
//	metricType          "AverageValue" (default) or "Value": what the trigger's metricType is. Mode metric only. Where the
//	                    ScaledObject is read it says so itself, and this must not say otherwise
//
//	metricName          default vllm:num_requests_waiting
//	metricProtocol      "http" (default) or "https"; metricPorotocol, as the proposal spells it, is taken too
//	metricPort          default 5000; a number, or the name of the container's port
//	metricPath          default /metrics; a page may have 2 MiB
//	aggregation         Only, Sum, Average, Max or Min: makes one number of several series of one pod
//	engine, signal      instead of metricName: which number of which inference server, as VLLM and KVCacheUsage
//	quantile            with the signals TTFT and TPOT
//	scrapeTimeout       default 5 (seconds), or a duration as 1500ms
//	tlsServerName       the name that the pods' certificates are checked for
//	tlsInsecureSkipVerify  "true" accepts any certificate of the pods
//
//	workspaceName       default the name of spec.scaleTargetRef; targetName is the same
//	workspaceNamespace  default the ScaledObject's; targetNamespace is the same
//	targetAPIVersion    default that of spec.scaleTargetRef
//	targetKind          default that of spec.scaleTargetRef
//	grouping            "Pod" (default), "LeaderWorkerSet", or "KaitoWorkspace" for an InferenceSet of several nodes a
//	                    replica: which pods make a replica
//	interval            default 15 (seconds), or a duration, between 1s and 1h: how often pods are asked
//
// and in mode replicas:
//
//	policy              "proportional" (default) or "realtime": which policy threshold is for
//	profile             the policy's profile
//	lowThreshold        the lower boundary of the pods' average, required with policy realtime
//	minReplicas         default spec.minReplicaCount, and at least 1 unless the scaler has cron
//	maxReplicas         default spec.maxReplicaCount
//	stateName           tells the trigger from others of the ScaledObject in mode replicas that read the same metric of the
//	                    same pods, as the state is kept under algorithms, metrics, target and this name
//	shadow              at most 8 policies that watch, as YAML, in a list as spec.shadow of an LLMAutoScaler: what each would
//	                    ask for is in Metrics, and nothing else comes of it. Wrong ones are left out, and refused by Check
//	attainment          by what their counts are judged, as YAML, as spec.attainment of an LLMAutoScaler: an SLO and the server
//	                    that simulate -write-server writes. What each would have attained is in Metrics then
//	realtime.…          a field of the policy by its path in an LLMAutoScaler's spec.scaler, as
//	proportional.…      realtime.scaleUpRule.cooldownSeconds: "60"; lists and objects are YAML
//	capacity.…
//	cron.…
//	policy              also, in place of its name, a document of package policy as YAML, such as an LLMAutoScaler as it
//	                    stands. Its bounds, interval, grouping and scrape count where no key says otherwise; the target is
//	                    the ScaledObject's. Then threshold and what goes with it must not be given
//	scaler              the whole of spec.scaler as YAML, likewise
//
// Where cron or capacity decides alone, or realtime.metrics and proportional.metrics have what the policies given read, threshold is
// left out together with the policy and the metric that it is for.
//
// KEDA's own keys (scalerAddress, enableTLS, unsafeSsl) are passed over, and a known key may end in FromEnv.
//
// They may have 256 keys, and a field be 16 deep: names of its key, and lists and mappings of its value.
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

// mostKeys is how many keys the metadata of a trigger may have, more than are known: of many, each that is wrong is compared
// with all.
const mostKeys = 256

func tooManyKeys(metadata map[string]string) error {
	var e scaling.FieldErrors
	e.Check(len(metadata) <= mostKeys, "metadata", len(metadata), fmt.Sprintf("must have at most %d keys", mostKeys))
	return e.Err()
}

// parse returns what could be read beside the error of what could not.
func parse(metadata map[string]string) (Metadata, error) {
	p := parser{given: make(map[string]string), keys: make(map[string]string)}
	p.sort(metadata)
	p.m.sent = metadata
	return p.parse(), p.errs.Err()
}

// complain returns few errors, with the keys that are not known: one of them may be what was meant.
func (m *Metadata) complain(err error) error {
	var e scaling.FieldErrors
	for _, one := range each(err) {
		e.Add(one)
	}
	for _, key := range m.Unknown {
		e.Check(false, shortened(key), hidden{}, "is no key of this scaler")
	}
	return few(e.Err())
}

// Spec is what KEDA is told of the trigger.
func (m *Metadata) Spec() Spec {
	if m.Mode == Replicas {
		return Spec{Metric: ReplicasMetric, Target: 1}
	}
	s := m.Scaler.Proportional.Metrics[0].Source
	return Spec{Metric: cmp.Or(s.Name, string(s.Signal), policy.DefaultMetricName), Target: m.Threshold}
}

// complete fills a scrape configuration in.
func (m *Metadata) complete(c *scrape.Config) {
	c.Timeout = m.ScrapeTimeout
	c.DialTimeout = min(m.ScrapeTimeout, time.Second)
	c.SweepTimeout = max(m.ScrapeTimeout, c.Interval*9/10)
	c.MaxBody = maxBody
}
