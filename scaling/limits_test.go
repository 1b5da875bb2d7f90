package scaling_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

func TestBoundsWithAMaximumOfOne(t *testing.T) {
	require.EqualError(t, scaling.Bounds{Min: 3, Max: 1}.Validate("bounds"), "bounds.max: 1: must not be below min 3")
}

// TestALimitHoldsInEverySlidingPeriod: times were rounded down to the second, so that eight replicas came within 14.001 s, and half a
// second of difference in all times changed what was decided.
func TestALimitHoldsInEverySlidingPeriod(t *testing.T) {
	limits := scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 4, Period: 15 * time.Second}}}}
	for shift := time.Duration(0); shift < time.Second; shift += 100 * time.Millisecond {
		for after, most := range map[time.Duration]int32{14001 * time.Millisecond: 5, 14999 * time.Millisecond: 5, 15 * time.Second: 9} {
			p, spec := must(scaling.RateLimited(scaling.New(script{}), limits)), int32(1)
			for _, now := range []time.Time{start.Add(shift), start.Add(shift + after)} {
				if d := p.Decide(now, want(spec, 100)); d.Acts() {
					p.Applied(now, spec, d.Replicas)
					spec = d.Replicas
				}
			}
			require.Equal(t, most, spec, "%s after %s", after, shift)
		}
	}
}

// TestWarningsOfTheUnknown: where nothing is known, what another line warns of is still worth saying.
func TestWarningsOfTheUnknown(t *testing.T) {
	other := scaling.UnknownAt(3, plain, "other")
	other.Warn(plain, "careful")
	d := scaling.UnknownAt(3, plain, "one")
	d.ConsiderAll(&other)
	require.Equal(t, "Unknown at 3\n  Plain             3 -> 3    one\nconsidered\n  Plain             3 -> 3    other\nwarnings\n  Plain             3 -> 3    careful\n", d.Explain())
	d = scaling.HoldAt(3)
	d.Consider(3, plain, "first")
	d.Consider(3, plain, "second")
	require.Equal(t, "Hold at 3\nconsidered\n  Plain             3 -> 3    first\n  Plain             3 -> 3    second\n", d.Explain(), "one heading")
}

// TestNoBytesAreNoState: what was refused stays so.
func TestNoBytesAreNoState(t *testing.T) {
	p := scaling.New(script{})
	require.Error(t, p.UnmarshalJSON(nil))
	d := p.Decide(start, want(3, 4))
	require.Equal(t, scaling.StateRefused, d.Code())
}

// TestKindsOfCompositions are promises to stored states.
func TestKindsOfCompositions(t *testing.T) {
	base := func() scaling.Policy { return scaling.New(script{}) }
	for kind, p := range map[string]scaling.Policy{
		"highest":     must(scaling.Highest(scaling.Member{Name: "a", Policy: base()})),
		"stabilized":  must(scaling.Stabilized(base(), scaling.Stabilization{Up: time.Minute})),
		"ratelimited": must(scaling.RateLimited(base(), scaling.RateLimits{})),
		"floor":       must(scaling.Floor(base(), timetable(1), scaling.Bounds{Min: 1, Max: 2})),
		"bounded":     must(scaling.Bounded(base(), scaling.Bounds{Min: 1, Max: 2})),
	} {
		require.Contains(t, save(t, p), fmt.Sprintf(`{"kind":"%s","version":1,`, kind))
		p.Applied(start, 1, 2)
		require.Contains(t, save(t, p), `"applied":[1,2]`, "%s reports to its base", kind)
	}
}

// TestHighestIsAskedAgainWhenAnyMemberIs: the first Next of all.
func TestHighestIsAskedAgainWhenAnyMemberIs(t *testing.T) {
	early := must(scaling.Floor(scaling.New(script{}), timetable(1), scaling.Bounds{Min: 1, Max: 20})) // in a minute
	p := must(scaling.Highest(scaling.Member{Name: "early", Policy: early}, scaling.Member{Name: "late", Policy: scaling.New(script{})}))
	d := p.Decide(start, want(3, 9))
	require.Equal(t, start.Add(time.Minute), d.Next, d.Explain())
	p = must(scaling.Highest(scaling.Member{Name: "a", Policy: scaling.New(script{})}, scaling.Member{Name: "early", Policy: must(scaling.Floor(scaling.New(script{}), timetable(1), scaling.Bounds{Min: 1, Max: 20}))}))
	d = p.Decide(start, want(3, 9))
	require.Equal(t, start.Add(time.Minute), d.Next, d.Explain())
}

// TestHistogramOfAMetric: one, and only one.
func TestHistogramOfAMetric(t *testing.T) {
	o := scaling.Observation{Histograms: []scaling.Histogram{{Metric: "a", Sum: 1}, {Metric: "b", Sum: 2}, {Metric: "b", Sum: 3}}}
	require.Same(t, &o.Histograms[0], o.Histogram("a"))
	require.Nil(t, o.Histogram("b"))
	require.Nil(t, o.Histogram("c"))
}

