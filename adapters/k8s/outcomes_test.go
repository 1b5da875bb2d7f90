package k8s_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scaling"
)

// blindAt is a round on a target of so many replicas of which nothing is known.
func blindAt(replicas, least, most int32) *k8s.Outcome {
	o := outcome(3, noSample)
	o.Decision = scaling.UnknownAt(replicas, noSample, waiting)
	o.Scale.Replicas, o.Bounds = replicas, scaling.Bounds{Min: least, Max: most}
	o.Observed.Readings[0] = scaling.Reading{Metric: waiting}
	return o
}

// At 0 replicas, as its bounds allow, a target is ready though there is no pod to ask, and in no other case.
func TestAtZeroIsReady(t *testing.T) {
	for name, row := range map[string]struct {
		outcome *k8s.Outcome
		ready   metav1.ConditionStatus
		reason  string
	}{
		"as the bounds allow":   {blindAt(0, 0, 8), metav1.ConditionTrue, k8s.ReasonAtZero},
		"with replicas":         {blindAt(1, 0, 8), metav1.ConditionFalse, "NoSample"},
		"below the minimum":     {blindAt(0, 1, 8), metav1.ConditionFalse, "NoSample"},
		"without bounds":        {blindAt(0, 0, 0), metav1.ConditionFalse, "NoSample"},
		"one is the most":       {blindAt(0, 0, 1), metav1.ConditionTrue, k8s.ReasonAtZero},
		"the state is refused":  {with(blindAt(0, 0, 8), func(o *k8s.Outcome) { o.StateErr = &scaling.StateError{Err: scaling.ErrNewerState} }), metav1.ConditionFalse, k8s.ReasonStateRefused},
		"nothing is decided":    {with(blindAt(0, 0, 8), func(o *k8s.Outcome) { o.Decided = false }), metav1.ConditionFalse, k8s.ReasonNotDecided},
		"it is decided to hold": {with(outcome(3, between, 4, 10), func(o *k8s.Outcome) { o.Scale.Replicas, o.Bounds.Min = 0, 0 }), metav1.ConditionTrue, k8s.ReasonReady},
	} {
		c := conditionsOf(row.outcome)[k8s.ConditionReady]
		require.Equal(t, [2]string{string(row.ready), row.reason}, [2]string{string(c.Status), c.Reason}, name)
	}
	o := blindAt(0, 0, 8)
	require.Equal(t, "no replicas, as minReplicas allows: there is no pod to ask", conditionsOf(o)[k8s.ConditionReady].Message)
	require.Equal(t, metav1.ConditionUnknown, conditionsOf(o)[k8s.ConditionMetricsAvailable].Status)
	require.Equal(t, k8s.ReasonAtZero, conditionsOf(o)[k8s.ConditionMetricsAvailable].Reason)
}

// What is odd about a round that is ready is said, the first of these first.
func TestWhatReadySays(t *testing.T) {
	late := func(o *k8s.Outcome) { o.Late = 1500 * time.Microsecond }
	refused := func(o *k8s.Outcome) { o.ConfigErr = errors.New("bad") }
	paused := func(o *k8s.Outcome) { o.Paused = true }
	of := func(changes ...func(*k8s.Outcome)) metav1.Condition {
		o := outcome(3, between, 4, 10)
		for _, change := range changes {
			change(o)
		}
		return conditionsOf(o)[k8s.ConditionReady]
	}
	require.Equal(t, [2]string{k8s.ReasonReady, "deciding and able to act"}, [2]string{of().Reason, of().Message})
	require.Equal(t, [2]string{k8s.ReasonConfigRefused, "the last good configuration is in force: bad"}, [2]string{of(refused).Reason, of(refused).Message})
	require.Equal(t, k8s.ReasonLate, of(late, refused).Reason)
	require.Equal(t, k8s.ReasonLate, of(func(o *k8s.Outcome) { o.Late = 1 }).Reason, "as short as can be")
	require.Equal(t, "the round began 2ms after it was due: the slow rounds of this namespace take its share", of(late).Message)
	require.Equal(t, [2]string{k8s.ReasonPaused, "paused: decides, and writes no replicas"}, [2]string{of(paused, late, refused).Reason, of(paused, late).Message})
}

