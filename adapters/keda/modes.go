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

	"github.com/inferscale/inferscale/policy"
)

func (p *parser) parse() Metadata {
	m := &p.m
	m.ScalerName, _ = p.take("scalerName")
	p.check(m.ScalerName != "", "scalerName", m.ScalerName, "must not be empty")
	m.Mode = Mode(p.choice("mode", string(Metric), string(Metric), string(Replicas)))
	interval := p.given["interval"]
	m.Interval = p.duration("interval", DefaultInterval, time.Second, time.Hour)
	p.check(m.Interval%time.Second == 0, "interval", interval, "must be whole seconds")
	longest := m.Interval
	if p.errs.Err() != nil && interval != "" {
		longest = time.Hour // the interval may be what is wrong
	}
	m.ScrapeTimeout = p.duration("scrapeTimeout", min(DefaultScrapeTimeout, m.Interval/2), time.Millisecond, longest-time.Millisecond)
	m.Grouping = p.choice("grouping", "Pod", "Pod", "LeaderWorkerSet", "KaitoWorkspace")
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
	p.check(err == nil, "targetAPIVersion", t.APIVersion, `must be "version" or "group/version"`)
	both := (t.APIVersion == "") == (t.Kind == "")
	p.check(both, "targetKind", t.Kind, "must be given with targetAPIVersion, and only with it")
	if err != nil || !both {
		t.APIVersion, t.Kind = "", "" // that it is wrong is said
	}
}

func (p *parser) tls() {
	name, _ := p.take("tlsServerName")
	skip := p.choice("tlsInsecureSkipVerify", "false", "true", "false") == "true"
	if name != "" || skip {
		p.m.TLS = &policy.ScrapeTLS{ServerName: name, InsecureSkipVerify: skip}
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
			m.Warnings = append(m.Warnings, fmt.Sprintf("%s: %v counts as %v: KEDA rounds to thousandths", p.key("threshold"), shown(p.keys, "threshold", text), m.Threshold))
		}
	}
	m.policy = "proportional"
	name := p.given["metricName"]
	p.check(!strings.ContainsAny(name, "/%"), "metricName", name, "must not contain / or %: a HorizontalPodAutoscaler cannot ask for it")
	m.Scaler.Proportional = &policy.ProportionalScaler{
		Metrics: []policy.TargetMetric{{Source: p.source(), Target: decimal(m.Threshold)}},
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
	case "policy", "profile", "lowThreshold", "minReplicas", "maxReplicas", "scaler", "stateName":
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
	m.StateName, _ = p.take("stateName")
	if text, ok := p.take("scaler"); ok {
		p.whole(text)
		return
	}
	if strings.Contains(p.given["policy"], ":") {
		text, _ := p.take("policy")
		p.document(text)
		return
	}
	tree := p.tree()
	for _, err := range strictly(tree, &m.Scaler.Scaler) { // each key alone was in order
		p.errs.Add(err)
	}
	if _, given := p.given["threshold"]; !given && complete(m.Scaler.Scaler) {
		p.refuse("must be given with threshold only: the rules are given by their paths", thresholdOnly)
		return
	}
	which := p.choice("policy", p.policyOf(tree), "proportional", "realtime")
	profile, _ := p.take("profile")
	threshold, given := p.take("threshold")
	low, lowGiven := p.take("lowThreshold")
	source := p.source()
	m.policy = which
	target := float64(misread)
	if given {
		target = p.number("threshold", threshold)
	} else {
		p.wrong("threshold", "", "must be given in mode replicas, unless every policy has its metrics or is cron")
	}
	branch, _ := tree[which].(map[string]any)
	if branch["metrics"] != nil && !given {
		return // it is the other that lacks them
	}
	if which == "realtime" {
		p.check(lowGiven || !given, "lowThreshold", "", "must be given with policy realtime: fewer replicas are wanted below it")
		p.realtime(source, profile, decimal(target), policy.NewDecimal(cmp.Or(low, "0")))
	} else {
		p.check(!lowGiven || !given, "lowThreshold", low, "must be given with policy realtime only")
		p.proportional(source, profile, decimal(target))
	}
}

