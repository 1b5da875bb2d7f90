package build

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// maxWindow is the most intervals that a window of the proportional scaler may have: what is in it is stored, and an
// annotation has room for so much.
const maxWindow = 600

// A Plan is what carries a spec out.
type Plan struct {
	// Policy decides. It has a fresh state.
	Policy scaling.Policy
	// Kinds names the algorithms of Policy, as realtime+cron.
	Kinds string
	// Scrape says what is read of the pods. It has no metrics if the clock alone decides: then nothing is to be read.
	// Its credentials are to be filled in from what the spec's Scrape refers to.
	Scrape scrape.Config
	// Port is where the pods are asked, if they have a named port for it.
	Port k8s.Port
	// Grouping says which pods make a replica.
	Grouping k8s.Grouping
	// Bounds are the fewest and the most replicas.
	Bounds scaling.Bounds
	// Interval is how often to decide.
	Interval time.Duration
	DryRun   bool
}

// Scrapes reports whether there is anything to read of the pods.
func (p *Plan) Scrapes() bool { return len(p.Scrape.Metrics) > 0 }

// Spec builds the plan of a spec, or reports every field that is wrong.
func Spec(spec *v1alpha1.LLMAutoScalerSpec) (Plan, error) {
	b := builder{spec: spec, told: make(map[string]bool), unread: make(map[string]bool)}
	plan := b.plan()
	if err := b.errs.Err(); err != nil {
		return Plan{}, err
	}
	return plan, nil
}

// Target returns the target of an object.
func Target(las *v1alpha1.LLMAutoScaler) k8s.Target {
	ref := las.Spec.ScaleTargetRef
	return k8s.Target{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: las.Namespace, Name: ref.Name}
}

// A builder gathers what is wrong while it builds.
type builder struct {
	spec    *v1alpha1.LLMAutoScalerSpec
	errs    scaling.FieldErrors
	metrics []scrape.Metric
	paths   []string        // of each metric's source
	told    map[string]bool // what was reported, by path and rule
	unread  map[string]bool // paths of numbers that are none
}

func (b *builder) plan() Plan {
	s := b.spec
	p := Plan{
		Bounds:   scaling.Bounds{Min: or(s.MinReplicas, v1alpha1.DefaultMinReplicas), Max: s.MaxReplicas},
		Interval: seconds(or(s.IntervalSeconds, v1alpha1.DefaultIntervalSeconds)),
		DryRun:   s.DryRun,
	}
	b.errs.Check(p.Interval >= time.Second && p.Interval <= time.Hour, "spec.intervalSeconds", int(p.Interval.Seconds()), "must be between 1 and 3600")
	b.target(s.ScaleTargetRef)
	switch s.Grouping {
	case "", "Pod":
	case "LeaderWorkerSet":
		p.Grouping = k8s.LeaderWorkerSet()
	case "KaitoWorkspace":
		p.Grouping = k8s.KaitoWorkspace()
	default:
		b.errs.Check(false, "spec.grouping", s.Grouping, "must be Pod, LeaderWorkerSet or KaitoWorkspace")
	}
	p.Policy, p.Kinds = b.policy(p)
	p.Scrape = scrape.Config{Metrics: b.metrics, Interval: p.Interval}
	p.Port = b.scrape(&p.Scrape)
	return p
}

// target checks the reference. The namespace is the object's own, which the spec does not say.
func (b *builder) target(ref v1alpha1.ScaleTargetReference) {
	t := k8s.Target{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: "own", Name: ref.Name}
	b.errs.Add(t.Validate("spec.scaleTargetRef"))
}

// policy composes what the spec has. It returns nothing if there is anything wrong.
func (b *builder) policy(p Plan) (scaling.Policy, string) {
	s := b.spec.Scaler
	b.add(p.Bounds.Validate("bounds"), boundsPaths())
	b.errs.Check(s.Realtime != nil || s.Proportional != nil || s.Cron != nil, "spec.scaler", 0, "must have at least one of realtime, proportional and cron")
	var members []scaling.Member
	kinds := ""
	member := func(name string, policy scaling.Policy) {
		members = append(members, scaling.Member{Name: name, Policy: policy})
		kinds = join(kinds, name)
	}
	if s.Realtime != nil {
		member("realtime", b.realtime(s.Realtime, p))
	}
	if s.Proportional != nil {
		member("proportional", b.proportional(s.Proportional, p))
	}
	var timetable cronscale.Scaler
	if s.Cron != nil {
		timetable = b.cron(s.Cron, p)
		kinds = join(kinds, "cron")
	}
	if b.errs.Err() != nil {
		return nil, ""
	}
	var policy scaling.Policy
	var err error
	switch len(members) {
	case 0:
		return scaling.New(timetable), kinds
	case 1:
		policy = members[0].Policy
	default:
		policy, err = scaling.Highest(members...)
	}
	if err == nil && s.Cron != nil {
		policy, err = scaling.Floor(policy, timetable, p.Bounds)
	}
	b.errs.Add(err)
	return policy, kinds
}

// scrape checks what the spec says of how pods are asked.
func (b *builder) scrape(c *scrape.Config) k8s.Port {
	if len(c.Metrics) == 0 || b.errs.Err() != nil {
		return k8s.Port{}
	}
	var port k8s.Port
	if s := b.spec.Scrape; s != nil {
		if s.TLS != nil {
			c.TLS.ServerName, c.TLS.InsecureSkipVerify = s.TLS.ServerName, s.TLS.InsecureSkipVerify
			b.errs.Check(!s.TLS.InsecureSkipVerify || s.TLS.CASecretRef == nil, "spec.scrape.tls.caSecretRef", name(s.TLS.CASecretRef), "must not be given with insecureSkipVerify")
		}
		if s.PortName != "" {
			port = k8s.Port{Port: intstr.FromString(s.PortName), Scheme: c.Metrics[0].Endpoint.Scheme}
			for i, m := range c.Metrics {
				b.errs.Check(m.Endpoint.Scheme == port.Scheme, b.paths[i]+".protocol", m.Endpoint.Scheme, "must be that of every other source, "+port.Scheme+", as spec.scrape.portName is given")
			}
		}
	}
	b.add(c.Validate(), b.scrapePaths())
	return port
}

func name(ref *v1alpha1.SecretKeyReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// use notes a metric that a scaler reads. Two scalers may read one metric; a missing pod then counts as the higher of
// what each would have it count.
func (b *builder) use(m scrape.Metric, path string) {
	for i := range b.metrics {
		if old := &b.metrics[i]; old.Name == m.Name {
			b.errs.Check(same(*old, m), path, m.Name, "must be read as "+b.paths[i]+" reads it, which has the same name")
			old.Fill = max(old.Fill, m.Fill)
			return
		}
	}
	b.metrics, b.paths = append(b.metrics, m), append(b.paths, path)
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "+" + b
}