// Metrics are not available where the round ended before the pods were asked, whatever ended it.
func TestWhetherPodsWereAsked(t *testing.T) {
	for name, change := range map[string]func(*k8s.Outcome){
		"the target was not read": func(o *k8s.Outcome) { o.ScaleErr = errors.New("no") },
		"it was not observed":     func(o *k8s.Outcome) { o.ObserveErr = errors.New("no") },
		"there was no round":      func(o *k8s.Outcome) { o.At = time.Time{} },
		"there is no fleet":       func(o *k8s.Outcome) { o.Observed.Fleets = nil },
	} {
		c := k8s.MetricsAvailable(with(outcome(3, between, 4, 10), change))
		require.Equal(t, [2]string{"Unknown", k8s.ReasonNotObserved}, [2]string{string(c.Status), c.Reason}, name)
	}
	require.Equal(t, metav1.ConditionTrue, k8s.MetricsAvailable(outcome(3, between, 4, 10)).Status)
	none := k8s.MetricsAvailable(with(outcome(3, between, 4, 10), func(o *k8s.Outcome) { o.Observed.Readings = nil }))
	require.Equal(t, [2]string{"True", k8s.ReasonNoMetrics}, [2]string{string(none.Status), none.Reason})
}

// The end of a cooldown is a whole second, and not before it is over.
func TestCooldownUntil(t *testing.T) {
	const cooldown scaling.Code = "Cooldown elapsed < cooldown"
	for _, row := range []struct {
		elapsed, of float64
		left        time.Duration
		waits       bool
	}{
		{0, 60, 60 * time.Second, true},
		{59, 60, time.Second, true},
		{58.5, 60, 2 * time.Second, true},
		{59.9999, 60, 0, false},
		{60, 60, 0, false},
	} {
		o := outcome(3, between, 4, 10)
		d := scaling.HoldAt(3)
		d.To(3, cooldown, "", row.elapsed, row.of)
		o.Decision = d
		until, waits := o.CooldownUntil()
		require.Equal(t, row.waits, waits, row.elapsed)
		require.Equal(t, start.Add(row.left), until, row.elapsed)
	}
	_, waits := outcome(4, aboveHigh, 12, 10).CooldownUntil()
	require.False(t, waits)
}

// A foreign code that is no reason of a condition is told as its verdict.
func TestCodesAsReasons(t *testing.T) {
	for code, want := range map[scaling.Code]string{
		"AboveHigh": "AboveHigh", "azAZ": "azAZ", "a_09": "a_09", "A1": "A1", "1A": "Up", "_a": "Up", "a-b": "Up", "a`": "Up", "a{": "Up", "A@": "Up", "A[": "Up", "a/": "Up", "a:": "Up",
	} {
		c := conditionsOf(outcome(4, code))[k8s.ConditionScalingActive]
		require.Equal(t, want, c.Reason, code)
	}
}

// The series of a target say what its last round came to.
func TestSeriesOfATarget(t *testing.T) {
	m := k8s.NewMetrics()
	value := func(name string) []float64 { return valuesOf(t, m, name) }
	o := outcome(4, aboveHigh, 12, 10)
	m.Observe(o, time.Second)
	require.Equal(t, []float64{3}, value("inferscale_current_replicas"))
	require.Equal(t, []float64{4}, value("inferscale_desired_replicas"))
	require.Equal(t, []float64{3}, value("inferscale_ready_replicas"))
	require.Equal(t, []float64{1}, value("inferscale_min_replicas"))
	require.Equal(t, []float64{8}, value("inferscale_max_replicas"))
	for _, name := range []string{"inferscale_state_refused", "inferscale_config_refused", "inferscale_dry_run", "inferscale_paused"} {
		require.Equal(t, []float64{0}, value(name), name)
	}
	require.Zero(t, testutil.CollectAndCount(m, "inferscale_write_conflicts_total"), "none has happened")
	o.StateErr, o.ConfigErr, o.DryRun, o.Paused, o.Conflicts = &scaling.StateError{Err: scaling.ErrNewerState}, errors.New("bad"), true, true, 2
	o.Scale.Replicas = 5
	m.Observe(o, time.Second)
	for _, name := range []string{"inferscale_state_refused", "inferscale_config_refused", "inferscale_dry_run", "inferscale_paused"} {
		require.Equal(t, []float64{1}, value(name), name)
	}
	require.Equal(t, []float64{5}, value("inferscale_current_replicas"))
	require.Equal(t, []float64{2}, value("inferscale_write_conflicts_total"))

	// A store that is away refuses no state, and a target that was not read keeps its count.
	o.StateErr, o.ScaleErr, o.Scale.Replicas = fmt.Errorf("load state: %w", errors.New("away")), errors.New("away"), 9
	m.Observe(o, time.Second)
	require.Equal(t, []float64{0}, value("inferscale_state_refused"))
	require.Equal(t, []float64{5}, value("inferscale_current_replicas"))
	unread := k8s.NewMetrics()
	unread.Observe(&k8s.Outcome{Target: target}, time.Second)
	for _, name := range []string{"inferscale_current_replicas", "inferscale_ready_replicas", "inferscale_min_replicas"} {
		require.Zero(t, testutil.CollectAndCount(unread, name), name)
	}
}

