package lengths

import "math"

// A Row is what was counted in buckets in some time: one count more than there are ends, and the sum, 0 if that is not known.
type Row struct {
	Counts []float64
	Sum    float64
}

// The descent has at most so many sweeps and steps, and ends where no mean moves by a part of a token any more.
const (
	sweeps    = 10_000
	mostSteps = 100_000_000
	moved     = 1e-4
)

// Means returns the mean length within each bucket in each row, in tokens. A histogram does not have it, but the sums S and counts n of
// many tell it where counts change from one to the next. With w the width of a bucket in tokens, m its mean by the slope of the buckets beside
// it in that row, and d by how much lengths crowd towards one of its ends, the same in all rows,
//
//	S = sum of n (m + d) + noise     variance of d: w w / 12     of the noise: sum of (n + n n / 100) w w / 12
//
// as if lengths were spread evenly over a bucket, whose mean moves by a tenth of that from row to row. The d that are most likely, with
// each mean within its bucket, are added to m. Of a bucket that no row with a sum tells anything of, d is 0.
func Means(bounds []float64, rows []Row) [][]float64 {
	n := len(bounds) + 1
	means := make([][]float64, len(rows))
	a, b, d := make([][]float64, n), make([]float64, n), make([]float64, n)
	least, most := make([]float64, n), make([]float64, n) // that d may be
	for k := range n {
		a[k], least[k], most[k] = make([]float64, n), math.Inf(-1), math.Inf(1)
	}
	for r := range rows {
		row := &rows[r]
		means[r] = make([]float64, n)
		rest, noise := row.Sum, 0.0
		for k, count := range row.Counts {
			low, high := ends(bounds, k)
			means[r][k] = low
			if count <= 0 {
				continue
			}
			if high > low {
				means[r][k] = mean(low, high, slope(bounds, row.Counts, k))
			}
			rest -= count * means[r][k]
			noise += (count + count*count/100) * (high - low) * (high - low) / 12
			least[k], most[k] = max(least[k], low-means[r][k]), min(most[k], high-means[r][k])
		}
		if row.Sum == 0 || noise == 0 {
			continue
		}
		for k, count := range row.Counts {
			b[k] += count * rest / noise
			for l, other := range row.Counts {
				a[k][l] += count * other / noise
			}
		}
	}
	for range sweepsOf(n) {
		farthest := 0.0
		for k := range n {
			low, high := ends(bounds, k)
			if high <= low || math.IsInf(least[k], -1) {
				continue
			}
			x := b[k] + a[k][k]*d[k]
			for l := range n {
				x -= a[k][l] * d[l]
			}
			x = min(max(least[k], x/(a[k][k]+12/((high-low)*(high-low)))), most[k])
			farthest = max(farthest, math.Abs(x-d[k]))
			d[k] = x
		}
		if farthest < moved {
			break
		}
	}
	for r := range rows {
		for k := range means[r] {
			means[r][k] += d[k]
		}
	}
	return means
}

// sweepsOf returns how many sweeps n buckets may take. A sweep takes n n steps: of more than a hundred buckets, which no server has,
// there are fewer sweeps.
func sweepsOf(n int) int { return min(sweeps, 1+mostSteps/(n*n)) }
