package sim

import (
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// A Length is a distribution of token counts: normal or lognormal, rounded, and drawn again while the result is outside Min
// and Max.
type Length struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"` // standard deviation, in tokens; 0 makes all alike
	Min       int32   `json:"min"`       // at least 1
	Max       int32   `json:"max"`
	// LogNormal gives the long tail that real prompts and answers have; Mean and Deviation are still those of the tokens.
	LogNormal bool `json:"logNormal"`
}

// Validate reports every wrong field at once, under field.
func (l Length) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(l.Mean >= 1 && l.Mean <= math.MaxInt32, field+".mean", l.Mean, "must be at least 1")
	e.Check(l.Deviation >= 0 && l.Deviation <= 1e3*l.Mean, field+".deviation", l.Deviation, "must not be negative, nor above 1000 times the mean")
	e.Check(l.Min >= 1, field+".min", l.Min, "must be at least 1")
	e.Check(l.Max >= l.Min, field+".max", l.Max, "must not be below min")
	e.Check(l.Mean >= float64(l.Min) && l.Mean <= float64(l.Max), field+".mean", l.Mean, "must be within min and max")
	return e.Err()
}

// draw returns a length. After sixteen draws outside the range it returns the nearest end of it.
func (l Length) draw(s *stream) int32 {
	if l.Deviation == 0 {
		return int32(math.Round(l.Mean))
	}
	var n float64
	for range 16 {
		if l.LogNormal {
			ratio := l.Deviation / l.Mean
			sigma := math.Sqrt(math.Log1p(ratio * ratio))
			n = l.Mean * math.Exp(sigma*s.normal()-sigma*sigma/2)
		} else {
			n = l.Mean + l.Deviation*s.normal()
		}
		n = math.Round(n)
		if n >= float64(l.Min) && n <= float64(l.Max) {
			return int32(n)
		}
	}
	return int32(min(max(n, float64(l.Min)), float64(l.Max)))
}
