package scalingtest

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// A Target is one of the targets of a group.
type Target struct {
	Name string
	// Bounds are the target's own bounds, with the meaning of Options.Bounds. The zero value is unset.
	Bounds scaling.Bounds
}

// A TargetTick is the part of a Tick for one target of a group.
type TargetTick struct {
	// Spec, if set, is the count to which someone else scales the target before the decision.
	Spec Count
	// NotReady is how many of the requested replicas are not ready and cannot be scraped. If it is negative, more than
	// requested are ready.
	NotReady int32
	// Missing says that the target does not exist. Its counts are observed as 0, and a write to it fails.
	Missing bool
	// Refuse says that a write to this target fails.
	Refuse bool
	// Pods are the values of replicas: a row with a value for each of the tick's readings, NaN for none. The rows repeat up
	// to the ready count. Without rows, and for Loads, each replica has the value of the reading if that is one exact value.
	Pods [][]float64
}

// mostPods limits the replicas of a target that can be scraped, so that wild counts do not fill the memory.
const mostPods = 100

// RunGroup is Run for a scaling.Group with the targets of the options. Options without targets mean one target, without a
// name, within Bounds. With several targets, the properties check the sum of the targets' counts and decisions;
// WithinBounds, NeverPanics and Explained check each target too.
func RunGroup(t *testing.T, newGroup func() scaling.Group, opts Options) {
	t.Helper()
	whole := opts.ofGroup()
	whole.require(t)
	RunGroupDrawn(t, func(*rapid.T) (func() scaling.Group, Options) { return newGroup, opts })
}

// RunGroupDrawn is RunGroup for a group with a configuration that is drawn too, as RunDrawn is for Run.
func RunGroupDrawn(t *testing.T, draw func(t *rapid.T) (newGroup func() scaling.Group, opts Options)) {
	t.Helper()
	runDrawn(t, func(t *rapid.T) (func() scaling.Group, Options) {
		newGroup, opts := draw(t)
		return newGroup, opts.ofGroup()
	})
}

// ReplayGroup is Replay for a group.
func ReplayGroup(tb testing.TB, newGroup func() scaling.Group, opts Options, property string, e Episode) {
	tb.Helper()
	replay(tb, newGroup, opts.ofGroup(), property, e)
}

func replay(tb testing.TB, newGroup func() scaling.Group, opts Options, property string, e Episode) {
	tb.Helper()
	p := named(property)
	require.NotNil(tb, p, "there is no property %s", property)
	o, err := opts.withDefaults()
	require.NoError(tb, err, "scalingtest.Options")
	require.True(tb, p.needs == nil || p.needs(&o), "the options do not have what %s needs", property)
	if f := p.check(&subject{newGroup, o}, &e); f != nil {
		tb.Fatalf("%s: %s\n%s", p.name, f.what, f.tables)
	}
}

// ofGroup returns the options for a group: they have at least one target, which distinguishes a group from a policy.
func (o *Options) ofGroup() Options {
	full := *o
	if len(o.Targets) == 0 {
		full.Targets = []Target{{Bounds: o.Bounds}}
	}
	return full
}

// target returns the part of a tick for the target at an index.
func (o *Options) target(tick *Tick, place int) TargetTick {
	switch {
	case len(o.Targets) == 0:
		return TargetTick{Spec: tick.Spec, NotReady: tick.NotReady, Refuse: tick.Refuse}
	case place >= len(tick.Targets):
		return TargetTick{Refuse: tick.Refuse}
	}
	t := tick.Targets[place]
	t.Refuse = t.Refuse || t.Missing || tick.Refuse
	return t
}

// whole returns the bounds of the sum of all targets.
func (o *Options) whole() (sum scaling.Bounds) {
	if o.bounded() {
		return o.Bounds
	}
	for _, t := range o.Targets {
		if t.Bounds == (scaling.Bounds{}) {
			return t.Bounds
		}
		sum.Min, sum.Max = scaling.Plus(sum.Min, t.Bounds.Min), scaling.Plus(sum.Max, t.Bounds.Max)
	}
	return sum
}

