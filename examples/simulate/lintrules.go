package main

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	autoscaling "k8s.io/api/autoscaling/v2"

	"github.com/inferscale/inferscale/scaling"
)

// findings returns what cannot work, each rule in its turn.
func (a *autoscaler) findings() (all []finding) {
	for _, rule := range []func() []finding{a.hidden, a.averaged, a.totalled, a.impatient, a.stuck, a.crawls, a.blind, a.asleep} {
		all = append(all, rule()...)
	}
	return all
}

func found(code, format string, args ...any) []finding {
	return []finding{{code, fmt.Sprintf(format, args...)}}
}

// hidden: a ratio within the tolerance changes nothing, and from 1/tolerance replicas on one more is within it.
func (a *autoscaler) hidden() []finding {
	if a.up.tolerance <= 0 || len(a.metrics) == 0 {
		return nil
	}
	from := int32(math.Ceil(1/a.up.tolerance - 1e-9))
	if from >= a.max {
		return nil
	}
	most := int32(math.Floor(float64(a.max)/(1+a.up.tolerance) + 1e-9)) // replicas whose tolerance ends at the most
	return found("tolerance", "with a tolerance of %g, %d replicas that need %d have a ratio of %.3g, which is within it, and stay %d: from %d on, one more is never added; at %d up to %d are missing. Set behavior.scaleUp.tolerance to 0 (Kubernetes 1.35, or 1.33 with HPAConfigurableTolerance)",
		a.up.tolerance, from, from+1, float64(from+1)/float64(from), from, from, most, int32(math.Floor(float64(most)*a.up.tolerance+1e-9)))
}

// intensive reports whether a metric is of one replica, whatever their number: an average, a quantile, a share.
func (m *lintMetric) intensive() bool {
	if m.query != "" {
		return regexp.MustCompile(`(?i)^[\s(]*(avg|quantile|histogram_quantile|max|min)\s*(by\s*\([^)]*\)|without\s*\([^)]*\))?\s*\(`).MatchString(m.query) ||
			regexp.MustCompile(`/\s*(count|sum)\s*\(`).MatchString(m.query)
	}
	return m.source == string(autoscaling.ExternalMetricSourceType) &&
		regexp.MustCompile(`(?i)(^|[_:.-])(avg|average|mean|p50|p90|p95|p99|quantile|perc|percent|ratio|usage|utili[sz]ation)($|[_:.-])`).MatchString(m.name)
}

// totalOfAll reports whether a metric is a sum over replicas.
func (m *lintMetric) totalOfAll() bool {
	return regexp.MustCompile(`(?i)^[\s(]*(sum|count)\s*(by\s*\([^)]*\)|without\s*\([^)]*\))?\s*\(`).MatchString(m.query) &&
		!regexp.MustCompile(`/\s*(count|sum)\s*\(`).MatchString(m.query)
}

// external reports whether the HPA takes a metric for one of the whole, and not of pods or resources.
func (m *lintMetric) external() bool {
	return m.source != "cron" && !m.own()
}

func (m *lintMetric) own() bool {
	return slices.Contains([]string{"cpu", "memory", "Pods", "Resource", "ContainerResource"}, m.source)
}

// averaged: AverageValue divides by the replicas, and what is an average has been.
func (a *autoscaler) averaged() (all []finding) {
	for i := range a.metrics {
		m := &a.metrics[i]
		if !m.average || !m.external() || !m.intensive() {
			continue
		}
		target := cmp.Or(m.target, 10)
		n := max(2, min(a.max, 4))
		load := 1.5 * target
		all = append(all, finding{"average", fmt.Sprintf("%s is a value of one replica, and AverageValue divides it by the replicas again: %d replicas at %.3g each, with a target of %.3g, have a ratio of %.3g and become %d where %d are right. Send the total, or use Value",
			m.name, n, load, target, load/target/float64(n), max(a.min, int32(math.Ceil(load/target))), int32(math.Ceil(1.5*float64(n))))})
	}
	return all
}

// totalled: Value multiplies the ratio with the replicas that are ready, and a total grows with nothing.
func (a *autoscaler) totalled() (all []finding) {
	for i := range a.metrics {
		m := &a.metrics[i]
		if m.average || !m.external() || !m.totalOfAll() {
			continue
		}
		target := cmp.Or(m.target, 10)
		all = append(all, finding{"total", fmt.Sprintf("%s is a total, and Value multiplies its ratio with the replicas that are ready: a total of %.3g with a target of %.3g makes 4 replicas 8, and these 16, for as long as the total stays. Use AverageValue",
			m.name, 2*target, target)})
	}
	return all
}

