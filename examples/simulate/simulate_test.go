package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// start runs the program with the given arguments and returns its exit code and output.
func start(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// tiny is a scenario of a few hundred requests, with two policies.
func tiny(more ...string) []string {
	return append([]string{
		"-from", "24m", "-to", "30m", "-rate-scale", "3", "-max", "6", "-min", "1", "-cold-start", "30s", "-seeds", "2",
		"-policy", "realtime/kaito,llm-d/slo-aware", "-report", "",
	}, more...)
}

// TestNoFleetMayBeEnough: the demand is up to five replicas, and with four of them 99.4 % is attained, with three 80 %.
func TestNoFleetMayBeEnough(t *testing.T) {
	long.Skip(t)
	for most, warns := range map[string]bool{"3": true, "4": false} {
		code, out, errs := start(t, tiny("-max", most, "-seeds", "1", "-policy", "realtime/kaito")...)
		require.Equal(t, exitOK, code, errs)
		require.Contains(t, out, "the demand is 4 to 5 replicas")
		require.Equal(t, warns, strings.Contains(out, "beyond -max "+most+": no fleet may be enough"))
	}
}

func TestTable(t *testing.T) {
	long.Skip(t)
	code, out, errs := start(t, tiny("-kinds")...)
	require.Equal(t, exitOK, code, errs)
	require.NotContains(t, out, "\x1b[", "no colour but on a terminal")
	errs = regexp.MustCompile(`(?m)^simulate: .*: \d+ of \d+ runs after .*\n`).ReplaceAllString(errs, "") // on a slow machine
	require.Empty(t, errs, "no bar but on a terminal")
	scalingtest.Golden(t, "tiny.txt", out)
}

func TestJSONIsTheSameOnOneAndTwoCores(t *testing.T) {
	file := func(name string) string { return filepath.Join(t.TempDir(), name) }
	one, two := file("one.json"), file("two.json")
	for parallel, name := range map[string]string{"1": one, "2": two} {
		code, _, errs := start(t, tiny("-parallel", parallel, "-json", name, "-kinds")...)
		require.Equal(t, exitOK, code, errs)
	}
	a, err := os.ReadFile(one)
	require.NoError(t, err)
	b, err := os.ReadFile(two)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
	require.NotContains(t, string(a), `"timeline"`)
	scalingtest.Golden(t, "tiny.json.txt", digest(t, a))
}

// digest is a document's shape and its main numbers: a golden file that people can read.
func digest(t *testing.T, data []byte) string {
	t.Helper()
	var shape map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &shape))
	var d struct {
		Alpha           float64
		Seeds           int
		Capacity        struct{ PerSecond float64 }
		Floor           []float64
		Policies, Kinds []result
	}
	require.NoError(t, json.Unmarshal(data, &d))
	var b strings.Builder
	fmt.Fprintf(&b, "fields %s\n", strings.Join(slices.Sorted(maps.Keys(shape)), " "))
	fmt.Fprintf(&b, "alpha %g, seeds %d, capacity %.4f/s, floor %.4f h\n", d.Alpha, d.Seeds, d.Capacity.PerSecond, d.Floor)
	for _, lines := range [][]result{d.Policies, d.Kinds} {
		for _, l := range lines {
			ratio := "none"
			if l.Ratio != nil {
				ratio = fmt.Sprintf("%.4f", l.Ratio.Mean)
			}
			fmt.Fprintf(&b, "%-18s %-9s attains %-5t %.4f at %.4f h, ratio %s, %d runs, %d requests\n", l.Name, l.Sort, l.Attains,
				l.Attainment.Mean, l.ReplicaHours.Mean, ratio, len(l.Results), l.Results[0].Requests)
		}
	}
	return b.String()
}

