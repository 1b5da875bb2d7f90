package policy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

func (b *builder) realtime(s *RealtimeScaler, p place) scaling.Policy {
	return live(b, p.realtimePaths(b.root), b.realtimeConfig(s, p), realtime.New)
}

// realtimeConfig returns the configuration of a realtime scaler and records its metrics.
func (b *builder) realtimeConfig(s *RealtimeScaler, p place) realtime.Config {
	at := p.at + "realtime."
	c := realtime.Kaito(p.within)
	switch s.profile() {
	case ProfileKaito:
	case ProfileResponsive:
		c = realtime.Responsive(p.within)
	default:
		b.errs.Check(false, at+"profile", string(s.Profile), "must be "+oneOf([]RealtimeProfile{ProfileKaito, ProfileResponsive}))
	}
	seen := make(map[string]bool)
	for i, m := range s.Metrics {
		field := fmt.Sprintf("%smetrics[%d]", at, i)
		metric := Metric{Name: m.Source.MetricName(), Source: m.Source, Field: field + ".source"}
		ok := b.source(m.Source, field+".source")
		high := b.decimal(m.Threshold.High, field+".threshold.high")
		low := b.decimal(m.Threshold.Low, field+".threshold.low")
		b.errs.Check(!(high > 1 && m.Source.Fraction()), field+".threshold.high", m.Threshold.High, fractionRule)
		one := realtime.Metric{Name: metric.Name, High: high, Low: low}
		choose(b, &one.Role, m.Role, []realtime.Role{realtime.Both, realtime.UpOnly, realtime.DownVeto}, field+".role")
		c.Metrics = append(c.Metrics, one)
		metric.Fill = high
		if !seen[metric.Name] { // the constructor reports duplicates, with a better message
			b.use(metric, ok)
		}
		seen[metric.Name] = true
	}
	b.rule(&c.Up, s.ScaleUpRule, at+"scaleUpRule.")
	b.rule(&c.Down, s.ScaleDownRule, at+"scaleDownRule.")
	choose(b, &c.CooldownScope, s.CooldownScope, []realtime.CooldownScope{realtime.Any, realtime.PerDirection}, at+"cooldownScope")
	c.Period, c.HoldWhilePending = b.interval, s.HoldWhilePending
	return c
}

func (b *builder) rule(r *realtime.Rule, given *ScalerRule, at string) {
	if given == nil {
		return
	}
	set(&r.Step, given.ScaleStep)
	setSeconds(&r.Cooldown, given.CooldownSeconds)
	setSeconds(&r.Window, given.StabilizationWindowSeconds)
	b.most(given.CooldownSeconds, 604800, at+"cooldownSeconds")
	b.most(given.StabilizationWindowSeconds, 86400, at+"stabilizationWindowSeconds")
}

// most checks an upper limit that the LLMAutoScaler has and the constructor does not check.
func (b *builder) most(given *int32, limit int32, path string) {
	b.errs.Check(given == nil || *given <= limit, path, or(given, 0), fmt.Sprintf("must be at most %d", limit))
}

func (b *builder) proportional(s *ProportionalScaler, p place) scaling.Policy {
	c := b.proportionalConfig(s, p)
	policy := live(b, p.proportionalPaths(), c, proportional.New)
	if s.Forecast == nil || len(c.Metrics) == 0 {
		return policy
	}
	b.errs.Check(len(c.Metrics) == 1, p.at+"proportional.forecast", len(c.Metrics), "must stand beside one metric: it is the load on it that is foreseen")
	m, floor := c.Metrics[0], forecast.For(p.within, nil)
	floor.Demand = m.Name + " " + m.Measure.String()
	return b.foreseen(policy, s.Forecast, m.Demand, floor, p.at+"proportional.", p.proportionalPaths())
}

