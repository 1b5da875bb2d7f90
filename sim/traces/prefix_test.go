package traces_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/traces"
)

const mooncake = `{"timestamp": 27482, "input_length": 1600, "output_length": 52, "hash_ids": [46, 47, 48, 2353]}
{"timestamp": 30535.5, "input_length": 1536, "output_length": 26, "hash_ids": [46, 47, 9], "more": {"of": 1}}

{"input_length": 5, "timestamp": 30536, "output_length": 1}
`

// TestReadMooncake: requests with the ids of their blocks but the last, where it is not full; times as they are.
func TestReadMooncake(t *testing.T) {
	w, err := traces.Read(strings.NewReader(mooncake), "m.jsonl")
	require.NoError(t, err)
	require.Equal(t, sim.Trace{Length: 31 * time.Second, Requests: []sim.Request{
		{At: 27482 * time.Millisecond, Input: 1600, Output: 52, Blocks: []uint64{46, 47, 48}},
		{At: 30535500 * time.Microsecond, Input: 1536, Output: 26, Blocks: []uint64{46, 47, 9}},
		{At: 30536 * time.Millisecond, Input: 5, Output: 1},
	}}, w)
	w, err = traces.Read(strings.NewReader(compress(t, mooncake)), "m.jsonl.gz")
	require.NoError(t, err)
	require.Len(t, w.(sim.Trace).Requests, 3)
	for _, before := range []string{"\n", "\r\n", " ", "\ufeff\n\t \r\n  ", strings.Repeat("\n", 4000)} {
		other, err := traces.Read(strings.NewReader(before+strings.ReplaceAll(mooncake, "\n", " \r\n \n")), "m.jsonl")
		require.NoError(t, err, "%q", before)
		require.Equal(t, w, other)
	}
}

