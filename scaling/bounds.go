package scaling

import "fmt"

// Bounds are the minimum and the maximum replica count of a target, both inclusive.
//
// The zero value is not valid, so that forgotten bounds cannot scale a fleet to zero.
type Bounds struct {
	Min int32 `json:"min"`
	Max int32 `json:"max"`
}

// Clamp returns the count within the bounds that is nearest to n.
func (b Bounds) Clamp(n int32) int32 {
	return max(b.Min, min(n, b.Max))
}

// Contains reports whether Min <= n <= Max.
func (b Bounds) Contains(n int32) bool {
	return b.Min <= n && n <= b.Max
}

// Validate returns an error for each rule that the bounds break: 0 <= Min <= Max and Max >= 1. The errors prefix the field
// names with field, as in "bounds.min".
func (b Bounds) Validate(field string) error {
	var e FieldErrors
	e.Check(b.Min >= 0, field+".min", b.Min, "must not be negative")
	e.Check(b.Max >= 1, field+".max", b.Max, "must be at least 1")
	e.Check(b.Max < 1 || b.Max >= b.Min, field+".max", b.Max, fmt.Sprintf("must not be below min %d", b.Min))
	return e.Err()
}
