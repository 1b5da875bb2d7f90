package calibrate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// A Point is the observation of one replica at one scrape. NaN means unknown.
//
// Gauges are as scraped at At (or a mean around it). Rates and ITL are for the interval since the previous scrape, from
// increases of counters. They are NaN if there is no such interval: at a pod's first scrape, after a reset and after a gap.
type Point struct {
	At  time.Time
	Pod string

	// Running is the number of sequences in the batch, a gauge.
	Running float64
	// KVTokens is the number of tokens in the KV cache and KVUse the share of it in use, gauges; one of the two is enough. A
	// KVTokens of 0 with a KVUse above 0 is unknown.
	KVTokens, KVUse float64
	// PromptRate is the prompt tokens computed per second, without those found in the prefix cache.
	PromptRate float64
	// TokenRate is the rate of generated tokens after an answer's first, the increase of the count of
	// vllm:inter_token_latency_seconds; 0 or NaN if unknown. With it the mean number of sequences in the interval is known
	// from counters, as ITL * TokenRate by Little's law, and does not depend on the time of the scrape.
	TokenRate float64
	// ITL is the mean time between two tokens of an answer, in seconds, over the tokens of the interval.
	ITL float64
	// Weight is the number of tokens or answers over which ITL is the mean.
	Weight float64
}

// Reasons why points are excluded, see [Result.Excluded].
const (
	NoITL      = "no time per token, or none above zero: a first scrape, a reset, a gap, or nothing generated"
	NoPrompts  = "prompt tokens are not known"
	NoRunning  = "the number of sequences is not known"
	NoCache    = "the KV cache is not known"
	NoWeight   = "nothing was counted"
	NoTime     = "the time is not set, or before 1970 or after 2200"
	Conflict   = "two different points of one pod at one time"
	Duplicate  = "the same point again"
	NearlyFull = "the KV cache is over 90 % full: what is preempted is computed again, and no counter of prompts has it"
	Alone      = "too few scrapes in a row"
)

// A sample is a Point that is used.
type sample struct {
	at                      int64 // ns
	pod                     int32
	running, kv, use        float64
	prompts, tokens, itl, w float64
}

func finite(x float64) bool { return x >= 0 && x <= 1e15 }

// samples returns the points in order of pods and times, each with the content of its cache, in tokens or, if unit is 0, in
// shares of the full cache.
func (f *fit) samples(points []Point) []sample {
	names := map[string]int32{}
	for i := range points {
		names[points[i].Pod] = 0
	}
	for i, name := range slices.Sorted(maps.Keys(names)) {
		names[name] = int32(i)
	}
	all := make([]sample, 0, len(points))
	for i := range points {
		p := &points[i]
		if year := p.At.Year(); year < 1970 || year > 2200 {
			f.exclude(NoTime, 1)
			continue
		}
		s := sample{
			at: p.At.UnixNano(), pod: names[p.Pod], running: p.Running, kv: p.KVTokens, use: p.KVUse,
			prompts: p.PromptRate, tokens: p.TokenRate, itl: p.ITL, w: p.Weight,
		}
		if s.kv == 0 && s.use > 0 {
			s.kv = math.NaN()
		}
		if !finite(s.kv) && finite(s.use) {
			s.kv = s.use * f.cache
		}
		if !finite(s.use) && finite(s.kv) && f.cache > 0 {
			s.use = s.kv / f.cache
		}
		if f.shares && finite(s.use) {
			s.kv = s.use
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(a.at, b.at))
	})
	return f.distinct(all)
}

// distinct removes duplicates, and both of two samples that contradict each other.
func (f *fit) distinct(all []sample) []sample {
	kept := all[:0]
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].pod == all[i].pod && all[j].at == all[i].at {
			j++
		}
		if slices.ContainsFunc(all[i+1:j], func(s sample) bool { return !s.same(&all[i]) }) {
			f.exclude(Conflict, j-i)
		} else {
			f.exclude(Duplicate, j-i-1)
			kept = append(kept, all[i])
		}
		i = j
	}
	return kept
}

// same reports whether two samples are equal; unknown equals unknown.
func (s *sample) same(o *sample) bool {
	eq := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	return eq(s.running, o.running) && eq(s.kv, o.kv) && eq(s.use, o.use) && eq(s.prompts, o.prompts) &&
		eq(s.tokens, o.tokens) && eq(s.itl, o.itl) && eq(s.w, o.w)
}

// check returns why a sample's interval cannot be used, or an empty string.
func (s *sample) check() string {
	switch {
	case !(s.itl > 0) || !finite(s.itl):
		return NoITL
	case !finite(s.prompts):
		return NoPrompts
	case !(s.w > 0) || !finite(s.w):
		return NoWeight
	}
	return s.gauged()
}

