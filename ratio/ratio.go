package ratio

import (
	"fmt"

	"github.com/inferscale/inferscale/scaling"
)

// Codes of the steps of Ratio.Adjust. Each states the inequality that raises it.
const (
	// Raised raises a role to the lowest count that the other role's count allows.
	Raised scaling.Code = "RatioRaised from < least, partner"
	// Lowered lowers a role to the highest count of any pair within the bounds and the range.
	Lowered scaling.Code = "RatioLowered from > most, partner"
)

// MaxReplicas is the maximum number of replicas of a role.
const MaxReplicas = 1_000_000

// Config says how many prefill replicas a deployment may have for its decode replicas.
type Config struct {
	Prefill scaling.Bounds `json:"prefill"` // Max at most MaxReplicas
	Decode  scaling.Bounds `json:"decode"`  // Max at most MaxReplicas
	// Min is the lowest ratio of prefill to decode; the zero value is no limit.
	Min Fraction `json:"min,omitzero"`
	// Max is the highest ratio of prefill to decode, above 0; the zero value is no limit.
	Max Fraction `json:"max,omitzero"`
}

// Validate reports every wrong field at once, each as a scaling.FieldError. It also reports a range that no pair of counts within
// the bounds meets.
func (c Config) Validate() error {
	_, err := New(c)
	return err
}

func (c Config) check() error {
	var e scaling.FieldErrors
	e.Add(c.Prefill.Validate("prefill"))
	e.Add(c.Decode.Validate("decode"))
	e.Check(c.Prefill.Max <= MaxReplicas, "prefill.max", c.Prefill.Max, fmt.Sprintf("must be at most %d", MaxReplicas))
	e.Check(c.Decode.Max <= MaxReplicas, "decode.max", c.Decode.Max, fmt.Sprintf("must be at most %d", MaxReplicas))
	low, high := c.Min.IsZero() || c.Min.valid(), c.Max.IsZero() || c.Max.valid() && c.Max.Num > 0
	e.Check(low, "min", c.Min, "must be a fraction that is not negative")
	e.Check(high, "max", c.Max, "must be a fraction above 0")
	if low && high && !c.Min.IsZero() && !c.Max.IsZero() {
		e.Check(!c.Min.above(c.Max), "max", c.Max, fmt.Sprintf("must not be below min %s", c.Min))
	}
	return e.Err()
}

// A Ratio keeps two roles of one deployment, prefill and decode, in proportion. It is immutable and made by New. The zero value
// is no constraint: every pair is feasible and projects to itself.
//
// A pair of counts is feasible if both are within their bounds and either both are 0, or neither is and
//
//	Min <= prefill/decode <= Max
//
// Either role alone serves nothing, so a single 0 is never feasible. If two pairs are feasible, so are the pair of their lower
// counts and the pair of their higher counts. Hence there is one greatest feasible pair, and for every pair of counts that do not
// exceed it there is one least feasible pair that covers them.
type Ratio struct {
	config   Config
	min, max Fraction // of the ratio; a missing limit is replaced by one that never applies
	top      [2]int64 // the greatest feasible pair, above 0
}

// none reports whether the Ratio is the zero value.
func (r Ratio) none() bool { return r.top == [2]int64{} }

// New returns the Ratio of a configuration, or an error with every rule that it breaks. A range that no pair of counts within the
// bounds meets is an error: many pairs are within 5/10 to 8/10, but with both roles at most 1 there is only 1/1.
func New(c Config) (Ratio, error) {
	if err := c.check(); err != nil {
		return Ratio{}, err
	}
	r := Ratio{config: c, min: c.Min.reduced(), max: c.Max.reduced()}
	if c.Min.IsZero() {
		r.min = Fraction{0, 1}
	}
	if c.Max.IsZero() {
		// With at least one decode replica no ratio is higher.
		r.max = Fraction{MaxReplicas, 1}
	}
	if r.top = r.greatest(); r.none() {
		var e scaling.FieldErrors
		e.Check(false, "min", fmt.Sprintf("%s to %s", c.Min, c.Max), fmt.Sprintf(
			"must hold the ratio of some prefill in %d..%d to some decode in %d..%d, both above 0",
			c.Prefill.Min, c.Prefill.Max, c.Decode.Min, c.Decode.Max))
		return Ratio{}, e.Err()
	}
	return r, nil
}

