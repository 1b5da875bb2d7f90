package saturation

import (
	"math"
	"slices"
	"strings"
)

// An Analysis is the joint state of the replicas of one model. Its exported part is a plain value; it also carries scratch
// space, so that a caller who passes the same Analysis to Analyze again allocates nothing.
type Analysis struct {
	// Replicas is the number of rows: Free + Saturated + Missing.
	Replicas  int `json:"replicas"`
	Free      int `json:"free"`      // replicas that are not saturated
	Saturated int `json:"saturated"` // replicas at or above a threshold
	Missing   int `json:"missing"`   // replicas without a usable value

	// SpareKV and SpareQueue are the average spare capacity of a replica. In mode Default the average is over all replicas:
	// a saturated one counts 0, a missing one its whole threshold. In mode Literal it is over those that are not saturated.
	SpareKV    float64 `json:"spareKV"`
	SpareQueue float64 `json:"spareQueue"`
	// AfterKV and AfterQueue are the average loads with one replica less and its load spread over the rest. They are 0 if
	// fewer than two replicas are not saturated.
	AfterKV    float64 `json:"afterKV"`
	AfterQueue float64 `json:"afterQueue"`
	// LoadKV and LoadQueue are the total loads, saturated replicas included.
	LoadKV    float64 `json:"loadKV"`
	LoadQueue float64 `json:"loadQueue"`

	// ShortKV and ShortQueue say which trigger asks for a scale-up.
	ShortKV    bool `json:"shortKV"`
	ShortQueue bool `json:"shortQueue"`
	// ScaleUp is ShortKV or ShortQueue. DownSafe means that the model can do without one replica of average capacity. They
	// are never both true.
	ScaleUp  bool `json:"scaleUp"`
	DownSafe bool `json:"downSafe"`

	// PeakKV and PeakQueue are the replicas with the highest loads; of equal loads the first by variant and pod. They have
	// no pod if every load is 0.
	PeakKV    Peak `json:"peakKV"`
	PeakQueue Peak `json:"peakQueue"`
	// Lost is the first missing replica by variant and pod.
	Lost Peak `json:"lost"`

	// Variants are the variants that have rows, in order of their names.
	Variants []VariantAnalysis `json:"variants"`

	scratch struct {
		parts  []part
		order  []int32
		places map[string]int32
		total  totals
	}
}

// A VariantAnalysis is the joint state of the replicas of one variant.
type VariantAnalysis struct {
	Variant    string  `json:"variant"`
	Replicas   int     `json:"replicas"`
	Free       int     `json:"free"`
	Saturated  int     `json:"saturated"`
	Missing    int     `json:"missing"`
	SpareKV    float64 `json:"spareKV"`    // average over the replicas that are not saturated; 0 if all are
	SpareQueue float64 `json:"spareQueue"` // the same for the queue
	AverageKV  float64 `json:"averageKV"`  // usage, averaged over all replicas with a value
	MaxKV      float64 `json:"maxKV"`
	MaxQueue   float64 `json:"maxQueue"`
}

// A Peak is one replica and one of its loads.
type Peak struct {
	Pod     string  `json:"pod"`
	Variant string  `json:"variant"`
	Load    float64 `json:"load"`
}

// note keeps the higher of two loads within one variant; of equal loads the first by pod.
func (p *Peak) note(pod string, load float64) {
	if load > p.Load || pod < p.Pod {
		p.Pod, p.Load = pod, load
	}
}

// totals are exact sums over replicas: the spare capacity of those that are not saturated, and the loads of those that are.
type totals struct {
	spareKV, spareQueue sum
	fullKV, fullQueue   sum
}

func (t *totals) join(o *totals) {
	t.spareKV.join(&o.spareKV)
	t.spareQueue.join(&o.spareQueue)
	t.fullKV.join(&o.fullKV)
	t.fullQueue.join(&o.fullQueue)
}

// part gathers the replicas of one variant.
type part struct {
	name                     string
	free, saturated, missing int
	peakKV, peakQueue        Peak
	lost                     Peak
	totals
}

// Analyze computes the saturation of a model. The order of the replicas does not matter: the result is the same bit for bit.
// It is written to a, whose former content is discarded and whose memory is reused.
//
// In mode Default, over all N replicas with spare_i = threshold - load_i, or 0 for a saturated replica:
//
//	spare   = sum(spare_i) / N
//	up      if spareKV < kvSpareTrigger or spareQueue < queueSpareTrigger
//	after   = sum(load_i) / (N-1)
//	safe    if N >= 2, none is saturated, none is missing,
//	        and threshold - after >= trigger for both
//
// In mode Literal the averages and N are over the replicas that are not saturated, and saturated ones do not prevent "safe".
// With thresholds 0.80 and 5 and triggers 0.10 and 3, nine replicas at 0.95 and one at 0.20 have a spare of 0.06 in mode
// Default (up) and of 0.60 in mode Literal (not up).
//
// Sums are taken in whole billionths, so that the order of the rows changes no bit; loads above 1e9 count as 1e9.
//
// In mode Default a row with NaN, an infinity or a negative value is missing. It counts as idle for up, so that an up is
// right whatever the missing value is, and it prevents down. Mode Literal uses such values as they are.
func (s Scaler) Analyze(a *Analysis, replicas []Replica) {
	a.scratch.parts = a.scratch.parts[:0]
	a.scratch.total = totals{}
	clear(a.scratch.places)
	s.gather(a, replicas)
	s.settle(a)
	s.judge(a, replicas)
}

