package calibrate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naive is the solver's twin: coordinate by coordinate to the minimum, and never below zero, until nothing moves.
func (m *moment) naive(free [parameters]bool, v vector) vector {
	for j := range v {
		if free[j] {
			v[j] = 0
		}
	}
	for range 100_000 {
		moved := 0.0
		for j := range v {
			if !free[j] || m.a[j][j] == 0 {
				continue
			}
			rest := m.b[j]
			for k := range v {
				if k != j {
					rest -= m.a[j][k] * v[k]
				}
			}
			next := max(0, rest/m.a[j][j])
			moved = max(moved, math.Abs(next-v[j])*math.Sqrt(m.a[j][j]))
			v[j] = next
		}
		if moved < 1e-13*math.Sqrt(m.c) {
			break
		}
	}
	return v
}

// drawn is the moments of equations that are drawn: a law that may have zeros, with errors.
func drawn(t *rapid.T) (m moment) {
	truth := vector{}
	for j := range truth {
		truth[j] = rapid.SampledFrom([]float64{0, 1, 3}).Draw(t, "truth") * rapid.Float64Range(0.1, 1).Draw(t, "part")
	}
	seen := func(x float64) float64 { // no numbers of which squares vanish beside those of others
		if math.Abs(x) < 1e-3 {
			return 0
		}
		return x
	}
	noise := seen(rapid.Float64Range(0, 1).Draw(t, "noise"))
	n := rapid.IntRange(6, 40).Draw(t, "equations")
	for range n {
		x := vector{1}
		y := truth[0]
		for j := 1; j < parameters; j++ {
			x[j] = seen(rapid.Float64Range(0, 2).Draw(t, "x"))
			y += x[j] * truth[j]
		}
		y += noise * seen(rapid.Float64Range(-1, 1).Draw(t, "error"))
		for j := range x {
			m.b[j] += x[j] * y
			for k := range x {
				m.a[j][k] += x[j] * x[k]
			}
		}
		m.c += y * y
		m.n++
	}
	return m
}

// TestAColumnWithoutAValueHasNoCondition: it was no number, and no limit was below it.
func TestAColumnWithoutAValueHasNoCondition(t *testing.T) {
	m := moment{a: matrix{{6, 0, 6, 0}, {}, {6, 0, 6, 0}, {0, 0, 0, 6}}, c: 6, n: 6}
	require.Equal(t, math.Inf(1), m.condition([parameters]bool{true, true, false, true}))
	require.InDelta(t, 1, m.condition([parameters]bool{true, false, false, true}), 1e-12)
}

// TestSolverMatchesItsTwin: the set of coefficients that are zero is found, and no twin finds less.
func TestSolverMatchesItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawn(t)
		free := [parameters]bool{true, true, true, true}
		var fixed vector
		for j := range free {
			if rapid.IntRange(0, 4).Draw(t, "fixed") == 0 {
				free[j], fixed[j] = false, rapid.Float64Range(0, 1).Draw(t, "at")
			}
		}
		if m.condition(free) > 200 {
			t.Skip("the twin would take long")
		}
		got, want := m.solve(free, fixed), m.naive(free, fixed)
		require.InDelta(t, m.value(&want), m.value(&got), 1e-8*m.c)
		for j := range got {
			require.GreaterOrEqual(t, got[j], 0.0)
			if !free[j] {
				require.Equal(t, fixed[j], got[j])
			}
		}
		if m.condition(free) < 100 {
			for j := range got { // by what it adds to the prediction: an x near zero has any coefficient
				require.InDelta(t, want[j]*math.Sqrt(m.a[j][j]), got[j]*math.Sqrt(m.a[j][j]), 1e-3*math.Sqrt(m.c))
			}
		}
	})
}

// TestSlackIsAtItsEnds: with a coefficient at the ends of its slack, predictions are as far off as allowed, or the end is zero.
func TestSlackIsAtItsEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawn(t)
		free := [parameters]bool{true, true, true, true}
		if m.condition(free) > 200 {
			t.Skip("the twin would take long")
		}
		at := m.solve(free, vector{})
		j := rapid.IntRange(0, parameters-1).Draw(t, "j")
		const tolerance = 0.05
		least, most := m.slack(free, at, j, tolerance)
		require.LessOrEqual(t, least, at[j]+1e-9)
		require.GreaterOrEqual(t, most, at[j]-1e-9)
		total := 0.0
		for i := range at {
			for k := range at {
				total += at[i] * m.a[i][k] * at[k]
			}
		}
		off := func(x float64) float64 { // by the twin
			shifted := m
			shifted.c = total
			for i := range at {
				shifted.b[i] = 0
				for k := range at {
					shifted.b[i] += m.a[i][k] * at[k]
				}
			}
			others := free
			others[j] = false
			fixed := vector{}
			fixed[j] = x
			v := shifted.naive(others, fixed)
			return math.Sqrt(max(0, shifted.value(&v)+total) / max(total, 1e-300))
		}
		if total > 0 {
			require.InDelta(t, tolerance, off(most), 1e-3)
			if least > 0 {
				require.InDelta(t, tolerance, off(least), 1e-3)
			}
		}
	})
}
