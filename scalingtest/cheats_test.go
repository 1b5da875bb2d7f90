package scalingtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// An overdraw takes its two targets to 10 each although their sum is bounded by 8. Its Total says nothing of it.
type overdraw struct{ none }

type none struct{}

func (none) Applied(time.Time, []int32, []int32) {}
func (none) MarshalJSON() ([]byte, error)        { return []byte(`{}`), nil }
func (none) UnmarshalJSON([]byte) error          { return nil }

func (overdraw) Decide(_ time.Time, obs scaling.GroupObservation) (d scaling.GroupDecision) {
	o := scaling.Observation{Readings: obs.Readings}
	total := int32(0)
	for _, t := range obs.Targets {
		total = scaling.Plus(total, t.SpecReplicas)
		x := scaling.HoldAt(t.SpecReplicas)
		if r := o.Reading("queue"); t.Missing || !r.Known() || r.Lower <= 10 {
			x.To(t.SpecReplicas, "Stays", "")
		} else {
			x.To(10, "Crowded", "")
		}
		d.Targets = append(d.Targets, x)
	}
	d.Total = scaling.UnknownAt(total, "SaysNothing", "")
	return d
}

func overdrawn() scalingtest.Options {
	b := scaling.Bounds{Min: 0, Max: 10}
	return scalingtest.Options{
		Metrics: []scalingtest.Metric{{Name: "queue", Low: 4, High: 10}}, Bounds: scaling.Bounds{Min: 2, Max: 8}, Memory: 5 * time.Minute,
		Targets: []scalingtest.Target{{Name: "a", Bounds: b}, {Name: "b", Bounds: b}},
	}
}

// TestRegressionTheSumOfAGroupIsBounded: only its Total was looked at, which may say anything.
func TestRegressionTheSumOfAGroupIsBounded(t *testing.T) {
	setChecks(t, 500)
	failed, _ := record(t, func(r *recorder) {
		scalingtest.TryGroup(r, "WithinBounds", func() scaling.Group { return overdraw{} }, overdrawn())
	})
	require.True(t, failed, "20 replicas where 8 are the bound are not found")
}

// An exchanger exchanges a replica between its targets whenever there is a broken reading.
type exchanger struct{ none }

func (exchanger) Decide(_ time.Time, obs scaling.GroupObservation) (d scaling.GroupDecision) {
	total := int32(0)
	for i, t := range obs.Targets {
		total = scaling.Plus(total, t.SpecReplicas)
		x := scaling.HoldAt(t.SpecReplicas)
		n := t.SpecReplicas
		other := obs.Targets[1-i]
		both := !t.Missing && !other.Missing
		if len(obs.Readings) > 0 && !obs.Readings[0].Known() && both {
			if t.Name == "a" && n < 10 && other.SpecReplicas > 0 && other.SpecReplicas <= 10 && n >= 0 {
				n++
			} else if t.Name == "b" && n > 0 && n <= 10 && other.SpecReplicas < 10 && other.SpecReplicas >= 0 {
				n--
			}
		}
		x.To(n, "Exchange", "")
		d.Targets = append(d.Targets, x)
	}
	d.Total = scaling.HoldAt(total)
	d.Total.To(total, "Exchange", "")
	return d
}

// TestRegressionAnExchangeWithoutDataIsFound: where policies act without data, only the sum was compared with what they do without readings.
func TestRegressionAnExchangeWithoutDataIsFound(t *testing.T) {
	setChecks(t, 500)
	b := scaling.Bounds{Min: 0, Max: 10}
	for _, acts := range []bool{false, true} {
		o := scalingtest.Options{
			Metrics: []scalingtest.Metric{{Name: "queue", Low: 4, High: 10}}, Memory: 5 * time.Minute,
			Targets:         []scalingtest.Target{{Name: "a", Bounds: b}, {Name: "b", Bounds: b}},
			ActsWithoutData: acts,
		}
		failed, _ := record(t, func(r *recorder) {
			scalingtest.TryGroup(r, "NoData", func() scaling.Group { return exchanger{} }, o)
		})
		require.True(t, failed, "writes of two targets without any data; ActsWithoutData %v, and without readings it does nothing", acts)
	}
}

// A diary notes one digit of each tick, for ever.
type diary struct{}

type diaryState struct {
	Outcomes string `json:"outcomes"`
}

