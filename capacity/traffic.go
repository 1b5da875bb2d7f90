package capacity

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/sim"
)

// traffic makes requests of a past: as many in each interval between two samples as had come, at times and of lengths
// drawn from a generator that always draws the same, of at most so many requests; factor times as many.
func (p *Past) traffic(most int, factor float64) (requests []sim.Request, from, to float64) {
	first, n := len(p.Samples)-1, 0.0
	if first < 1 || len(p.Lengths) == 0 {
		return nil, 0, 0
	}
	for ; first > 0; first-- {
		came := p.came(first)
		if n+came > float64(most) {
			break
		}
		n += came
	}
	if first == len(p.Samples)-1 {
		return nil, 0, 0
	}
	from, to = p.Samples[first].At, p.Samples[len(p.Samples)-1].At
	random := splitmix.Stream{State: 17}
	var prompts, answers drawer
	span, left := -1, 0.0
	for i := first + 1; i < len(p.Samples); i++ {
		a, b := p.Samples[i-1].At, p.Samples[i].At
		k := max(span, 0)
		for k+1 < len(p.Lengths) && p.Lengths[k+1].At <= a {
			k++
		}
		if k != span {
			span = k
			prompts, answers = draws(&p.Lengths[k].Prompts), draws(&p.Lengths[k].Answers)
		}
		left += p.came(i) * factor
		count := int(left)
		left -= float64(count)
		at := len(requests)
		for range count {
			t := a - from + random.Uniform()*(b-a)
			requests = append(requests, sim.Request{At: time.Duration(t * float64(time.Second)), Input: prompts.draw(&random), Output: answers.draw(&random)})
		}
		slices.SortFunc(requests[at:], func(a, b sim.Request) int { return cmp.Compare(a.At, b.At) })
	}
	end := time.Duration((to - from) * float64(time.Second))
	for len(requests) > 0 && requests[len(requests)-1].At >= end {
		requests = requests[:len(requests)-1]
	}
	return requests, from, to
}

// came returns how many requests came between a sample and the one before it.
func (p *Past) came(i int) float64 {
	return max(0, p.Samples[i].arrived()-p.Samples[i-1].arrived())
}

// A drawer draws lengths of buckets. Within one their logarithms are uniform; all are scaled to the mean that was.
type drawer struct {
	upTo      []float64 // how many are in this bucket and those below
	low, high []float64
	scale     float64
}

func draws(b *Buckets) drawer {
	d := drawer{scale: 1}
	all, mean := 0.0, 0.0
	for i, n := range b.Counts {
		if n <= 0 {
			continue
		}
		low := 1.0
		if i > 0 {
			low = max(1, b.Bounds[i-1])
		}
		high := 2 * low
		if i < len(b.Bounds) {
			high = max(low, b.Bounds[i])
		}
		all += n
		d.upTo, d.low, d.high = append(d.upTo, all), append(d.low, low), append(d.high, high)
		if high > low {
			mean += n * (high - low) / math.Log(high/low)
		} else {
			mean += n * low
		}
	}
	if mean > 0 && b.Sum > 0 {
		d.scale = b.Sum / mean
	}
	return d
}

func (d *drawer) draw(random *splitmix.Stream) int32 {
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
	return int32(min(max(1, math.Round(length)), mostTokens))
}

// mostTokens is longer than any context.
const mostTokens = 1 << 24
