package calibrate

import "math"

// parameters is the number of parameters of the law, in this order: Base, Sequence, KVToken, PrefillToken.
const parameters = 4

type (
	vector [parameters]float64
	matrix [parameters][parameters]float64
)

// A moment is a sum over equations: a has the products of the columns, b those with the target, c the squares of the target;
// n is the number of equations.
type moment struct {
	a matrix
	b vector
	c float64
	n float64
}

func (m *moment) add(o *moment, times float64) {
	for j := range m.b {
		m.b[j] += times * o.b[j]
		for k := range m.b {
			m.a[j][k] += times * o.a[j][k]
		}
	}
	m.c += times * o.c
	m.n += times * o.n
}

// solve returns the minimum of v'av - 2b'v over the free coefficients, all of them non-negative, with the others fixed: the
// best of the minima over each set of non-zero coefficients, of which there are fifteen. If sets explain the target equally,
// to 1e-10 of its square, the one with fewer and earlier coefficients is taken.
func (m *moment) solve(free [parameters]bool, fixed vector) vector {
	best, least := fixed, math.Inf(1)
	for set := range 1 << parameters {
		var in [parameters]bool
		fits := true
		for j := range in {
			in[j] = set&(1<<j) != 0
			fits = fits && (free[j] || !in[j])
		}
		if !fits {
			continue
		}
		v, ok := m.within(in, fixed)
		if !ok {
			continue
		}
		if q := m.value(&v); q < least-1e-10*m.c {
			best, least = v, q
		}
	}
	return best
}

// value returns v'av - 2b'v.
func (m *moment) value(v *vector) (q float64) {
	for j := range v {
		q -= 2 * m.b[j] * v[j]
		for k := range v {
			q += v[j] * m.a[j][k] * v[k]
		}
	}
	return q
}

// within returns the minimum over the coefficients of a set, with the others fixed, or false if there is none or a
// coefficient is negative.
func (m *moment) within(in [parameters]bool, fixed vector) (vector, bool) {
	var place [parameters]int
	n := 0
	for j, is := range in {
		if is {
			place[n] = j
			n++
		}
	}
	// Columns are scaled to norm one, then a = l l' (Cholesky).
	var l matrix
	var d, t vector
	for i := range n {
		j := place[i]
		if m.a[j][j] <= 0 {
			return fixed, false
		}
		d[i] = 1 / math.Sqrt(m.a[j][j])
		t[i] = m.b[j]
		for k := range fixed {
			if !in[k] {
				t[i] -= m.a[j][k] * fixed[k]
			}
		}
		t[i] *= d[i]
	}
	for i := range n {
		for k := range i + 1 {
			s := m.a[place[i]][place[k]] * d[i] * d[k]
			for h := range k {
				s -= l[i][h] * l[k][h]
			}
			if i != k {
				l[i][k] = s / l[k][k]
				continue
			}
			if s < 1e-12 {
				return fixed, false
			}
			l[i][i] = math.Sqrt(s)
		}
	}
	for i := range n {
		for h := range i {
			t[i] -= l[i][h] * t[h]
		}
		t[i] /= l[i][i]
	}
	out := fixed
	for i := n - 1; i >= 0; i-- {
		for h := i + 1; h < n; h++ {
			t[i] -= l[h][i] * t[h]
		}
		t[i] /= l[i][i]
		out[place[i]] = t[i] * d[i]
		if !(out[place[i]] >= 0) {
			return fixed, false
		}
	}
	return out, true
}

// condition returns the condition number of the free columns, each scaled to norm one: the root of the ratio of the largest
// to the smallest eigenvalue.
func (m *moment) condition(free [parameters]bool) float64 {
	var a matrix
	for j := range a {
		if free[j] && m.a[j][j] <= 0 {
			return math.Inf(1) // a column without a value
		}
		for k := range a {
			if free[j] && free[k] {
				a[j][k] = m.a[j][k] / math.Sqrt(m.a[j][j]*m.a[k][k])
			}
		}
	}
	for range 60 { // Jacobi's rotations
		for j := range a {
			for k := range j {
				if a[j][k] == 0 {
					continue
				}
				angle := 0.5 * math.Atan2(2*a[j][k], a[j][j]-a[k][k])
				s, c := math.Sincos(angle)
				for h := range a {
					x, y := a[h][j], a[h][k]
					a[h][j], a[h][k] = c*x+s*y, c*y-s*x
				}
				for h := range a {
					x, y := a[j][h], a[k][h]
					a[j][h], a[k][h] = c*x+s*y, c*y-s*x
				}
			}
		}
	}
	least, largest := math.Inf(1), 0.0
	for j := range a {
		if free[j] {
			least, largest = min(least, a[j][j]), max(largest, a[j][j])
		}
	}
	if least <= 0 {
		return math.Inf(1)
	}
	return math.Sqrt(largest / least)
}

// slack returns the range of a coefficient in which predictions change by at most the tolerance, as a root mean square over
// the equations. The other coefficients may change with it, but stay non-negative. least and most are the ends.
func (m *moment) slack(free [parameters]bool, at vector, j int, tolerance float64) (least, most float64) {
	limit := tolerance * tolerance
	total := 0.0 // the square of all predictions
	for i := range at {
		for k := range at {
			total += at[i] * m.a[i][k] * at[k]
		}
	}
	limit *= total
	others := free
	others[j] = false
	// distance returns the minimum of (v-at)'a(v-at) over the others, with coefficient j at x.
	distance := func(x float64) float64 {
		shifted := *m
		shifted.c = total // the residual of the target does not count
		for i := range at {
			shifted.b[i] = 0
			for k := range at {
				shifted.b[i] += m.a[i][k] * at[k]
			}
		}
		fixed := at
		for i := range fixed {
			if others[i] {
				fixed[i] = 0
			}
		}
		fixed[j] = x
		v := shifted.solve(others, fixed)
		return shifted.value(&v) + total
	}
	end := func(inside, outside float64) float64 {
		for range 60 {
			middle := (inside + outside) / 2
			if distance(middle) <= limit {
				inside = middle
			} else {
				outside = middle
			}
		}
		return inside
	}
	if least = 0; distance(0) > limit {
		least = end(at[j], 0)
	}
	far := max(at[j], math.Sqrt(total/m.a[j][j])) * 2
	return least, end(at[j], far)
}
