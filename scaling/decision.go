package scaling

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/enum"
)

// A Verdict is what a decision asks for.
type Verdict int8

// The verdicts. Only Up and Down ask for a write.
const (
	// Unknown means that no decision is possible: there is no data, or the state cannot be read. Nothing is written.
	Unknown Verdict = iota
	// Hold means that the count stays as it is. An adapter writes nothing, not even the present count.
	Hold
	// Up means that Replicas is above the present count and is to be written.
	Up
	// Down means that Replicas is below the present count and is to be written.
	Down
)

// String returns the verdict's name.
func (v Verdict) String() string {
	return enum.Name(int8(v), "Verdict", "Unknown", "Hold", "Up", "Down")
}

// MarshalText returns the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a verdict's name.
func (v *Verdict) UnmarshalText(text []byte) error {
	for known := Unknown; known <= Down; known++ {
		if string(text) == known.String() {
			*v = known
			return nil
		}
	}
	return &FieldError{Field: "verdict", Value: string(text), Rule: "must be Unknown, Hold, Up or Down"}
}

// inlineSteps is how many steps a decision holds without allocating: enough for a handful of metrics under a floor.
const inlineSteps = 8

// A Decision is what an algorithm asks for and why.
//
// The zero value is Unknown and asks for nothing.
type Decision struct {
	Verdict Verdict
	// From is the present count, from which the decision starts.
	From int32
	// Replicas is the count asked for. It is to be written only for Up and Down; for Hold and Unknown it is From.
	Replicas int32
	// Next is the earliest time at which the passing of time alone could change the decision, so when to decide again
	// even without new data. The zero time means never.
	Next time.Time

	bounds   Bounds // of the last Clamp, zero if there was none
	count    int
	branches uint16
	inline   [inlineSteps]Step
	more     []Step
}

// HoldAt returns a decision that holds at the present count, with an empty chain. Algorithms start with it.
func HoldAt(spec int32) Decision {
	return Decision{Verdict: Hold, From: spec, Replicas: spec}
}

// Start turns a zero decision into HoldAt(spec) in place, since a decision is large to copy.
func (d *Decision) Start(spec int32) {
	d.Verdict, d.From, d.Replicas = Hold, spec, spec
}

// UnknownAt returns an Unknown decision with the given reason.
func UnknownAt(spec int32, code Code, subject string, numbers ...float64) Decision {
	d := HoldAt(spec)
	d.To(spec, code, subject, numbers...)
	d.Verdict = Unknown
	return d
}

// Acts reports whether the decision asks for a write.
func (d *Decision) Acts() bool { return d.Verdict == Up || d.Verdict == Down }

// To appends a step that takes the decision to n replicas, and sets the verdict by comparing n with From. Numbers
// beyond the fourth are dropped.
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

// Clamp appends the step that moves the count to the nearest bound, if it is outside the bounds. What wraps the policy and moves the
// count back clamps it to the same bounds.
func (d *Decision) Clamp(b Bounds) {
	d.bounds = b
	switch n := d.Replicas; {
	case n < b.Min:
		d.To(b.Min, BelowMin, "", float64(n), float64(b.Min))
	case n > b.Max:
		d.To(b.Max, AboveMax, "", float64(n), float64(b.Max))
	}
}

// clampAgain clamps to the bounds of the last Clamp.
func (d *Decision) clampAgain() {
	if d.bounds != (Bounds{}) && d.Verdict != Unknown {
		d.Clamp(d.bounds)
	}
}

// Consider adds, on its own branch, a step from From to n that was evaluated but did not determine the result.
func (d *Decision) Consider(n int32, code Code, subject string, numbers ...float64) {
	d.branches = after(d.branches, 1)
	d.add(Step{Code: code, From: d.From, To: n, Subject: subject, Branch: d.branches, Numbers: pack(numbers)})
}

// ConsiderAll adds every line of another decision as one that did not determine the result. The other decision's warnings
// stay warnings, unless it is Unknown and d is not.
func (d *Decision) ConsiderAll(other *Decision) {
	d.reserve(other.count)
	d.considerAll(other)
}

// considerAll is ConsiderAll after reserve.
func (d *Decision) considerAll(other *Decision) {
	first := after(d.branches, 1)
	for i := range other.count {
		s := *other.step(i)
		s.Branch = after(first, s.Branch)
		s.Warning = s.Warning && (other.Verdict != Unknown || d.Verdict == Unknown)
		d.branches = max(d.branches, s.Branch)
		d.put(s)
	}
}

// NextBy sets Next to t, unless Next is earlier already. The zero time changes nothing.
func (d *Decision) NextBy(t time.Time) {
	if !t.IsZero() && (d.Next.IsZero() || t.Before(d.Next)) {
		d.Next = t
	}
}

// Steps returns the chain. The line that led to the result (branch 0) comes first: its first From is the decision's From,
// every other From is the To before it, and its last To is the result. The considered lines follow.
func (d *Decision) Steps() []Step {
	steps := make([]Step, 0, d.count)
	for i := range d.count {
		steps = append(steps, *d.step(i))
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.Branch, b.Branch) })
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
// It names the rules that changed the count, then the rule that had the last word, then the warnings.
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

// Explain returns the whole chain as a table with one line per step, followed by the considered lines and the warnings:
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

// MarshalJSON writes the decision with its steps, reason and considered lines, for logs and status fields. A Next beyond the years 0 to
// 9999, which JSON times do not have, is a *FieldError.
func (d Decision) MarshalJSON() ([]byte, error) {
	if _, err := d.Next.MarshalJSON(); err != nil {
		return nil, &FieldError{Field: "next", Value: d.Next, Rule: "must be a time that JSON can have, of the years 0 to 9999"}
	}
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
	d.more = slices.Clip(d.more) // a copy of the decision may have the same steps
	d.put(s)
}

// put is add for a decision of which there is no copy since reserve.
func (d *Decision) put(s Step) {
	if d.count < inlineSteps {
		d.inline[d.count] = s
	} else {
		d.more = append(d.more, s)
	}
	d.count++
}

// reserve makes room for n more steps, which no copy of the decision shares.
func (d *Decision) reserve(n int) {
	if most := d.count + n - inlineSteps; most > 0 {
		d.more = append(make([]Step, 0, most), d.more...)
	}
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

// after returns the branch that comes n after another. The last one has all lines beyond it.
func after(branch, n uint16) uint16 { return uint16(min(uint32(branch)+uint32(n), math.MaxUint16)) }

func pack(numbers []float64) (packed [maxNumbers]float64) {
	copy(packed[:], numbers)
	return packed
}
