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

	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/policy"
)

func (p *parser) parse() Metadata {
	m := &p.m
	m.keys = p.keys
	written := p.given["scalerName"]
	m.ScalerName, _ = p.take("scalerName")
	p.check(m.ScalerName == written || m.ScalerName == "", "scalerName", written, "must not begin or end with spaces: the webhook would not see the trigger")
	p.check(m.ScalerName != "", "scalerName", m.ScalerName, "must not be empty")
	m.Mode = Mode(p.choice("mode", string(Metric), string(Metric), string(Replicas)))
	interval := p.given["interval"]
	m.Interval = p.duration("interval", DefaultInterval, time.Second, time.Hour)
	p.check(m.Interval%time.Second == 0, "interval", interval, "must be whole seconds")
	longest := m.Interval
	if p.errs.Err() != nil && interval != "" || interval == "" && p.documented() != "" {
		longest = time.Hour // the error may be that of the interval, or the document may have another one
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
		t.Kind = "" // that it is wrong is said
	}
}

func (p *parser) tls() {
	name, _ := p.take("tlsServerName")
	skip := p.choice("tlsInsecureSkipVerify", "false", "true", "false") == "true"
	if name != "" || skip {
		p.m.TLS = &policy.ScrapeTLS{ServerName: name, InsecureSkipVerify: skip}
	}
}

// metric reads the keys of mode metric.
func (p *parser) metric() {
	m := &p.m
	m.MetricType = MetricType(p.choice("metricType", string(AverageValue), string(AverageValue), string(Value)))
	p.refuse("must be given in mode replicas only", replicasOnly)
	m.Threshold = misread
	if text, ok := p.take("threshold"); !ok {
		p.wrong("threshold", "", "must be given in mode metric")
	} else {
		given := p.number("threshold", text)
		m.Threshold = math.Round(given*1e3) / 1e3
		if m.Threshold != given {
			m.Warnings = append(m.Warnings, fmt.Sprintf("%s: %v counts as %v: KEDA rounds to thousandths", p.key("threshold"), shown(p.keys, "threshold", text), m.Threshold))
		}
	}
	name := p.given["metricName"]
	p.check(!strings.ContainsAny(name, "/%"), "metricName", name, "must not contain / or %: a HorizontalPodAutoscaler cannot ask for it")
	tree := make(map[string]any)
	p.measure(tree, "proportional", "", target(p.source(), m.Threshold))
	p.rules(tree)
}

// target and thresholds return the metric of threshold for the policies proportional and realtime.
func target(source policy.MetricSource, load float64) policy.Scaler {
	return policy.Scaler{Proportional: &policy.ProportionalScaler{Metrics: []policy.TargetMetric{{Source: source, Target: decimal(load)}}}}
}

func thresholds(source policy.MetricSource, high float64, low string) policy.Scaler {
	return policy.Scaler{Realtime: &policy.RealtimeScaler{Metrics: []policy.ThresholdMetric{{
		Source: source, Threshold: policy.MetricThreshold{High: decimal(high), Low: policy.NewDecimal(low)},
	}}}}
}

// refuse reports an error for every key for which those returns true.
func (p *parser) refuse(rule string, those func(key string) bool) {
	for _, key := range slices.Sorted(maps.Keys(p.given)) {
		if those(key) {
			p.wrong(key, p.given[key], rule)
			delete(p.given, key)
		}
	}
}

func replicasOnly(key string) bool { return dotted(key) || slices.Contains(replicasKeys(), key) }

// replicas reads the keys of mode replicas.
func (p *parser) replicas() {
	m := &p.m
	if text, ok := p.take("metricType"); ok && text != string(AverageValue) {
		p.wrong("metricType", text, "must be AverageValue in mode replicas, as the trigger's own metricType: Value is multiplied by the ready pods")
	}
	m.MetricType = AverageValue
	m.MinReplicas = p.count("minReplicas", 0)
	m.MaxReplicas = p.count("maxReplicas", 1)
	m.StateName, _ = p.take("stateName")
	m.Shadow, _ = p.take("shadow")
	m.Attainment, _ = p.take("attainment")
	if key := p.documented(); key != "" {
		p.document(key)
		return
	}
	tree := p.tree()
	defer p.rules(tree)
	defer p.measured(tree)
	if _, given := p.given["threshold"]; !given && complete(tree) {
		p.refuse("must be given with threshold only: the rules are given by their paths", thresholdOnly)
		return
	}
	which := p.choice("policy", p.policyOf(tree), "proportional", "realtime")
	profile, _ := p.take("profile")
	threshold, given := p.take("threshold")
	low, lowGiven := p.take("lowThreshold")
	source := p.source()
	load := float64(misread)
	if given {
		load = p.number("threshold", threshold)
	} else {
		p.wrong("threshold", "", "must be given in mode replicas, unless every policy has its metrics, or is capacity or cron")
		if metrics(tree, which) > 0 {
			return // the other policy lacks metrics
		}
	}
	if which == "realtime" {
		p.check(lowGiven || !given, "lowThreshold", "", "must be given with policy realtime: fewer replicas are wanted below it")
		p.measure(tree, which, profile, thresholds(source, load, cmp.Or(low, "0")))
	} else {
		p.check(!lowGiven || !given, "lowThreshold", low, "must be given with policy realtime only")
		p.measure(tree, which, profile, target(source, load))
	}
}

