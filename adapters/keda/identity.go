package keda

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scrape"
)

// identity returns the name of the state of a trigger in Mode Replicas, which no other trigger of its ScaledObject may have.
// It depends on the algorithms, on the metrics that they read, on the target and on stateName: a changed threshold continues
// with the state, a changed metric does not.
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
		kind(s.Proportional.Foresees(), "forecast")
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
		kind(c.Foresees(), "forecast")
	}
	kind(s.Static != nil, "static")
	kind(s.Cron != nil, "cron")
	kind(s.Stabilization != nil, "stabilization") // layers around the algorithms have a state of their own
	kind(s.RateLimits != nil, "ratelimits")
	kind(len(s.Highest) > 0, "highest")
	names := byMember(s.Highest, func(m *policy.Member) []string { return append([]string{m.Name, algorithms(m)}, around(m)...) })
	for i := range s.Highest {
		of := policy.Policy{Spec: policy.Spec{Scaler: s.Highest[i].Composite}}
		for _, metric := range of.Metrics() {
			sources = append(sources, metric.Source)
		}
	}
	if bounded := slices.ContainsFunc(s.Highest, func(one policy.Member) bool { return one.MaxReplicas != 0 }); bounded && s.Stabilization == nil && s.RateLimits == nil {
		names = append(names, "bounds around all") // a layer with a state of its own, which the other two bring as well
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

// isIdentity reports whether a key of a store has the form of an identity.
func isIdentity(key string) bool { return identityForm.MatchString(key) }

var identityForm = regexp.MustCompile(`^((realtime|proportional|forecast|saturation|capacity|static|cron|stabilization|ratelimits|highest)-)+[0-9a-f]{12}$`)

// around returns the names of the layers with a state of their own around the algorithms of a member, and in its members.
func around(m *policy.Member) (names []string) {
	add := func(given bool, name string) {
		if given {
			names = append(names, name)
		}
	}
	add(m.Proportional != nil && m.Proportional.Foresees(), "proportional.forecast")
	add(m.Capacity != nil && m.Capacity.Foresees(), "capacity.forecast")
	add(m.Stabilization != nil, "stabilization")
	add(m.RateLimits != nil, "ratelimits")
	return append(names, byMember(m.Highest, func(within *policy.Member) []string {
		names := []string{"in " + m.Name + ": " + within.Name + " " + algorithms(within)}
		if within.MaxReplicas != 0 || within.MinReplicas != nil {
			names = append(names, "bounds")
		}
		return append(names, around(within)...)
	})...)
}

// byMember returns what of says of each member. The order of the members makes no difference, as their states are kept by name.
func byMember(members []policy.Member, of func(*policy.Member) []string) []string {
	all := make([][]string, len(members))
	for i := range members {
		all[i] = of(&members[i])
	}
	slices.SortFunc(all, slices.Compare)
	return slices.Concat(all...)
}

// algorithms names those of a member. Their profiles are in it only if it is the member's name.
func algorithms(m *policy.Member) string {
	c := m.Composite
	if m.Name != "" {
		c.Realtime, c.Proportional, c.Saturation = plain(c.Realtime), plain(c.Proportional), plain(c.Saturation)
	}
	return c.Name()
}

// plain returns what says no more of a scaler than that it is given.
func plain[T any](given *T) *T {
	if given == nil {
		return nil
	}
	return new(T)
}

// spelt writes out the defaults of a source, so that it makes no difference whether the webhook has added them.
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
		return "" // not reached: all values can be marshalled
	}
	return string(data)
}

// owner returns the owner of the state: the scaler, with the identity under which it keeps the state.
func (m *Metadata) owner() string {
	return service(m.address) + " " + m.ScalerName + " " + m.identity()
}

// service returns the name and the namespace of the Service of an address, which has several spellings, or else the host.
func service(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	labels := strings.Split(strings.ToLower(host), ".")
	if len(labels) > 2 && labels[2] == "svc" {
		labels = labels[:2]
	}
	return strings.Join(labels, ".")
}
