package keda

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
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
	// fromEnv is what KEDA leaves at a key whose value it has taken from the environment of the target's container.
	fromEnv = "FromEnv"
)

// A Mode says what the value of a trigger means.
type Mode string

// The modes.
const (
	// Metric sends what the pods say, for the HorizontalPodAutoscaler to decide on.
	Metric Mode = "metric"
	// Replicas sends how many replicas a scaling.Policy wants, with a target of 1.
	Replicas Mode = "replicas"
)

// A MetricType says what the HorizontalPodAutoscaler does with a value. KEDA does not tell, so metadata repeats it.
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
	Scaler        v1alpha1.Scaler
	Interval      time.Duration
	ScrapeTimeout time.Duration
	PortName      string
	Grouping      string
	TLS           *v1alpha1.ScrapeTLS

	// Unknown are the keys that mean nothing here, sorted.
	Unknown []string
	// Warnings say what is odd about known ones.
	Warnings []string

	keys   map[string]string // how each key was written
	policy string            // the one that threshold is for; empty without threshold
	whole  bool              // the rules are those of the key scaler
}

// written returns how a key was written.
func (m *Metadata) written(key string) string { return cmp.Or(m.keys[key], key) }

// ParseMetadata reads the metadata of a trigger, or reports every key that is wrong, each as a *scaling.FieldError.
//
//	scalerName          required
//	mode                "metric" (default) or "replicas"
//	threshold           required in mode metric, at least 0.001: the target, to thousandths. In mode replicas the load of
//	                    one replica (policy proportional) or the upper boundary of the pods' average (policy realtime)
//	metricType          "AverageValue" (default) or "Value": what the trigger's metricType is. Mode metric only
//
//	metricName          default vllm:num_requests_waiting
//	metricProtocol      "http" (default) or "https"; metricPorotocol, as the proposal spells it, is taken too
//	metricPort          default 5000; a number, or the name of the container's port
//	metricPath          default /metrics
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
//	grouping            "Pod" (default) or "LeaderWorkerSet": which pods make a replica
//	interval            default 15 (seconds), or a duration, between 1s and 1h: how often pods are asked
//
// and in mode replicas:
//
//	policy              "proportional" (default) or "realtime": which policy threshold is for
//	profile             the policy's profile
//	lowThreshold        the lower boundary of the pods' average, required with policy realtime
//	minReplicas         default spec.minReplicaCount, and at least 1 unless the scaler has cron
//	maxReplicas         default spec.maxReplicaCount
//	realtime.…          a field of the policy by its path in an LLMAutoScaler's spec.scaler, as
//	proportional.…      realtime.scaleUpRule.cooldownSeconds: "60"; lists and objects are YAML
//	cron.…
//	scaler              the whole of spec.scaler as YAML; then threshold and what goes with it must not be given
//
// With a scaler that is cron alone, threshold may be left out together with the policy and the metric that it is for.
//
// KEDA's own keys (scalerAddress, enableTLS, unsafeSsl) are passed over, and a known key may end in FromEnv.
func ParseMetadata(metadata map[string]string) (Metadata, error) {
	p := parser{given: make(map[string]string), keys: make(map[string]string)}
	p.sort(metadata)
	m := p.parse()
	if err := p.errs.Err(); err != nil {
		for _, key := range m.Unknown { // one of them may be what was meant
			p.wrong(key, metadata[key], "is no key of this scaler")
		}
		return Metadata{}, p.errs.Err()
	}
	return m, nil
}

// A parser takes keys out of what was given.
type parser struct {
	given map[string]string // what has not been read yet, without FromEnv
	keys  map[string]string // how each key was written
	errs  scaling.FieldErrors
	m     Metadata
}

// sort notes what was given under the names that the keys have here.
func (p *parser) sort(metadata map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		name := key
		if _, taken := metadata[strings.TrimSuffix(key, fromEnv)]; !taken {
			name = strings.TrimSuffix(key, fromEnv)
		}
		p.given[name], p.keys[name] = metadata[key], key
	}
	for _, own := range []string{"scalerAddress", "enableTLS", "unsafeSsl"} {
		delete(p.given, own)
	}
}

// take returns the value of a key, and that it was given.
func (p *parser) take(key string) (string, bool) {
	value, ok := p.given[key]
	delete(p.given, key)
	return strings.TrimSpace(value), ok
}

// alias takes one of two keys of one meaning.
func (p *parser) alias(key, other string) string {
	value, ok := p.take(key)
	second, too := p.take(other)
	if ok && too && value != second {
		p.wrong(other, second, "must be that of "+key+", "+strconv.Quote(value)+", or not be given")
	}
	if !ok && too {
		p.keys[key] = p.key(other)
		return second
	}
	return value
}

