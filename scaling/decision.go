package scaling

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/enum"
)

// A Verdict is what a decision asks for.
type Verdict int8

// The verdicts. Only Up and Down ask for a write.
const (
	// Unknown means that nothing can be said: no data, or a state that cannot be read. It never acts.
	Unknown Verdict = iota
	// Hold means that nothing is to be written. It is not a count: an adapter never writes the present count back.
	Hold
	// Up means that Replicas, above the present count, is to be written.
	Up
	// Down means that Replicas, below the present count, is to be written.
	Down
)

// String returns the verdict's name.
func (v Verdict) String() string {
	return enum.Name(int8(v), "Verdict", "Unknown", "Hold", "Up", "Down")
}

// MarshalText returns the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// inlineSteps is how many steps a decision holds without allocating: enough for a handful of metrics under a floor.
const inlineSteps = 8

// A Decision is what an algorithm asks for and why.
//
// The zero value is Unknown and asks for nothing.
type Decision struct {
	Verdict Verdict
	// From is the count that was decided on.
	From int32
	// Replicas is the count asked for. It is to be written only for Up and Down; for Hold and Unknown it is From.
	Replicas int32
	// Next is the earliest time at which time alone could change the answer: when to decide again although nothing
	// new was seen. The zero time means never.
	Next time.Time

	count    int
	branches uint16
	inline   [inlineSteps]Step
	more     []Step
}

// HoldAt returns a decision that holds at the present count, with an empty chain: where an algorithm starts.
func HoldAt(spec int32) Decision {
	return Decision{Verdict: Hold, From: spec, Replicas: spec}
}

// Start makes a zero decision one that holds at the present count: HoldAt in place, as a decision is large to copy.
func (d *Decision) Start(spec int32) {
	d.Verdict, d.From, d.Replicas = Hold, spec, spec
}

// UnknownAt returns a decision that can say nothing, for the given reason.
func UnknownAt(spec int32, code Code, subject string, numbers ...float64) Decision {
	d := HoldAt(spec)
	d.To(spec, code, subject, numbers...)
	d.Verdict = Unknown
	return d
}

// Acts reports whether the decision asks for a write.
func (d *Decision) Acts() bool { return d.Verdict == Up || d.Verdict == Down }

// To appends a step that takes the decision to n replicas, and sets the verdict by comparing n with From. Numbers
// beyond the fourth are not kept.
func (d *Decision) To(n int32, code Code, subject string, numbers ...float64) {
	d.add(Step{Code: code, From: d.Replicas, To: n, Subject: subject, Numbers: pack(numbers)})
	d.Replicas = n
	switch {
	case n > d.From:
		d.Verdict = Up
	case n < d.From:
		d.Verdict = Down
	default:
		d.Verdict = Hold
	}
}

// Clamp appends the step that takes the decision into the bounds, if it is outside.
func (d *Decision) Clamp(b Bounds) {
	switch n := d.Replicas; {
	case n < b.Min:
		d.To(b.Min, BelowMin, "", float64(n), float64(b.Min))
	case n > b.Max:
		d.To(b.Max, AboveMax, "", float64(n), float64(b.Max))
	}
}

// Consider notes, on a branch of its own, a step from From to n that was looked at and did not decide.
func (d *Decision) Consider(n int32, code Code, subject string, numbers ...float64) {
	d.branches++
	d.add(Step{Code: code, From: d.From, To: n, Subject: subject, Branch: d.branches, Numbers: pack(numbers)})
}

// ConsiderAll notes every line of another decision as one that was looked at and did not decide. Its warnings stay
// warnings, unless it was Unknown and d is not.
func (d *Decision) ConsiderAll(other *Decision) {
	first := d.branches + 1
	for i := range other.count {
		s := *other.step(i)
		s.Branch += first
		s.Warning = s.Warning && (other.Verdict != Unknown || d.Verdict == Unknown)
		d.branches = max(d.branches, s.Branch)
		d.add(s)
	}
}

// NextBy sets Next to t, unless Next is earlier already. The zero time changes nothing.
func (d *Decision) NextBy(t time.Time) {
	if !t.IsZero() && (d.Next.IsZero() || t.Before(d.Next)) {
		d.Next = t
	}
}

