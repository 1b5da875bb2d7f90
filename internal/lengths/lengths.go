// Package lengths draws token counts of histograms.
package lengths

import (
	"math"
	"slices"

	"github.com/inferscale/inferscale/internal/splitmix"
)

// Most is longer than any context.
const Most = 1 << 24

// A Drawer draws lengths of buckets. The zero value draws 1.
type Drawer struct {
	upTo      []float64 // how many are in this bucket and those below
	low, high []float64
	tilt      []float64 // of the logarithm of the density, from end to end of a bucket
	scale     float64
}

// Of returns the drawer of counts in buckets with these upper ends, one count more than there are ends, and of the sum of
// what was counted; 0 if that is not known. Within a bucket logarithms are uniform, and all are scaled to the mean that was.
func Of(bounds, counts []float64, sum float64) Drawer {
	d := of(bounds, counts)
	d.rescale(sum)
	return d
}

// Sloped returns a drawer whose density within a bucket rises or falls as it does from the bucket below to that above, and then
// so much more, in proportion to their widths, that the mean is what it was: every length stays within its bucket. Uniform
// logarithms have too many of the longest in the buckets of a tail, and to scale them moves lengths out of their buckets.
//
// Where the means within the buckets are known, as by [Means], the density is the one that has these, and then so much more likewise.
func Sloped(bounds, counts []float64, sum float64, means []float64) Drawer {
	d := of(bounds, counts)
	slopes := make([]float64, len(d.low))
	widest := 0.0
	k := 0
	for i, n := range counts {
		if n <= 0 {
			continue
		}
		switch {
		case d.high[k] <= d.low[k]:
		case len(means) > 0:
			slopes[k] = between(func(slope float64) bool { return mean(d.low[k], d.high[k], slope) < means[i] })
		default:
			slopes[k] = slope(bounds, counts, i)
		}
		widest = max(widest, d.high[k]-d.low[k])
		k++
	}
	tilt := func(more float64) {
		for k := range slopes {
			d.tilt[k] = slopes[k] + more*(d.high[k]-d.low[k])/max(1, widest)
		}
	}
	tilt(0)
	if sum > 0 && len(slopes) > 0 {
		tilt(between(func(more float64) bool {
			tilt(more)
			return d.sum() < sum
		}))
		d.rescale(sum) // where the mean is at an end of all buckets, or beyond it
	}
	return d
}

// between returns where what is less becomes more, among slopes that are as steep as matters.
func between(less func(slope float64) bool) float64 {
	low, high := -40.0, 40.0
	for range 50 {
		if middle := (low + high) / 2; less(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// mean returns the mean length within a bucket, by the slope of the logarithm of the density there.
func mean(low, high, slope float64) float64 {
	return low * exponential(slope+math.Log(high/low)) / exponential(slope)
}

func of(bounds, counts []float64) Drawer {
	d := Drawer{scale: 1}
	all := 0.0
	for i, n := range counts {
		if n <= 0 {
			continue
		}
		low, high := ends(bounds, i)
		all += n
		d.upTo, d.low, d.high, d.tilt = append(d.upTo, all), append(d.low, low), append(d.high, high), append(d.tilt, 0)
	}
	return d
}

// sum returns the sum of as many lengths as were counted, before they are scaled.
func (d *Drawer) sum() (sum float64) {
	before := 0.0
	for i, upTo := range d.upTo {
		sum += (upTo - before) * mean(d.low[i], d.high[i], d.tilt[i])
		before = upTo
	}
	return sum
}

func (d *Drawer) rescale(sum float64) {
	if now := d.sum(); now > 0 && sum > 0 {
		d.scale = sum / now
	}
}

// ends returns those of a bucket.
func ends(bounds []float64, i int) (low, high float64) {
	low = 1
	if i > 0 {
		low = max(1, bounds[i-1])
	}
	if i == len(bounds) {
		return low, 2 * low
	}
	return low, max(low, bounds[i])
}

// exponential returns the integral of exp(b t) over t from 0 to 1.
func exponential(b float64) float64 {
	if math.Abs(b) < 1e-9 {
		return 1
	}
	return math.Expm1(b) / b
}

// steepest is the most that the logarithm of a density changes by within a bucket.
const steepest = 4

// slope returns by how much the logarithm of the density of logarithms changes within a bucket, on the line from the bucket below
// to that above. A bucket without any counts as half a request; where both are like that nothing is known.
func slope(bounds, counts []float64, i int) float64 {
	at := func(i int) (middle, density float64, ok bool) {
		if i < 0 || i >= len(counts) {
			return 0, 0, false
		}
		low, high := ends(bounds, i)
		wide := math.Log(high / low)
		return math.Log(low) + wide/2, math.Log(max(0.5, counts[i]) / wide), wide > 0
	}
	x, g, _ := at(i)
	before, below, is := at(i - 1)
	after, above, more := at(i + 1)
	if !is {
		before, below = x, g
	}
	if !more {
		after, above = x, g
	}
	empty := func(i int) bool { return i < 0 || i >= len(counts) || counts[i] <= 0 }
	if before == after || empty(i-1) && empty(i+1) {
		return 0
	}
	low, high := ends(bounds, i)
	return min(max(-steepest, (above-below)/(after-before)*math.Log(high/low)), steepest)
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
	if len(d.upTo) == 0 {
		return 1
	}
	return d.At(random.Uniform())
}

// At returns the length below which a share of them is, within 0 and 1; at least 1.
func (d *Drawer) At(share float64) int32 {
	n := len(d.upTo)
	if n == 0 {
		return 1
	}
	x := share * d.upTo[n-1]
	i, _ := slices.BinarySearch(d.upTo, x)
	i = min(i, n-1)
	below := 0.0
	if i > 0 {
		below = d.upTo[i-1]
	}
	part := (x - below) / (d.upTo[i] - below)
	if b := d.tilt[i]; b != 0 {
		part = math.Log1p(part*math.Expm1(b)) / b
	}
	length := d.low[i] * math.Pow(d.high[i]/d.low[i], part) * d.scale
	if !(length > 1) { // nor is NaN, of ends that are too far apart to be multiplied
		return 1
	}
	return int32(min(math.Round(length), Most))
}
