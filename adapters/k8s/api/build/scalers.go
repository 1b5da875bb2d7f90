package build

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

func (b *builder) realtime(s *v1alpha1.RealtimeScaler, p Plan) scaling.Policy {
	const at = "spec.scaler.realtime."
	var c realtime.Config
	switch s.Profile {
	case "", v1alpha1.ProfileSeed:
		c = realtime.Kaito(p.Bounds)
	case v1alpha1.ProfileResponsive:
		c = realtime.Responsive(p.Bounds)
	default:
		b.errs.Check(false, at+"profile", string(s.Profile), "must be seed or responsive")
		c = realtime.Kaito(p.Bounds)
	}
	for i, m := range s.Metrics {
		field := fmt.Sprintf("%smetrics[%d]", at, i)
		metric := b.source(m.Source, field+".source")
		high := b.decimal(m.Threshold.High, field+".threshold.high")
		low := b.decimal(m.Threshold.Low, field+".threshold.low")
		role, ok := find([]realtime.Role{realtime.Both, realtime.UpOnly, realtime.DownVeto}, m.Role)
		b.errs.Check(ok || m.Role == "", field+".role", m.Role, "must be Both, UpOnly or DownVeto")
		c.Metrics = append(c.Metrics, realtime.Metric{Name: metric.Name, High: high, Low: low, Role: role})
		metric.Fill = high
		if !repeated(c.Metrics, metric.Name) {
			b.use(metric, field+".source")
		}
	}
	rule(&c.Up, s.ScaleUpRule)
	rule(&c.Down, s.ScaleDownRule)
	if s.CooldownScope != "" {
		scope, ok := find([]realtime.CooldownScope{realtime.Any, realtime.PerDirection}, s.CooldownScope)
		b.errs.Check(ok, at+"cooldownScope", s.CooldownScope, "must be Any or PerDirection")
		c.CooldownScope = scope
	}
	c.Period, c.HoldWhilePending = p.Interval, s.HoldWhilePending
	return live(b, realtimePaths(), c, realtime.New)
}

// repeated reports whether a metric's name was there before: the constructor says so, and says it better.
func repeated(metrics []realtime.Metric, name string) bool {
	n := 0
	for _, m := range metrics {
		if m.Name == name {
			n++
		}
	}
	return n > 1
}

func rule(r *realtime.Rule, given *v1alpha1.ScalerRule) {
	if given == nil {
		return
	}
	set(&r.Step, given.ScaleStep)
	setSeconds(&r.Cooldown, given.CooldownSeconds)
	setSeconds(&r.Window, given.StabilizationWindowSeconds)
}

func (b *builder) proportional(s *v1alpha1.ProportionalScaler, p Plan) scaling.Policy {
	const at = "spec.scaler.proportional."
	var c proportional.Config
	switch s.Profile {
	case "", v1alpha1.ProfileLLM:
		c = proportional.LLM(p.Bounds)
	case v1alpha1.ProfileKthena:
		c = proportional.Kthena(p.Bounds)
	case v1alpha1.ProfileKPA:
		c = proportional.KPA(p.Bounds)
	case v1alpha1.ProfileHPA:
		c = proportional.HPA(p.Bounds)
	default:
		b.errs.Check(false, at+"profile", string(s.Profile), "must be llm, kthena, kpa or hpa")
		c = proportional.LLM(p.Bounds)
	}
	seen := make(map[string]bool)
	for i, m := range s.Metrics {
		field := fmt.Sprintf("%smetrics[%d]", at, i)
		metric := b.source(m.Source, field+".source")
		metric.Fill = b.decimal(m.Target, field+".target")
		measure, ok := find([]proportional.Measure{proportional.PerPod, proportional.Total, proportional.Average}, m.Measure)
		b.errs.Check(ok || m.Measure == "", field+".measure", m.Measure, "must be PerPod, Total or Average")
		c.Metrics = append(c.Metrics, proportional.Metric{Name: metric.Name, Target: metric.Fill, Measure: measure})
		if !seen[metric.Name] {
			b.use(metric, field+".source")
		}
		seen[metric.Name] = true
	}
	b.share(&c.Up, s.ScaleUp, at+"scaleUp.")
	b.share(&c.Down, s.ScaleDown, at+"scaleDown.")
	b.windows(&c, s, p.Interval)
	b.limit(&c.RateLimits.Up, s.RateLimits, at+"rateLimits.up.", func(l *v1alpha1.RateLimits) *v1alpha1.RateLimit { return l.Up })
	b.limit(&c.RateLimits.Down, s.RateLimits, at+"rateLimits.down.", func(l *v1alpha1.RateLimits) *v1alpha1.RateLimit { return l.Down })
	set(&c.ActivationScale, s.ActivationScale)
	set(&c.StartupCredit, s.StartupCredit)
	return live(b, proportionalPaths(), c, proportional.New)
}

