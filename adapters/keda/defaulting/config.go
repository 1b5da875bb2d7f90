package defaulting

import (
	"net"
	"strconv"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/inferscale/inferscale/scaling"
)

// Config says which triggers get defaults, and which. Its zero value is not valid; start from Default and change what should
// differ. A zero value in a field has no special meaning, unless the field says so.
type Config struct {
	// ScalerName is the metadata scalerName of this scaler's triggers.
	ScalerName string
	// Address is the address of the scaler for KEDA, as host:port. The server's certificate must name the host.
	Address string
	// MinReplicas is the default of spec.minReplicaCount, at least 1.
	MinReplicas int32

	// MetricName is the name of the metric to scrape.
	MetricName string
	// Protocol is http or https.
	Protocol string
	// Port is the number or the name of the port.
	Port string
	// Path is the path of the metrics; it begins with a slash.
	Path string
	// ScrapeTimeout is the time limit of one scrape, in whole seconds.
	ScrapeTimeout time.Duration

	// Auth is the default of a trigger's authenticationRef.
	Auth AuthRef
	// Plaintext adds no authenticationRef and needs no Auth: KEDA connects to the scaler without TLS.
	Plaintext bool

	// Metric is the HPA's behavior for objects in which all triggers of this scaler are in mode metric (also if metadata.mode
	// is absent): the HPA decides. A nil field at any depth adds no default there. The behavior belongs to the HPA, and so
	// applies to all triggers: if a cron trigger asks for ten replicas, one pod in five minutes takes three quarters of an
	// hour. A warning says so.
	Metric Behavior
	// Replicas is the same for objects with any trigger of this scaler in mode replicas: the scaler has decided, with its own
	// windows and cooldowns, and the HPA should only carry the decision out. A window would delay it, and the HPA's tolerance
	// of a tenth would block a step from 10 to 11 forever. For a mode that does not exist, or that comes from the environment,
	// no behavior is added.
	Replicas Behavior

	// Known reports whether the scaler reads a metadata key. Other keys get a warning. It is not called for the keys of KEDA
	// and of this package. Nil means no such warnings. It must be safe for concurrent use.
	Known func(key string) bool
	// Check returns the errors for which the scaler would refuse a ScaledObject; the object already has its defaults. It is
	// meant for (*keda.Triggers).Check. With an error the object is not admitted, unless its spec has not changed. Nil admits
	// everything. It must be safe for concurrent use, and must not change the object.
	Check func(scaledObject map[string]any) error
}

// A Behavior is the behavior of a HorizontalPodAutoscaler, with the fields of autoscaling/v2.
type Behavior struct {
	ScaleUp   *Rules `json:"scaleUp,omitempty"`
	ScaleDown *Rules `json:"scaleDown,omitempty"`
}

// Rules are the scaling rules of one direction. The types of autoscaling/v2 have a tolerance only since Kubernetes 1.33.
type Rules struct {
	StabilizationWindowSeconds *int32                             `json:"stabilizationWindowSeconds,omitempty"`
	SelectPolicy               *autoscalingv2.ScalingPolicySelect `json:"selectPolicy,omitempty"`
	Policies                   []autoscalingv2.HPAScalingPolicy   `json:"policies,omitempty"`
	Tolerance                  *resource.Quantity                 `json:"tolerance,omitempty"`
}

// An AuthRef names a TriggerAuthentication or a ClusterTriggerAuthentication.
type AuthRef struct {
	Name string
	Kind string
}

// Unlimited is the number of pods that the policy of mode replicas lets the HPA add at once. The HPA adds it to the current
// count in an int32, so a value near the largest would overflow to a negative limit. Unlimited is more than any fleet has,
// and far from an overflow.
const Unlimited = 100_000

// The limits that the HPA accepts.
const (
	maxWindow = 3600 // seconds
	maxPeriod = 1800 // seconds
)

