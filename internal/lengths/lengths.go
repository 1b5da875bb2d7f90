// Package lengths draws token counts of histograms.
package lengths

import (
	"math"
	"slices"

	"github.com/inferscale/inferscale/internal/splitmix"
)

// Most is longer than any context.
const Most = 1 << 24

// A Drawer draws lengths of buckets. Within one their logarithms are uniform; all are scaled to the mean that was. The
// zero value draws 1.
type Drawer struct {
	upTo      []float64 // how many are in this bucket and those below
	low, high []float64
	scale     float64
}

// Of returns the drawer of counts in buckets with these upper ends, one count more than there are ends, and of the sum of
// what was counted; 0 if that is not known.
func Of(bounds, counts []float64, sum float64) Drawer {
	d := Drawer{scale: 1}
	all, mean := 0.0, 0.0
	for i, n := range counts {
		if n <= 0 {
			continue
		}
		low := 1.0
		if i > 0 {
			low = max(1, bounds[i-1])
		}
		high := 2 * low
		if i < len(bounds) {
			high = max(low, bounds[i])
		}
		all += n
		d.upTo, d.low, d.high = append(d.upTo, all), append(d.low, low), append(d.high, high)
		if high > low {
			mean += n * (high - low) / math.Log(high/low)
		} else {
			mean += n * low
		}
	}
	if mean > 0 && sum > 0 {
		d.scale = sum / mean
	}
	return d
}

// Total returns how many were counted.
func (d *Drawer) Total() float64 {
	if len(d.upTo) == 0 {
		return 0
	}
	return d.upTo[len(d.upTo)-1]
}

// Draw returns a length, at least 1.
func (d *Drawer) Draw(random *splitmix.Stream) int32 {
	n := len(d.upTo)
	if n == 0 {
		return 1
	}
	x := random.Uniform() * d.upTo[n-1]
	i, _ := slices.BinarySearch(d.upTo, x)
	i = min(i, n-1)
	below := 0.0
	if i > 0 {
		below = d.upTo[i-1]
	}
	length := d.low[i] * math.Pow(d.high[i]/d.low[i], (x-below)/(d.upTo[i]-below)) * d.scale
	return int32(min(max(1, math.Round(length)), Most))
}
