package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// TestTrustIsDrawn: a server that is calibrated on the first part of a history is checked on the rest, kept, and used again with
// another trace; with a server that is not the one that was, nothing is ranked, and the report shows why.
func TestTrustIsDrawn(t *testing.T) {
	long.Skip(t)
	r := recordDay(t, sim.Qwen32B(), simhistory.Conversations(2, 14, 3*time.Hour))
	dump := dumpOf(t, r, func(*history.Dump) {})
	dir := t.TempDir()
	file, report := filepath.Join(dir, "server.yaml"), filepath.Join(dir, "report.html")
	with := []string{"-history", dump, "-policy", "proportional/llm", "-seeds", "1"}
	code, out, errs := start(t, append(with, "-write-server", file, "-report", report)...)
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `(?m)^Checked from 2026-01-01 01:48 on: replica-hours (\d+\.\d\d) recorded, (\d+\.\d\d) simulated; 1 of \d hours compared; TTFT p50 off by`, out)
	page, err := os.ReadFile(report)
	require.NoError(t, err)
	require.Contains(t, string(page), `id="trust-t"`)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	d, err := calibrate.Read(text, file)
	require.NoError(t, err)
	require.InEpsilon(t, sim.Qwen32B().Base, d.Base.Value, 0.05)
	require.Equal(t, float64(sim.Qwen32B().KVTokens), d.KVTokens.Value)
	require.NotNil(t, d.Startup)
	code, out, errs = start(t, tiny("-server", file, "-report", "")...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "replicas of my-model, calibrated")
	for _, why := range d.Unknown() {
		require.Contains(t, out, "Warning: -server "+file+": "+why)
	}

	refused := filepath.Join(dir, "refused.html")
	code, out, errs = start(t, append(with, "-server", "llama70b-a100", "-report", refused)...)
	require.Equal(t, exitRefused, code, errs)
	require.Contains(t, errs, "simulate: no verdict: the simulation is not what was recorded, so a ranking by it would be worth nothing:")
	require.Contains(t, errs, "TPOT p50 is off by")
	require.Contains(t, errs, "the simulator is the slower one throughout")
	require.NotContains(t, out, "proportional/llm")
	page, err = os.ReadFile(refused)
	require.NoError(t, err)
	require.Contains(t, string(page), "No verdict: what was cannot be simulated")
	require.Contains(t, string(page), `id="trust-t"`)
}

// TestCheckOfAChosenPart: -to that leaves nothing of what the server was not calibrated by is checked all the same, and says so.
func TestCheckOfAChosenPart(t *testing.T) {
	long.Skip(t)
	r := recordDay(t, sim.Qwen32B(), simhistory.Conversations(2, 9, 4*time.Hour))
	dump := dumpOf(t, r, func(*history.Dump) {})
	code, out, errs := start(t, "-history", dump, "-policy", "proportional/llm", "-seeds", "1", "-report", "", "-to", "2h")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "Warning: the server is checked on a part of what it was calibrated by")
	require.Contains(t, out, "Checked from 2026-01-01 00:00 on: ")
}

// TestPartsOfAHistory: -from between two steps was rounded down without a word, the title had the whole history, a rate of next to
// nothing was an error of the oracle, and the size of a token of a named server was not known.
func TestPartsOfAHistory(t *testing.T) {
	r := recordDay(t, sim.Qwen32B(), simhistory.Conversations(2, 9, 3*time.Hour))
	dump := dumpOf(t, r, func(*history.Dump) {})
	prepared := func(args string) (*options, *world, error) {
		o, err := parse(append([]string{"-history", dump}, strings.Fields(args)...), io.Discard, io.Discard)
		require.NoError(t, err, args)
		p, err := o.load(t.Context(), io.Discard)
		require.NoError(t, err)
		w, err := o.world(p)
		return o, w, err
	}
	for args, says := range map[string]string{
		"-from 1h7s":        "-from 1h0m7s, -to 0s: must be multiples of the history's step, 15s",
		"-to 14s":           "-from 0s, -to 14s: must be multiples of the history's step, 15s",
		"-rate-scale 1e-09": "-rate-scale 1e-09: leaves the history no requests",
	} {
		_, _, err := prepared(args)
		require.ErrorAs(t, err, new(*usageError), args)
		require.EqualError(t, err, says, args)
	}
	_, w, err := prepared("-from 1h -to 2h30m")
	require.NoError(t, err)
	require.Contains(t, w.title, "from 2026-01-01 01:00 to 2026-01-01 02:30 UTC")
	o, _, err := prepared("-server qwen32b -disaggregate 100")
	require.NoError(t, err)
	require.Positive(t, o.tokenBytes())
	o, _, err = prepared("")
	require.NoError(t, err)
	require.Zero(t, o.tokenBytes(), "the server of a history has no name")
}

// TestBoundsOfAHistory: -min above 16 was refused for a -max that had not been given, and -max below the least replicas that there
// were was raised without a word.
func TestBoundsOfAHistory(t *testing.T) {
	r := recordDay(t, sim.Qwen32B(), simhistory.Conversations(2, 9, 3*time.Hour))
	dump := dumpOf(t, r, func(*history.Dump) {})
	fleet := reducedFile(t, dump)
	spec := counts(fleet.Spec)
	low, high := slices.Min(spec), slices.Max(spec)
	require.Greater(t, low, int32(1))
	for args, want := range map[string]scaling.Bounds{
		"":                {Min: low, Max: 2 * high},
		"-min 20":         {Min: 20, Max: max(2*high, 21)},
		"-max 1":          {Min: 1, Max: 1},
		"-min 20 -max 20": {Min: 20, Max: 20},
	} {
		o, err := parse(append([]string{"-history", dump}, strings.Fields(args)...), io.Discard, io.Discard)
		require.NoError(t, err, args)
		p, err := o.load(t.Context(), io.Discard)
		require.NoError(t, err)
		w, err := o.world(p)
		require.NoError(t, err)
		require.Equal(t, want, w.bounds, args)
	}
}

