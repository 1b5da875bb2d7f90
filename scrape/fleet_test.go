package scrape

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func gaugeMetric(fill float64) *metricPlan {
	return &newPlan([]Metric{{Name: "q", Fill: fill, Terms: []Series{{Families: []string{"q"}, Across: Sum}}}}).metrics[0]
}

func quantileMetric(q, fill float64) *metricPlan {
	return &newPlan([]Metric{{Name: "p", Fill: fill, Terms: []Series{{Families: []string{"p"}, Read: Quantile, Quantile: q}}}}).metrics[0]
}

func drawGauges(t *rapid.T, limit float64) []*share {
	var shares []*share
	for _, v := range rapid.SliceOfN(rapid.Float64Range(0, limit), 1, 20).Draw(t, "values") {
		shares = append(shares, &share{num: v, den: 1})
	}
	return shares
}

// drawDistributions draws what pods observed: whole numbers over common bounds.
func drawDistributions(t *rapid.T) []*share {
	bounds := []float64{0.5, 1, 2, 4, 8}
	shares := make([]*share, rapid.IntRange(1, 6).Draw(t, "pods"))
	for i := range shares {
		d := &distribution{bounds: bounds, counts: make([]float64, len(bounds)+1)}
		n := 0.0
		for j := range d.counts {
			n += float64(rapid.SampledFrom([]int{0, 0, 1, 3, 20}).Draw(t, "n"))
			d.counts[j] = n
		}
		shares[i] = &share{dist: d, den: n}
	}
	return shares
}

func TestOrderOfPodsChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, shares := gaugeMetric(10), drawGauges(t, 1e9)
		if rapid.Bool().Draw(t, "ratio") {
			for _, s := range shares {
				s.den = rapid.Float64Range(0, 100).Draw(t, "den")
			}
		}
		if rapid.Bool().Draw(t, "quantile") {
			m, shares = quantileMetric(0.9, 10), drawDistributions(t)
		}
		missing := rapid.IntRange(0, 5).Draw(t, "missing")
		lower, upper, fail := m.fleet(shares, missing, 0)
		l2, u2, f2 := m.fleet(rapid.Permutation(shares).Draw(t, "shuffled"), missing, 0)
		require.Equal(t, math.Float64bits(lower), math.Float64bits(l2))
		require.Equal(t, math.Float64bits(upper), math.Float64bits(u2))
		require.Equal(t, reasonOf(fail), reasonOf(f2))
	})
}

// TestPartitionChangesNothing: what counts is the sum over engines, not how they are spread over pods.
func TestPartitionChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		engines := drawDistributions(t)
		pods := make([][]*distribution, rapid.IntRange(1, 4).Draw(t, "pods"))
		for _, e := range engines {
			i := rapid.IntRange(0, len(pods)-1).Draw(t, "pod")
			pods[i] = append(pods[i], e.dist)
		}
		var split []*share
		for _, p := range pods {
			if d := merge(p); d != nil {
				split = append(split, &share{dist: d, den: d.total()})
			}
		}
		q := rapid.Float64Range(0.01, 0.99).Draw(t, "q")
		want, _, fail := quantileMetric(q, 0).fleet(engines, 0, 0)
		got, _, fail2 := quantileMetric(q, 0).fleet(split, 0, 0)
		require.Equal(t, reasonOf(fail), reasonOf(fail2))
		require.Equal(t, math.Float64bits(want), math.Float64bits(got))
	})
}

func TestOrderOfLinesChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := []string{}
		for i, v := range rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 12).Draw(t, "values") {
			lines = append(lines, fmt.Sprintf("q{e=\"%d\",m=\"x\"} %v\n", i, v))
		}
		a := rapid.SampledFrom([]Aggregate{Sum, Average, Max, Min}).Draw(t, "across")
		m := Metric{Name: "q", Terms: []Series{{Families: []string{"q"}, Across: a}}}
		s, fail := readOne(&testing.T{}, strings.Join(lines, ""), m)
		require.Nil(t, fail)
		s2, fail := readOne(&testing.T{}, strings.Join(rapid.Permutation(lines).Draw(t, "shuffled"), ""), m)
		require.Nil(t, fail)
		require.Equal(t, math.Float64bits(s.value), math.Float64bits(s2.value))
		require.Equal(t, [3]float64{s.min, s.max, float64(s.engines)}, [3]float64{s2.min, s2.max, float64(s2.engines)})
	})
}