// impatient: what is taken away sooner than it takes to come back.
func (a *autoscaler) impatient() (all []finding) {
	if !a.down.disabled && a.down.window < a.coldStart {
		all = append(all, finding{"stabilization", fmt.Sprintf("scale-down is stabilized over %s, and a replica takes %s to start: a pause in the load of %s stops replicas that are %s away when it ends. Set behavior.scaleDown.stabilizationWindowSeconds to %d at least",
			a.down.window, a.coldStart, a.down.window, a.coldStart, int(math.Ceil(a.coldStart.Seconds())))})
	}
	if a.keda && a.min == 0 && a.cooldown < a.coldStart {
		all = append(all, finding{"cooldown", fmt.Sprintf("cooldownPeriod is %s, and a replica takes %s to start: what was started for one request is stopped before it is ready, if no other comes. Set it to %d at least",
			a.cooldown, a.coldStart, int(math.Ceil(a.coldStart.Seconds())))})
	}
	return all
}

// limit returns the most replicas that n may become within one period of the policies, upwards, and the shortest period.
func (r *scalingRules) limit(n int32) (most int32, period time.Duration) {
	for i, p := range r.policies {
		to := scaling.Plus(n, p.Value)
		if p.Type == autoscaling.PercentScalingPolicy {
			to = int32(min(math.Ceil(float64(n)*(1+float64(p.Value)/100)), math.MaxInt32))
		}
		if better := to > most; i == 0 || better != r.least && to != most {
			most, period = to, time.Duration(p.PeriodSeconds)*time.Second
		}
	}
	return most, period
}

// stuck: a direction that is switched off.
func (a *autoscaler) stuck() (all []finding) {
	if a.up.disabled && a.max > a.min {
		all = append(all, finding{"disabled", fmt.Sprintf("scaleUp.selectPolicy is Disabled: whatever the load, nothing is ever added, and maxReplicas %d is out of reach", a.max)})
	}
	if a.down.disabled && a.max > a.min {
		all = append(all, finding{"disabled", fmt.Sprintf("scaleDown.selectPolicy is Disabled: after the first peak of %d replicas there are %d for ever", a.max, a.max)})
	}
	return all
}

// crawls: a percentage that never comes to more than one replica.
func (a *autoscaler) crawls() []finding {
	percent := slices.IndexFunc(a.up.policies, func(p autoscaling.HPAScalingPolicy) bool { return p.Type == autoscaling.PercentScalingPolicy })
	from := max(1, a.min)
	if a.up.disabled || percent < 0 || a.max-from < 3 || a.max > 100_000 {
		return nil
	}
	took, steps := time.Duration(0), 0
	for n := from; n < a.max; steps++ {
		to, period := a.up.limit(n)
		if to != n+1 {
			return nil // it moves
		}
		n = to
		took += period
	}
	p := a.up.policies[percent]
	return found("percent", "%d %% of at most %d replicas is never more than one: scaleUp adds one replica each %s, and takes %s from %d to %d. Add a policy of type Pods, or raise the percentage",
		p.Value, a.max, time.Duration(p.PeriodSeconds)*time.Second, took, from, a.max)
}

// blind: a rate needs two samples within its window.
func (a *autoscaler) blind() (all []finding) {
	ranges := regexp.MustCompile(`\[\s*((?:\d+(?:ms|[smhdwy]))+)\s*(?::[^\]]*)?\]`)
	for i := range a.metrics {
		m := &a.metrics[i]
		for _, text := range ranges.FindAllStringSubmatch(m.query, -1) {
			asked, err := model.ParseDuration(text[1])
			window := time.Duration(asked)
			if err != nil || window >= 2*a.scrape { // of what is no time Prometheus itself says so, or it is too long for one
				continue
			}
			all = append(all, finding{"window", fmt.Sprintf("%s looks at [%s], and pods are scraped each %s: a rate needs two samples, and there are %d or %d within %s. Take [%s] at least, better [%s]",
				m.name, text[1], a.scrape, int(window/a.scrape), int(window/a.scrape)+1, text[1], 2*a.scrape, 4*a.scrape)})
		}
	}
	return all
}

// ofPods reports whether a metric is there only while pods are.
func (m *lintMetric) ofPods() bool {
	prefixes := []string{"vllm:", "vllm_", "sglang:", "sglang_", "tgi_", "trtllm_", "nv_inference", "nv_trt", "llamacpp:", "llamacpp_", "dynamo_component"}
	return m.own() || slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.Contains(m.query+" "+m.name, prefix) })
}

// asleep: without pods there is nothing to read off them.
func (a *autoscaler) asleep() []finding {
	if a.min > 0 || len(a.metrics) == 0 {
		return nil
	}
	var names []string
	for i := range a.metrics {
		m := &a.metrics[i]
		if m.source == "cron" {
			continue
		}
		if !m.ofPods() {
			return nil
		}
		names = append(names, m.name)
	}
	if len(names) == 0 {
		return nil
	}
	why := "minReplicas is 0"
	if a.keda {
		why = "minReplicaCount is 0 (KEDA's default)"
	}
	return found("zero", "%s, and %s: these are read off the pods themselves, of which there are none then. A request that comes never starts one. Add a metric from in front of the pods (gateway, router, queue), or keep one replica", why, strings.Join(names, ", "))
}