func TestReport(t *testing.T) {
	long.Skip(t)
	name := filepath.Join(t.TempDir(), "report.html")
	code, out, errs := start(t, tiny("-report", name, "-kinds")...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "Report with pictures: "+name)
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	page := string(data)

	t.Run("needs nothing from elsewhere", func(t *testing.T) {
		for _, word := range []string{"http:", "https:", "src=", "href=", "@import", "url(", "<script"} {
			require.NotContains(t, page, word)
		}
	})
	t.Run("is well-formed", func(t *testing.T) {
		d := xml.NewDecoder(strings.NewReader(page))
		d.Entity = xml.HTMLEntity
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
	})
	t.Run("every picture has a title and a description", func(t *testing.T) {
		pictures := regexp.MustCompile(`<svg[^>]*>`).FindAllString(page, -1)
		titled := regexp.MustCompile(`<svg viewBox="[^"]+" role="img" aria-labelledby="(\w+)-t (\w+)-d"><title id="\w+-t">[^<]+</title><desc id="\w+-d">[^<]+</desc>`).FindAllString(page, -1)
		require.Len(t, titled, len(pictures))
		require.Len(t, pictures, 3+7, "cost, load, times, and one for each line of the table")
	})
	t.Run("ids are used once", func(t *testing.T) {
		seen := map[string]bool{}
		for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
			require.False(t, seen[id[1]], id[1])
			seen[id[1]] = true
		}
	})
	t.Run("letters are large enough", func(t *testing.T) {
		for _, size := range regexp.MustCompile(`font-size:([0-9.]+)px`).FindAllStringSubmatch(page, -1) {
			require.Contains(t, []string{"11", "12"}, size[1])
		}
	})
}

func TestExplain(t *testing.T) {
	long.Skip(t)
	code, out, errs := start(t, tiny("-explain")...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "== replay oracle, seed 1\n00:")
	require.Regexp(t, `(?m)^00:\d\d:\d\d  (Up|Down) \d -> \d$`, out)
	require.Contains(t, out, "== static 1, seed 1\nno change\n")

	e := explanation{origin: midnight()}
	up := scaling.HoldAt(2)
	up.To(3, "More", "")
	e.note(midnight().Add(50*time.Hour+time.Minute+time.Second), &scaling.GroupObservation{Targets: make([]scaling.TargetObservation, 1)}, &scaling.GroupDecision{Targets: []scaling.Decision{up}})
	require.Contains(t, e.text.String(), "50:01:01  Up 2 -> 3\n", "clocks go on after a day")
}

func TestConfig(t *testing.T) {
	long.Skip(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	require.NoError(t, os.WriteFile(file, []byte("policies:\n  - name: mine\n    static: {replicas: 3}\n"), 0o600))
	code, out, errs := start(t, tiny("-config", file)...)
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `(?m)^mine +\d`, out)

	// A document without a name is named after its algorithm, as lines of the comparison are: that was "taken".
	for _, text := range []string{
		"realtime: {metrics: [{source: {engine: VLLM, signal: Waiting}, threshold: {high: 7, low: 2}}]}",
		"{maxReplicas: 5, scaler: {realtime: {profile: kaito}}}",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		code, out, errs := start(t, tiny("-config", file)...)
		require.Equal(t, exitOK, code, errs)
		require.Regexp(t, `(?m)^realtime/kaito of -config +\d`, out)
	}

	for text, says := range map[string]string{
		"policies: [{name: a, static: {}}]":                                                  "mine.yaml:1",
		"policies: [{name: llm-d/slo-aware, static: {replicas: 1}}]":                         "is taken",
		"policies: [{name: static 2, static: {replicas: 1}}]":                                `the name "static 2" is taken`,
		"policies: [{name: replay oracle, static: {replicas: 1}}]":                           `the name "replay oracle" is taken`,
		"policies: [{name: zero-lag reactive, static: {replicas: 1}}]":                       `the name "zero-lag reactive" is taken`,
		`policies: [{name: a, proportional: {metrics: [{source: {name: cpu}, target: 1}]}}]`: `metric "cpu": the simulator has`,
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		code, _, errs := start(t, tiny("-config", file)...)
		require.Equal(t, exitUsage, code, text)
		require.Contains(t, errs, says)
	}
}

// TestRegressionATimetableAboveTheBoundsIsTold: windows above -max were cut down without a word.
func TestRegressionATimetableAboveTheBoundsIsTold(t *testing.T) {
	long.Skip(t)
	file := filepath.Join(t.TempDir(), "mine.yaml")
	require.NoError(t, os.WriteFile(file, []byte("name: mine\ncron: {mode: InWindow, windows: [{name: day, start: 0 8 * * *, end: 0 20 * * *, targetReplicas: 5000}]}\n"), 0o600))
	code, _, errs := start(t, tiny("-config", file, "-max", "8", "-report", "")...)
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, 1, strings.Count(errs, "simulate: warning: "+file+`: policy "mine": scaler.cron.windows[0].targetReplicas: 5000: is above the upper bound, and cut down to 8`), errs)
}

