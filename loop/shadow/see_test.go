package shadow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/scaling"
)

// shown is what a shadow with so many replicas, of which so many start, sees of a reading.
func shown(t require.TestingT, obs scaling.Observation, count, starting int32, m shadow.Metric) scaling.Observation {
	var last scaling.Observation
	n := count
	s, err := shadow.New(shadow.Config{Go: atOnce, Policies: []shadow.Policy{{Name: "a", Metrics: []shadow.Metric{m}, Policy: script{decide: func(_ time.Time, own scaling.Observation) scaling.Decision {
		last = own
		return to(n, own)
	}}}}})
	require.NoError(t, err)
	now := begin()
	s.Resume([]shadow.Wish{{Name: "a", Replicas: count, Ready: count - starting, At: now, Since: now}})
	s.Look(now, obs)
	return last
}

// TestReadingsOfAnotherFleet are those that a fleet with the shadow's count would have of the same load.
func TestReadingsOfAnotherFleet(t *testing.T) {
	at := begin()
	perPod := shadow.Metric{Name: "m", Fill: 10}
	for name, tt := range map[string]struct {
		metric          shadow.Metric
		real            scaling.Reading
		spec, ready     int32
		count, starting int32
		want            scaling.Reading
	}{
		"half of the fleet has twice as much each": {
			perPod,
			scaling.Reading{Lower: 3, Upper: 3, Values: 4, At: at},
			4, 4, 2, 0,
			scaling.Reading{Lower: 6, Upper: 6, Values: 2, At: at},
		},
		"what it has start is not ready, with the fill above": {
			perPod,
			scaling.Reading{Lower: 3, Upper: 3, Values: 4},
			4, 4, 6, 2,
			scaling.Reading{Lower: 2, Upper: 12.0/6 + 20.0/6, Values: 4, NotReady: 2},
		},
		"without a fill nothing is taken away": {
			shadow.Metric{Name: "m"},
			scaling.Reading{Lower: 3, Upper: 3, Values: 4},
			4, 4, 6, 2,
			scaling.Reading{Lower: 2, Upper: math.Inf(1), Values: 4, NotReady: 2},
		},
		"what starts in truth serves nothing": {
			perPod,
			scaling.Reading{Lower: 2, Upper: 12.0/6 + 20.0/6, Values: 4, NotReady: 2},
			6, 4, 3, 0,
			scaling.Reading{Lower: 4, Upper: 4, Values: 3},
		},
		"nor does it without a fill": {
			shadow.Metric{Name: "m"},
			scaling.Reading{Lower: 2, Upper: math.Inf(1), Values: 4, NotReady: 2},
			6, 4, 3, 0,
			scaling.Reading{Lower: 4, Upper: 4, Values: 3},
		},
		"silent pods may have the fill each": {
			perPod,
			scaling.Reading{Lower: 3, Upper: 8, Values: 2, Failed: 2},
			4, 4, 8, 0,
			scaling.Reading{Lower: 1.5, Upper: 4, Values: 4, Failed: 4},
		},
		"one that is silent is never lost": {
			perPod,
			scaling.Reading{Lower: 9, Upper: 10, Values: 9, Failed: 1},
			10, 10, 3, 0,
			scaling.Reading{Lower: 30, Upper: 100.0 / 3, Values: 2, Failed: 1},
		},
		"with one replica the interval is what is left of it": {
			perPod,
			scaling.Reading{Lower: 3, Upper: 8, Values: 1, Failed: 1},
			2, 2, 1, 0,
			scaling.Reading{Lower: 6, Upper: 16, Values: 1},
		},
		"stuck pods count nothing": {
			perPod,
			scaling.Reading{Lower: 2, Upper: 2, Values: 4, NotReady: 2, Unschedulable: 2, Stuck: 2},
			6, 4, 4, 0,
			scaling.Reading{Lower: 3, Upper: 3, Values: 4},
		},
		"nobody that is ready is nobody to ask": {
			perPod,
			scaling.Reading{Lower: 3, Upper: 3, Values: 4},
			4, 4, 2, 2,
			scaling.Reading{NotReady: 2},
		},
		"a query's mean is of the ready replicas": {
			shadow.Metric{Name: "m", Kind: shadow.Average},
			scaling.Reading{Lower: 3, Upper: 3, Values: 1},
			4, 4, 6, 0,
			scaling.Reading{Lower: 2, Upper: 2, Values: 1},
		},
		"a total is a total": {
			shadow.Metric{Name: "m", Kind: shadow.Fleet},
			scaling.Reading{Lower: 3, Upper: 3, Values: 1},
			4, 4, 6, 2,
			scaling.Reading{Lower: 3, Upper: 3, Values: 1},
		},
		"what is not known stays so": {
			perPod,
			scaling.Reading{Lower: 3, Upper: math.NaN(), Values: 4},
			4, 4, 6, 0,
			scaling.Reading{Lower: 3, Upper: math.NaN(), Values: 4},
		},
		"nor does a huge load overflow": {
			perPod,
			scaling.Reading{Lower: math.MaxFloat64, Upper: math.MaxFloat64, Values: 4},
			4, 4, 2, 0,
			scaling.Reading{Lower: math.MaxFloat64 / 2, Upper: math.MaxFloat64 / 2, Values: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.real.Metric, tt.want.Metric = "m", "m"
			got := shown(t, scaling.Observation{SpecReplicas: tt.spec, ReadyReplicas: tt.ready, Readings: []scaling.Reading{tt.real}}, tt.count, tt.starting, tt.metric)
			require.Equal(t, tt.count, got.SpecReplicas)
			require.Equal(t, tt.count-tt.starting, got.ReadyReplicas)
			require.Equal(t, tt.ready, got.Served)
			r := got.Readings[0]
			if math.IsNaN(tt.want.Upper) {
				require.True(t, math.IsNaN(r.Upper))
				return
			}
			if tt.want.Values > 0 {
				require.InEpsilon(t, tt.want.Lower, r.Lower, 1e-12)
			}
			if !math.IsInf(tt.want.Upper, 1) && tt.want.Upper > 0 {
				require.InEpsilon(t, tt.want.Upper, r.Upper, 1e-12)
				r.Upper = tt.want.Upper
			}
			r.Lower = tt.want.Lower
			require.Equal(t, tt.want, r)
		})
	}
}