// TestReadMooncakeErrors: each mistake is named with its line, field, value and rule.
func TestReadMooncakeErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"timestamp": 1, "input_length": 2}`:                                                                                        `m:1: output_length "": must be a whole number of at least 1`,
		`{"timestamp": -1, "input_length": 2, "output_length": 2}`:                                                                   `m:1: timestamp "-1": must be a number that is not negative, in digits`,
		`{"timestamp": 1, "input_length": 2.5, "output_length": 2}`:                                                                  `m:1: input_length "2.5": must be a whole number of at least 1`,
		`{"timestamp": 1, "input_length": 512, "output_length": 2, "hash_ids": [1, 2]}`:                                              `m:1: hash_ids "2": must have at most one id for each 512 tokens of the prompt`,
		`{"timestamp": 2, "input_length": 1, "output_length": 2}` + "\n" + `{"timestamp": 1, "input_length": 1, "output_length": 2}`: `m:2: timestamp "1": must not be before the arrival above it, 2`,
		`{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [-1]}`:                                                  `m:1: must be an object with timestamp, input_length and output_length, numbers, and hash_ids, a list of whole numbers that are not negative`,
		`{"timestamp": 0, "input_length": 1, "output_length": 1, "timestamp": 9}`:                                                    `m:1: must have each field once`,
		"\n \n{}": `m:3: timestamp "": must be a number that is not negative, in digits`,
		`{"timestamp": 0, "input_length": 1, "output_length": 1, "Input_Length": 7}`: `m:1: must have each field once`,
		`{"timestamp": 1` + strings.Repeat(" ", 1<<20):                               `m:1: must not have a record of more than 1048576 bytes`,
	} {
		w, err := traces.Read(strings.NewReader(text), "m")
		require.EqualError(t, err, want)
		require.Nil(t, w)
	}
}

// TestManyBlocks: a short file whose prompts are as long as they can be does not take all the memory there is.
func TestManyBlocks(t *testing.T) {
	text := "arrival_ms,input_tokens,output_tokens,cached_prefix_blocks_512\n" + strings.Repeat("0,2147483647,1,0\n", 100)
	_, err := traces.Read(strings.NewReader(text), "c.csv")
	require.EqualError(t, err, "c.csv:6: must have at most 20000000 blocks of prompts")
}

// TestCachedPrefixBlocks: ids are made up so that a prompt begins as the latest one that is as long as what it has in common
// with some prompt before it.
func TestCachedPrefixBlocks(t *testing.T) {
	const header = "arrival_ms,input_tokens,output_tokens,cached_prefix_blocks_512\n"
	w, err := traces.Read(strings.NewReader(header+"0,1536,1,0\n1,1024,1,0\n2,2100,1,3\n3,600,1,2\n4,1024,1,2\n"), "c.csv")
	require.NoError(t, err)
	var blocks [][]uint64
	for _, r := range w.(sim.Trace).Requests {
		blocks = append(blocks, r.Blocks)
	}
	require.Equal(t, [][]uint64{{1, 2, 3}, {4, 5}, {1, 2, 3, 6}, {1}, {1, 2}}, blocks)
	for _, wrong := range []string{"0,1536,1,1\n", "0,1536,1,0\n1,1024,1,3\n", "0,1024,1,0\n1,2048,1,3\n"} {
		_, err = traces.Read(strings.NewReader(header+wrong), "c.csv")
		require.ErrorContains(t, err, "must be at most the blocks of this prompt and of one above it")
	}
}

// TestMooncakeSynthetic: one instance with an endless cache that serves one request at a time hits what the trace says: 65.0 %
// of all prompt tokens, or 65.9 % of the blocks that prompts fill. A list of all blocks before gives the same.
func TestMooncakeSynthetic(t *testing.T) {
	trace, err := traces.MooncakeSynthetic()
	require.NoError(t, err)
	seen := map[uint64]bool{}
	tokens, blocks, hits, full := int64(0), int64(0), int64(0), int64(0)
	for _, r := range trace.Requests {
		tokens += int64(r.Input)
		blocks += int64(len(r.Blocks))
		for i, prefix := 0, true; i < len(r.Blocks); i++ {
			if prefix = prefix && seen[r.Blocks[i]]; prefix {
				full++
				if (int32(i)+1)*traces.BlockTokens < r.Input { // the last token is computed anew
					hits += traces.BlockTokens
				}
			}
			seen[r.Blocks[i]] = true
		}
	}
	require.InDelta(t, 0.650, float64(hits)/float64(tokens), 0.0005)
	require.InDelta(t, 0.659, float64(full)/float64(blocks), 0.0005)
	require.InDelta(t, traces.PrefixShare(trace), float64(hits)/float64(tokens), 1e-12)

	r := replay(t, trace, sim.Server{Base: 1e-6, MaxSeqs: 1, TokenBudget: 1 << 30, KVTokens: 1e9}, 1, sim.LeastLoaded)
	require.Equal(t, hits, r.PrefixHits)
	require.Equal(t, tokens, r.PrefixQueries)
}

// TestRoutersKeepPrefixes: with the KV memory of two H100 each and eight replicas, the router that knows the caches finds more
// of the prompts there than the others, and never more than there is.
func TestRoutersKeepPrefixes(t *testing.T) {
	trace, err := traces.MooncakeSynthetic()
	require.NoError(t, err)
	share := map[sim.Router]float64{}
	for _, router := range []sim.Router{sim.LeastLoaded, sim.RoundRobin, sim.PrefixCache} {
		r := replay(t, trace, sim.Qwen32B(), 8, router)
		share[router] = float64(r.PrefixHits) / float64(r.PrefixQueries)
		t.Logf("%-12s hits %.1f %%, TTFT p50 %.2f s, p99 %.2f s", router, 100*share[router], r.TTFT.P50, r.TTFT.P99)
		require.Less(t, share[router], traces.PrefixShare(trace))
	}
	require.Greater(t, share[sim.PrefixCache], share[sim.LeastLoaded]+0.1)
	require.Greater(t, share[sim.PrefixCache], share[sim.RoundRobin]+0.1)
}

func replay(t *testing.T, trace sim.Trace, server sim.Server, replicas int32, router sim.Router) sim.Result {
	t.Helper()
	s := sim.Ramp()
	s.Workload, s.Router, s.BlockTokens, s.Horizon = trace, router, traces.BlockTokens, 0
	s.Types[0].Server, s.Types[0].Initial = server, replicas
	r, err := sim.Run(context.Background(), &s, func() (scaling.Group, error) { return sim.Static(replicas), nil }, sim.Options{Seed: 1})
	require.NoError(t, err)
	require.EqualValues(t, len(trace.Requests), r.Requests)
	return r
}

// TestRegressionNoPromptsShareNothing: the share of a trace without requests was NaN.
func TestRegressionNoPromptsShareNothing(t *testing.T) {
	require.Zero(t, traces.PrefixShare(sim.Trace{}))
}
