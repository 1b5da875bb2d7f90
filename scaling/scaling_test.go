package scaling_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

func TestCeil(t *testing.T) {
	// A quotient that is off by float noise: a plain ceil would ask for one replica too many.
	x, y := 2.1, 0.7
	require.Greater(t, math.Ceil(x/y), 3.0)
	for _, row := range []struct {
		x    float64
		want int32
	}{
		{x / y, 3},
		{3, 3},
		{3.0001, 4},
		{0, 0},
		{0.1, 1},
		{-0.5, 0},
		{-1.5, -1},
		{1e-300, 1},
		{93.0 / 10, 10},
		{1e9, 1e9},
		{1e9 + 0.5, 1e9 + 1},
		{1006895140.9999999, 1006895141}, // found by rapid: noise is not a whole replica
		{math.MaxInt32, math.MaxInt32},
		{math.MaxInt32 + 1.0, math.MaxInt32},
		{1e300, math.MaxInt32},
		{math.Inf(1), math.MaxInt32},
		{math.Inf(-1), math.MinInt32},
		{-1e300, math.MinInt32},
		{math.NaN(), math.MaxInt32},
	} {
		assert.Equal(t, row.want, scaling.Ceil(row.x), "%v", row.x)
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Float64().Draw(t, "a")
		b := rapid.Float64Min(a).Draw(t, "b")
		require.LessOrEqual(t, scaling.Ceil(a), scaling.Ceil(b), "monotone")
		n := rapid.Int32Min(0).Draw(t, "n")
		unit := rapid.Float64Range(1e-6, 1e6).Draw(t, "unit")
		require.Equal(t, n, scaling.Ceil(float64(n)*unit/unit), "n units take n replicas")
	})
}

func TestExceeds(t *testing.T) {
	inf := math.Inf(1)
	for _, row := range []struct {
		a, b float64
		want bool
	}{
		{1, 0, true},
		{0, 1, false},
		{1, 1, false},
		{0.1 + 0.2, 0.3, false},
		{0, -1, true},
		{0, 0, false},
		{1e-300, 0, true},
		{5e-324, 0, true},
		{2.5e-323, 2e-323, true},
		{1 + 1e-8, 1, true},
		{1 + 1e-10, 1, false},
		{-1, -1 - 1e-10, false},
		{inf, 1, true},
		{inf, inf, false},
		{1, -inf, true},
		{-inf, inf, false},
		{math.MaxFloat64, -math.MaxFloat64, true},
		{math.MaxFloat64, math.MaxFloat64 * (1 - 1e-10), false},
		{math.NaN(), 1, false},
		{1, math.NaN(), false},
	} {
		assert.Equal(t, row.want, scaling.Exceeds(row.a, row.b), "%v > %v", row.a, row.b)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float64().Draw(t, "a"), rapid.Float64().Draw(t, "b")
		higher, lower := rapid.Float64Min(a).Draw(t, "higher"), rapid.Float64Max(b).Draw(t, "lower")
		if scaling.Exceeds(a, b) {
			require.True(t, scaling.Exceeds(higher, b), "monotone in a")
			require.True(t, scaling.Exceeds(a, lower), "antitone in b")
			require.False(t, scaling.Exceeds(b, a), "asymmetric")
		}
	})
}

func TestPlusSaturates(t *testing.T) {
	require.EqualValues(t, math.MaxInt32, scaling.Plus(math.MaxInt32, 1))
	require.EqualValues(t, math.MinInt32, scaling.Plus(math.MinInt32, -1))
	require.EqualValues(t, 5, scaling.Plus(3, 2))
}

func TestBounds(t *testing.T) {
	require.NoError(t, scaling.Bounds{Min: 0, Max: 1}.Validate("bounds"))
	require.EqualError(t, scaling.Bounds{}.Validate("bounds"), "bounds.max: 0: must be at least 1")
	require.EqualError(t, scaling.Bounds{Min: 3, Max: 2}.Validate("spec"), "spec.max: 2: must not be below min 3")
	b := scaling.Bounds{Min: 2, Max: 5}
	for n, want := range map[int32]int32{-1: 2, 1: 2, 2: 2, 4: 4, 5: 5, 6: 5} {
		require.Equal(t, want, b.Clamp(n))
		require.Equal(t, want == n, b.Contains(n))
	}
}

