package scaling_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

func TestBoundsBelowZeroAndOfOneCount(t *testing.T) {
	require.EqualError(t, scaling.Bounds{Min: -1, Max: 3}.Validate("bounds"), "bounds.min: -1: must not be negative")
	require.NoError(t, scaling.Bounds{Min: 3, Max: 3}.Validate("bounds"))
}

// TestHistogramKnown: what a histogram must be to be counted on.
func TestHistogramKnown(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, row := range map[string]struct {
		h    scaling.Histogram
		want bool
	}{
		"two bounds":            {scaling.Histogram{Bounds: []float64{1, 2}, Counts: []float64{3, 0, 4}, Sum: 5}, true},
		"bounds below zero":     {scaling.Histogram{Bounds: []float64{-1, 0}, Counts: []float64{0, 0, 0}}, true},
		"no bound":              {scaling.Histogram{Counts: []float64{3}, Sum: 5}, true},
		"the largest numbers":   {scaling.Histogram{Bounds: []float64{math.MaxFloat64}, Counts: []float64{math.MaxFloat64, 0}, Sum: math.MaxFloat64}, true},
		"nothing":               {scaling.Histogram{}, false},
		"too few counts":        {scaling.Histogram{Bounds: []float64{1}, Counts: []float64{3}}, false},
		"too many counts":       {scaling.Histogram{Bounds: []float64{1}, Counts: []float64{3, 3, 3}}, false},
		"a sum below zero":      {scaling.Histogram{Bounds: []float64{1}, Counts: []float64{3, 3}, Sum: -1}, false},
		"a sum that is none":    {scaling.Histogram{Bounds: []float64{1}, Counts: []float64{3, 3}, Sum: nan}, false},
		"an infinite sum":       {scaling.Histogram{Bounds: []float64{1}, Counts: []float64{3, 3}, Sum: inf}, false},
		"a bound that is none":  {scaling.Histogram{Bounds: []float64{nan}, Counts: []float64{3, 3}}, false},
		"an infinite bound":     {scaling.Histogram{Bounds: []float64{inf}, Counts: []float64{3, 3}}, false},
		"a bound below all":     {scaling.Histogram{Bounds: []float64{-inf}, Counts: []float64{3, 3}}, false},
		"a bound twice":         {scaling.Histogram{Bounds: []float64{1, 1}, Counts: []float64{3, 3, 3}}, false},
		"bounds that fall":      {scaling.Histogram{Bounds: []float64{2, 1}, Counts: []float64{3, 3, 3}}, false},
		"a count below zero":    {scaling.Histogram{Bounds: []float64{1}, Counts: []float64{3, -1}}, false},
		"a count that is none":  {scaling.Histogram{Bounds: []float64{1}, Counts: []float64{nan, 3}}, false},
		"an infinite count":     {scaling.Histogram{Bounds: []float64{1}, Counts: []float64{3, inf}}, false},
		"half a count":          {scaling.Histogram{Bounds: []float64{1}, Counts: []float64{0.5, 0.5}}, true},
		"the last bound is bad": {scaling.Histogram{Bounds: []float64{1, 3, 2}, Counts: []float64{1, 1, 1, 1}}, false},
	} {
		require.Equal(t, row.want, row.h.Known(), name)
	}
}

// TestHistogramOver: a bound of a bucket divides exactly; within a bucket its count is in doubt.
func TestHistogramOver(t *testing.T) {
	h := scaling.Histogram{Bounds: []float64{1, 2, 4}, Counts: []float64{1, 10, 100, 1000}}
	require.InDelta(t, 1111, h.Total(), 0)
	for bound, want := range map[float64][2]float64{
		0.5: {1110, 1111}, 1: {1110, 1110}, 1.5: {1100, 1110}, 2: {1100, 1100}, 3: {1000, 1100}, 4: {1000, 1000}, 5: {0, 1000},
	} {
		low, high := h.Over(bound)
		require.Equal(t, want, [2]float64{low, high}, "%v", bound)
	}
}

