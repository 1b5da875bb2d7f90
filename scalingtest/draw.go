package scalingtest

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// A life says which events may happen in a random episode.
type life struct {
	back     bool // the clock steps back
	gaps     bool // ticks that come early or late
	fine     bool // ticks at parts of a second
	others   bool // someone else scales the target
	refusals bool
	restarts bool
	odd      bool // readings that are not numbers, that are missing, or that repeat a metric
	twice    bool // several readings of one metric
	wild     bool // any number at all, also for counts and times
	noData   bool // no reading has a usable value
	within   bool // readings are within DeadZone
	inside   bool // nobody scales the target out of its bounds
}

// The moods of a fleet: where its readings are.
const (
	moodHigh = iota
	moodLow
	moodBetween
	moodAny
	moodOdd
	moodMissing
)

// A drawer draws an episode.
type drawer struct {
	*rapid.T
	o    *Options
	life life
	now  time.Time
	part time.Duration // part of a second by which the last tick was late
	mood int
}

// drawEpisode draws an episode with the events of a life.
func drawEpisode(t *rapid.T, o *Options, l life) Episode {
	d := &drawer{T: t, o: o, life: l, now: o.Start, mood: moodBetween}
	e := d.begun()
	// Each tick has its own flag whether it is the last one, so that any of the others can be left out to make the episode
	// smaller.
	last := false
	for left := o.Ticks; left > 0 && !last; {
		tick := rapid.Custom(func(t *rapid.T) Tick {
			d.T = t
			last = d.oneIn(max(1, o.Ticks/2), "last")
			return d.tick(left, len(e.Ticks) == 0)
		}).Draw(t, "tick")
		left -= max(1, tick.Times)
		e.Ticks = append(e.Ticks, tick)
	}
	return e
}

func (d *drawer) oneIn(n int, label string) bool {
	return rapid.IntRange(0, n-1).Draw(d.T, label) == n-1
}

// begun draws an episode without a tick.
func (d *drawer) begun() (e Episode) {
	count := func(b scaling.Bounds) int32 {
		n := d.spec("spec", b)
		if d.o.Replicas > 0 {
			n = d.o.Replicas
		}
		return n
	}
	for _, t := range d.o.Targets {
		e.Specs = append(e.Specs, count(t.Bounds))
	}
	if e.Specs == nil {
		e.Spec = count(d.o.Bounds)
	}
	return e
}

// spec draws a count, for the start or for someone else to scale to.
func (d *drawer) spec(label string, b scaling.Bounds) int32 {
	switch {
	case b == (scaling.Bounds{}):
		return rapid.Int32Range(1, 12).Draw(d.T, label)
	case d.life.inside || label == "spec":
		return rapid.Int32Range(b.Min, min(b.Max, scaling.Plus(b.Min, 30))).Draw(d.T, label)
	}
	return rapid.Int32Range(max(0, scaling.Plus(b.Min, -3)), min(scaling.Plus(b.Min, 40), scaling.Plus(b.Max, 5))).Draw(d.T, label)
}

// tick draws the next tick, to be repeated at most so many times.
func (d *drawer) tick(left int, first bool) (t Tick) {
	if d.oneIn(6, "mood swing") {
		d.mood = rapid.IntRange(moodHigh, moodBetween).Draw(d.T, "mood")
	}
	t.After = d.after(first)
	d.now = d.now.Add(t.After)
	if t.After > 0 && d.oneIn(3, "streak") {
		t.Times = rapid.IntRange(1, min(left, 12)).Draw(d.T, "times")
	}
	policy := len(d.o.Targets) == 0
	if policy && d.life.others && d.oneIn(20, "others") {
		t.Spec = CountOf(d.spec("scaled to", d.o.Bounds))
	}
	if policy {
		t.NotReady = rapid.SampledFrom([]int32{0, 0, 0, 0, 1, 2, -1}).Draw(d.T, "not ready")
	}
	t.Refuse = d.life.refusals && d.oneIn(4, "refused")
	t.Restart = d.life.restarts && d.oneIn(8, "restarted")
	if policy && d.life.wild && d.oneIn(6, "wild counts") {
		t.Spec = CountOf(rapid.Int32().Draw(d.T, "any spec"))
		t.NotReady = rapid.Int32().Draw(d.T, "any ready")
	}
	t.Readings = d.readings()
	t.Counted = d.counted()
	t.Targets = d.targets(t.Readings)
	d.now = d.now.Add(t.After * time.Duration(max(0, t.Times-1)))
	return t
}