// TestTheLoadIsKept: whatever a shadow believes to have, the load of all its replicas is that of the real ones, a reading stays one,
// more replicas never show more each, and a naive sum over pods says the same.
func TestTheLoadIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 20), 1, 12).Draw(t, "values")
		missing := scaling.Missing{NotReady: rapid.Int32Range(0, 5).Draw(t, "booting"), Failed: rapid.Int32Range(0, 5).Draw(t, "failed")}
		fill := rapid.SampledFrom([]float64{0, 5, 10}).Draw(t, "fill")
		ready := int32(len(values)) + missing.Failed
		obs := scaling.Observation{SpecReplicas: ready + missing.NotReady, ReadyReplicas: ready, Readings: []scaling.Reading{scaling.FromPods("m", values, missing, fill)}}
		count := rapid.Int32Range(1, 40).Draw(t, "count")
		starting := rapid.Int32Range(0, count-1).Draw(t, "starting")
		r := shown(t, obs, count, starting, shadow.Metric{Name: "m", Fill: fill}).Readings[0]
		if count == obs.SpecReplicas && missing.NotReady == 0 && starting == 0 {
			require.Equal(t, obs.Readings[0], r, "the real fleet")
			return
		}
		require.True(t, r.Known())
		require.Equal(t, count, r.Values+r.Failed+r.NotReady)
		require.Equal(t, starting, r.NotReady)
		load := 0.0
		for _, v := range values {
			load += v
		}
		require.InDelta(t, load, r.Lower*float64(count), 1e-9*(1+load))
		most := load // every silent pod at the fill, and each that it has start
		if n := missing.Failed + starting; n > 0 && fill == 0 {
			most = math.Inf(1)
		} else {
			most += fill * float64(n)
		}
		if math.IsInf(most, 1) || math.IsInf(r.Upper, 1) {
			require.Equal(t, most, r.Upper*float64(count))
		} else if mean := load / float64(len(values)); mean <= fill { // else FromPods has a wider interval, see there
			require.InDelta(t, most, r.Upper*float64(count), 1e-9*(1+most)+fill*float64(count)*1e-9)
		}
		more := shown(t, obs, count+1, starting, shadow.Metric{Name: "m", Fill: fill}).Readings[0]
		if count+1 != obs.SpecReplicas {
			require.LessOrEqual(t, more.Lower, r.Lower*(1+1e-9))
		}
	})
}

// TestOwnCopies: a shadow that writes into what it was shown changes nothing for anybody.
func TestOwnCopies(t *testing.T) {
	vandal := script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision {
		for i := range obs.Readings {
			obs.Readings[i] = scaling.Reading{}
		}
		for i := range obs.Histograms {
			clear(obs.Histograms[i].Counts)
			clear(obs.Histograms[i].Bounds)
		}
		return scaling.HoldAt(obs.SpecReplicas)
	}}
	var got scaling.Observation
	s := watch(t, shadow.Config{Go: atOnce, Policies: []shadow.Policy{
		{Name: "vandal", Policy: vandal},
		{Name: "next", Policy: script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision { got = obs; return to(4, obs) }}},
	}})
	obs := seen(4, 4, 3)
	obs.Histograms = []scaling.Histogram{{Metric: "h", Bounds: []float64{1, 2}, Counts: []float64{3, 4, 5}, Sum: 9}}
	s.Look(begin(), obs)
	want := seen(4, 4, 3)
	want.Histograms = []scaling.Histogram{{Metric: "h", Bounds: []float64{1, 2}, Counts: []float64{3, 4, 5}, Sum: 9}}
	require.Equal(t, want, obs)
	require.Equal(t, want, got)
}
