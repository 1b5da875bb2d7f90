package k8s_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

const (
	aboveHigh scaling.Code = "AboveHigh lower > high"
	between   scaling.Code = "Between lower <= high"
	noSample  scaling.Code = "NoSample"
)

// outcome is a round that decided on 3 replicas.
func outcome(n int32, code scaling.Code, numbers ...float64) *k8s.Outcome {
	d := scaling.HoldAt(3)
	d.To(n, code, waiting, numbers...)
	o := &k8s.Outcome{
		Target: target, At: start, Decided: true, Decision: d, Bounds: scaling.Bounds{Min: 1, Max: 8},
		Scale: k8s.Scale{Target: target, Replicas: 3, ResourceVersion: "7", UID: "uid"},
		Observed: k8s.Observed{
			Readings: []scaling.Reading{scaling.Exactly(waiting, 12)},
			Fleets:   []k8s.FleetView{{Ready: 3}},
		},
	}
	if d.Acts() {
		o.Write = k8s.Written
	}
	return o
}

func conditionsOf(o *k8s.Outcome) map[string]metav1.Condition {
	m := make(map[string]metav1.Condition)
	for _, c := range k8s.Conditions(o, 4) {
		m[c.Type] = c
	}
	return m
}

func TestConditions(t *testing.T) {
	refused := &scaling.StateError{Err: scaling.ErrNewerState}
	missing := &k8s.TargetError{Target: target, Doing: "read", What: k8s.ErrNotFound}
	unknown := outcome(3, noSample)
	unknown.Decision = scaling.UnknownAt(3, noSample, waiting)
	unknown.Observed.Readings[0] = scaling.Reading{Metric: waiting, Failed: 3}
	unknown.Observed.Err = errors.New("metric absent")
	limited := outcome(4, aboveHigh, 12, 10)
	limited.Decision.To(5, aboveHigh, waiting, 12, 10)
	limited.Decision.Clamp(scaling.Bounds{Min: 1, Max: 4})
	partial := outcome(3, between, 4, 10)
	partial.Observed.Readings[0].NotReady = 1
	with := func(o *k8s.Outcome, change func(*k8s.Outcome)) *k8s.Outcome { change(o); return o }
	for _, c := range []struct {
		name    string
		outcome *k8s.Outcome
		// status and reason of Ready, AbleToScale, ScalingActive, ScalingLimited, MetricsAvailable
		want [5]string
	}{
		{"up", outcome(4, aboveHigh, 12, 10), [5]string{"True Ready", "True ScaledUp", "True AboveHigh", "False WithinLimits", "True MetricsKnown"}},
		{"hold", outcome(3, between, 4, 10), [5]string{"True Ready", "True ScaleRead", "True Between", "False WithinLimits", "True MetricsKnown"}},
		{"partial", partial, [5]string{"True Ready", "True ScaleRead", "True Between", "False WithinLimits", "True MetricsPartial"}},
		{"limited", limited, [5]string{"True Ready", "True ScaledUp", "True AboveMax", "True AboveMax", "True MetricsKnown"}},
		{"unknown", unknown, [5]string{"False NoSample", "True ScaleRead", "False NoSample", "False WithinLimits", "False MetricsUnavailable"}},
		{"conflict", with(outcome(4, aboveHigh, 12, 10), func(o *k8s.Outcome) {
			o.Write, o.WriteErr = k8s.Conflict, &k8s.TargetError{Target: target, What: k8s.ErrConflict}
		}), [5]string{"False WriteConflict", "False WriteConflict", "True AboveHigh", "False WithinLimits", "True MetricsKnown"}},
		{"target gone", &k8s.Outcome{Target: target, At: start, ScaleErr: missing}, [5]string{"False TargetNotFound", "False TargetNotFound", "Unknown NotDecided", "False WithinLimits", "Unknown NotObserved"}},
		{"not observed", &k8s.Outcome{Target: target, At: start, ObserveErr: &k8s.TargetError{Target: target, What: k8s.ErrNoSelector}}, [5]string{"False NoSelector", "True ScaleRead", "False NoSelector", "False WithinLimits", "Unknown NotObserved"}},
		{"state refused", with(outcome(3, between, 4, 10), func(o *k8s.Outcome) { o.StateErr = refused }), [5]string{"False StateRefused", "False StateRefused", "True Between", "False WithinLimits", "True MetricsKnown"}},
		{"config refused", with(outcome(3, between, 4, 10), func(o *k8s.Outcome) { o.ConfigErr = errors.New("bad") }), [5]string{"True ConfigRefused", "True ScaleRead", "True Between", "False WithinLimits", "True MetricsKnown"}},
		{"no metrics", with(outcome(3, between, 4, 10), func(o *k8s.Outcome) { o.Observed.Readings = nil }), [5]string{"True Ready", "True ScaleRead", "True Between", "False WithinLimits", "True NoMetricsUsed"}},
		{"foreign code", outcome(3, "Über-Code: x"), [5]string{"True Ready", "True ScaleRead", "True Hold", "False WithinLimits", "True MetricsKnown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got [5]string
			for i, condition := range k8s.Conditions(c.outcome, 4) {
				got[i] = string(condition.Status) + " " + condition.Reason
				require.EqualValues(t, 4, condition.ObservedGeneration)
				require.NotEmpty(t, condition.Message)
			}
			require.Equal(t, c.want, got)
		})
	}
	require.Equal(t, "Up 3 -> 4: AboveHigh vllm:num_requests_waiting lower=12 > high=10",
		conditionsOf(outcome(4, aboveHigh, 12, 10))[k8s.ConditionScalingActive].Message)
	require.Equal(t, "vllm:num_requests_waiting is in [12, 12] (1 values, 0 not ready, 0 failed, 0 reused)",
		conditionsOf(outcome(4, aboveHigh, 12, 10))[k8s.ConditionMetricsAvailable].Message)
}

