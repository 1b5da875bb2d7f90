package proportional_test

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/inferscale/inferscale/internal/vectors"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

type hpaPod struct {
	Metric  *float64
	State   string
	Request *float64
}

func hpaReplicaCount(row json.RawMessage) (outcome, error) {
	var r struct {
		Current   int32
		Tolerance struct{ Up, Down float64 }
		Kind      string
		Resource  string
		Target    float64
		Percent   float64 `json:"target_pct"`
		Usage     float64
		Ready     int32
		Pods      []hpaPod
		Want      int32
		Error     bool `json:"want_error"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	for _, p := range r.Pods {
		if !slices.Contains([]string{"ready", "unready", "pending", "failed", "deleting", "deleted"}, p.State) {
			return differs("state %q", p.State)
		}
	}
	if vectors.Has(row, "want") != nil && !r.Error {
		return differs("no want")
	}
	m := proportional.Metric{Name: "load", Target: r.Target}
	obs := scaling.Observation{SpecReplicas: r.Current, ReadyReplicas: r.Ready}
	fleet := hpaFleet{}
	switch r.Kind {
	case "object", "external":
		m.Measure = proportional.Average // the ratio times the ready pods
		obs.Readings = []scaling.Reading{scaling.Exactly("load", r.Usage)}
	case "objectPerPod", "externalPerPod":
		m.Measure = proportional.Total
		obs.Readings = []scaling.Reading{scaling.Exactly("load", r.Usage)}
	case "pods":
		fleet = countPods(r.Pods, false, false)
	case "utilization":
		m.Target = r.Percent
		fleet = countPods(r.Pods, true, r.Resource == "cpu")
	default:
		return differs("kind %q", r.Kind)
	}
	fill := m.Target
	if r.Kind == "utilization" {
		fill = max(100, m.Target)
	}
	if r.Pods != nil {
		obs.ReadyReplicas = fleet.ready
		obs.Readings = []scaling.Reading{fleet.reading(fill)}
	}
	c := pointwise(m)
	c.Up.Tolerance, c.Down.Tolerance = r.Tolerance.Up, r.Tolerance.Down
	s, err := proportional.New(c)
	if err != nil {
		return met, err
	}
	_, d := s.Decide(proportional.State{}, start, obs)
	switch {
	case m.Measure == proportional.Average && r.Ready <= 0 && d.Verdict == scaling.Unknown:
		return listed(ruleNoneReady)
	case r.Error != (d.Verdict == scaling.Unknown):
		return differs("error %v\n%s", r.Error, d.Explain())
	case r.Error || d.Replicas == r.Want:
		return met, nil
	}
	// What ours must be, by the words of the rule: up by what is known, down by what is possible.
	lower, upper := obs.Readings[0].Lower, obs.Readings[0].Upper
	switch pods := float64(fleet.values + fleet.missing + fleet.notReady); m.Measure {
	case proportional.PerPod:
		lower, upper = lower*pods, upper*max(pods, float64(obs.ReadyReplicas))
	case proportional.Average:
		lower, upper = lower*float64(r.Ready), upper*float64(r.Ready)
	case proportional.Total:
	}
	if ours := plainly(lower, upper, m.Target, r.Current, c.Up.Tolerance, c.Down.Tolerance); ours != d.Replicas {
		return differs("plainly %d, got %s", ours, d.Explain())
	}
	counted := float64(fleet.values)
	if m.Measure == proportional.Average {
		counted = float64(r.Ready)
	}
	theirs := fleet.sum / max(1, counted) / m.Target
	if m.Measure != proportional.PerPod {
		theirs = r.Usage / m.Target
	}
	truncated := theirs
	if m.Measure == proportional.PerPod {
		truncated = math.Trunc(fleet.sum/max(1, counted)) / m.Target
	}
	within := func(q float64) bool { return q >= 1-r.Tolerance.Down && q <= 1+r.Tolerance.Up }
	switch {
	case fleet.notReady > 0 && r.Want < d.Replicas:
		return listed(ruleNotReady)
	case m.Measure == proportional.PerPod && truncates(fleet, m.Target, r.Current, c, r.Want):
		return listed(ruleTruncated)
	case counted != float64(r.Current) && within(truncated) != within(theirs*counted/float64(r.Current)):
		return listed(ruleTolerance)
	case onEdge(theirs, r.Tolerance.Up, r.Tolerance.Down):
		return listed(ruleEdge)
	case fleet.missing+fleet.notReady > 0:
		return listed(ruleInterval)
	}
	return differs("%s", d.Explain())
}

// onEdge reports whether a ratio is at the edge of the tolerance, up to float noise.
func onEdge(ratio, up, down float64) bool {
	return math.Abs(ratio-(1+up)) < 1e-9 || math.Abs(ratio-(1-down)) < 1e-9
}

// truncates reports whether truncating the utilisation to whole percents gives what is wanted.
func truncates(f hpaFleet, target float64, current int32, c proportional.Config, want int32) bool {
	mean := math.Trunc(f.sum / max(1, float64(f.values)))
	load := mean * float64(f.values)
	theirs := current // the tolerance is of the pods that count, there
	if q := mean / target; mean != f.sum/max(1, float64(f.values)) && f.missing+f.notReady == 0 && (q > 1+c.Up.Tolerance || q < 1-c.Down.Tolerance) {
		theirs = scaling.Ceil(load / target)
	}
	return theirs == want || plainly(load, load, target, current, c.Up.Tolerance, c.Down.Tolerance) == want
}

// plainly is the rule in its plainest words.
func plainly(lower, upper, target float64, spec int32, up, down float64) int32 {
	fair := target * float64(spec)
	switch {
	case lower > fair*(1+up)*(1+1e-9):
		return max(spec, scaling.Ceil(lower/target))
	case upper < fair*(1-down)*(1-1e-9):
		return min(spec, scaling.Ceil(upper/target))
	}
	return spec
}

// hpaFleet is what pods come to.
type hpaFleet struct {
	values, missing, notReady, ready int32
	sum                              float64 // of the values; for utilisations their mean times values
}

// countPods reads pods: those that are deleted or failed do not exist, pending ones are not ready, and of ready ones
// those without a value are missing. Of CPU, pods that are not ready have no value that counts; of everything else
// they have.
func countPods(pods []hpaPod, utilization, cpu bool) (f hpaFleet) {
	requests := 0.0
	for _, p := range pods {
		switch {
		case p.State == "failed" || p.State == "deleting" || p.State == "deleted":
		case utilization && (p.Request == nil || *p.Request == 0):
			return hpaFleet{} // an error there, no sample here
		case p.State == "pending" || p.State == "unready" && cpu:
			f.notReady++
		case p.Metric == nil:
			f.missing++
			f.ready++
		default:
			f.values++
			f.ready++
			f.sum += *p.Metric
			if utilization {
				requests += *p.Request
			}
		}
	}
	if utilization && f.values > 0 {
		f.sum = 100 * f.sum / requests * float64(f.values)
	}
	return f
}

func (f hpaFleet) reading(fill float64) scaling.Reading {
	gone := float64(f.missing + f.notReady)
	pods := float64(f.values) + gone
	return scaling.Reading{
		Metric: "load", Lower: f.sum / pods, Upper: (f.sum + gone*fill) / pods,
		Values: f.values, NotReady: f.notReady, Failed: f.missing,
	}
}