// TestManifestAlone: a manifest on standard output had the table before it.
func TestManifestAlone(t *testing.T) {
	long.Skip(t)
	r := recordDay(t, sim.Qwen32B(), simhistory.Conversations(2, 14, 3*time.Hour))
	dump := dumpOf(t, r, func(*history.Dump) {})
	code, out, errs := start(t, "-history", dump, "-policy", "proportional/llm", "-seeds", "1", "-report", "", "-manifest", "-")
	require.Equal(t, exitOK, code, errs)
	_, err := policy.Read([]byte(out), "manifest")
	require.NoError(t, err)
	require.Contains(t, errs, "POLICY")
}

// TestNoRecordedTimesIsNoTrust: where the engine's times to first token are missing there is nothing to check by, and no ranking.
func TestNoRecordedTimesIsNoTrust(t *testing.T) {
	r := recordDay(t, sim.Qwen32B(), simhistory.Conversations(2, 9, 3*time.Hour))
	dump := dumpOf(t, r, func(d *history.Dump) {
		kept := d.Series[:0]
		for _, s := range d.Series {
			if s.Signal != history.TTFT {
				kept = append(kept, s)
			}
		}
		d.Series = kept
	})
	code, _, errs := start(t, "-history", dump, "-policy", "proportional/llm", "-seeds", "1", "-report", "")
	require.Equal(t, exitRefused, code, errs)
	require.Contains(t, errs, "no hour has as many as 100 requests with times to first token and per token")
}

// TestRooflineIsAServer: it can be used, and says that nobody has measured it.
func TestRooflineIsAServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.yaml")
	code, _, errs := start(t, "-roofline", "qwen3-32b", "-cards", "2", "-o", file)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "measured by nobody")
	code, out, errs := start(t, tiny("-server", file, "-report", "")...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "base: computed from data sheets, and measured by nobody")
}

// TestRegressionTheTailOfMeasuredStarts: -cold-start-tail replaced the starts of a server's file by the default of -cold-start, 100 s.
func TestRegressionTheTailOfMeasuredStarts(t *testing.T) {
	t.Chdir(t.TempDir())
	code, _, errs := start(t, "-roofline", "llama-3.1-8b", "-o", "server.yaml")
	require.Equal(t, exitOK, code, errs)
	text, err := os.ReadFile("server.yaml")
	require.NoError(t, err)
	text = append(text, "startup: {starts: 5, p50: 400, p90: 410, p99: 420, max: 420, p50Lower: 390, p50Upper: 410, source: measured}\n"...)
	require.NoError(t, os.WriteFile("server.yaml", text, 0o600))
	with := func(flags string) (int, string, string) {
		return start(t, append(strings.Fields("-from 24m -to 30m -seeds 1 -policy proportional/llm -server server.yaml "+flags), "-report", "")...)
	}
	code, _, errs = with("-cold-start-tail")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "-cold-start-tail goes with -cold-start where the starts are those of a history or of the file of -server")
	for flags, says := range map[string]string{"": "cold starts around 400 s", "-cold-start 200s -cold-start-tail": "cold starts around 200 s"} {
		code, out, errs := with(flags)
		require.Equal(t, exitOK, code, errs)
		require.Contains(t, out, says)
	}
}

// TestCalibrateByBenchmark: a benchmark's files become a file for -server.
func TestCalibrateByBenchmark(t *testing.T) {
	dir := t.TempDir()
	law := calibrate.Law{Base: 0.01, PrefillToken: 5e-5, Sequence: 1e-4, KVToken: 2e-8}
	table := "rate,input,output,itl\n"
	for i := range 12 {
		rate, input, output := 0.5+float64(i%3), 200+1500*float64(i%4), 200+300*float64(i%5)
		itl := law.Base
		for range 200 {
			running := rate * (output - 1) * itl
			itl = law.ITL(running+1, (running+1)*(input+output/2), rate*input)
		}
		table += fmt.Sprintf("%g,%g,%g,%g\n", rate, input, output, itl)
	}
	runs, file := filepath.Join(dir, "runs.csv"), filepath.Join(dir, "server.yaml")
	require.NoError(t, os.WriteFile(runs, []byte(table), 0o600))
	code, _, errs := start(t, "-calibrate", runs, "-kv-tokens", "400000", "-o", file)
	require.Equal(t, exitOK, code, errs)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	d, err := calibrate.Read(text, file)
	require.NoError(t, err)
	require.Equal(t, calibrate.Benchmark, d.Base.Source)
	require.Equal(t, calibrate.Given, d.KVTokens.Source)
	require.InEpsilon(t, law.Base, d.Base.Value, 0.1)
	code, _, errs = start(t, tiny("-server", file, "-report", "")...)
	require.Equal(t, exitOK, code, errs)
	code, _, errs = start(t, "-calibrate", runs, "-kv-tokens", "200000", "-o", file)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "2 of 12 runs are left out: "+calibrate.NearlyFull)
	code, _, errs = start(t, "-calibrate", file)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "is none of")
}
