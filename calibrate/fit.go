package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/scaling"
)

// Options say how to fit. The zero value means the defaults.
type Options struct {
	// Name is the name of the server, for display.
	Name string
	// KVTokens is the size of the KV cache in tokens, as the engine reports at its start (vLLM's num_gpu_blocks times its
	// block size). With 0 it is unknown, and is measured if points have both tokens and the share in use.
	KVTokens int64
	// MaxSeqs and TokenBudget are the engine's settings (vLLM's max_num_seqs and max_num_batched_tokens). 0 is unknown: no
	// counter reports them, and vLLM's defaults of 256 and 8192 are assumed, or the most sequences observed if that is more.
	MaxSeqs, TokenBudget int32
	// Together is how many intervals between scrapes make one equation. 0 means as many as make five minutes, but at least
	// four.
	Together int
	// Block is the length of the time blocks that are resampled for the confidence intervals. 0 means a 48th of the whole
	// time, but at least two equations and at most six hours.
	Block time.Duration
	// Resamples is the number of resamples; 0 means 400.
	Resamples int
	// Seed is the seed of the resamples.
	Seed uint64
	// Fixed has parameters that are known from elsewhere and are not fitted. NaN means that a parameter is fitted; nil means
	// that all are.
	Fixed *Law
}

// A Law is the four parameters of the time of a step, in seconds, as in sim.Server.
type Law struct {
	Base, PrefillToken, Sequence, KVToken float64
}

func (l *Law) vector() vector { return vector{l.Base, l.Sequence, l.KVToken, l.PrefillToken} }

// ITL returns the mean time between two tokens by the law, (Base + Sequence R + KVToken K) / (1 - PrefillToken P), or +Inf
// if prompts take all the time.
func (l *Law) ITL(running, kvTokens, promptRate float64) float64 {
	if rest := 1 - l.PrefillToken*promptRate; rest > 0 {
		return (l.Base + l.Sequence*running + l.KVToken*kvTokens) / rest
	}
	return math.Inf(1)
}

// ErrTooLittle is the error if the points give too few equations.
var ErrTooLittle = errors.New("too little to fit")

// leastRows is the lowest number of equations: five for each parameter.
const leastRows = 20

// A fit is one call of Fit.
type fit struct {
	Options

	excluded map[string]int
	cache    float64 // tokens of a full cache; NaN if unknown
	shares   bool    // cache contents are in shares of a full cache
	each     float64 // mean cache content per sequence
	together int
	step     float64 // ns
	window   time.Duration
	runs     bool // from a benchmark, not from production
	counted  int  // rows with counted, not sampled, sequences

	data  []row
	scale vector // of the columns
	beta  vector
	free  [parameters]bool
	sigma float64 // standard deviation of the relative residuals
}

func (f *fit) exclude(reason string, n int) {
	if n > 0 {
		f.excluded[reason] += n
	}
}

// Validate reports every wrong field at once, under field.
func (o *Options) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(printable.Is(o.Name), field+".name", o.Name, printable.Rule)
	e.Check(o.KVTokens >= 0 && o.KVTokens <= 1e9, field+".kvTokens", o.KVTokens, "must be within 0 and 1000000000")
	e.Check(o.MaxSeqs >= 0 && o.MaxSeqs <= 1<<20, field+".maxSeqs", o.MaxSeqs, "must be within 0 and 1048576")
	e.Check(o.TokenBudget >= 0, field+".tokenBudget", o.TokenBudget, "must not be negative")
	e.Check(o.Together == 0 || o.Together >= 2 && o.Together <= 10_000, field+".together", o.Together, "must be 0, or within 2 and 10000")
	e.Check(o.Block == 0 || o.Block >= time.Minute, field+".block", o.Block, "must be 0, or at least 1m")
	e.Check(o.Resamples == 0 || o.Resamples >= 40 && o.Resamples <= 100_000, field+".resamples", o.Resamples, "must be 0, or within 40 and 100000")
	if o.Fixed != nil {
		for i, x := range o.Fixed.vector() {
			e.Check(math.IsNaN(x) || x >= 0 && x <= 3600, field+".fixed."+nameOf(i), x, "must be seconds, or NaN for what is not known")
		}
	}
	return e.Err()
}

