package keda

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// An hpa is what a HorizontalPodAutoscaler does with one external metric, written down plainly. It counts in
// thousandths, to which KEDA rounds.
type hpa struct {
	tolerance           float64
	spec, status, ready int32
}

func (h hpa) wants(kind MetricType, threshold, value float64) int32 {
	usage, target := math.Round(value*1000), math.Round(threshold*1000)
	keep, ratio, count := h.status, usage/(target*float64(h.status)), usage/target
	if kind == Value {
		ratio = usage / target
		keep, count = h.spec, ratio*float64(h.ready)
	}
	if ratio >= 1-h.tolerance && ratio <= 1+h.tolerance {
		return keep
	}
	return int32(math.Ceil(count))
}

// needed is the least count at which replicas have threshold each.
func needed(threshold, total float64) int32 {
	return int32(math.Ceil(math.Round(total*1000) / math.Round(threshold*1000)))
}

// A fleet has pods that gave a value and pods that did not.
type fleet struct {
	kind             MetricType
	threshold        float64
	values           []float64
	notReady, failed int32
	hpa
}

func (f *fleet) sum() (sum float64) {
	for _, v := range f.values {
		sum += v
	}
	return sum
}

func (f *fleet) missing() int32 { return f.notReady + f.failed }

// reading is what the scraper makes of the fleet.
func (f *fleet) reading() scaling.Reading {
	n := float64(len(f.values)) + float64(f.missing())
	return scaling.Reading{
		Metric: "q", Values: int32(len(f.values)), NotReady: f.notReady, Failed: f.failed,
		Lower: f.sum() / n, Upper: (f.sum() + f.threshold*float64(f.missing())) / n,
	}
}

func (f *fleet) value() (float64, error) {
	value, _, err := metricValue(f.kind, f.threshold, f.reading(), f.spec, f.ready)
	return value, err
}

// coarse reports whether a mean in thousandths cannot tell all counts of replicas apart.
func (f *fleet) coarse() bool { return f.kind == Value && f.threshold*1000 < 3*float64(f.ready) }

func drawFleet(t *rapid.T) *fleet {
	f := &fleet{
		kind:      rapid.SampledFrom([]MetricType{AverageValue, Value}).Draw(t, "kind"),
		threshold: float64(rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(50, 20000), rapid.SampledFrom([]int{900, 1000, 10000})).Draw(t, "thousandths")) / 1000,
		notReady:  rapid.Int32Range(0, 4).Draw(t, "not ready"),
		failed:    rapid.Int32Range(0, 4).Draw(t, "failed"),
	}
	load := rapid.OneOf(
		rapid.Float64Range(0, 3*f.threshold), rapid.Just(f.threshold),
		rapid.Map(rapid.IntRange(0, 40), func(n int) float64 { return float64(n) }),
	)
	f.values = rapid.SliceOfN(load, 1, 12).Draw(t, "values")
	f.ready = int32(len(f.values)) + f.failed
	f.spec = rapid.OneOf(rapid.Just(f.ready+f.notReady), rapid.Int32Range(1, 30)).Draw(t, "spec")
	f.status = f.spec
	f.tolerance = rapid.SampledFrom([]float64{0, 0.1, 0.5}).Draw(t, "tolerance")
	return f
}

// drawAnswer returns a fleet with its value and with what the HorizontalPodAutoscaler makes of it.
func drawAnswer(t *rapid.T, change func(*fleet)) (f *fleet, value float64, answer int32) {
	f = drawFleet(t)
	if change != nil {
		change(f)
	}
	value, err := f.value()
	if err != nil {
		require.True(t, f.coarse(), "%v", err)
		t.Skip("nothing is sent")
	}
	return f, value, f.wants(f.kind, f.threshold, value)
}

func TestValueOfAllKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, value, _ := drawAnswer(t, func(f *fleet) { f.ready, f.notReady, f.failed = int32(len(f.values)), 0, 0 })
		if f.kind == AverageValue {
			require.InEpsilon(t, f.sum()+1, value+1, 1e-12, "the sum")
			return
		}
		require.InDelta(t, f.sum()/float64(len(f.values)), value, 0.001501, "the mean, to the thousandth beside")
	})
}

func TestUpHoldsForEveryCompletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, _, answer := drawAnswer(t, nil)
		if answer <= f.spec {
			return
		}
		total := f.sum()
		for range f.missing() {
			total += rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1000*f.threshold)).Draw(t, "completion")
		}
		require.GreaterOrEqual(t, needed(f.threshold, total), answer)
	})
}

func TestDownHoldsForEveryCompletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, _, answer := drawAnswer(t, nil)
		if answer >= f.spec {
			return
		}
		total := f.sum()
		for range f.missing() {
			total += rapid.OneOf(rapid.Just(f.threshold), rapid.Float64Range(0, f.threshold)).Draw(t, "completion")
		}
		require.LessOrEqual(t, needed(f.threshold, total), answer)
	})
}

// TestMissingPodsNeverScaleUp: the replicas that are known are at or below the threshold, so no answer is above spec.
func TestMissingPodsNeverScaleUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, _, answer := drawAnswer(t, func(f *fleet) {
			for i := range f.values {
				f.values[i] = min(f.values[i], f.threshold)
			}
			f.spec = max(f.spec, int32(len(f.values))) // pods beyond spec have a load too
			f.status = f.spec
		})
		require.LessOrEqual(t, answer, f.spec)
	})
}

func TestAnswerIsBetweenTheExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, _, answer := drawAnswer(t, func(f *fleet) {
			if f.kind == Value {
				f.tolerance = 0 // within it the count is spec's, whatever the ready pods
			}
		})
		least, most := f.sum(), f.sum()+f.threshold*float64(f.missing())
		low, high := f.wants(AverageValue, f.threshold, least), f.wants(AverageValue, f.threshold, most)
		if f.coarse() {
			low, high = min(low, f.spec), max(high, f.spec)
		}
		require.GreaterOrEqual(t, answer, low)
		require.LessOrEqual(t, answer, high)
	})
}

func TestBothMetricTypesComeToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, _, answer := drawAnswer(t, func(f *fleet) { f.kind, f.tolerance = Value, 0 })
		if f.coarse() {
			return
		}
		f.kind = AverageValue
		value, err := f.value()
		require.NoError(t, err)
		require.Equal(t, f.wants(AverageValue, f.threshold, value), answer)
	})
}

// TestStatusBehindSpec: what is under way is not taken back, as the value is reckoned on spec.
func TestStatusBehindSpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, _, answer := drawAnswer(t, func(f *fleet) {
			f.kind, f.tolerance, f.status = AverageValue, 0, rapid.Int32Range(1, 30).Draw(t, "status")
		})
		least, most := needed(f.threshold, f.sum()), needed(f.threshold, f.sum()+f.threshold*float64(f.missing()))
		require.Equal(t, min(max(f.spec, least), most), answer)
	})
}

// known is a fleet with a threshold of 10 whose values are known.
func known(kind MetricType, spec int32, values ...float64) *fleet {
	return &fleet{kind: kind, threshold: 10, values: values, hpa: hpa{spec: spec, status: spec, ready: int32(len(values))}}
}

// TestSeedAverage: 4 replicas with 15 waiting each and a threshold of 10 need 6. The seed sends the average, and the
// HorizontalPodAutoscaler goes to 2.
func TestSeedAverage(t *testing.T) {
	for _, kind := range []MetricType{AverageValue, Value} {
		f := known(kind, 4, 15, 15, 15, 15)
		value, err := f.value()
		require.NoError(t, err)
		require.EqualValues(t, 6, f.wants(kind, 10, value), kind)
	}
	f := known(AverageValue, 4, 15, 15, 15, 15)
	require.EqualValues(t, 2, f.wants(AverageValue, 10, 15), "the seed's")
}

// TestSeedFill: the seed counts a missing pod as 1.5 times the threshold, and goes up for it.
func TestSeedFill(t *testing.T) {
	for _, kind := range []MetricType{AverageValue, Value} {
		for _, tolerance := range []float64{0, 0.1} {
			f := known(kind, 2, 8)
			f.failed, f.ready, f.tolerance = 1, 2, tolerance
			value, err := f.value()
			require.NoError(t, err)
			require.EqualValues(t, 2, f.wants(kind, 10, value))
			require.EqualValues(t, 3, f.wants(AverageValue, 10, 8+1.5*10), "the seed's")
		}
	}
}

// TestSeedCount: the seed divides by ready - missing, in which pods that are not ready are missing ones.
func TestSeedCount(t *testing.T) {
	f := known(AverageValue, 5, 9, 9, 9)
	f.notReady = 2
	value, err := f.value()
	require.NoError(t, err)
	require.InDelta(t, 47, value, 1e-9, "27 and two that have at most 10")
	require.EqualValues(t, 5, f.wants(AverageValue, 10, value))
	f.spec, f.status = 3, 3
	value, err = f.value()
	require.NoError(t, err)
	require.InDelta(t, 30, value, 1e-9)
	f.notReady = 0
	value, err = f.value()
	require.NoError(t, err)
	require.InDelta(t, 27, value, 1e-9)
}