// TestAReadingWithoutASampleKeepsItsCounts: what is missing is still told.
func TestAReadingWithoutASampleKeepsItsCounts(t *testing.T) {
	r := scaling.Reading{Metric: "a", Failed: 3}
	o := scaling.Observation{Readings: []scaling.Reading{r}}
	require.Equal(t, r, o.Reading("a"))
}

// TestMemoryOfRateLimits: in order of time whatever the clock does, no longer than the longest period, and refused beyond
// the times that there are.
func TestMemoryOfRateLimits(t *testing.T) {
	l := scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 4, Period: time.Minute}}}}
	var c scaling.Changes
	l.Record(&c, start, 3, 5)
	l.Record(&c, start.Add(time.Minute-time.Second), 5, 6)
	l.Record(&c, start.Add(time.Minute), 6, 7)
	require.Len(t, c.Applied, 2)
	l.Record(&c, start.Add(-time.Hour), 7, 8)
	require.NoError(t, c.Validate())
	require.Len(t, c.Applied, 2, "at one time after the step back")
	for at, ok := range map[int64]bool{1 << 53: true, -1 << 53: true, 1<<53 + 1: false, -1<<53 - 1: false} {
		require.Equal(t, ok, scaling.Changes{Applied: []scaling.Change{{At: at, Delta: 1}}}.Validate() == nil, "%d", at)
	}
	d := scaling.HoldAt(200)
	d.To(999, plain, "")
	percent := scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Percent: 100, Period: time.Minute}}}}
	percent.Apply(&scaling.Changes{}, start, &d)
	require.EqualValues(t, 400, d.Replicas)
}

// TestTheShortestWindowsLookBack: also those of a nanosecond hold what is found at the start, for that time.
func TestTheShortestWindowsLookBack(t *testing.T) {
	for asked, s := range map[int32]scaling.Stabilization{9: {Up: 1}, 1: {Down: 1}} {
		d := scaling.HoldAt(4)
		d.To(asked, plain, "")
		s.Apply(&scaling.Recommendations{}, start, &d)
		require.EqualValues(t, 4, d.Replicas, d.Explain())
	}
}

// TestNumbersBeyondTheFourthAreZero, and of numbers that are very large the first digits are told.
func TestNumbersBeyondTheFourthAreZero(t *testing.T) {
	five := scaling.Step{Code: "Five a, b, c, d, e", Numbers: [4]float64{1, 2, 3, 4}}
	require.Equal(t, "a=1, b=2, c=3, d=4, e=0", five.Because())
	one := func(code scaling.Code, v float64) string {
		return scaling.Step{Code: code, Numbers: [4]float64{v}}.Because()
	}
	require.Equal(t, "a=1e+15", one("One a", 1e15))
	require.Equal(t, "a=999999999999999", one("One a", 1e15-1))
	require.Equal(t, "a=9000000000s", one("One a:s", 9e9))
	require.Equal(t, "a=9000000000.12s", one("One a:s", 9e9+0.123456))
	require.Equal(t, "a=NaNs", one("One a:s", math.NaN()))
}

// TestAtMostEightReadingsAreNamed where no metric has a sample.
func TestAtMostEightReadingsAreNamed(t *testing.T) {
	var o scaling.Observation
	for i := range 12 {
		o.Readings = append(o.Readings, scaling.Exactly(fmt.Sprintf("m%02d", i), 1))
	}
	d := scaling.HoldAt(3)
	d.WarnUnmatched(&o, func(string) bool { return false })
	require.Len(t, d.Steps(), 8)
}

// TestBoundsComeFirstInCompositions: a count outside of base's bounds was held for a window, or brought back one by one.
func TestBoundsComeFirstInCompositions(t *testing.T) {
	bounds := scaling.Bounds{Min: 2, Max: 8}
	bounded := func() scaling.Policy { return must(scaling.Bounded(scaling.New(script{}), bounds)) }
	one := scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 1, Period: time.Minute}}}
	for name, p := range map[string]scaling.Policy{
		"stabilized":  must(scaling.Stabilized(bounded(), scaling.Stabilization{Up: time.Minute, Down: 5 * time.Minute})),
		"ratelimited": must(scaling.RateLimited(bounded(), scaling.RateLimits{Up: scaling.RateLimit{Select: scaling.SelectDisabled}, Down: one})),
	} {
		for _, spec := range []int32{1, 20} {
			last := bounds.Min
			for _, asks := range []int32{0, 1, 2, 5, 7, 8, 9, 19, 20, 30} {
				d := p.Decide(start, want(spec, asks))
				require.True(t, d.Replicas >= bounds.Min && d.Replicas <= bounds.Max, "%s from %d: %s", name, spec, d.Explain())
				require.GreaterOrEqual(t, d.Replicas, last, "%s from %d: who asks for more gets no less", name, spec)
				last = d.Replicas
			}
		}
		p.Decide(start, want(8, 7))
		d := p.Decide(start, want(4, 20))
		require.Less(t, d.Replicas, bounds.Max, "%s: within the bounds its own rules hold: %s", name, d.Explain())
	}
}
