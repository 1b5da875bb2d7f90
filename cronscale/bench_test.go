package cronscale

import (
	"testing"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// fourPolicies is a week of a fleet: office hours, nights and a quiet weekend, in a zone with summer time.
func fourPolicies(tb tester) Scaler {
	const zone = "America/New_York"
	return mustNew(tb, Config{
		Bounds: scaling.Bounds{Min: 1, Max: 20},
		Policies: []Policy{
			{"morning", "0 8 * * MON-FRI", 10, zone},
			{"peak", "30 11 * * MON-FRI", 16, zone},
			{"evening", "0 18 * * *", 4, zone},
			{"night", "1 0 * * *", 1, zone},
		},
	})
}

func BenchmarkDecide(b *testing.B) {
	s := fourPolicies(b)
	obs := scaling.Observation{SpecReplicas: 3}
	start := time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)
	b.Run("every 15 s", func(b *testing.B) {
		b.ReportAllocs()
		var state State
		now := start
		for b.Loop() {
			now = now.Add(15 * time.Second)
			state, _ = s.Decide(state, now, obs)
		}
	})
	b.Run("without the memo", func(b *testing.B) {
		b.ReportAllocs()
		now := start
		for b.Loop() {
			now = now.Add(15 * time.Second)
			_, _ = s.Decide(State{}, now, obs)
		}
	})
}

func BenchmarkAt(b *testing.B) {
	s := fourPolicies(b)
	now := time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(15 * time.Second)
		_ = s.At(now)
	}
}

func BenchmarkTimelineOfAYear(b *testing.B) {
	s := fourPolicies(b)
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		for range s.Timeline(from, from.AddDate(1, 0, 0)) {
		}
	}
}

func BenchmarkFires(b *testing.B) {
	s := mustParse(b, "0 8 * * MON-FRI")
	c := newClock(mustZone(b, "America/New_York"))
	t := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	b.ReportAllocs()
	for b.Loop() {
		if t = s.after(c, t); t > tableEnd {
			t = tableStart
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = fourPolicies(b)
	}
}
