package history_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/sim"
)

// TestRoundTripOfEveryEngine records one fleet as each engine would show it, under its names, with its labels and in its units, and
// imports it: what an engine says is right, what it does not say is named with what it costs, and nothing is a wrong number.
// TGI and TensorRT-LLM count times per token by request; taken for tokens, as they were, a sequence cost 0.075 s instead of 0.00004 s.
func TestRoundTripOfEveryEngine(t *testing.T) {
	long.Skip(t)
	server := sim.Qwen32B()
	s := scenario(server, bursts(), 0)
	for _, row := range []struct {
		engine  history.Engine
		refused string // by Reduce
		traffic string // why there is none
		fits    bool   // a server
		room    bool   // the size of the cache is known
		ttft    bool
		lost    float64  // requests of which is not known when they came, which is said
		notes   []string // what is named
	}{
		{engine: history.VLLM, fits: true, room: true, ttft: true},
		{engine: simhistory.V0, fits: true, room: true, ttft: true, notes: []string{"PrefixCacheHits: missing"}},
		{engine: history.SGLang, fits: true, ttft: true, notes: []string{"CacheBlocks: missing"}},
		{engine: history.TGI, fits: true, notes: []string{
			"TTFT: missing", "Prompted: missing", "PrefixCacheHits: missing", "CacheBlocks: missing", "TPOT: counted by request", "TPOT: a request's time per token has its prefill", "KVCacheUsage: has what is reserved",
		}},
		{engine: history.TRTLLM, fits: true, ttft: true, traffic: "the lengths of prompts and answers are not known", notes: []string{
			"PromptTokens: missing", "GenerationTokens: missing", "CacheBlocks: missing", "TPOT: counted by request",
		}},
		{engine: history.Triton, ttft: true, traffic: "the lengths of prompts and answers are not known", notes: []string{
			"TPOT: missing: recorded times between tokens are not known: a server cannot be calibrated", "PromptTokens: missing", "GenerationTokens: missing",
		}},
		{engine: history.LlamaCPP, refused: "what came cannot be known"},
		{engine: history.Dynamo, ttft: true, lost: 60, notes: []string{"Running: a frontend counts for all of its workers", "Finished: 1 pods have counts from before"}},
	} {
		t.Run(string(row.engine), func(t *testing.T) {
			r, err := simhistory.RecordAs(t.Context(), row.engine, s, scheduled(s), 1)
			require.NoError(t, err)
			f, err := history.Reduce(dumped(t, r))
			if row.refused != "" {
				require.ErrorContains(t, err, row.refused)
				return
			}
			require.NoError(t, err)
			var said []string
			for _, note := range f.Notes {
				said = append(said, note.String())
			}
			for _, want := range row.notes {
				require.Contains(t, strings.Join(said, "\n"), want)
			}
			if row.engine == history.VLLM {
				require.Empty(t, said)
			}

			came, known := f.Requests()
			require.InDelta(t, float64(r.Result.Requests), came, row.lost+1e-6)
			require.Equal(t, row.lost > 0, known < 1)
			hours, known := f.ReplicaHours()
			require.Equal(t, 1.0, known)
			require.InDelta(t, spec(r), hours, 1e-9)
			require.NotEmpty(t, f.Starts)
			for _, start := range f.Starts {
				require.LessOrEqual(t, math.Abs(float64(start.Took()-100*time.Second)), float64(15*time.Second), "%s", start.Pod)
			}
			if _, _, err = f.Workload(); row.traffic != "" {
				require.ErrorContains(t, err, row.traffic)
			} else {
				require.NoError(t, err)
				if row.lost == 0 {
					distributions(t, r, f)
				}
			}
			if row.traffic != "" && row.ttft { // in seconds, whatever the engine's unit is
				sum, n := 0.0, 0.0
				for _, o := range r.Done {
					sum, n = sum+o.TTFT.Seconds(), n+1
				}
				var all history.Mixture
				for _, span := range f.Spans {
					all = append(all, span.TTFT...)
				}
				require.InEpsilon(t, sum/n, all.Mean(), 0.02)
			}

			for _, given := range []int64{0, server.KVTokens} {
				d, err := calibrate.Fit(f.Points(), calibrate.Options{KVTokens: given})
				if !row.fits {
					require.ErrorIs(t, err, calibrate.ErrTooLittle)
					continue
				}
				require.NoError(t, err)
				room := row.room || given > 0
				require.Equal(t, room, d.KVTokens.Known())
				require.True(t, d.Base.Known())
				require.InEpsilon(t, server.Base, d.Base.Value, 0.05)
				for name, e := range map[string]struct {
					got   calibrate.Estimate
					truth float64
				}{
					"prefill": {d.PrefillToken, server.PrefillToken}, "sequence": {d.Sequence, server.Sequence}, "cache": {d.KVToken, server.KVToken},
				} {
					if name == "cache" && !room {
						require.False(t, e.got.Known())
						continue
					}
					require.LessOrEqual(t, e.got.Lower, e.truth*1.0001, name)
					require.GreaterOrEqual(t, e.got.Upper, e.truth*0.9999, name)
					require.Less(t, e.got.Value, 20*e.truth, name)
					if e.got.Known() {
						require.InEpsilon(t, e.truth, e.got.Value, 0.05, name)
					}
				}
			}
		})
	}
}

// TestDynamosFrontendsAreNoReplicas: without Kubernetes nothing is said of how many there were, and no server is calibrated by what a
// frontend counts for several workers.
func TestDynamosFrontendsAreNoReplicas(t *testing.T) {
	s := scenario(sim.Qwen32B(), bursts(), 0)
	r, err := simhistory.RecordAs(t.Context(), history.Dynamo, s, scheduled(s), 1)
	require.NoError(t, err)
	d := dumped(t, r)
	kept := d.Series[:0]
	for _, one := range d.Series {
		if !strings.HasPrefix(one.Family, "kube_") && one.Signal != history.KVCacheUsage {
			kept = append(kept, one)
		}
	}
	d.Series = kept
	f := reduced(t, d)
	_, known := f.ReplicaHours()
	require.Zero(t, known)
	for _, n := range f.Ready {
		require.True(t, math.IsNaN(n))
	}
	require.Empty(t, f.Starts)
	require.Empty(t, f.Points())
}
