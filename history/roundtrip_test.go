package history_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// scenario is a fleet that goes up and down by a schedule.
func scenario(server sim.Server, workload sim.Workload, failures float64) *sim.Scenario {
	return &sim.Scenario{
		Name: "recorded", Workload: workload, SLO: sim.SLO{TTFT: 3 * time.Second, TPOT: 100 * time.Millisecond},
		Types:  []sim.Type{{Server: server, Initial: 3, Startup: sim.ColdStart(100 * time.Second)}},
		Scrape: sim.Scrape{Interval: 15 * time.Second, FailureRate: failures}, Control: sim.Control{Interval: 15 * time.Second},
		Horizon: workload.Duration() + 10*time.Minute, Grace: 20 * time.Minute,
	}
}

func scheduled(s *sim.Scenario) func() (scaling.Group, error) {
	return func() (scaling.Group, error) {
		return sim.Schedule(s.Begin(), 20*time.Minute, []int32{3, 5, 4, 7, 6, 3, 5, 3, 3, 3, 3, 3}), nil
	}
}

func ramp() sim.Workload { return sim.Ramp().Workload }

// bursts is an hour and a half of short conversations whose rate jumps.
func bursts() sim.Workload {
	w := sim.Stages{
		Input:  sim.Length{Mean: 900, Deviation: 1100, Min: 1, Max: 16000, LogNormal: true},
		Output: sim.Length{Mean: 220, Deviation: 180, Min: 1, Max: 4000, LogNormal: true}, CV: 2,
	}
	for i := range 18 {
		w.Stages = append(w.Stages, sim.Stage{Rate: []float64{2, 7, 3}[i%3], Duration: 5 * time.Minute})
	}
	return w
}

// longAnswers is two hours of reasoning, with a rate that goes up and down.
func longAnswers() sim.Workload {
	return sim.Series{
		Step: 10 * time.Minute, Rates: sim.Diurnal(0.5, 3, 2*time.Hour, 10*time.Minute),
		Input:  sim.Length{Mean: 400, Deviation: 300, Min: 1, Max: 8000, LogNormal: true},
		Output: sim.Length{Mean: 2200, Deviation: 1800, Min: 1, Max: 16000, LogNormal: true},
	}
}

func record(tb testing.TB, s *sim.Scenario) *simhistory.Recording {
	tb.Helper()
	r, err := simhistory.Record(tb.Context(), s, scheduled(s), 1)
	require.NoError(tb, err)
	return r
}

func dumped(tb testing.TB, r *simhistory.Recording) *history.Dump {
	tb.Helper()
	d, err := r.Dump()
	require.NoError(tb, err)
	return d
}

func reduced(tb testing.TB, d *history.Dump) *history.Fleet {
	tb.Helper()
	f, err := history.Reduce(d)
	require.NoError(tb, err)
	return f
}

func TestRoundTrip(t *testing.T) {
	long.Skip(t)
	for _, row := range []struct {
		name     string
		server   sim.Server
		workload sim.Workload
		failures float64
	}{
		{"Qwen, ramp", sim.Qwen32B(), ramp(), 0},
		{"Qwen, ramp, scrapes fail", sim.Qwen32B(), ramp(), 0.05},
		{"A100, bursts", sim.Llama70BA100(), bursts(), 0.02},
		{"H100, long answers", sim.Llama70BH100x4(), longAnswers(), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := scenario(row.server, row.workload, row.failures)
			r := record(t, s)
			d := dumped(t, r)
			var file bytes.Buffer
			require.NoError(t, d.Write(&file))
			d, err := history.Read(&file)
			require.NoError(t, err)
			f := reduced(t, d)

			arrivals(t, r, f, row.failures > 0)
			hours, known := f.ReplicaHours()
			require.Equal(t, 1.0, known)
			require.InDelta(t, spec(r), hours, 1e-9)
			require.NotEmpty(t, f.Starts)
			for _, start := range f.Starts {
				require.LessOrEqual(t, math.Abs(float64(start.Took()-100*time.Second)), float64(15*time.Second), "%s", start.Pod)
			}
			distributions(t, r, f)
			w, filled, err := f.Workload()
			require.NoError(t, err)
			require.Zero(t, filled)
			replayed(t, r, w)
			require.NotEmpty(t, f.Points())
		})
	}
}

