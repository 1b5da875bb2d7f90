package policy

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/scaling"
)

// mostIntervals is the longest window of the proportional scaler, in intervals. The samples in a window are stored, and an
// annotation has room for this many.
const mostIntervals = 600

// A Plan is what is built from a spec: the policy and the metrics that it reads.
//
// +kubebuilder:object:generate=false
type Plan struct {
	// Policy is the live policy, with a fresh state.
	Policy scaling.Policy
	// Kinds names the algorithms of Policy, for example realtime+cron.
	Kinds string
	// Layout is Kinds together with the layers over the algorithms, for example realtime+cron+stabilization. A highest adds a hash of the
	// names and the layouts of its members. Policies of one layout can read each other's states; of different ones, see loop.CarryOver.
	Layout string
	// Metrics are the metrics that the policy reads, in the order of the spec, each name once. There are none if the clock
	// alone decides.
	Metrics []Metric
	// Bounds are the minimum and the maximum of the replica count.
	Bounds scaling.Bounds
	// Interval is the time between decisions.
	Interval time.Duration
	// Capacity is the configuration of the first capacity scaler, with the SLO and the speed of a replica; nil if there is
	// none.
	Capacity *capacity.Config
	// Warnings name counts of timetables and static scalers above the maximum of Bounds, to which they are cut down, if the
	// bounds are the caller's. With bounds of the document such a count is an error.
	Warnings []*scaling.FieldError
}

// A Metric is a number that a policy reads.
//
// +kubebuilder:object:generate=false
type Metric struct {
	// Name is the name of the scaling.Reading: the metric family, or the signal.
	Name   string
	Source MetricSource
	// Fill is what a pod that gave no value counts as in the reading's upper end: the metric's threshold for scaling up, or
	// its target. If several scalers read the metric it is the highest of theirs.
	Fill float64
	// Counted says that the metric is a histogram of the fleet instead of a reading. Histograms come last.
	Counted bool
	// Field is the path of the source, for example spec.scaler.realtime.metrics[0].source.
	Field string
}

// Plan builds the plan of the spec, or returns every wrong field, each as a *scaling.FieldError. If at is not empty, the
// paths begin with it, for example with "spec". The bounds otherwise are used if the spec has neither minReplicas nor
// maxReplicas.
//
// With an error the Plan has no policy, but it has the metrics whose sources are valid, so that errors in reading them can be
// reported together with the rest.
func (s *Spec) Plan(at string, otherwise scaling.Bounds) (Plan, error) {
	return s.PlanWith(at, otherwise, nil)
}

// PlanWith is Plan with a function that makes a tuner for each capacity scaler, see capacity.Shared. If it is nil, capacity
// scalers tune inside Decide, which then takes seconds now and then: this is for simulators only.
func (s *Spec) PlanWith(at string, otherwise scaling.Bounds, tuner func() capacity.Tuner) (Plan, error) {
	return s.plan(prefix(at), prefix(at)+"scaler.", otherwise, tuner)
}

