package suite

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/splitmix"
)

const (
	step  = time.Minute
	steps = 120
)

// pattern returns a load for each step, 1 at the most.
func pattern(name string, seed uint64) []float64 {
	rates := make([]float64, steps)
	random := splitmix.Stream{State: 98 + seed}
	walk := 0.5
	for i := range rates {
		x := float64(i) / steps
		switch name {
		case "ramp":
			rates[i] = 0.2 + 0.8*(1-math.Abs(2*x-1))
		case "day":
			rates[i] = 0.6 - 0.4*math.Cos(2*math.Pi*x)
		case "flash":
			if rates[i] = 0.4; i%23 > 20 {
				rates[i] = 0.9
			}
		case "onoff":
			rates[i] = 0.25 + 0.65*float64(int(x*6)%2)
		case "walk":
			walk = min(max(walk+(random.Uniform()-0.5)*0.12, 0.15), 1)
			rates[i] = walk
		default: // steady
			rates[i] = 0.6
		}
	}
	return rates
}