// Default returns the configuration of Kaito's proposal, corrected as the package comment says:
//
//	spec.minReplicaCount          1
//	of each trigger of this scaler
//	  authenticationRef           {keda-kaito-creds, ClusterTriggerAuthentication}, as a whole, unless Plaintext
//	  metadata.scalerAddress      keda-kaito-scaler.keda.svc.cluster.local:10450
//	  metadata.metricType         the trigger's metricType, AverageValue if it has none
//	  metadata.metricName         vllm:num_requests_waiting
//	  metadata.metricProtocol     http
//	  metadata.metricPort         5000
//	  metadata.metricPath         /metrics
//	  metadata.scrapeTimeout      5
//	spec.advanced.horizontalPodAutoscalerConfig.behavior, leaf by leaf
//	                              mode metric     mode replicas
//	  scaleUp     window          30 s            0
//	              tolerance       0.1             0
//	              policies        1 pod / 300 s   100000 pods / 1 s
//	              selectPolicy    Max             Max
//	  scaleDown   window          300 s           0
//	              tolerance       0.5             0
//	              policies        1 pod / 600 s   100 % / 1 s
//	              selectPolicy    Max             Max
//
// The numbers of mode metric are those of the proposal, and suit slow GPU nodes. For scaling down, 100 % is no limit, and as
// the HPA decides every 15 s, a period of 1 s remembers no earlier change. KEDA's own default of minReplicaCount is 0. As
// idleReplicaCount must be below minReplicaCount, an idleReplicaCount of 0 is accepted only with the default of this package.
//
// Tolerances are quantities, written as "100m" for 0.1. The schema accepts a string or an integer, and refuses the number 0.1
// of the proposal's examples; a user who copies them gets a warning with the refusal. API servers drop tolerances before
// Kubernetes 1.33, and while the feature gate HPAConfigurableTolerance is off, which is its default before 1.35. Then a tenth
// applies in both directions.
func Default() Config {
	return Config{
		ScalerName:    "keda-kaito-scaler",
		Address:       "keda-kaito-scaler.keda.svc.cluster.local:10450",
		MinReplicas:   1,
		MetricName:    "vllm:num_requests_waiting",
		Protocol:      "http",
		Port:          "5000",
		Path:          "/metrics",
		ScrapeTimeout: 5 * time.Second,
		Auth:          AuthRef{Name: "keda-kaito-creds", Kind: "ClusterTriggerAuthentication"},
		Metric: Behavior{
			ScaleUp:   rules(30, 100, autoscalingv2.PodsScalingPolicy, 1, 300),
			ScaleDown: rules(300, 500, autoscalingv2.PodsScalingPolicy, 1, 600),
		},
		Replicas: Behavior{
			ScaleUp:   rules(0, 0, autoscalingv2.PodsScalingPolicy, Unlimited, 1),
			ScaleDown: rules(0, 0, autoscalingv2.PercentScalingPolicy, 100, 1),
		},
	}
}

func rules(window int32, milliTolerance int64, policy autoscalingv2.HPAScalingPolicyType, value, period int32) *Rules {
	largest := autoscalingv2.MaxChangePolicySelect
	return &Rules{
		StabilizationWindowSeconds: &window,
		Tolerance:                  resource.NewMilliQuantity(milliTolerance, resource.DecimalSI),
		Policies:                   []autoscalingv2.HPAScalingPolicy{{Type: policy, Value: value, PeriodSeconds: period}},
		SelectPolicy:               &largest,
	}
}

func (c Config) validate() error {
	var e scaling.FieldErrors
	e.Check(c.ScalerName != "", "scalerName", c.ScalerName, "must not be empty")
	e.Check(isAddress(c.Address), "address", c.Address, "must be host:port, with a port of 1 to 65535")
	e.Check(c.MinReplicas >= 1, "minReplicas", c.MinReplicas, "must be at least 1")
	e.Check(c.MetricName != "", "metricName", c.MetricName, "must not be empty")
	e.Check(c.Protocol == "http" || c.Protocol == "https", "protocol", c.Protocol, "must be http or https")
	e.Check(c.Port != "", "port", c.Port, "must be the number or the name of a port")
	e.Check(strings.HasPrefix(c.Path, "/"), "path", c.Path, "must begin with a slash")
	e.Check(c.ScrapeTimeout >= time.Second && c.ScrapeTimeout%time.Second == 0, "scrapeTimeout", c.ScrapeTimeout,
		"must be a positive number of whole seconds")
	if !c.Plaintext {
		e.Check(c.Auth.Name != "", "auth.name", c.Auth.Name, "must not be empty, unless plaintext is set")
		e.Check(c.Auth.Kind == "TriggerAuthentication" || c.Auth.Kind == "ClusterTriggerAuthentication", "auth.kind", c.Auth.Kind,
			"must be TriggerAuthentication or ClusterTriggerAuthentication")
	}
	checkRules(&e, "metric.scaleUp", c.Metric.ScaleUp)
	checkRules(&e, "metric.scaleDown", c.Metric.ScaleDown)
	checkRules(&e, "replicas.scaleUp", c.Replicas.ScaleUp)
	checkRules(&e, "replicas.scaleDown", c.Replicas.ScaleDown)
	return e.Err()
}

func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n >= 1
}

// checkRules checks for what an HPA would refuse, and for the overflow that it would not.
func checkRules(e *scaling.FieldErrors, field string, r *Rules) {
	if r == nil {
		return
	}
	if w := r.StabilizationWindowSeconds; w != nil {
		e.Check(*w >= 0 && *w <= maxWindow, field+".stabilizationWindowSeconds", *w, "must be 0 to 3600")
	}
	if r.Tolerance != nil {
		e.Check(r.Tolerance.Sign() >= 0, field+".tolerance", r.Tolerance.String(), "must not be negative")
	}
	if s := r.SelectPolicy; s != nil {
		switch *s {
		case autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect:
		default:
			e.Check(false, field+".selectPolicy", string(*s), "must be Max, Min or Disabled")
		}
	}
	for i, p := range r.Policies {
		at := field + ".policies[" + strconv.Itoa(i) + "]"
		e.Check(p.Type == autoscalingv2.PodsScalingPolicy || p.Type == autoscalingv2.PercentScalingPolicy, at+".type", string(p.Type),
			"must be Pods or Percent")
		e.Check(p.Value >= 1 && p.Value <= Unlimited, at+".value", p.Value, "must be 1 to 100000")
		e.Check(p.PeriodSeconds >= 1 && p.PeriodSeconds <= maxPeriod, at+".periodSeconds", p.PeriodSeconds, "must be 1 to 1800")
	}
}
