package scalingtest_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// busy asks for one more replica where more was counted than ten a replica since the last answer, with or without a fault.
type busy struct{ fault string }

type busyState struct {
	Total float64 `json:"total"`
	Set   bool    `json:"set"`
}

func (busy) Kind() scaling.Kind { return scaling.Kind{Name: "busy", Version: 1} }

func (b busy) Decide(s busyState, _ time.Time, obs scaling.Observation) (busyState, scaling.Decision) {
	h := obs.Histogram("requests")
	if b.fault == "takes the first" && len(obs.Histograms) > 0 {
		h = &obs.Histograms[0]
	}
	if h == nil || !h.Known() || h.Failed > 0 && b.fault != "takes silence for nothing" {
		return busyState{}, scaling.UnknownAt(obs.SpecReplicas, "NoSample", "requests")
	}
	if b.fault == "sorts what it is given" {
		h.Counts[0] = 0
	}
	total := h.Total()
	if math.IsInf(total, 0) { // counts that do not add up could not be stored
		return busyState{}, scaling.UnknownAt(obs.SpecReplicas, "NoSample", "requests")
	}
	came := total - s.Total
	known := s.Set && came >= 0 && came <= math.MaxInt32
	s = busyState{Total: total, Set: true}
	d := scaling.HoldAt(obs.SpecReplicas)
	if known && came > 10*float64(obs.SpecReplicas) {
		d.To(scaling.Plus(obs.SpecReplicas, 1), "Busy", "")
	} else {
		d.To(obs.SpecReplicas, "Enough", "")
	}
	d.Clamp(scaling.Bounds{Min: 1, Max: 8})
	return s, d
}

func (busy) Applied(s busyState, _ time.Time, _, _ int32) busyState { return s }

func counting() scalingtest.Options {
	return scalingtest.Options{
		Metrics:    []scalingtest.Metric{{Name: "of nobody", High: 1}},
		Histograms: []scalingtest.Histogram{{Name: "requests", Bounds: []float64{1, 10}, Low: 10, High: 100}, {Name: "other", Bounds: []float64{5}, High: 3}},
		Bounds:     scaling.Bounds{Min: 1, Max: 8}, Ticks: 30, Memory: 5 * time.Minute,
		Skip: []string{"ClockBack"}, // it remembers no time
	}
}

// TestHistograms: a policy that looks at what was counted has the properties, and one with a fault has not.
func TestHistograms(t *testing.T) {
	scalingtest.Run(t, func() scaling.Policy { return scaling.New(busy{}) }, counting())
}

// TestCountsThatDoNotAddUp: finite counts may come to infinity, which no state can store; a fresh seed drew such.
func TestCountsThatDoNotAddUp(t *testing.T) {
	o := counting()
	count := func(n float64) []scalingtest.Counting {
		return []scalingtest.Counting{{Metric: "requests", Bounds: []float64{1, 10}, Counts: []float64{n, n / 1e6, 1}}}
	}
	scalingtest.Replay(t, func() scaling.Policy { return scaling.New(busy{}) }, o, "NeverPanics", scalingtest.Episode{
		Spec: 3,
		Ticks: []scalingtest.Tick{
			{After: 15 * time.Second, Counted: count(1)},
			{After: 15 * time.Second, Counted: count(math.MaxFloat64), Restart: true, Refuse: true},
			{After: 15 * time.Second, Counted: count(0), Restart: true},
		},
	})
}

// TestHistogramsOfTicks come to what the ticks have counted, in the order of the ticks.
func TestHistogramsOfTicks(t *testing.T) {
	var seen []scaling.Histogram
	watch := looker(func(obs scaling.Observation) { seen = append(seen, obs.Histograms...) })
	count := func(n float64) scalingtest.Counting {
		return scalingtest.Counting{Metric: "requests", Bounds: []float64{1, 10}, Counts: []float64{n, 0, 2}}
	}
	silent, anew, broken, old := count(9), count(4), count(1), count(0)
	silent.Failed, anew.Anew, broken.Broken, old.Age = 2, true, true, time.Minute
	var ticks []scalingtest.Tick
	for _, c := range []scalingtest.Counting{count(10), silent, count(1), broken, old, anew} {
		ticks = append(ticks, scalingtest.Tick{After: 15 * time.Second, Counted: []scalingtest.Counting{c}})
	}
	scalingtest.Replay(t, func() scaling.Policy { return scaling.New(watch) }, scalingtest.Options{ActsWithoutData: true}, "WithinBounds", scalingtest.Episode{Spec: 1, Ticks: ticks})
	var totals []float64
	for i := range seen {
		if i == 3 {
			require.False(t, seen[i].Known())
			continue
		}
		require.True(t, seen[i].Known())
		totals = append(totals, seen[i].Total())
	}
	require.Equal(t, []float64{12, 17, 26, 31, 6}, totals)
	require.EqualValues(t, 2, seen[1].Failed)
	require.Equal(t, scalingtest.Start().Add(15*time.Second), seen[4].At)
	require.InDelta(t, 10*0.5+2*20, seen[0].Sum, 0)
}

// looker does nothing but look.
type looker func(scaling.Observation)

func (looker) Kind() scaling.Kind { return scaling.Kind{Name: "looker", Version: 1} }

func (w looker) Decide(s struct{}, _ time.Time, obs scaling.Observation) (struct{}, scaling.Decision) {
	w(obs)
	return s, scaling.HoldAt(obs.SpecReplicas)
}

func (looker) Applied(s struct{}, _ time.Time, _, _ int32) struct{} { return s }

// TestFaultsOnHistograms are found, and printed as a test with what was counted.
func TestFaultsOnHistograms(t *testing.T) {
	setChecks(t, 500)
	setFlag(t, "rapid.seed", "1")
	for fault, property := range map[string]string{"takes the first": "Order", "sorts what it is given": "Repeatable"} {
		failed, log := record(t, func(r *recorder) {
			scalingtest.Try(r, property, func() scaling.Policy { return scaling.New(busy{fault}) }, counting())
		})
		require.True(t, failed, fault)
		require.Contains(t, log, `Counted: []scalingtest.Counting{{Metric: "`, fault)
	}
}
