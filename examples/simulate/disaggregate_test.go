package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
)

// TestDisaggregate: the table and the report have the smallest fleet of both pools, the policies that scale the two apart and the
// fleet for both; a slower link makes second tokens later and no first token.
func TestDisaggregate(t *testing.T) {
	long.Skip(t)
	second := map[string]float64{}
	for _, gigabits := range []string{"Inf", "100", "20"} {
		dir := t.TempDir()
		all, report := filepath.Join(dir, "all.json"), filepath.Join(dir, "report.html")
		code, out, errs := start(t, tiny("-disaggregate", gigabits, "-json", all, "-report", report)...)
		require.Equal(t, exitOK, code, errs)
		require.Contains(t, out, "Prefill and decode apart: one replica writes the first token")
		require.Regexp(t, `The smallest fleet that attains 99 % without being scaled prefills with [1-6] and decodes with [1-6]\.`, out)
		for _, line := range []string{`together, static [1-6] `, `prefill [1-6], decode [1-6] `, `proportional/llm `, `llm-d/token-aware `} {
			require.Regexp(t, `(?m)^`+line, out)
		}
		data, err := os.ReadFile(report)
		require.NoError(t, err)
		require.Contains(t, string(data), "<h2>Prefill and decode apart</h2>")
		data, err = os.ReadFile(all)
		require.NoError(t, err)
		var d document
		require.NoError(t, json.Unmarshal(data, &d))
		require.Len(t, d.Apart, 4)
		for _, l := range d.Apart {
			if l.Name == "llm-d/token-aware" {
				second[gigabits] = l.Results[0].SecondToken.P50
				require.Len(t, l.Results[0].Types, 2)
				require.Positive(t, l.Results[0].Transfers)
			}
		}
	}
	require.Less(t, second["Inf"], second["100"])
	require.Less(t, second["100"], second["20"])
}

// TestDisaggregateBeyondReach: where no counts within the bounds attain the goal, that is said, and the policies are still shown.
func TestDisaggregateBeyondReach(t *testing.T) {
	long.Skip(t)
	code, out, errs := start(t, tiny("-disaggregate", "0.1")...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "Warning: prefill and decode apart attain 99 % with no counts up to -max 6 each.")
	require.Contains(t, out, "links of 0.1 Gbit/s")
	require.Regexp(t, `(?m)^llm-d/token-aware `, out)
}

// TestDisaggregateNeedsBytes: of a server of a file it is not known how much a token's KV cache is.
func TestDisaggregateNeedsBytes(t *testing.T) {
	long.Skip(t)
	file := filepath.Join(t.TempDir(), "server.yaml")
	code, _, errs := start(t, "-roofline", "llama-3.1-8b", "-o", file)
	require.Equal(t, exitOK, code, errs)
	code, _, errs = start(t, "-disaggregate", "100", "-server", file)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "-disaggregate needs -kv-bytes, the KV cache of a token")
	code, out, errs := start(t, tiny("-disaggregate", "100", "-server", file, "-kv-bytes", "131072", "-kv-latency", "1ms")...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "131072 bytes a token over links of 100 Gbit/s")
}