func TestConvertAndReplay(t *testing.T) {
	dir := t.TempDir()
	log, mine := filepath.Join(dir, "log.csv"), filepath.Join(dir, "mine.csv")
	var rows strings.Builder
	rows.WriteString("when,prompt_tokens,completion_tokens\n")
	for i := range 300 {
		at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Second)
		rows.WriteString(at.Format(time.RFC3339) + ",1000,100\n")
	}
	rows.WriteString("2026-03-01T08:10:00Z,1000,0\n")
	require.NoError(t, os.WriteFile(log, []byte(rows.String()), 0o600))
	code, out, errs := start(t, "-convert", log, "-columns", "when,prompt_tokens,completion_tokens", "-o", mine)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "300 requests in 4m59s, of 301 rows")
	require.Contains(t, out, "1 rows skipped: no output tokens")

	code, _, errs = start(t, "-convert", log, "-columns", " when, prompt_tokens,completion_tokens ", "-o", mine)
	require.Equal(t, exitOK, code, errs)
	code, out, errs = start(t, "-convert", log, "-columns", "when,prompt_tokens,completion_tokens", "-o", "-")
	require.Equal(t, exitOK, code, errs)
	data, err := os.ReadFile(mine)
	require.NoError(t, err)
	require.Equal(t, string(data), out)
	require.Contains(t, errs, "300 requests in 4m59s")

	code, out, errs = start(t, "-trace", mine, "-policy", "realtime/kaito", "-seeds", "1", "-max", "3", "-report", "")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "Traffic of mine.csv: 300 requests")
}

func TestListAndSample(t *testing.T) {
	code, out, errs := start(t, "-list")
	require.Equal(t, exitOK, code, errs)
	for _, name := range []string{"azure2023-conversation", "proportional/llm", "llm-d/slo-aware", "llama2-70b-8xa100"} {
		require.Contains(t, out, name)
	}
	code, out, errs = start(t, "-sample")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "policies:")
}

func TestFidelity(t *testing.T) {
	long.Skip(t)
	code, out, errs := start(t, "-scenario", "ramp", "-seeds", "1", "-policy", "llm-d/slo-aware", "-report", "")
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `Qwen3-32B on 2 H100 +96\.\d ±\d\.\d %  5\.\d\d ±\d\.\d\d replicas  PASS`, out)
	require.Error(t, unfaithful([]fidelity{{Server: "x"}}))
	require.NoError(t, unfaithful([]fidelity{{Pass: true}, {Variant: true}}))
}