func (p *parser) key(name string) string { return cmp.Or(p.keys[name], name) }

func (p *parser) wrong(key string, value any, rule string) {
	p.errs.Check(false, p.key(key), value, rule)
}

func (p *parser) parse() Metadata {
	m := &p.m
	m.ScalerName, _ = p.take("scalerName")
	p.errs.Check(m.ScalerName != "", p.key("scalerName"), m.ScalerName, "must not be empty")
	m.Mode = Mode(p.choice("mode", string(Metric), string(Metric), string(Replicas)))
	interval := p.given["interval"]
	m.Interval = p.duration("interval", DefaultInterval, time.Second, time.Hour)
	p.errs.Check(m.Interval%time.Second == 0, p.key("interval"), interval, "must be whole seconds")
	m.ScrapeTimeout = p.duration("scrapeTimeout", min(DefaultScrapeTimeout, m.Interval/2), time.Millisecond, m.Interval-time.Millisecond)
	m.Grouping = p.choice("grouping", "Pod", "Pod", "LeaderWorkerSet")
	p.target()
	p.tls()
	if m.Mode == Metric {
		p.metric()
	} else {
		p.replicas()
	}
	for _, key := range slices.Sorted(maps.Keys(p.given)) {
		m.Unknown = append(m.Unknown, p.key(key))
	}
	m.keys = p.keys
	return *m
}

func (p *parser) target() {
	t := &p.m.Target
	t.Name = p.alias("targetName", "workspaceName")
	t.Namespace = p.alias("targetNamespace", "workspaceNamespace")
	t.APIVersion, _ = p.take("targetAPIVersion")
	t.Kind, _ = p.take("targetKind")
	_, err := schema.ParseGroupVersion(t.APIVersion)
	p.errs.Check(err == nil, p.key("targetAPIVersion"), t.APIVersion, `must be "version" or "group/version"`)
	p.errs.Check((t.APIVersion == "") == (t.Kind == ""), p.key("targetKind"), t.Kind, "must be given with targetAPIVersion, and only with it")
}

func (p *parser) tls() {
	name, _ := p.take("tlsServerName")
	skip := p.choice("tlsInsecureSkipVerify", "false", "true", "false") == "true"
	if name != "" || skip {
		p.m.TLS = &v1alpha1.ScrapeTLS{ServerName: name, InsecureSkipVerify: skip}
	}
}

// metric reads what mode metric has.
func (p *parser) metric() {
	m := &p.m
	m.MetricType = MetricType(p.choice("metricType", string(AverageValue), string(AverageValue), string(Value)))
	p.refuse("must be given in mode replicas only", replicasOnly)
	text, ok := p.take("threshold")
	if !ok {
		p.wrong("threshold", "", "must be given in mode metric")
	} else {
		given := p.number("threshold", text)
		m.Threshold = math.Round(given*1e3) / 1e3
		if m.Threshold != given {
			m.Warnings = append(m.Warnings, fmt.Sprintf("%s: %s counts as %v: KEDA rounds to thousandths", p.key("threshold"), text, m.Threshold))
		}
	}
	m.policy = "proportional"
	name := p.given["metricName"]
	p.errs.Check(!strings.ContainsAny(name, "/%"), p.key("metricName"), name, "must not contain / or %: a HorizontalPodAutoscaler cannot ask for it")
	m.Scaler.Proportional = &v1alpha1.ProportionalScaler{
		Metrics: []v1alpha1.TargetMetric{{Source: p.source(), Target: decimal(m.Threshold)}},
	}
}

// refuse reports every key that is one of those.
func (p *parser) refuse(rule string, those func(key string) bool) {
	for _, key := range slices.Sorted(maps.Keys(p.given)) {
		if those(key) {
			p.wrong(key, p.given[key], rule)
			delete(p.given, key)
		}
	}
}

func replicasOnly(key string) bool {
	switch key {
	case "policy", "profile", "lowThreshold", "minReplicas", "maxReplicas", "scaler":
		return true
	}
	return dotted(key)
}

