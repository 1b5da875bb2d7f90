package sim

import "math"

// A sketch is a histogram of times in seconds with buckets that grow by 2 %: any quantile is within 1 % of the exact one,
// from 100 us to a day. Its size does not depend on the number of times.
type sketch struct {
	count   int64
	sum     float64
	most    float64
	bounds  *buckets
	buckets []int64
}

const (
	sketchGrowth  = 1.02
	sketchLeast   = 1e-4
	sketchBuckets = 1040
)

// logGrowth is ln(sketchGrowth).
const logGrowth = 0.019802627296179712

// sketchBounds returns the bounds of all sketches of a run.
func sketchBounds() buckets {
	ends := make([]float64, sketchBuckets)
	for i := range ends {
		ends[i] = sketchLeast * math.Exp(float64(i)*logGrowth)
	}
	return newBuckets(ends...)
}

func newSketch(bounds *buckets) sketch {
	return sketch{bounds: bounds, buckets: make([]int64, sketchBuckets)}
}

// add counts a time.
func (h *sketch) add(t float64) {
	h.buckets[min(h.bounds.place(t), sketchBuckets-1)]++
	h.count++
	h.sum += t
	h.most = max(h.most, t)
}

// quantile returns the time below which the share q of all times is, 0 if there are no times.
func (h *sketch) quantile(q float64) float64 {
	if h.count == 0 {
		return 0
	}
	rank := max(1, int64(math.Ceil(q*float64(h.count))))
	for i, end := range h.bounds.ends[:sketchBuckets-1] { // the last bucket is open
		if rank -= h.buckets[i]; rank <= 0 {
			return min(end/math.Sqrt(sketchGrowth), h.most)
		}
	}
	return h.most
}

func (h *sketch) quantiles() Quantiles {
	if h.count == 0 {
		return Quantiles{}
	}
	return Quantiles{
		Mean: h.sum / float64(h.count),
		P50:  h.quantile(0.50), P95: h.quantile(0.95), P99: h.quantile(0.99), Max: h.most,
	}
}

// bars returns the histogram in bars of about 17 % width, without the empty bars at both ends.
func (h *sketch) bars() []Bucket {
	const width = 8
	var bars []Bucket
	for i := 0; i < sketchBuckets; i += width {
		n := int64(0)
		for j := i; j < i+width; j++ {
			n += h.buckets[j]
		}
		if n == 0 && len(bars) == 0 {
			continue
		}
		from := 0.0
		if i > 0 {
			from = h.bounds.ends[i-1]
		}
		bars = append(bars, Bucket{From: from, To: h.bounds.ends[i+width-1], Share: float64(n) / float64(h.count)})
	}
	for len(bars) > 0 && bars[len(bars)-1].Share == 0 {
		bars = bars[:len(bars)-1]
	}
	return bars
}

// buckets are the upper ends of a histogram. One more bucket has everything above the last end.
type buckets struct {
	ends  []float64
	cells []int16 // for each cell from first on, the bucket of the smallest number in it
	first int
	dense bool // whether any cell has several ends
}

// cell divides the numbers above 0 into 64 cells for each power of two, and returns the cell of a number.
func cell(t float64) int { return int(math.Float64bits(t) >> 46) }

func newBuckets(ends ...float64) buckets {
	b := buckets{ends: ends, first: cell(ends[0])}
	i := int16(0)
	for c := b.first; c <= cell(ends[len(ends)-1]); c++ {
		for least := math.Float64frombits(uint64(c) << 46); ends[i] < least; {
			i++
		}
		b.cells = append(b.cells, i)
	}
	for k := 1; k < len(ends); k++ {
		b.dense = b.dense || cell(ends[k]) == cell(ends[k-1])
	}
	return b
}

// The buckets of vLLM V1's histograms (vllm/v1/metrics/loggers.py), and those of llm-d's router.
func ttftBuckets() buckets {
	return newBuckets(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560)
}

func tpotBuckets() buckets {
	return newBuckets(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
}

func queueBuckets() buckets {
	return newBuckets(0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
}

func routerTTFTBuckets() buckets {
	return newBuckets(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 120, 180, 240, 300, 600)
}

func routerTPOTBuckets() buckets {
	return newBuckets(0.0005, 0.00205, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2, 3, 4.5, 6, 12, 18, 24, 30, 60)
}

// place returns the bucket of a number that is not negative: the first whose upper end is at least the number. It does not branch
// on the number, which no processor can guess.
func (b *buckets) place(t float64) int {
	c := cell(t) - b.first
	switch {
	case c < 0:
		return 0
	case c >= len(b.cells):
		return len(b.ends)
	}
	i, above := int(b.cells[c]), 0
	if t > b.ends[i] {
		above = 1
	}
	if i += above; !b.dense {
		return i
	}
	for i < len(b.ends) && t > b.ends[i] {
		i++
	}
	return i
}

// count counts a number, unless counts is nil.
func (b *buckets) count(counts []int64, t float64) {
	if counts != nil {
		counts[b.place(t)]++
	}
}

// quantile returns what Prometheus's histogram_quantile does: linear interpolation within the bucket, and the last bound for
// anything above it. It returns false if nothing was counted.
func (b *buckets) quantile(q float64, counts []int64) (float64, bool) {
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return 0, false
	}
	rank := q * float64(total)
	below := 0.0
	for i, n := range counts[:len(b.ends)] {
		if n > 0 && below+float64(n) >= rank {
			from := 0.0
			if i > 0 {
				from = b.ends[i-1]
			}
			return from + (b.ends[i]-from)*(rank-below)/float64(n), true
		}
		below += float64(n)
	}
	return b.ends[len(b.ends)-1], true
}
