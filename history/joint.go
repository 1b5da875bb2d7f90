package history

import (
	"math"

	"github.com/inferscale/inferscale/internal/lengths"
	"github.com/inferscale/inferscale/internal/splitmix"
)

// mixed draws from several histograms.
type mixed struct {
	all   []lengths.Drawer
	total float64
}

func (m Mixture) drawer() (d mixed) {
	for i := range m {
		of := lengths.Sloped(m[i].Bounds, m[i].Counts, m[i].Sum, m[i].Means)
		d.all = append(d.all, of)
		d.total += of.Total()
	}
	return d
}

// at returns the length at a rank of one of the histograms, which is chosen at random.
func (d *mixed) at(rank float64, random *splitmix.Stream) int32 {
	if len(d.all) == 1 {
		return d.all[0].At(rank)
	}
	x := random.Uniform() * d.total
	for i := range d.all {
		if x -= d.all[i].Total(); x < 0 || i == len(d.all)-1 {
			return d.all[i].At(rank)
		}
	}
	return 1
}

// ranks makes two correlated ranks of two independent ones.
func ranks(u, v, correlation float64) (input, output float64) {
	if correlation == 0 {
		return u, v
	}
	far, angle := math.Sqrt(-2*math.Log(u)), 2*math.Pi*v
	x := far * math.Cos(angle)
	y := correlation*x + math.Sqrt(1-correlation*correlation)*far*math.Sin(angle)
	return math.Erfc(-x/math.Sqrt2) / 2, math.Erfc(-y/math.Sqrt2) / 2
}

// pair draws the lengths of a prompt and its answer.
func pair(prompts, answers *mixed, correlation float64, random *splitmix.Stream) (input, output int32) {
	u, v := ranks(random.Uniform(), random.Uniform(), correlation)
	return prompts.at(u, random), answers.at(v, random)
}

// The limits of the estimate of the correlation.
const (
	mostCorrelation = 0.95
	// leastHours is the lowest total of hours of decoding sequences.
	leastHours = 1.0
	// mostHits is the share of prompt tokens in a prefix cache above which sequences share so much of the KV cache that its
	// content says nothing about a sequence.
	mostHits = 0.05
	// times is how many of the spans of lengths are used, and draws how many requests of each.
	times, draws = 48, 512
)

// correlation estimates the correlation between the lengths of prompts and answers. An answer of O tokens to a prompt of I
// has, while its tokens are generated, I + O/2 tokens in the cache on average, so that
//
//	tokens in the cache / sequences that decode = (E[I O] + E[O O]/2) / E[O]
//
// E[O O] is known from the histogram, so E[I O] follows: the correlation is the one with which drawn requests have the same
// value. It is 0 (independent) if the caches, their size or the times between tokens are unknown.
func (f *Fleet) correlation(all []LengthsOf) float64 {
	var fits []joint
	got, hours := 0.0, 0.0
	for i := 0; i < len(all); i += 1 + len(all)/times {
		upTo := len(f.Arrivals)
		if i+1 < len(all) {
			upTo = all[i+1].From
		}
		if j, ok := f.joint(&all[i], upTo); ok {
			fits = append(fits, j)
			got += j.cached
			hours += j.decoding
		}
	}
	if hours < leastHours || !(f.hits() <= mostHits) {
		return 0
	}
	low, high := -mostCorrelation, mostCorrelation
	for range 12 {
		middle := (low + high) / 2
		want := 0.0
		for i := range fits {
			want += fits[i].expected(i, middle)
		}
		if want < got {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// A joint is what a period says of prompts and answers together.
type joint struct {
	prompts, answers mixed
	decoding         float64 // sequence-hours of decoding
	cached           float64 // token-hours of the prompts and answers of these sequences in the cache
}

// joint adds up the intervals of one span of lengths. Sequences whose prompt is being computed have their prompt in the
// cache.
func (f *Fleet) joint(of *LengthsOf, upTo int) (joint, bool) {
	j := joint{prompts: of.Prompts.drawer(), answers: of.Answers.drawer()}
	if f.Engine.perRequest() || f.Engine == Dynamo {
		return j, false // decoding sequences are not counted, or not for each worker
	}
	mean := of.Prompts.Mean()
	for i := range f.Pods {
		p := &f.Pods[i]
		for k := max(0, of.From-p.First); k < len(p.KV) && k+p.First < upTo; k++ {
			tokens, itl := float64(p.KV[k])*p.KVTokens, float64(p.ITL[k])/3600
			prefill := float64(p.Running[k])*float64(p.Span[k])*f.Step.Hours() - itl
			if !(tokens >= 0 && prefill <= math.MaxFloat32 && p.Span[k] > 0) {
				continue
			}
			j.decoding += itl
			j.cached += tokens*float64(p.Span[k])*f.Step.Hours() - prefill*mean
		}
	}
	return j, j.decoding > 0 && !math.IsNaN(mean)
}

// expected returns the token-hours for a correlation. Its draws are evenly distributed points in the square (the additive
// recurrence of the plastic number, Roberts 2018), different ones for each place.
func (j *joint) expected(place int, correlation float64) float64 {
	random := splitmix.Stream{State: splitmix.Golden}
	tokens, answers := 0.0, 0.0
	for i := range draws {
		n := float64(place*draws + i + 1)
		_, a := math.Modf(n * 0.7548776662466927)
		_, b := math.Modf(n * 0.5698402909980532)
		u, v := ranks(max(a, 1e-12), b, correlation)
		input, output := float64(j.prompts.at(u, &random)), float64(j.answers.at(v, &random))
		tokens += output * (input + output/2)
		answers += output
	}
	return j.decoding * tokens / answers
}

// hits returns the share of prompt tokens found in prefix caches, NaN if unknown.
func (f *Fleet) hits() float64 { return f.cached / f.prompted }

// hit counts the prompt tokens of a pod, and those of them that were computed.
func (f *Fleet) hit(prompted, computed []float64, told bool) {
	if !told {
		f.cached = math.NaN()
	}
	for i, all := range prompted {
		if known(all) && known(computed[i]) {
			f.prompted += all
			f.cached += all - computed[i]
		}
	}
}
