package scaling

// Bounds are the fewest and the most replicas that a target may be asked to run, both inclusive.
//
// The zero value allows only zero replicas: a target that is switched off.
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

// Add returns n + step within the bounds; the sum saturates, it never wraps.
func (b Bounds) Add(n, step int32) int32 {
	return int32(max(int64(b.Min), min(int64(n)+int64(step), int64(b.Max))))
}

// Validate reports every rule that the bounds break: 0 <= Min <= Max. Its fields are named under field,
// as in "bounds.min".
func (b Bounds) Validate(field string) error {
	var e FieldErrors
	e.Check(b.Min >= 0, field+".min", b.Min, "must not be negative")
	e.Check(b.Max >= b.Min, field+".max", b.Max, "must not be below min")
	return e.Err()
}

// Repair returns a decision that takes a count outside the bounds to the nearest bound, and true; for a count
// within them it returns a Hold and false. Algorithms ask it first: a repair waits for no window, cooldown or sample.
//
// The bounds themselves must be valid.
func (b Bounds) Repair(spec int32) (Decision, bool) {
	d := HoldAt(spec)
	d.Clamp(b)
	return d, d.Verdict != Hold
}
