package oracle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// ErrUnattainable is the error of FindCapacity if a replica misses the SLO even without load, or at the lowest load for
// which a run ends within sim.MaxDuration. It is the error of Replay if no schedule that it tries attains the SLO.
var ErrUnattainable = errors.New("the SLO cannot be attained")

const (
	sampled = 4000 // requests that count in a run of FindCapacity
	warmup  = 400  // requests for each replica before those
)

// FindCapacity returns mu_SLO: the highest open-loop rate at which one replica of a type attains the SLO of a scenario for
// the share alpha of the requests. It is measured in the simulator itself, to 1 %.
//
// The arrivals are a stationary Poisson process. The lengths of prompts and answers are those of the workload, in its order:
// 4,000 of them, evenly spread over it, or repeated if it has fewer. With prefix caching they keep their blocks; repetitions
// do not. The first 400 requests warm the replica up and do not count. Each seed is a run; the share is over all runs. The
// gaps of a seed are the same at every rate, only scaled, and the rate is found by bisection, so the answer is always the
// same.
//
// Bisection starts from a rate that no batch can exceed. Even if the TTFT bound is long compared with the run (4,000
// requests), an unstable queue then cannot count as service at arbitrarily high rates; within the length of the run it does
// count.
//
// The weights of tokens are their cost in a full batch: PrefillToken for a prompt token, and for an output token
//
//	Base/B + Sequence + KVToken*(input + output/2),   B = min(MaxSeqs, KVTokens/(input + output/2), what TPOT allows)
//
// at the mean lengths. FindCapacity returns the errors of Scenario.Validate, of the arguments and of the context, and
// ErrUnattainable, which says which of TTFT and TPOT is missed.
func FindCapacity(ctx context.Context, s *sim.Scenario, typ int, alpha float64, seeds int) (Capacity, error) {
	return FindFleetCapacity(ctx, s, typ, 1, alpha, seeds)
}

// FindFleetCapacity is FindCapacity for a fleet of several replicas behind the scenario's router; the rate is still per
// replica. It grows with the fleet, as the noise of the arrivals matters less the more there are. No replica of a smaller
// fleet exceeds the capacity of the largest fleet that the bounds allow for long.
func FindFleetCapacity(ctx context.Context, s *sim.Scenario, typ int, replicas int32, alpha float64, seeds int) (Capacity, error) {
	if err := s.Validate(); err != nil {
		return Capacity{}, err
	}
	var e scaling.FieldErrors
	checkWhole(&e, s, typ)
	e.Check(replicas >= 1 && replicas <= 1000, "replicas", replicas, "must be within 1 and 1000")
	e.Check(alpha > 0 && alpha <= 1, "alpha", alpha, "must be above 0 and at most 1")
	e.Check(seeds >= 1 && seeds <= 1000, "seeds", seeds, "must be within 1 and 1000")
	if err := e.Err(); err != nil {
		return Capacity{}, err
	}
	b := bench{alpha: alpha, replicas: replicas, server: s.Types[typ].Server, slo: s.SLO}
	for seed := range seeds {
		lengths, err := sample(s.Workload, uint64(seed)+1, warmup*int(replicas)+sampled)
		if err != nil {
			return Capacity{}, err
		}
		b.lengths = append(b.lengths, lengths)
		common := commonBlocks(s, uint64(seed)+1)
		for i := range lengths {
			b.cached += common.tokens(&lengths[i]) / float64(len(lengths)*seeds)
		}
	}
	b.scenario = sim.Scenario{
		Name: s.Name, Types: []sim.Type{{Server: b.server, Initial: replicas}}, Router: s.Router, BlockTokens: s.BlockTokens, SLO: s.SLO,
		Scrape: sim.Scrape{Interval: 24 * time.Hour}, Control: sim.Control{Interval: time.Minute},
	}
	b.measure()
	return b.find(ctx)
}

// checkWhole checks that there is a type, and that it serves whole requests.
func checkWhole(e *scaling.FieldErrors, s *sim.Scenario, typ int) {
	known := typ >= 0 && typ < len(s.Types)
	e.Check(known, "type", typ, fmt.Sprintf("must be a place in the %d types of the scenario", len(s.Types)))
	if known {
		role := s.Types[typ].Role
		e.Check(role == sim.Both, fmt.Sprintf("types[%d].role", typ), role, "must be Both: what only computes prompts or only generates tokens serves no request alone")
	}
}

// sample returns the lengths of the warm-up's and the sampled requests of a workload, evenly spread over it.
func sample(w sim.Workload, seed uint64, most int) ([]sim.Request, error) {
	total := 0
	for _, err := range sim.Requests(w, seed) {
		if err != nil {
			return nil, err
		}
		total++
	}
	if total == 0 {
		return nil, &scaling.FieldError{Field: "workload", Value: total, Rule: "must have at least one request"}
	}
	picked := make([]sim.Request, 0, most)
	next := w.Arrivals(seed)
	for i := range total {
		r, _ := next()
		// If there are more requests than wanted, one is taken whenever i*most/total reaches a new whole number.
		if total <= most || int64(i)*int64(most)/int64(total) == int64(len(picked)) && len(picked) < most {
			picked = append(picked, r)
		}
	}
	for i := 0; len(picked) < most; i++ {
		again := picked[i]
		again.Blocks = nil // a repetition must not hit the blocks of the first
		picked = append(picked, again)
	}
	return picked, nil
}

