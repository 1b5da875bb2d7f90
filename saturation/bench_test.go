package saturation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// fleet returns a model of n replicas in three variants, interleaved as pods are listed, busy but not saturated.
func fleet(n int) ([]saturation.Replica, []saturation.Variant) {
	names := []string{"v1-l4", "v2-a100", "v3-h100"}
	variants := make([]saturation.Variant, len(names))
	for i, name := range names {
		variants[i] = saturation.Variant{Name: name, Cost: float64(5 * (i + 1))}
	}
	replicas := make([]saturation.Replica, n)
	for i := range replicas {
		k := i % len(names)
		variants[k].Current++
		replicas[i] = saturation.Replica{
			Pod: fmt.Sprintf("%s-%05d", names[k], i), Variant: names[k],
			KV: 0.3 + float64(i*7919%1000)/2600, Queue: float64(i * 31 % 4),
		}
	}
	return replicas, variants
}

// BenchmarkModel measures a whole decision, analysis and targets, and its naive twin.
func BenchmarkModel(b *testing.B) {
	for _, n := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("naive/replicas=%d", n), func(b *testing.B) {
			replicas, variants := fleet(n)
			b.ReportAllocs()
			for b.Loop() {
				if targets := plain(saturation.Recommended(), replicas, variants); len(targets) != len(variants) {
					b.Fatal(targets)
				}
			}
		})
		replicas, variants := fleet(n)
		now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
		b.Run(fmt.Sprintf("replicas=%d", n), func(b *testing.B) {
			m := modelOf(b, saturation.Defaults())
			b.ReportAllocs()
			for b.Loop() {
				if p := m.Decide(now, replicas, variants); len(p.Targets) != len(variants) || p.Targets[0].Decision.Verdict == scaling.Unknown {
					b.Fatal(p.Explain())
				}
			}
		})
	}
}

func BenchmarkAnalyze(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		replicas, _ := fleet(n)
		b.Run(fmt.Sprintf("replicas=%d", n), func(b *testing.B) {
			s := build(b, saturation.Defaults())
			var a saturation.Analysis
			b.ReportAllocs()
			for b.Loop() {
				s.Analyze(&a, replicas)
			}
		})
	}
}

// plain is what one would write first: maps, slices and sums in the order of the rows, with no reasons, no state, no
// transitions that end and another last bit for another order.
func plain(t saturation.Thresholds, replicas []saturation.Replica, variants []saturation.Variant) map[string]int32 {
	groups := map[string][]saturation.Replica{}
	for _, r := range replicas {
		groups[r.Variant] = append(groups[r.Variant], r)
	}
	spareKV, spareQueue, saturated := 0.0, 0.0, 0
	for _, group := range groups {
		for _, r := range group {
			if r.KV >= t.KVCache || r.Queue >= t.QueueLength {
				saturated++
				continue
			}
			spareKV += t.KVCache - r.KV
			spareQueue += t.QueueLength - r.Queue
		}
	}
	n := float64(len(replicas))
	targets := map[string]int32{}
	for _, v := range variants {
		targets[v.Name] = v.Current
		if len(groups[v.Name]) != int(v.Current) {
			return targets
		}
	}
	var chosen *saturation.Variant
	if spareKV/n < t.KVSpare || spareQueue/n < t.QueueSpare {
		for i, v := range variants {
			if v.Pending == 0 && (chosen == nil || v.Cost < chosen.Cost || v.Cost == chosen.Cost && v.Name < chosen.Name) {
				chosen = &variants[i]
			}
		}
		if chosen != nil {
			targets[chosen.Name]++
		}
		return targets
	}
	afterKV, afterQueue := (t.KVCache-spareKV/n)*n/(n-1), (t.QueueLength-spareQueue/n)*n/(n-1)
	if saturated == 0 && n >= 2 && t.KVCache-afterKV >= t.KVSpare && t.QueueLength-afterQueue >= t.QueueSpare {
		for i, v := range variants {
			if v.Current > 1 && (chosen == nil || v.Cost > chosen.Cost || v.Cost == chosen.Cost && v.Name > chosen.Name) {
				chosen = &variants[i]
			}
		}
		if chosen != nil {
			targets[chosen.Name]--
		}
	}
	return targets
}
