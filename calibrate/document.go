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

// Source says where a number is from.
type Source string

// The sources.
const (
	Measured  Source = "measured"  // fitted to what was seen in production
	Benchmark Source = "benchmark" // fitted to the table of a benchmark
	Computed  Source = "roofline"  // computed from the model and the card; nobody has measured it
	Given     Source = "given"     // said by who knows, as a setting of the engine
	Assumed   Source = "assumed"   // an engine's default
)

// An Estimate is a parameter with its interval.
type Estimate struct {
	Value float64
	// Lower and Upper are the ends of the interval: of 95 % confidence, and never less than what cannot be told apart.
	Lower, Upper float64
	Source       Source
	// Unknown says why the data does not tell it; Value is then one of many that explain what was seen, and Lower and Upper
	// the bounds that follow. It is empty for what is known.
	Unknown string
}

// Known reports whether the value can be relied on beyond what was seen.
func (e *Estimate) Known() bool { return e.Unknown == "" }

// A Document is a server with where each number is from, as it stands in a file: see [Read] and [Document.Text].
type Document struct {
	Name string
	// The parameters of sim.Server, in seconds and tokens.
	Base, PrefillToken, Sequence, KVToken, KVTokens, MaxSeqs, TokenBudget Estimate
	// Startup is how long a replica takes to be ready; nil is not known.
	Startup *Startup
}

// A field is a parameter of a document by its name.
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

// Server returns the server for the simulator. What is not known is in it by the value that explains what was seen: within the
// loads that were seen it does, see [Document.Unknown]. Errors are those of sim.Server.Validate, as where the size of the cache is not
// known.
func (d *Document) Server() (sim.Server, error) {
	whole := func(x float64) int32 { return int32(min(max(math.Round(x), 0), math.MaxInt32)) }
	s := sim.Server{
		Name: d.Name, Base: d.Base.Value, PrefillToken: d.PrefillToken.Value, Sequence: d.Sequence.Value, KVToken: d.KVToken.Value,
		MaxSeqs: whole(d.MaxSeqs.Value), TokenBudget: whole(d.TokenBudget.Value), KVTokens: int64(min(max(math.Round(d.KVTokens.Value), 0), 1e15)),
	}
	return s, s.Validate("server")
}

// Unknown returns what cannot be relied on beyond what was seen, each as "field: why", in the document's order.
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

// Startup is how long replicas took from being asked for to being ready.
type Startup struct {
	Starts int // that it is made of
	// Quantiles. P50Lower and P50Upper are the interval of 95 % confidence of the median.
	P50, P90, P99, Max time.Duration
	P50Lower, P50Upper time.Duration
	Source             Source
}

// Starts returns the distribution of starts. Those that take no time or less are not taken for starts; the error is
// ErrTooLittle where none is left.
func Starts(took []time.Duration) (*Startup, error) {
	took = slices.DeleteFunc(slices.Clone(took), func(d time.Duration) bool { return d <= 0 })
	if len(took) == 0 {
		return nil, fmt.Errorf("%w: no start was seen", ErrTooLittle)
	}
	slices.Sort(took)
	n := float64(len(took))
	at := func(rank float64) time.Duration { return took[int(min(max(math.Ceil(rank), 1), n))-1] }
	half := 1.96 * math.Sqrt(n) / 2 // of ranks: a binomial's
	return &Startup{
		Starts: len(took), P50: at(n / 2), P90: at(0.9 * n), P99: at(0.99 * n), Max: at(n),
		P50Lower: at(math.Floor(n/2 - half)), P50Upper: at(n/2 + half + 1), Source: Measured,
	}, nil
}

// Sim returns the start for the simulator: lognormal, with the median and the 90th percentile as they were, and none longer than
// the longest.
func (s *Startup) Sim() sim.Startup {
	const z90 = 1.2815515655446004
	return sim.Startup{Load: sim.Delay{Median: s.P50, Sigma: math.Log(s.P90.Seconds()/s.P50.Seconds()) / z90, Max: s.Max}}
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