// after draws the time to the next tick.
func (d *drawer) after(first bool) time.Duration {
	t := d.pace(first)
	if d.life.fine {
		before := d.part
		d.part = rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second / 2, time.Second - time.Millisecond}).Draw(d.T, "late")
		t += d.part - before
	}
	return t
}

// pace draws the time to the next tick without the part of a second, so that boundaries are met exactly if the period is in
// whole seconds.
func (d *drawer) pace(first bool) time.Duration {
	period := d.o.Period
	unit := time.Second
	if period%time.Second != 0 {
		unit = time.Millisecond
	}
	if first {
		return 0
	}
	most := max(1, int(5*period/unit))
	switch rapid.IntRange(0, 19).Draw(d.T, "clock") {
	case 19:
		if d.life.back {
			return -time.Duration(rapid.IntRange(1, 2*most).Draw(d.T, "back")) * unit
		}
	case 18:
		if d.life.gaps {
			return time.Duration(rapid.IntRange(0, most).Draw(d.T, "gap")) * unit
		}
	case 17:
		if d.life.wild {
			return time.Duration(rapid.Int64().Draw(d.T, "any time"))
		}
	}
	return period
}

// readings draws a reading for each metric.
func (d *drawer) readings() (all []scaling.Reading) {
	for _, m := range d.o.Metrics {
		if r, ok := d.reading(m); ok {
			all = append(all, r)
			if (d.life.twice && len(d.o.Targets) == 0 || d.life.wild) && d.oneIn(20, "twice") {
				if again, ok := d.reading(m); ok {
					all = append(all, again)
				}
			}
		}
	}
	if d.life.within {
		return all
	}
	if d.oneIn(10, "unknown metric") {
		all = append(all, scaling.Exactly("of-no-interest", float64(rapid.IntRange(0, 1000).Draw(d.T, "value"))))
	}
	return all
}

// reading draws a reading of a metric, or none.
func (d *drawer) reading(m Metric) (r scaling.Reading, ok bool) {
	mood := d.mood
	if d.oneIn(8, "whim") {
		mood = rapid.IntRange(moodHigh, moodMissing).Draw(d.T, "kind")
	}
	if d.life.noData {
		mood = rapid.IntRange(moodOdd, moodMissing).Draw(d.T, "nothing")
	}
	if !d.life.odd && !d.life.noData && mood >= moodOdd {
		mood = moodAny
	}
	r = scaling.Exactly(m.Name, 0)
	if d.life.within {
		d.inZone(&r, m)
	} else {
		d.value(&r, m, mood)
	}
	if d.oneIn(6, "sampled earlier") {
		r.At = d.now.Add(-time.Duration(rapid.IntRange(0, 16).Draw(d.T, "age")) * d.o.Period / 4)
	}
	return r, mood != moodMissing || d.life.within
}

// moody draws a reading of each metric in the present mood.
func (d *drawer) moody() (all []scaling.Reading) {
	for _, m := range d.o.Metrics {
		r := scaling.Exactly(m.Name, 0)
		d.value(&r, m, d.mood)
		all = append(all, r)
	}
	return all
}

// inZone draws a reading that is entirely within a range.
func (d *drawer) inZone(r *scaling.Reading, m Metric) {
	share := []float64{0, 1, 0.5, rapid.Float64Range(0, 1).Draw(d.T, "share")}
	at := func(label string) float64 {
		x := rapid.SampledFrom(share).Draw(d.T, label)
		return min(m.High, max(m.Low, m.Low+x*(m.High-m.Low)))
	}
	a, b := at("lower"), at("upper")
	r.Lower, r.Upper = min(a, b), max(a, b)
}

