package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/scaling"
)

// MaxShadows is the maximum number of shadows of a spec.
const MaxShadows = shadow.Most

// mostShadow is the maximum size, in bytes, of a shadow's scaler that is a document of its own.
const mostShadow = 64 << 10

// A Shadow is a policy that watches: what it would ask for is told, and never written.
type Shadow struct {
	// Name tells it from the others: at most 63 of a-z, 0-9 and -.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Scaler says by what rules it would scale, within the bounds of the spec that it stands in.
	Scaler Composite `json:"scaler"`
}

// A ShadowPlan is what is built from a shadow.
//
// +kubebuilder:object:generate=false
type ShadowPlan struct {
	shadow.Policy

	// Capacity is as in Plan.
	Capacity *capacity.Config
	// Reads are the metrics that the shadow reads, each name once.
	Reads []Metric
	// Err is what is wrong with the shadow. With an error there is no policy.
	Err error
	// Warnings say what is questionable in a valid shadow: profiles under their old names, and metrics whose values are the
	// real fleet's.
	Warnings []*scaling.FieldError
}

// A RawShadow is a shadow whose scaler has not been parsed: it is text in JSON or YAML.
//
// +kubebuilder:object:generate=false
type RawShadow struct {
	Name   string
	Scaler []byte
}

// Shadows returns the plans of the spec's shadows, in their order, and an error with every wrong field of them, as Plan does.
// A shadow that is wrong has its Err; the others can still run. Errors in the rest of the spec are reported by Plan; with
// such an error no shadow can run.
//
// Two scalers may read one metric only if they read it from the same source. This also holds between the spec's own scaler
// and its shadows.
func (s *Spec) Shadows(at string, otherwise scaling.Bounds, tuner func() capacity.Tuner) ([]ShadowPlan, error) {
	return s.shadows(at, s.Shadow, make([]error, len(s.Shadow)), otherwise, tuner)
}

// RawShadows is Shadows for shadows that it parses first. A shadow that cannot be parsed gets an Err; the others are not
// affected.
func (s *Spec) RawShadows(at string, raw []RawShadow, otherwise scaling.Bounds, tuner func() capacity.Tuner) ([]ShadowPlan, error) {
	all, unread := make([]Shadow, len(raw)), make([]error, len(raw))
	for i := range raw[:min(len(raw), MaxShadows)] {
		all[i].Name = raw[i].Name
		unread[i] = all[i].Scaler.read(raw[i].Scaler, fmt.Sprintf("%sshadow[%d].scaler", prefix(at), i))
	}
	return s.shadows(at, all, unread, otherwise, tuner)
}

// read parses a scaler. Errors name its fields under path.
func (c *Composite) read(data []byte, path string) error {
	err := readPart(data, c, path)
	c.ready()
	return err
}

// readPart parses a part of a document that is given by itself. Errors name its fields under path.
func readPart(data []byte, to any, path string) error {
	if len(data) > mostShadow {
		return &scaling.FieldError{Field: path, Value: len(data), Rule: fmt.Sprintf("must not be larger than %d bytes", mostShadow)}
	}
	r := newReader("")
	r.one(r.documents(data, "must be given"), to, path, "must be one")
	var e scaling.FieldErrors
	for _, wrong := range fieldErrors(r.err()) {
		if wrong.Field == "" {
			wrong.Field = path
		}
		e.Add(wrong)
	}
	return e.Err()
}

