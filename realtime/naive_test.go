package realtime_test

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// naive is the plainest restatement of the algorithm: it keeps every sample there ever was and looks through all of
// them at every decision. It knows no streaks.
type naive struct {
	config  realtime.Config
	seen    *time.Time
	up      *time.Time
	down    *time.Time
	changed *time.Time
	samples map[string][]naiveSample
}

type naiveSample struct {
	when  time.Time // it was looked for
	at    time.Time
	side  int // +1 above High, -1 below Low, 0 neither
	known bool
}

func newNaive(c realtime.Config) *naive {
	return &naive{config: c, samples: map[string][]naiveSample{}}
}

// clock moves all that is remembered back if now is before the last decision, and reports whether it was.
func (n *naive) clock(now time.Time) bool {
	back := time.Duration(0)
	if n.seen != nil && now.Before(*n.seen) {
		back = n.seen.Sub(now)
	}
	for _, t := range []*time.Time{n.up, n.down, n.changed} {
		if t != nil {
			*t = t.Add(-back)
			if t.After(now) {
				*t = now
			}
		}
	}
	for _, samples := range n.samples {
		for i := range samples {
			samples[i].at, samples[i].when = samples[i].at.Add(-back), samples[i].when.Add(-back)
		}
	}
	return back > 0
}

func (n *naive) Applied(now time.Time, from, to int32) {
	if n.clock(now) {
		seen := now
		n.seen = &seen
	}
	if from != to {
		changed := now
		n.changed = &changed
	}
	if from < n.config.Bounds.Min || from > n.config.Bounds.Max {
		return
	}
	if to > from {
		up := now
		n.up = &up
	}
	if to < from {
		down := now
		n.down = &down
	}
}

func (n *naive) Decide(now time.Time, obs scaling.Observation) (scaling.Verdict, int32) {
	back := n.clock(now)
	n.seen = &now
	period := n.config.Period

	anyKnown, anyUp, anyDown, blocked := false, false, false, false
	for _, m := range n.config.Metrics {
		sample := naiveSample{when: now, at: now}
		known := false
		for _, r := range obs.Readings {
			if r.Metric != m.Name {
				continue
			}
			if !r.At.IsZero() && r.At.Before(now) {
				sample.at = r.At
			}
			known = r.Values > 0 && r.Lower >= 0 && r.Lower <= math.MaxFloat64 && r.Lower <= r.Upper && now.Sub(sample.at) <= 2*period
			if known && r.Lower > m.High {
				sample.side = +1
			}
			if known && r.Upper < m.Low {
				sample.side = -1
			}
		}
		sample.known = known
		n.samples[m.Name] = append(n.samples[m.Name], sample)

		// The run of samples of one side that ends here: with a look at least every two periods, and a sample
		// within less than four.
		run, first, last, looked, some, outdated := 0, sample.at, sample.at, n.samples[m.Name][0].when, false, false
		for _, k := range n.samples[m.Name] {
			at := k.at
			if !k.known {
				at = k.when
			}
			lost := k.when.Sub(looked) > 2*period && at.Sub(last) > 2*period || at.Sub(last) >= 4*period
			looked, outdated = k.when, false
			switch {
			case !some && !k.known:
			case !some:
				run, first, last, some = k.side, k.at, k.at, true
			case lost && !k.known:
				run, some = 0, false
			case !k.known:
			case k.at.Before(last): // what is older than what is known cannot begin anything
				if k.side != run {
					run, first, outdated = 0, last, true
				}
			case lost || k.side != run:
				run, first, last = k.side, k.at, k.at
			default:
				last = k.at
			}
		}
		held := last.Sub(first) + period
		if run == 0 || run != sample.side {
			held, last = 0, sample.at
		}

		fresh := n.changed == nil || last.After(*n.changed)
		up := fresh && sample.side > 0 && held >= n.config.Up.Window && m.Role != realtime.DownVeto
		down := fresh && sample.side < 0 && held >= n.config.Down.Window && m.Role != realtime.UpOnly
		if outdated && (up || down) { // without a window; a newer sample says otherwise
			up, down, known = false, false, false
		}
		anyKnown = anyKnown || known
		anyUp = anyUp || up
		anyDown = anyDown || down
		if m.Role != realtime.UpOnly && !down {
			blocked = true
		}
	}

	spec := obs.SpecReplicas
	switch {
	case spec < n.config.Bounds.Min:
		return scaling.Up, n.config.Bounds.Min
	case spec > n.config.Bounds.Max:
		return scaling.Down, n.config.Bounds.Max
	case back:
		return scaling.Hold, spec
	case !anyKnown:
		return scaling.Unknown, spec
	}
	want, rule, last := spec, n.config.Up, n.up
	switch {
	case anyUp:
		want = min(spec+n.config.Up.Step, n.config.Bounds.Max)
	case anyDown && !blocked:
		want = max(spec-n.config.Down.Step, n.config.Bounds.Min)
		rule, last = n.config.Down, n.down
	}
	recent := n.up
	if recent == nil || n.down != nil && n.down.After(*recent) {
		recent = n.down
	}
	if n.config.CooldownScope == realtime.Any {
		last = recent
	}
	switch {
	case want == spec,
		last != nil && now.Sub(*last) < rule.Cooldown,
		n.config.HoldWhilePending && want > spec && obs.ReadyReplicas < spec:
		return scaling.Hold, spec
	case want > spec:
		return scaling.Up, want
	default:
		return scaling.Down, want
	}
}