// complete reports whether there is a policy, and none that lacks a metric, which threshold would be for.
func complete(s policy.Scaler) bool {
	if s.Realtime != nil && len(s.Realtime.Metrics) == 0 || s.Proportional != nil && len(s.Proportional.Metrics) == 0 {
		return false
	}
	return s.Realtime != nil || s.Proportional != nil || s.Cron != nil
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

func (p *parser) realtime(source policy.MetricSource, profile string, high, low policy.Decimal) {
	s := p.m.Scaler.Realtime
	if s == nil {
		s = new(policy.RealtimeScaler)
		p.m.Scaler.Realtime = s
	}
	p.check(len(s.Metrics) == 0, "realtime.metrics", len(s.Metrics), "must not be given beside threshold")
	p.check(profile == "" || s.Profile == "" || profile == string(s.Profile), "profile", profile, "must be that of realtime.profile, or not be given")
	s.Metrics = []policy.ThresholdMetric{{Source: source, Threshold: policy.MetricThreshold{High: high, Low: low}}}
	s.Profile = policy.RealtimeProfile(cmp.Or(profile, string(s.Profile)))
}

func (p *parser) proportional(source policy.MetricSource, profile string, target policy.Decimal) {
	s := p.m.Scaler.Proportional
	if s == nil {
		s = new(policy.ProportionalScaler)
		p.m.Scaler.Proportional = s
	}
	p.check(len(s.Metrics) == 0, "proportional.metrics", len(s.Metrics), "must not be given beside threshold")
	p.check(profile == "" || s.Profile == "" || profile == string(s.Profile), "profile", profile, "must be that of proportional.profile, or not be given")
	s.Metrics = []policy.TargetMetric{{Source: source, Target: target}}
	s.Profile = policy.ProportionalProfile(cmp.Or(profile, string(s.Profile)))
}

// alone refuses what a key leaves nothing to say for.
func (p *parser) alone(key string) {
	p.m.whole = key
	p.refuse("must not be given beside "+key+", which says it all", func(key string) bool {
		return dotted(key) || key == "threshold" || thresholdOnly(key)
	})
}

// document reads the key policy as a document, which leaves nothing to say for others. Keys count before what it says of
// bounds and of how pods are asked.
func (p *parser) document(text string) {
	const key = "policy"
	p.alone(key)
	d, err := policy.Read([]byte(text), key)
	if err != nil {
		for _, e := range each(err) {
			p.misfit(key, text, "must be a policy document", e)
		}
		return
	}
	m, doc := &p.m, d.Policies[0]
	p.check(len(d.Policies) == 1, key, text, "must have one policy")
	p.check(!doc.DryRun, key, text, "must not have dryRun: a trigger's value is always followed")
	p.check(!doc.Paused, key, text, "must not have paused: the annotation autoscaling.keda.sh/paused of the ScaledObject does it")
	p.check(doc.Scrape == nil || doc.Scrape.BearerTokenSecretRef == nil && (doc.Scrape.TLS == nil || doc.Scrape.TLS.CASecretRef == nil), key, text,
		"must not refer to Secrets, which this scaler does not read")
	for _, w := range d.Warnings {
		m.Warnings = append(m.Warnings, fmt.Sprintf("%s: %s %s", p.key(key), w.Field, w.Rule))
	}
	m.Scaler = doc.Scaler
	if doc.MaxReplicas != 0 && m.MaxReplicas == nil {
		m.MaxReplicas = &doc.MaxReplicas
	}
	if m.MinReplicas == nil {
		m.MinReplicas = doc.MinReplicas
	}
	if _, given := p.keys["interval"]; !given && doc.IntervalSeconds != nil {
		m.Interval = doc.Interval()
		if _, given := p.keys["scrapeTimeout"]; !given {
			m.ScrapeTimeout = min(DefaultScrapeTimeout, m.Interval/2)
		}
	}
	if _, given := p.keys["grouping"]; !given {
		m.Grouping = cmp.Or(doc.Grouping, m.Grouping)
	}
	if s := doc.Scrape; s != nil {
		m.PortName = s.PortName
		if m.TLS == nil {
			m.TLS = s.TLS
		}
	}
}

// whole reads the key scaler, which leaves nothing to say for others.
func (p *parser) whole(text string) {
	p.alone("scaler")
	var tree map[string]any
	if err := yamlTo(text, &tree); err != nil {
		p.misfit("scaler", text, "must be YAML of an LLMAutoScaler's spec.scaler", err)
		return
	}
	for _, err := range strictly(tree, &p.m.Scaler.Scaler) {
		p.misfit("scaler", text, "must be an LLMAutoScaler's spec.scaler", err)
	}
}

// thresholdOnly reports whether a key means nothing without threshold.
func thresholdOnly(key string) bool {
	return slices.Contains([]string{"policy", "profile", "lowThreshold"}, key) || slices.Contains(sourceKeys(), key)
}

// source reads which number of a pod is meant, and where it is.
func (p *parser) source() policy.MetricSource {
	var s policy.MetricSource
	s.Name, _ = p.take("metricName")
	engine, _ := p.take("engine")
	signal, _ := p.take("signal")
	aggregation, _ := p.take("aggregation")
	s.Engine, s.Signal, s.Aggregation = policy.Engine(engine), policy.Signal(signal), policy.Aggregation(aggregation)
	if q, ok := p.take("quantile"); ok {
		d := policy.NewDecimal(q)
		s.Quantile = &d
	}
	if _, ok := p.given["metricPorotocol"]; ok {
		p.m.Warnings = append(p.m.Warnings, "metricPorotocol: is spelt metricProtocol")
	}
	protocol := p.alias("metricProtocol", "metricPorotocol")
	s.Protocol = policy.ProtocolType(protocol)
	p.check(protocol == "" || protocol == "http" || protocol == "https", "metricProtocol", protocol, "must be http or https")
	s.Path, _ = p.take("metricPath")
	if port, _ := p.take("metricPort"); port != "" {
		if n, err := strconv.ParseInt(port, 10, 32); err == nil {
			number := policy.NewPortNumber(int32(n))
			s.Port = &number
		} else {
			p.check(len(validation.IsValidPortName(port)) == 0, "metricPort", port, "must be a number, or the name of a container's port")
			p.m.PortName = port
		}
	}
	return s
}