// valuesOf returns the values of a metric.
func valuesOf(t *testing.T, m *k8s.Metrics, name string) (values []float64) {
	t.Helper()
	registry := newRegistry(t, m)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, s := range f.GetMetric() {
			if f.GetName() == name {
				values = append(values, s.GetGauge().GetValue()+s.GetCounter().GetValue())
			}
		}
	}
	return values
}

// The log has each decision, loudly if it acts, and one line for a round that is not as it should be.
func TestLoopLogs(t *testing.T) {
	var text bytes.Buffer
	c, clock, o := newCluster(3), &clock{now: start}, &observer{value: 50}
	l := newLoop(t, c, o, clock, func(config *k8s.LoopConfig) {
		config.Logger = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelInfo}))
		config.LeaveAtZero = false
	})
	for range 3 {
		tick(t, l)
		clock.pass()
	}
	require.Contains(t, text.String(), `level=INFO msg=decided target="Deployment default/llama" verdict=Up from=3 to=4`)
	require.NotContains(t, text.String(), "WARN")
	require.NotContains(t, text.String(), "verdict=Hold", "which is for debugging")
	text.Reset()
	o.err = errors.New("the pods are away")
	_, err := l.Tick(context.Background())
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(text.String(), "level=WARN"))
	require.Contains(t, text.String(), `level=WARN msg="round with errors" target="Deployment default/llama" error="the pods are away"`)
}

// 0 as the period of events is 10 minutes.
func TestEventsRepeatAfterTenMinutes(t *testing.T) {
	r := record.NewFakeRecorder(10)
	e := k8s.NewEvents(r, 0)
	for _, at := range []time.Duration{0, 10*time.Minute - 1, 10 * time.Minute} {
		o := outcome(3, between, 4, 10)
		o.At = start.Add(at)
		e.Say(nil, o)
	}
	require.Len(t, told(r), 2)
}

func newRegistry(t *testing.T, m *k8s.Metrics) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(m))
	return registry
}

// with is an outcome after a change.
func with(o *k8s.Outcome, change func(*k8s.Outcome)) *k8s.Outcome {
	change(o)
	return o
}

// An observer that leaves a target out has not observed.
func TestAnObserverThatLeavesATargetOut(t *testing.T) {
	l := newLoop(t, newCluster(3), silent{}, &clock{now: start}, nil)
	o, err := l.Tick(context.Background())
	require.ErrorContains(t, err, "the observer did not answer for every target")
	require.Equal(t, k8s.ReasonNotObserved, conditionsOf(&o)[k8s.ConditionReady].Reason)
	require.False(t, o.Decided)
}

type silent struct{}

func (silent) Observe(context.Context, []k8s.Scale) (k8s.Observed, error) { return k8s.Observed{}, nil }

// What was written is told though the rest of the answer cannot be read, and 0 can be written.
func TestWhatWasWritten(t *testing.T) {
	c := newCluster(3)
	scales := c.Scales()
	read, err := scales.Get(context.Background(), target)
	require.NoError(t, err)
	c.Fault = func(call string, effect func()) error {
		if call == "update scale" {
			c.Targets["llama"].Status.Selector = "app in (("
		}
		effect()
		return nil
	}
	written, err := scales.Set(context.Background(), target, read, 0)
	require.NoError(t, err)
	require.Zero(t, written.Replicas)
	require.Equal(t, target, written.Target)
	require.NotEqual(t, read.ResourceVersion, written.ResourceVersion)
	require.Equal(t, read.UID, written.UID)
}

