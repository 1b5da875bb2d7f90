package scalingtest

import (
	"time"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// drawLapse draws readings that become constant, and one or two ticks at which they are missing. For a policy with windows
// (Options.Windows), in which every reading has a weight, they are constant from the start.
func drawLapse(t *rapid.T, o *Options) Episode {
	few := *o
	few.Ticks = min(o.Ticks, 16)
	e := drawEpisode(t, &few, life{inside: true, refusals: true})
	if o.Windows {
		e.Ticks = nil
	}
	for i := range e.Ticks {
		for k := range e.Ticks[i].Readings {
			e.Ticks[i].Readings[k].At = time.Time{} // a sample of an earlier tick counts as missing at its own tick
		}
	}
	d := &drawer{T: t, o: o, life: life{inside: true}, mood: rapid.IntRange(moodHigh, moodLow).Draw(t, "mood")}
	tick := Tick{After: o.Period, Times: min(o.warm(o.Period), 120), Refuse: rapid.Bool().Draw(t, "refused")}
	tick.Readings = d.moody()
	tick.Targets = d.targets(tick.Readings)
	before := e.count()
	e.Ticks = append(e.Ticks, tick)
	at := rapid.IntRange(before, e.count()-1).Draw(t, "restarted at")
	if rapid.Bool().Draw(t, "soon") {
		at = min(at, before+rapid.IntRange(0, 12).Draw(t, "soon after"))
	}
	for i := range rapid.IntRange(1, maxLapse).Draw(t, "without a reading") {
		for _, m := range o.Metrics {
			e.Changes = append(e.Changes, Change{Tick: at + i, Metric: m.Name, Gone: true})
		}
	}
	return e
}

// maxLapse is how many consecutive ticks may be without a reading, and how many ticks a decision may be late because of it.
const maxLapse = 2

// checkLapse: if readings are missing at the first one or two ticks after a restart, the policy asks for a change at most
// two ticks later than it would have otherwise. A lapse near the end of the episode is not judged.
func checkLapse(s *subject, e *Episode) *failed {
	if len(e.Changes) == 0 {
		return nil
	}
	plain := *e
	plain.Changes = nil
	without, f := s.play(&plain)
	if f != nil {
		return f
	}
	lapsed, f := s.play(e, func(p *player) { p.allRestarts = true })
	if f != nil {
		return f
	}
	at := e.Changes[0].Tick
	for i := at; i+maxLapse < len(without); i++ {
		if !without[i].acts() || without[i].repairs {
			continue
		}
		for j := at; j <= i+maxLapse; j++ {
			// An exchange between targets leaves the total as it is: it may come with any verdict of the total.
			if w := without[i].d.Verdict; lapsed[j].acts() && (w == scaling.Hold || w == lapsed[j].d.Verdict) {
				return nil
			}
		}
		return failAt(without, i, "%s, and with no reading at %d ticks before it still does not two ticks later",
			action(&without[i].d), e.Changes[len(e.Changes)-1].Tick+1-at).show("with the restart", lapsed[:i+maxLapse+1])
	}
	return nil
}
