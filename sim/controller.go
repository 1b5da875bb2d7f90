package sim

import (
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Static returns the group that asks for fixed counts, one for each type. For another number of types it decides Unknown.
func Static(counts ...int32) scaling.Group {
	counts = slices.Clone(counts)
	return &planned{at: func(time.Duration) []int32 { return counts }}
}

// Schedule returns the group that asks, for one type, for counts[i] from i*step on: a schedule computed in advance, for
// example by an oracle. It decides at the ticks of the scenario, so a schedule should be one tick early. Before start, and
// without counts or a step, it decides Unknown. The zero start is that of a scenario without one, see Scenario.Begin.
func Schedule(start time.Time, step time.Duration, counts []int32) scaling.Group {
	if start.IsZero() {
		start = (&Scenario{}).Begin()
	}
	counts = slices.Clone(counts)
	p := &planned{start: start}
	answer := make([]int32, 1)
	p.at = func(t time.Duration) []int32 {
		if t < 0 || step <= 0 || len(counts) == 0 {
			return nil
		}
		answer[0] = counts[min(int(t/step), len(counts)-1)]
		return answer
	}
	return p
}

// Planned moves the count to that of the schedule at this time.
const Planned scaling.Code = "Planned plan"

type planned struct {
	start  time.Time
	at     func(time.Duration) []int32
	answer []scaling.Decision
}

func (p *planned) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	counts := p.at(now.Sub(p.start))
	if len(counts) != len(obs.Targets) {
		return scaling.UnknownGroup(obs, scaling.NotEach, float64(len(obs.Targets)), float64(len(counts)))
	}
	p.answer = p.answer[:0]
	from, to := int32(0), int32(0)
	for i := range obs.Targets {
		d := scaling.HoldAt(obs.Targets[i].SpecReplicas)
		d.To(counts[i], Planned, "", float64(counts[i]))
		p.answer = append(p.answer, d)
		from, to = scaling.Plus(from, d.From), scaling.Plus(to, d.Replicas)
	}
	total := scaling.HoldAt(from)
	total.To(to, scaling.Summed, "", float64(len(counts)))
	return scaling.GroupDecision{Total: total, Targets: p.answer}
}

func (p *planned) Applied(time.Time, []int32, []int32) {}
func (p *planned) MarshalJSON() ([]byte, error)        { return []byte("{}"), nil }
func (p *planned) UnmarshalJSON([]byte) error          { return nil }