func TestSetConditions(t *testing.T) {
	var status []metav1.Condition
	require.True(t, k8s.SetConditions(&status, outcome(3, between, 4, 10), 1))
	later := outcome(3, between, 4, 10)
	later.At = start.Add(time.Hour)
	require.False(t, k8s.SetConditions(&status, later, 1), "nothing new")
	require.Equal(t, metav1.NewTime(start), status[0].LastTransitionTime)
	require.True(t, k8s.SetConditions(&status, later, 2), "another generation was observed")
}

// told returns the events since the last call.
func told(r *record.FakeRecorder) []string {
	var events []string
	for {
		select {
		case e := <-r.Events:
			events = append(events, e)
		default:
			return events
		}
	}
}

func TestEvents(t *testing.T) {
	r := record.NewFakeRecorder(100)
	events := k8s.NewEvents(r, 10*time.Minute)
	say := func(o *k8s.Outcome, after time.Duration) []string {
		o.At = start.Add(after)
		events.Say(nil, o)
		return told(r)
	}
	require.Equal(t, []string{"Normal Held Hold at 3: Between vllm:num_requests_waiting lower=4 <= high=10"}, say(outcome(3, between, 4, 10), 0))
	require.Empty(t, say(outcome(3, between, 5, 10), time.Minute), "the same but for the numbers")
	require.Len(t, say(outcome(3, noSample), time.Minute), 1, "another code")
	require.Len(t, say(outcome(3, between, 5, 10), 10*time.Minute), 1, "a period later")

	up := outcome(4, aboveHigh, 12, 10)
	require.Equal(t, []string{"Normal ScaledUp Up 3 -> 4: AboveHigh vllm:num_requests_waiting lower=12 > high=10"}, say(up, 11*time.Minute))
	require.Len(t, say(up, 11*time.Minute), 1, "what was written is always told")
	up.Write = k8s.Would
	require.Equal(t, []string{"Normal WouldScaleUp dry run, nothing was written: Up 3 -> 4: AboveHigh vllm:num_requests_waiting lower=12 > high=10"}, say(up, 12*time.Minute))
	require.Contains(t, say(outcome(2, between, 1, 2), 12*time.Minute)[0], "Normal ScaledDown Down 3 -> 2")

	refused := outcome(4, aboveHigh, 12, 10)
	refused.Write, refused.WriteErr = k8s.Refused, &k8s.TargetError{Target: target, Doing: "write", What: k8s.ErrRefused, Err: errors.New("quota")}
	require.Equal(t, []string{"Warning WriteRefused cannot write Deployment default/llama: refused: nothing was written (quota)"}, say(refused, 13*time.Minute))
	require.Empty(t, say(refused, 14*time.Minute))

	long := outcome(3, between, 4, 10)
	long.Observed.Err = errors.New(strings.Repeat("ü", 2000))
	for _, e := range say(long, 30*time.Minute) {
		require.LessOrEqual(t, len(e), 1024+len("Warning MetricsUnavailable "))
		require.NotContains(t, e, "\uFFFD")
	}
	require.Len(t, say(outcome(3, between, 5, 10), -time.Hour), 1, "a clock that went back silences nothing")
}

