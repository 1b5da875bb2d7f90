package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// after40min runs 30 min of a load of which that share of the first tokens is late from the 20th minute on, and ten of a quarter of it.
// It returns the count at the end and why. queue makes the reading of the waiting requests at each time.
func after40min(t *testing.T, late float64, queue func(at time.Duration) (lower, upper float64)) (int32, string) {
	t.Helper()
	try := someTrial()
	try.Hold = 60
	p := scaling.New(build(t, config(), found(try)))
	spec, served, missed, why := int32(20), 0.0, 0.0, ""
	for at := time.Duration(0); at <= 40*time.Minute; at += 15 * time.Second {
		came := 240.0
		if at > 30*time.Minute {
			came = 60
		}
		served += came
		if at > 20*time.Minute && at <= 30*time.Minute {
			missed += came * late
		}
		obs := observation(spec, 0, 20, served, 1500, 200)
		w := &obs.Readings[0]
		require.Equal(t, Waiting, w.Metric)
		w.Lower, w.Upper = queue(at)
		firsts := obs.Histogram(TTFT)
		firsts.Bounds, firsts.Counts = []float64{slo().TTFT.Seconds(), 1e6}, []float64{served - missed, missed, 0}
		d := p.Decide(start().Add(at), obs)
		if d.Replicas != spec {
			p.Applied(start().Add(at), spec, d.Replicas)
		}
		spec, why = d.Replicas, d.Explain()
	}
	return spec, why
}

// TestRegressionAnUnknownQueueKeepsWhatAGuardWould: while it is not known whether requests wait, the guard does not grow. It was lower
// afterwards than it would have been, and replicas went that would have stayed.
func TestRegressionAnUnknownQueueKeepsWhatAGuardWould(t *testing.T) {
	none := func(time.Duration) (float64, float64) { return 0, 0 }
	unknown := func(at time.Duration) (float64, float64) {
		if at > 20*time.Minute && at <= 30*time.Minute {
			return 0, 5
		}
		return 0, 0
	}
	usual, _ := after40min(t, 0, none)
	known, why := after40min(t, 0.1, none)
	require.Greater(t, known, usual, why)
	unsure, why := after40min(t, 0.1, unknown)
	require.GreaterOrEqual(t, unsure, known, why)
	require.Contains(t, why, Unsure.String())
	same, _ := after40min(t, 0, unknown)
	require.Equal(t, usual, same, "where nothing is missed, an unknown queue keeps nothing")
}

// TestRegressionMoreMayHaveComeThanIsCertain: where it is not known how many waited at the begin of a window, only as many came as are
// certain. A fresh seed of MissingNeverActs found that fewer replicas were kept for these than for what had come.
func TestRegressionMoreMayHaveComeThanIsCertain(t *testing.T) {
	at := func(came, queue, prompt, capacity float64) int32 {
		try := someTrial()
		try.Hold, try.Capacity, try.Fleet = 0, capacity*try.Capacity, capacity*try.Fleet
		p := scaling.New(build(t, config(), found(try)))
		var d scaling.Decision
		for i := range 60 {
			obs := observation(20, 0, 20, came*float64(i), prompt, 200)
			if i == 55 {
				obs.Readings[0].Upper = queue
			}
			d = p.Decide(start().Add(time.Duration(i)*15*time.Second), obs)
		}
		return d.Replicas
	}
	for came := 100.0; came <= 300; came += 10 {
		require.GreaterOrEqual(t, at(came, 8, 1500, 1), at(came, 0, 1500, 1), "%v requests between scrapes", came)
		require.GreaterOrEqual(t, at(came, 8, 6000, 50), at(came, 0, 6000, 50), "%v requests between scrapes, whose prompts need the replicas", came)
	}
}

// TestRegressionAnUnknownQueueRaisesNoGuard: one without an upper end was taken for none, so that a guard grew that would not have grown
// with an upper end. A fresh seed of MissingNeverActs found it.
func TestRegressionAnUnknownQueueRaisesNoGuard(t *testing.T) {
	for _, row := range []struct {
		upper  float64
		failed int32
		grows  bool
	}{{0, 0, true}, {1, 1, true}, {2, 1, false}, {math.Inf(1), 1, false}} {
		scaler := build(t, config(), found(someTrial()))
		var s State
		for i := range 40 {
			obs := observation(20, 0, 20, 60*float64(i), 1500, 200)
			obs.Readings[0] = scaling.Reading{Metric: Waiting, Upper: row.upper, Values: 20 - row.failed, Failed: row.failed}
			firsts := obs.Histogram(TTFT)
			firsts.Bounds[0], firsts.Counts = slo().TTFT.Seconds(), []float64{0, 60 * float64(i), 0}
			s, _ = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), obs)
		}
		require.Equal(t, row.grows, s.Guard > 0, "up to %v wait at each pod", row.upper)
	}
}
