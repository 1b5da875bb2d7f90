package scrape

import (
	"cmp"
	"encoding/binary"
	"math"
	"strings"

	"github.com/inferscale/inferscale/internal/exact"
)

// fleet returns the interval of a metric over n pods with a share and m without. With S and C the sums of num and den over
// the n pods, a missing pod counts as an average pod. Together the missing pods have the weight
//
//	M = C*m/n                              for a plain gauge C = n, and so M = m
//
// and the value 0 in Lower and Fill in Upper:
//
//	Lower = S / (C+M)
//	Upper = (S + Fill*M) / (C+M)
//
// For a quantile q, the M observations of the missing pods are all at 0, or all at Fill. With at(k) the value below which k
// of the C observations lie (linear in its bucket, 0 for k <= 0, +Inf for k > C) and r = q*(C+M):
//
//	Lower = at(r-M)
//	Upper = max(min(at(r), Fill), at(r-M))
//
// Stuck pods are pods without a share that have no load. If pods have equal weight, they count 0 in Upper instead of Fill.
// If observations do (Over, a Mean, a Quantile), stuck pods have none, and Upper is that of the others. Lower is not
// affected.
//
// A Fill of 0 is +Inf. Without missing pods Lower = Upper, the value of the pods that answered. Sums are exact before they
// are rounded once, so that the order of the pods cannot change a bit.
func (p *metricPlan) fleet(shares []*share, missing, stuck int) (lower, upper float64, failure *Error) {
	n := len(shares)
	if n == 0 {
		return 0, 0, failf(NotFound, "no pod gave a value")
	}
	var nums, dens exact.Sum
	least, most := math.Inf(1), math.Inf(-1)
	for _, s := range shares {
		nums.Add(s.num)
		dens.Add(s.den)
		if s.num != 0 || s.den != 0 {
			least, most = min(least, s.num/s.den), max(most, s.num/s.den)
		}
	}
	sum, weight := nums.Value(), dens.Value()
	if fail := checkNumber(sum); fail != nil {
		return 0, 0, failf(fail.Reason, "the sum over the pods is %v", sum)
	}
	if fail := checkNumber(weight); fail != nil {
		return 0, 0, failf(fail.Reason, "the weight of the pods is %v", weight)
	}
	if weight == 0 {
		// A fleet that finished no request is idle or stalled; this metric cannot say which.
		return 0, 0, failf(NoObservations, "no pod has observed anything")
	}
	fill := p.Fill
	if fill == 0 {
		fill = math.Inf(1)
	}
	lost, filled := weight*(float64(missing)/float64(n)), weight*(float64(missing-stuck)/float64(n))
	if shares[0].dist != nil {
		lower, upper, failure = p.quantile(shares, weight, lost, fill)
		if stuck > 0 && failure == nil {
			_, upper, failure = p.quantile(shares, weight, filled, fill)
		}
	} else {
		mean := min(max(sum/weight, least), most) // rounding must not leave the values that it is the mean of
		lower = min(mean, sum/(weight+lost))
		all := weight + lost
		if !p.countsPods() {
			all = weight + filled
		}
		upper = mean
		if all > weight {
			upper = sum / all
		}
		if filled > 0 {
			upper = (sum + fill*filled) / all
		}
		if mean <= fill && all == weight+filled {
			// Rounding must not move the end of the interval past a value inside of it.
			upper = max(upper, mean)
		}
	}
	if failure == nil && (math.IsNaN(lower) || math.IsNaN(upper) || math.IsInf(lower, 0)) {
		failure = failf(NonFinite, "from %v to %v", lower, upper)
	}
	return lower, upper, failure
}

// countsPods reports whether every pod has the same weight.
func (p *metricPlan) countsPods() bool { return len(p.Over) == 0 && p.Terms[0].Read != Mean }

func (p *metricPlan) quantile(shares []*share, weight, lost, fill float64) (lower, upper float64, failure *Error) {
	all := make([]*distribution, len(shares))
	for i, s := range shares {
		all[i] = s.dist
	}
	d := merge(all)
	if d == nil {
		return 0, 0, failf(Buckets, "the pods differ in the bounds of their buckets")
	}
	term := &p.Terms[0]
	rank := term.Quantile * (weight + lost)
	// q < 1 keeps rank-lost within the observations; min keeps it there after rounding.
	lower = d.at(min(rank-lost, d.total())) * term.scale()
	if lost == 0 {
		return lower, lower, nil
	}
	return lower, max(min(d.at(rank)*term.scale(), fill), lower), nil
}

// agree reports for each share whether its buckets are those of most pods; of a tie the finer set wins. During a rolling
// upgrade there may be two sets of buckets, and only equal ones can be added.
func agree(shares []*share) []bool {
	type votes struct{ pods, bounds int }
	count := make(map[string]votes)
	keys := make([]string, len(shares))
	best := ""
	better := func(a, b string) bool {
		x, y := count[a], count[b]
		return cmp.Or(cmp.Compare(y.pods, x.pods), cmp.Compare(y.bounds, x.bounds), strings.Compare(a, b)) < 0
	}
	for i, s := range shares {
		if s.dist == nil {
			continue
		}
		key := make([]byte, 0, 8*len(s.dist.bounds))
		for _, b := range s.dist.bounds {
			key = binary.BigEndian.AppendUint64(key, math.Float64bits(b))
		}
		keys[i] = string(key)
		v := count[keys[i]]
		count[keys[i]] = votes{v.pods + 1, len(s.dist.bounds)}
	}
	for _, k := range keys {
		if best == "" || better(k, best) {
			best = k
		}
	}
	same := make([]bool, len(shares))
	for i := range keys {
		same[i] = keys[i] == best
	}
	return same
}