func TestIntervalHoldsTheMeanOfThePresent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fill := rapid.SampledFrom([]float64{0, 1, 0.1, 1e3}).Draw(t, "fill")
		limit := fill
		if fill == 0 {
			limit = 1e6
		}
		shares := drawGauges(t, limit)
		missing := rapid.IntRange(0, 5).Draw(t, "missing")
		lower, upper, fail := gaugeMetric(fill).fleet(shares, missing, 0)
		require.Nil(t, fail)
		mean, _, _ := gaugeMetric(fill).fleet(shares, 0, 0)
		require.LessOrEqual(t, lower, mean)
		require.LessOrEqual(t, mean, upper)
		if missing == 0 {
			require.Equal(t, math.Float64bits(lower), math.Float64bits(upper))
		} else if fill == 0 {
			require.True(t, math.IsInf(upper, 1))
		}
	})
}

// TestMeanOfEqualValuesIsTheValue: three times 0.1 is more than 0.3, by rounding.
func TestMeanOfEqualValuesIsTheValue(t *testing.T) {
	for missing := range 2 {
		lower, upper, fail := gaugeMetric(0.1).fleet([]*share{{num: 0.1, den: 1}, {num: 0.1, den: 1}, {num: 0.1, den: 1}}, missing, 0)
		require.Nil(t, fail)
		require.Equal(t, 0.1, upper)
		require.Equal(t, missing == 0, lower == upper)
	}
}

// TestEveryCompletionIsInside completes the missing pods with values from 0 to the fill.
func TestEveryCompletionIsInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares := drawGauges(t, 50)
		lost := rapid.SliceOfN(rapid.Float64Range(0, 10), 0, 5).Draw(t, "lost")
		lower, upper, fail := gaugeMetric(10).fleet(shares, len(lost), 0)
		require.Nil(t, fail)
		for _, v := range lost {
			shares = append(shares, &share{num: v, den: 1})
		}
		truth, _, fail := gaugeMetric(10).fleet(shares, 0, 0)
		require.Nil(t, fail)
		require.LessOrEqual(t, lower, truth*(1+1e-12))
		require.GreaterOrEqual(t, upper*(1+1e-12), truth)
	})
}

// TestRoundingKeepsTheMeanInside: pods that are missing and count what each of the others has change neither end past it.
func TestRoundingKeepsTheMeanInside(t *testing.T) {
	for _, v := range []float64{0.1, 0.7, 3.3, 1.0 / 3} {
		for n := range 40 {
			for missing := range 20 {
				shares := make([]*share, n+1)
				for i := range shares {
					shares[i] = &share{num: v, den: 1}
				}
				lower, upper, fail := gaugeMetric(v).fleet(shares, missing, 0)
				require.Nil(t, fail)
				mean, _, _ := gaugeMetric(v).fleet(shares, 0, 0)
				require.LessOrEqual(t, lower, mean)
				if mean <= v { // it is rounded, too
					require.GreaterOrEqual(t, upper, mean, "%d of %d missing", missing, n+1+missing)
				}
			}
		}
	}
}

