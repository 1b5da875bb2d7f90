package oracle

import (
	"fmt"
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A Capacity says how much of a workload one replica of a type can serve, and in what unit requests are measured.
type Capacity struct {
	// PerSecond is mu_SLO: the mean requests per second that one replica serves while it attains the SLO.
	PerSecond float64 `json:"perSecond"`
	// Attainment is the share of requests that meet the SLO at that rate.
	Attainment float64 `json:"attainment"`
	// PromptToken and OutputToken are the work of one token. The mean request of the workload has the work 1:
	//
	//	work(request) = PromptToken*input + OutputToken*output
	//
	// If both are 0, every request has the work 1.
	PromptToken float64 `json:"promptToken"`
	OutputToken float64 `json:"outputToken"`
}

// Work returns the work of a request, in units of the mean request.
func (c *Capacity) Work(r sim.Request) float64 {
	if c.PromptToken == 0 && c.OutputToken == 0 {
		return 1
	}
	return c.PromptToken*float64(r.Input) + c.OutputToken*float64(r.Output)
}

// Validate reports every wrong field at once, under field.
func (c *Capacity) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(c.PerSecond > 0 && !math.IsInf(c.PerSecond, 1), field+".perSecond", c.PerSecond, "must be a number above 0")
	e.Check(c.PromptToken >= 0 && !math.IsInf(c.PromptToken, 1), field+".promptToken", c.PromptToken, "must be a number that is not negative")
	e.Check(c.OutputToken >= 0 && !math.IsInf(c.OutputToken, 1), field+".outputToken", c.OutputToken, "must be a number that is not negative")
	return e.Err()
}

// maxDemandSlots is the most slots of Demand: 90 days in seconds.
const maxDemandSlots = 90 * 24 * 3600

// Demand returns how many replicas a workload needs in each slot of length step. The last slot may extend beyond its end:
//
//	demand[t] = ceil( work that arrives in slot t / (step * PerSecond) )
//
// A request counts in the slot of its arrival, with the work that Capacity gives it. If slots are short compared with the
// gaps between requests, the demand follows the noise of the arrivals more than the load.
func Demand(w sim.Workload, seed uint64, step time.Duration, c Capacity) ([]int32, error) {
	if w != nil {
		if err := w.Validate("workload"); err != nil {
			return nil, err
		}
	}
	work, err := arriving(w, seed, step, c)
	if err != nil {
		return nil, err
	}
	demand := make([]int32, len(work))
	need(demand, work, c.PerSecond*step.Seconds())
	return demand, nil
}

// need sets the replicas for the work of each slot.
func need(demand []int32, work []float64, perSlot float64) {
	for t, x := range work {
		if x > 0 { // whatever the capacity, which may be so small that it is 0
			demand[t] = scaling.Ceil(x / perSlot)
		}
	}
}

// arriving returns the work that arrives in each slot.
func arriving(w sim.Workload, seed uint64, step time.Duration, c Capacity) ([]float64, error) {
	var e scaling.FieldErrors
	e.Check(w != nil, "workload", w, "must be set")
	e.Check(step > 0, "step", step, "must be above 0")
	e.Add(c.Validate("capacity"))
	if err := e.Err(); err != nil {
		return nil, err
	}
	e.Check(w.Duration() > 0, "workload.duration", w.Duration(), "must be above 0")
	slots := (w.Duration()-1)/step + 1
	e.Check(slots <= maxDemandSlots, "step", step, fmt.Sprintf("must not cut %s into more than %d slots", w.Duration(), maxDemandSlots))
	if err := e.Err(); err != nil {
		return nil, err
	}
	work := make([]float64, slots)
	for r, err := range sim.Requests(w, seed) {
		if err != nil {
			return nil, err
		}
		work[r.At/step] += c.Work(r)
	}
	return work, nil
}