// Fit returns the server that explains the points. It fits the law of sim.Server,
//
//	ITL (1 - PrefillToken P) = Base + Sequence R + KVToken K
//
// with the R sequences that run on the replica, the K tokens in its KV cache, and the P prompt tokens that it computes per
// second. The package documentation describes the method.
//
// The order of the points, and duplicate points, do not matter. A parameter that the observed range does not determine is
// not Known, and says why; its interval is the bounds that follow. Errors are those of Options.Validate and
// ErrTooLittle, and those of Document.Validate where no server explains the points.
func Fit(points []Point, o Options) (Result, error) {
	if err := o.Validate("options"); err != nil {
		return Result{}, err
	}
	f := &fit{Options: o, excluded: map[string]int{}, together: o.Together, cache: float64(o.KVTokens)}
	capacity := f.capacity(points)
	f.cache = cmp.Or(f.cache, capacity.Value)
	if f.cache == 0 {
		f.cache, f.shares = math.NaN(), !slices.ContainsFunc(points, func(p Point) bool { return p.KVTokens > 0 && finite(p.KVTokens) })
	}
	all := f.samples(points)
	f.each = perSequence(all)
	f.data = f.rows(all)
	if len(f.data) < leastRows {
		return Result{}, fmt.Errorf("%w: %d points make %d equations of %s each, and %d are needed%s",
			ErrTooLittle, len(points), len(f.data), f.window, leastRows, reasons(f.excluded))
	}
	f.estimate()
	r, err := f.result(points, capacity)
	if err != nil {
		return Result{}, err
	}
	r.Points = len(points)
	return r, nil
}

// perSequence returns the mean number of tokens in the cache per sequence.
func perSequence(all []sample) float64 {
	kv, running := 0.0, 0.0
	for i := range all {
		if s := &all[i]; finite(s.kv) && finite(s.running) {
			kv += s.kv
			running += s.running
		}
	}
	if running == 0 {
		return 0
	}
	return kv / running
}

// x returns a row's columns: Base, Sequence, KVToken and PrefillToken.
func (r *row) x() vector { return vector{1, (r.r1 + r.r2) / 2, (r.k1 + r.k2) / 2, r.q * r.f} }

// delaying returns the prompt tokens per second that delay a token of an average sequence, if prompts take a share of the time.
func (r *row) delaying(share float64) float64 {
	switch running := (r.r1 + r.r2) / 2; {
	case r.random:
		return r.p * (1 + share/(1-share)/max(running-1, 1))
	case r.closed: // as many more are in flight as prompts are computed, and a prompt delays all but its own sequence
		return r.p * max(0, 1-(1-share)/running)
	}
	return r.p
}

// Robustness: Tukey's biweight with the constant that has 95 % efficiency for normal errors.
const tukey = 4.685

// estimate finds the parameters: Gauss-Newton iteration for the ITL, in which each step is a weighted least squares fit with
// non-negative coefficients and weights from the residuals of the step before.
func (f *fit) estimate() {
	f.begin()
	for i := range 60 {
		f.predict()
		f.weigh(i)
		total := f.moments()
		next := total.solve(f.free, f.fixedPart())
		moved := 0.0
		for j := range next {
			moved = max(moved, math.Abs(next[j]-f.beta[j])*f.scale[j])
		}
		f.beta = next
		if i > 8 && moved < 1e-9*f.typical() {
			break
		}
	}
	f.predict()
	f.weigh(99)
}

// begin sets scales and the first guess, in which Base is all of the time.
func (f *fit) begin() {
	n := 0.0
	y := make([]float64, len(f.data))
	var sums vector
	for i := range f.data {
		r := &f.data[i]
		r.f, r.h, r.robu, r.q = r.y, 1, 1, r.delaying(0)
		x := r.x()
		for j := range sums {
			sums[j] += r.w * x[j]
		}
		n += r.w
		y[i] = r.y
	}
	for j := range sums {
		if f.scale[j] = sums[j] / n; f.scale[j] <= 0 {
			f.scale[j] = 1
		}
		f.free[j] = sums[j] > 0
		if f.Fixed != nil && !math.IsNaN(f.Fixed.vector()[j]) {
			f.free[j] = false
			f.beta[j] = f.Fixed.vector()[j]
		}
	}
	if f.free[0] {
		f.beta[0] = median(y)
	}
}

