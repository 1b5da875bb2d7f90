package ratio_test

import (
	"fmt"

	"github.com/inferscale/inferscale/ratio"
	"github.com/inferscale/inferscale/scaling"
)

// Half as many prefill as decode replicas, exactly: one prefill for five decode is none of the pairs, and neither is
// the 3/5 that rounding up once gives.
func ExampleRatio_Project() {
	bounds := scaling.Bounds{Min: 1, Max: 10}
	r, err := ratio.New(ratio.Config{
		Prefill: bounds, Decode: bounds,
		Min: ratio.Fraction{Num: 1, Den: 2}, Max: ratio.Fraction{Num: 1, Den: 2},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Project(1, 5))
	// Output:
	// 3 6
}

func ExampleRatio_Adjust() {
	bounds := scaling.Bounds{Min: 1, Max: 10}
	r, err := ratio.New(ratio.Config{Prefill: bounds, Decode: bounds, Min: ratio.Fraction{Num: 1, Den: 2}})
	if err != nil {
		panic(err)
	}
	prefill, decode := scaling.HoldAt(2), scaling.HoldAt(4)
	prefill.To(2, "Demand load, target", "prefill", 18, 10)
	decode.To(7, "Demand load, target", "decode", 65, 10)
	r.Adjust(&prefill, &decode)
	fmt.Print(prefill.Explain(), decode.Explain())
	// Output:
	// Up 2 -> 4
	//   Demand            2 -> 2    prefill load=18, target=10
	//   RatioRaised       2 -> 4    from=2 < least=4, partner=7
	// Up 4 -> 7
	//   Demand            4 -> 7    decode load=65, target=10
}