// One pod that belongs to no group is a replica beside those of groups.
func TestAPodBesideGroups(t *testing.T) {
	both := func(p *corev1.Pod) { p.Labels["app"] = "llama" }
	pods, err := k8s.NewPods(lister(t, pod("alone"), pod("set-0", worker("set", "0", "2"), both), pod("set-0-1", worker("set", "1", "2"))), k8s.LeaderWorkerSet())
	require.NoError(t, err)
	found, err := pods.Find(scaleOf(t, "app=llama", 2))
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, [2]string{"alone", "set-0"}, [2]string{found[0].Name, found[1].Name})
	require.Len(t, found[1].Pods, 2)
	pods, err = k8s.NewPods(lister(t, pod("alone")), k8s.LeaderWorkerSet())
	require.NoError(t, err)
	found, err = pods.Find(scaleOf(t, "app=llama", 1))
	require.NoError(t, err)
	require.Len(t, found, 1)
}

// A pod that lacks any label of a group is a replica of its own, however alike others are.
func TestPodsThatLackALabelOfAGroup(t *testing.T) {
	for _, label := range []string{"name", "group-index", "worker-index"} {
		without := func(p *corev1.Pod) {
			p.Labels["app"] = "llama"
			delete(p.Labels, "leaderworkerset.sigs.k8s.io/"+label)
		}
		pods, err := k8s.NewPods(lister(t, pod("a", worker("set", "0", "2"), without), pod("b", worker("set", "1", "2"), without)), k8s.LeaderWorkerSet())
		require.NoError(t, err)
		found, err := pods.Find(scaleOf(t, "app=llama", 2))
		require.NoError(t, err)
		require.Len(t, found, 2, "without %s", label)
	}
}

// Each error has its reason as an event and as a condition.
func TestReasonsOfErrors(t *testing.T) {
	about := func(what error) error { return &k8s.TargetError{Target: target, Doing: "reach", What: what} }
	type setter func(*k8s.Outcome, error)
	state := func(o *k8s.Outcome, err error) { o.StateErr = err }
	read := func(o *k8s.Outcome, err error) { o.ScaleErr = err }
	observed := func(o *k8s.Outcome, err error) { o.ObserveErr = err }
	written := func(o *k8s.Outcome, err error) { o.WriteErr = err }
	for _, row := range []struct {
		set       setter
		err       error
		reason    string
		condition string
	}{
		{state, &scaling.StateError{Err: scaling.ErrNewerState}, "StateRefused", k8s.ConditionAbleToScale},
		{state, &k8s.SizeError{Where: "ConfigMap default/state"}, "StateTooLarge", k8s.ConditionAbleToScale},
		{state, fmt.Errorf("store state: %w", k8s.ErrStateConflict), "StateConflict", k8s.ConditionAbleToScale},
		{state, errors.New("away"), "StateNotStored", k8s.ConditionAbleToScale},
		{read, about(k8s.ErrNotFound), "TargetNotFound", k8s.ConditionAbleToScale},
		{read, about(k8s.ErrNoScale), "NoScaleSubresource", k8s.ConditionAbleToScale},
		{read, about(k8s.ErrForbidden), "Forbidden", k8s.ConditionAbleToScale},
		{read, errors.New("away"), "ScaleNotRead", k8s.ConditionAbleToScale},
		{observed, about(k8s.ErrNoSelector), "NoSelector", k8s.ConditionScalingActive},
		{observed, errors.New("away"), "NotObserved", k8s.ConditionScalingActive},
		{written, about(k8s.ErrConflict), "WriteConflict", k8s.ConditionAbleToScale},
		{written, about(k8s.ErrUncertain), "WriteUncertain", k8s.ConditionAbleToScale},
		{written, about(k8s.ErrRefused), "WriteRefused", k8s.ConditionAbleToScale},
		{written, about(k8s.ErrForbidden), "Forbidden", k8s.ConditionAbleToScale},
		{written, &k8s.ContendedError{Target: target}, "Contended", k8s.ConditionAbleToScale},
	} {
		o := &k8s.Outcome{Target: target, At: start}
		row.set(o, row.err)
		r := record.NewFakeRecorder(10)
		k8s.NewEvents(r, 0).Say(nil, o)
		require.Equal(t, []string{"Warning " + row.reason + " " + row.err.Error()}, told(r))
		c := conditionsOf(o)[row.condition]
		require.Equal(t, [2]string{row.reason, row.err.Error()}, [2]string{c.Reason, c.Message})
	}
	o := outcome(3, between, 4, 10)
	o.ConfigErr, o.Decided = errors.New("bad"), false
	o.Observed.Err = errors.New("2 pods: Timeout")
	r := record.NewFakeRecorder(10)
	k8s.NewEvents(r, 0).Say(nil, o)
	require.Equal(t, []string{"Warning ConfigRefused bad", "Warning MetricsUnavailable 2 pods: Timeout"}, told(r))
}

