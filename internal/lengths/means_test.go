package lengths_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/lengths"
	"github.com/inferscale/inferscale/internal/splitmix"
)

// ofVLLM are vLLM's bounds.
func ofVLLM() (bounds []float64) {
	for _, power := range []float64{1, 10, 100, 1000, 10000} {
		bounds = append(bounds, power, 2*power, 5*power)
	}
	return bounds
}

// counted counts lengths in buckets, and has the means within these.
func counted(bounds []float64, all []float64) (row lengths.Row, means []float64) {
	row.Counts, means = make([]float64, len(bounds)+1), make([]float64, len(bounds)+1)
	for _, x := range all {
		k, _ := slices.BinarySearch(bounds, x)
		row.Counts[k]++
		row.Sum += x
		means[k] += x
	}
	for k, n := range row.Counts {
		means[k] /= n
	}
	return row, means
}

// unsummed are rows whose sums are not known: their means are those of the slopes.
func unsummed(rows []lengths.Row) []lengths.Row {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Sum = 0
	}
	return rows
}

// TestLengthsThatCrowdWithinABucket: of recorded conversations a seventh are prompts that were cut off at 4,096 tokens, and many are of little
// more than 1,000. By the slopes of the buckets beside it that between 2,000 and 5,000 has a mean of 2,700, and that below one of 1,400.
func TestLengthsThatCrowdWithinABucket(t *testing.T) {
	random := splitmix.Stream{State: 5}
	bounds := ofVLLM()
	var rows []lengths.Row
	var within [][]float64
	for i := range 24 {
		var all []float64
		for range 1500 {
			switch u := random.Uniform(); {
			case u < 0.08+0.01*float64(i%12):
				all = append(all, 4000+96*random.Uniform())
			case u < 0.5+0.02*float64(i%5):
				all = append(all, 1001+80*random.Exponential())
			default:
				all = append(all, math.Ceil(150+700*random.Uniform()))
			}
		}
		row, means := counted(bounds, all)
		rows, within = append(rows, row), append(within, means)
	}
	before, after := lengths.Means(bounds, unsummed(rows)), lengths.Means(bounds, rows)
	at := func(length float64) int { k, _ := slices.BinarySearch(bounds, length); return k }
	for i := range rows {
		for _, length := range []float64{1500, 3000} {
			k := at(length)
			require.Greater(t, math.Abs(before[i][k]-within[i][k]), 0.15*within[i][k])
			require.InEpsilon(t, within[i][k], after[i][k], 0.08, "row %d, %g", i, length)
		}
		plain, d := lengths.Sloped(bounds, rows[i].Counts, rows[i].Sum, nil), lengths.Sloped(bounds, rows[i].Counts, rows[i].Sum, after[i])
		sum := 0.0
		for k := range 10_000 {
			share := (float64(k) + 0.5) / 10_000
			sum += float64(d.At(share)) * d.Total() / 10_000
			low, _ := ends(bounds, at(float64(plain.At(share))))
			if low > 1 {
				require.GreaterOrEqual(t, float64(d.At(share)), low, "lengths stay within their buckets")
			}
		}
		require.InEpsilon(t, rows[i].Sum, sum, 0.01)
		require.Greater(t, float64(d.At(0.95)), 1.15*float64(plain.At(0.95)))
	}
}

// TestLengthsThatDoNotCrowd: where lengths change with time, and are as dense as the buckets beside say, means stay what they are without sums.
func TestLengthsThatDoNotCrowd(t *testing.T) {
	random := splitmix.Stream{State: 7}
	bounds := ofVLLM()
	var rows []lengths.Row
	var within [][]float64
	for i := range 96 {
		var all []float64
		for range 1000 {
			x := (600 + 900*float64(i%7)/6) * math.Exp(0.9*math.Sqrt(2*random.Exponential())*math.Cos(2*math.Pi*random.Uniform()))
			all = append(all, math.Ceil(x))
		}
		row, means := counted(bounds, all)
		rows, within = append(rows, row), append(within, means)
	}
	before, after := lengths.Means(bounds, unsummed(rows)), lengths.Means(bounds, rows)
	off := func(means [][]float64) (sum float64) {
		n := 0.0
		for i := range rows {
			for k, count := range rows[i].Counts {
				if count > 0 {
					sum += count * math.Abs(means[i][k]-within[i][k]) / within[i][k]
					n += count
				}
			}
		}
		return sum / n
	}
	t.Logf("means are off by %.4f by the slopes, and %.4f", off(before), off(after))
	require.Less(t, off(after), 0.05)
}

