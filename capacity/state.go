package capacity

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/inferscale/inferscale/internal/starts"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// State is what a Scaler remembers: plain data of at most a few hundred samples. The zero value is a fresh start.
//
// Decide reuses the slices of the state it is given: like a slice passed to append, that state must not be used again.
type State struct { //nolint:recvcheck // Validate is looked for on the value
	Seen `json:"volatile,omitzero"` // scaling.Durable leaves it out

	Began  float64 `json:"began,omitempty"` // Unix seconds of the first sample
	Tuned  float64 `json:"tuned,omitempty"`
	Tuning Tuning  `json:"tuning"`
	// Guard is the headroom added because requests missed the SLO: the capacity is divided by 1+Guard.
	Guard float64 `json:"guard,omitempty"`
	starts.Learned
}

// Seen is the part of a State that may not be stored and is then gathered again. Until then the Scaler does not scale down, as
// after a fresh start; the capacity that was found stays in force.
type Seen struct {
	Since   float64  `json:"since,omitempty"` // Unix seconds of the first of these samples
	Asked   float64  `json:"asked,omitempty"` // Unix seconds of the last decision
	Samples []Sample `json:"samples,omitempty"`
	Raw     Sample   `json:"raw"`             // the counters as they were read last
	Before  Sample   `json:"before"`          // what they had counted before their last reset
	Needs   Peaks    `json:"needs"`           // of the work
	Means   Peaks    `json:"means"`           // of the mean work
	Counts  Peaks    `json:"counts"`          // of replicas that Crowded asked for
	Lengths []Sizes  `json:"lengths"`         // of periods of the past, oldest first
	Sizes   Sizes    `json:"sizes"`           // as they were read last
	Every   float64  `json:"every,omitempty"` // seconds between the last two samples
	// Settled is the time since which the fleet has had the replicas it needs, 0 while it has not.
	Settled float64 `json:"settled,omitempty"`
	// Unsure are Guard and Settled as they would be if no more had waited than is certain. No replica goes that this guard keeps.
	Unsure Watch `json:"unsure,omitzero"`
	// Short is what was asked for, and since when fewer than that are ready. Excusing says that what is missed is excused, see excuse.
	Short    starts.Rise `json:"short,omitzero"`
	Excusing bool        `json:"excusing,omitempty"`
	// Wanted is what the last decision would have asked for beyond Max, 0 if that was within it.
	Wanted int32 `json:"wanted,omitempty"`
	// TTFT and TPOT are the SLO, in seconds, by which the samples count what is late and slow.
	TTFT float64 `json:"ttft,omitempty"`
	TPOT float64 `json:"tpot,omitempty"`
}

// A Watch is a guard, and the time since which the fleet has had the replicas it needs.
type Watch struct {
	Guard   float64 `json:"guard,omitempty"`
	Settled float64 `json:"settled,omitempty"`
}

// Peaks are past needs that no later need exceeds, oldest first, in replicas or in replica-seconds per second (work). The number of
// replicas that a need in work takes may have changed since.
type Peaks []Peak

// A Peak is a need at a time.
type Peak struct {
	At    float64 `json:"at"`
	Value float64 `json:"value"`
}

// Sizes are histograms of prompt and answer lengths since a time.
type Sizes struct {
	At      float64 `json:"at"`
	Prompts Buckets `json:"prompts"`
	Answers Buckets `json:"answers"`
}

// Buckets are counts in buckets, and the sum of what was counted.
type Buckets struct {
	Bounds []float64 `json:"bounds,omitempty"`
	Counts []float64 `json:"counts,omitempty"`
	Sum    float64   `json:"sum,omitempty"`
}

const (
	mostSamples = 512 // beyond which the older half is dropped, as far as it is older than the history
	mostBuckets = 256
	lengthsSpan = 300.0
	spacing     = history / (mostSamples / 2) // seconds between every other sample, at least
	mostAsked   = 1e12                        // Unix seconds up to which times are exact to a millisecond
)

// Clone returns a copy that shares no memory.
func (s State) Clone() State {
	s.Samples, s.Needs, s.Means, s.Counts = slices.Clone(s.Samples), slices.Clone(s.Needs), slices.Clone(s.Means), slices.Clone(s.Counts)
	s.Lengths, s.Sizes, s.Learned = slices.Clone(s.Lengths), s.Sizes.clone(), starts.Clone(s.Learned)
	s.Tuning.Found = slices.Clone(s.Tuning.Found)
	for i := range s.Lengths {
		s.Lengths[i] = s.Lengths[i].clone()
	}
	return s
}

func (s *Sizes) clone() Sizes { return Sizes{s.At, s.Prompts.clone(), s.Answers.clone()} }