// replicas reads what mode replicas has.
func (p *parser) replicas() {
	m := &p.m
	if text, ok := p.take("metricType"); ok && text != string(AverageValue) {
		p.wrong("metricType", text, "must be AverageValue in mode replicas, as the trigger's own metricType: Value is multiplied by the ready pods")
	}
	m.MetricType = AverageValue
	m.MinReplicas = p.count("minReplicas", 0)
	m.MaxReplicas = p.count("maxReplicas", 1)
	if text, ok := p.take("scaler"); ok {
		p.whole(text)
		return
	}
	tree := p.tree()
	for _, err := range strictly(tree, &m.Scaler) { // each key alone was in order
		p.errs.Add(err)
	}
	if _, given := p.given["threshold"]; !given && m.Scaler.Cron != nil && m.Scaler.Realtime == nil && m.Scaler.Proportional == nil {
		p.refuse("must be given with threshold only: the clock alone decides", thresholdOnly)
		return
	}
	policy := p.choice("policy", p.policyOf(tree), "proportional", "realtime")
	profile, _ := p.take("profile")
	threshold, given := p.take("threshold")
	low, lowGiven := p.take("lowThreshold")
	source := p.source()
	m.policy = policy
	switch {
	case !given:
		p.wrong("threshold", "", "must be given in mode replicas, unless the scaler is cron alone")
	case policy == "realtime":
		p.errs.Check(lowGiven, p.key("lowThreshold"), "", "must be given with policy realtime: fewer replicas are wanted below it")
		p.realtime(source, profile, decimal(p.number("threshold", threshold)), v1alpha1.NewDecimal(low))
	default:
		p.errs.Check(!lowGiven, p.key("lowThreshold"), low, "must be given with policy realtime only")
		p.proportional(source, profile, decimal(p.number("threshold", threshold)))
	}
}

// policyOf is the policy that threshold is for, unless policy says it: the one of which fields are given.
func (p *parser) policyOf(tree map[string]any) string {
	_, realtime := tree["realtime"]
	_, proportional := tree["proportional"]
	if _, low := p.given["lowThreshold"]; (realtime || low) && !proportional {
		return "realtime"
	}
	return "proportional"
}

func (p *parser) realtime(source v1alpha1.MetricSource, profile string, high, low v1alpha1.Decimal) {
	s := p.m.Scaler.Realtime
	if s == nil {
		s = new(v1alpha1.RealtimeScaler)
		p.m.Scaler.Realtime = s
	}
	p.errs.Check(len(s.Metrics) == 0, p.key("realtime.metrics"), len(s.Metrics), "must not be given beside threshold")
	p.errs.Check(profile == "" || s.Profile == "" || profile == string(s.Profile), p.key("profile"), profile, "must be that of realtime.profile, or not be given")
	s.Metrics = []v1alpha1.ThresholdMetric{{Source: source, Threshold: v1alpha1.MetricThreshold{High: high, Low: low}}}
	s.Profile = v1alpha1.RealtimeProfile(cmp.Or(profile, string(s.Profile)))
}

func (p *parser) proportional(source v1alpha1.MetricSource, profile string, target v1alpha1.Decimal) {
	s := p.m.Scaler.Proportional
	if s == nil {
		s = new(v1alpha1.ProportionalScaler)
		p.m.Scaler.Proportional = s
	}
	p.errs.Check(len(s.Metrics) == 0, p.key("proportional.metrics"), len(s.Metrics), "must not be given beside threshold")
	p.errs.Check(profile == "" || s.Profile == "" || profile == string(s.Profile), p.key("profile"), profile, "must be that of proportional.profile, or not be given")
	s.Metrics = []v1alpha1.TargetMetric{{Source: source, Target: target}}
	s.Profile = v1alpha1.ProportionalProfile(cmp.Or(profile, string(s.Profile)))
}

// whole reads the key scaler, which leaves nothing to say for others.
func (p *parser) whole(text string) {
	p.m.whole = true
	p.refuse("must not be given beside scaler, which says it all", func(key string) bool {
		return dotted(key) || key == "threshold" || thresholdOnly(key)
	})
	var tree map[string]any
	if err := yamlTo(text, &tree); err != nil {
		p.wrong("scaler", shortened(text), "must be YAML of an LLMAutoScaler's spec.scaler: "+oneLine(err))
		return
	}
	for _, err := range strictly(tree, &p.m.Scaler) {
		p.wrong("scaler", shortened(text), "must be an LLMAutoScaler's spec.scaler: "+oneLine(err))
	}
}

// thresholdOnly reports whether a key means nothing without threshold.
func thresholdOnly(key string) bool {
	return slices.Contains([]string{"policy", "profile", "lowThreshold"}, key) || slices.Contains(sourceKeys(), key)
}

// Known reports whether ParseMetadata reads a key, for a webhook that warns of those that it does not.
func Known(key string) bool {
	key = strings.TrimSuffix(key, fromEnv)
	return dotted(key) || slices.Contains(ownKeys(), key) || slices.Contains(sourceKeys(), key)
}

