package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// A Run is one line of a benchmark's table: requests at one rate, served by one replica. Times are means, in seconds.
type Run struct {
	Rate          float64 // requests per second that were answered
	Input, Output float64 // mean tokens of prompts and answers
	TTFT          float64 // not used by the fit: NaN if unknown
	ITL           float64 // between two tokens
	// Closed says that each request came when another was done, so that the number in flight was constant; otherwise they
	// came at random.
	Closed bool
}

// load returns the mean number of sequences in the batch and of tokens in the cache, by Little's law.
func (r *Run) load() (running, kv float64) {
	running = r.Rate * (r.Output - 1) * r.ITL
	return running, running * (r.Input + r.Output/2)
}

// farOver is how far a run's load may be above what a replica has room for: it is made of means.
const farOver = 2

// leastRuns is the lowest number of runs.
const leastRuns = 6

// mostGroups is the highest number of groups from which confidence intervals are resampled: each run is a group, unless
// there are more runs. The uncertainty of such an interval, 1/sqrt(2 groups), is then below that of the number of resamples.
const mostGroups = 2000

// FitRuns returns the server that explains the runs of a benchmark, by the law of [Fit]. The load follows from Little's law:
//
//	R = Rate (Output - 1) ITL,   K = R (Input + Output/2),   P = Rate Input
//
// If requests come at random to one replica, more is known than in production: a token sees its own sequence beside the R
// others, and a prompt delays the running sequences and those whose prompts were before it, which are x/(1-x) more with x =
// PrefillToken P. If each came when another was done, a prompt delays all that are in flight but its own sequence: R + x - 1.
//
// R may be at most twice Options.MaxSeqs, and K twice Options.KVTokens, where they are given: with more, the times are not in
// seconds, or the rate is that of several replicas. Prompts must not have been in a prefix cache. Rates, and lengths of
// prompts and of answers, must differ between runs, or the parameters cannot be separated. Errors are those of Fit; of wrong
// runs the first is told.
//
// Runs with K above 90 % of Options.KVTokens are left out, see [NearlyFull].
//
// With more than 2000 runs the confidence intervals are resampled from 2000 groups: each has every 2000th run in the order
// of rates.
func FitRuns(runs []Run, o Options) (Result, error) { return fitRuns(runs, o, mostGroups) }

func fitRuns(runs []Run, o Options, groups int) (Result, error) {
	if err := o.Validate("options"); err != nil {
		return Result{}, err
	}
	var e scaling.FieldErrors
	most := 0.0
	for i, r := range runs {
		name := fmt.Sprintf("runs[%d]", i)
		e.Check(r.Rate > 0 && r.Rate <= 1e6, name+".rate", r.Rate, "must be above 0 and at most 1000000")
		e.Check(r.Input >= 1 && r.Input <= 1e9, name+".input", r.Input, "must be within 1 and 1000000000")
		e.Check(r.Output > 1 && r.Output <= 1e9, name+".output", r.Output, "must be above 1 and at most 1000000000")
		e.Check(r.ITL > 0 && r.ITL <= 3600, name+".itl", r.ITL, "must be seconds above 0")
		running, kv := r.load()
		most = max(most, running)
		e.Check(o.MaxSeqs == 0 || !(running > farOver*float64(o.MaxSeqs)), name+".itl", r.ITL,
			fmt.Sprintf("must be seconds, on one replica: with this rate %.0f sequences ran at a time, and %d can", running, o.MaxSeqs))
		e.Check(o.KVTokens == 0 || !(kv > farOver*float64(o.KVTokens)), name+".itl", r.ITL,
			fmt.Sprintf("must be seconds, on one replica: with this rate %.0f tokens were in the cache, which has room for %d", kv, o.KVTokens))
		if e.Err() != nil {
			break // there may be millions
		}
	}
	if err := e.Err(); err != nil {
		return Result{}, err
	}
	f := &fit{Options: o, excluded: map[string]int{}, cache: float64(o.KVTokens), runs: true}
	given := len(runs)
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		_, kv := r.load()
		return o.KVTokens > 0 && kv > fullest*f.cache
	})
	f.exclude(NearlyFull, given-len(runs))
	if len(runs) < leastRuns {
		return Result{}, fmt.Errorf("%w: %d runs, and %d are needed%s", ErrTooLittle, len(runs), leastRuns, reasons(f.excluded))
	}
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.Input, b.Input), cmp.Compare(a.Output, b.Output), cmp.Compare(a.ITL, b.ITL))
	})
	f.Block, f.counted = 1, len(runs)
	for i, r := range runs {
		running, kv := r.load()
		group := int64(i % groups)
		x := row{from: group, to: group, w: 1, y: r.ITL, p: r.Rate * r.Input, r1: running, r2: running, k1: kv, k2: kv, closed: r.Closed}
		if x.random = !r.Closed; x.random {
			x.r1, x.r2 = x.r1+1, x.r2+1
			x.k1, x.k2 = x.k1+r.Input+r.Output/2, x.k2+r.Input+r.Output/2
		}
		f.data = append(f.data, x)
	}
	f.estimate()
	unknown := Estimate{Upper: math.Inf(1), Source: Benchmark, Unknown: "a benchmark does not tell the size of the cache: it must be given, as the engine says it at its start"}
	r, err := f.result([]Point{{Running: most}}, unknown)
	if err != nil {
		return Result{}, err
	}
	r.Points, r.Pods = given, 1
	return r, nil
}