// Feasible reports whether a pair of counts is within the bounds and the range; see Ratio.
func (r Ratio) Feasible(prefill, decode int32) bool {
	if r.none() {
		return true
	}
	if !r.config.Prefill.Contains(prefill) || !r.config.Decode.Contains(decode) {
		return false
	}
	p, d := int64(prefill), int64(decode)
	if p == 0 || d == 0 {
		return p == d
	}
	return p*r.min.Den >= r.min.Num*d && p*r.max.Den <= r.max.Num*d
}

// Project returns the feasible pair for the counts that two roles ask for:
//
//	(p, d) = least feasible pair with  p >= min(prefill, top.p)  and  d >= min(decode, top.d)
//
// where top is the greatest feasible pair. So if any feasible pair covers both demands, the result does: it is the pair with the
// lowest count in each role, and therefore the nearest by every measure. A demand that no pair covers is met as far as any pair
// can. Demands outside the bounds count as the nearest bound. Projecting twice changes nothing, and more demand never gives fewer
// replicas.
//
// The result is exact. Project takes at most as many steps as there are replicas between the demand and the result: a handful,
// except for ranges narrower than one part in the number of replicas.
func (r Ratio) Project(prefill, decode int32) (int32, int32) {
	if r.none() {
		return prefill, decode
	}
	p := min(int64(max(prefill, r.config.Prefill.Min)), r.top[0])
	d := min(int64(max(decode, r.config.Decode.Min)), r.top[1])
	if p <= 0 && d <= 0 {
		return 0, 0
	}
	p, d = max(p, 1), max(d, 1)
	if r.min == r.max {
		// A range of one ratio a/b has only the pairs (a*n, b*n).
		n := max(ceilDiv(p, r.min.Num), ceilDiv(d, r.min.Den))
		return int32(n * r.min.Num), int32(n * r.min.Den)
	}
	for {
		// Raise each role to the lowest count that the other requires. No step goes past the result, so when nothing
		// changes any more, the result is reached.
		more := max(p, ceilDiv(r.min.Num*d, r.min.Den))
		d = max(d, ceilDiv(more*r.max.Den, r.max.Num))
		if more == p && p*r.min.Den >= r.min.Num*d {
			return int32(p), int32(d)
		}
		p = more
	}
}

// greatest returns the greatest feasible pair, or 0 and 0 if no pair above that is feasible.
func (r Ratio) greatest() (pair [2]int64) {
	p, d := int64(r.config.Prefill.Max), int64(r.config.Decode.Max)
	if r.min == r.max {
		n := min(p/r.min.Num, d/r.min.Den)
		p, d = n*r.min.Num, n*r.min.Den
	} else {
		for {
			less := min(p, r.max.Num*d/r.max.Den)
			if r.min.Num > 0 {
				d = min(d, less*r.min.Den/r.min.Num)
			}
			if less == p && p*r.max.Den <= r.max.Num*d {
				break
			}
			p = less
		}
	}
	if p < max(1, int64(r.config.Prefill.Min)) || d < max(1, int64(r.config.Decode.Min)) {
		return pair
	}
	return [2]int64{p, d}
}

// ceilDiv returns the least whole number that is not below a/b, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// Adjust projects the counts of two decisions and appends to each the step to its new count, if that differs. An Unknown decision
// asks for its present count: like a floor, the ratio may raise it but never lowers it, even if no feasible pair has as many.
func (r Ratio) Adjust(prefill, decode *scaling.Decision) {
	p, d := r.Project(prefill.Replicas, decode.Replicas)
	if prefill.Verdict == scaling.Unknown {
		p = max(p, prefill.From)
	}
	if decode.Verdict == scaling.Unknown {
		d = max(d, decode.From)
	}
	adjust(prefill, p, d)
	adjust(decode, d, p)
}

func adjust(decision *scaling.Decision, to, partner int32) {
	switch from := decision.Replicas; {
	case from < to:
		decision.To(to, Raised, "", float64(from), float64(to), float64(partner))
	case from > to:
		decision.To(to, Lowered, "", float64(from), float64(to), float64(partner))
	}
}