func TestMetrics(t *testing.T) {
	m := k8s.NewMetrics()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	up := outcome(4, aboveHigh, 12, 10)
	up.Observed.Failures = map[scrape.Reason]int{scrape.Timeout: 2}
	up.Conflicts = 1
	up.ConfigErr = errors.New("bad")
	m.Observe(up, 20*time.Millisecond)
	other := outcome(3, between, 4, 10)
	other.Target.Name = "other"
	m.Observe(other, time.Second)

	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)

	const labels = `kind="Deployment",name="llama",namespace="default"`
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP inferscale_decisions_total Decisions by verdict and by the code of the rule that had the last word.
# TYPE inferscale_decisions_total counter
inferscale_decisions_total{autoscaler="",code="AboveHigh",`+labels+`,verdict="Up"} 1
inferscale_decisions_total{autoscaler="",code="Between",kind="Deployment",name="other",namespace="default",verdict="Hold"} 1
# HELP inferscale_writes_total Decisions that ask for a write, by what became of it.
# TYPE inferscale_writes_total counter
inferscale_writes_total{autoscaler="",`+labels+`,result="written"} 1
# HELP inferscale_scrape_failures_total Pages and values of pods that were not had, by reason.
# TYPE inferscale_scrape_failures_total counter
inferscale_scrape_failures_total{autoscaler="",`+labels+`,reason="Timeout"} 2
`), "inferscale_decisions_total", "inferscale_writes_total", "inferscale_scrape_failures_total"))
	require.Equal(t, 4, testutil.CollectAndCount(m, "inferscale_readings"))

	// What is not known any more is not shown.
	blind := outcome(3, noSample)
	blind.Observed.Readings[0] = scaling.Reading{Metric: waiting}
	m.Observe(blind, time.Second)
	require.Equal(t, 2, testutil.CollectAndCount(m, "inferscale_readings"))

	m.Forget(target)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, families)
	for _, f := range families {
		for _, series := range f.Metric {
			for _, l := range series.Label {
				require.False(t, l.GetName() == "name" && l.GetValue() == "llama", f.GetName())
			}
		}
	}
}

// The series of a target stay as long as a loop shows it: a loop that takes the place of another one goes on counting.
func TestMetricsOutliveALoop(t *testing.T) {
	m := k8s.NewMetrics()
	c, clock := newCluster(3), &clock{now: start}
	loop := func() *k8s.Loop {
		return newLoop(t, c, &observer{value: 5}, clock, func(config *k8s.LoopConfig) { config.Metrics = m })
	}
	shows := func(n int) {
		require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(fmt.Sprintf(`
# HELP inferscale_decisions_total Decisions by verdict and by the code of the rule that had the last word.
# TYPE inferscale_decisions_total counter
inferscale_decisions_total{autoscaler="",code="Between",kind="Deployment",name="llama",namespace="default",verdict="Hold"} %d
`, n)), "inferscale_decisions_total"))
	}
	first := loop()
	tick(t, first)
	second := loop()
	first.Close()
	first.Close()
	shows(1)
	tick(t, second)
	shows(2)
	second.Close()
	require.Zero(t, testutil.CollectAndCount(m))
}

// TestHistogramsAreMetricsToo: one that has no counts makes the metrics unavailable, one of which pods are missing partial.
func TestHistogramsAreMetricsToo(t *testing.T) {
	o := outcome(4, aboveHigh, 12, 10)
	h := scaling.Histogram{Metric: "ttft", Counts: []float64{7}, Sum: 3}
	o.Observed.Histograms = []scaling.Histogram{h}
	c := conditionsOf(o)[k8s.ConditionMetricsAvailable]
	require.Equal(t, k8s.ReasonMetricsKnown, c.Reason)
	require.Contains(t, c.Message, "; ttft is counted (0 failed)")
	o.Observed.Histograms[0].Failed = 1
	require.Equal(t, k8s.ReasonMetricsPartial, conditionsOf(o)[k8s.ConditionMetricsAvailable].Reason)
	o.Observed.Histograms[0].Counts = nil
	c = conditionsOf(o)[k8s.ConditionMetricsAvailable]
	require.Equal(t, metav1.ConditionFalse, c.Status)
	require.Contains(t, c.Message, "ttft has no counts (1 failed)")
}
