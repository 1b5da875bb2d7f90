package keda

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scrape"
)

// Identity names the state that a trigger of these metadata has in Mode Replicas. It is empty for what has none: Mode
// Metric, and metadata that are wrong. Two triggers of one ScaledObject must not have the same.
func Identity(metadata map[string]string) string {
	m, err := ParseMetadata(metadata)
	if err != nil || m.Mode != Replicas {
		return ""
	}
	return m.identity()
}

// identity names the state of a trigger in Mode Replicas by its algorithms, by what they read of which target, and by
// stateName: another threshold goes on with the state, another metric does not.
func (m *Metadata) identity() string {
	var kinds []string
	var sources []policy.MetricSource
	kind := func(given bool, name string) {
		if given {
			kinds = append(kinds, name)
		}
	}
	s := &m.Scaler
	kind(s.Realtime != nil, "realtime")
	if s.Realtime != nil {
		for _, metric := range s.Realtime.Metrics {
			sources = append(sources, metric.Source)
		}
	}
	kind(s.Proportional != nil, "proportional")
	if s.Proportional != nil {
		for _, metric := range s.Proportional.Metrics {
			sources = append(sources, metric.Source)
		}
		kind(s.Proportional.Forecast != nil, "forecast")
	}
	kind(s.Saturation != nil, "saturation")
	if s.Saturation != nil {
		for _, source := range []*policy.MetricSource{s.Saturation.KVCacheSource, s.Saturation.QueueSource} {
			if source != nil {
				sources = append(sources, *source)
			}
		}
	}
	kind(s.Capacity != nil, "capacity")
	if c := s.Capacity; c != nil {
		sources = append(sources, policy.MetricSource{
			Engine: policy.Engine(cmp.Or(c.Source.Engine, "VLLM")), Signal: "Prefilled", Protocol: c.Source.Protocol, Port: c.Source.Port, Path: c.Source.Path, Labels: c.Source.Labels,
		})
		kind(c.Forecast != nil, "forecast")
	}
	kind(s.Static != nil, "static")
	kind(s.Cron != nil, "cron")
	kind(s.Stabilization != nil, "stabilization") // what wraps the others has a state of its own
	kind(s.RateLimits != nil, "ratelimits")
	kind(len(s.Highest) > 0, "highest")
	var names []string
	for i := range s.Highest {
		of := policy.Policy{Spec: policy.Spec{Scaler: s.Highest[i].Composite}}
		names = append(names, s.Highest[i].Name, s.Highest[i].Composite.Name())
		names = append(names, around(&s.Highest[i])...)
		for _, metric := range of.Metrics() {
			sources = append(sources, metric.Source)
		}
	}
	texts := make([]string, 0, len(sources)+2)
	if len(names) > 0 {
		texts = append(texts, text(names))
	}
	for _, s := range sources {
		texts = append(texts, text(m.spelt(s)))
	}
	slices.Sort(texts)
	texts = append(texts, text([]any{m.Target, m.PortName, m.StateName}))
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return strings.Join(kinds, "-") + "-" + hex.EncodeToString(sum[:6])
}

// isIdentity reports whether a key of a store is as identity makes them.
func isIdentity(key string) bool {
	parts := strings.Split(key, "-")
	sum := parts[len(parts)-1]
	known := []string{"realtime", "proportional", "forecast", "saturation", "capacity", "static", "cron", "stabilization", "ratelimits", "highest"}
	other := func(part string) bool { return !slices.Contains(known, part) }
	return len(parts) > 1 && !slices.ContainsFunc(parts[:len(parts)-1], other) && len(sum) == 12 && strings.Trim(sum, "0123456789abcdef") == ""
}

// around names what has a state of its own around the algorithms of a member, or in its members.
func around(m *policy.Member) (names []string) {
	add := func(given bool, name string) {
		if given {
			names = append(names, name)
		}
	}
	add(m.Proportional != nil && m.Proportional.Forecast != nil, "proportional.forecast")
	add(m.Capacity != nil && m.Capacity.Forecast != nil, "capacity.forecast")
	add(m.Stabilization != nil, "stabilization")
	add(m.RateLimits != nil, "ratelimits")
	for i := range m.Highest {
		within := &m.Highest[i]
		add(true, "in "+m.Name+": "+within.Name+" "+within.Composite.Name())
		add(within.MaxReplicas != 0 || within.MinReplicas != nil, "bounds")
		names = append(names, around(within)...)
	}
	return names
}

// spelt writes out what a source means by saying nothing: whether the webhook has written it down makes no difference.
func (m *Metadata) spelt(s policy.MetricSource) policy.MetricSource {
	s.Protocol = cmp.Or(s.Protocol, policy.HTTP)
	if s.Engine != "" || s.Signal != "" {
		return s
	}
	s.Name, s.Path = cmp.Or(s.Name, policy.DefaultMetricName), cmp.Or(s.Path, scrape.DefaultPath)
	if s.Port == nil && m.PortName == "" {
		port := policy.NewPortNumber(scrape.DefaultPort)
		s.Port = &port
	}
	return s
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "" // not reached: everything in it can be marshalled
	}
	return string(data)
}

// owner names whose state it is: that of a scaler, which keeps it under the identity.
func (m *Metadata) owner() string { return m.address + " " + m.ScalerName + " " + m.identity() }
