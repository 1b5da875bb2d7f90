package realtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1, 3, realtime.MaxMetrics} {
		b.Run(fmt.Sprintf("metrics=%d", n), func(b *testing.B) {
			var metrics []realtime.Metric
			obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3}
			for i := range n {
				name := fmt.Sprintf("vllm:metric_%d", i)
				metrics = append(metrics, realtime.Metric{Name: name, High: 10, Low: 2})
				obs.Readings = append(obs.Readings, scaling.Exactly(name, 12))
			}
			s := scaler(b, realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, metrics...))
			now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
			state := s.Applied(realtime.State{}, now, 3, 4)
			b.ReportAllocs()
			for b.Loop() {
				var d scaling.Decision
				state, d = s.Decide(state, now, obs)
				if d.Verdict != scaling.Hold {
					b.Fatal(d.Reason())
				}
			}
		})
	}
}
