package oracle

import (
	"context"
	"errors"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// mostKept is the most requests that a search keeps instead of drawing them again for each run.
const mostKept = 4_000_000

// keep draws the requests once, and sets how many of them may miss the SLO. Sessions are not kept: they are drawn for the
// reference, and there may be more of them.
func (r *replayer) keep() error {
	w := r.scenario.Workload
	kept := sim.Trace{Length: w.Duration()}
	total := 0
	for q, err := range sim.Requests(w, r.seed) {
		if err != nil {
			return err
		}
		if total++; total <= mostKept {
			kept.Requests = append(kept.Requests, q)
		}
	}
	r.closed = closed(w)
	if total <= mostKept && !r.closed {
		r.scenario.Workload = kept
	}
	r.mayMiss = float64(total)*(1-r.goal.Alpha) + 1e-6
	return nil
}

// closed reports whether requests of a workload follow answers.
func closed(w sim.Workload) bool {
	switch w.(type) {
	case sim.Sessions, *sim.Sessions:
		return true
	}
	return false
}

// certify runs a schedule. A brief run ends early once more requests have missed the SLO than may. Each request that missed
// it is passed to late, if late is not nil.
func (r *replayer) certify(ctx context.Context, policy string, asked []int32, brief bool, late func(sim.Outcome)) (result sim.Result, hopeless bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o := sim.Options{Policy: policy, Seed: r.seed}
	missed := 0
	if brief || late != nil {
		o.Request = func(q sim.Outcome) {
			if q.Met {
				return
			}
			if late != nil {
				late(q)
			}
			if missed++; brief && !r.closed && float64(missed) > r.mayMiss && !hopeless {
				hopeless = true
				cancel()
			}
		}
	}
	result, err = sim.Run(ctx, &r.scenario, func() (scaling.Group, error) {
		return sim.Schedule(r.scenario.Start, r.tick(), asked), nil
	}, o)
	r.runs++
	if hopeless && errors.Is(err, context.Canceled) {
		return sim.Result{}, true, nil
	}
	result.Timeline = nil
	return result, false, err
}