// TestTimetableWithoutConfigurationIsUnknown: with what the base says beside it, and with no change of its own open.
func TestTimetableWithoutConfigurationIsUnknown(t *testing.T) {
	base := scaling.New(script{})
	p, err := scaling.Floor(base, noTimetable{}, scaling.Bounds{Min: 1, Max: 8})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(`{"kind":"floor","version":1,"state":{"base":{"kind":"script","version":2,"state":{"decided":0,"applied":null}},"lift":{"from":3,"to":5}}}`), p))
	d := p.Decide(start, want(3, 4))
	require.Equal(t, "Unknown at 3\n  NotConfigured     3 -> 3    timetable\nconsidered\n  Asked             3 -> 4    want=4\n", d.Explain())
	p.Applied(start, 3, 5)
	require.Contains(t, save(t, base), "[3,5]", "it is somebody else's change")
}

type noTimetable struct{}

func (noTimetable) At(time.Time) scaling.Slot {
	return scaling.Slot{Because: scaling.Step{Code: scaling.NotConfigured}}
}

// TestALiftIsReportedOnce: the same change for the second time is somebody else's; so is one after another state was read.
func TestALiftIsReportedOnce(t *testing.T) {
	base := scaling.New(script{})
	p, err := scaling.Floor(base, timetable(5), scaling.Bounds{Min: 1, Max: 8})
	require.NoError(t, err)
	fresh := save(t, p)
	d := p.Decide(start, want(3, 3))
	require.EqualValues(t, 5, d.Replicas)
	p.Applied(start, 3, 5)
	require.Contains(t, save(t, base), `"applied":null`)
	p.Applied(start, 3, 5)
	require.Contains(t, save(t, base), "[3,5]")

	p.Decide(start, want(3, 3))
	p.Applied(start, 7, 6)
	require.Contains(t, save(t, base), "7,6", "so is another change while one is open")
	require.NoError(t, json.Unmarshal([]byte(fresh), p))
	p.Applied(start, 3, 5)
	require.Contains(t, save(t, base), "[3,5]")
}

// TestOneStuckPodCountsZero: it takes from the upper end what a pod that is coming would not.
func TestOneStuckPodCountsZero(t *testing.T) {
	r := scaling.FromPods("q", []float64{3, 6}, scaling.Missing{NotReady: 1, Stuck: 1}, 10)
	require.Equal(t, [2]float64{3, 3}, [2]float64{r.Lower, r.Upper})
}

// TestTheMeanIsWithinTheReading: however it is rounded, where what is missing may be as high as the fill.
func TestTheMeanIsWithinTheReading(t *testing.T) {
	for i := range 2000 {
		values := []float64{float64(i) * 0.1, float64(i) * 0.7, 0.3}
		mean := scaling.FromPods("q", values, scaling.Missing{}, 1).Lower
		for lost := range int32(4) {
			r := scaling.FromPods("q", values, scaling.Missing{Failed: lost}, mean)
			require.GreaterOrEqual(t, r.Upper, mean, "%v with %d missing", values, lost)
		}
	}
}

// TestGroupOfOneIgnoresReportsOfOthers: of none, or of several.
func TestGroupOfOneIgnoresReportsOfOthers(t *testing.T) {
	g := scaling.GroupOf(scaling.New(script{}))
	for _, n := range [][2][]int32{{{1}, nil}, {nil, {1}}, {{1, 2}, {1}}, {{1}, {1, 2}}} {
		g.Applied(start, n[0], n[1])
	}
	data, err := g.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(data), `"applied":null`)
}

// TestNoteStuckCountsFailedPods: of all that the reading is of.
func TestNoteStuckCountsFailedPods(t *testing.T) {
	d := scaling.HoldAt(9)
	d.NoteStuck(&scaling.Reading{Metric: "q", Values: 2, NotReady: 3, Failed: 4, Stuck: 1})
	require.Contains(t, d.Explain(), "stuck=1 <= pods=9")
}

func TestExactlyNoiseIsNoDifference(t *testing.T) {
	require.False(t, scaling.Exceeds(1e9, 1e9-1))
	require.True(t, scaling.Exceeds(1e9, 1e9-1.5))
}