// TestStuckPodsHaveObservedNothing: pods that were never ready count 0 in the Upper of a gauge. What is an average over
// observations is that of the pods that serve: eight pods of which six never came do not make answers faster.
func TestStuckPodsHaveObservedNothing(t *testing.T) {
	gauge := []*share{{num: 3, den: 1}, {num: 5, den: 1}}
	lower, upper, fail := gaugeMetric(10).fleet(gauge, 6, 6)
	require.Nil(t, fail)
	require.Equal(t, [2]float64{1, 1}, [2]float64{lower, upper})
	_, upper, _ = gaugeMetric(10).fleet(gauge, 6, 4)
	require.InDelta(t, 28./8, upper, 0)
	_, upper, _ = gaugeMetric(0).fleet(gauge, 6, 6)
	require.InDelta(t, 1, upper, 0, "no fill is needed")

	times := []*share{{num: 300, den: 60}, {num: 200, den: 40}}
	mean := &newPlan([]Metric{{Name: "ttft", Fill: 2, Terms: []Series{{Families: []string{"ttft"}, Read: Mean}}}}).metrics[0]
	ratio := &newPlan([]Metric{{Name: "r", Fill: 2, Terms: []Series{{Families: []string{"a"}}}, Over: []Series{{Families: []string{"b"}}}}}).metrics[0]
	for _, m := range []*metricPlan{mean, ratio} {
		lower, upper, fail = m.fleet(times, 6, 6)
		require.Nil(t, fail)
		require.Equal(t, [2]float64{1.25, 5}, [2]float64{lower, upper})
	}
	for _, m := range []*metricPlan{mean, ratio} {
		lower, upper, fail = m.fleet(times, 6, 4)
		require.Nil(t, fail)
		require.Equal(t, [2]float64{1.25, 3.5}, [2]float64{lower, upper})
	}
	slow := &distribution{bounds: []float64{1, 4}, counts: []float64{0, 100, 100}}
	lower, upper, fail = quantileMetric(0.5, 2).fleet([]*share{{dist: slow, den: 100}, {dist: slow, den: 100}}, 6, 6)
	require.Nil(t, fail)
	require.Equal(t, [2]float64{0, 2.5}, [2]float64{lower, upper})
	one := &distribution{bounds: []float64{4}, counts: []float64{1, 1}}
	lower, upper, fail = quantileMetric(0.5, 2).fleet([]*share{{dist: one, den: 1}, {dist: one, den: 1}}, 1, 0)
	require.Nil(t, fail)
	require.Equal(t, [2]float64{1, 2}, [2]float64{lower, upper}, "one observation is missing")
}

// bruteQuantile is the quantile of a cloud of weighted points that really holds the mass of the missing pods at one
// value: points a bucket, spread evenly.
func bruteQuantile(d *distribution, mass, at, rank float64) float64 {
	const points = 500
	type point struct{ value, weight float64 }
	cloud := []point{{at, mass}}
	lo, below := 0.0, 0.0
	for i, n := range d.counts {
		hi := lo // what is beyond the last bound counts as that bound
		if i < len(d.bounds) {
			hi = d.bounds[i]
		}
		for k := range points {
			cloud = append(cloud, point{lo + (hi-lo)*(float64(k)+0.5)/points, (n - below) / points})
		}
		lo, below = hi, n
	}
	slices.SortFunc(cloud, func(a, b point) int { return cmp.Compare(a.value, b.value) })
	sum := 0.0
	for _, p := range cloud {
		if sum += p.weight; p.weight > 0 && sum >= rank {
			return p.value
		}
	}
	return math.Inf(1)
}

func TestQuantileEqualsTheMassReallyAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares := drawDistributions(t)
		missing := rapid.IntRange(0, 4).Draw(t, "missing")
		q := rapid.Float64Range(0.02, 0.98).Draw(t, "q")
		fill := rapid.Float64Range(0.1, 20).Draw(t, "fill")
		lower, upper, fail := quantileMetric(q, fill).fleet(shares, missing, 0)
		var all []*distribution
		for _, s := range shares {
			all = append(all, s.dist)
		}
		d := merge(all)
		if d.total() == 0 {
			require.Equal(t, NoObservations, reasonOf(fail))
			return
		}
		require.Nil(t, fail)
		mass := d.total() * float64(missing) / float64(len(shares))
		rank := q * (d.total() + mass)
		// Points stand for 1/500 of a bucket: compare with what they give a little below and above the rank.
		step, width := d.total()/400, 8.0/500
		for _, end := range []struct{ got, at float64 }{{lower, 0}, {upper, fill}} {
			require.GreaterOrEqual(t, end.got, bruteQuantile(d, mass, end.at, rank-step)-width, "mass %v at %v", mass, end.at)
			require.LessOrEqual(t, end.got, bruteQuantile(d, mass, end.at, rank+step)+width, "mass %v at %v", mass, end.at)
		}
		require.LessOrEqual(t, lower, upper)
		if missing == 0 {
			require.Equal(t, math.Float64bits(lower), math.Float64bits(upper))
		}
	})
}