func TestObservationReading(t *testing.T) {
	t1, t2 := start, start.Add(time.Second)
	a := scaling.Reading{Metric: "a", Lower: 1, Upper: 4, Values: 3, Failed: 1, At: t2}
	b := scaling.Reading{Metric: "a", Lower: 2, Upper: 6, Values: 2, NotReady: 2, At: t1}
	obs := scaling.Observation{Readings: []scaling.Reading{a, scaling.Exactly("b", 9), b}}
	require.Equal(t, scaling.Exactly("b", 9), obs.Reading("b"))
	require.Equal(t, scaling.Reading{Metric: "c"}, obs.Reading("c"), "no reading is no sample")
	want := scaling.Reading{Metric: "a", Lower: 1, Upper: 6, Values: 2, NotReady: 2, Failed: 1, At: t1}
	require.Equal(t, want, obs.Reading("a"), "two readings of one metric: the interval that holds both")
	obs.Readings[0], obs.Readings[2] = obs.Readings[2], obs.Readings[0]
	require.Equal(t, want, obs.Reading("a"), "in any order")
	obs.Readings = append(obs.Readings, scaling.Reading{Metric: "a"})
	require.Equal(t, scaling.Reading{Metric: "a"}, obs.Reading("a"), "one of them unknown: unknown")

	for _, r := range []scaling.Reading{
		{},
		{Lower: 1, Upper: 2},
		{Lower: 2, Upper: 1, Values: 1},
		{Lower: -1, Upper: 1, Values: 1},
		{Lower: math.NaN(), Upper: 1, Values: 1},
		{Lower: 1, Upper: math.NaN(), Values: 1},
		{Lower: math.Inf(1), Upper: math.Inf(1), Values: 1},
	} {
		require.False(t, r.Known(), "%+v", r)
	}
	require.True(t, scaling.Reading{Lower: 0, Upper: math.Inf(1), Values: 1}.Known())
}

const (
	over  scaling.Code = "Over load > target, for:s >= window:s"
	count scaling.Code = "Count pods, ratio == share"
	plain scaling.Code = "Plain"
)

func TestStepExplainsItself(t *testing.T) {
	s := scaling.Step{Code: over, From: 3, To: 4, Subject: "queue", Numbers: [4]float64{12.5, 0.1 + 0.2, 90, 30}}
	require.Equal(t, "Over", s.Code.String())
	require.Equal(t, "queue load=12.5 > target=0.3, for=1m30s >= window=30s", s.Because())
	require.True(t, s.Holds())
	s.Numbers[0] = 0.3
	require.False(t, s.Holds(), "0.3 does not exceed 0.30000000000000004")
	s.Numbers[0] = 0.30000001
	require.True(t, s.Holds())
	require.Equal(t, "queue load=0.30000001 > target=0.3, for=1m30s >= window=30s", s.Because(), "as many digits as the difference needs")
	s.Numbers[0], s.Numbers[1] = 12345678.9, 1e9
	require.Contains(t, s.Because(), "load=1.23457e+07 > target=1000000000,")

	s = scaling.Step{Code: count, Numbers: [4]float64{3, 0.5, 0.5}}
	require.Equal(t, "pods=3, ratio=0.5 == share=0.5", s.Because())
	require.True(t, s.Holds())
	s.Numbers[2] = 0.6
	require.False(t, s.Holds())
	require.Equal(t, "", scaling.Step{Code: plain}.Because())
	require.True(t, scaling.Step{Code: plain}.Holds())
	require.False(t, scaling.Step{Code: "Odd a ~ b"}.Holds(), "an operator that does not exist claims nothing true")
	counts := scaling.Step{Code: "Over from > limit, limit < from", Numbers: [4]float64{1000000003, 1000000002, 1000000002, 1000000003}}
	require.True(t, counts.Holds(), "whole numbers are compared exactly: one of a billion is one")
	counts.Numbers = [4]float64{1000000002, 1000000002, 1000000002, 1000000003}
	require.False(t, counts.Holds())
	counts.Numbers = [4]float64{1000000003.5, 1000000003.25, 1, 2}
	require.False(t, counts.Holds(), "others up to noise")
	require.Equal(t, "a=25920000000s", scaling.Step{Code: "Long a:s", Numbers: [4]float64{7200000 * 3600}}.Because(), "longer than a time.Duration can be")
	require.Equal(t, "a=1h", scaling.Step{Code: "Long a:s", Numbers: [4]float64{3600}}.Because())
	require.Equal(t, "a=1h0m1s", scaling.Step{Code: "Long a:s", Numbers: [4]float64{3601}}.Because())

	data, err := json.Marshal(scaling.Step{Code: over, From: 3, To: 4, Subject: "queue", Numbers: [4]float64{math.Inf(1), 2, 90, 30}})
	require.NoError(t, err)
	require.JSONEq(t, `{"code":"Over","from":3,"to":4,"subject":"queue",
		"numbers":{"load":"+Inf","target":2,"for":90,"window":30},
		"because":"queue load=+Inf > target=2, for=1m30s >= window=30s"}`, string(data))
}

