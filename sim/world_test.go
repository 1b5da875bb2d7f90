package sim

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// watched runs a scenario under fixed counts and calls look at each decision.
func watched(t *testing.T, s Scenario, counts []int32, step time.Duration, look func(at time.Duration, v *scaling.GroupObservation)) Result {
	t.Helper()
	begin := s.Begin()
	r, err := Run(context.Background(), &s, func() (scaling.Group, error) { return Schedule(begin, step, counts), nil }, Options{
		Seed: 1, Decision: func(now time.Time, v *scaling.GroupObservation, _ *scaling.GroupDecision) { look(now.Sub(begin), v) },
	})
	require.NoError(t, err)
	return r
}

// slow is a server of one request a second, and steady one request each four seconds.
func slow() Server { return Server{Base: 0.1, MaxSeqs: 4, TokenBudget: 100, KVTokens: 1000} }

func steady(gap time.Duration, n int) Trace {
	trace := Trace{Length: gap * time.Duration(n)}
	for i := range n {
		trace.Requests = append(trace.Requests, Request{At: gap * time.Duration(i), Input: 50, Output: 10})
	}
	return trace
}

// TestReadingsAreIntervals: pods that boot and pods that do not answer widen the interval, by their fill above; a reused
// value is counted as one.
func TestReadingsAreIntervals(t *testing.T) {
	s := plain(steady(100*time.Millisecond, 3000), slow(), 1)
	s.Metrics = []Metric{{Name: "running", Signal: Running, Fill: 4}, {Name: "kv", Signal: KVCacheUsage}}
	s.Types[0].Startup = ColdStart(40 * time.Second)
	booting, all := false, false
	watched(t, s, []int32{1, 2}, time.Minute, func(at time.Duration, v *scaling.GroupObservation) {
		r, kv := v.Readings[0], v.Readings[1]
		if at == 75*time.Second { // asked for at 60 s
			booting = true
			require.EqualValues(t, []int32{1, 1, 0}, []int32{r.Values, r.NotReady, r.Failed})
			require.Equal(t, (2*r.Lower+4)/2, r.Upper)
			require.True(t, math.IsInf(kv.Upper, 1), "no fill is no limit")
			require.Len(t, v.Targets[0].Pods, 1, "one that boots cannot be asked")
			require.EqualValues(t, 1, v.Targets[0].PendingReplicas)
		}
		if at == 120*time.Second {
			all = true
			require.EqualValues(t, []int32{2, 0, 0}, []int32{r.Values, r.NotReady, r.Failed})
			require.Equal(t, r.Lower, r.Upper)
			require.EqualValues(t, []int32{2, 2, 0}, []int32{v.Targets[0].SpecReplicas, v.Targets[0].ReadyReplicas, v.Targets[0].PendingReplicas})
			require.Len(t, v.Targets[0].Pods, 2)
		}
		require.Equal(t, s.Begin().Add(at), r.At)
	})
	require.True(t, booting && all)
}

// TestStaleAnswersAreReusedForAWhile: with scrapes that all fail from the second on, the first answer stands in for as
// long as Stale says, and then the pod counts as failed.
func TestStaleAnswersAreReusedForAWhile(t *testing.T) {
	s := plain(steady(time.Second, 300), slow(), 1)
	s.Metrics = []Metric{{Name: "waiting", Signal: Waiting, Fill: 9}}
	s.Scrape = Scrape{Interval: 15 * time.Second, Stale: 45 * time.Second, BusyFailureRate: 1, FailureRate: 0}
	// Until 20 s nothing waits; then there is a queue, and no answer any more.
	trace := Trace{Length: 5 * time.Minute}
	for range 900 {
		trace.Requests = append(trace.Requests, Request{At: 20 * time.Second, Input: 50, Output: 10})
	}
	s.Workload = trace
	var seen []string
	watched(t, s, []int32{1}, time.Minute, func(at time.Duration, v *scaling.GroupObservation) {
		r := v.Readings[0]
		if at <= 90*time.Second {
			state := "failed"
			if r.Reused == 1 {
				state = "reused"
			} else if r.Values == 1 {
				state = "fresh"
			}
			seen = append(seen, state)
		}
	})
	require.Equal(t, []string{"fresh", "reused", "reused", "reused", "failed", "failed"}, seen)
}