func TestFleetSteps(t *testing.T) {
	inf := math.Inf(1)
	of := func(pairs ...float64) (shares []*share) {
		for i := 0; i < len(pairs); i += 2 {
			shares = append(shares, &share{num: pairs[i], den: pairs[i+1]})
		}
		return shares
	}
	for _, row := range []struct {
		name         string
		fill         float64
		shares       []*share
		missing      int
		lower, upper float64
		reason       Reason
	}{
		{"all present", 0, of(3, 1, 5, 1), 0, 4, 4, None},
		{"one of three missing", 10, of(3, 1, 5, 1), 1, 8.0 / 3, 6, None},
		{"one missing, no fill", 0, of(3, 1, 5, 1), 1, 8.0 / 3, inf, None},
		{"all missing", 10, nil, 3, 0, 0, NotFound},
		{"ratio of sums, not mean of ratios", 1, of(1, 1, 0, 99), 0, 0.01, 0.01, None},
		{"a missing pod weighs as an average one", 1, of(10, 100, 10, 100), 1, 20.0 / 300, 120.0 / 300, None},
		{"a pod that saw nothing widens nothing", 1, of(10, 100, 0, 0), 0, 0.1, 0.1, None},
		{"a fleet that saw nothing", 1, of(0, 0, 0, 0), 0, 0, 0, NoObservations},
		{"present above the fill", 1, of(9, 1), 1, 4.5, 5, None},
		{"overflow", 1, of(math.MaxFloat64, 1, math.MaxFloat64, 1), 0, 0, 0, NonFinite},
		{"weights that overflow", 1, of(1, math.MaxFloat64, 1, math.MaxFloat64), 0, 0, 0, NonFinite},
		{"a quotient that overflows", 1, of(math.MaxFloat64, 0.5), 0, 0, 0, NonFinite},
		{"the weight of missing pods overflows", 1, of(1, math.MaxFloat64), 3, 0, 0, NonFinite},
	} {
		t.Run(row.name, func(t *testing.T) {
			lower, upper, fail := gaugeMetric(row.fill).fleet(row.shares, row.missing, 0)
			require.Equal(t, row.reason, reasonOf(fail), "%v", fail)
			if row.reason == NotFound || row.reason == NoObservations {
				require.Equal(t, [2]float64{}, [2]float64{lower, upper})
			}
			if row.reason == None {
				require.InDelta(t, row.lower, lower, 1e-12)
				if math.IsInf(row.upper, 1) {
					require.Equal(t, inf, upper)
				} else {
					require.InDelta(t, row.upper, upper, 1e-12)
				}
			}
		})
	}
}