// What is done, and in a dry run or a pause would be, has an event and a condition of the same reason.
func TestReasonsOfWhatIsDone(t *testing.T) {
	for _, row := range []struct {
		to             int32
		write          k8s.WriteResult
		paused         bool
		reason         string
		event, message string
	}{
		{4, k8s.Written, false, "ScaledUp", "Up 3 -> 4: ", "3 -> 4"},
		{2, k8s.Written, false, "ScaledDown", "Down 3 -> 2: ", "3 -> 2"},
		{4, k8s.Would, false, "WouldScaleUp", "dry run, nothing was written: Up 3 -> 4: ", "3 -> 4"},
		{2, k8s.Would, false, "WouldScaleDown", "dry run, nothing was written: Down 3 -> 2: ", "3 -> 2"},
		{2, k8s.Would, true, "WouldScaleDown", "paused, nothing was written: Down 3 -> 2: ", "paused: 3 -> 2"},
	} {
		o := outcome(row.to, aboveHigh, 12, 10)
		o.Write, o.Paused = row.write, row.paused
		r := record.NewFakeRecorder(10)
		k8s.NewEvents(r, 0).Say(nil, o)
		said := told(r)
		require.Len(t, said, 1)
		require.Contains(t, said[0], "Normal "+row.reason+" "+row.event)
		c := conditionsOf(o)[k8s.ConditionAbleToScale]
		require.Equal(t, [3]string{"True", row.reason, row.message}, [3]string{string(c.Status), c.Reason, c.Message})
	}
	o := outcome(4, aboveHigh, 12, 10)
	for _, write := range []k8s.WriteResult{k8s.NoWrite, k8s.Conflict, k8s.Refused, k8s.Uncertain} {
		o.Write = write
		r := record.NewFakeRecorder(10)
		k8s.NewEvents(r, 0).Say(nil, o)
		require.Empty(t, told(r), "nothing is done: its error is told")
	}
}

// What became of writes is a label.
func TestNamesOfWriteResults(t *testing.T) {
	for result, want := range map[k8s.WriteResult]string{
		k8s.NoWrite: "none", k8s.Written: "written", k8s.Would: "would", k8s.Conflict: "conflict", k8s.Refused: "refused", k8s.Uncertain: "uncertain",
		k8s.Uncertain + 1: "unknown",
	} {
		require.Equal(t, want, result.String())
	}
}

// Without an observation there is nothing to see of a target, wherever it stands.
func TestViewOfATarget(t *testing.T) {
	o := k8s.Outcome{Observed: k8s.Observed{Fleets: []k8s.FleetView{{Ready: 1}, {Ready: 2}}}}
	for fleet, ready := range []int32{1, 2, 0} {
		o.Fleet = fleet
		require.Equal(t, ready, o.View().Ready)
	}
	require.Zero(t, (&k8s.Outcome{}).View())
}

// A decision without a code has its verdict as the reason.
func TestADecisionWithoutACode(t *testing.T) {
	o := outcome(3, between, 4, 10)
	o.Decision = scaling.HoldAt(3)
	c := conditionsOf(o)[k8s.ConditionScalingActive]
	require.Equal(t, [2]string{"True", "Hold"}, [2]string{string(c.Status), c.Reason})
}