func TestBadCommandLines(t *testing.T) {
	for _, row := range []struct{ args, says string }{
		{"-nonsense", "flag provided but not defined: -nonsense"},
		{"-seeds many", `invalid value "many" for flag -seeds`},
		{"azure", `unexpected argument "azure"`},
		{"-trace nowhere.csv", `-trace "nowhere.csv": neither a file nor one of`},
		{"-scenario flat", `-scenario "flat": must be ramp`},
		{"-scenario ramp -rate-scale 2", "-rate-scale does not go with -scenario"},
		{"-scenario ramp -trace x", "-trace does not go with -scenario"},
		{"-scenario ramp -prefix-cache PrefixCache", "-prefix-cache does not go with -scenario"},
		{"-disaggregate 0", "-disaggregate 0: must be Gbit/s above 0; Inf is no limit"},
		{"-disaggregate NaN", "-disaggregate NaN: must be Gbit/s above 0"},
		{"-disaggregate 1 -kv-bytes 0", "-kv-bytes 0: must be bytes of a token"},
		{"-disaggregate 1 -kv-latency 2h", "-kv-latency 2h0m0s: must be within 0 and 1h"},
		{"-kv-bytes 5", "-kv-bytes and -kv-latency go with -disaggregate"},
		{"-prefix-cache Best", "must be PrefixCache, LeastLoaded or RoundRobin"},
		{"-prefix-cache PrefixCache", "the requests of -trace azure2023-conversation have no blocks"},
		{"-list -seeds 3", "-seeds does not go with -list"},
		{"-sample -list", "does not go with"},
		{"-convert log.csv", "-convert needs -columns and -o"},
		{"-columns a,b,c", "-columns and -o go with -convert"},
		{"-convert nowhere.csv -columns a,b,c -o x", "-convert: open nowhere.csv"},
		{"-convert nowhere.csv -columns a,b -o x", "must be three"},
		{"-convert nowhere.csv -columns a,,c -o x", "must be three"},
		{"-convert testdata/tiny.txt -columns a,a,c -o x", `-columns: input: "a": must be a column of its own`},
		{"-policy magic", `-policy "magic": must be one of those that -list shows`},
		{"-policy realtime/kaito,realtime/kaito", "is there twice"},
		{"-suite -rows chat/ramp/100s/qwen,chat/ramp/100s/qwen", "-rows: chat/ramp/100s/qwen is there twice"},
		{"-config nowhere.yaml", "-config: open nowhere.yaml"},
		{"-server abacus", `-server "abacus": must be a file, or one of qwen3-32b-2xh100,`},
		{"-profile abacus", `-server "abacus": must be a file, or one of qwen3-32b-2xh100,`},
		{"-profile qwen32b -server qwen32b", "only one of them can be given"},
		{"-server testdata/tiny.txt", "-server: testdata/tiny.txt: "},
		{"-config testdata/tiny.txt", "-config: testdata/tiny.txt:"},
		{"-kv-tokens 5", "-kv-tokens goes with"},
		{"-write-server x", "-write-server goes with"},
		{"-roofline nowhere", `-roofline "nowhere": must be a config.json, or one of llama-3.1-8b`},
		{"-roofline qwen3-32b -card abacus", `-card "abacus": must be one of a10,`},
		{"-card h100", "-card and -cards go with -roofline"},
		{"-calibrate ,a", "-calibrate \",a\": must have no empty entry"},
		{"-calibrate nowhere.json", "-calibrate: open nowhere.json"},
		{"-calibrate x -seeds 2", "-seeds does not go with -calibrate"},
		{"-rate-scale 0", "-rate-scale 0: must be a number above 0"},
		{"-rate-scale NaN", "-rate-scale NaN: must be a number above 0"},
		{"-rate-scale 1e7", "-rate-scale 1e+07: must be a number above 0 and at most 1000000"},
		{"-rate-scale 1e-7", "-rate-scale 1e-07: has no requests"},
		{"-from 10m -to 5m", "-to 5m0s: must be after -from, 10m0s"},
		{"-from -1s", "-from -1s: must not be negative"},
		{"-to 100h", "must be within the trace's length"},
		{"-trace servegen-m-large -to 90s", "must be a multiple of the step 10m0s"},
		{"-cold-start -1s", "-cold-start -1s: must be within 0 and 24h"},
		{"-min 0", "-min 0: must be at least 1"},
		{"-history x -max 0", "-max 0: must be at least 1"},
		{"-history x -min 4 -max 3", "-max 3: must not be below -min, 4"},
		{"-min 4 -max 3", "-max 3: must not be below -min, 4"},
		{"-max 5000", "-max 5000: must be at most 1000"},
		{"-scrape-failures 2", "must be a probability"},
		{"-slo-ttft 0s", "-slo-ttft 0s: must be above 0 and at most 90 days"},
		{"-slo-ttft 2600h", "-slo-ttft 2600h0m0s: must be above 0 and at most 90 days"},
		{"-slo-tpot 0s", "-slo-tpot 0s: must be above 0 and at most 24h"},
		{"-slo-tpot 25h", "-slo-tpot 25h0m0s: must be above 0 and at most 24h"},
		{"-prometheus http://127.0.0.1:1 -model m -tls-ca nowhere", "-tls-ca: open nowhere"},
		{"-prometheus http://127.0.0.1:1 -model m -bearer-token-file nowhere", "-bearer-token-file: open nowhere"},
		{"-prometheus http://127.0.0.1:1 -model m -tls-cert nowhere -tls-key nowhere", "-tls-cert, -tls-key: open nowhere"},
		{"-alpha 1", "-alpha 1: must be above 0 and below 1"},
		{"-seeds 0", "-seeds 0: must be within 1 and 1000"},
		{"-json - -report -", "-json and -report: only one of them can be -"},
		{"-trace .", "-trace: .:1: read .: is a directory"},
		{"-trace testdata/suite-quick.csv", "\n-convert makes a trace of a log with other columns or in another order"},
		{"-slo-ttft 3", `invalid value "3" for flag -slo-ttft: must be a time with its unit`},
		{"-parallel 0", "-parallel 0: must be within 1 and 1024"},
	} {
		code, _, errs := start(t, strings.Fields(row.args)...)
		require.Equal(t, exitUsage, code, row.args)
		require.Contains(t, errs, row.says, row.args)
		require.Contains(t, errs, "simulate -help shows the flags.", row.args)
	}
}

