package ratio_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/ratio"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

const asked scaling.Code = "Asked want"

// fieldsOf returns the fields that an error names.
func fieldsOf(err error) (fields []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			fields = append(fields, fieldsOf(e)...)
		}
		return fields
	}
	if f, ok := err.(*scaling.FieldError); ok { //nolint:errorlint // the tree is walked by hand
		return []string{f.Field}
	}
	return nil
}

func drawBounds(t *rapid.T, most int32, label string) scaling.Bounds {
	least := rapid.Int32Range(0, most).Draw(t, label+" min")
	return scaling.Bounds{Min: least, Max: max(1, rapid.Int32Range(least, most).Draw(t, label+" max"))}
}

// drawFraction draws ratios near those of small counts, so that ranges are met, just missed, and strict.
func drawFraction(t *rapid.T, label string) ratio.Fraction {
	return ratio.Fraction{
		Num: rapid.Int64Range(1, 24).Draw(t, label+" num"),
		Den: rapid.Int64Range(1, 24).Draw(t, label+" den"),
	}
}

// drawRatio draws a configuration; it may hold no pair.
func drawRatio(t *rapid.T, most int32) ratio.Config {
	c := ratio.Config{Prefill: drawBounds(t, most, "prefill"), Decode: drawBounds(t, most, "decode")}
	if rapid.IntRange(0, 5).Draw(t, "has min") > 0 {
		c.Min = drawFraction(t, "min")
	}
	switch rapid.IntRange(0, 5).Draw(t, "has max") {
	case 0:
	case 2: // wide enough to hold something, more often than not
		c.Max = ratio.Fraction{Num: max(1, 3*c.Min.Num), Den: max(1, 2*c.Min.Den)}
	case 1:
		c.Max = c.Min // strict
	default:
		c.Max = drawFraction(t, "max")
		if !c.Min.IsZero() && c.Max.Num*c.Min.Den < c.Min.Num*c.Max.Den {
			c.Min, c.Max = c.Max, c.Min
		}
	}
	return c
}

// nearest is the projection by brute force. Of all pairs in range it keeps those that meet the most of both demands,
// and of these the one with the fewest replicas. It does not know that there is only one.
func nearest(t require.TestingT, c ratio.Config, prefill, decode int32) (p, d int32) {
	prefill, decode = c.Prefill.Clamp(prefill), c.Decode.Clamp(decode)
	missing, replicas := int32(1<<30), int32(1<<30)
	ties := 0
	for a := c.Prefill.Min; a <= c.Prefill.Max; a++ {
		for b := c.Decode.Min; b <= c.Decode.Max; b++ {
			if !inRange(c, a, b) {
				continue
			}
			short, sum := max(0, prefill-a)+max(0, decode-b), a+b
			switch {
			case short < missing || short == missing && sum < replicas:
				missing, replicas, p, d, ties = short, sum, a, b, 0
			case short == missing && sum == replicas:
				ties++
			}
		}
	}
	require.Zero(t, ties, "the nearest pair is unique")
	return p, d
}

func TestProjectionIsTheNearestFeasiblePair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRatio(t, 14)
		r, err := ratio.New(c)
		require.Equal(t, anyPair(c), err == nil, "an infeasible range is an error, and no other: %v", err)
		if err != nil {
			require.NotEmpty(t, fieldsOf(err), "%v", err)
			return
		}
		prefill, decode := rapid.Int32Range(-2, 17).Draw(t, "prefill"), rapid.Int32Range(-2, 17).Draw(t, "decode")
		p, d := r.Project(prefill, decode)
		require.True(t, inRange(c, p, d), "%d/%d in range", p, d)
		wantP, wantD := nearest(t, c, prefill, decode)
		require.Equal(t, [2]int32{wantP, wantD}, [2]int32{p, d}, "%d/%d in %+v", prefill, decode, c)

		againP, againD := r.Project(p, d)
		require.Equal(t, [2]int32{p, d}, [2]int32{againP, againD}, "projecting twice changes nothing")
		moreP, moreD := r.Project(prefill+rapid.Int32Range(0, 5).Draw(t, "more"), decode)
		require.True(t, moreP >= p && moreD >= d, "more demand never gives less")
		moreP, moreD = r.Project(prefill, decode+rapid.Int32Range(0, 5).Draw(t, "more"))
		require.True(t, moreP >= p && moreD >= d, "more demand never gives less")
		for a := int32(-1); a <= 15; a++ {
			b := rapid.Int32Range(-1, 15).Draw(t, "b")
			require.Equal(t, inRange(c, a, b), r.Feasible(a, b), "%d/%d", a, b)
		}
	})
}