func (s *Spec) shadows(at string, all []Shadow, unread []error, otherwise scaling.Bounds, tuner func() capacity.Tuner) ([]ShadowPlan, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var errs scaling.FieldErrors
	alone := *s
	alone.Shadow = nil
	first, _ := alone.PlanWith(at, otherwise, nil)
	taken, field := first.Metrics, prefix(at)+"shadow"
	errs.Check(len(all) <= MaxShadows, field, len(all), fmt.Sprintf("must be at most %d", MaxShadows))
	var plans []ShadowPlan
	for i := range all[:min(len(all), MaxShadows)] {
		one, here := &all[i], fmt.Sprintf("%s[%d]", field, i)
		var e scaling.FieldErrors
		e.Check(isLabel(one.Name), here+".name", one.Name, labelRule)
		e.Check(!slices.ContainsFunc(all[:i], func(other Shadow) bool { return other.Name == one.Name }), here+".name", one.Name, "must be unique")
		var plan Plan
		if err := unread[i]; err != nil {
			e.Add(err)
		} else {
			spec := alone
			spec.Scaler = one.Scaler
			plan, err = spec.plan(prefix(at), here+".scaler.", otherwise, tuner)
			e.Add(own(err, here+".scaler", first.Policy != nil))
		}
		for _, m := range plan.Metrics {
			k := slices.IndexFunc(taken, func(old Metric) bool { return old.Name == m.Name })
			if k < 0 {
				taken = append(taken, m)
				continue
			}
			e.Check(same(taken[k].Source, m.Source), m.Field, m.Name, "must be read as "+taken[k].Field+" reads it, which has the same name")
		}
		p := ShadowPlan{Policy: shadow.Policy{Name: one.Name}, Err: e.Err()}
		errs.Add(p.Err)
		switch {
		case p.Err != nil:
		case plan.Policy == nil:
			p.Err = noSpecError{}
		default:
			p.Policy.Policy, p.Metrics, p.Reads = plan.Policy, one.Scaler.shown(plan.Metrics), plan.Metrics
			p.Capacity = plan.Capacity
			p.Warnings = append(one.Scaler.warnings(here+".scaler.", s.Interval()), alike(plan.Metrics)...)
		}
		plans = append(plans, p)
	}
	return plans, errs.Err()
}

// own removes the errors that are not about a shadow's scaler, if the spec itself has errors: Plan reports them for the spec.
func own(err error, path string, whole bool) error {
	if err == nil || whole {
		return err
	}
	var e scaling.FieldErrors
	for _, wrong := range fieldErrors(err) {
		if strings.HasPrefix(wrong.Field, path) {
			e.Add(wrong)
		}
	}
	return e.Err()
}

// noSpecError is the Err of a valid shadow if the rest of the spec is wrong.
type noSpecError struct{}

func (noSpecError) Error() string { return "the rest of the spec is wrong" }

const labelRule = "must be at most 63 of a-z, 0-9 and -, and neither begin nor end with -"

// isLabel reports whether a name is a label of RFC 1123.
func isLabel(name string) bool {
	return regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`).MatchString(name)
}

// shown describes the readings that a shadow is shown.
func (c *Composite) shown(metrics []Metric) []shadow.Metric {
	var all []shadow.Metric
	for _, m := range metrics {
		if m.Counted {
			continue
		}
		one := shadow.Metric{Name: m.Name, Fill: m.Fill, Kind: c.kind(m.Name)}
		if m.Source.alike() {
			one.Kind = shadow.Fleet
		}
		all = append(all, one)
	}
	return all
}

// kind returns the kind of a reading, by its measure.
func (c *Composite) kind(metric string) (kind shadow.Kind) {
	if c.Proportional != nil {
		for _, target := range c.Proportional.Metrics {
			switch {
			case target.Source.MetricName() != metric:
			case target.Measure == "Total":
				kind = max(kind, shadow.Fleet)
			case target.Measure == "Average":
				kind = max(kind, shadow.Average)
			}
		}
	}
	for i := range c.Highest {
		kind = max(kind, c.Highest[i].kind(metric))
	}
	return kind
}

// alike reports whether the number is known not to be a load that the replicas share: a time or a hit rate, which does not
// halve with twice as many replicas. A shadow is shown the real fleet's value of such a number.
func (s *MetricSource) alike() bool {
	switch s.Signal {
	case "TTFT", "TPOT", "PrefixCacheHitRate":
		return true
	case "":
		return strings.HasSuffix(s.Name, "_seconds") || strings.Contains(s.Name, "hit_rate")
	}
	return false
}

func alike(metrics []Metric) (all []*scaling.FieldError) {
	for _, m := range metrics {
		if !m.Counted && m.Source.alike() {
			all = append(all, &scaling.FieldError{
				Field: m.Field, Value: m.Name, Rule: "is of the real fleet, whatever the shadow asks for: where the two differ its wish says little",
			})
		}
	}
	return all
}

// ShadowWarnings returns the warnings of all plans.
func ShadowWarnings(plans []ShadowPlan) (all []*scaling.FieldError) {
	for i := range plans {
		all = append(all, plans[i].Warnings...)
	}
	return all
}
