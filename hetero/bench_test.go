package hetero_test

import (
	"fmt"
	"testing"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
)

// bench returns n types of a capacity each, with costs that differ.
func bench(n int, capacity int32, rate float64) (hetero.Config, []wholeType) {
	var types []wholeType
	for i := range n {
		types = append(types, wholeType{name: fmt.Sprintf("type-%05d", i), cost: int64(10 + i*7%100), max: capacity, weight: float64(1 + i%4)})
	}
	return configOf(types, rate, 1), types
}

func benchFleet(b *testing.B, n int, capacity int32, rate float64) (*hetero.Fleet, []wholeType) {
	b.Helper()
	config, types := bench(n, capacity, rate)
	f, err := hetero.New(config)
	if err != nil {
		b.Fatal(err)
	}
	return f, types
}

var shapes = []struct {
	types    int
	capacity int32
	rate     float64
}{{10, 1_000, 2}, {100, 1_000_000, 2}, {10, 1_000_000, 1.001}}

func BenchmarkAllocate(b *testing.B) {
	for _, s := range shapes {
		b.Run(fmt.Sprintf("types=%d/capacity=%d/rate=%v", s.types, s.capacity, s.rate), func(b *testing.B) {
			f, _ := benchFleet(b, s.types, s.capacity, s.rate)
			_, most := f.Totals()
			var dst []int32
			b.ReportAllocs()
			for b.Loop() {
				dst = f.Allocate(dst, most-1) // to the end of the sequence
			}
		})
	}
}

// BenchmarkAllocateNaive is the materialised sequence, counted out; at 100 types of a million it takes 800 MB.
func BenchmarkAllocateNaive(b *testing.B) {
	_, types := bench(10, 1_000, 2)
	twin := newNaive(types, 2)
	b.ReportAllocs()
	for b.Loop() {
		twin.allocate(twin.most - 1)
	}
}

func BenchmarkNew(b *testing.B) {
	for _, s := range shapes {
		b.Run(fmt.Sprintf("types=%d/capacity=%d/rate=%v", s.types, s.capacity, s.rate), func(b *testing.B) {
			config, _ := bench(s.types, s.capacity, s.rate)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := hetero.New(config); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkArrange is the part of New that finds the order.
func BenchmarkArrange(b *testing.B) {
	for _, s := range shapes {
		b.Run(fmt.Sprintf("types=%d/capacity=%d/rate=%v", s.types, s.capacity, s.rate), func(b *testing.B) {
			f, _ := benchFleet(b, s.types, s.capacity, s.rate)
			b.ReportAllocs()
			for b.Loop() {
				if f.Arrange() != f.Kept() {
					b.Fatal(f.Kept())
				}
			}
		})
	}
}

func BenchmarkNewNaive(b *testing.B) {
	_, types := bench(10, 1_000, 2)
	b.ReportAllocs()
	for b.Loop() {
		newNaive(types, 2)
	}
}

func BenchmarkAllocateFor(b *testing.B) {
	f, _ := benchFleet(b, 10, 1_000, 2)
	var dst []int32
	b.ReportAllocs()
	for b.Loop() {
		dst = f.AllocateFor(dst, 12_345)
	}
}

func BenchmarkAllocateSticky(b *testing.B) {
	f, _ := benchFleet(b, 10, 1_000, 2)
	current := f.Allocate(nil, 5_000)
	var dst []int32
	b.ReportAllocs()
	for b.Loop() {
		dst = f.AllocateSticky(dst, current, 6_000, 3)
	}
}

func BenchmarkPlan(b *testing.B) {
	f, _ := benchFleet(b, 10, 1_000, 2)
	current, target := f.Allocate(nil, 5_000), f.Allocate(nil, 6_000)
	var plan []hetero.Change
	b.ReportAllocs()
	for b.Loop() {
		plan = f.Plan(plan[:0], current, target)
	}
}

func BenchmarkPolicyDecide(b *testing.B) {
	for _, n := range []int{3, 10} {
		b.Run(fmt.Sprintf("types=%d", n), func(b *testing.B) {
			f, _ := benchFleet(b, n, 1_000, 2)
			p, err := hetero.NewGroup(scaling.New[asksState](asks{}), f, hetero.Options{Exchanges: 1})
			if err != nil {
				b.Fatal(err)
			}
			obs := wants(f, float64(n*500), f.Allocate(nil, int64(n*400))...)
			b.ReportAllocs()
			for b.Loop() {
				if d := p.Decide(start, obs); !d.Acts() {
					b.Fatal(d.Explain())
				}
			}
		})
	}
}