// TestFeasiblePairsAreALattice checks what the projection rests on: with two feasible pairs, the pair of the lower and
// that of the higher counts are feasible.
func TestFeasiblePairsAreALattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRatio(t, 8)
		var pairs [][2]int32
		for p := int32(0); p <= 8; p++ {
			for d := int32(0); d <= 8; d++ {
				if inRange(c, p, d) {
					pairs = append(pairs, [2]int32{p, d})
				}
			}
		}
		for _, a := range pairs {
			for _, b := range pairs {
				require.True(t, inRange(c, min(a[0], b[0]), min(a[1], b[1])), "%v and %v", a, b)
				require.True(t, inRange(c, max(a[0], b[0]), max(a[1], b[1])), "%v and %v", a, b)
			}
		}
	})
}

// onePass is the projection of Kthena as it behaves: towards the bound that is violated, and never back.
func onePass(c ratio.Config, p, d int32) (int32, int32) {
	lo := float64(c.Min.Num) / float64(c.Min.Den)
	hi := float64(c.Max.Num) / float64(c.Max.Den)
	up := func(v float64) int32 { return scaling.Ceil(v) }
	down := func(v float64) int32 { return -scaling.Ceil(-v) }
	p, d = c.Prefill.Clamp(p), c.Decode.Clamp(d)
	switch {
	case p == 0 && d == 0:
		return 0, 0
	case p == 0:
		p = c.Prefill.Clamp(1)
	case d == 0:
		d = c.Decode.Clamp(1)
	}
	switch q := float64(p) / float64(d); {
	case scaling.Exceeds(lo, q):
		if u := up(lo * float64(d)); u <= c.Prefill.Max {
			p = max(u, c.Prefill.Min)
		} else {
			p, d = c.Prefill.Max, c.Decode.Clamp(down(float64(p)/lo))
		}
	case scaling.Exceeds(q, hi):
		if u := up(float64(p) / hi); u <= c.Decode.Max {
			d = max(u, c.Decode.Min)
		} else {
			d, p = c.Decode.Max, c.Prefill.Clamp(down(hi*float64(d)))
		}
	}
	return p, d
}

// TestOnePassLeavesTheRange keeps the counterexamples that make one pass wrong: to have half as many prefill as 5
// decode replicas it rounds up to 3/5, which is above the range it was meant to reach, and does not look again.
func TestOnePassLeavesTheRange(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: 10}
	half := ratio.Config{Prefill: bounds, Decode: bounds, Min: ratio.Fraction{Num: 1, Den: 2}, Max: ratio.Fraction{Num: 1, Den: 2}}
	p, d := onePass(half, 1, 5)
	require.Equal(t, [2]int32{3, 5}, [2]int32{p, d})
	require.False(t, inRange(half, p, d))
	r, err := ratio.New(half)
	require.NoError(t, err)
	p, d = r.Project(1, 5)
	require.Equal(t, [2]int32{3, 6}, [2]int32{p, d})

	narrow := half
	narrow.Min, narrow.Max = ratio.Fraction{Num: 11, Den: 20}, ratio.Fraction{Num: 4, Den: 5}
	p, d = onePass(narrow, 1, 1)
	require.Equal(t, [2]int32{1, 2}, [2]int32{p, d})
	require.False(t, inRange(narrow, p, d))
	r, err = ratio.New(narrow)
	require.NoError(t, err)
	p, d = r.Project(1, 1)
	require.Equal(t, [2]int32{2, 3}, [2]int32{p, d})

	// How often that is: all demands, in ranges from strict to wide, where a feasible pair exists.
	outside, feasible, ours := 0, 0, 0
	for low := int64(10); low <= 200; low += 5 {
		for _, width := range []int64{0, 5, 10, 25, 50} {
			c := half
			c.Min, c.Max = ratio.Fraction{Num: low, Den: 100}, ratio.Fraction{Num: low + width, Den: 100}
			r, err := ratio.New(c)
			if err != nil {
				continue
			}
			for a := bounds.Min; a <= bounds.Max; a++ {
				for b := bounds.Min; b <= bounds.Max; b++ {
					feasible++
					if p, d := onePass(c, a, b); !inRange(c, p, d) {
						outside++
					}
					if p, d := r.Project(a, b); !inRange(c, p, d) {
						ours++
					}
				}
			}
		}
	}
	t.Logf("one pass leaves the range for %d of %d feasible inputs", outside, feasible)
	require.Greater(t, outside, feasible/6)
	require.Zero(t, ours)
}

