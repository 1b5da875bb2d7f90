package policy

import (
	"bytes"
	"cmp"
	"reflect"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/zone"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// Effective returns a document with this policy only, in which every number that is in force is written out, whether given or
// from a profile. Read reads it as the same policy. The policy must be valid, so it has at most 1,000 scalers in lists named highest,
// each of which can take a millisecond or two.
func (p *Policy) Effective() ([]byte, error) {
	if _, err := p.Build(unbounded()); err != nil {
		return nil, err
	}
	in := p.inForce()
	var root any = &flat{Name: in.Name, Spec: in.Spec}
	if p.Manifest {
		m := &manifest{APIVersion: apiVersion, Kind: kind, Spec: in.Spec}
		m.Metadata.Kind = yaml.MappingNode
		put(&m.Metadata, "name", encode(reflect.ValueOf(p.Name)))
		if p.Namespace != "" {
			put(&m.Metadata, "namespace", encode(reflect.ValueOf(p.Namespace)))
		}
		root = m
	}
	return render(encode(reflect.ValueOf(root).Elem()))
}

func render(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(n); err != nil {
		return nil, err
	}
	err := encoder.Close()
	return b.Bytes(), err
}

// inForce returns the policy with every default written out.
func (p *Policy) inForce() Policy {
	out := *p
	if p.MaxReplicas != 0 {
		out.MinReplicas = pointer(or(p.MinReplicas, DefaultMinReplicas))
	}
	out.IntervalSeconds = pointer(or(p.IntervalSeconds, DefaultIntervalSeconds))
	if p.Manifest && out.Grouping == "" {
		out.Grouping = "Pod"
	}
	out.Scaler = newBuilder("", p.Interval()).inForce(&p.Scaler)
	out.Shadow = nil
	for _, one := range p.Shadow {
		one.Scaler = newBuilder("", p.Interval()).inForce(&one.Scaler)
		out.Shadow = append(out.Shadow, one)
	}
	return out
}

func (b *builder) inForce(c *Composite) Composite {
	out := *c
	where := place{within: unbounded()}
	if s := c.Realtime; s != nil {
		out.Realtime = realtimeInForce(s, b.realtimeConfig(s, where))
	}
	if s := c.Proportional; s != nil {
		out.Proportional = proportionalInForce(s, b.proportionalConfig(s, where))
	}
	if s := c.Saturation; s != nil {
		out.Saturation = saturationInForce(s, b.saturationConfig(s, where))
	}
	if s := c.Capacity; s != nil {
		out.Capacity = capacityInForce(s, b.capacityConfig(s, where))
	}
	if s := c.Cron; s != nil {
		out.Cron = cronInForce(s)
	}
	stabilization, limits := b.around(c.Stabilization, c.RateLimits, "")
	if c.Stabilization != nil {
		out.Stabilization = stabilizationInForce(stabilization)
	}
	if c.RateLimits != nil {
		out.RateLimits = limitsInForce(limits)
	}
	out.Highest = nil
	for _, m := range c.Highest {
		m.Name = cmp.Or(m.Name, m.Composite.Name())
		if m.MaxReplicas != 0 {
			m.MinReplicas = pointer(or(m.MinReplicas, DefaultMinReplicas))
		}
		m.Composite = b.inForce(&m.Composite)
		out.Highest = append(out.Highest, m)
	}
	return out
}

func realtimeInForce(s *RealtimeScaler, c realtime.Config) *RealtimeScaler {
	rule := func(r realtime.Rule) *ScalerRule {
		return &ScalerRule{ScaleStep: &r.Step, CooldownSeconds: whole(r.Cooldown), StabilizationWindowSeconds: whole(r.Window)}
	}
	out := &RealtimeScaler{
		Profile: s.profile(), ScaleUpRule: rule(c.Up), ScaleDownRule: rule(c.Down),
		CooldownScope: c.CooldownScope.String(), HoldWhilePending: c.HoldWhilePending,
	}
	for i, m := range s.Metrics {
		m.Source, m.Role = sourceInForce(m.Source), c.Metrics[i].Role.String()
		out.Metrics = append(out.Metrics, m)
	}
	return out
}

func proportionalInForce(s *ProportionalScaler, c proportional.Config) *ProportionalScaler {
	rule := func(given *ProportionalRule, r proportional.Rule) *ProportionalRule {
		g := or(given, ProportionalRule{})
		return &ProportionalRule{Tolerance: number(g.Tolerance, r.Tolerance), MaxRate: number(g.MaxRate, r.MaxRate), MaxStep: &r.MaxStep}
	}
	var threshold *Decimal
	if s.Panic != nil {
		threshold = &s.Panic.Threshold
	}
	out := &ProportionalScaler{
		Profile: s.profile(), ScaleUp: rule(s.ScaleUp, c.Up), ScaleDown: rule(s.ScaleDown, c.Down),
		StableWindowSeconds: whole(c.StableWindow), ResolutionSeconds: whole(c.Resolution),
		Panic:         &Panic{WindowSeconds: *whole(c.Panic.Window), Threshold: *number(threshold, c.Panic.Threshold)},
		Stabilization: stabilizationInForce(c.Stabilization), RateLimits: limitsInForce(c.RateLimits),
		ActivationScale: &c.ActivationScale, StartupCredit: &c.StartupCredit, Forecast: s.Forecast.inForce(),
	}
	for i, m := range s.Metrics {
		m.Source, m.Measure = sourceInForce(m.Source), c.Metrics[i].Measure.String()
		out.Metrics = append(out.Metrics, m)
	}
	return out
}

func saturationInForce(s *SaturationScaler, c saturation.SingleConfig) *SaturationScaler {
	kv, queue := s.sources()
	kv, queue = sourceInForce(kv), sourceInForce(queue)
	return &SaturationScaler{
		Profile:                  s.profile(),
		KVCacheThreshold:         number(s.KVCacheThreshold, c.KVCache),
		QueueLengthThreshold:     number(s.QueueLengthThreshold, c.QueueLength),
		KVSpareTrigger:           number(s.KVSpareTrigger, c.KVSpare),
		QueueSpareTrigger:        number(s.QueueSpareTrigger, c.QueueSpare),
		Mode:                     c.Mode.String(),
		TransitionTimeoutSeconds: whole(c.TransitionTimeout),
		DownStabilizationSeconds: whole(c.DownStabilization),
		Step:                     c.Step.String(),
		KVCacheSource:            &kv,
		QueueSource:              &queue,
	}
}

func cronInForce(s *CronScaler) *CronScaler {
	out := &CronScaler{Mode: cmp.Or(s.Mode, "HoldLast"), Outside: s.Outside}
	for _, p := range s.Policies {
		p.TimeZone = p.TimeZone.inForce()
		out.Policies = append(out.Policies, p)
	}
	for _, w := range s.Windows {
		w.TimeZone = w.TimeZone.inForce()
		out.Windows = append(out.Windows, w)
	}
	return out
}

func (z TimeZone) inForce() TimeZone {
	return cmp.Or(z, zone.Default)
}

// sourceInForce writes out the defaults of a source. The default port and path of an engine are not among them: only the
// packages that read pods know these.
func sourceInForce(s MetricSource) MetricSource {
	if s.Signal == "" && s.Name == "" {
		s.Name = DefaultMetricName
	}
	s.Protocol = cmp.Or(s.Protocol, HTTP)
	if len(s.Labels) == 0 {
		s.Labels = nil
	}
	return s
}

func stabilizationInForce(s scaling.Stabilization) *Stabilization {
	return &Stabilization{UpSeconds: whole(s.Up), DownSeconds: whole(s.Down)}
}

func limitsInForce(l scaling.RateLimits) *RateLimits {
	one := func(l scaling.RateLimit) *RateLimit {
		out := &RateLimit{Select: l.Select.String()}
		for _, limit := range l.Limits {
			out.Limits = append(out.Limits, Limit{Replicas: limit.Replicas, Percent: limit.Percent, PeriodSeconds: *whole(limit.Period)})
		}
		return out
	}
	return &RateLimits{Up: one(l.Up), Down: one(l.Down)}
}

// number returns the given number as it was written, or else the profile's.
func number(given *Decimal, otherwise float64) *Decimal {
	if given != nil {
		return given
	}
	return pointer(decimal(otherwise))
}

// whole returns whole seconds: no profile has fractions of them.
func whole(d time.Duration) *int32 { return pointer(int32(d / time.Second)) }

func pointer[T any](v T) *T { return &v }