// proportionalConfig returns the configuration of a proportional scaler and records its metrics.
func (b *builder) proportionalConfig(s *ProportionalScaler, p place) proportional.Config {
	at := p.at + "proportional."
	c := proportional.LLM(p.within)
	switch s.profile() {
	case ProfileLLM:
	case ProfileKthena:
		c = proportional.Kthena(p.within)
	case ProfileKPA:
		c = proportional.KPA(p.within)
	case ProfileHPA:
		c = proportional.HPA(p.within)
	default:
		b.errs.Check(false, at+"profile", string(s.Profile), "must be "+oneOf([]ProportionalProfile{ProfileLLM, ProfileKthena, ProfileKPA, ProfileHPA}))
	}
	seen := make(map[string]bool)
	for i, m := range s.Metrics {
		field := fmt.Sprintf("%smetrics[%d]", at, i)
		metric := Metric{Name: m.Source.MetricName(), Source: m.Source, Field: field + ".source"}
		ok := b.source(m.Source, field+".source")
		one := proportional.Metric{Name: metric.Name}
		choose(b, &one.Measure, m.Measure, []proportional.Measure{proportional.PerPod, proportional.Total, proportional.Average}, field+".measure")
		metric.Fill = b.decimal(m.Target, field+".target")
		if !seen[metric.Name] {
			b.use(metric, ok)
		}
		b.errs.Check(!(metric.Fill > 1 && m.Source.Fraction() && one.Measure != proportional.Total), field+".target", m.Target, fractionRule)
		one.Target = metric.Fill
		c.Metrics = append(c.Metrics, one)
		seen[metric.Name] = true
	}
	b.share(&c.Up, s.ScaleUp, at+"scaleUp.")
	b.share(&c.Down, s.ScaleDown, at+"scaleDown.")
	setSeconds(&c.StableWindow, s.StableWindowSeconds)
	if c.StableWindow > 0 && c.Resolution == 0 {
		c.Resolution = time.Second
	}
	setSeconds(&c.Resolution, s.ResolutionSeconds)
	if s.Panic != nil {
		threshold := b.decimal(s.Panic.Threshold, at+"panic.threshold")
		if !b.unread[at+"panic.threshold"] { // as 0 it would make the window wrong
			c.Panic = proportional.Panic{Window: seconds(s.Panic.WindowSeconds), Threshold: threshold}
		}
	}
	b.stabilization(&c.Stabilization, s.Stabilization, at)
	b.limits(&c.RateLimits, s.RateLimits, at)
	b.fits(s.StableWindowSeconds, at+"stableWindowSeconds")
	set(&c.ActivationScale, s.ActivationScale)
	set(&c.StartupCredit, s.StartupCredit)
	return c
}

func (b *builder) share(r *proportional.Rule, given *ProportionalRule, at string) {
	if given == nil {
		return
	}
	b.setDecimal(&r.Tolerance, given.Tolerance, at+"tolerance")
	b.setDecimal(&r.MaxRate, given.MaxRate, at+"maxRate")
	set(&r.MaxStep, given.MaxStep)
}

// around returns the stabilization and the rate limits around a scaler.
func (b *builder) around(s *Stabilization, l *RateLimits, at string) (stabilization scaling.Stabilization, limits scaling.RateLimits) {
	b.stabilization(&stabilization, s, at)
	b.limits(&limits, l, at)
	b.add(stabilization.Validate("stabilization"), aroundPaths(at))
	b.add(limits.Validate("rateLimits"), aroundPaths(at))
	return stabilization, limits
}

func (b *builder) stabilization(to *scaling.Stabilization, given *Stabilization, at string) {
	if given == nil {
		return
	}
	setSeconds(&to.Up, given.UpSeconds)
	setSeconds(&to.Down, given.DownSeconds)
	b.fits(given.UpSeconds, at+"stabilization.upSeconds")
	b.fits(given.DownSeconds, at+"stabilization.downSeconds")
}

// fits checks that a window's samples can be stored.
func (b *builder) fits(window *int32, path string) {
	fits := window == nil || seconds(*window) <= mostIntervals*b.interval
	b.errs.Check(fits, path, or(window, 0), fmt.Sprintf("must be at most %d times %sintervalSeconds %d", mostIntervals, b.root, int(b.interval.Seconds())))
}

func (b *builder) limits(to *scaling.RateLimits, given *RateLimits, at string) {
	if given != nil {
		b.limit(&to.Up, given.Up, at+"rateLimits.up.")
		b.limit(&to.Down, given.Down, at+"rateLimits.down.")
	}
}

func (b *builder) limit(to *scaling.RateLimit, given *RateLimit, at string) {
	if given == nil {
		return
	}
	*to = scaling.RateLimit{}
	choose(b, &to.Select, given.Select, []scaling.Select{scaling.SelectMax, scaling.SelectMin, scaling.SelectDisabled}, at+"select")
	for i, l := range given.Limits {
		b.most(&l.PeriodSeconds, 1800, fmt.Sprintf("%slimits[%d].periodSeconds", at, i))
		to.Limits = append(to.Limits, scaling.Limit{Replicas: l.Replicas, Percent: l.Percent, Period: seconds(l.PeriodSeconds)})
	}
}

func (b *builder) saturation(s *SaturationScaler, p place) scaling.Policy {
	single, err := saturation.NewSingle(b.saturationConfig(s, p))
	if err != nil {
		b.add(err, p.saturationPaths())
		return nil
	}
	return single
}