// TestEmptyValues: a flag whose variable a script had not set was passed over, and the bundled trace replayed in its place.
func TestEmptyValues(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"history", "prometheus", "config", "trace", "policy", "calibrate", "roofline", "convert", "lint", "json", "scenario"} {
		code, out, errs := start(t, "-"+name, "", "-to", "2s") // which no mode has but the comparison
		require.Equal(t, exitUsage, code, name)
		require.Contains(t, errs, "-"+name+` "": must not be empty`)
		require.Empty(t, out)
	}
}

func TestHelpHasEveryFlag(t *testing.T) {
	code, out, errs := start(t, "-help")
	require.Equal(t, exitOK, code)
	require.Empty(t, errs)
	require.Contains(t, out, "Simulate shows what scaling algorithms would have cost and how many requests would have met the SLO.")
	for _, name := range flagNames() {
		require.Regexp(t, `(?m)^  (-\w+ \w, )?-`+name+`\b`, out)
	}
}

func TestFailuresOfRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, said bytes.Buffer
	require.Equal(t, exitFail, run(ctx, tiny(), &out, &said))
	require.Equal(t, "simulate: stopped\n", said.String())
}

// TestRegressionWhatCapacityDoesNotTakeIsNoFailure: replicas that start at once, and times to first token of more than an hour, are what
// the flags take. The comparison of all policies failed by them, after its first runs, as capacity takes neither.
func TestRegressionWhatCapacityDoesNotTakeIsNoFailure(t *testing.T) {
	short := []string{"-from", "24m", "-to", "25m", "-max", "6", "-min", "1", "-seeds", "1", "-report", ""}
	code, out, errs := start(t, append(short, "-cold-start", "0")...)
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, "(?m)^capacity ", out)
	code, out, errs = start(t, append(short, "-slo-ttft", "2h")...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "simulate: capacity, which is recommended, is left out: slo.ttft: 2h0m0s: must be above 0 and at most 1h\n")
	require.NotRegexp(t, "(?m)^capacity ", out)
	for _, name := range []string{"recommended", "capacity/no-forecast"} {
		code, _, errs = start(t, append(short, "-slo-tpot", "2h", "-policy", "proportional/llm,"+name)...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errs, "slo.tpot: 2h0m0s: must be above 0 and at most 1h")
	}
}

// TestNoCapacityIsAWarning: where a replica misses the SLO even by itself, there is no demand and nothing that knows it.
// What the policies do is shown all the same.
func TestNoCapacityIsAWarning(t *testing.T) {
	long.Skip(t)
	name := filepath.Join(t.TempDir(), "report.html")
	code, out, errs := start(t, tiny("-slo-ttft", "100ms", "-kinds", "-report", name)...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "Warning: no demand and no oracle, as a replica has no capacity: the SLO cannot be attained")
	require.Contains(t, out, "Warning: no comparison of two kinds of replicas: without a demand")
	require.Regexp(t, `(?m)^static 6 +\d`, out)
	require.Regexp(t, `(?m)^realtime/kaito +\d`, out)
	require.NotContains(t, out, "zero-lag reactive")
	require.NotContains(t, out, "So a replica takes")
	page, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NotContains(t, string(page), "capacity of a replica</td>")
}