// TestHoldIsHeld: a mean that was rounded up to thousandths went up by a replica, and so did one that a
// HorizontalPodAutoscaler multiplies to 110.00000000000001.
func TestHoldIsHeld(t *testing.T) {
	for _, tt := range []struct {
		threshold        float64
		spec, ready      int32
		notReady, failed int32
	}{
		{0.9, 10, 7, 3, 0},
		{0.9, 10, 7, 3, 7},
		{10, 110, 100, 10, 0},
		{10, 110, 100, 10, 50},
	} {
		for _, kind := range []MetricType{AverageValue, Value} {
			f := &fleet{kind: kind, threshold: tt.threshold, notReady: tt.notReady, failed: tt.failed, hpa: hpa{spec: tt.spec, status: tt.spec, ready: tt.ready}}
			for range tt.ready - tt.failed {
				f.values = append(f.values, tt.threshold)
			}
			if len(f.values) == 0 {
				f.values, f.failed = []float64{0.5}, f.failed-1
				f.notReady++
			}
			value, err := f.value()
			require.NoError(t, err)
			require.Equal(t, tt.spec, f.wants(kind, tt.threshold, value), "%+v %s: %v", tt, kind, value)
		}
	}
}

func TestNoValue(t *testing.T) {
	good := scaling.Reading{Metric: "q", Lower: 5, Upper: 6, Values: 2, Failed: 1}
	for _, tt := range []struct {
		name   string
		change func(*scaling.Reading)
		want   string
	}{
		{"no sample", func(r *scaling.Reading) { r.Values = 0 }, "q: no pod has said anything"},
		{"NaN", func(r *scaling.Reading) { r.Lower = math.NaN() }, "q: no pod has said anything"},
		{"NaN above", func(r *scaling.Reading) { r.Upper = math.NaN() }, "q: no pod has said anything"},
		{"negative", func(r *scaling.Reading) { r.Lower = -1 }, "q: no pod has said anything"},
		{"infinite", func(r *scaling.Reading) { r.Lower, r.Upper = math.Inf(1), math.Inf(1) }, "q: no pod has said anything"},
		{"turned round", func(r *scaling.Reading) { r.Lower = 7 }, "q: no pod has said anything"},
		{"beyond what is sent", func(r *scaling.Reading) { r.Lower, r.Upper = 1e12, 1e12 }, "q: 3e+12: must be at most 1e+12 to be sent"},
	} {
		r := good
		tt.change(&r)
		value, because, err := metricValue(AverageValue, 10, r, 3, 3)
		require.EqualError(t, err, tt.want, tt.name)
		require.Zero(t, value)
		require.Empty(t, because)
	}
	for _, kind := range []MetricType{AverageValue, Value} {
		value, _, err := metricValue(kind, 10, scaling.Reading{Metric: "q"}, 0, 0)
		require.NoError(t, err, "no replica was asked for")
		require.InDelta(t, 10, value, 0)
	}
	value, _, err := metricValue(Value, 10, good, 3, 0)
	require.ErrorContains(t, err, "q: no pod is ready")
	require.Zero(t, value)
	value, _, err = metricValue(AverageValue, 10, good, 3, 0)
	require.NoError(t, err)
	require.InDelta(t, 18, value, 1e-9)

	// 20 replicas at 0.001 are 2.86 thousandths of 7 pods; 3 would be 21 replicas, and 2 would be 14.
	held := scaling.Reading{Metric: "q", Lower: 0, Upper: 0.001, Values: 7, NotReady: 13}
	_, _, err = metricValue(Value, 0.001, held, 20, 7)
	require.ErrorContains(t, err, "too coarse for a threshold of 0.001")
	_, _, err = metricValue(AverageValue, 0.001, held, 20, 7)
	require.NoError(t, err)
}

// TestAThousandthBeside: 30.001 of 3 pods wants a fourth replica at 10, but 10 for each, to thousandths, holds.
func TestAThousandthBeside(t *testing.T) {
	mean := 30.001 / 3
	value, _, err := metricValue(Value, 10, scaling.Reading{Metric: "q", Lower: mean, Upper: mean, Values: 3}, 3, 3)
	require.NoError(t, err)
	require.InDelta(t, 10.001, value, 1e-9)
}

func TestBecause(t *testing.T) {
	r := scaling.Reading{Metric: "q", Lower: 5, Upper: 7.5, Values: 3, Failed: 1}
	_, because, err := metricValue(AverageValue, 10, r, 4, 4)
	require.NoError(t, err)
	require.Equal(t, "q: 30, within 20 and 30 of 4 pods (1 without a value), for 4 replicas at 10", because)
	_, because, err = metricValue(Value, 10, r, 4, 4)
	require.NoError(t, err)
	require.Equal(t, "q: 30, within 20 and 30 of 4 pods (1 without a value), for 4 replicas at 10, divided by 4 ready", because)
}