func (diary) Kind() scaling.Kind { return scaling.Kind{Name: "diary", Version: 1} }
func (diary) Decide(s diaryState, _ time.Time, obs scaling.Observation) (diaryState, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(obs.SpecReplicas, "Stays", "")
	digit := "0"
	if obs.Reading("queue").Known() {
		digit = "1"
	}
	s.Outcomes += digit
	return s, d
}
func (diary) Applied(s diaryState, _ time.Time, _, _ int32) diaryState { return s }

// TestRegressionAStateOfDigitsGrows: digits one after another counted as one number, however many there were.
func TestRegressionAStateOfDigitsGrows(t *testing.T) {
	setChecks(t, 20)
	failed, _ := record(t, func(r *recorder) {
		scalingtest.Try(r, "BoundedState", func() scaling.Policy { return scaling.New(diary{}) },
			scalingtest.Options{Metrics: []scalingtest.Metric{{Name: "queue", Low: 4, High: 10}}, Memory: 5 * time.Minute})
	})
	require.True(t, failed, "a state that grows by a byte each tick is not found")
}

// A booter adds a replica because a pod gives no value: it boots. With each replica that it adds, one boots: it runs away.
type booter struct {
	counts func(r scaling.Reading) int32 // the pods because of which it does so; nil for all that are not ready
}

type booterState struct {
	Seen scaling.Stamp `json:"seen,omitzero"`
}

func (booter) Kind() scaling.Kind { return scaling.Kind{Name: "booter", Version: 1} }
func (b booter) Decide(s booterState, now time.Time, obs scaling.Observation) (booterState, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	at := scaling.StampOf(now)
	back := s.Seen.Set && at.Milli < s.Seen.Milli
	s.Seen = at
	n, r := obs.SpecReplicas, obs.Reading("queue")
	pods := r.NotReady
	if b.counts != nil {
		pods = b.counts(r)
	}
	if r.Known() && pods > 0 && !back {
		n = scaling.Plus(n, 1)
	}
	d.To(n, "Booting", "")
	d.Clamp(scaling.Bounds{Min: 1, Max: 8})
	return s, d
}
func (booter) Applied(s booterState, _ time.Time, _, _ int32) booterState { return s }

func booterOptions() scalingtest.Options {
	return scalingtest.Options{Metrics: []scalingtest.Metric{{Name: "queue", Low: 4, High: 10}}, Bounds: scaling.Bounds{Min: 1, Max: 8}, Memory: 5 * time.Minute}
}

// TestRegressionPodsThatBootCauseNoUp: of what is missing only pods that do not answer were drawn, none that are not ready.
func TestRegressionPodsThatBootCauseNoUp(t *testing.T) {
	setChecks(t, 1000)
	failed, _ := record(t, func(r *recorder) {
		scalingtest.Try(r, "MissingNeverActs", func() scaling.Policy { return scaling.New(booter{}) }, booterOptions())
	})
	require.True(t, failed, "a policy that scales up because pods give no value is not found")
}

// TestRegressionPodsThatCannotStartCauseNoUp: of the pods that are not ready none was drawn that fits on no node or crashes. A policy
// that adds a replica for each of these, which is then another one, goes to its highest count.
func TestRegressionPodsThatCannotStartCauseNoUp(t *testing.T) {
	setChecks(t, 1000)
	for name, counts := range map[string]func(r scaling.Reading) int32{
		"fit on no node": func(r scaling.Reading) int32 { return r.Unschedulable },
		"crash":          func(r scaling.Reading) int32 { return r.Crashing },
		"only boot":      func(r scaling.Reading) int32 { return r.NotReady - r.Unschedulable - r.Crashing },
	} {
		failed, _ := record(t, func(r *recorder) {
			scalingtest.Try(r, "MissingNeverActs", func() scaling.Policy { return scaling.New(booter{counts}) }, booterOptions())
		})
		require.True(t, failed, "a policy that scales up because pods %s is not found", name)
	}
}

// A startled policy adds a replica when queue is not known; kv has no influence on a Down.
type startled struct{}

func (startled) Kind() scaling.Kind { return scaling.Kind{Name: "startled", Version: 1} }