func ownKeys() []string {
	return []string{
		"scalerName", "mode", "threshold", "metricType", "scrapeTimeout", "tlsServerName", "tlsInsecureSkipVerify", "grouping", "interval",
		"workspaceName", "workspaceNamespace", "targetName", "targetNamespace", "targetAPIVersion", "targetKind",
		"policy", "profile", "lowThreshold", "minReplicas", "maxReplicas", "scaler", "scalerAddress", "enableTLS", "unsafeSsl",
	}
}

func sourceKeys() []string {
	return []string{"metricName", "metricProtocol", "metricPorotocol", "metricPort", "metricPath", "aggregation", "engine", "signal", "quantile"}
}

// source reads which number of a pod is meant, and where it is.
func (p *parser) source() v1alpha1.MetricSource {
	var s v1alpha1.MetricSource
	s.Name, _ = p.take("metricName")
	engine, _ := p.take("engine")
	signal, _ := p.take("signal")
	aggregation, _ := p.take("aggregation")
	s.Engine, s.Signal, s.Aggregation = v1alpha1.Engine(engine), v1alpha1.Signal(signal), v1alpha1.Aggregation(aggregation)
	if q, ok := p.take("quantile"); ok {
		d := v1alpha1.NewDecimal(q)
		s.Quantile = &d
	}
	if _, ok := p.given["metricPorotocol"]; ok {
		p.m.Warnings = append(p.m.Warnings, "metricPorotocol: is spelt metricProtocol")
	}
	protocol := p.alias("metricProtocol", "metricPorotocol")
	s.Protocol = v1alpha1.ProtocolType(protocol)
	p.errs.Check(protocol == "" || protocol == "http" || protocol == "https", p.key("metricProtocol"), protocol, "must be http or https")
	s.Path, _ = p.take("metricPath")
	if port, _ := p.take("metricPort"); port != "" {
		if n, err := strconv.ParseInt(port, 10, 32); err == nil {
			number := v1alpha1.NewPortNumber(int32(n))
			s.Port = &number
		} else {
			p.errs.Check(len(validation.IsValidPortName(port)) == 0, p.key("metricPort"), port, "must be a number, or the name of a container's port")
			p.m.PortName = port
		}
	}
	return s
}

func (p *parser) choice(key, otherwise string, choices ...string) string {
	value, ok := p.take(key)
	if !ok {
		return otherwise
	}
	if !slices.Contains(choices, value) {
		p.wrong(key, value, "must be "+strings.Join(choices, " or "))
		return otherwise
	}
	return value
}

func (p *parser) count(key string, least int32) *int32 {
	text, ok := p.take(key)
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < int64(least) {
		p.wrong(key, text, fmt.Sprintf("must be a whole number between %d and %d", least, math.MaxInt32))
		return nil
	}
	count := int32(n)
	return &count
}

// number reads a threshold.
func (p *parser) number(key, text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= LeastTarget && math.Round(v*1e3)/1e3 < MostValue) {
		p.wrong(key, text, fmt.Sprintf("must be a number from %g to below %g: KEDA counts in thousandths", LeastTarget, float64(MostValue)))
		return 1
	}
	return v
}

// duration reads seconds or a duration.
func (p *parser) duration(key string, otherwise, least, most time.Duration) time.Duration {
	text, ok := p.take(key)
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if seconds, e := strconv.ParseFloat(text, 64); e == nil && math.Abs(seconds) < 1e9 {
		d, err = time.Duration(math.Round(seconds*1e3))*time.Millisecond, nil
	}
	if err != nil || d < least || d > most {
		p.wrong(key, text, fmt.Sprintf(`must be seconds or a duration, as 5 or "1500ms", between %s and %s`, least, most))
		return otherwise
	}
	return d
}

// decimal writes a number as a Decimal, to nine places.
func decimal(v float64) v1alpha1.Decimal {
	text := strconv.FormatFloat(v, 'f', 9, 64)
	return v1alpha1.NewDecimal(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

func shortened(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// wireName is the name that the metric has for KEDA.
func (m *Metadata) wireName() string {
	if m.Mode == Replicas {
		return ReplicasMetric
	}
	s := m.Scaler.Proportional.Metrics[0].Source
	return cmp.Or(s.Name, string(s.Signal), v1alpha1.DefaultMetricName)
}

// Spec is what KEDA is told of the trigger.
func (m *Metadata) Spec() Spec {
	if m.Mode == Replicas {
		return Spec{Metric: ReplicasMetric, Target: 1}
	}
	return Spec{Metric: m.wireName(), Target: m.Threshold}
}

// complete fills a scrape configuration in.
func (m *Metadata) complete(c *scrape.Config) {
	c.Timeout = m.ScrapeTimeout
	c.DialTimeout = min(m.ScrapeTimeout, time.Second)
	c.SweepTimeout = max(m.ScrapeTimeout, c.Interval*9/10)
}