func TestProjectSteps(t *testing.T) {
	fraction := func(s string) ratio.Fraction {
		f, err := ratio.ParseFraction(s)
		require.NoError(t, err)
		return f
	}
	for _, s := range []struct {
		about            string
		prefill, decode  scaling.Bounds
		low, high        string
		askP, askD, p, d int32
	}{
		{"inside: nothing changes", scaling.Bounds{Min: 0, Max: 8}, scaling.Bounds{Min: 0, Max: 16}, "0.25", "1", 2, 4, 2, 4},
		{"0.7 is 7/10", scaling.Bounds{Min: 1, Max: 100}, scaling.Bounds{Min: 1, Max: 100}, "0.7", "0.7", 7, 10, 7, 10},
		{"0.7 * 3 is not 2.1 in float64", scaling.Bounds{Min: 1, Max: 100}, scaling.Bounds{Min: 1, Max: 100}, "0.7", "0.7", 21, 30, 21, 30},
		{"a third, as none but a fraction says it", scaling.Bounds{Min: 1, Max: 100}, scaling.Bounds{Min: 1, Max: 100}, "1/3", "1/3", 3, 7, 3, 9},
		{"scaled to zero together", scaling.Bounds{Min: 0, Max: 8}, scaling.Bounds{Min: 0, Max: 8}, "0.5", "2", 0, 0, 0, 0},
		{"one role wakes the other", scaling.Bounds{Min: 0, Max: 8}, scaling.Bounds{Min: 0, Max: 8}, "0.5", "2", 0, 1, 1, 1},
		{"and the other the one", scaling.Bounds{Min: 0, Max: 8}, scaling.Bounds{Min: 0, Max: 8}, "0.5", "2", 1, 0, 1, 1},
		{"one role cannot sleep alone", scaling.Bounds{Min: 0, Max: 8}, scaling.Bounds{Min: 1, Max: 8}, "0.5", "2", 0, 0, 1, 1},
		{"a bound stops the partner, and so both", scaling.Bounds{Min: 1, Max: 8}, scaling.Bounds{Min: 1, Max: 4}, "0.25", "1", 8, 1, 4, 4},
		{"the other demand is still covered", scaling.Bounds{Min: 1, Max: 3}, scaling.Bounds{Min: 1, Max: 40}, "1/4", "1/2", 3, 40, 3, 12},
		{"demand beyond the bounds", scaling.Bounds{Min: 2, Max: 6}, scaling.Bounds{Min: 2, Max: 6}, "1", "1", 99, -99, 6, 6},
	} {
		r, err := ratio.New(ratio.Config{Prefill: s.prefill, Decode: s.decode, Min: fraction(s.low), Max: fraction(s.high)})
		require.NoError(t, err, s.about)
		p, d := r.Project(s.askP, s.askD)
		require.Equal(t, [2]int32{s.p, s.d}, [2]int32{p, d}, s.about)
	}
}

// TestFeasible: a role alone is never feasible, and the limits themselves are.
func TestFeasible(t *testing.T) {
	eight := scaling.Bounds{Min: 0, Max: 8}
	free, err := ratio.New(ratio.Config{Prefill: eight, Decode: eight})
	require.NoError(t, err)
	limited, err := ratio.New(ratio.Config{Prefill: eight, Decode: eight, Min: ratio.Fraction{Num: 1, Den: 2}, Max: ratio.Fraction{Num: 2, Den: 1}})
	require.NoError(t, err)
	for _, s := range []struct {
		p, d          int32
		free, limited bool
	}{
		{0, 0, true, true},
		{0, 3, false, false},
		{3, 0, false, false},
		{1, 2, true, true},
		{2, 1, true, true},
		{1, 3, true, false},
		{3, 1, true, false},
		{8, 4, true, true},
		{9, 5, false, false},
		{5, 9, false, false},
	} {
		require.Equal(t, s.free, free.Feasible(s.p, s.d), "%d/%d", s.p, s.d)
		require.Equal(t, s.limited, limited.Feasible(s.p, s.d), "%d/%d from 1/2 to 2", s.p, s.d)
	}
}