// saturationConfig returns the configuration of a saturation scaler and records its metrics.
func (b *builder) saturationConfig(s *SaturationScaler, p place) saturation.SingleConfig {
	at := p.at + "saturation."
	c := saturation.SingleConfig{Config: saturation.Defaults(), Bounds: p.within}
	switch s.profile() {
	case ProfileDefault:
	case ProfileWVA:
		c.Config = saturation.WVA()
	default:
		b.errs.Check(false, at+"profile", string(s.Profile), "must be "+oneOf([]SaturationProfile{ProfileDefault, ProfileWVA}))
	}
	b.setDecimal(&c.KVCache, s.KVCacheThreshold, at+"kvCacheThreshold")
	b.setDecimal(&c.QueueLength, s.QueueLengthThreshold, at+"queueLengthThreshold")
	b.setDecimal(&c.KVSpare, s.KVSpareTrigger, at+"kvSpareTrigger")
	b.setDecimal(&c.QueueSpare, s.QueueSpareTrigger, at+"queueSpareTrigger")
	choose(b, &c.Mode, s.Mode, []saturation.Mode{saturation.Default, saturation.Literal}, at+"mode")
	choose(b, &c.Step, s.Step, []saturation.StepRule{saturation.One, saturation.Deficit}, at+"step")
	setSeconds(&c.TransitionTimeout, s.TransitionTimeoutSeconds)
	setSeconds(&c.DownStabilization, s.DownStabilizationSeconds)
	kv, queue := s.sources()
	c.KV, c.Queue = kv.MetricName(), queue.MetricName()
	b.use(Metric{Name: c.KV, Source: kv, Fill: c.KVCache, Field: at + "kvCacheSource"}, b.source(kv, at+"kvCacheSource"))
	ok := b.source(queue, at+"queueSource")
	if c.Queue != c.KV {
		b.use(Metric{Name: c.Queue, Source: queue, Fill: c.QueueLength, Field: at + "queueSource"}, ok)
	}
	return c
}

// Config returns the scaler's configuration, without bounds. The scaler must be valid.
func (s *SaturationScaler) Config() saturation.SingleConfig {
	return newBuilder("", 0).saturationConfig(s, place{})
}

// sources returns the sources of the KV cache usage and of the queue length.
func (s *SaturationScaler) sources() (kv, queue MetricSource) {
	return or(s.KVCacheSource, MetricSource{Name: saturation.DefaultKV}), or(s.QueueSource, MetricSource{Name: saturation.DefaultQueue})
}

// cron returns a timetable.
func (b *builder) cron(s *CronScaler, p place) cronscale.Scaler {
	at := p.at + "cron."
	c := cronscale.Config{Bounds: p.within, Outside: s.Outside}
	choose(b, &c.Mode, s.Mode, []cronscale.Mode{cronscale.HoldLast, cronscale.Match, cronscale.InWindow}, at+"mode")
	fits := func(n int32, path string) { b.within(n, at+path, p) }
	for i, policy := range s.Policies {
		fits(policy.TargetReplicas, fmt.Sprintf("policies[%d].targetReplicas", i))
		c.Policies = append(c.Policies, cronscale.Policy{
			Name: policy.Name, Schedule: string(policy.Schedule), TargetReplicas: policy.TargetReplicas, TimeZone: string(policy.TimeZone),
		})
	}
	for i, w := range s.Windows {
		fits(w.TargetReplicas, fmt.Sprintf("windows[%d].targetReplicas", i))
		c.Windows = append(c.Windows, cronscale.Window{
			Name: w.Name, Start: string(w.Start), End: string(w.End), Replicas: w.TargetReplicas, TimeZone: string(w.TimeZone),
		})
	}
	fits(s.Outside, "outside")
	scaler, err := cronscale.New(c)
	b.add(err, p.cronPaths())
	return scaler
}

// within checks that a count is not above the maxReplicas of the document: the target would get fewer replicas. If the bounds are the
// caller's, that is a warning.
func (b *builder) within(n int32, path string, p place) {
	switch above := n > p.within.Max && p.within.Max >= 1; {
	case above && p.known:
		b.errs.Check(false, path, n, fmt.Sprintf("must not be above %smaxReplicas %d", p.bounds, p.within.Max))
	case above:
		b.odd = append(b.odd, &scaling.FieldError{Field: path, Value: n, Rule: fmt.Sprintf("is above the upper bound, and cut down to %d", p.within.Max)})
	}
}

// live makes a policy from a configuration. Wrong bounds are reported once for all algorithms.
func live[C, S any, T scaling.Stepper[S]](b *builder, names []rename, c C, construct func(C) (T, error)) scaling.Policy {
	stepper, err := construct(c)
	if err != nil {
		b.add(err, names)
		return nil
	}
	return scaling.New[S](stepper)
}

// The profiles under their current names. If none is given it is the default profile.

func (s *RealtimeScaler) profile() RealtimeProfile {
	return cmp.Or(renamed(s.Profile), ProfileKaito)
}

func (s *ProportionalScaler) profile() ProportionalProfile { return cmp.Or(s.Profile, ProfileLLM) }

func (s *SaturationScaler) profile() SaturationProfile {
	return cmp.Or(renamed(s.Profile), ProfileDefault)
}

// renamed returns the current name of a profile.
func renamed[T ~string](profile T) T {
	switch profile {
	case "seed":
		return T(ProfileKaito)
	case "literal":
		return T(ProfileWVA)
	}
	return profile
}