// A bench measures the capacity of a replica or fleet.
type bench struct {
	alpha    float64
	replicas int32
	server   sim.Server
	slo      sim.SLO
	scenario sim.Scenario
	lengths  [][]sim.Request

	input, output float64 // mean tokens
	cached        float64 // of input, those that other prompts have too
	prompt, token float64 // replica-seconds for one token
}

// measure computes the means and the cost of a token.
func (b *bench) measure() {
	n := 0.0
	longest := int32(1)
	for _, lengths := range b.lengths {
		for _, r := range lengths {
			b.input += float64(r.Input)
			b.output += float64(r.Output)
			longest = max(longest, r.Output)
			n++
		}
	}
	b.input /= n
	b.output /= n
	b.prompt, b.token = b.server.TokenWork(b.slo, b.input, b.output)
	// Requests that meet the SLO are done by then; the others do not count.
	b.scenario.Grace = min(b.slo.TTFT+answerTime(longest, b.slo.TPOT)+time.Minute, sim.MaxDuration/2)
}

// shares are the shares of the requests of all runs that meet the SLO, and each of its bounds.
type shares struct{ both, ttft, tpot float64 }

// at runs the replicas at a rate.
func (b *bench) at(ctx context.Context, rate float64) (shares, error) {
	var met, ttft, tpot int
	for seed, lengths := range b.lengths {
		random := splitmix.Stream{State: uint64(seed) + 1}
		requests := make([]sim.Request, len(lengths))
		t := 0.0
		rate := rate * float64(b.replicas)
		for i, r := range lengths {
			t += random.Exponential() / rate
			r.At = time.Duration(t * float64(time.Second))
			requests[i] = r
		}
		s := b.scenario
		s.Workload = sim.Trace{Requests: requests}
		counts := requests[len(requests)-sampled].At
		_, err := sim.Run(ctx, &s, func() (scaling.Group, error) { return sim.Static(b.replicas), nil }, sim.Options{
			Policy: "capacity", Seed: uint64(seed) + 1,
			Request: func(o sim.Outcome) {
				if o.Arrived < counts {
					return
				}
				if o.Met {
					met++
				}
				if o.TTFT <= b.slo.TTFT {
					ttft++
				}
				if (o.Total - o.TTFT).Seconds() <= b.slo.TPOT.Seconds()*float64(o.Output-1) {
					tpot++
				}
			},
		})
		if err != nil {
			return shares{}, err
		}
	}
	n := float64(sampled * len(b.lengths))
	return shares{float64(met) / n, float64(ttft) / n, float64(tpot) / n}, nil
}

// find finds the rate by bisection.
func (b *bench) find(ctx context.Context) (Capacity, error) {
	work := b.prompt*b.input + b.token*b.output
	c := Capacity{Attainment: b.alpha, PromptToken: b.prompt / work, OutputToken: b.token / work}
	// No batch is larger than MaxSeqs, so none is faster than this rate, unless caches or the first tokens of answers matter. At a hundredth of the rate at which it can serve
	// one request at a time, a replica is idle.
	high := b.fastest(b.input, b.output)
	least := min(0.01/(b.prompt*b.input+(b.server.Base+b.server.Sequence)*b.output), high/2)
	least = min(max(least, b.slowest()), high)
	if high < b.slowest() {
		return Capacity{}, fmt.Errorf("%w: one replica of %q takes no more than %.2g requests/s, at which a run is longer than 90 days", ErrUnattainable, b.server.Name, high)
	}
	low := high
	for {
		got, err := b.at(ctx, low)
		if err != nil {
			return Capacity{}, err
		}
		if got.both >= b.alpha && low == high {
			high = b.fastest(b.input-b.cached, b.output-1)
		}
		if got.both >= b.alpha {
			break
		}
		if low == least {
			return Capacity{}, b.unattainable(low, got)
		}
		high = low
		low = max(low/2, least)
	}
	for high > low*1.01 {
		middle := math.Sqrt(low * high)
		got, err := b.at(ctx, middle)
		if err != nil {
			return Capacity{}, err
		}
		if got.both >= b.alpha {
			low = middle
		} else {
			high = middle
		}
	}
	c.PerSecond = low
	return c, nil
}

// fastest returns a rate that no batch can exceed if so many tokens of a request are computed in steps, and at most 1e6.
func (b *bench) fastest(input, output float64) float64 {
	return min(1/(b.prompt*input+(b.server.Base/float64(b.server.MaxSeqs)+b.server.Sequence)*output), 1e6)
}

// slowest returns the lowest rate for which a run stays within the longest run: this many arrivals take their mean time
// within a few percent.
func (b *bench) slowest() float64 {
	const spread = 1.1
	return spread * float64(len(b.lengths[0])) / float64(b.replicas) / (sim.MaxDuration - b.scenario.Grace).Seconds()
}

// unattainable explains which bound is missed.
func (b *bench) unattainable(rate float64, got shares) error {
	missed := "TTFT and TPOT together"
	switch {
	case got.ttft < b.alpha && got.tpot < b.alpha:
		missed = "TTFT and TPOT"
	case got.ttft < b.alpha:
		missed = "TTFT"
	case got.tpot < b.alpha:
		missed = "TPOT"
	}
	return fmt.Errorf("%w: one replica of %q misses %s even at %.2g requests/s: TTFT %s is met by %.1f %%, TPOT %s by %.1f %%, asked for %.1f %%",
		ErrUnattainable, b.server.Name, missed, rate, b.slo.TTFT, 100*got.ttft, b.slo.TPOT, 100*got.tpot, 100*b.alpha)
}