func TestAgreeTakesTheBucketsOfMost(t *testing.T) {
	with := func(bounds ...float64) *share {
		return &share{dist: &distribution{bounds: bounds, counts: make([]float64, len(bounds)+1)}}
	}
	require.Equal(t, []bool{false, true, true}, agree([]*share{with(1), with(1, 2), with(1, 2)}))
	require.Equal(t, []bool{false, true}, agree([]*share{with(1), with(1, 2)}), "ties go to the finer set")
	tape := newPageTape(t, Metric{Name: "h", Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: 0.5}}})
	var zeros []*share
	for i, le := range []string{"0", "-0"} {
		_, _ = tape.read([]byte("x 1\n"), origin().Add(time.Duration(2*i)*time.Second))
		page := fmt.Sprintf("%s %s\n# TYPE h histogram\nh_bucket{le=\"%s\"} 4\nh_sum 0\nh_count 4\n", startFamily, unix(int64(2*i+1)), le)
		shares, fails := tape.read([]byte(page), origin().Add(time.Duration(2*i+1)*time.Second))
		require.Nil(t, fails[0])
		zeros = append(zeros, shares[0])
	}
	require.Equal(t, []bool{true, true}, agree(zeros), "-0 is 0")
	require.Equal(t, []bool{true, false, true}, agree([]*share{with(2), {}, with(2)}), "a pod without buckets has no vote")
	rapid.Check(t, func(t *rapid.T) {
		shares := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *share {
			return with(rapid.SampledFrom([][]float64{{1}, {2}, {1, 2}, {1, 3}}).Draw(t, "bounds")...)
		}), 1, 8).Draw(t, "shares")
		kept := func(list []*share) (bounds []float64) {
			for i, same := range agree(list) {
				if same {
					bounds = list[i].dist.bounds
				}
			}
			return bounds
		}
		require.Equal(t, kept(shares), kept(rapid.Permutation(shares).Draw(t, "shuffled")))
	})
}

// fuzzMetrics read every kind of series that pages have.
func fuzzMetrics() []Metric {
	return []Metric{
		{Name: "sum", Terms: []Series{{Families: []string{"a", "vllm:num_requests_waiting", "sglang:num_queue_reqs"}, Across: Sum}}},
		{Name: "only", Terms: []Series{{Families: []string{"a"}}}},
		{Name: "grouped", Terms: []Series{{Families: []string{"a"}, GroupBy: []string{"e"}, Prefer: Matcher{Label: "p"}, Within: Max, Across: Average}}},
		{Name: "rate", Terms: []Series{{Families: []string{"c_total", "vllm:prompt_tokens_total"}, Read: Rate, Across: Sum}}},
		{Name: "ratio", Terms: []Series{{Families: []string{"a"}, Across: Sum}}, Over: []Series{{Families: []string{"b"}, Across: Sum}}},
		{Name: "mean", Terms: []Series{{Families: []string{"h", "vllm:time_to_first_token_seconds"}, Read: Mean}}},
		{Name: "p90", Terms: []Series{{Families: []string{"h", "vllm:time_to_first_token_seconds"}, Read: Quantile, Quantile: 0.9}}},
	}
}

// FuzzReduce feeds two pages of any bytes: there is no panic, and every metric is a number that is finite and not
// negative, or has a reason.
func FuzzReduce(f *testing.F) {
	for _, name := range pageNames() {
		page := loadPage(f, name)
		f.Add(page[:min(len(page), 512)], page[:min(len(page), 700)])
	}
	h := histogramPage([]float64{1, 2, 3, 4, 5})
	f.Add([]byte(h), []byte(histogramPage([]float64{2, 4, 6, 8, 9}, []float64{2, 4, 6, 8, 9})))
	f.Add([]byte("c_total 5\na 1\nb 2\n"), []byte("# TYPE c_total counter\nc_total 7\na{e=\"1\"} 1\na{e=\"2\"} 1e308\nb 0\n"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		tape := newPageTape(t, fuzzMetrics()...)
		for i, page := range [][]byte{first, second} {
			shares, fails := tape.read(page, origin().Add(time.Duration(i)*15*time.Second))
			for k, s := range shares {
				if s == nil {
					require.NotNil(t, fails[k])
					require.NotEqual(t, None, fails[k].Reason)
					continue
				}
				require.Nil(t, fails[k])
				for _, v := range []float64{s.value, s.num, s.den, s.min, s.max} {
					require.False(t, math.IsNaN(v) || math.IsInf(v, 0) || v < 0, "%s: %+v", tape.plan.metrics[k].Name, s)
				}
			}
		}
	})
}