func (b *builder) share(r *proportional.Rule, given *v1alpha1.ProportionalRule, path string) {
	if given == nil {
		return
	}
	if given.Tolerance != nil {
		r.Tolerance = b.decimal(*given.Tolerance, path+"tolerance")
	}
	if given.MaxRate != nil {
		r.MaxRate = b.decimal(*given.MaxRate, path+"maxRate")
	}
	set(&r.MaxStep, given.MaxStep)
}

func (b *builder) windows(c *proportional.Config, s *v1alpha1.ProportionalScaler, interval time.Duration) {
	const at = "spec.scaler.proportional."
	setSeconds(&c.StableWindow, s.StableWindowSeconds)
	if c.StableWindow > 0 && c.Resolution == 0 {
		c.Resolution = time.Second
	}
	if s.Panic != nil {
		c.Panic = proportional.Panic{Window: seconds(s.Panic.WindowSeconds), Threshold: b.decimal(s.Panic.Threshold, at+"panic.threshold")}
	}
	if s.Stabilization != nil {
		setSeconds(&c.Stabilization.Up, s.Stabilization.UpSeconds)
		setSeconds(&c.Stabilization.Down, s.Stabilization.DownSeconds)
		b.fits(s.Stabilization.UpSeconds, interval, at+"stabilization.upSeconds")
		b.fits(s.Stabilization.DownSeconds, interval, at+"stabilization.downSeconds")
	}
	b.fits(s.StableWindowSeconds, interval, at+"stableWindowSeconds")
}

// fits checks that a window's samples can be stored.
func (b *builder) fits(window *int32, interval time.Duration, path string) {
	if window != nil {
		b.errs.Check(seconds(*window) <= maxWindow*interval, path, *window, fmt.Sprintf("must be at most %d times spec.intervalSeconds %d", maxWindow, int(interval.Seconds())))
	}
}

func (b *builder) limit(to *scaling.RateLimit, all *v1alpha1.RateLimits, path string, which func(*v1alpha1.RateLimits) *v1alpha1.RateLimit) {
	if all == nil || which(all) == nil {
		return
	}
	given := which(all)
	*to = scaling.RateLimit{}
	choice, ok := find([]scaling.Select{scaling.SelectMax, scaling.SelectMin, scaling.SelectDisabled}, given.Select)
	b.errs.Check(ok || given.Select == "", path+"select", given.Select, "must be Max, Min or Disabled")
	to.Select = choice
	for _, l := range given.Limits {
		to.Limits = append(to.Limits, scaling.Limit{Replicas: l.Replicas, Percent: l.Percent, Period: seconds(l.PeriodSeconds)})
	}
}

func (b *builder) cron(s *v1alpha1.CronScaler, p Plan) cronscale.Scaler {
	c := cronscale.Config{Bounds: p.Bounds, Outside: s.Outside}
	mode, ok := find([]cronscale.Mode{cronscale.HoldLast, cronscale.Match, cronscale.InWindow}, s.Mode)
	b.errs.Check(ok || s.Mode == "", "spec.scaler.cron.mode", s.Mode, "must be HoldLast, Match or InWindow")
	c.Mode = mode
	for _, policy := range s.Policies {
		c.Policies = append(c.Policies, cronscale.Policy{
			Name: policy.Name, Schedule: string(policy.Schedule), TargetReplicas: policy.TargetReplicas, TimeZone: string(policy.TimeZone),
		})
	}
	for _, w := range s.Windows {
		c.Windows = append(c.Windows, cronscale.Window{
			Name: w.Name, Start: string(w.Start), End: string(w.End), Replicas: w.TargetReplicas, TimeZone: string(w.TimeZone),
		})
	}
	scaler, err := cronscale.New(c)
	b.add(err, cronPaths())
	return scaler
}

// live makes a policy of a configuration. What is wrong with the bounds is reported once, for all of them.
func live[C, S any, T scaling.Stepper[S]](b *builder, names []rename, c C, construct func(C) (T, error)) scaling.Policy {
	stepper, err := construct(c)
	if err != nil {
		b.add(err, names)
		return nil
	}
	return scaling.New[S](stepper)
}

func set[T any](to *T, given *T) {
	if given != nil {
		*to = *given
	}
}

func setSeconds(to *time.Duration, given *int32) {
	if given != nil {
		*to = seconds(*given)
	}
}