// TestReadingsOfOneMetricKeepTheWorst: of every count that says what is missing.
func TestReadingsOfOneMetricKeepTheWorst(t *testing.T) {
	a := scaling.Reading{Metric: "a", Lower: 1, Upper: 2, Values: 5, NotReady: 1, Failed: 6, Reused: 3, Unschedulable: 9, Crashing: 1, Stuck: 7}
	b := scaling.Reading{Metric: "a", Lower: 1, Upper: 2, Values: 4, NotReady: 2, Failed: 5, Reused: 4, Unschedulable: 8, Crashing: 2, Stuck: 6}
	worst := scaling.Reading{Metric: "a", Lower: 1, Upper: 2, Values: 4, NotReady: 2, Failed: 6, Reused: 4, Unschedulable: 9, Crashing: 2, Stuck: 7}
	for _, o := range []scaling.Observation{{Readings: []scaling.Reading{a, b}}, {Readings: []scaling.Reading{b, a}}} {
		require.Equal(t, worst, o.Reading("a"))
	}
	require.Equal(t, scaling.Reading{Metric: "a", Lower: 2, Upper: 2, Values: 1}, scaling.Exactly("a", 2))
}

// TestChangesOfOneSecondAreOne: in the same direction.
func TestChangesOfOneSecondAreOne(t *testing.T) {
	l := scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 4, Period: time.Minute}}}}
	var c scaling.Changes
	l.Record(&c, start, 3, 5)
	l.Record(&c, start, 5, 4)
	l.Record(&c, start, 4, 7)
	l.Record(&c, start, 7, 7)
	require.Equal(t, []int32{-1, 5}, []int32{c.Applied[0].Delta, c.Applied[1].Delta})
	require.Len(t, c.Applied, 2)
	c = scaling.Changes{}
	l.Record(&c, start, 3, 5)
	l.Record(&c, start, 5, 6)
	l.Record(&c, start.Add(time.Second), 6, 7)
	l.Record(&c, start.Add(time.Second), 7, 8)
	require.Len(t, c.Applied, 2)
	require.Equal(t, []int32{3, 2}, []int32{c.Applied[0].Delta, c.Applied[1].Delta})
}

// TestLimitsOfRateLimits: a percentage of nothing is one replica, what the first of several limits forbids is forbidden
// where the least counts, and a scale-down that is limited says when it can go on.
func TestLimitsOfRateLimits(t *testing.T) {
	minute := time.Minute
	limited := func(l scaling.RateLimits) scaling.Policy {
		p, err := scaling.RateLimited(scaling.New(script{}), l)
		require.NoError(t, err)
		return p
	}
	scalingtest.Steps(t, limited(scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Percent: 400, Period: minute}}}}), 0,
		asks(0, 9, "Up UpLimited 1"))
	least := scaling.RateLimit{Select: scaling.SelectMin, Limits: []scaling.Limit{{Replicas: 1, Period: minute}, {Replicas: 3, Period: minute}}}
	scalingtest.Steps(t, limited(scaling.RateLimits{Up: least}), 2, asks(0, 9, "Up UpLimited 3"), asks(1, 9, "Hold UpLimited 3"))
	p := limited(scaling.RateLimits{Down: least})
	p.Applied(start, 6, 5)
	d := p.Decide(start.Add(time.Second), want(5, 1))
	require.Equal(t, start.Add(minute), d.Next.UTC(), d.Explain())
}

// TestStabilizedReportsToItsBase, as every composition does.
func TestStabilizedReportsToItsBase(t *testing.T) {
	base := scaling.New(script{})
	p, err := scaling.Stabilized(base, scaling.Stabilization{Up: time.Minute})
	require.NoError(t, err)
	p.Applied(start, 3, 4)
	require.Contains(t, save(t, base), "[3,4]")
}

// TestLimitsOfAStamp: 2^53 milliseconds from 1970 on either side, and null takes a time away.
func TestLimitsOfAStamp(t *testing.T) {
	s := scaling.StampOf(start)
	for text, ok := range map[string]bool{"9007199254740992": true, "-9007199254740992": true, "9007199254740993": false, "-9007199254740993": false} {
		require.Equal(t, ok, s.UnmarshalJSON([]byte(text)) == nil, text)
	}
	require.NoError(t, s.UnmarshalJSON([]byte("null")))
	require.Equal(t, scaling.Stamp{}, s)
}

// TestDigitsOfNumbers: six, and twelve where six show no difference, and no more; infinities by name.
func TestDigitsOfNumbers(t *testing.T) {
	require.Equal(t, "a=0.123457", scaling.Step{Code: "One a", Numbers: [4]float64{0.123456789}}.Because())
	require.Equal(t, "a=1.00000123457 > b=1.00000123", scaling.Step{Code: "Two a > b", Numbers: [4]float64{1.00000123456789, 1.00000123}}.Because())
	require.Equal(t, "a=1.000001 > b=1.0000005", scaling.Step{Code: "Two a > b", Numbers: [4]float64{1.000001, 1.0000005}}.Because())
	data, err := json.Marshal(scaling.Step{Code: "One a", Numbers: [4]float64{math.Inf(-1)}})
	require.NoError(t, err)
	require.Contains(t, string(data), `"a":"-Inf"`)
}