func (b *Buckets) clone() Buckets {
	return Buckets{slices.Clone(b.Bounds), slices.Clone(b.Counts), b.Sum}
}

// Durable returns the state without what was seen.
func (s State) Durable() State {
	s.Seen = Seen{}
	return s
}

// Validate reports what cannot be the state of any Scaler.
func (s State) Validate() error {
	if len(s.Samples) > 2*mostSamples || len(s.Lengths) > 64 || max(len(s.Needs), len(s.Means), len(s.Counts)) > 2*mostSamples {
		return errors.New("more is remembered than a Scaler can")
	}
	last := math.Inf(-1)
	for i := range s.Samples {
		if x := &s.Samples[i]; !x.valid() || !x.exact() || x.At < last {
			return fmt.Errorf("samples[%d]: must be counts that are not negative, at most 2^53, in order of time", i)
		}
		last = s.Samples[i].At
	}
	for k, peaks := range s.peaks() {
		for i := 1; i < len(peaks); i++ {
			if peaks[i].At < peaks[i-1].At || !(peaks[i].Value < peaks[i-1].Value) {
				return fmt.Errorf("%s[%d]: must be later and less than the one before", [...]string{"needs", "means", "counts"}[k], i)
			}
		}
	}
	for _, p := range s.peaks() {
		if len(p) > 0 {
			last = max(last, p[len(p)-1].At)
		}
	}
	for i := range s.Lengths {
		last = max(last, s.Lengths[i].At)
	}
	if !(math.Abs(s.Asked) <= mostAsked) {
		return errors.New("asked: must be a time")
	}
	if last > s.Asked+1 {
		return errors.New("asked: must not be before what was seen")
	}
	for i := range s.Lengths {
		if !s.Lengths[i].Prompts.valid() || !s.Lengths[i].Answers.valid() {
			return fmt.Errorf("lengths[%d]: must have a count for each bucket and one above", i)
		}
	}
	if !counts(s.TTFT) || !counts(s.TPOT) {
		return errors.New("ttft, tpot: must be seconds")
	}
	if !s.Raw.valid() || !s.Before.valid() || !s.Sizes.Prompts.valid() || !s.Sizes.Answers.valid() || !(s.Guard >= 0 && s.Guard <= mostGuard) ||
		!(s.Unsure.Guard >= 0 && s.Unsure.Guard <= mostGuard) {
		return errors.New("counters must be numbers that are not negative")
	}
	if err := starts.Validate(&s.Learned); err != nil {
		return err
	}
	return s.Tuning.validate()
}

// peaks are all needs that are held.
func (s *Seen) peaks() [3]Peaks { return [...]Peaks{s.Needs, s.Means, s.Counts} }

func (b *Buckets) valid() bool {
	if len(b.Counts) == 0 {
		return len(b.Bounds) == 0 && b.Sum == 0
	}
	h := scaling.Histogram{Bounds: b.Bounds, Counts: b.Counts, Sum: b.Sum}
	return h.Known() && len(b.Counts) <= mostBuckets
}

func (b *Buckets) total() (n float64) {
	for _, c := range b.Counts {
		n += c
	}
	return n
}

// alike reports whether the buckets are those of a histogram.
func (b *Buckets) alike(h *scaling.Histogram) bool {
	return len(b.Counts) == len(h.Counts) && slices.Equal(b.Bounds, h.Bounds)
}

// grow adds what a histogram has counted since it was last read, and notes its new counts in read, which has the same bounds. Buckets
// with other bounds begin anew.
func (b *Buckets) grow(read *Buckets, h *scaling.Histogram) {
	if len(h.Counts) > mostBuckets {
		return
	}
	other := !read.alike(h)
	if other || len(b.Counts) != len(h.Counts) {
		*b = Buckets{Bounds: append(b.Bounds[:0], h.Bounds...), Counts: make([]float64, len(h.Counts))}
	}
	if other || h.Sum < read.Sum {
		*read = Buckets{Bounds: append(read.Bounds[:0], h.Bounds...), Counts: make([]float64, len(h.Counts))}
	}
	for i, n := range h.Counts {
		b.Counts[i] += max(0, n-read.Counts[i])
		read.Counts[i] = n
	}
	b.Sum += max(0, h.Sum-read.Sum)
	read.Sum = h.Sum
}

