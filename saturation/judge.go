package saturation

import (
	"iter"

	"github.com/inferscale/inferscale/internal/wva"
	"github.com/inferscale/inferscale/scaling"
)

// judge derives ShortKV, ShortQueue, ScaleUp and DownSafe.
func (s *Scaler) judge(a *Analysis, replicas []Replica) {
	t := &s.config.Thresholds
	total := &a.scratch.total
	spareKV, spareQueue := total.spareKV.value(), total.spareQueue.value()
	a.LoadKV = load(a.Free, t.KVCache, spareKV, total.fullKV.value())
	a.LoadQueue = load(a.Free, t.QueueLength, spareQueue, total.fullQueue.value())
	a.SpareKV, a.SpareQueue, a.AfterKV, a.AfterQueue = 0, 0, 0, 0
	n := a.Free
	if s.config.Mode == Default {
		n = a.Replicas
	}
	if n > 0 {
		idle := float64(a.Missing)
		a.SpareKV = (spareKV + idle*t.KVCache) / float64(n)
		a.SpareQueue = (spareQueue + idle*t.QueueLength) / float64(n)
	}
	if a.Free >= 2 {
		rest := float64(a.Free - 1)
		a.AfterKV = (float64(a.Free)*t.KVCache - spareKV) / rest
		a.AfterQueue = (float64(a.Free)*t.QueueLength - spareQueue) / rest
	}
	a.ShortKV, a.ShortQueue, a.DownSafe = false, false, false
	switch {
	case a.Replicas == 0:
	case s.config.Mode == Default:
		a.ShortKV, a.ShortQueue = scaling.Exceeds(t.KVSpare, a.SpareKV), scaling.Exceeds(t.QueueSpare, a.SpareQueue)
		a.DownSafe = a.Free >= 2 && a.Saturated == 0 && a.Missing == 0 && s.fits(a.AfterKV, a.AfterQueue)
	default:
		s.judgeLiterally(a, replicas)
	}
	a.ScaleUp = a.ShortKV || a.ShortQueue
}

// fits reports whether replicas with these average loads are not saturated and have enough spare capacity.
func (s *Scaler) fits(kv, queue float64) bool {
	t := &s.config.Thresholds
	return !scaling.Exceeds(kv, t.KVCache-t.KVSpare) && !scaling.Exceeds(queue, t.QueueLength-t.QueueSpare) &&
		kv < s.fullKV && queue < s.fullQueue
}

// judgeLiterally compares as mode Literal does: exactly at ties, and no comparison with NaN is true.
func (s *Scaler) judgeLiterally(a *Analysis, replicas []Replica) {
	judge := func(load func(*Replica) float64, spare, after, threshold, trigger float64) (short, safe bool) {
		if a.Free > 0 && (same(spare, trigger) || same(after+trigger, threshold)) {
			if short, safe, ok := wva.Tie(threshold, trigger, s.free(replicas, load)); ok {
				return short, safe
			}
		}
		return spare < trigger, a.Free >= 2 && threshold-after >= trigger
	}
	t, safeKV, safeQueue := &s.config.Thresholds, false, false
	a.ShortKV, safeKV = judge(func(r *Replica) float64 { return r.KV }, a.SpareKV, a.AfterKV, t.KVCache, t.KVSpare)
	a.ShortQueue, safeQueue = judge(func(r *Replica) float64 { return r.Queue }, a.SpareQueue, a.AfterQueue, t.QueueLength, t.QueueSpare)
	a.DownSafe = safeKV && safeQueue
}

// free iterates over one load of the replicas that are not saturated.
func (s *Scaler) free(replicas []Replica, load func(*Replica) float64) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for i := range replicas {
			if r := &replicas[i]; !s.isSaturated(*r) && !yield(load(r)) {
				return
			}
		}
	}
}

// same reports whether two numbers differ by at most Noise.
func same(a, b float64) bool { return !scaling.Exceeds(a, b) && !scaling.Exceeds(b, a) }
