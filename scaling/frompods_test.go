package scaling_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

func ExampleFromPods() {
	// Three pods answered, one of them with nonsense; one is starting, one did not answer in time.
	r := scaling.FromPods("queue", []float64{4, 8, math.NaN()}, scaling.Missing{NotReady: 1, Failed: 1}, 10)
	fmt.Printf("%g to %g of %d values, %d not ready, %d failed\n", r.Lower, r.Upper, r.Values, r.NotReady, r.Failed)
	// Output:
	// 2.4 to 8.4 of 2 values, 1 not ready, 2 failed
}

func TestFromPods(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, row := range map[string]struct {
		values           []float64
		notReady, failed int32
		fill             float64
		want             scaling.Reading // without the name
	}{
		"all answered":           {[]float64{2, 4}, 0, 0, 10, scaling.Reading{Lower: 3, Upper: 3, Values: 2}},
		"one is missing":         {[]float64{2, 4}, 1, 0, 9, scaling.Reading{Lower: 2, Upper: 5, Values: 2, NotReady: 1}},
		"no fill is no limit":    {[]float64{2, 4}, 0, 1, 0, scaling.Reading{Lower: 2, Upper: inf, Values: 2, Failed: 1}},
		"nor is an infinite one": {[]float64{2, 4}, 0, 1, inf, scaling.Reading{Lower: 2, Upper: inf, Values: 2, Failed: 1}},
		"no fill is needed":      {[]float64{2, 4}, 0, 0, 0, scaling.Reading{Lower: 3, Upper: 3, Values: 2}},
		"a fill below the mean":  {[]float64{8, 8}, 0, 2, 2, scaling.Reading{Lower: 4, Upper: 5, Values: 2, Failed: 2}},
		"nonsense is missing":    {[]float64{6, nan, inf, -inf, -1}, 0, 1, 12, scaling.Reading{Lower: 1, Upper: 11, Values: 1, Failed: 5}},
		"no pod":                 {nil, 0, 0, 10, scaling.Reading{}},
		"no value":               {[]float64{nan}, 2, 1, 10, scaling.Reading{NotReady: 2, Failed: 2}},
		"a negative count":       {[]float64{1}, -1, 0, 10, scaling.Reading{NotReady: -1}},
		"another":                {[]float64{1}, 0, -1, 10, scaling.Reading{Failed: -1}},
		"a negative fill":        {[]float64{1}, 0, 0, -1, scaling.Reading{}},
		"a fill that is none":    {[]float64{1}, 0, 0, nan, scaling.Reading{}},
		"a sum that overflows":   {[]float64{math.MaxFloat64, math.MaxFloat64}, 0, 0, 1, scaling.Reading{}},
		"the least number":       {[]float64{5e-324, 0}, 0, 0, 1, scaling.Reading{Values: 2}},
		"counts that saturate":   {[]float64{1, nan}, math.MaxInt32, math.MaxInt32, 1, scaling.Reading{Lower: 1 / 4294967296.0, Upper: 1, Values: 1, NotReady: math.MaxInt32, Failed: math.MaxInt32}},
	} {
		row.want.Metric = "queue"
		got := scaling.FromPods("queue", row.values, scaling.Missing{NotReady: row.notReady, Failed: row.failed}, row.fill)
		require.Equal(t, row.want, got, name)
		require.Equal(t, row.want.Values > 0, got.Known(), name)
	}
}

// TestStuckPodsCountZero: pods that were never ready and are not expected take nothing away from Lower, and add nothing
// to Upper; the others still count the fill, and a count that contradicts itself is no reading.
func TestStuckPodsCountZero(t *testing.T) {
	of := scaling.Missing{NotReady: 6, Unschedulable: 4, Crashing: 2, Stuck: 6}
	require.Equal(t, scaling.Reading{Metric: "q", Lower: 1, Upper: 1, Values: 2, NotReady: 6, Unschedulable: 4, Crashing: 2, Stuck: 6},
		scaling.FromPods("q", []float64{3, 5}, of, 10))
	require.InDelta(t, 1, scaling.FromPods("q", []float64{3, 5}, of, 0).Upper, 0, "no fill, and none is needed")
	of.Stuck, of.Failed = 4, 2
	r := scaling.FromPods("q", []float64{3, 5}, of, 10)
	require.Equal(t, []float64{0.8, 4.8}, []float64{r.Lower, r.Upper})
	require.True(t, math.IsInf(scaling.FromPods("q", []float64{3, 5}, of, 0).Upper, 1))
	require.InDelta(t, 0.8, scaling.FromPods("q", []float64{5, 3, math.NaN()}, scaling.Missing{NotReady: 7, Stuck: 7}, 0.0000001).Lower, 1e-12)
	for _, wrong := range []scaling.Missing{{Stuck: 1}, {Unschedulable: 1}, {Crashing: 1}, {NotReady: 1, Stuck: -1}, {NotReady: 2, Crashing: 3}} {
		require.False(t, scaling.FromPods("q", []float64{3, 5}, wrong, 10).Known(), "%+v", wrong)
	}
}