// TestNoRatioBelowTheOracle: a static fleet that is ready from the beginning can cost less than the best schedule that
// begins with fewer. It has no ratio, and nothing says that no fleet can.
func TestNoRatioBelowTheOracle(t *testing.T) {
	long.Skip(t)
	dir := t.TempDir()
	args := []string{
		"-cold-start", "10m", "-from", "12m", "-to", "30m", "-seeds", "1", "-policy", "realtime/kaito",
		"-report", filepath.Join(dir, "report.html"), "-json", filepath.Join(dir, "all.json"),
	}
	code, out, errs := start(t, args...)
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `(?m)^static 7 +99\.\S+ .* 2\.10 +– `, out)
	require.Regexp(t, `(?m)^replay oracle +99\.\S+ .* 2\.25 +1\.00 `, out)
	require.Contains(t, out, "No ratio for static 7: ready from the beginning, and cheaper than the oracle, which begins with the 6 replicas")
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "so the optimum of what begins like that is between the floor and")
	data, err := os.ReadFile(filepath.Join(dir, "all.json"))
	require.NoError(t, err)
	var d document
	require.NoError(t, json.Unmarshal(data, &d))
	for _, l := range slices.Concat(d.Policies, d.Sweep) {
		require.True(t, l.Ratio == nil || l.Ratio.Mean >= 1, "%s", l.Name)
	}

	code, out, errs = start(t, "-to", "1m", "-seeds", "1", "-policy", "realtime/kaito", "-report", "")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "by a schedule within 2 and 16 replicas that begins with 3: the best of")
	require.Regexp(t, `(?m)^static 4 +99\.83 `, out)
}

// TestKindsFailAlone: where the two kinds of replicas cannot be compared, the rest is shown with a warning.
func TestKindsFailAlone(t *testing.T) {
	long.Skip(t)
	code, out, errs := start(t, tiny("-kinds", "-slo-tpot", "30ms", "-alpha", "0.5")...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "Warning: no comparison of two kinds of replicas: the SLO cannot be attained")
	require.Contains(t, out, "POLICY")
}

// flagNames returns the names of all flags.
func flagNames() []string {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	new(options).define(flags)
	var names []string
	flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// TestRegressionTimesInWords: an SLO of 1.25 s was shown as 1.3 s, and one of a nanosecond as 1.0000000000000002e-06 ms.
func TestRegressionTimesInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 1: "0.000001 ms", 33_333_333: "33.333333 ms", 100 * time.Millisecond: "100 ms",
		1250 * time.Millisecond: "1.25 s", 3 * time.Second: "3 s", 100 * time.Second: "100 s", 12_345 * time.Millisecond: "12.3 s",
		time.Hour: "60 minutes", 24 * time.Hour: "24 hours", 14 * 24 * time.Hour: "14 days",
	} {
		require.Equal(t, want, inWords(d))
	}
}

// TestRegressionRefusedRequestsAreTold: requests that fit into no replica missed the SLO, and nothing said why the best fleet, too, did
// not attain it.
func TestRegressionRefusedRequestsAreTold(t *testing.T) {
	long.Skip(t)
	trace := filepath.Join(t.TempDir(), "long.csv")
	require.NoError(t, os.WriteFile(trace, []byte("arrival_ms,input_tokens,output_tokens\n0,100,10\n1000,400000,10\n2000,349000,2000\n3000,100,10\n"), 0o600))
	code, out, errs := start(t, "-trace", trace, "-policy", "proportional/hpa", "-seeds", "1", "-max", "2", "-report", "")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "Warning: 2 of 4 requests are refused, and miss the SLO: prompt and answer do not fit into a replica's KV cache, 350,000 tokens.")
	_, out, _ = start(t, tiny()...)
	require.NotContains(t, out, "refused")
}

// TestRegressionCardsAndRowsAreNamed: errors said -roofline: cards: 0, and of rows a part, but not of which.
func TestRegressionCardsAndRowsAreNamed(t *testing.T) {
	for args, says := range map[string]string{
		"-roofline qwen3-32b -cards 0":                           "-cards 0: must be within 1 and 1024",
		"-roofline llama-3.1-70b -card l4 -cards 1":              "-cards 1: must have room for weights of ",
		"-suite -rows chat":                                      `-rows "chat": must be shape/pattern/cold start/server`,
		"-suite -rows chat/ramp/100s/qwen,chat/ramp/100s/abacus": `-rows chat/ramp/100s/abacus: server: "abacus": must be one of `,
	} {
		code, _, errs := start(t, strings.Fields(args)...)
		require.Equal(t, exitUsage, code, args)
		require.True(t, strings.HasPrefix(errs, "simulate: "+says), errs)
	}
}
