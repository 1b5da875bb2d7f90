package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Options say what a run reports besides its result.
type Options struct {
	Policy string // its name, for the result
	Seed   uint64
	// Timeline records the fleet at this interval, of at least 1 ms; 0 records nothing.
	Timeline time.Duration
	// Decision is called at each tick with the observation and the decision: a target for each type of the scenario, in its
	// order. It must not keep the slices.
	Decision func(now time.Time, obs *scaling.GroupObservation, d *scaling.GroupDecision)
	// Request is called for each finished request, in order of time.
	Request func(Outcome)
	// Handover is called, in a fleet with roles, for each request that finished in a decode replica, before Request.
	Handover func(Handover)
	// Pages is called at each scrape with the page of every replica, in order of their starts. It must not keep the slices.
	Pages func(now time.Time, pages []Page)
	// Progress is called at each tick with the progress of the run.
	Progress func(done, total time.Duration)
}

// An Outcome is the result of one request.
type Outcome struct {
	Arrived time.Duration `json:"arrived"`
	Input   int32         `json:"input"`
	Output  int32         `json:"output"`
	Replica string        `json:"replica"` // the one that finished it
	TTFT    time.Duration `json:"ttft"`
	Total   time.Duration `json:"total"` // from arrival to the last token
	Met     bool          `json:"met"`   // both SLOs
}

// Run runs a scenario once under a group and returns the result; scaling.GroupOf makes a group of a policy. newGroup is
// called at the start and again after each crash. The same scenario, group and seed give the same Result, bit for bit.
//
// A group of several targets decides on the scenario's types, in their order and by their names. It observes the values of
// the scenario's metrics for each pod, NaN if a replica did not answer.
//
// Run returns the errors of Scenario.Validate, of a request that breaks a rule of Workload, of newGroup, of the context
// (checked at each decision, and after many events), and ErrBookkeeping.
func Run(ctx context.Context, s *Scenario, newGroup func() (scaling.Group, error), o Options) (Result, error) {
	if err := s.Validate(); err != nil {
		return Result{}, err
	}
	if newGroup == nil {
		return Result{}, &scaling.FieldError{Field: "newGroup", Rule: "must be set"}
	}
	if o.Timeline != 0 && (o.Timeline < time.Millisecond || o.Timeline > MaxDuration) {
		return Result{}, &scaling.FieldError{Field: "timeline", Value: o.Timeline, Rule: "must be 0, which is none, or within 1ms and 90 days"}
	}
	c, err := newController(newGroup, s.Control.Forgets)
	if err != nil {
		return Result{}, err
	}
	e := newEngine(s, o)
	e.controller = c
	if err := e.run(ctx.Err); err != nil {
		return Result{}, fmt.Errorf("%s, policy %q, seed %d, at %s: %w", s.Name, o.Policy, o.Seed, elapsed(e.now), err)
	}
	return e.result(), nil
}

// Begin returns the time at which a run begins: Start, or the first of January 2026, a Thursday.
func (s *Scenario) Begin() time.Time {
	if s.Start.IsZero() {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return s.Start
}

func (e *engine) result() Result {
	hours := func(area wide) float64 { return area.seconds() / 3600 }
	share := func(n int64) float64 {
		all := e.arrived
		if e.users != nil {
			all = max(all+e.users.omitted, e.users.reference)
		}
		if all == 0 {
			return 1
		}
		return float64(n) / float64(all)
	}
	r := Result{
		Scenario: e.scenario.Name, Policy: e.options.Policy, Seed: e.seed,
		Requests: e.arrived, Finished: e.finished, Unfinished: e.arrived - e.finished - e.refused - e.rejected - e.expired, Refused: e.refused,
		Rejected: e.rejected, Expired: e.expired,
		Preempted: e.preempted, Retried: e.retried, PrefixQueries: e.prefixQueries, PrefixHits: e.prefixHits,
		Attainment: share(e.met), AttainedTTFT: share(e.metTTFT), AttainedTPOT: share(e.metTPOT),
		PeakReplicas: e.peak,
		TTFT:         e.ttftTimes.quantiles(), Queue: e.queueTimes.quantiles(), TPOT: e.tpotTimes.quantiles(),
		Actions: e.controller.actions, Ups: e.controller.ups, Downs: e.controller.downs, Reversals: e.controller.reversals,
		Starts: e.starts, Refusals: e.controller.refusals, Crashes: e.controller.crashes,
		Under: hours(e.under), Over: hours(e.over),
		Reasons: e.controller.sortedReasons(), Events: e.events,
		TTFTHistogram: e.ttftTimes.bars(), Timeline: e.timeline,
	}
	if e.users != nil {
		r.Reference, r.Omitted = e.users.reference, e.users.omitted
	}
	if a := e.apart; a != nil {
		r.Transfers, r.Transfer, r.SecondToken = a.count, a.waits.quantiles(), a.gaps.quantiles()
	}
	for k := range e.kinds {
		t := &e.kinds[k]
		part := TypeResult{
			Name: t.Name, ReplicaHours: hours(t.area), Cost: hours(t.area) * t.Cost, Starts: t.starts, Finished: t.finished,
		}
		r.ReplicaHours += part.ReplicaHours
		r.Cost += part.Cost
		r.Types = append(r.Types, part)
	}
	horizon := seconds(e.horizon)
	r.AverageReplicas = r.ReplicaHours * 3600 / horizon
	r.AverageSpec = hours(e.specArea) * 3600 / horizon
	r.Goodput = float64(e.met) / horizon
	if r.ReplicaHours > 0 {
		r.GoodputPerReplicaHour = float64(e.met) / r.ReplicaHours
	}
	if end := seconds(e.now); end > 0 {
		r.Little.L = e.area.seconds() / end
		if e.arrived > 0 {
			r.Little.LambdaW = float64(e.arrived) / end * (e.sojourns.seconds() / float64(e.arrived))
		}
	}
	return r
}