// What is said of metrics names each, what is known of it, and what was not had.
func TestMessagesOfMetrics(t *testing.T) {
	o := outcome(3, between, 4, 10)
	o.Observed.Readings = []scaling.Reading{
		{Metric: "a", Lower: 1, Upper: 2, Values: 3, NotReady: 1, Failed: 2, Reused: 1}, {Metric: "b", Failed: 3},
	}
	o.Observed.Histograms = []scaling.Histogram{{Metric: "c", Counts: []float64{7}, Sum: 3}}
	o.Observed.Err = errors.New("2 pods: Timeout")
	c := k8s.MetricsAvailable(o)
	require.Equal(t, "a is in [1, 2] (3 values, 1 not ready, 2 failed, 1 reused); b has no value (0 values, 0 not ready, 3 failed, 0 reused); c is counted (0 failed); 2 pods: Timeout", c.Message)
	require.Equal(t, [2]string{"False", k8s.ReasonMetricsUnavailable}, [2]string{string(c.Status), c.Reason}, "b has none, whatever comes after")
	for _, change := range []func(*scaling.Reading){
		func(r *scaling.Reading) { r.NotReady = 1 }, func(r *scaling.Reading) { r.Failed = 1 }, func(r *scaling.Reading) { r.Reused = 1 },
		func(r *scaling.Reading) { r.NotReady, r.Failed = 1, 1 }, func(r *scaling.Reading) { r.Failed, r.Reused = 1, 1 },
	} {
		r := scaling.Exactly("a", 1)
		change(&r)
		o.Observed.Readings = []scaling.Reading{r}
		require.Equal(t, k8s.ReasonMetricsPartial, k8s.MetricsAvailable(o).Reason)
	}
}

// A target that somebody has scaled to 0 is left alone, and why is said.
func TestWhyATargetIsLeftAlone(t *testing.T) {
	o := outcome(3, between, 4, 10)
	o.Disabled = true
	c := conditionsOf(o)[k8s.ConditionScalingActive]
	require.Equal(t, [3]string{"False", k8s.ReasonScalingDisabled, "somebody has scaled to 0, below the minimum: left alone until somebody scales up"},
		[3]string{string(c.Status), c.Reason, c.Message})
}

// Rounds of up to 15 s have buckets, and the time of a decision is in seconds.
func TestTimesInMetrics(t *testing.T) {
	m := k8s.NewMetrics()
	o := outcome(3, between, 4, 10)
	o.At = start.Add(250 * time.Millisecond)
	m.Observe(o, 15*time.Second)
	require.Equal(t, []float64{float64(start.Unix()) + 0.25}, valuesOf(t, m, "inferscale_last_decision_timestamp_seconds"))
	families, err := newRegistry(t, m).Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "inferscale_loop_duration_seconds" {
			var bounds []float64
			for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
				bounds = append(bounds, b.GetUpperBound())
			}
			require.Equal(t, []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15}, bounds)
		}
	}
}

// A round is of the time at which its target had been read: one that takes long to read is decided on as it is then.
func TestARoundIsOfWhenItsTargetWasRead(t *testing.T) {
	c, clock := newCluster(3), &clock{now: start}
	l := newLoop(t, c, &observer{value: 5}, clock, nil)
	c.Fault = func(call string, effect func()) error {
		if call == "get scale" {
			clock.now = clock.now.Add(3 * time.Second)
		}
		effect()
		return nil
	}
	require.Equal(t, start.Add(3*time.Second), tick(t, l).At)
	c.Fault = func(string, func()) error { return errors.New("away") }
	o, err := l.Tick(t.Context())
	require.Error(t, err)
	require.Equal(t, start.Add(3*time.Second), o.At, "of what was not read, when it began")
}

// TestCooldownUntilStaysWithinAMillisecond: rounds begin at any part of a millisecond, but the policy counts whole ones. The end of a
// cooldown on a whole second was at times the next second.
func TestCooldownUntilStaysWithinAMillisecond(t *testing.T) {
	c, clock := newCluster(2), &clock{start}
	l := newLoop(t, c, &observer{value: 50}, clock, nil)
	scaled := false
	for range 3 {
		scaled = tick(t, l).Write == k8s.Written || scaled
		clock.pass()
	}
	require.True(t, scaled)
	var first time.Time
	for i := range 20 {
		clock.now = clock.now.Truncate(time.Millisecond).Add(300*time.Millisecond + time.Duration(i%3)*400*time.Microsecond)
		out := tick(t, l)
		until, waits := out.CooldownUntil()
		require.True(t, waits)
		if i == 0 {
			first = until
		}
		require.Equal(t, first, until)
	}
}
