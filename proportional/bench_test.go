package proportional_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// filled returns a Scaler of KPA's windows with a state whose windows are full of a steady load, and the observation
// that goes on with it.
func filled(b *testing.B, metrics int, reading scaling.Reading, change func(*proportional.Config)) (proportional.Scaler, proportional.State, scaling.Observation, time.Time) {
	b.Helper()
	c := proportional.KPA(scaling.Bounds{Min: 1, Max: 100})
	obs := scaling.Observation{SpecReplicas: 10, ReadyReplicas: 10}
	for i := range metrics {
		reading.Metric = fmt.Sprintf("vllm:metric_%d", i)
		c.Metrics = append(c.Metrics, proportional.Metric{Name: reading.Metric, Target: 10})
		obs.Readings = append(obs.Readings, reading)
	}
	if change != nil {
		change(&c)
	}
	s, err := proportional.New(c)
	require.NoError(b, err)
	var state proportional.State
	now := start
	for range 120 {
		now = now.Add(time.Second)
		state, _ = s.Decide(state, now, obs)
	}
	return s, state, obs, now
}

var exact = scaling.Reading{Lower: 9.5, Upper: 9.5, Values: 10}

func BenchmarkDecide(b *testing.B) {
	missing := scaling.Reading{Lower: 9, Upper: 10, Values: 9, Failed: 1}
	for _, row := range []struct {
		name    string
		metrics int
		reading scaling.Reading
		change  func(*proportional.Config)
	}{
		{"metrics=1", 1, exact, nil},
		{"metrics=3", 3, exact, nil},
		{"metrics=8", 8, exact, nil},
		{"metrics=1/missing", 1, missing, nil},
		{"metrics=1/LLM", 1, exact, func(c *proportional.Config) { *c = proportional.LLM(c.Bounds, c.Metrics...) }},
		{"metrics=1/HPA", 1, exact, func(c *proportional.Config) { *c = proportional.HPA(c.Bounds, c.Metrics...) }},
	} {
		b.Run(row.name, func(b *testing.B) {
			s, state, obs, now := filled(b, row.metrics, row.reading, row.change)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second)
				next, d := s.Decide(state, now, obs)
				if d.Verdict != scaling.Hold {
					b.Fatal(d.Reason())
				}
				state = next
			}
		})
	}
	b.Run("metrics=1/no new sample", func(b *testing.B) {
		s, state, obs, now := filled(b, 1, exact, nil)
		obs.Readings = nil
		b.ReportAllocs()
		for b.Loop() {
			next, d := s.Decide(state, now, obs)
			if d.Verdict != scaling.Hold {
				b.Fatal(d.Reason())
			}
			state = next
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	s, state, obs, now := filled(b, 1, exact, nil)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		state = s.Record(state, now, obs)
	}
}

// BenchmarkNaive is the naive twin at the same work: it keeps every sample and averages them anew at each decision.
func BenchmarkNaive(b *testing.B) {
	c := proportional.KPA(scaling.Bounds{Min: 1, Max: 100}, proportional.Metric{Name: "vllm:metric_0", Target: 10})
	twin := newNaive(c)
	reading := exact
	reading.Metric = "vllm:metric_0"
	obs := holding(10, reading)
	now := start
	for range 120 {
		now = now.Add(time.Second)
		twin.Decide(now, obs)
	}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		if verdict, _ := twin.Decide(now, obs); verdict != scaling.Hold {
			b.Fatal(verdict)
		}
	}
}