// A row is a stretch of consecutive scrapes of one pod: one equation.
type row struct {
	from, to   int64
	w, y, p    float64 // weight, ITL, prompt tokens/s
	r1, r2     float64 // sequences; from two halves of the scrapes, or twice the same if they are counted
	k1, k2     float64 // cache content, from two halves of the scrapes too
	f, h, robu float64 // the model's ITL, 1/(1-pQ), and the robust weight
	q          float64 // prompt tokens/s, each counted as often as it delays a token of an average sequence
	random     bool    // requests came at random to one replica
	closed     bool    // each came when another was done
}

// rows makes equations of consecutive scrapes. Counters are added up, which is exact. Gauges have two means, one over every
// other scrape and one over those in between: both have the true mean, and independent sampling errors.
func (f *fit) rows(all []sample) []row {
	step := median(gaps(all))
	if step == 0 {
		f.exclude(Alone, len(all))
		return nil
	}
	f.step = step
	n := cmp.Or(f.together, max(4, int(math.Ceil(float64(5*time.Minute)/step))))
	f.window = time.Duration(float64(n) * step)
	var rows []row
	from := 0
	for i := range all {
		if i > from && (all[i].pod != all[from].pod || float64(all[i].at-all[i-1].at) > longestGap*step) {
			rows = f.short(rows, all[from:i], n)
			from = i
		}
		if i == from {
			if bad := all[i].gauged(); bad != "" {
				f.exclude(bad, 1)
				from = i + 1
			}
			continue
		}
		if bad := all[i].check(); bad != "" {
			f.exclude(bad, 1)
			if i-1 > from {
				rows = f.short(rows, all[from:i], n)
			}
			from = i + 1
			if all[i].gauged() == "" {
				from = i // its gauges begin a stretch
			}
			continue
		}
		if i-from == n {
			rows = append(rows, f.row(all[from:i+1]))
			from = i
		}
	}
	if left := len(all) - from - 1; left > 0 {
		rows = f.short(rows, all[from:], n)
	}
	return rows
}

// short makes an equation of a stretch that ended early, if it has at least half of the usual intervals, and at least four.
func (f *fit) short(rows []row, s []sample, n int) []row {
	if len(s)-1 < max(4, n/2) {
		f.exclude(Alone, len(s)-1)
		return rows
	}
	return append(rows, f.row(s))
}

// longestGap is the longest time between two scrapes of a stretch, in intervals: the increase of counters is known across
// failed scrapes.
const longestGap = 3.5

// fullest is the highest share of a cache in use.
const fullest = 0.9

// gauged returns why a sample cannot begin a stretch.
func (s *sample) gauged() string {
	switch {
	case !finite(s.running):
		return NoRunning
	case !finite(s.kv):
		return NoCache
	case s.use > fullest:
		return NearlyFull
	}
	return ""
}

// row adds up a stretch. Of its first sample only the gauges are used.
func (f *fit) row(s []sample) row {
	out := row{from: s[0].at, to: s[len(s)-1].at}
	span := float64(out.to-out.from) / 1e9
	counted, little, itl := true, 0.0, 0.0
	for i := 1; i < len(s); i++ {
		dt := float64(s[i].at-s[i-1].at) / 1e9
		out.w += s[i].w
		itl += s[i].w * s[i].itl
		out.p += s[i].prompts * dt
		counted = counted && s[i].tokens > 0 && finite(s[i].tokens)
		little += s[i].itl * s[i].tokens * dt
	}
	out.y, out.p = itl/out.w, out.p/span
	// The trapezoidal mean of the even scrapes, and the mean of the odd ones.
	last := len(s) - 1
	if last%2 == 1 {
		last-- // the last two share the last interval
	}
	half := func(value func(*sample) float64) (even, odd float64) {
		ne, no := 0.0, 0.0
		for i := range s {
			switch {
			case i%2 == 1:
				odd += value(&s[i])
				no++
			case i == 0 || i == last:
				even += value(&s[i]) / 2
				ne += 0.5
			default:
				even += value(&s[i])
				ne++
			}
		}
		return even / ne, odd / no
	}
	out.r1, out.r2 = half(func(s *sample) float64 { return s.running })
	out.k1, out.k2 = half(func(s *sample) float64 { return s.kv })
	if counted {
		// The cache content per sequence is from the scrapes; the number of sequences is counted.
		r := little / span
		out.k1 += f.each * (r - out.r1)
		out.k2 += f.each * (r - out.r2)
		out.r1, out.r2 = r, r
		f.counted++
	}
	return out
}

// gaps returns the times between scrapes of one pod.
func gaps(all []sample) []float64 {
	out := make([]float64, 0, len(all))
	for i := 1; i < len(all); i++ {
		if all[i].pod == all[i-1].pod {
			out = append(out, float64(all[i].at-all[i-1].at))
		}
	}
	return out
}

// median returns the lower median, 0 if x is empty. It sorts x.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[(len(x)-1)/2]
}
