package proportional_test

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// naive is the plainest restatement of the algorithm: it keeps every sample, recommendation and change there ever was
// in lists, goes through all of them at every decision, and adds up with plain arithmetic.
type naive struct {
	config  proportional.Config
	seen    *time.Time
	panic   *time.Time
	peak    int32
	loads   map[string]*naiveLoad
	lows    naiveHistory
	highs   naiveHistory
	changes []naiveChange
}

type naiveLoad struct {
	since, last *time.Time
	samples     []naiveSample
}

type naiveSample struct {
	bucket       int64 // its start, Unix milliseconds
	lower, upper float64
}

type naiveChange struct {
	at    time.Time // whole seconds
	delta int64
}

// naiveHistory is recommendations with their times.
type naiveHistory struct {
	at []time.Time
	n  []int32
}

// record adds a recommendation; one that the clock put into the future takes all others back along with it. It
// forgets what is as old as the window.
func (h *naiveHistory) record(window time.Duration, now time.Time, n int32) {
	now = now.Truncate(time.Millisecond)
	if len(h.at) > 0 {
		if ahead := h.at[len(h.at)-1].Sub(now); ahead > 0 {
			for i := range h.at {
				h.at[i] = h.at[i].Add(-ahead)
			}
		}
	}
	h.at, h.n = append(h.at, now), append(h.n, n)
	var kept naiveHistory
	for i := range h.at {
		if age := now.Sub(h.at[i]); age < window || age == 0 {
			kept.at, kept.n = append(kept.at, h.at[i]), append(kept.n, h.n[i])
		}
	}
	*h = kept
}

func newNaive(c proportional.Config) *naive {
	n := &naive{config: c, loads: map[string]*naiveLoad{}}
	for _, m := range c.Metrics {
		n.loads[m.Name] = &naiveLoad{}
	}
	return n
}

func back(t *time.Time, by time.Duration, now time.Time) {
	if t != nil {
		*t = t.Add(-by)
		if t.After(now) {
			*t = now
		}
	}
}

func (n *naive) bucket(t time.Time) int64 {
	res := n.config.Resolution.Milliseconds()
	return int64(math.Floor(float64(t.UnixMilli())/float64(res))) * res
}

// total is the fleet's load that a reading stands for.
func (n *naive) total(m proportional.Metric, obs scaling.Observation) (lower, upper float64, r scaling.Reading, known bool) {
	for _, r = range obs.Readings {
		if r.Metric != m.Name {
			continue
		}
		known = r.Values > 0 && r.Lower >= 0 && r.Lower <= math.MaxFloat64 && r.Lower <= r.Upper
		pods, ready := float64(r.Values+r.NotReady+r.Failed), float64(obs.ReadyReplicas)
		lower, upper = r.Lower, r.Upper
		switch m.Measure {
		case proportional.PerPod:
			lower, upper = lower*pods, upper*max(pods, ready)
		case proportional.Average:
			lower, upper = lower*ready, upper*ready
			known = known && ready > 0
		case proportional.Total:
		}
		return min(lower, 1e290), min(upper, 1e290), r, known
	}
	return 0, 0, scaling.Reading{}, false
}

// record takes the samples in and reports whether the clock stepped back.
func (n *naive) record(now time.Time, obs scaling.Observation) bool {
	by, buckets := time.Duration(0), int64(0)
	if n.seen != nil && now.Before(*n.seen) {
		by = n.seen.Sub(now)
		if n.config.StableWindow > 0 {
			buckets = n.bucket(*n.seen) - n.bucket(now)
		}
	}
	n.seen = &now
	back(n.panic, by, now)
	for _, l := range n.loads {
		back(l.since, by, now)
		back(l.last, by, now)
	}
	if n.config.StableWindow == 0 {
		return by > 0
	}
	window := max(n.config.StableWindow, n.config.Resolution)
	for _, m := range n.config.Metrics {
		l := n.loads[m.Name]
		ahead := buckets
		for _, s := range l.samples {
			ahead = max(ahead, s.bucket-n.bucket(now))
		}
		var kept []naiveSample
		for _, s := range l.samples {
			s.bucket -= ahead
			if s.bucket > n.bucket(now)-window.Milliseconds() {
				kept = append(kept, s)
			}
		}
		l.samples = kept
		newest := int64(math.MinInt64)
		for _, s := range kept {
			newest = max(newest, s.bucket)
		}
		lower, upper, r, known := n.total(m, obs)
		at := now
		if !r.At.IsZero() && r.At.Before(now) {
			at = r.At
		}
		fresh := l.last == nil || at.After(*l.last)
		if known && fresh && n.bucket(at) > n.bucket(now)-window.Milliseconds() {
			if l.since == nil || at.Sub(*l.last) > 2*window {
				since := at
				l.since = &since
			}
			last := at
			l.last = &last
			l.samples = append(l.samples, naiveSample{max(n.bucket(at), newest), lower, upper})
		}
	}
	return by > 0
}