func TestDecision(t *testing.T) {
	var zero scaling.Decision
	require.Equal(t, scaling.Unknown, zero.Verdict, "the zero verdict is Unknown")
	require.False(t, zero.Acts())
	require.Empty(t, zero.Steps())
	require.Empty(t, zero.Code())
	require.Equal(t, "Unknown at 0", zero.Reason())

	d := scaling.HoldAt(3)
	d.To(9, over, "queue", 12, 10, 30, 30)
	d.Clamp(scaling.Bounds{Min: 1, Max: 5})
	d.Clamp(scaling.Bounds{Min: 1, Max: 5}) // within them now
	d.Consider(3, plain, "cache")
	d.NextBy(start.Add(time.Hour))
	d.NextBy(time.Time{})
	d.NextBy(start)
	require.Equal(t, scaling.Up, d.Verdict)
	require.EqualValues(t, 5, d.Replicas)
	require.Equal(t, start, d.Next)
	require.Equal(t, scaling.AboveMax, d.Code())
	require.Equal(t, "Up 3 -> 5: Over queue load=12 > target=10, for=30s >= window=30s; AboveMax from=9 > max=5", d.Reason())
	require.Equal(t, `Up 3 -> 5
  Over              3 -> 9    queue load=12 > target=10, for=30s >= window=30s
  AboveMax          9 -> 5    from=9 > max=5
considered
  Plain             3 -> 3    cache
`, d.Explain())
	data, err := json.Marshal(d)
	require.NoError(t, err)
	require.Contains(t, string(data), `"verdict":"Up","from":3,"replicas":5,"next":"2026-01-15T08:00:00Z"`)

	// More steps than fit inline, and the lines of another decision beside them.
	long := scaling.HoldAt(1)
	for i := range int32(12) {
		long.To(i+2, plain, "")
	}
	long.Consider(1, plain, "first")
	long.ConsiderAll(&d)
	steps := long.Steps()
	require.Len(t, steps, 12+1+3)
	for i := range 12 {
		require.Equal(t, scaling.Step{Code: plain, From: int32(i + 1), To: int32(i + 2)}, steps[i])
	}
	branches := make([]uint16, 0, 4)
	for _, s := range steps[12:] {
		branches = append(branches, s.Branch)
	}
	require.Equal(t, []uint16{1, 2, 2, 3}, branches)

	u := scaling.UnknownAt(4, plain, "why")
	require.Equal(t, "Unknown at 4: Plain why", u.Reason())
	require.EqualValues(t, 4, u.Replicas)
	for v, name := range map[scaling.Verdict]string{scaling.Unknown: "Unknown", scaling.Hold: "Hold", scaling.Up: "Up", scaling.Down: "Down", 9: "Verdict(9)"} {
		text, err := v.MarshalText()
		require.NoError(t, err)
		require.Equal(t, name, string(text))
	}
}

func TestStamp(t *testing.T) {
	type state struct {
		A scaling.Stamp `json:"a,omitzero"`
		B scaling.Stamp `json:"b"`
	}
	for _, s := range []state{{}, {A: scaling.StampOf(start)}, {A: scaling.StampOf(time.Unix(0, 0)), B: scaling.StampOf(time.Unix(-7, 0))}} {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		var back state
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, s, back, string(data))
	}
	require.True(t, scaling.Stamp{}.Time().IsZero())
	require.True(t, scaling.StampOf(start).Time().Equal(start))
	require.Equal(t, scaling.Stamp{}, scaling.Stamp{}.Back(5))
	require.Equal(t, scaling.StampOf(start.Add(-time.Second)), scaling.StampOf(start).Back(1000))
	require.Error(t, new(scaling.Stamp).UnmarshalJSON([]byte(`"noon"`)))
}

func TestFieldErrors(t *testing.T) {
	var e scaling.FieldErrors
	require.NoError(t, e.Err())
	e.Add(nil)
	e.Check(true, "fine", 1, "never said")
	require.NoError(t, e.Err())
	e.Check(false, "name", "a\nb", "must be one line")
	e.Check(false, "step", 0, "must be at least 1")
	require.EqualError(t, e.Err(), "name: \"a\\nb\": must be one line\nstep: 0: must be at least 1")
}

// TestFindReturnsTheFirstStepOfACode finds steps on every line, without allocating.
func TestFindReturnsTheFirstStepOfACode(t *testing.T) {
	d := scaling.HoldAt(3)
	d.To(5, scaling.AboveMax, "", 5, 4)
	d.Consider(2, scaling.BelowMin, "", 1, 2)
	s, ok := d.Find(scaling.BelowMin)
	require.True(t, ok)
	require.Equal(t, int32(2), s.To)
	_, ok = d.Find(scaling.ClockBack, scaling.Lifted)
	require.False(t, ok)
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Find(scaling.AboveMax, scaling.BelowMin) }))
}