// plan is Plan for a scaler whose path is not below that of its spec.
func (s *Spec) plan(root, scaler string, otherwise scaling.Bounds, tuner func() capacity.Tuner) (Plan, error) {
	p := Plan{Interval: s.Interval(), Bounds: otherwise}
	b := newBuilder(root, p.Interval)
	b.tuner = tuner
	where := place{at: scaler, bounds: root, within: otherwise}
	if b.bounded(&where, root, s.MinReplicas, s.MaxReplicas) {
		p.Bounds = where.within
	}
	if p.Interval < time.Second || p.Interval > time.Hour {
		b.errs.Check(false, b.root+"intervalSeconds", int(p.Interval.Seconds()), "must be between 1 and 3600")
		b.interval = DefaultIntervalSeconds * time.Second // so that the wrong interval is reported only once
	}
	b.add(where.within.Validate("bounds"), where.boundsPaths())
	groupings := []string{"Pod", "LeaderWorkerSet", "KaitoWorkspace"}
	b.errs.Check(s.Grouping == "" || slices.Contains(groupings, s.Grouping), b.root+"grouping", s.Grouping, "must be "+oneOf(groupings))
	p.Policy, p.Kinds, p.Layout = b.composite(&s.Scaler, where)
	b.scrape(s.Scrape)
	p.Capacity, p.Warnings = b.work, b.odd
	p.Metrics = slices.DeleteFunc(b.metrics, func(m Metric) bool { return b.wrong[m.Field] })
	slices.SortStableFunc(p.Metrics, func(a, b Metric) int { return order(a.Counted) - order(b.Counted) })
	if err := b.errs.Err(); err != nil {
		return Plan{Metrics: p.Metrics, Interval: b.interval}, err
	}
	return p, nil
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

// scrape checks the settings that are valid only with some sources.
func (b *builder) scrape(s *Scrape) {
	if s == nil {
		return
	}
	at := b.root + "scrape."
	named := func(ref *SecretKeyReference, path string) {
		b.errs.Check(ref == nil || ref.Name != "", at+path+".name", "", "must not be empty")
	}
	b.errs.Check(s.PortName == "" || len(s.PortName) <= 15 && regexp.MustCompile(`^[0-9]*[a-z]([a-z0-9-]*[a-z0-9])?$`).MatchString(s.PortName),
		at+"portName", s.PortName, "must be the name of a port")
	if s.TLS != nil {
		b.errs.Check(s.TLS.ServerName == "" || regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`).MatchString(s.TLS.ServerName),
			at+"tls.serverName", s.TLS.ServerName, "must be a host name")
		b.errs.Check(s.TLS.CASecretRef == nil || !s.TLS.InsecureSkipVerify, at+"tls.caSecretRef", or(s.TLS.CASecretRef, SecretKeyReference{}).Name, "must not be given with insecureSkipVerify")
		named(s.TLS.CASecretRef, "tls.caSecretRef")
	}
	named(s.BearerTokenSecretRef, "bearerTokenSecretRef")
	for _, m := range b.metrics {
		first, own := cmp.Or(b.metrics[0].Source.Protocol, HTTP), cmp.Or(m.Source.Protocol, HTTP)
		b.errs.Check(s.PortName == "" || own == first, m.Field+".protocol", string(own),
			fmt.Sprintf("must be that of every other source, %s, as %sscrape.portName is given", first, b.root))
	}
}

// Interval returns the time between decisions.
func (s *Settings) Interval() time.Duration {
	return seconds(or(s.IntervalSeconds, DefaultIntervalSeconds))
}

// prefix returns the prefix of the fields of an object at a path: the path with a dot, or nothing for the root.
func prefix(at string) string {
	if at == "" {
		return ""
	}
	return at + "."
}

// A builder collects errors while it builds.
type builder struct {
	root     string // in front of every path, with a dot: "spec.", or nothing
	interval time.Duration
	errs     faults
	metrics  []Metric
	told     map[string]bool // errors reported so far, by path and rule
	unread   map[string]bool // paths of values that could not be parsed
	wrong    map[string]bool // paths of invalid sources
	tuner    func() capacity.Tuner
	work     *capacity.Config // of the first capacity scaler
	scalers  int              // in lists named highest, so far
	odd      []*scaling.FieldError
}

func newBuilder(root string, interval time.Duration) *builder {
	return &builder{root: root, interval: interval, told: make(map[string]bool), unread: make(map[string]bool), wrong: make(map[string]bool)}
}

// A place is the position of a scaler in a document.
type place struct {
	at     string // its path, with a dot
	bounds string // the path of the object that has its bounds, with a dot
	within scaling.Bounds
	known  bool // whether the bounds are from the document, not from its reader
}

// given sets the bounds to those of the document.
func (p *place) given(least *int32, most int32) {
	p.within, p.known = scaling.Bounds{Min: or(least, DefaultMinReplicas), Max: most}, true
}

// beside is the rule of a maximum that is missing.
const beside = "must be given beside minReplicas"

// bounded sets the bounds of a place to those of the object at a path, and reports whether the object has any.
func (b *builder) bounded(p *place, at string, least *int32, most int32) bool {
	if most == 0 {
		b.errs.Check(least == nil, at+maximum, most, beside)
		return false
	}
	p.given(least, most)
	return true
}

// composite composes the parts of a scaler. If there is any error, its results must not be used.
func (b *builder) composite(s *Composite, p place) (policy scaling.Policy, algorithms, layout string) {
	var members []scaling.Member
	var kinds, layers []string
	member := func(name, kind string, policy scaling.Policy, foresees bool) {
		members, kinds, layers = append(members, scaling.Member{Name: name, Policy: policy}), append(kinds, kind), append(layers, kind)
		if foresees {
			layers = append(layers, "forecast")
		}
	}
	if s.Realtime != nil {
		member("realtime", "realtime", b.realtime(s.Realtime, p), false)
	}
	if s.Proportional != nil {
		member("proportional", "proportional", b.proportional(s.Proportional, p), s.Proportional.Foresees())
	}
	if s.Saturation != nil {
		member("saturation", "saturation", b.saturation(s.Saturation, p), false)
	}
	if s.Capacity != nil {
		member("capacity", "capacity", b.capacity(s.Capacity, p), s.Capacity.Foresees())
	}
	if s.Static != nil {
		b.errs.Check(s.Static.Replicas >= 0, p.at+"static.replicas", s.Static.Replicas, "must not be negative")
		b.within(s.Static.Replicas, p.at+"static.replicas", p)
		member("static", "static", scaling.New[struct{}](static{s.Static.Replicas, p.within}), false)
	}
	if b.scalers += len(s.Highest); b.scalers > maxList {
		if b.scalers-len(s.Highest) <= maxList {
			b.errs.Check(false, p.at+"highest", b.scalers, fmt.Sprintf("must not be more than %d scalers, with those in them", maxList))
		}
		return nil, "", ""
	}
	loose := s.Stabilization != nil || s.RateLimits != nil
	taken := make(map[string]string)
	for _, m := range members {
		taken[m.Name] = p.at + m.Name
	}
	var within []string // the layouts of the members, and what else their state depends on
	for i := range s.Highest {
		m, in := &s.Highest[i], p
		field := fmt.Sprintf("%shighest[%d]", p.at, i)
		in.at = field + "."
		if b.bounded(&in, in.at, m.MinReplicas, m.MaxReplicas) {
			if !loose {
				within = append(within, "bounds around all")
			}
			loose, in.bounds = true, in.at
			b.add(in.within.Validate("bounds"), in.boundsPaths())
		}
		name := cmp.Or(m.Name, m.Composite.Name())
		first, has := taken[name]
		b.errs.Check(!has, in.at+"name", name, "must be unique: "+first+" has it")
		b.errs.Check(printable.Is(m.Name), in.at+"name", m.Name, printable.Rule)
		taken[name] = field
		policy, _, inner := b.composite(&m.Composite, in)
		member(name, "highest", policy, false)
		within = append(within, fmt.Sprintf("%q %s", name, inner))
	}
	if len(within) > 0 {
		slices.Sort(within)
		h := fnv.New32a()
		_, _ = fmt.Fprintf(h, "%q", within) // a hash never fails
		layers = append(layers, fmt.Sprintf("%08x", h.Sum32()))
	}
	var timetable cronscale.Scaler
	if s.Cron != nil {
		timetable = b.cron(s.Cron, p)
		kinds, layers = append(kinds, "cron"), append(layers, "cron")
	}
	at, rule := strings.TrimSuffix(p.at, "."), "must have at least one of realtime, proportional, saturation, capacity, static and cron"
	if s.Highest != nil {
		at, rule = p.at+"highest", "must be at least one"
	}
	b.errs.Check(len(kinds) > 0, at, 0, rule)
	stabilization, limits := b.around(s.Stabilization, s.RateLimits, p.at)
	if b.errs.any {
		return nil, "", ""
	}
	policy, err := compose(members, timetable, s.Cron != nil, p.within)
	if err == nil && s.Stabilization != nil {
		policy, err = scaling.Stabilized(policy, stabilization)
		layers = append(layers, "stabilization")
	}
	if err == nil && s.RateLimits != nil {
		policy, err = scaling.RateLimited(policy, limits)
		layers = append(layers, "rateLimits")
	}
	if err == nil && loose {
		policy, err = scaling.Bounded(policy, p.within)
	}
	b.errs.Add(err)
	return policy, strings.Join(slices.Compact(kinds), "+"), strings.Join(slices.Compact(layers), "+")
}

// compose returns the policy that asks for the highest count of members, with the timetable, if there is one, as the floor.
func compose(members []scaling.Member, timetable cronscale.Scaler, timed bool, within scaling.Bounds) (scaling.Policy, error) {
	var policy scaling.Policy
	var err error
	switch len(members) {
	case 0:
		return scaling.New(timetable), nil
	case 1:
		policy = members[0].Policy
	default:
		policy, err = scaling.Highest(members...)
	}
	if err == nil && timed {
		policy, err = scaling.Floor(policy, timetable, within)
	}
	return policy, err
}

// Name returns the name of a scaler that was given none: its algorithm and profile, for example realtime/kaito, or its
// algorithms, for example realtime+cron.
func (c *Composite) Name() string {
	var kinds []string
	var profile string
	add := func(is bool, kind, of string) {
		if is {
			kinds, profile = append(kinds, kind), of
		}
	}
	if s := c.Realtime; s != nil {
		add(true, "realtime", "/"+string(s.profile()))
	}
	if s := c.Proportional; s != nil {
		add(true, "proportional", "/"+string(s.profile()))
	}
	if s := c.Saturation; s != nil {
		add(true, "saturation", "/"+string(s.profile()))
	}
	add(c.Capacity != nil, "capacity", "")
	add(c.Static != nil, "static", "")
	add(len(c.Highest) > 0, "highest", "")
	add(c.Cron != nil, "cron", "")
	if len(kinds) == 1 {
		return kinds[0] + profile
	}
	return strings.Join(kinds, "+")
}

// use records a metric that a scaler reads; ok says whether its source is valid. If several scalers read one metric, its Fill
// is the highest of theirs.
func (b *builder) use(m Metric, ok bool) {
	b.wrong[m.Field] = !ok
	for i := range b.metrics {
		if old := &b.metrics[i]; old.Name == m.Name {
			b.errs.Check(same(old.Source, m.Source), m.Field, m.Name, "must be read as "+old.Field+" reads it, which has the same name")
			old.Fill = max(old.Fill, m.Fill)
			return
		}
	}
	b.metrics = append(b.metrics, m)
}

// decimal reads a number.
func (b *builder) decimal(d Decimal, path string) float64 {
	f, err := d.Float()
	b.unread[path] = err != nil
	b.errs.Check(err == nil, path, d.String(), decimalRule)
	return f
}

// setDecimal reads a number, if it is given. One that cannot be read leaves what there was, so that no rule is broken by it.
func (b *builder) setDecimal(to *float64, given *Decimal, path string) {
	if given == nil {
		return
	}
	if f := b.decimal(*given, path); !b.unread[path] {
		*to = f
	}
}

// choose assigns the element of all that has this name.
func choose[T fmt.Stringer](b *builder, to *T, name string, all []T, path string) {
	if name == "" {
		return
	}
	i := slices.IndexFunc(all, func(v T) bool { return v.String() == name })
	b.unread[path] = i < 0
	b.errs.Check(i >= 0, path, name, "must be "+oneOf(all))
	if i >= 0 {
		*to = all[i]
	}
}

// oneOf returns "a, b or c".
func oneOf[T any](all []T) string { return listed(all, " or ") }

// listed joins all with commas, and with a word before the last.
func listed[T any](all []T, word string) string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = fmt.Sprint(v)
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + word + names[last]
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
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

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// unbounded returns the bounds with which documents without bounds are checked.
func unbounded() scaling.Bounds { return scaling.Bounds{Max: math.MaxInt32} }