// see adds a sample, and reports whether it is new.
func (s *State) see(x Sample, obs *scaling.Observation) bool {
	n := len(s.Samples)
	if n > 0 && x.At <= s.Samples[n-1].At {
		return false // nothing was scraped since, or the clock went back
	}
	if x.fell(&s.Raw) {
		s.Before = x.begun(&s.Raw, s.Before)
	}
	s.Raw = x
	x.add(&s.Before)
	if !x.valid() || !x.exact() { // counts that are too large together begin anew
		x, s.Before, n, s.Samples = s.Raw, Sample{}, 0, s.Samples[:0]
	}
	if n > 0 {
		s.Every = x.At - s.Samples[n-1].At
	}
	if n > 0 && s.Samples[0].Partly && x.Absent < s.Samples[0].Absent {
		n, s.Samples = 0, s.Samples[:0] // pods answer that did not at the first sample: all they ever counted would look like new arrivals
	}
	if n == 0 {
		s.Since, s.Tuned = x.At, x.At
		s.Tuning.At = min(s.Tuning.At, x.At) // the clock may have gone back since the state was stored
		if s.Tuning.Capacity == 0 || s.Began == 0 || s.Began > x.At {
			s.Began = x.At
		}
	}
	if n >= 2 && x.At-s.Samples[n-2].At < spacing {
		s.Samples[n-1] = x
	} else {
		if n >= mostSamples {
			old := 0
			for old < n-mostSamples/2-1 && s.Samples[old+1].At <= x.At-history {
				old++
			}
			if whole := slices.IndexFunc(s.Samples[old:], func(a Sample) bool { return !a.Partly }); whole > 0 {
				old += whole // rates begin there
			}
			s.Samples = s.Samples[:copy(s.Samples, s.Samples[old:])]
		}
		s.Samples = append(s.Samples, x)
	}
	if k := len(s.Lengths); k == 0 || x.At >= s.Lengths[k-1].At+lengthsSpan && s.Lengths[k-1].Answers.total() >= 50 {
		if k > 0 && s.Lengths[0].At+lengthsSpan < x.At-history && k > 1 && s.Lengths[1].At <= x.At-history {
			s.Lengths = s.Lengths[:copy(s.Lengths, s.Lengths[1:])]
		}
		s.Lengths = append(s.Lengths, Sizes{At: x.At})
	}
	l := &s.Lengths[len(s.Lengths)-1]
	l.Prompts.grow(&s.Sizes.Prompts, obs.Histogram(PromptSize))
	l.Answers.grow(&s.Sizes.Answers, obs.Histogram(AnswerSize))
	return true
}

// excuse counts what is missed while the fleet lacks replicas, once they were wanted longer ago than patience, until no queue is
// left: it lacks nodes, or Max is too low. It says nothing of what a replica can take, and is not remembered. A fleet that lacks a fifth
// or less is not short: one pod that never starts does not explain what all miss.
func (s *State) excuse(wanted, ready int32, patience float64) {
	x, a := s.last(), s.last()
	if n := len(s.Samples); n > 1 {
		a = &s.Samples[n-2]
	}
	switch {
	case float64(ready) >= 0.8*float64(wanted):
		s.Short = starts.Rise{}
	case s.Short.Count == 0 || ready >= s.Short.Count:
		s.Short = starts.Rise{At: x.At, Count: wanted}
	default:
		s.Short.Count = min(s.Short.Count, wanted)
	}
	switch {
	case s.Short.Count > 0 && x.At-s.Short.At > patience:
		if !s.Excusing { // nor is what was missed since
			from := s.back(x.At - s.Short.At)
			a.Excused += max(0, a.missed(from))
			a.ExcusedOf += max(0, a.served(from))
		}
		s.Excusing = true
	case s.Short.Count == 0 && x.queued() <= float64(x.Ready):
		s.Excusing = false
	}
	if x.Excused, x.ExcusedOf = a.Excused, a.ExcusedOf; s.Excusing && a != x {
		x.Excused += max(0, x.missed(a))
		x.ExcusedOf += max(0, x.served(a))
	}
}

// judge handles an SLO that was changed: a histogram counts as late what was late by the new SLO since it began. So nothing counts as
// missed between the last sample and x, and a tuning is due.
func (s *State) judge(x *Sample, slo sim.SLO) {
	ttft, tpot := slo.TTFT.Seconds(), slo.TPOT.Seconds()
	if s.TTFT == ttft && s.TPOT == tpot {
		return
	}
	changed := s.TTFT != 0 && len(s.Samples) > 0
	if s.TTFT, s.TPOT = ttft, tpot; !changed {
		return
	}
	last := *s.last()
	s.Raw.Late, s.Before.Late = x.Late, max(0, last.Late-x.Late)
	s.Raw.Slow, s.Before.Slow = x.Slow, max(0, last.Slow-x.Slow)
	for i := range s.Samples {
		s.Samples[i].Late += max(0, x.Late-last.Late)
		s.Samples[i].Slow += max(0, x.Slow-last.Slow)
	}
	s.Tuned = min(s.Tuned, last.At-tuneEvery)
}