// mean is the average over the buckets that start after the horizon, each the average of its samples.
func (l *naiveLoad) mean(horizon int64) (lower, upper float64, ok bool) {
	buckets := map[int64][]naiveSample{}
	for _, s := range l.samples {
		if s.bucket > horizon {
			buckets[s.bucket] = append(buckets[s.bucket], s)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(buckets)) { // in order of time
		var lo, up float64
		for _, s := range buckets[at] {
			lo += s.lower
			up += s.upper
		}
		lower += lo / float64(len(buckets[at]))
		upper += up / float64(len(buckets[at]))
	}
	k := float64(len(buckets))
	return lower / k, upper / k, k > 0
}

func (n *naive) Applied(now time.Time, from, to int32) {
	if from == to || from < n.config.Bounds.Min || from > n.config.Bounds.Max {
		return
	}
	n.rewind(now)
	now = now.Truncate(time.Millisecond)
	for i := range n.changes { // those of one second are one, at the time of the last
		if c := &n.changes[i]; c.at.Unix() == now.Unix() && (c.delta > 0) == (to > from) {
			c.at = now
		}
	}
	n.changes = append(n.changes, naiveChange{now, int64(to) - int64(from)})
}

func (n *naive) rewind(now time.Time) {
	if len(n.changes) == 0 {
		return
	}
	if ahead := n.changes[len(n.changes)-1].at.Sub(now.Truncate(time.Millisecond)); ahead > 0 {
		for i := range n.changes {
			n.changes[i].at = n.changes[i].at.Add(-ahead)
		}
	}
}

// limit is how many replicas a direction may move.
func (n *naive) limit(l scaling.RateLimit, now time.Time, spec int32, up bool) int64 {
	if l.Select == scaling.SelectDisabled {
		return 0
	}
	var allowed []int64
	for _, limit := range l.Limits {
		begin := int64(spec)
		for _, c := range n.changes {
			if now.Truncate(time.Millisecond).Sub(c.at) < limit.Period {
				begin -= c.delta
			}
		}
		step := int64(limit.Replicas)
		if limit.Percent > 0 {
			step = (max(0, begin)*int64(limit.Percent) + 99) / 100 // below zero if others removed more than there was
			if up && step < 1 {
				step = 1
			}
		}
		move := begin + step - int64(spec)
		if !up {
			move = int64(spec) - (begin - step)
		}
		allowed = append(allowed, max(0, move))
	}
	if len(allowed) == 0 {
		return math.MaxInt32
	}
	best := allowed[0]
	for _, a := range allowed {
		if l.Select == scaling.SelectMax {
			best = max(best, a)
		} else {
			best = min(best, a)
		}
	}
	return best
}

func (n *naive) Decide(now time.Time, obs scaling.Observation) (scaling.Verdict, int32) {
	wentBack := n.record(now, obs)
	c, spec := n.config, obs.SpecReplicas
	switch {
	case spec < c.Bounds.Min:
		return scaling.Up, c.Bounds.Min
	case spec > c.Bounds.Max:
		return scaling.Down, c.Bounds.Max
	case wentBack:
		return scaling.Hold, spec
	}
	ready := max(1, obs.ReadyReplicas)
	judged := ready
	if c.StartupCredit {
		judged = max(judged, spec)
	}
	window := max(c.StableWindow, c.Resolution)

	anyKnown, anyLoad, breach, mayBreach := false, false, false, false
	want, rush := int32(0), int32(0)
	for _, m := range c.Metrics {
		lower, upper, _, known := n.total(m, obs)
		covered := true
		if c.StableWindow > 0 {
			l := n.loads[m.Name]
			if lower, upper, known = l.mean(math.MinInt64); known {
				covered = now.Truncate(time.Millisecond).Sub(*l.since) >= window
			}
			if burst, most, ok := l.mean(n.bucket(now) - max(c.Panic.Window, c.Resolution).Milliseconds()); ok && c.Panic.Threshold > 0 {
				need := scaling.Ceil(burst / m.Target)
				breach = breach || float64(need) >= c.Panic.Threshold*float64(judged)*(1-1e-9)
				mayBreach = mayBreach || float64(scaling.Ceil(most/m.Target)) >= c.Panic.Threshold*float64(judged)*(1-1e-9)
				rush = max(rush, plainly(burst, math.Inf(1), m.Target, spec, c.Up.Tolerance, 0))
			}
		}
		wish := spec
		if known {
			anyKnown = true
			anyLoad = anyLoad || lower > 0
			wish = plainly(lower, upper, m.Target, spec, c.Up.Tolerance, c.Down.Tolerance)
			if !covered {
				wish = max(wish, spec)
			}
		}
		want = max(want, wish)
	}
	if !anyKnown {
		return scaling.Unknown, spec
	}
	if n.panic != nil && !breach && now.Truncate(time.Millisecond).Sub(n.panic.Truncate(time.Millisecond)) > window {
		n.panic, n.peak = nil, 0
	}
	if breach {
		t := now
		n.panic = &t
	}
	if n.panic != nil {
		want = max(want, rush)
	}
	if c.Up.MaxRate > 0 && want > spec {
		want = min(want, max(spec, scaling.Ceil(c.Up.MaxRate*float64(ready))))
	}
	if c.ActivationScale > 1 && want > 0 {
		if anyLoad {
			want = max(want, c.ActivationScale)
		} else {
			want = max(want, min(spec, c.ActivationScale))
		}
	}
	if n.panic != nil {
		want = max(want, spec, n.peak)
	} else if mayBreach {
		want = max(want, spec)
	}

	if st := c.Stabilization; st.Up > 0 || st.Down > 0 {
		if len(n.highs.at) == 0 {
			if st.Up > 0 {
				n.lows.record(st.Up, now, spec)
			}
			if st.Down > 0 {
				n.highs.record(st.Down, now, spec)
			}
		}
		n.lows.record(st.Up, now, want)
		n.highs.record(st.Down, now, want)
		lowest, highest := want, want
		for _, r := range n.lows.n {
			if st.Up > 0 {
				lowest = min(lowest, r)
			}
		}
		for _, r := range n.highs.n {
			if st.Down > 0 {
				highest = max(highest, r)
			}
		}
		want = min(max(spec, lowest), highest)
	}
	n.rewind(now)
	if want > spec {
		want = int32(min(int64(want), int64(spec)+n.limit(c.RateLimits.Up, now, spec, true)))
	}
	if want < spec {
		want = int32(max(int64(want), int64(spec)-n.limit(c.RateLimits.Down, now, spec, false)))
	}
	if c.Down.MaxRate > 0 && want < spec {
		base := ready
		if c.StartupCredit {
			base = max(base, spec)
		}
		want = max(want, min(spec, int32(math.Floor(float64(base)/c.Down.MaxRate*(1+1e-12)))))
	}
	if c.Up.MaxStep > 0 {
		want = min(want, spec+c.Up.MaxStep)
	}
	if c.Down.MaxStep > 0 {
		want = max(want, spec-c.Down.MaxStep)
	}
	want = c.Bounds.Clamp(want)
	if n.panic != nil {
		n.peak = max(n.peak, want)
	}
	switch {
	case want > spec:
		return scaling.Up, want
	case want < spec:
		return scaling.Down, want
	}
	return scaling.Hold, spec
}