// TestACrashedReplicaStartsAnew: its requests go to others and are done, its counters start from zero, and no quantile
// turns negative for it.
func TestACrashedReplicaStartsAnew(t *testing.T) {
	s := plain(steady(100*time.Millisecond, 6000), slow(), 2)
	s.Types[0].CrashesPerHour = 60
	s.Types[0].Startup = ColdStart(5 * time.Second)
	s.Metrics = []Metric{{Name: "ttft", Signal: TTFT}, {Name: "rate", Signal: RequestRate}}
	r := watched(t, s, []int32{2}, time.Minute, func(at time.Duration, v *scaling.GroupObservation) {
		if v.Readings[0].Values > 0 {
			require.Positive(t, v.Readings[0].Lower)
		}
		if at >= time.Minute && at <= 10*time.Minute {
			require.InDelta(t, 10, v.Readings[1].Lower, 0.2)
		}
	})
	require.Positive(t, r.Retried)
	require.EqualValues(t, 6000, r.Finished)
}

// TestRareCrashesAreRare: a crash that is due after the longest run, and beyond what a time can hold, does not happen.
func TestRareCrashesAreRare(t *testing.T) {
	for _, rate := range []float64{1e-4, 1e-9, 5e-324} {
		s := plain(steady(100*time.Millisecond, 600), slow(), 2)
		s.Types[0].CrashesPerHour = rate
		s.Types[0].Startup = ColdStart(time.Hour)
		r := runStatic(t, &s, Options{})
		require.Zero(t, r.Retried)
		require.EqualValues(t, 600, r.Finished)
		require.Less(t, r.TTFT.Max, 30.0, "%g", rate)
	}
}

// TestLateIsNever: what is due after the longest run does not come round to its beginning.
func TestLateIsNever(t *testing.T) {
	e := engine{now: ticks(MaxDuration - time.Hour)}
	require.Equal(t, ticks(MaxDuration), e.after(ticks(time.Hour)))
	require.Equal(t, never, e.after(ticks(time.Hour)+1))
	require.Equal(t, never, e.after(ticks(MaxDuration)))
}

// TestScaleDownOrder: what is not ready goes first, the newest of it; then the replica with the least to do.
func TestScaleDownOrder(t *testing.T) {
	s := plain(steady(50*time.Millisecond, 12_000), slow(), 3)
	s.Router = RoundRobin
	s.Types[0].Startup = ColdStart(time.Hour)
	names := map[time.Duration]string{}
	s.Metrics = []Metric{{Name: "in flight", Signal: InFlight}}
	begin := s.Begin()
	var e *engine
	e = newEngine(&s, Options{Seed: 1, Decision: func(now time.Time, _ *scaling.GroupObservation, _ *scaling.GroupDecision) {
		var pods []string
		for _, p := range e.observer.pods {
			pods = append(pods, strings.TrimPrefix(p.name, "replica-"))
		}
		names[now.Sub(begin)] = strings.Join(pods, " ")
	}})
	var err error
	e.controller, err = newController(func() (scaling.Group, error) { return Schedule(begin, time.Minute, []int32{3, 5, 4, 3, 2}), nil }, false)
	require.NoError(t, err)
	require.NoError(t, e.run(context.Background().Err))
	require.Equal(t, "0 1 2", names[45*time.Second])
	require.Equal(t, "0 1 2 3 4", names[75*time.Second])
	require.Equal(t, "0 1 2 3", names[135*time.Second])
	require.Equal(t, "0 1 2", names[195*time.Second])
	require.Len(t, strings.Fields(names[255*time.Second]), 2)
}

// TestQuotaHoldsReplicasBack: beyond the quota replicas are asked for and cost nothing until one goes.
func TestQuotaHoldsReplicasBack(t *testing.T) {
	s := plain(steady(time.Second, 600), slow(), 1)
	s.Types[0].Quota = 2
	s.Types[0].Startup = ColdStart(30 * time.Second)
	r := watched(t, s, []int32{1, 4, 2}, 3*time.Minute, func(time.Duration, *scaling.GroupObservation) {})
	require.EqualValues(t, 2, r.PeakReplicas)
	require.EqualValues(t, 1, r.Starts, "the two that waited were taken back")
	require.InDelta(t, (3+2*7)/60.0, r.ReplicaHours, 1e-9)
	require.InDelta(t, (3*1+3*4+4*2)/10.0, r.AverageSpec, 1e-9)
}