// typical is a typical time.
func (f *fit) typical() float64 {
	s := 0.0
	for j := range f.beta {
		s += f.beta[j] * f.scale[j]
	}
	return s
}

func (f *fit) fixedPart() vector {
	var v vector
	for j := range v {
		if !f.free[j] {
			v[j] = f.beta[j]
		}
	}
	return v
}

// most is the highest share of the time that prompts may take in the model: above it the law is not valid.
const most = 0.95

// predict sets the model's prediction of each row.
func (f *fit) predict() {
	for i := range f.data {
		r := &f.data[i]
		r.q = r.delaying(min(f.beta[3]*r.p, 0.8))
		x := r.x()
		r.h = 1 / (1 - min(f.beta[3]*r.q, most))
		r.f = max((f.beta[0]+f.beta[1]*x[1]+f.beta[2]*x[2])*r.h, 1e-9)
	}
}

// weigh sets the robust weights: in the first rounds Huber's, which find the majority from any start, then Tukey's, which
// exclude outliers. Errors of replicas are on one side (preemption, other processes, pauses), and with Huber's weights each
// of them would have some influence. A deviation that is too small to be distinguishable never excludes a row: if half of
// the equations fit exactly, others deviate by the rounding of times.
func (f *fit) weigh(round int) {
	size := make([]float64, len(f.data))
	for i := range f.data {
		r := &f.data[i]
		size[i] = math.Abs(r.y-r.f) / r.f
	}
	f.sigma = max(1.4826*median(size), 1e-7)
	scale := max(f.sigma, tellable/tukey)
	for i := range f.data {
		r := &f.data[i]
		u := math.Abs(r.y-r.f) / r.f / scale
		switch {
		case round < 5:
			r.robu = min(1, 1.345/u)
		case u < tukey:
			r.robu = 1 - u*u/(tukey*tukey)
			r.robu *= r.robu
		default:
			r.robu = 0
		}
	}
}

// moments adds up the equations of one linear step: the target (y - f)/h + x beta on the columns x, with weights relative to
// the model's ITL. In the squares of R and K, one half of the scrapes is multiplied by the other.
func (f *fit) moments() (total moment) {
	for i := range f.data {
		m := f.one(&f.data[i])
		total.add(&m, 1)
	}
	return total
}

// blocks returns the moments of the time blocks that have rows, which must be in order of time.
func (f *fit) blocks() (all []moment) {
	last := -1
	for i := range f.data {
		if at := f.block(&f.data[i]); at != last {
			all, last = append(all, moment{}), at
		}
		m := f.one(&f.data[i])
		all[len(all)-1].add(&m, 1)
	}
	return slices.DeleteFunc(all, func(m moment) bool { return m.n == 0 })
}

func (f *fit) one(r *row) (m moment) {
	w := r.w * r.robu / (r.f * r.f)
	if w == 0 {
		return m
	}
	x := r.x()
	target := r.f + (r.y-r.f)/r.h
	w *= r.h * r.h
	for j := range x {
		m.b[j] = w * x[j] * target
		for k := range x {
			m.a[j][k] = w * x[j] * x[k]
		}
	}
	m.a[1][1] = w * r.r1 * r.r2
	m.a[2][2] = w * r.k1 * r.k2
	m.a[1][2] = w * (r.r1*r.k2 + r.r2*r.k1) / 2
	m.a[2][1] = m.a[1][2]
	m.c, m.n = w*target*target, 1
	return m
}

// block returns the number of the time block of a row.
func (f *fit) block(r *row) int { return int((r.to - f.data[0].from) / int64(f.Block)) }

func nameOf(j int) string {
	return [...]string{"base", "sequence", "kvToken", "prefillToken"}[j]
}
