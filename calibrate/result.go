package calibrate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/splitmix"
)

// A Range has the 5th, 50th and 95th percentile of an observed quantity.
type Range struct{ P5, P50, P95 float64 }

// An Exclusion says how many points were excluded, and why.
type Exclusion struct {
	Reason string
	Points int
}

// A Result is the result of a fit.
type Result struct {
	Document

	Points, Rows int // given points, and equations made of them
	Excluded     []Exclusion
	Window       time.Duration // of an equation
	From, To     time.Time
	Pods         int
	// Counted is the share of equations with a number of sequences that is counted, by Little's law, instead of sampled.
	Counted float64
	// Residual is the robust relative deviation of the times per token from the fit. Outliers is the share of equations that
	// the fit excludes because they are too far from the others.
	Residual, Outliers float64
	// Condition is the condition number of the columns, each scaled to norm one.
	Condition float64
	// The observed ranges: sequences, tokens in the cache, prompt tokens/s and seconds per token.
	Running, KV, Prompts, ITL Range
}

func reasons(excluded map[string]int) string {
	var b strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(excluded)) {
		fmt.Fprintf(&b, "; %d left out: %s", excluded[reason], reason)
	}
	return b.String()
}

// tellable is the difference of predictions below which no form of a law can be trusted: two sets of parameters whose times
// per token differ by less everywhere (as a root mean square) are equally good for the observed data.
const tellable = 0.005

// widest is the largest width of a known parameter's interval, relative to its value.
const widest = 0.4

// negligible is the share of the time up to which a parameter's interval counts as known to be nearly nothing.
const negligible = 0.02

func (f *fit) result(points []Point, capacity Estimate) (Result, error) {
	r := Result{Document: Document{Name: f.Name}, Rows: len(f.data), Window: f.window, Residual: f.sigma, Counted: float64(f.counted) / float64(len(f.data))}
	for _, reason := range slices.Sorted(maps.Keys(f.excluded)) {
		r.Excluded = append(r.Excluded, Exclusion{reason, f.excluded[reason]})
	}
	pods := map[string]bool{}
	for i := range points {
		pods[points[i].Pod] = true
	}
	r.Pods = len(pods)
	slices.SortStableFunc(f.data, func(a, b row) int { return cmp.Compare(a.to, b.to) })
	from, to := f.data[0].from, f.data[len(f.data)-1].to
	for i := range f.data {
		from = min(from, f.data[i].from)
		if f.data[i].robu == 0 {
			r.Outliers++
		}
	}
	r.Outliers /= float64(len(f.data))
	if !f.runs {
		r.From, r.To = time.Unix(0, from).UTC(), time.Unix(0, to).UTC()
	}
	f.Block = cmp.Or(f.Block, min(max(time.Duration((to-from)/48), 2*f.window), 6*time.Hour))
	f.data[0].from = from // blocks count from it
	r.Running = f.over(func(x *row) float64 { return (x.r1 + x.r2) / 2 })
	r.KV = f.over(func(x *row) float64 { return (x.k1 + x.k2) / 2 })
	r.Prompts = f.over(func(x *row) float64 { return x.p })
	r.ITL = f.over(func(x *row) float64 { return x.y })

	estimates := f.intervals(&r)
	r.Base, r.Sequence, r.KVToken, r.PrefillToken = estimates[0], estimates[1], estimates[2], estimates[3]
	f.room(points, capacity, &r)
	if err := r.Validate(); err != nil {
		return Result{}, fmt.Errorf("no server explains the points: %w", err)
	}
	return r, nil
}

func (f *fit) over(value func(*row) float64) Range {
	all := make([]float64, len(f.data))
	for i := range f.data {
		all[i] = value(&f.data[i])
	}
	slices.Sort(all)
	at := func(q float64) float64 { return all[int(q*float64(len(all)-1))] }
	return Range{at(0.05), at(0.5), at(0.95)}
}