// turnBack handles a clock that went back: it moves all remembered times back by as much as the clock is behind the last decision, and
// by the interval of scrapes, which has passed since: nothing lies in the future, and what was counted in that interval is not taken for
// what came in no time. It returns by how much the clock is behind.
func (s *State) turnBack(now, interval float64) (by float64) {
	was := s.Asked
	s.Asked = now
	if by = was - now; by <= 0 || was == 0 {
		return 0
	}
	if len(s.Samples) == 0 {
		return by
	}
	behind := by
	by += interval
	for _, t := range [...]*float64{&s.Began, &s.Since, &s.Tuned, &s.Tuning.At, &s.Short.At} {
		*t -= by
	}
	for _, t := range [...]*float64{&s.Settled, &s.Unsure.Settled} {
		if *t != 0 {
			*t -= by
		}
	}
	for i := range s.Samples {
		s.Samples[i].At -= by
	}
	for _, peaks := range s.peaks() {
		for i := range peaks {
			peaks[i].At -= by
		}
	}
	for i := range s.Rises {
		s.Rises[i].At -= by
	}
	for i := range s.Lengths {
		s.Lengths[i].At -= by
	}
	return behind
}

// back returns the latest sample that is at least w seconds older than the last one and to which every pod answered, or else the
// oldest. Counted from a sample that lacks pods, all that these had counted before would look like new arrivals.
func (s *State) back(w float64) *Sample {
	last := len(s.Samples) - 1
	t := s.Samples[last].At - w + 1e-3
	i := max(0, last-int(w/spacing)) // near it where pods are scraped as often as samples are kept
	for i < last && s.Samples[i+1].At <= t {
		i++
	}
	for i > 0 && (s.Samples[i].At > t || s.Samples[i].Partly) {
		i--
	}
	return &s.Samples[i]
}

func (s *State) last() *Sample { return &s.Samples[len(s.Samples)-1] }

// rate returns arrivals per second in the last w seconds, and how many more there may have been.
func (s *State) rate(w float64) (rate, unsure float64) {
	a, b := s.back(w), s.last()
	return between(a, b), unsureBetween(a, b)
}

// quiet returns for how many seconds certainly nothing arrived or was served, up to an hour or more. A gap in the samples does not count:
// the clock may have been put forward.
func (s *State) quiet() float64 {
	x := s.last()
	if x.Partly || x.Vague || x.queued() > 0 || x.Running > 0 {
		return 0
	}
	from := s.back(history)
	if from.Partly || x.atMost(from) > 0 {
		return 0
	}
	return x.At - max(from.At, s.Since)
}

// between returns arrivals per second between two samples.
func between(a, b *Sample) float64 {
	if b.At <= a.At {
		return 0
	}
	return b.since(a) / (b.At - a.At)
}

// unsureBetween returns how many more arrivals per second there may have been between two samples.
func unsureBetween(a, b *Sample) float64 {
	if b.At <= a.At || a.Queue <= a.Waiting && b.Queue <= b.Waiting {
		return 0
	}
	return (b.atMost(a) - b.since(a)) / (b.At - a.At)
}

// sizes returns the mean tokens of a prompt and of an answer in the last w seconds, or since the state began if there were none.
func (s *State) sizes(w float64) (prompt, answer float64) {
	a, b := s.back(w), s.last()
	return lately(a.Prefilled, b.Prefilled, a.Firsts, b.Firsts), lately(a.Generated, b.Generated, a.Finished, b.Finished)
}

// lately returns the mean of what was counted since a time, or the mean of everything if nothing was. Less than one is nothing: its mean
// may be infinite.
func lately(wasSum, sum, was, n float64) float64 {
	if n-was < 1 {
		wasSum, was = 0, 0
	}
	if n-was < 1 {
		return 0
	}
	return (sum - wasSum) / (n - was)
}

// surging returns the arrivals per second between two samples minus what chance can add to them. It exceeds the rate over a longer
// time only if arrivals have jumped.
func surging(a, b *Sample, dispersion float64) float64 {
	if b.At <= a.At {
		return 0
	}
	came := b.since(a)
	return max(0, came-surge*math.Sqrt(came*dispersion)) / (b.At - a.At)
}