// TestRatioAtTheLimits: no overflow with terms of twelve digits and a million replicas, and no loop longer than the
// replicas in the worst range there is.
func TestRatioAtTheLimits(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: ratio.MaxReplicas}
	for _, c := range []ratio.Config{
		{Prefill: bounds, Decode: bounds, Min: ratio.Fraction{Num: 999_999_999_999, Den: 1_000_000_000_000}, Max: ratio.Fraction{Num: 1_000_000_000_000, Den: 999_999_999_999}},
		{Prefill: bounds, Decode: bounds, Min: ratio.Fraction{Num: 618033, Den: 1000000}, Max: ratio.Fraction{Num: 618034, Den: 1000000}},
		{Prefill: bounds, Decode: bounds, Min: ratio.Fraction{Num: 499_999, Den: 1_000_000}, Max: ratio.Fraction{Num: 499_999_500_001, Den: 1_000_000_000_000}},
		{Prefill: bounds, Decode: bounds, Min: ratio.Fraction{Num: 1, Den: 1_000_000}},
		{Prefill: bounds, Decode: bounds, Max: ratio.Fraction{Num: 1, Den: 1_000_000}},
		{Prefill: bounds, Decode: bounds, Min: ratio.Fraction{Num: 1_000_000, Den: 1}},
		{Prefill: bounds, Decode: bounds},
	} {
		r, err := ratio.New(c)
		require.NoError(t, err)
		for _, ask := range [][2]int32{{1, 1}, {1, ratio.MaxReplicas}, {ratio.MaxReplicas, 1}, {1 << 30, 1 << 30}, {-1 << 31, -1 << 31}, {123_456, 654_321}} {
			p, d := r.Project(ask[0], ask[1])
			require.True(t, inRange(c, p, d), "%v gives %d/%d in %+v", ask, p, d, c)
		}
	}
}

func TestRatioErrors(t *testing.T) {
	one := scaling.Bounds{Min: 0, Max: 1}
	ten := scaling.Bounds{Min: 0, Max: 10}
	for _, s := range []struct {
		about  string
		config ratio.Config
		fields []string
	}{
		{"nothing set", ratio.Config{}, []string{"prefill.max", "decode.max"}},
		{"bounds", ratio.Config{Prefill: scaling.Bounds{Min: -1, Max: 2_000_000}, Decode: scaling.Bounds{Min: 3, Max: 2}}, []string{"prefill.min", "decode.max", "prefill.max"}},
		{"no numbers", ratio.Config{Prefill: ten, Decode: ten, Min: ratio.Fraction{Num: -1, Den: 2}, Max: ratio.Fraction{Num: 0, Den: 1}}, []string{"min", "max"}},
		{"by nothing", ratio.Config{Prefill: ten, Decode: ten, Min: ratio.Fraction{Num: 1, Den: 0}, Max: ratio.Fraction{Num: 1, Den: -1}}, []string{"min", "max"}},
		{"upside down", ratio.Config{Prefill: ten, Decode: ten, Min: ratio.Fraction{Num: 2, Den: 3}, Max: ratio.Fraction{Num: 666_666_666_666, Den: 1_000_000_000_000}}, []string{"max"}},
		{"upside down by whole numbers", ratio.Config{Prefill: ten, Decode: ten, Min: ratio.Fraction{Num: 3, Den: 2}, Max: ratio.Fraction{Num: 1, Den: 1}}, []string{"max"}},
		{"one of them is no number", ratio.Config{Prefill: ten, Decode: ten, Min: ratio.Fraction{Num: 1, Den: 2}, Max: ratio.Fraction{Num: 1, Den: -1}}, []string{"max"}},
		{"too many", ratio.Config{Prefill: ten, Decode: scaling.Bounds{Min: 0, Max: 1_000_001}}, []string{"decode.max"}},
		{"no whole numbers are in it", ratio.Config{Prefill: one, Decode: one, Min: ratio.Fraction{Num: 5, Den: 10}, Max: ratio.Fraction{Num: 8, Den: 10}}, []string{"min"}},
		{"the extremes are reachable, and yet nothing is in it", ratio.Config{Prefill: scaling.Bounds{Min: 1, Max: 2}, Decode: scaling.Bounds{Min: 1, Max: 2}, Min: ratio.Fraction{Num: 6, Den: 10}, Max: ratio.Fraction{Num: 9, Den: 10}}, []string{"min"}},
	} {
		_, err := ratio.New(s.config)
		require.Equal(t, s.fields, fieldsOf(err), "%s: %v", s.about, err)
		require.Equal(t, err, s.config.Validate())
	}
}

