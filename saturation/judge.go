package saturation

import "github.com/inferscale/inferscale/scaling"

// judge draws the conclusions.
func (s *Scaler) judge(a *Analysis, replicas []Replica) {
	t := &s.config.Thresholds
	total := &a.scratch.total
	spareKV, spareQueue := total.spareKV.value(s.scales.spareKV), total.spareQueue.value(s.scales.spareQueue)
	a.LoadKV = load(a.Free, t.KVCache, spareKV, total.fullKV.value(s.scales.fullKV))
	a.LoadQueue = load(a.Free, t.QueueLength, spareQueue, total.fullQueue.value(s.scales.fullQueue))
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

// fits reports whether replicas with these average loads are not saturated and have enough to spare.
func (s *Scaler) fits(kv, queue float64) bool {
	t := &s.config.Thresholds
	return !scaling.Exceeds(kv, t.KVCache-t.KVSpare) && !scaling.Exceeds(queue, t.QueueLength-t.QueueSpare) &&
		kv < s.fullKV && queue < s.fullQueue
}

// judgeLiterally compares as mode Literal does: ties are decided in decimals, and comparisons with NaN are false.
func (s *Scaler) judgeLiterally(a *Analysis, replicas []Replica) {
	t := &s.config.Thresholds
	kv := func(r *Replica) float64 { return r.KV }
	queue := func(r *Replica) float64 { return r.Queue }
	a.ShortKV = literallyShort(a.SpareKV, a.Free, t, replicas, kv, t.KVCache, t.KVSpare)
	a.ShortQueue = literallyShort(a.SpareQueue, a.Free, t, replicas, queue, t.QueueLength, t.QueueSpare)
	a.DownSafe = a.Free >= 2 &&
		literallySafe(a.AfterKV, t, replicas, kv, t.KVCache, t.KVSpare) &&
		literallySafe(a.AfterQueue, t, replicas, queue, t.QueueLength, t.QueueSpare)
}

func literallyShort(spare float64, free int, t *Thresholds, replicas []Replica, load func(*Replica) float64, threshold, trigger float64) bool {
	if free > 0 && same(spare, trigger) {
		if s, ok := tieOf(replicas, t, load, threshold, trigger); ok {
			return s.short()
		}
	}
	return spare < trigger
}

func literallySafe(after float64, t *Thresholds, replicas []Replica, load func(*Replica) float64, threshold, trigger float64) bool {
	if same(after+trigger, threshold) {
		if s, ok := tieOf(replicas, t, load, threshold, trigger); ok {
			return s.safe()
		}
	}
	return threshold-after >= trigger
}

// same reports whether two numbers differ by Noise at most.
func same(a, b float64) bool { return !scaling.Exceeds(a, b) && !scaling.Exceeds(b, a) }