// intervals resamples time blocks with replacement and solves again: observations of pods at one time depend on each other,
// and so do observations at nearby times.
func (f *fit) intervals(r *Result) [parameters]Estimate {
	source, enough := Measured, 8
	if f.runs {
		source, enough = Benchmark, leastRuns
	}
	total, blocks := f.moments(), f.blocks()
	r.Condition = total.condition(f.free)
	resamples := cmp.Or(f.Resamples, 400)
	random := splitmix.Stream{State: splitmix.Mix(f.Seed + splitmix.Golden)}
	drawn := make([][]float64, parameters)
	for range resamples {
		var sum moment
		for range blocks {
			sum.add(&blocks[random.Next()%uint64(len(blocks))], 1)
		}
		v := sum.solve(f.free, f.fixedPart())
		for j := range v {
			drawn[j] = append(drawn[j], v[j])
		}
	}
	seen := [parameters]Range{{1, 1, 1}, r.Running, r.KV, r.Prompts}
	var out [parameters]Estimate
	for j := range out {
		e := Estimate{Value: f.beta[j], Lower: f.beta[j], Upper: f.beta[j], Source: source}
		switch {
		case !f.free[j] && f.Fixed != nil && !math.IsNaN(f.Fixed.vector()[j]):
			e.Source = Given
		case !f.free[j]:
			e.Upper, e.Unknown = math.Inf(1), "there was none of what it is the time of"
		default:
			slices.Sort(drawn[j])
			least, most := total.slack(f.free, f.beta, j, tellable)
			low, high := min(e.Value, drawn[j][resamples/40]), max(e.Value, drawn[j][resamples-1-resamples/40])
			met := f.met(j)
			e.Lower, e.Upper = max(0, min(low-met, least)), max(high+met, most)
			share := seen[j].P95 // of the time per token that one second of the parameter makes, at a high value of its factor
			if j != 3 {          // prompts come per second
				share /= r.ITL.P50
			}
			wide := func(width float64) bool { return width > widest*e.Value && width*share > negligible }
			switch {
			case len(blocks) < enough:
				e.Unknown = fmt.Sprintf("the data is of %d stretches of %s, and %d are needed for an interval", len(blocks), f.Block, enough)
			case wide(most - least):
				e.Unknown = fmt.Sprintf("anything from %.3g to %.3g s explains what was seen to within %g %%: its share of the time went up and down with the others'", least, most, 100*tellable)
			case wide(high - low):
				e.Unknown = fmt.Sprintf("its interval of confidence, %.3g to %.3g s, is wider than %g %% of its value", low, high, 100*widest)
			case wide(e.Upper - e.Lower):
				e.Unknown = fmt.Sprintf("few sequences ran at a time (%.3g in the middle), and which of them a prompt meets depends on the router: it is from %.3g to %.3g s", r.Running.P50, e.Lower, e.Upper)
			}
		}
		out[j] = e
	}
	return out
}

// met returns the possible error of a parameter that comes from how prompts meet sequences. A prompt delays the sequences
// that it meets. Their number equals the average only if requests go to replicas at random: a least-loaded router sends them
// where there are fewer, and in a burst they meet each other. The error is one sequence in either direction: for
// PrefillToken its share of all, and for Base the time of the prompts of one sequence in a step.
func (f *fit) met(j int) float64 {
	if j != 0 && j != 3 {
		return 0
	}
	sum, weight := 0.0, 0.0
	for i := range f.data {
		r := &f.data[i]
		running := max((r.r1+r.r2)/2, 1)
		if j == 0 {
			sum += r.w * f.beta[3] * r.p * r.f / running
		} else {
			sum += r.w * f.beta[3] / running
		}
		weight += r.w
	}
	return sum / weight
}

// vLLM's defaults.
const (
	defaultMaxSeqs     = 256
	defaultTokenBudget = 8192
)

// room sets the capacities.
func (f *fit) room(points []Point, capacity Estimate, r *Result) {
	r.KVTokens = capacity
	if f.KVTokens > 0 {
		r.KVTokens = Estimate{Value: float64(f.KVTokens), Lower: float64(f.KVTokens), Upper: float64(f.KVTokens), Source: Given}
	}
	if f.shares {
		const why = "the cache is known as a share in use only: its size in tokens must be given, as the engine says it at its start"
		r.KVTokens.Unknown, r.KVToken.Unknown = why, why
	}
	seen := 0.0
	for i := range points {
		if finite(points[i].Running) {
			seen = max(seen, min(math.Ceil(points[i].Running), 1<<20))
		}
	}
	limit := func(given int32, assumed, least float64) Estimate {
		if given > 0 {
			return Estimate{Value: float64(given), Lower: float64(given), Upper: float64(given), Source: Given}
		}
		return Estimate{Value: max(assumed, least), Lower: max(least, 1), Upper: math.Inf(1), Source: Assumed}
	}
	r.MaxSeqs = limit(f.MaxSeqs, defaultMaxSeqs, seen)
	r.TokenBudget = limit(f.TokenBudget, defaultTokenBudget, 1)
}

// capacity returns the size of a cache in tokens, from the points that have both tokens and the share in use: the median of
// their ratio, weighted by the content, with the middle 95 % as its interval.
func (f *fit) capacity(points []Point) Estimate {
	type ratio struct {
		value, weight float64
		at            int64
		pod           string
	}
	var all []ratio
	for i := range points {
		p := &points[i]
		if p.KVTokens > 0 && finite(p.KVTokens) && p.KVUse > 0.001 && p.KVUse <= 1 {
			all = append(all, ratio{p.KVTokens / p.KVUse, p.KVUse, p.At.UnixNano(), p.Pod})
		}
	}
	slices.SortFunc(all, func(a, b ratio) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.weight, b.weight), cmp.Compare(a.at, b.at), cmp.Compare(a.pod, b.pod))
	})
	all = slices.Compact(all) // duplicate points count once
	total := 0.0
	for _, x := range all {
		total += x.weight
	}
	if len(all) < leastRows {
		return Estimate{Lower: 0, Upper: math.Inf(1), Source: Measured, Unknown: "no points have both the tokens in the cache and the share of it in use"}
	}
	at := func(q float64) float64 {
		left := q * total
		for _, x := range all {
			if left -= x.weight; left <= 0 {
				return math.Round(x.value)
			}
		}
		return math.Round(all[len(all)-1].value)
	}
	e := Estimate{Value: at(0.5), Lower: at(0.025), Upper: at(0.975), Source: Measured}
	if e.Upper-e.Lower > e.Value {
		e.Unknown = "the tokens in the cache and the share of it in use do not go together"
	}
	return e
}
