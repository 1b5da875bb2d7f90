package capacity

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/lengths"
	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/sim"
)

// traffic makes requests of a past: factor times as many in each interval between two samples as arrived, with times and lengths drawn
// from a generator with a fixed seed. It makes at most `most` requests and then leaves out the oldest intervals. A warm-up of warm
// seconds at the first rate comes before them, of at most as many again. Where the counts are overdispersed, requests arrive in
// clumps of a size that gives the same dispersion.
func (p *Past) traffic(most int, factor, warm float64) (requests []sim.Request, from, to float64) {
	return p.trafficFrom(math.Inf(-1), most, factor, warm)
}

// trafficFrom is traffic without the intervals that begin before a time.
func (p *Past) trafficFrom(begins float64, most int, factor, warm float64) (requests []sim.Request, from, to float64) {
	first, n := len(p.Samples)-1, 0.0
	if first < 1 || len(p.Lengths) == 0 {
		return nil, 0, 0
	}
	for ; first > 0 && p.Samples[first-1].At >= begins; first-- {
		came := p.came(first) * factor
		if n+came > float64(most) {
			break
		}
		n += came
	}
	if first == len(p.Samples)-1 {
		return nil, 0, 0
	}
	from, to = p.Samples[first].At, p.Samples[len(p.Samples)-1].At
	random, clump := splitmix.Stream{State: 17}, (p.dispersion()+1)/2 // geometric sizes of that mean disperse so
	var prompts, answers lengths.Drawer
	span, left := -1, 0.0
	begin := first
	for begin < len(p.Samples)-1 && p.Samples[begin].At < from+120 {
		begin++
	}
	early := between(&p.Samples[first], &p.Samples[begin])
	if warm > 0 { // what came in seconds does not go on for minutes
		early = min(early, float64(most)/(warm*factor))
	}
	requests = make([]sim.Request, 0, int(n+early*warm*factor)+1)
	for i := first; i < len(p.Samples); i++ {
		a, b, came := from-warm, from, early*warm
		if i > first {
			a, b, came = p.Samples[i-1].At, p.Samples[i].At, p.came(i)
		}
		k := max(span, 0)
		for k+1 < len(p.Lengths) && p.Lengths[k+1].At <= a && p.Lengths[k+1].Answers.total() > 0 { // nothing finished since: lengths as before
			k++
		}
		if k != span {
			span = k
			prompts, answers = p.Lengths[k].Prompts.drawer(), p.Lengths[k].Answers.drawer()
		}
		left += came * factor
		count := int(left)
		left -= float64(count)
		at := len(requests)
		t := 0.0
		for i := range count {
			if i == 0 || random.Uniform() < 1/clump {
				t = a - from + warm + random.Uniform()*(b-a)
			}
			requests = append(requests, sim.Request{At: time.Duration(t * float64(time.Second)), Input: prompts.Draw(&random), Output: answers.Draw(&random)})
		}
		slices.SortFunc(requests[at:], func(a, b sim.Request) int { return cmp.Compare(a.At, b.At) })
	}
	end := time.Duration((to - from + warm) * float64(time.Second))
	for len(requests) > 0 && requests[len(requests)-1].At >= end {
		requests = requests[:len(requests)-1]
	}
	return requests, from, to
}

// drawer draws lengths from the buckets.
func (b *Buckets) drawer() lengths.Drawer { return lengths.Of(b.Bounds, b.Counts, b.Sum) }

// spread distributes what silent pods had counted over the time of their silence: in proportion to what the other pods counted, as
// those may have seen a burst, or evenly if they counted nothing.
func (p *Past) spread() {
	for i := 1; i < len(p.Samples); i++ {
		x, last := &p.Samples[i], p.Samples[i-1]
		if x.Absent >= last.Absent {
			continue
		}
		j := i - 1
		for j > 0 && p.Samples[j].Absent > x.Absent {
			j--
		}
		a := &p.Samples[j]
		for k := j + 1; k < i && a.At < x.At; k++ {
			p.Samples[k].catchUp(a, &last, x)
		}
	}
}

// came returns how many requests arrived between a sample and the one before it.
func (p *Past) came(i int) float64 {
	return max(0, p.Samples[i].arrived()-p.Samples[i-1].arrived())
}

// dispersion returns the index of dispersion of the arrivals between samples (variance over mean), 1 for Poisson arrivals. It is
// estimated from the median of the squared differences of neighbours, so that neither a trend nor a jump counts. Where one of two intervals
// is longer, more come in it: each count is scaled to the geometric mean of both, which leaves the variance what it is over the mean.
func (p *Past) dispersion() float64 {
	var all []float64
	for i := 2; i < len(p.Samples); i++ {
		before, after := p.Samples[i-1].At-p.Samples[i-2].At, p.Samples[i].At-p.Samples[i-1].At
		if n := p.came(i) + p.came(i-1); n > 0 && before > 0 && after > 0 {
			times := math.Sqrt(after / before)
			d := p.came(i)/times - p.came(i-1)*times
			all = append(all, d*d/n)
		}
	}
	return min(max(typical(all, 1), 1), 100)
}

// deviation returns the standard deviation of a prompt over its mean, estimated in the same way.
func (p *Past) deviation() float64 {
	var all []float64
	for i := 2; i < len(p.Samples); i++ {
		a, b, c := &p.Samples[i-2], &p.Samples[i-1], &p.Samples[i]
		n, m, sum := b.Firsts-a.Firsts, c.Firsts-b.Firsts, c.Prefilled-a.Prefilled
		if n > 0 && m > 0 && sum > 0 {
			d := ((c.Prefilled-b.Prefilled)/m - (b.Prefilled-a.Prefilled)/n) / (sum / (n + m))
			all = append(all, d*d/(1/n+1/m))
		}
	}
	return min(max(math.Sqrt(typical(all, 4)), 0.01), 10)
}

// typical returns the variance that squares of normal deviates have whose median is that of the given ones, or unknown if there are few
// numbers among them.
func typical(squares []float64, unknown float64) float64 {
	squares = slices.DeleteFunc(squares, math.IsNaN) // of counts too large to subtract
	if len(squares) < 20 {
		return unknown
	}
	slices.Sort(squares)
	return squares[len(squares)/2] / 0.455
}

// residence is the mean time that a request spends in the fleet, in seconds.
func (p *Past) residence() float64 {
	a, b := &p.Samples[0], &p.Samples[len(p.Samples)-1]
	there := 0.0
	for i := range p.Samples {
		there += p.Samples[i].Running + p.Samples[i].Waiting
	}
	if rate := between(a, b); rate > 0 {
		return there / float64(len(p.Samples)) / rate
	}
	return 0
}
