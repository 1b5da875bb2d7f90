package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/scaling"
)

// start runs the program with the given arguments and returns its exit code and output.
func start(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// TestDemonstration: the hour shows scale-ups for load and by the floor, a hold, a pod that does not answer and a scale-down, each
// with a true reason. The policy that is recommended serves nearly all in time, by servers that become slower, too; thresholds do not.
func TestDemonstration(t *testing.T) {
	long.Skip(t) // TestDemonstrationTable runs it once
	recommended := []string{"Up AboveCapacity", "Up Behind", "Hold Fresh", "Hold Held", "Up Lifted", "Down BelowCapacity", "missing"}
	thresholds := []string{"Up AboveHigh", "Hold Cooldown", "Up Lifted", "Down BelowLow", "missing"}
	var cost []float64
	for _, row := range []struct {
		args        string
		shows       []string
		least, most float64 // share of the first tokens that are in time after the first ten minutes
	}{
		{"", recommended, 0.99, 1},
		{"-slow 2", recommended, 0.99, 1},
		{"-config data/thresholds.yaml", thresholds, 0.7, 0.95},
	} {
		seen, sum := demonstrated(t, strings.Fields("-json -pace 0 "+row.args)...)
		for _, what := range row.shows {
			require.Positive(t, seen[what], "%s in %v", what, seen)
		}
		require.InDelta(t, 19360, sum.Served, 10, "every request of the trace but those of the last seconds")
		inTime := float64(sum.InTime-sum.EarlyInTime) / float64(sum.Served-sum.Early)
		require.GreaterOrEqual(t, inTime, row.least, row.args)
		require.LessOrEqual(t, inTime, row.most, row.args)
		cost = append(cost, sum.ReplicaSeconds)
	}
	require.Greater(t, cost[1], 1.1*cost[0], "slower servers take more of them")
}

// demonstrated runs the demonstration, and returns how often each verdict and rule was seen.
func demonstrated(t *testing.T, args ...string) (seen map[string]int, sum summary) {
	t.Helper()
	code, out, errs := start(t, args...)
	require.Equal(t, exitOK, code, errs)
	seen = map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<20)
	decisions := 0
	for lines.Scan() {
		var line struct {
			Decision *struct {
				Verdict        string
				From, Replicas int32
				Reason         string
				Steps          []struct {
					Code     string
					From, To int32
					Branch   int
				}
			}
			Observation struct {
				SpecReplicas int32
				Readings     []struct {
					Lower, Upper any // "+Inf" if nothing limits it
					Failed       int
				}
			}
			Missing []string
			Summary *summary
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), lines.Text())
		d := line.Decision
		if d == nil {
			require.NotNil(t, line.Summary)
			sum = *line.Summary
			continue
		}
		decisions++
		require.Equal(t, line.Observation.SpecReplicas, d.From)
		seen[d.Verdict]++
		for _, s := range d.Steps {
			if s.Branch == 0 {
				seen[d.Verdict+" "+s.Code]++
			}
		}
		if r := line.Observation.Readings[0]; r.Failed > 0 {
			seen["missing"]++
			require.NotEqual(t, r.Upper, r.Lower, "a missing pod widens the reading")
			require.Contains(t, line.Missing[0], "Timeout")
		}
	}
	require.Equal(t, 233, decisions)
	require.Equal(t, 233, sum.Decisions)
	return seen, sum
}

func TestDemonstrationTable(t *testing.T) {
	code, out, errs := start(t, "-pace", "0")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "The recommended policy")
	require.Contains(t, out, "TIME       REQ/S  WAITING/POD")
	require.Regexp(t, `Up \d -> 8 .*Lifted morning from=\d < floor=8`, out)
	require.Contains(t, out, "[vllm-1: Timeout]")
	require.Contains(t, out, "233 decisions in 58m0s of traffic")
	require.NotContains(t, out, "\x1b[", "no colour but on a terminal")
}