// complete reports whether there is at least one policy and all have their metrics, so that threshold is not needed.
func complete(tree map[string]any) bool {
	for _, which := range []string{"realtime", "proportional"} {
		if _, given := tree[which]; given && metrics(tree, which) == 0 {
			return false
		}
	}
	return len(tree) > 0
}

// policyOf returns the default of the key policy: the policy that has fields.
func (p *parser) policyOf(tree map[string]any) string {
	_, realtime := tree["realtime"]
	_, proportional := tree["proportional"]
	if _, low := p.given["lowThreshold"]; (realtime || low) && !proportional {
		return "realtime"
	}
	return "proportional"
}

// documented returns the key that has a whole policy document, or "" if there is none.
func (p *parser) documented() string {
	_, whole := p.given["scaler"]
	switch {
	case p.m.Mode != Replicas:
		return ""
	case whole:
		return "scaler"
	case strings.Contains(p.given["policy"], ":"):
		return "policy"
	}
	return ""
}

// document reads a key that has a whole policy document. Other keys of the rules must not be given beside it. For the bounds
// and the scraping of pods, keys take precedence over the document.
func (p *parser) document(key string) {
	text, _ := p.take(key)
	p.m.whole = key
	p.refuse("must not be given beside "+key+", which says it all", func(key string) bool {
		return dotted(key) || key == "threshold" || thresholdOnly(key)
	})
	d, err := policy.Read([]byte(text), key)
	if err != nil {
		for _, e := range typed.Split(err) {
			p.misfit(key, text, "must be a policy document", e)
		}
		p.m.Scaler.Static = &policy.StaticScaler{Replicas: 1} // so that the other keys can still be checked
		return
	}
	m, doc := &p.m, d.Policies[0]
	p.check(len(d.Policies) == 1, key, text, "must have one policy")
	p.check(!doc.DryRun, key, text, "must not have dryRun: a trigger's value is always followed")
	p.check(!doc.Paused, key, text, "must not have paused: the annotation autoscaling.keda.sh/paused of the ScaledObject does it")
	p.check(len(doc.Shadow) == 0, key, text, "must not have shadow: the key shadow has the policies that watch")
	p.check(doc.Attainment == nil, key, text, "must not have attainment: that is a key of its own, beside shadow")
	p.check(doc.Scrape == nil || doc.Scrape.BearerTokenSecretRef == nil && (doc.Scrape.TLS == nil || doc.Scrape.TLS.CASecretRef == nil), key, text,
		"must not refer to Secrets, which this scaler does not read")
	for _, w := range d.Warnings {
		m.Warnings = append(m.Warnings, fmt.Sprintf("%s: %s %s", p.key(key), w.Field, w.Rule))
	}
	m.Scaler = doc.Scaler
	m.bounded = doc.MaxReplicas != 0
	if m.bounded && m.MaxReplicas == nil {
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

// thresholdOnly reports whether a key has no meaning without threshold.
func thresholdOnly(key string) bool {
	return slices.Contains([]string{"policy", "profile", "lowThreshold"}, key) || slices.Contains(sourceKeys(), key)
}

// source reads the keys that name the metric and where pods serve it.
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
		if n, err := strconv.ParseInt(port, 10, 32); err == nil && strconv.FormatInt(n, 10) == port {
			number := policy.NewPortNumber(int32(n))
			s.Port = &number
		} else {
			p.check(len(validation.IsValidPortName(port)) == 0, "metricPort", port, "must be a number, or the name of a container's port")
			p.m.PortName = port
		}
	}
	return s
}