// TestNoteStuck: a reading of which pods are stuck is named with how many, one without or of no value is not.
func TestNoteStuck(t *testing.T) {
	d := scaling.HoldAt(3)
	d.NoteStuck(&scaling.Reading{Metric: "q", Values: 2, NotReady: 1})
	d.NoteStuck(&scaling.Reading{Metric: "q", NotReady: 1, Stuck: 1})
	require.Empty(t, d.Steps())
	d.NoteStuck(&scaling.Reading{Metric: "q", Values: 2, NotReady: 1, Unschedulable: 1, Stuck: 1})
	require.Equal(t, "Hold at 3\n  Stuck             3 -> 3    q stuck=1 <= pods=3, unschedulable=1, crashing=0\n", d.Explain())
}

func TestStartDeadline(t *testing.T) {
	for coldStart, want := range map[time.Duration]time.Duration{
		0: 5 * time.Minute, 150 * time.Second: 5 * time.Minute, 151 * time.Second: 302 * time.Second,
		time.Hour: 2 * time.Hour, math.MaxInt64: math.MaxInt64 - 1, math.MinInt64: 5 * time.Minute,
	} {
		require.Equal(t, want, scaling.StartDeadline(coldStart), coldStart)
	}
}

// TestFromPodsHoldsEveryCompletion: whatever the missing pods have, up to the fill, the mean of all is in the interval;
// and the order of the pods changes no bit of it.
func TestFromPodsHoldsEveryCompletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fill := rapid.Float64Range(0.1, 100).Draw(t, "fill")
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 20).Draw(t, "values")
		missing := rapid.SliceOfN(rapid.Float64Range(0, fill), 0, 5).Draw(t, "missing")
		notReady := rapid.IntRange(0, len(missing)).Draw(t, "not ready")
		of := scaling.Missing{NotReady: int32(notReady), Failed: int32(len(missing) - notReady)}
		if n := rapid.IntRange(0, notReady).Draw(t, "stuck"); n > 0 { // they have nothing
			of.Stuck, of.Unschedulable = int32(n), int32(rapid.IntRange(0, notReady).Draw(t, "unschedulable"))
			clear(missing[:n])
		}
		r := scaling.FromPods("queue", values, of, fill)
		require.True(t, r.Known())
		all := scaling.FromPods("queue", append(append([]float64{}, values...), missing...), scaling.Missing{}, fill)
		require.False(t, scaling.Exceeds(r.Lower, all.Lower), "%v %v", r, all)
		require.False(t, scaling.Exceeds(all.Upper, r.Upper), "%v %v", r, all)
		require.Equal(t, r, scaling.FromPods("queue", rapid.Permutation(values).Draw(t, "order"), of, fill))
	})
}

// TestAnObservationIsJSON: also where an end is no number in JSON, as the upper one of a pod that gave no value and has no fill.
func TestAnObservationIsJSON(t *testing.T) {
	obs := scaling.Observation{SpecReplicas: 2, Readings: []scaling.Reading{
		scaling.FromPods("m", []float64{1}, scaling.Missing{Failed: 1}, 0),
		{Metric: "n", Lower: math.Inf(-1), Upper: 0.1, Values: 3, At: start.UTC(), Stuck: 2},
	}}
	data, err := json.Marshal(obs)
	require.NoError(t, err)
	require.Contains(t, string(data), `{"metric":"m","lower":0.5,"upper":"+Inf","values":1,"notReady":0,"failed":1,`)
	var back scaling.Observation
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, obs, back)

	r := scaling.Reading{Lower: 1, Upper: 2}
	require.NoError(t, json.Unmarshal([]byte(`{"upper": null, "values": 3}`), &r))
	require.Equal(t, scaling.Reading{Lower: 1, Upper: 2, Values: 3}, r)
	require.ErrorContains(t, json.Unmarshal([]byte(`{"upper": "much"}`), &r), `upper: much: must be a number, "+Inf"`)
	require.ErrorContains(t, json.Unmarshal([]byte(`{"lower": [1]}`), &r), "lower: [1]: must be a number")
}