// TestStartsCountUpToTheHorizon: of all types together as of each, and the peak likewise.
func TestStartsCountUpToTheHorizon(t *testing.T) {
	s := plain(steady(time.Second, 600), slow(), 1)
	s.Horizon = 5 * time.Minute
	s.Types[0].Startup = ColdStart(30 * time.Second)
	r := watched(t, s, []int32{1, 3, 9}, 3*time.Minute, func(time.Duration, *scaling.GroupObservation) {})
	require.EqualValues(t, 2, r.Starts)
	require.EqualValues(t, 2, r.Types[0].Starts)
	require.EqualValues(t, 3, r.PeakReplicas)
}

// TestScaleToZeroKeepsRequests: what comes while nothing is ready waits at the router and is served later.
func TestScaleToZeroKeepsRequests(t *testing.T) {
	s := plain(steady(time.Second, 300), slow(), 1)
	s.Types[0].Startup = ColdStart(30 * time.Second)
	r := watched(t, s, []int32{1, 0, 1}, time.Minute, func(time.Duration, *scaling.GroupObservation) {})
	require.EqualValues(t, 300, r.Finished)
	require.Greater(t, r.TTFT.Max, 80.0)
	require.Less(t, r.Attainment, 0.8)
}

// TestTimesOfUnfinishedRequests: a request that the run ends on counts with its first token, if it had one, and else with
// the time that it had waited. Left out, it would make a fleet that serves few look fast.
func TestTimesOfUnfinishedRequests(t *testing.T) {
	trace := steady(2*time.Second, 5) // at 0, 2, 4, 6 and 8 s, until 10 s
	nobody := plain(trace, slow(), 0)
	nobody.Grace = 0
	r := runStatic(t, &nobody, Options{})
	require.EqualValues(t, 5, r.Unfinished)
	for _, q := range []Quantiles{r.TTFT, r.Queue} {
		require.InDelta(t, 6, q.Mean, 1e-9)
		require.InEpsilon(t, 6, q.P50, 0.0101)
		require.Equal(t, 10.0, q.Max)
	}
	require.Zero(t, r.TPOT)
	share := 0.0
	for _, b := range r.TTFTHistogram {
		share += b.Share
	}
	require.InDelta(t, 1, share, 1e-9)

	one := plain(trace, Server{Base: 1, MaxSeqs: 1, TokenBudget: 100, KVTokens: 1000}, 1)
	for i := range trace.Requests {
		trace.Requests[i].Output = 100
	}
	one.Grace = 0
	r = runStatic(t, &one, Options{})
	require.EqualValues(t, 5, r.Unfinished)
	require.InDelta(t, (1+8+6+4+2)/5.0, r.TTFT.Mean, 1e-9, "the first one has its first token after a second")
	require.InDelta(t, (0+8+6+4+2)/5.0, r.Queue.Mean, 1e-9)
}

// TestUnderAndOver adds up the replica-hours that are missing and too many.
func TestUnderAndOver(t *testing.T) {
	s := plain(steady(time.Second, 600), slow(), 2)
	s.Demand, s.DemandStep = []int32{1, 4, 2}, 200*time.Second
	r := runStatic(t, &s, Options{})
	require.InDelta(t, 2*200/3600.0, r.Under, 1e-9)
	require.InDelta(t, 1*200/3600.0, r.Over, 1e-9)
}

// TestNoDemandAfterItsEnd: the last slot of the demand does not go on, neither in what is too much nor in the pictures.
func TestNoDemandAfterItsEnd(t *testing.T) {
	s := plain(steady(time.Second, 600), slow(), 2)
	s.Demand, s.DemandStep = []int32{1, 4}, 200*time.Second
	r := runStatic(t, &s, Options{Timeline: 100 * time.Second})
	require.InDelta(t, 2*200/3600.0, r.Under, 1e-9)
	require.InDelta(t, (1*200+2*200)/3600.0, r.Over, 1e-9)
	var demand []int32
	for _, m := range r.Timeline {
		demand = append(demand, m.Demand)
	}
	require.Equal(t, []int32{1, 1, 4, 4, 0, 0}, demand)
}

// TestRefusedRequests: one that no cache has room for is refused, and counts as missed.
func TestRefusedRequests(t *testing.T) {
	trace := steady(time.Second, 9)
	trace.Requests[4].Input = 5000
	s := plain(trace, slow(), 1)
	s.SLO = SLO{TTFT: time.Minute, TPOT: time.Minute}
	r := runStatic(t, &s, Options{})
	require.EqualValues(t, 1, r.Refused)
	require.InDelta(t, 8.0/9, r.Attainment, 1e-9)
}