// value draws the value of a reading in a mood.
func (d *drawer) value(r *scaling.Reading, m Metric, mood int) {
	unit := max((m.High-m.Low)/4, m.High/8)
	if unit == 0 {
		unit = 1
	}
	step := float64(rapid.SampledFrom([]int{1, 0, 1, 2, 4, 12}).Draw(d.T, "step"))
	switch mood {
	case moodHigh: // from exactly High to far above
		r.Lower = m.High + step*unit
		r.Upper = r.Lower
	case moodLow:
		r.Lower = max(0, m.Low-step*unit)
		r.Upper = r.Lower
	case moodBetween:
		d.inZone(r, m)
	case moodAny:
		r.Lower = float64(rapid.IntRange(0, 12).Draw(d.T, "from")) * unit
		r.Upper = r.Lower + float64(rapid.IntRange(0, 12).Draw(d.T, "width"))*unit
		r.NotReady = rapid.Int32Range(0, 2).Draw(d.T, "booting")
		r.Failed = rapid.Int32Range(0, 2).Draw(d.T, "failed")
		r.Stuck = rapid.Int32Range(0, r.NotReady).Draw(d.T, "stuck")
		if d.oneIn(8, "no upper limit") {
			r.Upper = math.Inf(1)
		}
	case moodOdd:
		d.odd(r)
	}
	if mood != moodOdd && d.oneIn(4, "pods") {
		r.Values = rapid.Int32Range(1, 8).Draw(d.T, "values")
	}
	if d.life.wild && d.oneIn(6, "wild reading") {
		*r = scaling.Reading{
			Metric: r.Metric, Lower: drawFloat(d.T, "any lower"), Upper: drawFloat(d.T, "any upper"),
			Values: rapid.Int32().Draw(d.T, "any values"), NotReady: rapid.Int32().Draw(d.T, "any not ready"),
			Failed: rapid.Int32().Draw(d.T, "any failed"), Reused: rapid.Int32().Draw(d.T, "any reused"),
			Stuck: rapid.Int32().Draw(d.T, "any stuck"),
		}
		if d.oneIn(2, "dated") {
			r.At = time.Unix(rapid.Int64Range(-1e11, 1e11).Draw(d.T, "any date"), 0).UTC()
		}
	}
}

// odd draws a reading without a usable value: not a number, negative, upside down, or without a value. If there may be data
// beside it, it also draws huge numbers.
func (d *drawer) odd(r *scaling.Reading) {
	most := 6
	if d.life.noData {
		most = 5
	}
	r.Values = 1
	switch rapid.IntRange(0, most).Draw(d.T, "oddity") {
	case 0:
		r.Values, r.Lower, r.Upper = 0, float64(rapid.IntRange(0, 100).Draw(d.T, "of nobody")), 100
	case 1:
		r.Lower, r.Upper = math.NaN(), math.NaN()
	case 2:
		r.Lower = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1}).Draw(d.T, "odd lower")
		r.Upper = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), 1, math.MaxFloat64}).Draw(d.T, "odd upper")
	case 3:
		r.Lower, r.Upper = 5, rapid.SampledFrom([]float64{math.NaN(), math.Inf(-1), -1, 4}).Draw(d.T, "odd upper")
	case 4:
		r.Values, r.Lower, r.Upper = 0, math.NaN(), math.NaN()
	case 5:
		r.Values, r.Lower, r.Upper = -1, 0, 0
	case 6:
		r.Lower = rapid.SampledFrom([]float64{0, 5e-324, 1e200, 1e290, math.MaxFloat64}).Draw(d.T, "extreme lower")
		r.Upper = max(r.Lower, rapid.SampledFrom([]float64{0, 1e200, 1e290, math.MaxFloat64, math.Inf(1)}).Draw(d.T, "extreme upper"))
	}
	if r.Values == 0 {
		r.Failed, r.NotReady = rapid.Int32Range(0, 2).Draw(d.T, "all failed"), rapid.Int32Range(0, 2).Draw(d.T, "all booting")
	}
}

// drawFloat draws any float64, NaN and infinities included.
func drawFloat(t *rapid.T, label string) float64 {
	return rapid.OneOf(
		rapid.Float64(),
		rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324, math.Copysign(0, -1), 0, 1}),
		rapid.Map(rapid.IntRange(-3, 30), func(n int) float64 { return float64(n) }),
	).Draw(t, label)
}
