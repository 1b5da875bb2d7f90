package calibrate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// Source says where a number comes from.
type Source string

// The sources.
const (
	Measured  Source = "measured"  // fitted to observations in production
	Benchmark Source = "benchmark" // fitted to the table of a benchmark
	Computed  Source = "roofline"  // computed from the model and the card, not measured
	Given     Source = "given"     // given by the user, for example a setting of the engine
	Assumed   Source = "assumed"   // an engine's default
)

// An Estimate is a parameter with its interval.
type Estimate struct {
	Value float64
	// Lower and Upper are the ends of the interval: of 95 % confidence, and at least as wide as what the data cannot
	// distinguish.
	Lower, Upper float64
	Source       Source
	// Unknown says why the data does not determine the parameter. Value is then one of many that explain the observations,
	// and Lower and Upper are the bounds that follow. It is empty for a known parameter.
	Unknown string
}

// Known reports whether the value can be relied on beyond the observed range.
func (e *Estimate) Known() bool { return e.Unknown == "" }

// A Document is a server with the source of each number, as in a file: see [Read] and [Document.Text].
type Document struct {
	Name string
	// The parameters of sim.Server, in seconds and tokens.
	Base, PrefillToken, Sequence, KVToken, KVTokens, MaxSeqs, TokenBudget Estimate
	// Startup is the time that a replica takes to be ready; nil is unknown.
	Startup *Startup
}

// A field is a parameter of a document with its name.
type field struct {
	name string
	*Estimate
}

func (d *Document) fields() []field {
	return []field{
		{"base", &d.Base},
		{"prefillToken", &d.PrefillToken},
		{"sequence", &d.Sequence},
		{"kvToken", &d.KVToken},
		{"maxSeqs", &d.MaxSeqs},
		{"tokenBudget", &d.TokenBudget},
		{"kvTokens", &d.KVTokens},
	}
}

// Law returns the step's parameters.
func (d *Document) Law() Law {
	return Law{Base: d.Base.Value, PrefillToken: d.PrefillToken.Value, Sequence: d.Sequence.Value, KVToken: d.KVToken.Value}
}

// Server returns the server for the simulator. An unknown parameter has the value that explains the observations: within the
// observed loads the server is right, see [Document.Unknown]. Errors are those of sim.Server.Validate, for example if the
// size of the cache is unknown.
func (d *Document) Server() (sim.Server, error) {
	whole := func(x float64) int32 { return int32(min(max(math.Round(x), 0), math.MaxInt32)) }
	s := sim.Server{
		Name: d.Name, Base: d.Base.Value, PrefillToken: d.PrefillToken.Value, Sequence: d.Sequence.Value, KVToken: d.KVToken.Value,
		MaxSeqs: whole(d.MaxSeqs.Value), TokenBudget: whole(d.TokenBudget.Value), KVTokens: int64(min(max(math.Round(d.KVTokens.Value), 0), 1e15)),
	}
	return s, s.Validate("server")
}

// Unknown returns what cannot be relied on beyond the observed range, each as "field: why", in the document's order.
func (d *Document) Unknown() (all []string) {
	for _, f := range d.fields() {
		if !f.Known() {
			all = append(all, f.name+": "+f.Unknown)
		}
	}
	return all
}