// TestOutputThatCannotBeWritten is an error, as it is of simulate.
func TestOutputThatCannotBeWritten(t *testing.T) {
	var errs bytes.Buffer
	require.Equal(t, exitFail, run(t.Context(), []string{"-pace", "0", "-config", "data/thresholds.yaml"}, full{}, &errs))
	require.Contains(t, errs.String(), "no space left")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestDemonstrationCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(ctx, nil, &out, &errs))
	require.Contains(t, out.String(), "0 decisions")
}

// serve serves a page on 127.0.0.1.
func serve(t *testing.T, page string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/metrics"
}

// dead returns a URL at which nothing listens.
func dead(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	return s.URL + "/metrics"
}

func TestTargets(t *testing.T) {
	page := func(name string) string {
		data, err := os.ReadFile("../../scrape/testdata/pages/" + name)
		require.NoError(t, err)
		return string(data)
	}
	eight := serve(t, page("constructed-vllm-v1-dp8.txt"))
	gone := dead(t)

	code, out, errs := start(t, "-targets", eight, "-metric", "vllm:num_requests_waiting", "-once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "147 over 8 engines (min 0, max 39)")
	require.Contains(t, out, "mean a target: 147  (1 with a value, 0 without)")

	code, out, errs = start(t, "-targets", eight, "-metric", "vllm:kv_cache_usage_perc", "-once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "0.5708 over 8 engines")
	require.Contains(t, out, "max 0.9077)")

	// A dead target is reported, and widens the interval up to -high.
	code, out, errs = start(t, "-targets", eight+","+gone, "-metric", "vllm:num_requests_waiting", "-once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "[73.5, inf]")
	require.Contains(t, out, "Refused")
	require.Contains(t, out, gone)
	code, out, errs = start(t, "-targets", eight+","+gone, "-high", "10", "-low", "2", "-once", "-json")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, `"reading":{"failed":1,"lower":73.5,"notReady":0,"reused":0,"upper":78.5,"values":1}`)
	require.Contains(t, out, `"reason":"Refused"`)
	require.Contains(t, out, `"reason":"Hold at 2: UpWindow vllm:num_requests_waiting lower=73.5 \u003e high=10, held=15s \u003c window=30s"`)

	code, out, errs = start(t, "-targets", gone, "-once")
	require.Equal(t, exitFail, code)
	require.Contains(t, out, "no value  [Refused:")
	require.Contains(t, errs, "no target ever answered")

	code, out, _ = start(t, "-targets", eight, "-metric", "node_load1", "-once")
	require.Equal(t, exitFail, code)
	require.Contains(t, out, "NotFound")
}

// TestConfig runs an LLMAutoScaler as it stands, in the demonstration and on targets.
func TestConfig(t *testing.T) {
	const manifest = "../llmautoscaler/deploy/samples/proportional.yaml"
	code, out, errs := start(t, "-pace", "0", "-config", manifest)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "The rules are those of "+manifest)
	require.Regexp(t, `Up \d+ -> \d+ +AboveTarget`, out)
	data, err := os.ReadFile("../../scrape/testdata/pages/constructed-vllm-v1-dp8.txt")
	require.NoError(t, err)
	code, out, errs = start(t, "-targets", serve(t, string(data)), "-config", manifest, "-once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "KVCacheUsage\n")
	require.Contains(t, out, "InFlight\n")
	require.Contains(t, out, "AboveTarget")
}

// TestRegressionFlagsAreNamed: errors said metrics[0].high, metrics[0].low, bounds.max and timeout, which nobody typed, and of -min 3 with
// one target: bounds.max: 2: must not be below min 3.
func TestRegressionFlagsAreNamed(t *testing.T) {
	for args, says := range map[string]string{
		"-high 1 -low 2":            "-high 1: must be a number above -low, 2",
		"-high NaN":                 "-high NaN: must be a number above -low, 0",
		"-high Inf":                 "-high +Inf: must be a number above -low, 0",
		"-high 1 -low -1":           "-low -1: must be a number that is not negative",
		"-high 1 -low NaN":          "-low NaN: must be a number that is not negative",
		"-high 1 -min 5 -max 3":     "-max 3: must not be below -min, 5",
		"-interval 5s -timeout 5s":  "-timeout 5s: must be positive and below -interval, 5s",
		"-interval 5s -timeout -1s": "-timeout -1s: must be positive and below -interval, 5s",
	} {
		code, _, errs := start(t, append(strings.Fields(args), "-targets", "http://127.0.0.1:1", "-once")...)
		require.Equal(t, exitUsage, code, args)
		require.Equal(t, "quickstart: "+says+"\n\nquickstart -help shows the flags.\n", errs)
	}
	code, out, errs := start(t, "-targets", "http://127.0.0.1:1", "-once", "-high", "1", "-min", "3")
	require.Equal(t, exitFail, code, errs)
	require.Contains(t, out, "-> 3", "of the smallest count that is allowed")
}

func TestBadCommandLines(t *testing.T) {
	for _, row := range []struct {
		args string
		says string
	}{
		{"-once", "-once goes only with -targets"},
		{"-config nowhere.yaml", "-config: open nowhere.yaml"},
		{"-config main.go", "-config: main.go:"},
		{"-targets http://127.0.0.1:1 -config x.yaml -high 3", "-high does not go with -config"},
		{"-high 3", "-high goes only with -targets"},
		{"-targets http://127.0.0.1:1 -pace 1s", "-pace does not go with -targets"},
		{"http://127.0.0.1:1", `unexpected argument "http://127.0.0.1:1"`},
		{"-pace -1s", "must not be negative"},
		{"-slow 0.5", "-slow 0.5: must be from 1 to 10"},
		{"-slow NaN", "-slow NaN: must be from 1 to 10"},
		{"-targets http://127.0.0.1:1 -slow 2", "-slow does not go with -targets"},
		{"-targets ,", "an entry is empty"},
		{"-targets http://127.0.0.1:1,http://127.0.0.1:1", "is there twice"},
		{"-targets http://127.0.0.1:1 -high 1 -low 2", "-high 1: must be a number above -low, 2"},
		{"-targets http://127.0.0.1:1 -high 1 -min 9 -max 3", "-max 3: must not be below -min, 9"},
		{"-targets http://127.0.0.1:1 -interval 1s -timeout 2s", "-timeout 2s: must be positive and below -interval, 1s"},
		{"-targets http://127.0.0.1:1 -interval 0s", "-interval 0s: must be at least 1ms"},
		{"-targets http://127.0.0.1:1 -interval 1ns", "-interval 1ns: must be at least 1ms"}, // said four rules for times that are no flags
		// The first of these was taken for none, and nothing was decided; the others were cut down to 32 bits.
		{"-targets http://127.0.0.1:1 -once -high 0", "-high 0: must be above 0"},
		{"-targets http://127.0.0.1:1 -once -high 5 -min -4294967295", "-min -4294967295: must not be negative"},
		{"-targets http://127.0.0.1:1 -once -high 5 -max -4294967290", "-max -4294967290: must not be negative"},
		// Of these the first three were asked again and again, one with its password on the screen, and the others did nothing.
		{"-targets localhost:8000", `-targets: "localhost:8000": must be a URL of http or https`},
		{"-targets http://u:secret@127.0.0.1:1", `-targets: "http://u:xxxxx@127.0.0.1:1": must be a URL of http or https without a user`},
		{"-targets http://u:secret@127.0.0.1:1:1", "-targets: entry 1: must be a URL"},
		{"-targets http://127.0.0.1:1 -low 1", "-low goes with -high: without it"}, // said "or -config", with which it is refused
		{"-targets http://127.0.0.1:1 -low 1 -config x", "-low does not go with -config"},
		{"-targets http://127.0.0.1:1 -min 5 -max 2", "-max goes with -high or -config"},
		{"-targets=", `-targets "": must not be empty`},
		{"-config=", `-config "": must not be empty`},
		{"-nonsense", "flag provided but not defined"},
	} {
		code, _, errs := start(t, strings.Fields(row.args)...)
		require.Equal(t, exitUsage, code, row.args)
		require.Contains(t, errs, row.says, row.args)
		require.NotContains(t, errs, "secret")
	}
	code, out, errs := start(t, "-help")
	require.Equal(t, exitOK, code)
	require.Empty(t, errs)
	require.Contains(t, out, "Quickstart shows inferscale at work.")
}

func TestTraceHasEveryRequest(t *testing.T) {
	trace, err := readTrace()
	require.NoError(t, err)
	requests := 0
	for _, a := range trace {
		requests += a.requests
	}
	require.Equal(t, 19366, requests, "every request of the trace")
}

func TestPageFollowsTheServer(t *testing.T) {
	p := newPage(vllmPage, false)
	require.Len(t, p.gauge, 4)
	got := string(p.render(gauges{waiting: 12, running: 16, kvUsage: 0.25}))
	for _, line := range []string{
		`vllm:num_requests_waiting{engine="0",model_name="meta-llama/Llama-3.3-70B-Instruct"} 12`,
		`vllm:num_requests_waiting_by_reason{engine="0",model_name="meta-llama/Llama-3.3-70B-Instruct",reason="capacity"} 12`,
		`vllm:num_requests_running{engine="0",model_name="meta-llama/Llama-3.3-70B-Instruct"} 16`,
		`vllm:kv_cache_usage_perc{engine="0",model_name="meta-llama/Llama-3.3-70B-Instruct"} 0.25`,
	} {
		require.Contains(t, got, line+"\n")
	}
	require.Equal(t, strings.Count(vllmPage, "\n"), strings.Count(got, "\n"), "nothing else changes")
}

// TestRegressionATimetableAboveTheBoundsIsTold: windows above the bounds were cut down without a word.
func TestRegressionATimetableAboveTheBoundsIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	require.NoError(t, os.WriteFile(file, []byte("cron: {mode: InWindow, windows: [{name: day, start: 0 8 * * *, end: 0 20 * * *, targetReplicas: 50}]}\n"), 0o600))
	var says bytes.Buffer
	o := options{config: file}
	_, err := o.configured("", scaling.Bounds{Min: 1, Max: 8}, nil, &says)
	require.NoError(t, err)
	require.Equal(t, "quickstart: warning: "+file+": scaler.cron.windows[0].targetReplicas: 50: is above the upper bound, and cut down to 8\n", says.String())
}

// TestRegressionFieldsOfTheJSONAreDescribed: the README has every field that -json prints, of the demonstration and of targets.
func TestRegressionFieldsOfTheJSONAreDescribed(t *testing.T) {
	long.Skip(t)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("m 3\n")) }))
	defer pod.Close()
	_, demo, _ := start(t, "-json", "-pace", "0")
	_, targets, _ := start(t, "-json", "-once", "-targets", pod.URL+","+pod.URL+"/none:", "-metric", "m", "-high", "2", "-low", "1")
	_, broken, _ := start(t, "-json", "-once", "-timeout", "100ms", "-targets", "http://127.0.0.1:1/metrics", "-metric", "m")
	fields := map[string]bool{}
	var gather func(v any, within string)
	gather = func(v any, within string) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				if within != "numbers" { // whose names are those of the rules
					fields[name] = true
				}
				gather(inner, name)
			}
		case []any:
			for _, inner := range v {
				gather(inner, within)
			}
		}
	}
	for line := range strings.Lines(demo + targets + broken) {
		var v any
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		gather(v, "")
	}
	require.Greater(t, len(fields), 40)
	for name := range fields {
		require.Regexp(t, "(?m)^\\|.*`[a-zA-Z.\\[\\]]*\\b"+name+"\\b", string(readme), name)
	}
}