// TestACrashedControllerGoesOnFromItsState: with the stored state it decides as one that never crashed, but for the
// writes it lost; one that forgets does not.
func TestACrashedControllerGoesOnFromItsState(t *testing.T) {
	asked := func(crashes float64, forgets bool) (last, ticks uint64, n int64) {
		s := plain(steady(time.Second, 600), slow(), 1)
		s.Control.CrashRate, s.Control.Forgets = crashes, forgets
		var live *both
		r, err := Run(context.Background(), &s, func() (scaling.Group, error) { live = newBoth(1); return live, nil }, Options{
			Decision: func(time.Time, *scaling.GroupObservation, *scaling.GroupDecision) { ticks++ },
		})
		require.NoError(t, err)
		var stored struct{ State restlessState }
		data, err := live.Policies[0].MarshalJSON()
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &stored))
		return stored.State.Asked, ticks, r.Crashes
	}
	last, ticks, crashes := asked(0, false)
	require.Zero(t, crashes)
	require.Equal(t, ticks, last)
	last, ticks, crashes = asked(0.3, false)
	require.Positive(t, crashes)
	require.Equal(t, ticks, last, "it remembers each time that it was asked")
	last, ticks, _ = asked(0.3, true)
	require.Less(t, last, ticks)
}

// TestValidateNamesEveryField: every wrong field is named, with its value and rule, at once.
func TestValidateNamesEveryField(t *testing.T) {
	s := Ramp()
	require.NoError(t, s.Validate())
	s.Types[0].Server.MaxSeqs = 0
	s.Types[0].Initial = -1
	s.Types[0].Startup.FailureRate = 1
	s.SLO.TTFT = 0
	s.Scrape.FailureRate = math.NaN()
	s.Control.Interval = 0
	s.Metrics = []Metric{{Signal: 99}}
	s.Workload = Stages{Stages: []Stage{{-1, 0}}, CV: math.NaN(), Input: Length{Mean: 5, Min: 10, Max: 9}, Output: Length{Mean: 1, Min: 1, Max: 1}}
	err := s.Validate()
	for _, field := range []string{
		"types[0].server.maxSeqs: 0", "types[0].initial: -1", "types[0].startup.failureRate: 1", "slo.ttft: 0s", "scrape.failureRate: NaN",
		"control.interval: 0s", "metrics[0].name: ", "metrics[0].signal: 99", "workload.stages[0].rate: -1", "workload.stages[0].duration: 0s",
		"workload.cv: NaN", "workload.input.max: 9",
	} {
		require.ErrorContains(t, err, field)
	}
	var fe *scaling.FieldError
	require.ErrorAs(t, err, &fe)

	disorder := Trace{Requests: []Request{{At: 5, Input: 1, Output: 1}, {At: 4, Input: 1, Output: 1}}}
	require.ErrorContains(t, disorder.Validate("trace"), "trace.requests[1].at: 4ns")
	_, err = Run(context.Background(), &s, nil, Options{})
	require.Error(t, err)
}

// TestARunIsAtMost90Days: with the grace, whichever of horizon and traffic is longer. Beyond it times overflow.
func TestARunIsAtMost90Days(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		length, horizon, grace time.Duration
		says                   string
	}{
		{80 * day, 0, 10 * day, ""},
		{day, 80 * day, 10 * day, ""},
		{80 * day, 0, 10*day + 1, "workload.duration: 1920h0m0s: must be at most 90 days, with the grace"},
		{day, 80 * day, 10*day + 1, "horizon: 1920h0m0s: must be within 0 and 90 days, with the grace"},
		{day, 90 * day, 90 * day, "horizon: 2160h0m0s: must be within 0 and 90 days, with the grace"},
		{math.MaxInt64, 0, day, "workload.duration: 2562047h47m16.854775807s: must be at most 90 days, with the grace"},
	} {
		s := plain(Trace{Length: c.length}, slow(), 1)
		s.Horizon, s.Grace = c.horizon, c.grace
		if err := s.Validate(); c.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.says)
		}
	}
}

// TestRunEndsWithItsContext: a run that is called off ends with the context's error.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := Ramp()
	_, err := Run(ctx, &s, func() (scaling.Group, error) { return Static(3), nil }, Options{
		Progress: func(done, _ time.Duration) {
			if done > time.Minute {
				cancel()
			}
		},
	})
	require.ErrorIs(t, err, context.Canceled)
	failing := errors.New("no controller")
	_, err = Run(context.Background(), &s, func() (scaling.Group, error) { return nil, failing }, Options{})
	require.ErrorIs(t, err, failing)
}
