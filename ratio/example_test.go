package ratio_test

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/proportional"
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

// roles is a group of prefill and decode, each with its own policy, whose counts are in a range of ratios.
type roles struct {
	scaling.Group // of scaling.Each

	ratio ratio.Ratio
}

func (g roles) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	d := g.Group.Decide(now, obs)
	if len(obs.Targets) == 2 && !obs.Targets[0].Missing && !obs.Targets[1].Missing {
		g.ratio.Adjust(&d.Targets[0], &d.Targets[1])
	}
	return d
}

// Package loop carries out what a Group decides: the ratio belongs into the Group. What is changed in a Step afterwards is not in
// the stored intents, and a role that holds by itself is not written.
func ExampleRatio_Adjust_loop() {
	bounds := scaling.Bounds{Min: 1, Max: 10}
	inRange, err := ratio.New(ratio.Config{Prefill: bounds, Decode: bounds, Min: ratio.Fraction{Num: 1, Den: 2}})
	if err != nil {
		panic(err)
	}
	role := func(metric string) scaling.Policy {
		scaler, err := proportional.New(proportional.Config{Bounds: bounds, Metrics: []proportional.Metric{{Name: metric, Target: 10}}})
		if err != nil {
			panic(err)
		}
		return scaling.New(scaler)
	}
	control, err := loop.New(roles{scaling.Each(role("prefill"), role("decode")), inRange}, loop.Config{Volatile: true})
	if err != nil {
		panic(err)
	}
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	control.Read(now, loop.Target{Name: "prefill", Replicas: 2}, loop.Target{Name: "decode", Replicas: 4})
	control.Decide(now, scaling.GroupObservation{
		Targets: []scaling.TargetObservation{{ReadyReplicas: 2}, {ReadyReplicas: 4}},
		Readings: []scaling.Reading{
			scaling.FromPods("prefill", []float64{9, 9}, scaling.Missing{}, 10),
			scaling.FromPods("decode", []float64{16, 17, 16, 16}, scaling.Missing{}, 10),
		},
	})
	for w := range control.Writes() {
		fmt.Println(w.Name, w.From, "->", w.To)
		control.Wrote(w, loop.Applied)
	}
	control.Advance(now)
	// Output:
	// prefill 2 -> 4
	// decode 4 -> 7
}