// longer returns the mean tokens of a prompt between two samples minus what chance can add to it. It exceeds the mean over a longer
// time only if prompts have become longer. deviation is the standard deviation of a prompt over its mean, 0 if unknown.
func longer(a, b *Sample, deviation float64) float64 {
	n := b.Firsts - a.Firsts
	if n < 1 || b.Partly {
		return 0
	}
	if deviation == 0 {
		deviation = 1
	}
	return (b.Prefilled - a.Prefilled) / n * max(0, 1-lengthened*deviation/math.Sqrt(n))
}

// steady returns the arrivals per second that certainly came in the last minute while pods are silent, and 0 if no pod is. Other rates
// then begin before the silence. steady is the least rate between neighbours of at least four samples, since a pod that answers
// again adds all it counted meanwhile between two of them. It looks back only until a sample in which fewer pods were silent than
// in the one before it.
func (s *State) steady() float64 {
	least, last := math.Inf(1), len(s.Samples)-1
	if s.Samples[last].Absent == 0 {
		return 0
	}
	for i := last; i > 0 && s.Samples[i-1].Absent <= s.Samples[i].Absent; i-- {
		a := &s.Samples[i-1]
		least = min(least, between(a, &s.Samples[i]))
		if last-i >= 2 && s.Samples[last].At-a.At >= rateSpan-1e-3 {
			return least
		}
	}
	return 0
}

// trend returns by how much the rate will have grown in lead seconds if it goes on growing as in the last span seconds. It measures
// growth beyond the noise of the counts twice, from the first third of the span to the middle one and from there to the last, and
// uses the smaller value, so that a jump is not a trend.
func (s *State) trend(span, lead, dispersion float64) float64 {
	p := [4]*Sample{s.back(span), s.back(2 * span / 3), s.back(span / 3), s.last()}
	var least, most, long [3]float64
	for i := range long {
		if long[i] = p[i+1].At - p[i].At; long[i] < span/5 {
			return 0
		}
		least[i], most[i] = p[i+1].since(p[i])/long[i], p[i+1].atMost(p[i])/long[i]
	}
	more := math.Inf(1)
	for i := range 2 {
		noise := math.Sqrt(dispersion * (most[i]/long[i] + least[i+1]/long[i+1]))
		more = min(more, max(0, least[i+1]-most[i]-noise)/((long[i]+long[i+1])/2))
	}
	return more * (lead + long[2]/2)
}

// growing returns the load as it will be in lead seconds if the requests in flight and their tokens go on growing as in the
// last span seconds. It measures growth beyond the noise of their number in the first two thirds of the span and in the last two, and
// uses the smaller value. It assumes no growth while requests wait, since requests in flight then grow with the replicas that
// become ready, and while the readings are intervals.
func (s *State) growing(span, lead, dispersion float64) load {
	x := s.last()
	l := x.load()
	if x.Waiting > float64(x.Ready) {
		return l
	}
	p := [...]*Sample{s.back(span), s.back(2 * span / 3), s.back(span / 3), x}
	running, kv := math.Inf(1), math.Inf(1)
	for i, a := range p[:2] {
		b := p[i+2]
		dt := b.At - a.At
		if dt < span/3 || b.Running == 0 || a.Vague || b.Vague {
			return l
		}
		sure := max(0, 1-math.Sqrt(dispersion*(a.Running+b.Running))/b.Running) // share of it that is no noise
		running = min(running, max(0, b.Running*sure-a.Running)/dt)
		kv = min(kv, max(0, b.KV*sure-a.KV)/dt)
	}
	return load{l.running + running*lead, l.kv + kv*lead}
}

// times changes the needs to a unit that is so many times smaller. Of those that are rounded to the same value the latest stays.
func (p *Peaks) times(unit float64) {
	all := (*p)[:0]
	for _, peak := range *p {
		peak.Value *= unit
		if k := len(all); k > 0 && all[k-1].Value <= peak.Value {
			all = all[:k-1]
		}
		all = append(all, peak)
	}
	*p = all
}

// hold records a need and returns the largest of the last w seconds. It remembers at least an hour, as w may grow.
func (p *Peaks) hold(at, value, w float64) float64 {
	all := *p
	k := len(all)
	for k > 0 && all[k-1].Value <= value {
		k--
	}
	// Of two needs in close succession the higher is kept, at the time of the later one: this bounds how many there can be.
	if all = all[:k]; k > 1 && at-all[k-2].At < max(w, history)/(mostSamples-1) {
		all[k-1].At = at
	} else {
		all = append(all, Peak{at, value})
	}
	old := 0
	for all[old].At < at-max(w, history) {
		old++
	}
	if old > 0 {
		all = all[:copy(all, all[old:])]
	}
	*p = all
	for _, peak := range all {
		if peak.At >= at-w-1e-3 {
			return peak.Value
		}
	}
	return value
}