// spec returns the replica-hours that were asked for, as the simulator has them: at each scrape the count of the time
// before it, as decisions are made at the same times.
func spec(r *simhistory.Recording) (hours float64) {
	for _, n := range r.Spec {
		hours += n * r.Scrape.Hours()
	}
	return hours
}

// arrivals compares what came up to each scrape: none may be known before it came, nor later than a step after. Where
// scrapes fail, what came meanwhile is spread over the time between.
func arrivals(t *testing.T, r *simhistory.Recording, f *history.Fleet, spread bool) {
	t.Helper()
	got, known := f.Requests()
	require.Equal(t, 1.0, known)
	require.InDelta(t, float64(r.Result.Requests), got, 1e-6)
	sum := 0.0
	for i, n := range f.Arrivals {
		sum += n
		k := int(f.Start.Add(time.Duration(i+1)*f.Step).Sub(r.Start)/r.Scrape) - 1
		if spread {
			near := math.Max(8, 3*math.Sqrt(r.Arrived[k]))
			require.InDelta(t, r.Arrived[k], sum, near, "interval %d", i)
			continue
		}
		require.LessOrEqual(t, sum, r.Arrived[k]+1e-6, "interval %d", i)
		if k > 0 {
			require.GreaterOrEqual(t, sum, r.Arrived[k-1]-1e-6, "interval %d", i)
		}
	}
}

// distributions compares lengths with those of the requests that finished, bucket by bucket.
func distributions(t *testing.T, r *simhistory.Recording, f *history.Fleet) {
	t.Helper()
	for _, c := range []struct {
		name string
		of   func(*history.Span) history.Mixture
		size func(sim.Outcome) int32
	}{
		{"prompts", func(s *history.Span) history.Mixture { return s.Prompts }, func(o sim.Outcome) int32 { return o.Input }},
		{"answers", func(s *history.Span) history.Mixture { return s.Answers }, func(o sim.Outcome) int32 { return o.Output }},
	} {
		var bounds, counts []float64
		sum := 0.0
		for i := range f.Spans {
			m := c.of(&f.Spans[i])
			if len(m) == 0 {
				continue
			}
			require.Len(t, m, 1)
			bounds = m[0].Bounds
			if counts == nil {
				counts = make([]float64, len(m[0].Counts))
			}
			for k, n := range m[0].Counts {
				counts[k] += n
			}
			sum += m[0].Sum
		}
		want, total, wantSum, all := make([]float64, len(counts)), 0.0, 0.0, 0.0
		for _, o := range r.Done {
			k := 0
			for k < len(bounds) && float64(c.size(o)) > bounds[k] {
				k++
			}
			want[k]++
			wantSum += float64(c.size(o))
		}
		for _, n := range counts {
			total += n
		}
		all = float64(len(r.Done))
		require.InDelta(t, 1, total/all, 0.02, c.name) // the last minutes of the history may be without a value of buckets
		require.InDelta(t, wantSum/all, sum/total, 0.01*wantSum/all, c.name)
		for k := range counts {
			require.InDelta(t, want[k]/all, counts[k]/total, 0.01, "%s, bucket %d", c.name, k)
		}
	}
}

// replayed compares the traffic that is made of a history with that which there was.
func replayed(t *testing.T, r *simhistory.Recording, w *history.Recorded) {
	t.Helper()
	require.NoError(t, w.Validate("workload"))
	n, last := 0, time.Duration(0)
	input, output := 0.0, 0.0
	next := w.Arrivals(7)
	for q, more := next(); more; q, more = next() {
		require.GreaterOrEqual(t, q.At, last)
		last = q.At
		n++
		input += float64(q.Input)
		output += float64(q.Output)
	}
	require.Less(t, last, w.Duration())
	require.InDelta(t, float64(r.Result.Requests), float64(n), 1)
	wantIn, wantOut := 0.0, 0.0
	for _, o := range r.Done {
		wantIn += float64(o.Input)
		wantOut += float64(o.Output)
	}
	require.InDelta(t, 1, input/float64(n)/(wantIn/float64(len(r.Done))), 0.03)
	require.InDelta(t, 1, output/float64(n)/(wantOut/float64(len(r.Done))), 0.03)
}
