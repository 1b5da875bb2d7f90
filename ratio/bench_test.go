package ratio_test

import (
	"testing"

	"github.com/inferscale/inferscale/ratio"
	"github.com/inferscale/inferscale/scaling"
)

func BenchmarkProject(b *testing.B) {
	bounds := scaling.Bounds{Min: 1, Max: 100}
	r, err := ratio.New(ratio.Config{
		Prefill: bounds, Decode: bounds,
		Min: ratio.Fraction{Num: 1, Den: 4}, Max: ratio.Fraction{Num: 1, Den: 2},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if p, _ := r.Project(20, 7); p != 20 {
			b.Fatal(p)
		}
	}
}
