// Package wva has what only the literal rule of llm-d's workload variant autoscaler needs: its ties, decided as a reader
// does who computes with the decimals that are printed. 0.8 - 0.7 is exactly the trigger 0.1 and not below it; in float64
// the difference is 0.10000000000000009, and other such ties come out on the other side.
package wva

import (
	"iter"
	"math"
	"math/big"
	"strconv"
)

// Tie decides on the loads of the replicas that are not saturated, exactly in the shortest decimals that read back as
// the numbers:
//
//	short   sum(threshold - load) / n < trigger
//	safe    threshold - sum(load)/(n-1) >= trigger,  n >= 2
//
// It reports false if a number is infinite or NaN.
func Tie(threshold, trigger float64, loads iter.Seq[float64]) (short, safe, ok bool) {
	limit, n, sum := decimal(threshold), int64(0), new(big.Rat)
	limit.Sub(limit, decimal(trigger)) // the most that a replica may have to do on average
	for x := range loads {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false, false, false
		}
		n++
		sum.Add(sum, decimal(x))
	}
	over := func(n int64) bool { return sum.Cmp(new(big.Rat).Mul(limit, big.NewRat(n, 1))) > 0 }
	return over(n), n >= 2 && !over(n-1), true
}

// decimal returns the shortest decimal that reads back as x.
func decimal(x float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(x, 'g', -1, 64))
	return r
}