func TestNoRatioIsNoConstraint(t *testing.T) {
	var r ratio.Ratio
	p, d := r.Project(3, 0)
	require.Equal(t, [2]int32{3, 0}, [2]int32{p, d})
	require.True(t, r.Feasible(3, 0))
	prefill, decode := scaling.HoldAt(3), scaling.HoldAt(0)
	r.Adjust(&prefill, &decode)
	require.Equal(t, scaling.HoldAt(3), prefill)
	require.Equal(t, scaling.HoldAt(0), decode)
}

func TestAdjustExplainsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRatio(t, 14)
		r, err := ratio.New(c)
		if err != nil {
			return
		}
		draw := func(label string) scaling.Decision {
			from := rapid.Int32Range(0, 16).Draw(t, label+" from")
			if rapid.IntRange(0, 3).Draw(t, label+" unknown") == 0 {
				return scaling.UnknownAt(from, asked, "")
			}
			d := scaling.HoldAt(from)
			d.To(rapid.Int32Range(0, 16).Draw(t, label+" to"), asked, "")
			return d
		}
		p, d := draw("prefill"), draw("decode")
		beforeP, beforeD := p, d
		r.Adjust(&p, &d)
		require.NoError(t, scalingtest.Explained(&p), p.Explain())
		require.NoError(t, scalingtest.Explained(&d), d.Explain())
		wantP, wantD := r.Project(beforeP.Replicas, beforeD.Replicas)
		if beforeP.Verdict == scaling.Unknown {
			wantP = max(wantP, beforeP.From)
			require.NotEqual(t, scaling.Down, p.Verdict, "Unknown is never lowered")
		}
		if beforeD.Verdict == scaling.Unknown {
			wantD = max(wantD, beforeD.From)
			require.NotEqual(t, scaling.Down, d.Verdict, "Unknown is never lowered")
		}
		require.Equal(t, [2]int32{wantP, wantD}, [2]int32{p.Replicas, d.Replicas})
	})
}

// TestUnknownIsRaisedAndNeverLowered: a role without data follows its partner up, and stays where it is otherwise.
func TestUnknownIsRaisedAndNeverLowered(t *testing.T) {
	r, err := ratio.New(ratio.Config{
		Prefill: scaling.Bounds{Min: 1, Max: 8}, Decode: scaling.Bounds{Min: 1, Max: 4},
		Min: ratio.Fraction{Num: 1, Den: 2}, Max: ratio.Fraction{Num: 1, Den: 1},
	})
	require.NoError(t, err)
	for _, s := range []struct {
		from, to int32 // of decode; prefill is Unknown at its count
		unknown  int32
		p, d     int32
		verdict  scaling.Verdict
	}{
		{4, 4, 1, 2, 4, scaling.Up},
		{2, 1, 3, 3, 3, scaling.Unknown}, // and its partner does not go below it
		{4, 4, 3, 3, 4, scaling.Unknown},
		{4, 4, 6, 6, 4, scaling.Unknown}, // more than any pair in range has
	} {
		prefill := scaling.UnknownAt(s.unknown, asked, "")
		decode := scaling.HoldAt(s.from)
		decode.To(s.to, asked, "")
		r.Adjust(&prefill, &decode)
		require.Equal(t, [2]int32{s.p, s.d}, [2]int32{prefill.Replicas, decode.Replicas}, "%+v", s)
		require.Equal(t, s.verdict, prefill.Verdict, "%+v", s)

		// The same with the roles exchanged.
		turned, err := ratio.New(ratio.Config{
			Prefill: scaling.Bounds{Min: 1, Max: 4}, Decode: scaling.Bounds{Min: 1, Max: 8},
			Min: ratio.Fraction{Num: 1, Den: 1}, Max: ratio.Fraction{Num: 2, Den: 1},
		})
		require.NoError(t, err)
		prefill = scaling.HoldAt(s.from)
		prefill.To(s.to, asked, "")
		decode = scaling.UnknownAt(s.unknown, asked, "")
		turned.Adjust(&prefill, &decode)
		require.Equal(t, [2]int32{s.d, s.p}, [2]int32{prefill.Replicas, decode.Replicas}, "%+v", s)
		require.Equal(t, s.verdict, decode.Verdict, "%+v", s)
	}
}