// gather sorts the replicas into the parts of their variants.
func (s *Scaler) gather(a *Analysis, replicas []Replica) {
	w := &a.scratch
	thresholdKV, thresholdQueue := s.config.KVCache, s.config.QueueLength
	fullKV, fullQueue := s.fullKV, s.fullQueue
	at, p := 0, (*part)(nil)
	for i := range replicas {
		r := &replicas[i]
		if p == nil || p.name != r.Variant {
			at = a.part(r.Variant, at+1)
			p = &w.parts[at]
		}
		kv, queue := r.KV, r.Queue
		if !(kv < fullKV && queue < fullQueue && kv >= 0 && queue >= 0) {
			s.gatherOdd(p, r)
			continue
		}
		p.free++
		p.spareKV.addSpare(thresholdKV - kv)
		p.spareQueue.addSpare(thresholdQueue - queue)
		if kv >= p.peakKV.Load {
			p.peakKV.note(r.Pod, kv)
		}
		if queue >= p.peakQueue.Load {
			p.peakQueue.note(r.Pod, queue)
		}
	}
}

// gatherOdd adds a replica that is saturated, or that has a value which is negative or not a number.
func (s *Scaler) gatherOdd(p *part, r *Replica) {
	kv, queue := r.KV, r.Queue
	switch {
	case s.config.Mode == Default && !usable(kv, queue):
		if p.missing == 0 || r.Pod < p.lost.Pod {
			p.lost.Pod = r.Pod
		}
		p.missing++
		return
	case kv >= s.fullKV || queue >= s.fullQueue:
		p.saturated++
		p.fullKV.add(kv)
		p.fullQueue.add(queue)
	default:
		p.free++
		p.spareKV.add(s.config.KVCache - kv)
		p.spareQueue.add(s.config.QueueLength - queue)
	}
	if kv >= p.peakKV.Load {
		p.peakKV.note(r.Pod, kv)
	}
	if queue >= p.peakQueue.Load {
		p.peakQueue.note(r.Pod, queue)
	}
}

// few is the number of variants up to which they are searched one by one.
const few = 8

// part returns the index of a variant's part, and adds the part if there is none. It tries the guess first.
func (a *Analysis) part(name string, guess int) int {
	w := &a.scratch
	if guess >= len(w.parts) {
		guess = 0
	}
	switch {
	case guess < len(w.parts) && w.parts[guess].name == name:
		return guess
	case len(w.parts) <= few:
		for i := range w.parts {
			if w.parts[i].name == name {
				return i
			}
		}
	default:
		if i, ok := w.places[name]; ok {
			return int(i)
		}
	}
	n := len(w.parts)
	none := Peak{Variant: name}
	w.parts = append(w.parts, part{name: name, peakKV: none, peakQueue: none, lost: none})
	switch {
	case n == few:
		if w.places == nil {
			w.places = map[string]int32{}
		}
		for i := range w.parts {
			w.places[w.parts[i].name] = int32(i)
		}
	case n > few:
		w.places[name] = int32(n)
	}
	return n
}

// settle sorts the parts by name and adds them up.
func (s *Scaler) settle(a *Analysis) {
	w := &a.scratch
	w.order = w.order[:0]
	sorted := true
	for i := range w.parts {
		w.order = append(w.order, int32(i))
		sorted = sorted && (i == 0 || w.parts[i-1].name < w.parts[i].name)
	}
	if !sorted {
		slices.SortFunc(w.order, func(i, j int32) int { return strings.Compare(w.parts[i].name, w.parts[j].name) })
	}

	a.Replicas, a.Free, a.Saturated, a.Missing = 0, 0, 0, 0
	a.PeakKV, a.PeakQueue, a.Lost = Peak{}, Peak{}, Peak{}
	a.Variants = a.Variants[:0]
	for _, i := range w.order {
		p := &w.parts[i]
		w.total.join(&p.totals)
		v := VariantAnalysis{
			Variant: p.name, Replicas: p.free + p.saturated + p.missing,
			Free: p.free, Saturated: p.saturated, Missing: p.missing,
			MaxKV: p.peakKV.Load, MaxQueue: p.peakQueue.Load,
		}
		spareKV := 0.0
		if p.free > 0 {
			spareKV = p.spareKV.value()
			v.SpareKV, v.SpareQueue = spareKV/float64(p.free), p.spareQueue.value()/float64(p.free)
		}
		if n := p.free + p.saturated; n > 0 {
			v.AverageKV = load(p.free, s.config.KVCache, spareKV, p.fullKV.value()) / float64(n)
		}
		a.Variants = append(a.Variants, v)
		a.Replicas += v.Replicas
		a.Free += v.Free
		a.Saturated += v.Saturated
		a.Missing += v.Missing
		// The parts are in order of names, so a later variant must be above to win.
		if p.peakKV.Load > a.PeakKV.Load {
			a.PeakKV = p.peakKV
		}
		if p.peakQueue.Load > a.PeakQueue.Load {
			a.PeakQueue = p.peakQueue
		}
		if p.missing > 0 && a.Lost == (Peak{}) {
			a.Lost = p.lost
		}
	}
}

// load returns the total load of replicas of which n are not saturated.
func load(n int, threshold, spare, full float64) float64 {
	return float64(n)*threshold - spare + min(full, math.MaxFloat64)
}