// TestMeansAreTheMostLikely: no other departure from the slopes, of one bucket and then of two, is more likely; all are within their buckets.
func TestMeansAreTheMostLikely(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := ofVLLM()[rapid.IntRange(0, 6).Draw(t, "from"):]
		var rows []lengths.Row
		for range rapid.IntRange(1, 8).Draw(t, "rows") {
			row := lengths.Row{Counts: make([]float64, len(bounds)+1)}
			for k := range row.Counts {
				low, high := ends(bounds, k)
				row.Counts[k] = float64(rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 500)).Draw(t, "count"))
				row.Sum += row.Counts[k] * (low + (high-low)*rapid.Float64Range(0, 1).Draw(t, "mean"))
			}
			rows = append(rows, row)
		}
		slopes, means := lengths.Means(bounds, unsummed(rows)), lengths.Means(bounds, rows)
		d := make([]float64, len(bounds)+1)
		for i := range rows {
			for k, n := range rows[i].Counts {
				if low, high := ends(bounds, k); n > 0 {
					require.GreaterOrEqual(t, means[i][k], low-1e-6)
					require.LessOrEqual(t, means[i][k], high+1e-6)
					d[k] = means[i][k] - slopes[i][k]
				}
			}
		}
		// unlikely is what the departure costs, infinitely much where a mean is outside of its bucket.
		unlikely := func(d []float64) (sum float64) {
			for k := range d {
				if low, high := ends(bounds, k); high > low {
					sum += 12 * d[k] * d[k] / ((high - low) * (high - low))
				}
			}
			for i := range rows {
				rest, noise := rows[i].Sum, 0.0
				for k, n := range rows[i].Counts {
					low, high := ends(bounds, k)
					if n == 0 {
						continue
					}
					if x := slopes[i][k] + d[k]; x < low-1e-6 || x > high+1e-6 {
						return math.Inf(1)
					}
					rest -= n * (slopes[i][k] + d[k])
					noise += (n + n*n/100) * (high - low) * (high - low) / 12
				}
				if noise > 0 && rows[i].Sum > 0 {
					sum += rest * rest / noise
				}
			}
			return sum
		}
		least := unlikely(d)
		require.False(t, math.IsInf(least, 1))
		for k := range d {
			low, high := ends(bounds, k)
			for l := range k + 1 {
				other, wide := ends(bounds, l)
				for _, by := range [][2]float64{{1, 0}, {-1, 0}, {1, -1}, {-1, 1}, {1, 1}, {-1, -1}} {
					moved := slices.Clone(d)
					moved[k] += by[0] * (high - low) / 50
					moved[l] += by[1] * (wide - other) / 50
					require.GreaterOrEqual(t, unlikely(moved), least-1e-4*(1+least), "%d, %d", k, l)
				}
			}
		}
	})
}

// ends are those of a bucket; what is above all of them is up to twice the last.
func ends(bounds []float64, k int) (low, high float64) {
	low = 1
	if k > 0 {
		low = bounds[k-1]
	}
	if k == len(bounds) {
		return low, 2 * low
	}
	return low, bounds[k]
}

// TestRegressionManyBucketsTakeNoMinutes: the means within a thousand buckets, which half of the rows have none of, took half a
// minute, and again for each pod with bounds of its own.
func TestRegressionManyBucketsTakeNoMinutes(t *testing.T) {
	random := splitmix.Stream{State: 1}
	bounds, rows := make([]float64, 1000), make([]lengths.Row, 60)
	for i := range bounds {
		bounds[i] = float64(10 * (i + 1))
	}
	for k := range rows {
		rows[k].Counts = make([]float64, len(bounds)+1)
		for i := range rows[k].Counts {
			if random.Uniform() < 0.5 {
				rows[k].Counts[i] = 1000
				rows[k].Sum += 1000 * (float64(10*i+3) + 7*math.Round(random.Uniform()))
			}
		}
	}
	require.LessOrEqual(t, lengths.SweepsOf(len(bounds))*len(bounds)*len(bounds), 101_000_000)
	require.Equal(t, lengths.SweepsOf(1), lengths.SweepsOf(100), "no server has more")
	means := lengths.Means(bounds, rows)
	for r := range rows {
		for k, n := range rows[r].Counts {
			low, high := 1.0, math.Inf(1)
			if k > 0 {
				low = bounds[k-1]
			}
			if k < len(bounds) {
				high = bounds[k]
			}
			require.True(t, n == 0 || means[r][k] >= low-1e-6 && means[r][k] <= high+1e-6, "row %d, bucket %d: %g", r, k, means[r][k])
		}
	}
}