// TestRegressionInequalityOfLargeNumbers: six digits of a number beside all digits of a whole one read as the opposite.
func TestRegressionInequalityOfLargeNumbers(t *testing.T) {
	for _, row := range []struct {
		op   string
		a, b float64
		want string
	}{
		{">", 1234563.5, 1234563, "a=1234563.5 > b=1234563"},
		{">", 1320000.4, 1320000, "a=1320000.4 > b=1320000"},
		{"<", 2345678.5, 2345679, "a=2345678.5 < b=2345679"},
		{"<", 999999.75, 1000000, "a=999999.75 < b=1000000"},
		{"<", 12345678.9, 1e9, "a=1.23457e+07 < b=1000000000"},
		{">", 2345678.5, 1234567.5, "a=2.34568e+06 > b=1.23457e+06"},
		{">", math.Inf(1), 1320000.4, "a=+Inf > b=1.32e+06"},
	} {
		s := scaling.Step{Code: scaling.Code("Is a " + row.op + " b"), Numbers: [4]float64{row.a, row.b}}
		require.Equal(t, row.want, s.Because())
	}
}

// TestHoldsOfEveryOperator: up to noise, and exactly where both sides are whole.
func TestHoldsOfEveryOperator(t *testing.T) {
	const big = 1e9
	for _, row := range []struct {
		op   string
		a, b float64
		want bool
	}{
		{">=", 2, 1, true},
		{">=", 1, 1, true},
		{">=", 1, 2, false},
		{">=", big, big + 0.5, true},
		{"<", 1, 2, true},
		{"<", 1, 1, false},
		{"<", 2, 1, false},
		{"<", big, big + 1, true},
		{"<", big + 0.5, big + 1, false},
		{"<", big, big + 0.5, false},
		{">", big + 1, big, true},
		{">", big + 1, big + 0.5, false},
		{">", big + 0.5, big, false},
		{"<=", 1, 2, true},
		{"<=", 2, 1, false},
		{"==", 1, 1, true},
		{"==", 1, 2, false},
		{"==", 2, 1, false},
	} {
		require.Equal(t, row.want, scaling.Step{Code: scaling.Code("Is a " + row.op + " b"), Numbers: [4]float64{row.a, row.b}}.Holds(), "%+v", row)
	}
	two := scaling.Step{Code: "Both a > b, c == d", Numbers: [4]float64{1, 2, 3, 3}}
	require.False(t, two.Holds(), "one that is false makes all false")
}

// TestAStateIsAllOfItsText: null is no fresh start, and what follows a state is damage.
func TestAStateIsAllOfItsText(t *testing.T) {
	type state struct{ A int }
	got, err := scaling.DecodeState[state]([]byte(" {\"A\":3}\n"))
	require.NoError(t, err)
	require.Equal(t, state{3}, got)
	for text, want := range map[string]string{
		"null": "null: must be a state", " null\n": "null: must be a state",
		`{"A":3}{"A":4}`: "must be followed by nothing", `{"A":3}]`: "must be followed by nothing", "": "EOF",
	} {
		got, err := scaling.DecodeState[state]([]byte(text))
		require.EqualError(t, err, want, text)
		require.Zero(t, got)
	}
}

// TestRegressionDurationsThatLookEqual: a step of two durations that differ by less than a millisecond showed the same one
// twice, as in "elapsed=1m < cooldown=1m".
func TestRegressionDurationsThatLookEqual(t *testing.T) {
	because := func(a, b float64) string {
		return scaling.Step{Code: "Cooldown elapsed:s < cooldown:s", Numbers: [4]float64{a, b}}.Because()
	}
	require.Equal(t, "elapsed=59.999999s < cooldown=1m", because(59.999999, 60))
	require.Equal(t, "elapsed=59.9996s < cooldown=1m0.0004s", because(59.9996, 60.0004))
	require.Equal(t, "elapsed=59.999s < cooldown=1m", because(59.9994, 60), "milliseconds where they show a difference")
	require.Equal(t, "elapsed=1m < cooldown=1m", because(60, 60))
}
