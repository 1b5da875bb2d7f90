package oracle

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// Floor returns a lower bound of the replica-hours with which any schedule, and so any policy, can make a share alpha of the
// requests meet the SLO on a type of the scenario. The bound is proved, not measured as that of Cover is.
//
// A request uses a replica's time, whatever else is in the batch: for the tokens of its prompt, and for each further token
// of the output for its sequence, its own KV cache, and its part of the step's base, as a step has at most MaxSeqs sequences
// and at most KVTokens in its cache:
//
//	PrefillToken*input + (output-1)*(each + Base/MaxSeqs) + KVToken*held
//	PrefillToken*input + (output-1)*each + (KVToken + Base/KVTokens)*held
//
// with each = min(Sequence, PrefillToken*(input+1)), as the step that computes a preempted sequence again makes a token, too (with
// prefix caching it may compute as little as one token), and held = (output-1)*input + (output-1)*(output-2)/2, the tokens that
// it keeps, summed over its steps. The sum of either is less than the replica-time of those requests; the larger sum counts, over
// the share alpha of the requests that need the least. A request that may end after the horizon and still meet the SLO is left
// out.
//
// With prefix caching, the blocks of a prompt that any other prompt has too are not computed for it, but for its last token, and
// the blocks of a request that any other has too, its last block and its answer included, are not kept for it.
//
// The bound ignores whole replicas, queues, cold starts and bounds, so it is well below the optimum of a small fleet.
func Floor(s *sim.Scenario, typ int, seed uint64, alpha float64) (float64, error) {
	if err := s.Validate(); err != nil {
		return 0, err
	}
	var e scaling.FieldErrors
	checkWhole(&e, s, typ)
	e.Check(alpha >= 0 && alpha <= 1, "alpha", alpha, "must be within 0 and 1")
	e.Check(!closed(s.Workload), "workload", "Sessions", "must be open loop: what arrives in sessions depends on the fleet")
	if err := e.Err(); err != nil {
		return 0, err
	}
	v := simulated(s.Types[typ].Server)
	horizon := cmp.Or(s.Horizon, s.Workload.Duration())
	var bySeqs, byCache []float64
	total := 0
	common := commonBlocks(s, seed)
	for r, err := range sim.Requests(s.Workload, seed) {
		if err != nil {
			return 0, err
		}
		total++
		if r.At+s.SLO.TTFT+answerTime(r.Output, s.SLO.TPOT) > horizon {
			continue
		}
		in, steps := float64(r.Input), float64(r.Output-1)
		held := steps*in + steps*max(0, steps-1)/2
		cached, shared := common.tokens(&r), common.kept(&r)
		again := in + 1 // tokens of a preempted sequence that are computed again, at least
		if s.BlockTokens > 0 {
			again = 1
		}
		own := v.PrefillToken*(in-cached) + steps*min(v.Sequence, v.PrefillToken*again) + v.KVToken*held
		bySeqs = append(bySeqs, own+steps*v.Base/float64(v.MaxSeqs))
		byCache = append(byCache, own+max(0, held-steps*shared)*v.Base/float64(v.KVTokens))
	}
	// The requests that were left out are assumed to meet the SLO, and to cost nothing.
	n := int(math.Ceil(alpha*float64(total)-1e-6)) - (total - len(bySeqs))
	n = max(0, min(n, len(bySeqs)))
	// A millionth is subtracted for rounding.
	return max(least(bySeqs, n), least(byCache, n)) / 3600 * (1 - 1e-6), nil
}

// simulated returns a server with costs of whole picoseconds, as the simulator has them, rounded down.
func simulated(v sim.Server) sim.Server {
	for _, cost := range [...]*float64{&v.Base, &v.PrefillToken, &v.Sequence, &v.KVToken} {
		*cost = math.Floor(*cost*1e12) / 1e12
	}
	return v
}

// answerTime returns how long an answer may take, at most the longest run.
func answerTime(tokens int32, tpot time.Duration) time.Duration {
	return time.Duration(min(float64(tokens)*float64(tpot), float64(sim.MaxDuration)))
}

// common are the blocks with which several prompts of a run begin, and the tokens of each.
type common struct {
	prompts map[uint64]int
	block   int
}

func commonBlocks(s *sim.Scenario, seed uint64) common {
	c := common{map[uint64]int{}, int(s.BlockTokens)}
	if c.block == 0 {
		return c
	}
	next := s.Workload.Arrivals(seed)
	for r, ok := next(); ok; r, ok = next() {
		for _, id := range r.Blocks {
			c.prompts[id]++
		}
	}
	return c
}

// tokens returns how many tokens of a prompt are common and need not be computed: its last token always is.
func (c *common) tokens(r *sim.Request) float64 { return c.first(r, int64(r.Input)-1) }

// kept returns how many tokens of a request are common and may be kept once for all: a block that each computes is, too, and after
// a preemption those of the answer.
func (c *common) kept(r *sim.Request) float64 { return c.first(r, int64(r.Input)+int64(r.Output)) }

// first returns the tokens of the first blocks that are common, within so many tokens.
func (c *common) first(r *sim.Request, most int64) (tokens float64) {
	for i, id := range r.Blocks {
		if c.prompts[id] < 2 || int64(i+1)*int64(c.block) > most {
			break
		}
		tokens += float64(c.block)
	}
	return tokens
}

// least returns the sum of the n smallest costs.
func least(costs []float64, n int) (sum float64) {
	slices.Sort(costs)
	for _, c := range costs[:n] {
		sum += c
	}
	return sum
}
