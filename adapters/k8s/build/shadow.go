package build

import (
	"slices"
	"time"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// A ShadowPlan is what is built from a spec's shadows and its attainment.
type ShadowPlan struct {
	// All are the shadows, in their order. A shadow that is wrong has its Err.
	All []policy.ShadowPlan
	// Scrape and Port configure a separate scrape for the shadows, with all metrics that any of them reads. Scrape has no
	// metrics if the spec's own metrics suffice.
	Scrape scrape.Config
	Port   k8s.Port
	// Capacity is the configuration with which the shadows' replica counts are replayed: that of the spec's attainment, or
	// else that of the first capacity scaler, of the spec itself or of a shadow; nil if there is none. The observations that
	// the shadows are shown contain its metrics.
	Capacity *capacity.Config
	// ColdStart is the attainment's assumed duration of a start until one has been observed; 0 means unknown.
	ColdStart time.Duration
	// Attainment is what is wrong with the spec's attainment. The shadows run nevertheless.
	Attainment error
	// Warnings say what is questionable in valid shadows and in a valid attainment.
	Warnings []*scaling.FieldError
}

// Shadows builds the plan of a spec's shadows and of its attainment. The error has every wrong field; the valid parts of the
// plan can be used nevertheless.
//
// The shadows are those of raw, as the definition of an LLMAutoScaler holds them: one that cannot be parsed does not affect the
// others. If raw is nil they are those of the spec, as the one of a document has them.
func Shadows(spec *policy.Spec, raw []policy.RawShadow, tuner func() capacity.Tuner) (ShadowPlan, error) {
	var plan ShadowPlan
	var e scaling.FieldErrors
	s := bounded(spec)
	var err error
	if raw == nil {
		plan.All, err = s.Shadows("spec", scaling.Bounds{}, tuner)
	} else {
		plan.All, err = s.RawShadows("spec", raw, scaling.Bounds{}, tuner)
	}
	e.Add(err)
	own, _ := With(spec, nil)
	plan.Capacity = own.Capacity
	var all []policy.Metric
	for i := range plan.All {
		one := &plan.All[i]
		for _, m := range one.Reads { // each endpoint is checked by itself, so that a wrong one does not affect the others
			_, _, bad := scraped(spec, []policy.Metric{m}, own.interval(spec))
			one.Err = joined(one.Err, bad)
			e.Add(bad)
		}
		if one.Err != nil {
			one.Policy.Policy = nil
			continue
		}
		if plan.Capacity == nil {
			plan.Capacity = one.Capacity
		}
		for _, m := range one.Reads {
			k := slices.IndexFunc(all, func(old policy.Metric) bool { return old.Name == m.Name })
			if k < 0 {
				all = append(all, m)
				continue
			}
			all[k].Fill = max(all[k].Fill, m.Fill)
		}
	}
	plan.Warnings = policy.ShadowWarnings(plan.All)
	attained, err := s.Attained("spec", plan.All, scaling.Bounds{})
	if attained != nil {
		for _, m := range attained.Reads {
			_, _, bad := scraped(spec, []policy.Metric{m}, own.interval(spec))
			err = joined(err, bad)
		}
	}
	if err == nil && attained != nil {
		if err = plan.read(spec, &own, append(slices.Clone(all), without(attained.Reads, all)...)); err == nil {
			plan.Capacity, plan.Warnings = &attained.Capacity, append(plan.Warnings, attained.Warnings...)
			if attained.Startup != nil {
				plan.ColdStart = attained.Startup.P50
			}
			return plan, e.Err()
		}
	}
	plan.Attainment = err
	e.Add(err)
	if err := plan.read(spec, &own, all); err != nil { // an error of all together: there are too many
		for i := range plan.All {
			plan.All[i].Err, plan.All[i].Policy.Policy = joined(plan.All[i].Err, err), nil
		}
		e.Add(err)
	}
	return plan, e.Err()
}

// read sets the scrape configuration for the metrics all, unless the spec's own metrics suffice.
func (plan *ShadowPlan) read(spec *policy.Spec, own *Plan, all []policy.Metric) (err error) {
	if len(without(all, own.Metrics)) == 0 {
		return nil
	}
	if own.Capacity != nil { // the replays need the metrics of the spec's capacity scaler too
		all = append(all, without(own.Metrics, all)...)
	}
	slices.SortStableFunc(all, func(a, b policy.Metric) int { return last(a) - last(b) })
	if plan.Scrape, plan.Port, err = scraped(spec, all, own.interval(spec)); err != nil {
		plan.Scrape = scrape.Config{}
	}
	return err
}

// without returns the metrics of all whose names are not among those of others.
func without(all, others []policy.Metric) []policy.Metric {
	return slices.DeleteFunc(slices.Clone(all), func(m policy.Metric) bool {
		return slices.ContainsFunc(others, func(has policy.Metric) bool { return has.Name == m.Name })
	})
}

func last(m policy.Metric) int {
	if m.Counted {
		return 1
	}
	return 0
}

func joined(a, b error) error {
	var e scaling.FieldErrors
	e.Add(a)
	e.Add(b)
	return e.Err()
}

// interval returns the spec's interval, or the default if the spec is wrong.
func (p *Plan) interval(spec *policy.Spec) time.Duration {
	if p.Policy == nil {
		return policy.DefaultIntervalSeconds * time.Second
	}
	return spec.Interval()
}

// scraped returns the scrape configuration for metrics.
func scraped(spec *policy.Spec, metrics []policy.Metric, interval time.Duration) (c scrape.Config, port k8s.Port, err error) {
	var e scaling.FieldErrors
	var fields []string
	c.Interval = interval
	for _, m := range metrics {
		metric, err := Metric(m)
		e.Add(err)
		if err != nil {
			continue
		}
		c.Metrics, fields = append(c.Metrics, metric), append(fields, m.Field)
		told := len(fields) > 1 && fields[len(fields)-2] == m.Field // several metrics have the same source
		e.Check(spec.Scrape == nil || spec.Scrape.BearerTokenSecretRef == nil || told || metric.Endpoint.Scheme != string(policy.HTTP), m.Field+".protocol", metric.Endpoint.Scheme,
			"must be https with spec.scrape.bearerTokenSecretRef: a token is not sent in the open")
	}
	if len(c.Metrics) > 0 {
		port = around(&c, spec.Scrape)
		e.Add(renamed(c.Validate(), scrapePaths(fields)))
	}
	return c, port, e.Err()
}
