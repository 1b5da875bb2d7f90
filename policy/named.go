package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// kaitoHigh and kaitoLow are the thresholds of realtime/kaito if a document names no metrics. Their metric is
// realtime.DefaultMetric, the requests waiting in a replica. At kaitoHigh there is a queue that one replica does not work off
// at once; at kaitoLow there is almost none.
const (
	kaitoHigh = 5
	kaitoLow  = 1
)

// Names returns the names that Named accepts, except static/N: each algorithm with each of its profiles.
func Names() []string {
	return []string{
		"proportional/hpa", "proportional/kpa", "proportional/kthena", "proportional/llm",
		"realtime/kaito", "realtime/responsive", "saturation/default", "saturation/wva",
	}
}

// Named returns a policy that is ready for use: one of Names, with its default metrics, or static/N, which asks for N
// replicas. The old names realtime/seed and saturation/literal are accepted too.
func Named(name string) (Policy, error) {
	kind, profile, _ := strings.Cut(name, "/")
	p := Policy{Name: kind + "/" + renamed(profile)}
	switch n, err := strconv.ParseUint(profile, 10, 31); {
	case err == nil && kind == "static":
		p.Scaler.Static = &StaticScaler{Replicas: int32(n)}
	case !slices.Contains(Names(), p.Name):
		return Policy{}, fmt.Errorf("policy %q: must be one of %s or static/N", name, strings.Join(Names(), ", "))
	case kind == "realtime":
		p.Scaler.Realtime = &RealtimeScaler{Profile: RealtimeProfile(renamed(profile))}
	case kind == "proportional":
		p.Scaler.Proportional = &ProportionalScaler{Profile: ProportionalProfile(profile)}
	default:
		p.Scaler.Saturation = &SaturationScaler{Profile: SaturationProfile(renamed(profile))}
	}
	p.ready()
	return p, nil
}

// ready gives the scalers of a spec and of its shadows their default metrics.
func (s *Spec) ready() {
	s.Scaler.ready()
	s.readyShadows()
}

func (s *Spec) readyShadows() {
	for i := range s.Shadow {
		s.Shadow[i].Scaler.ready()
	}
}

// ready gives scalers without metrics the defaults of their profiles: the requests waiting for realtime/kaito, the requests
// in flight for the others.
func (c *Composite) ready() {
	inFlight := MetricSource{Engine: "VLLM", Signal: "InFlight"}
	if s := c.Realtime; s != nil && s.Metrics == nil {
		m := ThresholdMetric{Threshold: MetricThreshold{High: decimal(kaitoHigh), Low: decimal(kaitoLow)}}
		if s.profile() == ProfileResponsive {
			m = ThresholdMetric{Source: inFlight, Threshold: MetricThreshold{
				High: decimal(realtime.InFlightHigh), Low: decimal(realtime.InFlightLow),
			}}
		}
		s.Metrics = []ThresholdMetric{m}
	}
	if s := c.Proportional; s != nil && s.Metrics == nil {
		s.Metrics = []TargetMetric{{Source: inFlight, Target: decimal(proportional.InFlightTarget)}}
	}
	for i := range c.Highest {
		c.Highest[i].ready()
	}
}

// Warnings returns what is questionable in a valid spec: profiles under their old names, and stable windows with which no replica is ever
// removed. If at is not empty, the paths begin with it, for example with "spec". The warnings about shadows are in their plans.
func (s *Spec) Warnings(at string) []*scaling.FieldError {
	return s.Scaler.warnings(prefix(at)+"scaler.", s.Interval())
}

func (c *Composite) warnings(at string, interval time.Duration) []*scaling.FieldError {
	var all []*scaling.FieldError
	old := func(field, profile string) {
		if now := renamed(profile); now != profile {
			all = append(all, &scaling.FieldError{Field: at + field, Value: profile, Rule: "is called " + now + " now"})
		}
	}
	if c.Realtime != nil {
		old("realtime.profile", string(c.Realtime.Profile))
	}
	if c.Saturation != nil {
		old("saturation.profile", string(c.Saturation.Profile))
	}
	if c.Proportional != nil {
		window := newBuilder("", interval).proportionalConfig(c.Proportional, place{}).StableWindow
		if window > 0 && 2*window <= interval { // the time between two decisions is mostly somewhat longer than the interval
			all = append(all, &scaling.FieldError{
				Field: at + "proportional.stableWindowSeconds", Value: int(window.Seconds()),
				Rule: fmt.Sprintf("is not more than half of the interval of %s: where decisions are further apart than two windows, no replica is ever removed", interval),
			})
		}
	}
	for i := range c.Highest {
		all = append(all, c.Highest[i].warnings(fmt.Sprintf("%shighest[%d].", at, i), interval)...)
	}
	return all
}
