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

// A Target is one of those that a group decides for.
type Target struct {
	Name string
	// Bounds are the target's own: what they are to a policy in Options. The zero value is unset.
	Bounds scaling.Bounds
}

// A TargetTick is what a Tick has of one target of a group.
type TargetTick struct {
	// Spec, if set, is what someone else scales the target to before the decision.
	Spec Count
	// NotReady is how many of the replicas that are asked for are not ready, and cannot be asked; negative: more are
	// ready than that.
	NotReady int32
	// Missing says that the target does not exist. Its counts are observed as 0, and a write of it fails.
	Missing bool
	// Refuse says that a write of this target fails.
	Refuse bool
	// Pods are what replicas say: rows of a value for each of the tick's readings, NaN for none, which repeat up to
	// the ready count. Without a row, and of Loads, each replica says what the reading is, where it is one exact value.
	Pods [][]float64
}

// mostPods is how many replicas of a target can be asked, so that wild counts do not fill the memory.
const mostPods = 100

// RunGroup is Run for a scaling.Group, of the targets that the options name. Options that name none mean one target,
// without a name, within Bounds. With several targets, what the properties say of counts and of decisions that act is
// said of the sum of the targets; WithinBounds, NeverPanics and Explained look at each of them too.
func RunGroup(t *testing.T, newGroup func() scaling.Group, opts Options) {
	t.Helper()
	RunGroupDrawn(t, func(*rapid.T) (func() scaling.Group, Options) { return newGroup, opts })
}

// RunGroupDrawn is RunGroup for a group of which the configuration is drawn, too, as RunDrawn is Run.
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

// ofGroup returns the options for a group: with a target at least, by which it is told from a policy.
func (o *Options) ofGroup() Options {
	full := *o
	if len(o.Targets) == 0 {
		full.Targets = []Target{{Bounds: o.Bounds}}
	}
	return full
}

// target returns what a tick has of the target at a place.
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

// observe returns what is observed at a tick, and what of it the properties compare. Each call makes another copy.
func (p *player) observe(i int, tick *Tick) (obs scaling.GroupObservation) {
	o := &p.options
	plain := p.episode.readings(tick, sum(p.spec))
	obs.Readings = p.episode.changed(i, plain)
	if p.readings != nil {
		obs.Readings = p.readings(i, obs.Readings)
	}
	// One place more than needed: what a policy appends to its copy of the slice lands there, and is found.
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

// values returns what the n-th pod of a target says of each reading, those that are gone left out.
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
			gone = gone || c.Gone
			if v >= 0 {
				v += max(0, c.Lower)
			}
			if n < int(c.Pods) {
				v = math.NaN()
			}
		}
		if !gone {
			values = append(values, v)
		}
	}
	return values
}

// permuted returns a copy in another order, which says what comes from where; nil leaves all where it is.
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

// sum adds counts up, as far as an int32 goes.
func sum(counts []int32) int32 {
	n := int64(0)
	for _, c := range counts {
		n += int64(c)
	}
	return int32(max(math.MinInt32, min(n, math.MaxInt32)))
}

// sameTarget reports whether two observations of a target are the same to the last bit.
func sameTarget(a, b scaling.TargetObservation) bool {
	return a.Name == b.Name && a.Missing == b.Missing && a.SpecReplicas == b.SpecReplicas && a.ReadyReplicas == b.ReadyReplicas &&
		a.PendingReplicas == b.PendingReplicas && slices.EqualFunc(a.Pods, b.Pods, func(a, b scaling.PodObservation) bool {
		return a.Name == b.Name && slices.EqualFunc(a.Values, b.Values, sameBits)
	})
}

// targets draws what a tick has of each target of a group: what its replicas say is around the same thresholds as the
// readings are.
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

// pod draws what a replica says of a metric.
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