func TestParseFraction(t *testing.T) {
	for text, want := range map[string]string{
		"0.7": "7/10", "0.70": "7/10", "7/10": "7/10", "14/20": "7/10", "2": "2", "2.0": "2", "0": "0", "0.000": "0", "0e99": "0",
		"1e-2": "1/100", "2.5E2": "250", ".5": "1/2", "5.": "5", "1000000000000": "1000000000000", "0.000000000001": "1/1000000000000",
		"3e-12": "3/1000000000000", "5000000000000e-13": "1/2", "1.1": "11/10", "0e-99": "0",
		"0.70000000000000000000": "7/10",           // zeros at the end are no digits
		"16e-13":                 "1/625000000000", // it is the lowest terms that have at most twelve digits
		"100000000000.2":         "500000000001/5",
	} {
		f, err := ratio.ParseFraction(text)
		require.NoError(t, err, text)
		require.Equal(t, want, f.String(), text)
	}
	for _, text := range []string{
		"", ".", "-1", "+1", "-0.5", "1/0", "1/-2", "a", "1/2/3", "0.7x", "1_0", " 1", "NaN", "Inf", "1e", "e1", "1e99999",
		"1000000000001", "1e-13", "1/1000000000001", "1024e-22", "99999999999999999999", "0x10", "0e40000",
		"a/2", "/2", "-1/2", "2/a", "2000000000000/4",
		"9223372036854775808e1", // ten times 2^63 is 0 in 64 bits
	} {
		f, err := ratio.ParseFraction(text)
		require.Error(t, err, "%q gives %s", text, f)
		require.Zero(t, f)
	}
	for x, want := range map[float64]string{0.7: "7/10", 0.1: "1/10", 2: "2", 1e-12: "1/1000000000000", 0: "0"} {
		f, err := ratio.FractionOf(x)
		require.NoError(t, err)
		require.Equal(t, want, f.String())
	}
	zero, err := ratio.FractionOf(math.Copysign(0, -1))
	require.NoError(t, err)
	require.Equal(t, ratio.Fraction{Num: 0, Den: 1}, zero)
	for _, x := range []float64{-1, 1.0 / 3, 1e300, 5e-324} {
		_, err := ratio.FractionOf(x)
		require.Error(t, err, "%v", x)
	}
}

func TestRatioConfigInJSON(t *testing.T) {
	for _, s := range []struct{ text, back string }{
		{`{"prefill":{"min":1,"max":4},"decode":{"min":1,"max":8},"min":"0.25","max":"1/2"}`, `{"prefill":{"min":1,"max":4},"decode":{"min":1,"max":8},"min":"1/4","max":"1/2"}`},
		{`{"prefill":{"min":1,"max":4},"decode":{"min":1,"max":8},"max":"","min":"0"}`, `{"prefill":{"min":1,"max":4},"decode":{"min":1,"max":8},"min":"0"}`},
	} {
		var c ratio.Config
		require.NoError(t, json.Unmarshal([]byte(s.text), &c))
		data, err := json.Marshal(c)
		require.NoError(t, err)
		require.Equal(t, s.back, string(data))
		var again ratio.Config
		require.NoError(t, json.Unmarshal(data, &again))
		require.Equal(t, c, again)
	}
	half := ratio.Fraction{Num: 1, Den: 2}
	require.NoError(t, half.UnmarshalText(nil))
	require.Zero(t, half, "no text is no limit, whatever was there before")
	var c ratio.Config
	require.ErrorContains(t, json.Unmarshal([]byte(`{"min":"2:3"}`), &c), "must be a decimal number")
}