func (startled) Decide(s struct{}, _ time.Time, obs scaling.Observation) (struct{}, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	if n := obs.SpecReplicas; obs.Reading("queue").Known() || n >= 8 {
		d.To(n, "Stays", "")
	} else {
		d.To(n+1, "Startled", "")
	}
	d.Clamp(scaling.Bounds{Min: 1, Max: 8})
	return s, d
}

func (startled) Applied(s struct{}, _ time.Time, _, _ int32) struct{} { return s }

// TestRegressionThePrintedTestHasWhatIsUpOnly: without it a Down that is allowed failed when it was played again.
func TestRegressionThePrintedTestHasWhatIsUpOnly(t *testing.T) {
	setChecks(t, 500)
	o := scalingtest.Options{
		Metrics: []scalingtest.Metric{{Name: "kv", Low: 4, High: 10, UpOnly: true}, {Name: "queue", Low: 4, High: 10}},
		Bounds:  scaling.Bounds{Min: 1, Max: 8}, Memory: 5 * time.Minute,
	}
	failed, log := record(t, func(r *recorder) {
		scalingtest.Try(r, "MissingNeverActs", func() scaling.Policy { return scaling.New(startled{}) }, o)
	})
	require.True(t, failed)
	require.Contains(t, log, `Metrics: []scalingtest.Metric{{Name: "kv", Low: 4, High: 10, UpOnly: true}}`)
}

// An alarmed policy adds a replica when no pod answers. A late one does so only if there was a value before.
type alarmed struct{ late bool }

type alarmedState struct {
	Known bool          `json:"known"`
	Seen  scaling.Stamp `json:"seen,omitzero"`
}

func (alarmed) Kind() scaling.Kind { return scaling.Kind{Name: "alarmed", Version: 1} }

func (p alarmed) Decide(s alarmedState, now time.Time, obs scaling.Observation) (alarmedState, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	at := scaling.StampOf(now)
	back := s.Seen.Set && at.Milli < s.Seen.Milli
	s.Seen = at
	n, r := obs.SpecReplicas, obs.Reading("queue")
	if r.Values == 0 && r.Failed > 0 && !back && (s.Known || !p.late) {
		n = scaling.Plus(n, 1)
	}
	s.Known = s.Known || r.Known()
	d.To(n, "Alarmed", "")
	d.Clamp(scaling.Bounds{Min: 1, Max: 8})
	return s, d
}

func (alarmed) Applied(s alarmedState, _ time.Time, _, _ int32) alarmedState { return s }

// TestRegressionPodsOfWhichNoneAnswersCauseNoUp: at least one of them answered, or the reading had no count of pods.
func TestRegressionPodsOfWhichNoneAnswersCauseNoUp(t *testing.T) {
	setChecks(t, 500)
	for _, row := range []struct {
		property string
		late     bool
	}{{"MissingNeverActs", true}, {"NoData", false}} {
		failed, log := record(t, func(r *recorder) {
			scalingtest.Try(r, row.property, func() scaling.Policy { return scaling.New(alarmed{row.late}) }, booterOptions())
		})
		require.True(t, failed, "a policy that scales up because no pod answers passes %s", row.property)
		require.Contains(t, log, "without a value")
	}
}

// A scribbler smooths its readings in the slice that it was given, one decision later, when that is its caller's again.
type scribbler struct{ kept []scaling.Reading }

func (*scribbler) Kind() scaling.Kind { return scaling.Kind{Name: "scribbler", Version: 1} }

func (p *scribbler) Decide(s struct{}, _ time.Time, obs scaling.Observation) (struct{}, scaling.Decision) {
	for i := range p.kept {
		p.kept[i].Lower = 0
	}
	p.kept = obs.Readings
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(obs.SpecReplicas, "Stays", "")
	return s, d
}

func (*scribbler) Applied(s struct{}, _ time.Time, _, _ int32) struct{} { return s }

// TestRegressionInputThatIsChangedLaterIsFound: only what a policy changed while it decided was found. A caller that uses one slice
// for all rounds would lose its readings.
func TestRegressionInputThatIsChangedLaterIsFound(t *testing.T) {
	setChecks(t, 100)
	failed, log := record(t, func(r *recorder) {
		scalingtest.Try(r, "Repeatable", func() scaling.Policy { return scaling.New(&scribbler{}) }, booterOptions())
	})
	require.True(t, failed, "a policy that changes what it was given at the decision before is not found")
	require.Contains(t, log, "the readings that it was given were changed")
}
