package saturation

import (
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// sayShort adds the remark which trigger asks for a scale-up.
func (s *Scaler) sayShort(a *Analysis, p *Plan) {
	t := &s.config.Thresholds
	saturated, replicas := float64(a.Saturated), float64(a.Replicas)
	clearKV, clearQueue := scaling.Exceeds(t.KVSpare, a.SpareKV), scaling.Exceeds(t.QueueSpare, a.SpareQueue)
	switch {
	case clearKV && clearQueue:
		p.say(ShortBoth, a.PeakKV.Pod, a.SpareKV, t.KVSpare, a.SpareQueue, t.QueueSpare)
	case clearQueue:
		p.say(ShortQueue, a.PeakQueue.Pod, a.SpareQueue, t.QueueSpare, saturated, replicas)
	case clearKV:
		p.say(ShortKV, a.PeakKV.Pod, a.SpareKV, t.KVSpare, saturated, replicas)
	case a.ShortQueue:
		p.say(ShortTie, a.PeakQueue.Pod, a.SpareQueue, t.QueueSpare, saturated, replicas)
	default:
		p.say(ShortTie, a.PeakKV.Pod, a.SpareKV, t.KVSpare, saturated, replicas)
	}
}

// sayEnough adds the remark that there is enough spare capacity.
func (s *Scaler) sayEnough(a *Analysis, p *Plan) {
	t := &s.config.Thresholds
	if math.IsNaN(a.SpareKV) || math.IsNaN(a.SpareQueue) {
		p.say(Unclear, "", a.SpareKV, a.SpareQueue)
		return
	}
	p.say(Enough, "", a.SpareKV, t.KVSpare, a.SpareQueue, t.QueueSpare)
}

// saySpare adds the remark that a replica can be removed, given the average loads without it.
func (s *Scaler) saySpare(kv, queue float64, p *Plan) {
	t := &s.config.Thresholds
	p.say(Spare, "", kv, t.KVCache-t.KVSpare, queue, t.QueueLength-t.QueueSpare)
}

// sayFull adds the remark why no replica can be removed.
func (s *Scaler) sayFull(a *Analysis, p *Plan, kv, queue float64) {
	code, subject, numbers := s.full(a, kv, queue)
	p.say(code, subject, numbers[:]...)
}

// full returns why no replica can be removed, given the average loads without it.
func (s *Scaler) full(a *Analysis, kv, queue float64) (code scaling.Code, subject string, numbers [4]float64) {
	t := &s.config.Thresholds
	saturated, replicas := float64(a.Saturated), float64(a.Replicas)
	limitKV, limitQueue := t.KVCache-t.KVSpare, t.QueueLength-t.QueueSpare
	if s.config.Mode == Default {
		switch {
		case a.Saturated > 0 && a.PeakKV.Load >= s.fullKV:
			return SaturatedKV, a.PeakKV.Pod, [4]float64{a.PeakKV.Load, t.KVCache, saturated, replicas}
		case a.Saturated > 0:
			return SaturatedQueue, a.PeakQueue.Pod, [4]float64{a.PeakQueue.Load, t.QueueLength, saturated, replicas}
		case a.Missing > 0:
			return Missing, a.Lost.Pod, [4]float64{float64(a.Missing), 0, replicas}
		}
	}
	switch {
	case a.Free < 2:
		return TooFew, "", [4]float64{float64(a.Free), 2}
	case a.Missing > 0: // in mode Literal only a Single has it: a metric without a sample
		return Missing, a.Lost.Pod, [4]float64{float64(a.Missing), 0, replicas}
	case math.IsNaN(kv) || math.IsNaN(queue):
		return Unclear, "", [4]float64{a.SpareKV, a.SpareQueue}
	case scaling.Exceeds(kv, limitKV):
		return FullKV, "", [4]float64{kv, limitKV}
	case scaling.Exceeds(queue, limitQueue):
		return FullQueue, "", [4]float64{queue, limitQueue}
	case s.config.Mode == Literal && same(kv, limitKV):
		return FullTie, "", [4]float64{kv, limitKV}
	case s.config.Mode == Literal:
		return FullTie, "", [4]float64{queue, limitQueue}
	case kv >= s.fullKV:
		return FullSaturated, "", [4]float64{kv, t.KVCache}
	default:
		return FullSaturated, "", [4]float64{queue, t.QueueLength}
	}
}