// Steps returns the chain: first the line that led to the result (branch 0), whose first From is the decision's From,
// each From the To before it, and the last To the result; then the lines that were considered beside it.
func (d *Decision) Steps() []Step {
	steps := make([]Step, 0, d.count)
	for branch := uint16(0); branch <= d.branches; branch++ {
		for i := range d.count {
			if s := d.step(i); s.Branch == branch {
				steps = append(steps, *s)
			}
		}
	}
	return steps
}

// Find returns the first step that has one of the codes, on the deciding line or considered, without allocating.
func (d *Decision) Find(codes ...Code) (Step, bool) {
	for i := range d.count {
		if s := d.step(i); slices.Contains(codes, s.Code) {
			return *s, true
		}
	}
	return Step{}, false
}

// Code returns the code of the last step on the deciding line: the rule that had the last word. It is empty for an
// empty chain.
func (d *Decision) Code() Code {
	if s := d.last(); s != nil {
		return s.Code
	}
	return ""
}

// Reason returns the decision in one line, for events and logs:
//
//	Up 3 -> 4: AboveHigh vllm:num_requests_waiting lower=12 > high=10, held=30s >= window=30s
//
// It names the rule that had the last word, before it those that moved the count, and after it the warnings.
func (d *Decision) Reason() string {
	var b strings.Builder
	b.WriteString(d.headline())
	sep := ": "
	write := func(s *Step) {
		b.WriteString(sep)
		sep = "; "
		b.WriteString(s.Code.String())
		if because := s.Because(); because != "" {
			b.WriteByte(' ')
			b.WriteString(because)
		}
	}
	last := d.last()
	for i := range d.count {
		if s := d.step(i); s.Branch == 0 && (s == last || s.From != s.To) {
			write(s)
		}
	}
	for i := range d.count {
		if s := d.step(i); s.Warning {
			write(s)
		}
	}
	return b.String()
}

// Explain returns the whole chain as a table, a line a step, and below it the lines that were considered, and the
// warnings:
//
//	Up 3 -> 4
//	  AboveHigh       3 -> 4    vllm:num_requests_waiting lower=12 > high=10, held=30s >= window=30s
//	considered
//	  Between         3 -> 3    vllm:kv_cache_usage_perc lower=0.4 <= high=0.9, upper=0.4 >= low=0.2
func (d *Decision) Explain() string {
	var b strings.Builder
	b.WriteString(d.headline())
	b.WriteByte('\n')
	steps := d.Steps()
	for _, part := range []struct {
		heading string
		has     func(Step) bool
	}{
		{"", func(s Step) bool { return s.Branch == 0 }},
		{"considered\n", func(s Step) bool { return s.Branch > 0 && !s.Warning }},
		{"warnings\n", func(s Step) bool { return s.Warning }},
	} {
		for _, s := range steps {
			if !part.has(s) {
				continue
			}
			b.WriteString(part.heading)
			part.heading = ""
			line := fmt.Sprintf("  %-14s %4d -> %-4d %s", s.Code, s.From, s.To, s.Because())
			b.WriteString(strings.TrimRight(line, " "))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (d *Decision) headline() string {
	if d.Acts() {
		return fmt.Sprintf("%s %d -> %d", d.Verdict, d.From, d.Replicas)
	}
	return fmt.Sprintf("%s at %d", d.Verdict, d.From)
}

// MarshalJSON writes the decision with its steps, reason and considered lines, for logs and status fields.
func (d Decision) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Verdict  Verdict   `json:"verdict"`
		From     int32     `json:"from"`
		Replicas int32     `json:"replicas"`
		Next     time.Time `json:"next,omitzero"`
		Reason   string    `json:"reason"`
		Steps    []Step    `json:"steps"`
	}{d.Verdict, d.From, d.Replicas, d.Next, d.Reason(), d.Steps()})
}

func (d *Decision) add(s Step) {
	if d.count < inlineSteps {
		d.inline[d.count] = s
	} else {
		d.more = append(d.more, s)
	}
	d.count++
}

func (d *Decision) step(i int) *Step {
	if i < inlineSteps {
		return &d.inline[i]
	}
	return &d.more[i-inlineSteps]
}

// last returns the last step on the deciding line, or nil.
func (d *Decision) last() *Step {
	for i := d.count - 1; i >= 0; i-- {
		if s := d.step(i); s.Branch == 0 {
			return s
		}
	}
	return nil
}

func pack(numbers []float64) (packed [maxNumbers]float64) {
	copy(packed[:], numbers)
	return packed
}