// Validate reports every wrong number at once, under its name.
func (d *Document) Validate() error {
	var e scaling.FieldErrors
	e.Check(printable.Is(d.Name), "name", d.Name, printable.Rule)
	for _, f := range d.fields() {
		e.Check(f.Value >= 0 && f.Value <= 1e9, f.name+".value", f.Value, "must be within 0 and 1000000000")
		e.Check(f.Lower >= 0 && f.Lower <= f.Value, f.name+".lower", f.Lower, fmt.Sprintf("must be within 0 and the value, %g", f.Value))
		e.Check(f.Upper >= f.Value, f.name+".upper", f.Upper, fmt.Sprintf("must not be below the value, %g", f.Value))
		e.Check(slices.Contains(sources(), f.Source), f.name+".source", string(f.Source), "must be measured, benchmark, roofline, given or assumed")
		e.Check(printable.Is(f.Unknown), f.name+".unknown", f.Unknown, printable.Rule)
	}
	for _, f := range []field{{"maxSeqs", &d.MaxSeqs}, {"tokenBudget", &d.TokenBudget}, {"kvTokens", &d.KVTokens}} {
		e.Check(f.Value == math.Round(f.Value), f.name+".value", f.Value, "must be whole")
	}
	if d.Startup != nil {
		e.Add(d.Startup.validate("startup"))
	}
	return e.Err()
}

func sources() []Source { return []Source{Measured, Benchmark, Computed, Given, Assumed} }

// Startup is the distribution of the times of replicas from request to ready.
type Startup struct {
	Starts int // number of observed starts
	// Quantiles. P50Lower and P50Upper are the ends of the 95 % confidence interval of the median.
	P50, P90, P99, Max time.Duration
	P50Lower, P50Upper time.Duration
	Source             Source
}

// Starts returns the distribution of starts. Times of zero or less are not counted as starts, and more than a day counts as a day; if
// none is left, the error is ErrTooLittle.
func Starts(took []time.Duration) (*Startup, error) {
	took = slices.DeleteFunc(slices.Clone(took), func(d time.Duration) bool { return d <= 0 })
	if len(took) == 0 {
		return nil, fmt.Errorf("%w: no start was seen", ErrTooLittle)
	}
	for i := range took {
		took[i] = min(took[i], 24*time.Hour)
	}
	slices.Sort(took)
	n := float64(len(took))
	at := func(rank float64) time.Duration { return took[int(min(max(math.Ceil(rank), 1), n))-1] }
	half := 1.96 * math.Sqrt(n) / 2 // in ranks: of a binomial distribution
	return &Startup{
		Starts: len(took), P50: at(n / 2), P90: at(0.9 * n), P99: at(0.99 * n), Max: at(n),
		P50Lower: at(math.Floor(n/2 - half)), P50Upper: at(n/2 + half + 1), Source: Measured,
	}, nil
}

// Sim returns the start for the simulator: lognormal, with the same median and 90th percentile, and cut at the longest
// start. The 90th percentile is lower where it is more than 600 times the median, as no sim.Delay spreads wider.
func (s *Startup) Sim() sim.Startup {
	const z90, widest = 1.2815515655446004, 5
	sigma := math.Log(s.P90.Seconds()/s.P50.Seconds()) / z90
	return sim.Startup{Load: sim.Delay{Median: s.P50, Sigma: min(sigma, widest), Max: s.Max}}
}

func (s *Startup) validate(field string) error {
	var e scaling.FieldErrors
	e.Check(s.Starts >= 1, field+".starts", s.Starts, "must be at least 1")
	e.Check(s.P50 > 0 && s.P50 <= 24*time.Hour, field+".p50", s.P50, "must be above 0 and at most a day")
	e.Check(s.P90 >= s.P50 && s.P90 <= 24*time.Hour, field+".p90", s.P90, "must not be below p50, and at most a day")
	e.Check(s.P99 >= s.P90, field+".p99", s.P99, "must not be below p90")
	e.Check(s.Max >= s.P99 && s.Max <= 24*time.Hour, field+".max", s.Max, "must not be below p99, and at most a day")
	e.Check(s.P50Lower > 0 && s.P50Lower <= s.P50, field+".p50Lower", s.P50Lower, "must be above 0 and not above p50")
	e.Check(s.P50Upper >= s.P50, field+".p50Upper", s.P50Upper, "must not be below p50")
	e.Check(slices.Contains(sources(), s.Source), field+".source", string(s.Source), "must be measured, benchmark, roofline, given or assumed")
	return e.Err()
}