// observe returns the observation of a tick. Each call makes another copy.
func (p *player) observe(i int, tick *Tick) (obs scaling.GroupObservation) {
	o := &p.options
	plain := p.episode.readings(tick, sum(p.spec))
	obs.Readings = p.episode.changed(i, plain)
	if p.readings != nil {
		obs.Readings = p.readings(i, obs.Readings)
	}
	// One element more than needed: what a policy appends to its copy of the slice is written there, and found.
	obs.Readings = append(make([]scaling.Reading, 0, len(obs.Readings)+1), permuted(obs.Readings, p.order)...)
	obs.Histograms = permuted(copied(p.histograms), p.order)
	for k := range p.spec {
		t := o.target(tick, k)
		if t.Missing {
			obs.Targets = append(obs.Targets, scaling.TargetObservation{Name: o.Targets[k].Name, Missing: true})
			continue
		}
		seen := scaling.TargetObservation{SpecReplicas: p.spec[k], ReadyReplicas: p.ready(k, t.NotReady)}
		seen.PendingReplicas = int32(min(math.MaxInt32, max(0, int64(seen.SpecReplicas)-int64(seen.ReadyReplicas))))
		if len(o.Targets) > 0 {
			seen.Name = o.Targets[k].Name
			for n := range min(seen.ReadyReplicas, mostPods) {
				values := p.episode.values(i, plain, t.Pods, int(n))
				seen.Pods = append(seen.Pods, scaling.PodObservation{
					Name: seen.Name + "-" + strconv.Itoa(int(n)), Values: permuted(values, p.order),
				})
			}
			seen.Pods = permuted(seen.Pods, p.order)
		}
		obs.Targets = append(obs.Targets, seen)
	}
	obs.Targets = permuted(obs.Targets, p.order)
	return obs
}

// values returns the values of the n-th pod of a target for each reading, without those that are gone.
func (e *Episode) values(i int, readings []scaling.Reading, rows [][]float64, n int) (values []float64) {
	for k, r := range readings {
		v := math.NaN()
		switch own := len(readings) - len(e.Loads); {
		case len(rows) == 0 || k >= own:
			if r.Known() && r.Lower == r.Upper {
				v = r.Lower
			}
		case k < len(rows[n%len(rows)]):
			v = rows[n%len(rows)][k]
		}
		gone := false
		for _, c := range e.Changes {
			if c.Tick != i || c.Metric != r.Metric {
				continue
			}
			gone = gone || c.removes()
			if v >= 0 {
				v += max(0, c.Lower)
			}
			if n < int(c.Pods) || c.Gone {
				v = math.NaN()
			}
		}
		if !gone {
			values = append(values, v)
		}
	}
	return values
}

// permuted returns a copy in another order, in which order says where each element comes from; nil keeps the order.
func permuted[T any](all []T, order func(n, place int) int) []T {
	if order == nil || len(all) == 0 {
		return all
	}
	other := make([]T, len(all))
	for i := range other {
		other[i] = all[order(len(all), i)]
	}
	return other
}

// sum adds counts, limited to the range of an int32.
func sum(counts []int32) int32 {
	n := int64(0)
	for _, c := range counts {
		n += int64(c)
	}
	return int32(max(math.MinInt32, min(n, math.MaxInt32)))
}

// sameTarget reports whether two observations of a target are equal to the last bit.
func sameTarget(a, b scaling.TargetObservation) bool {
	return a.Name == b.Name && a.Missing == b.Missing && a.SpecReplicas == b.SpecReplicas && a.ReadyReplicas == b.ReadyReplicas &&
		a.PendingReplicas == b.PendingReplicas && slices.EqualFunc(a.Pods, b.Pods, func(a, b scaling.PodObservation) bool {
		return a.Name == b.Name && slices.EqualFunc(a.Values, b.Values, sameBits)
	})
}

// targets draws the part of a tick for each target of a group. The values of its replicas are around the same thresholds as
// the readings.
func (d *drawer) targets(readings []scaling.Reading) (all []TargetTick) {
	for _, target := range d.o.Targets {
		var t TargetTick
		if d.life.others && d.oneIn(20, "others") {
			t.Spec = CountOf(d.spec("scaled to", target.Bounds))
		}
		if d.oneIn(8, "some not ready") {
			t.NotReady = rapid.SampledFrom([]int32{1, 2, -1}).Draw(d.T, "not ready")
		}
		t.Refuse = d.life.refusals && d.oneIn(6, "refused")
		t.Missing = d.life.others && d.oneIn(40, "missing")
		if d.life.wild && d.oneIn(6, "wild counts") {
			t.Spec, t.NotReady = CountOf(rapid.Int32().Draw(d.T, "any spec")), rapid.Int32().Draw(d.T, "any ready")
		}
		for range rapid.IntRange(0, 2).Draw(d.T, "rows") {
			row := make([]float64, 0, len(readings))
			for _, r := range readings {
				row = append(row, d.pod(r.Metric))
			}
			t.Pods = append(t.Pods, row)
		}
		all = append(all, t)
	}
	return all
}

// pod draws a replica's value of a metric.
func (d *drawer) pod(metric string) float64 {
	i := slices.IndexFunc(d.o.Metrics, func(m Metric) bool { return m.Name == metric })
	mood := d.mood
	if d.oneIn(8, "whim") {
		mood = rapid.IntRange(moodHigh, moodAny).Draw(d.T, "kind")
	}
	switch {
	case i < 0 && !d.life.noData:
		return 0
	case d.life.noData || d.life.odd && d.oneIn(10, "says nothing"):
		return rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1}).Draw(d.T, "nothing")
	case d.life.within:
		mood = moodBetween
	}
	var r scaling.Reading
	d.value(&r, d.o.Metrics[i], mood)
	return r.Lower
}
