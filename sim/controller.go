package sim

import (
	"encoding/json"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Controller decides for the whole fleet. Drive makes one of any scaling.Policy; package control has those for
// several types. Its state survives crashes as a Policy's does.
type Controller interface {
	// Decide returns one decision for each type, in order of the scenario. The slice is read before the next call.
	Decide(now time.Time, view *View) []scaling.Decision
	// Applied reports what was written: one count for each type.
	Applied(now time.Time, from, to []int32)
	json.Marshaler
	json.Unmarshaler
}

// A View is what a controller sees.
type View struct {
	Types []TypeView
	// Readings has one reading for each metric of the scenario, over the whole fleet.
	Readings []scaling.Reading
	// Pods are the replicas that are listed: all but those that drain.
	Pods []Pod
	// Metrics are those of the scenario.
	Metrics []Metric
}

// A TypeView is how a type stands.
type TypeView struct {
	Name  string
	Spec  int32 // replicas asked for
	Ready int32 // of them, ready
}

// A Pod is one replica as the controller sees it.
type Pod struct {
	Name  string
	Type  int // place in the scenario's types
	Ready bool
	// Values has a value for each metric, NaN where there is none: while the pod boots, or if it did not answer.
	Values []float64
}

// Drive returns the controller of a policy for one target: all types of the scenario taken together must be one.
func Drive(policy scaling.Policy) Controller { return &single{Policy: policy} }

type single struct {
	scaling.Policy

	answer [1]scaling.Decision
}

func (s *single) Decide(now time.Time, v *View) []scaling.Decision {
	s.answer[0] = s.Policy.Decide(now, scaling.Observation{
		SpecReplicas: v.Types[0].Spec, ReadyReplicas: v.Types[0].Ready, Readings: v.Readings,
	})
	return s.answer[:]
}

func (s *single) Applied(now time.Time, from, to []int32) { s.Policy.Applied(now, from[0], to[0]) }

// Static returns the controller that asks for fixed counts, one for each type, and keeps them.
func Static(counts ...int32) Controller {
	return &planned{at: func(time.Duration) []int32 { return counts }}
}

// Schedule returns the controller that asks, for one type, for counts[i] from i*step on: a plan made beforehand, such
// as an oracle's. It decides at the ticks of the scenario, so a plan should be early by one.
func Schedule(start time.Time, step time.Duration, counts []int32) Controller {
	p := &planned{start: start}
	answer := make([]int32, 1)
	p.at = func(t time.Duration) []int32 {
		answer[0] = counts[min(int(t/step), len(counts)-1)]
		return answer
	}
	return p
}

// Planned raises or lowers a count to what a plan has at this time.
const Planned scaling.Code = "Planned plan"

type planned struct {
	start  time.Time
	at     func(time.Duration) []int32
	answer []scaling.Decision
}

func (p *planned) Decide(now time.Time, v *View) []scaling.Decision {
	counts := p.at(now.Sub(p.start))
	p.answer = p.answer[:0]
	for i, t := range v.Types {
		d := scaling.HoldAt(t.Spec)
		d.To(counts[i], Planned, "", float64(counts[i]))
		p.answer = append(p.answer, d)
	}
	return p.answer
}

func (p *planned) Applied(time.Time, []int32, []int32) {}
func (p *planned) MarshalJSON() ([]byte, error)        { return []byte("{}"), nil }
func (p *planned) UnmarshalJSON([]byte) error          { return nil }
