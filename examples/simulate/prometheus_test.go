package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/internal/simhistory/promtest"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

func recordDay(t *testing.T, server sim.Server, w sim.Workload) *simhistory.Recording {
	t.Helper()
	s := simhistory.Production(server, w)
	r, err := simhistory.Record(t.Context(), s, func() (scaling.Group, error) {
		return sim.Schedule(s.Begin(), 20*time.Minute, []int32{3, 4, 3, 5, 4, 3}), nil
	}, 1)
	require.NoError(t, err)
	return r
}

// TestRoundTripThroughPrometheus simulates fleets, fills a real Prometheus with what would have been scraped of them, and
// imports it.
func TestRoundTripThroughPrometheus(t *testing.T) {
	long.Skip(t)
	promtest.Programs(t)
	for _, row := range []struct {
		server    sim.Server
		low, high float64
	}{
		{sim.Qwen32B(), 1.5, 10}, {sim.Llama70BA100(), 1, 8}, {sim.Llama70BH100x4(), 1, 9},
	} {
		t.Run(row.server.Name, func(t *testing.T) {
			r := recordDay(t, row.server, simhistory.Conversations(row.low, row.high, 12*time.Hour))
			// All is imported from the first scrape to the last, so the requests that came are those that the simulator had.
			p := &remote{url: promtest.Serve(t, r), options: history.Options{Model: simhistory.Model}, maxSeries: 50_000, maxBytes: 1 << 30, end: r.End, length: r.End.Sub(r.Start), stderr: io.Discard}
			d, err := p.fetch(t.Context())
			require.NoError(t, err)
			require.Equal(t, history.VLLM, d.Engine, "found out")
			require.Equal(t, simhistory.Workload, d.Workload, "found out")

			// What a Prometheus answers is what the recording would.
			var answered, direct bytes.Buffer
			require.NoError(t, d.Write(&answered))
			want, err := r.Dump()
			require.NoError(t, err)
			require.NoError(t, want.Write(&direct))
			engines := func(text string) string { // kube-state-metrics is looked for within a minute
				lines := strings.Split(text, "\n")
				return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "kube_") }), "\n")
			}
			require.True(t, engines(direct.String()) == engines(answered.String()), "what Prometheus answers is what was scraped")
			require.NotContains(t, answered.String(), "127.0.0.1")
			require.NotContains(t, answered.String(), "10.0.0.1")

			f, err := history.Reduce(d)
			require.NoError(t, err)
			requests, known := f.Requests()
			require.Equal(t, 1.0, known)
			require.InDelta(t, float64(r.Result.Requests), requests, 1e-6)
			sum := 0.0
			for i, n := range f.Arrivals {
				sum += n
				require.InDelta(t, r.Arrived[i], sum, math.Max(10, 3*math.Sqrt(r.Arrived[i])), "interval %d", i) // scrapes fail
			}
			hours, known := f.ReplicaHours()
			require.Equal(t, 1.0, known)
			exact := 0.0
			for _, n := range r.Spec {
				exact += n * r.Scrape.Hours()
			}
			require.InDelta(t, exact, hours, 1e-9)
			require.NotEmpty(t, f.Starts)
			for _, s := range f.Starts {
				require.InDelta(t, 100, s.Took().Seconds(), 15, s.Pod)
			}
			server, err := calibrate.Fit(f.Points(), calibrate.Options{})
			require.NoError(t, err)
			for _, c := range []struct {
				name string
				got  calibrate.Estimate
				want float64
			}{
				{"base", server.Base, row.server.Base},
				{"prefill", server.PrefillToken, row.server.PrefillToken},
				{"sequence", server.Sequence, row.server.Sequence},
				{"kv", server.KVToken, row.server.KVToken},
				{"cache", server.KVTokens, float64(row.server.KVTokens)},
			} {
				if c.got.Known() { // or else the interval says what would do as well
					require.InDelta(t, c.want, c.got.Value, 0.05*c.want, c.name)
				}
				require.LessOrEqual(t, c.got.Lower, c.want*1.0001, c.name)
				require.GreaterOrEqual(t, c.got.Upper, c.want*0.9999, c.name)
			}
			require.True(t, server.Base.Known() && server.PrefillToken.Known() && server.KVTokens.Known(), "%v", server.Unknown())
		})
	}
}

// TestEnginesThroughPrometheus: under the names, labels and units of other engines too what a Prometheus answers is what was scraped.
func TestEnginesThroughPrometheus(t *testing.T) {
	long.Skip(t)
	promtest.Programs(t)
	for _, row := range []struct {
		engine  history.Engine
		options history.Options
		given   string // -engine, where series name no model
		says    string
	}{
		{engine: history.SGLang, options: history.Options{Model: simhistory.Model}},
		{engine: simhistory.V0, options: history.Options{Model: simhistory.Model}},
		{engine: history.TGI, options: history.Options{Namespace: simhistory.Namespace}, given: "TGI"},
		{engine: history.Dynamo, options: history.Options{Model: simhistory.Model}, says: "-workload: cannot be told"},
	} {
		t.Run(string(row.engine), func(t *testing.T) {
			s := simhistory.Production(sim.Qwen32B(), simhistory.Conversations(2, 8, time.Hour))
			r, err := simhistory.RecordAs(t.Context(), row.engine, s, func() (scaling.Group, error) {
				return sim.Schedule(s.Begin(), 20*time.Minute, []int32{3, 4, 3}), nil
			}, 1)
			require.NoError(t, err)
			var says bytes.Buffer
			p := &remote{url: promtest.Serve(t, r), engine: row.given, options: row.options, maxSeries: 50_000, maxBytes: 1 << 30, end: r.End, length: r.End.Sub(r.Start), stderr: &says}
			d, err := p.fetch(t.Context())
			require.NoError(t, err)
			want, err := r.Dump()
			require.NoError(t, err)
			require.Equal(t, want.Engine, d.Engine)
			require.Contains(t, says.String(), row.says)
			texts := func(d *history.Dump) (all []string) {
				for _, one := range d.Series {
					if !strings.HasPrefix(one.Family, "kube_") { // looked for within a minute
						text, err := json.Marshal(&one)
						require.NoError(t, err)
						all = append(all, string(text))
					}
				}
				slices.Sort(all)
				return all
			}
			answered, direct := texts(d), texts(want)
			require.Len(t, answered, len(direct))
			for i := range direct {
				require.True(t, direct[i] == answered[i], "%.300s\n%.300s", direct[i], answered[i])
			}
		})
	}
}

// TestKubernetesWhoseLabelsAreRenamed: where Prometheus does not honour the labels of kube-state-metrics, it has its own pod and
// namespace in them, and those of the object in exported_pod and exported_namespace. No replica and no start was found then.
func TestKubernetesWhoseLabelsAreRenamed(t *testing.T) {
	long.Skip(t)
	promtest.Programs(t)
	s := simhistory.Production(sim.Qwen32B(), simhistory.Conversations(2, 8, time.Hour))
	r, err := simhistory.Record(t.Context(), s, func() (scaling.Group, error) {
		return sim.Schedule(s.Begin(), 20*time.Minute, []int32{3, 4, 3}), nil
	}, 1)
	require.NoError(t, err)
	p := &remote{options: history.Options{Model: simhistory.Model}, maxSeries: 50_000, maxBytes: 1 << 30, end: r.End, length: r.End.Sub(r.Start), stderr: io.Discard}
	p.url = promtest.Serve(t, r)
	honoured, err := p.fetch(t.Context())
	require.NoError(t, err)
	for _, one := range r.Series {
		if !strings.HasPrefix(one.Name, "kube_") {
			continue
		}
		if pod := one.Labels["pod"]; pod != "" {
			one.Labels["exported_pod"] = pod
		}
		one.Labels["exported_namespace"] = one.Labels["namespace"]
		one.Labels["namespace"], one.Labels["pod"] = "monitoring", "kube-state-metrics-0"
	}
	p.url = promtest.Serve(t, r)
	renamed, err := p.fetch(t.Context())
	require.NoError(t, err)
	var want, got bytes.Buffer
	require.NoError(t, honoured.Write(&want))
	require.NoError(t, renamed.Write(&got))
	require.True(t, want.String() == got.String(), "the same is answered under other labels")
	f, err := history.Reduce(renamed)
	require.NoError(t, err)
	require.NotEmpty(t, f.Starts)
	_, known := f.ReplicaHours()
	require.Equal(t, 1.0, known)
}

// TestVerdictFromPrometheus is the command of the README.
func TestVerdictFromPrometheus(t *testing.T) {
	long.Skip(t)
	promtest.Programs(t)
	r := recordDay(t, sim.Qwen32B(), simhistory.Conversations(2, 9, 3*time.Hour))
	url := promtest.Serve(t, r)
	dir := t.TempDir()
	dump, one, two := filepath.Join(dir, "past.json.gz"), filepath.Join(dir, "one.json"), filepath.Join(dir, "two.json")
	with := []string{"-policy", "proportional/llm", "-seeds", "1", "-report", ""}
	code, out, errs := start(t, append(with, "-prometheus", url, "-model", simhistory.Model, "-range", "3h", "-end", r.End.Format(time.RFC3339), "-dump", dump, "-json", one)...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "Traffic of "+simhistory.Model)
	require.Regexp(t, `(?m)^incumbent +\d`, out)
	require.Contains(t, out, "Calibrated: a step takes")
	manifest, scaled := filepath.Join(dir, "autoscaler.yaml"), filepath.Join(dir, "scaledobject.yaml")
	code, _, errs = start(t, append(with, "-history", dump, "-json", two, "-manifest", manifest, "-scaledobject", scaled)...)
	require.Equal(t, exitOK, code, errs)
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	d, err := policy.Read(text, "manifest")
	require.NoError(t, err)
	require.Equal(t, simhistory.Workload, d.Policies[0].ScaleTargetRef.Name)
	require.Equal(t, "StatefulSet", d.Policies[0].ScaleTargetRef.Kind)
	require.Equal(t, simhistory.Namespace, d.Policies[0].Namespace)
	require.Contains(t, string(text), "what there was: ")
	text, err = os.ReadFile(scaled)
	require.NoError(t, err)
	require.Contains(t, string(text), "        mode: replicas\n        scaler: |\n          proportional:\n")
	a, err := os.ReadFile(one)
	require.NoError(t, err)
	b, err := os.ReadFile(two)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
	var doc document
	require.NoError(t, json.Unmarshal(a, &struct {
		Policies *[]result `json:"policies"`
	}{&doc.Policies}))
	for _, p := range doc.Policies {
		if p.Name == incumbentName {
			fleet := reducedFile(t, dump)
			spec, _ := fleet.ReplicaHours()
			require.InDelta(t, spec, p.Results[0].AverageSpec*float64(len(fleet.Spec))*fleet.Step.Hours(), 1e-6)
		}
	}

	code, _, errs = start(t, append(with, "-prometheus", url, "-model", "another")...)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "no engine has any value of it")
	code, _, errs = start(t, append(with, "-prometheus", url, "-model", simhistory.Model, "-range", "3h", "-end", r.End.Format(time.RFC3339), "-max-series", "10")...)
	require.Equal(t, exitFail, code)
	require.Contains(t, errs, "more than 10 series")
	// A Prometheus younger than the range was refused for the gap before it, and so was a model that is new.
	var says bytes.Buffer
	young := &remote{url: url, options: history.Options{Model: simhistory.Model}, maxSeries: 50_000, maxBytes: 1 << 30, end: r.End, length: 7 * 24 * time.Hour, stderr: &says}
	d2, err := young.fetch(t.Context())
	require.NoError(t, err)
	require.InDelta(t, 0, d2.Start.Sub(r.Start).Seconds(), 60)
	require.Contains(t, says.String(), "of the 168h0m0s asked for the last 3h")
	p := &remote{url: url, options: history.Options{Model: simhistory.Model}, maxSeries: 50_000, maxBytes: 1 << 16, end: r.End, length: time.Hour, stderr: io.Discard}
	_, err = p.fetch(t.Context())
	require.ErrorContains(t, err, "the answers are of more than")
}

func reducedFile(t *testing.T, name string) *history.Fleet {
	t.Helper()
	d, err := readDump(name)
	require.NoError(t, err)
	f, err := history.Reduce(d)
	require.NoError(t, err)
	return f
}

// dumpOf writes a recording to a file, changed.
func dumpOf(t *testing.T, r *simhistory.Recording, change func(d *history.Dump)) string {
	t.Helper()
	d, err := r.Dump()
	require.NoError(t, err)
	change(d)
	name := filepath.Join(t.TempDir(), "past.json")
	require.NoError(t, writeDump(name, d))
	return name
}

func TestRefusals(t *testing.T) {
	r := recordDay(t, sim.Qwen32B(), simhistory.Conversations(2, 9, 90*time.Minute))
	without := func(signals ...history.Signal) func(d *history.Dump) {
		return func(d *history.Dump) {
			kept := d.Series[:0]
			for _, s := range d.Series {
				keep := true
				for _, signal := range signals {
					keep = keep && s.Signal != signal
				}
				if keep {
					kept = append(kept, s)
				}
			}
			d.Series = kept
		}
	}
	for _, row := range []struct {
		name   string
		change func(d *history.Dump)
		says   string
	}{
		{"no answers' lengths", without(history.GenerationTokens), "lengths of prompts and answers are not known"},
		{"no times between tokens", without(history.TPOT), "the server cannot be calibrated"},
		{"no cache", without(history.CacheBlocks), "the size of its KV cache is not known"},
		{"nothing", func(d *history.Dump) { d.Series = nil }, "is the name of the model, the engine and the range right?"},
	} {
		t.Run(row.name, func(t *testing.T) {
			code, _, errs := start(t, "-history", dumpOf(t, r, row.change), "-policy", "proportional/llm", "-seeds", "1", "-report", "")
			require.Equal(t, exitRefused, code, errs)
			require.Contains(t, errs, "no verdict: ")
			require.Contains(t, errs, row.says)
		})
	}
	t.Run("more than can have come", func(t *testing.T) { // all of an interval was drawn at once, before anything was checked
		many := func(d *history.Dump) {
			for i := range d.Series {
				for k := range d.Series[i].Values {
					d.Series[i].Values[k] *= 1e9
				}
			}
		}
		code, _, errs := start(t, "-history", dumpOf(t, r, many), "-policy", "proportional/llm", "-seeds", "1", "-report", "")
		require.Equal(t, exitUsage, code, errs)
		require.Contains(t, errs, "simulate: the history: traffic.counts[")
		require.Contains(t, errs, "must be within 0 and 10000000")
	})
	t.Run("what is missing is in the table's head", func(t *testing.T) {
		long.Skip(t)
		code, out, errs := start(t, "-history", dumpOf(t, r, without(history.SpecReplicas, history.PodCreated)), "-policy", "proportional/llm", "-seeds", "1", "-report", "")
		require.Equal(t, exitOK, code, errs)
		require.Contains(t, out, "Warning: history: SpecReplicas: missing")
		require.Contains(t, out, "Warning: history: no start was seen")
		require.NotContains(t, out, "\nincumbent ")
	})
}

// TestTrustFirst replays the recorded replicas before anything is ranked.
func TestTrustFirst(t *testing.T) {
	long.Skip(t)
	r := recordDay(t, sim.Qwen32B(), simhistory.Conversations(3, 9, 6*time.Hour))
	name := dumpOf(t, r, func(*history.Dump) {})
	with := []string{"-history", name, "-policy", "proportional/llm", "-seeds", "1", "-report", ""}
	code, out, errs := start(t, with...)
	require.Equal(t, exitOK, code, errs)
	t.Log(out)
	require.Regexp(t, `Checked from 2026-01-01 0\d:\d\d on: replica-hours \d+\.\d\d recorded, \d+\.\d\d simulated; \d of \d hours compared; TTFT p50 off by \d`, out)

	code, out, errs = start(t, append(with, "-profile", "llama70b-a100")...)
	require.Equal(t, exitRefused, code, out)
	require.Contains(t, errs, "a ranking by it would be worth nothing")
	require.Contains(t, errs, "the simulator is the slower one throughout")
}

// TestAnswersOfNoSense: whatever a server that is no Prometheus answers is an error in a sentence. A series that is null was a
// panic.
func TestAnswersOfNoSense(t *testing.T) {
	const series = `{"metric":{"__name__":"vllm:num_requests_waiting","pod":"a"},"values":[%s]}`
	for _, row := range []struct{ name, result, says string }{
		{"a series is null", "null", "answered with null in place of a series"},
		{"one of two is null", "null," + fmt.Sprintf(series, `[1767571200,"1"]`), "answered with null in place of a series"},
		{"a time far ahead", fmt.Sprintf(series, `[9000000000000000,"1"]`), "answered with a value at 285200616-07-24T16:00:00Z, of which it was not asked"},
		{"a time long ago", fmt.Sprintf(series, `[-9000000000000000,"1"]`), "of which it was not asked"},
		{"a time between", fmt.Sprintf(series, `[1767571203,"1"]`), "must be at one of the times that were asked for"},
		{"no time", fmt.Sprintf(series, `[null,"1"]`), "-prometheus: "},
		{"no number", fmt.Sprintf(series, `[1767571200,"many"]`), "-prometheus: "},
		{"lists in lists", strings.Repeat("[", 1<<20), "-prometheus: "},
		{"no name", `{"metric":{},"values":[[1767571200,"1"]]}`, "labels.__name__"},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, row.result)
			}))
			defer server.Close()
			code, _, errs := start(t, "-prometheus", server.URL, "-engine", "VLLM", "-model", "m", "-end", "2026-01-05T01:00:00Z", "-range", "1h", "-report", "")
			require.NotEqual(t, exitOK, code)
			require.Contains(t, errs, row.says)
		})
	}
}

// TestRegressionAnAnswerWithoutData: a success without data was a panic.
func TestRegressionAnAnswerWithoutData(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"success"}`) }))
	defer server.Close()
	code, _, errs := start(t, "-prometheus", server.URL, "-engine", "VLLM", "-model", "m", "-end", "2026-01-05T01:00:00Z", "-range", "1h", "-report", "")
	require.Equal(t, exitFail, code)
	require.Contains(t, errs, "answered without data")
}

// TestAServerThatRoundsTheStart: VictoriaMetrics, and Thanos behind its query frontend, answer at multiples of the step, whatever
// the start is. Buckets are five minutes apart, so all but one in twenty imports that end now were refused.
func TestAServerThatRoundsTheStart(t *testing.T) {
	name := regexp.MustCompile(`[a-z_]+:?[a-z_]+(\{|\|)`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var at [3]int64 // start, end, step
		for i, of := range []string{"start", "end", "step"} {
			x, err := strconv.ParseFloat(req.FormValue(of), 64)
			assert.NoError(t, err)
			at[i] = int64(x)
		}
		query := req.FormValue("query")
		metric := map[string]string{"__name__": strings.TrimRight(name.FindString(strings.TrimPrefix(query, "last_over_time(")), "{|"), "pod": "pod-0", "le": "+Inf"}
		values := []string{}
		for ms := at[0] - at[0]%at[2]; ms <= at[1]; ms += at[2] {
			values = append(values, fmt.Sprintf(`[%d,"1"]`, ms))
		}
		if strings.HasPrefix(query, "count(") {
			metric = map[string]string{}
		}
		labels, err := json.Marshal(metric)
		assert.NoError(t, err)
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":%s,"values":[%s]}]}}`, labels, strings.Join(values, ","))
	}))
	defer server.Close()
	for _, late := range []time.Duration{0, 15 * time.Second, 100 * time.Second, 285 * time.Second} {
		p := &remote{
			url: server.URL, engine: "VLLM", maxSeries: 50_000, maxBytes: 1 << 30, stderr: io.Discard,
			end: time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC).Add(late), length: 6 * time.Hour,
		}
		d, err := p.fetch(t.Context())
		require.NoError(t, err, "%s", late)
		require.False(t, d.Start.After(p.end.Add(-p.length)), "%s", late)
		require.False(t, d.End.Before(p.end), "%s", late)
		buckets := 0
		for _, s := range d.Series {
			if s.Part == history.Bucket {
				buckets += len(s.Values)
			}
		}
		require.Equal(t, 4*73, buckets, "%s", late)
	}
}

// TestTooLongAnswersNameTheFlag: the error named a flag that there is not.
func TestTooLongAnswersNameTheFlag(t *testing.T) {
	_, err := io.ReadAll(&counted{io.NopCloser(strings.NewReader("ab")), &carrier{most: 1 << 20, left: 1}})
	require.ErrorContains(t, err, "the answers are of more than 1 MB: raise -max-mb, or")
}

// TestRegressionTooManyValuesAreToldAtOnce: that 200 pods have too many values for a week of 15 s was found out after minutes of answers, by
// an error of a field. What has as many pods for a tenth of the time only is asked for.
func TestRegressionTooManyValuesAreToldAtOnce(t *testing.T) {
	for _, row := range []struct {
		args  string
		busy  int // one of so many hours has 200 pods, the others have none
		says  string
		fetch bool
	}{
		{"-range 7d", 1, "-range 1w: would have about 146 million values, of up to 200 pods: must have at most 67 million; choose a -range of 2d21h, or a -step longer than 15s", false},
		{"-range 7d", 10, "no verdict", true},
		{"-range 7d -step 1m", 1, "no verdict", true},
		{"-range 2d21h", 1, "no verdict", true},
	} {
		fetched := false
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			query := req.FormValue("query")
			switch {
			case !strings.HasPrefix(query, "count("):
				fetched = true
				fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
			case strings.HasSuffix(req.URL.Path, "/query"):
				n := 200
				if strings.Contains(query, "_bucket{") {
					n *= 20
				}
				fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%s,"%d"]}]}}`, req.FormValue("time"), n)
			default:
				var at [3]float64
				for i, of := range []string{"start", "end", "step"} {
					var err error
					at[i], err = strconv.ParseFloat(req.FormValue(of), 64)
					assert.NoError(t, err)
				}
				values := []string{}
				for s := at[0]; s <= at[1]; s += at[2] {
					if int(s)/3600%row.busy == 0 || len(values) == 0 {
						values = append(values, fmt.Sprintf(`[%v,"200"]`, int(s)))
					}
				}
				fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[%s]}]}}`, strings.Join(values, ","))
			}
		}))
		_, _, errs := start(t, append(strings.Fields(row.args), "-prometheus", server.URL, "-engine", "VLLM", "-end", "2026-01-05T12:00:00Z", "-report", "")...)
		server.Close()
		require.Contains(t, errs, "simulate: "+row.says, row.args)
		require.Equal(t, row.fetch, fetched, row.args)
	}
	p := &fetching{remote: &remote{length: 7 * 24 * time.Hour}}
	require.EqualError(t, p.limited(&scaling.FieldError{Field: "values"}), "-range 1w: has more than 67108864 values over all series: choose a shorter -range, or a -step longer than 15s")
	require.EqualError(t, p.limited(&scaling.FieldError{Field: "series"}), "more than 200000 series: keep fewer with -namespace or -match")
}

// TestRegressionHistoryFlagsAreNamed: errors named the fields of package history: step, podLabel, match[0], and end for -range.
func TestRegressionHistoryFlagsAreNamed(t *testing.T) {
	two := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		series := ""
		for _, of := range []string{"a", "b"} {
			if strings.HasPrefix(req.FormValue("query"), "count(") {
				break
			}
			series += `,{"metric":{"__name__":"vllm:num_requests_running","pod":"p","namespace":"` + of + `"},"values":[[1767614400,"1"]]}`
		}
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[`+strings.Trim(series, " ,")+`]}}`)
	}))
	defer two.Close()
	for _, row := range []struct{ args, says string }{
		{"-step 1500ms", "-step 1.5s: must be whole seconds, at least 1s and at most 1h"},
		{"-step 0s", "-step 0s: must be whole seconds, at least 1s and at most 1h"},
		{"-engine ollama", `-engine "ollama": must be VLLM, SGLang, TGI, TRTLLM, Triton, Dynamo or LlamaCPP`},
		{"-engine TGI -model m", "-engine TGI: its series do not name a model; leave -model out, and say which with -namespace or -match"},
		{"-pod-label 1x", `-pod-label "1x": must be a name of a label`},
		{"-match a=b -match c", `-match "a=b": must be a matcher, as job="vllm"` + "\n" + `-match "c": must be a matcher, as job="vllm"`},
		{"-match a=b -step 2h", "-step 2h0m0s: must be whole seconds, at least 1s and at most 1h\n" + `-match "a=b": must be a matcher, as job="vllm"`},
		{"-end 1800-01-01T00:00:00Z", `-end "1800-01-01T00:00:00Z": must be within 1970 and 2200`},
		{"-engine VLLM -end 1970-01-02T00:00:00Z -range 7d", "-range 1w: must begin and end within 1970 and 2200, and be at most 2097152 times -step, 15s"},
		{"-engine VLLM -end 2026-01-05T12:00:00Z -range 10y -step 1s", "-range 10y: must begin and end within 1970 and 2200, and be at most 2097152 times -step, 1s"},
		{"-engine VLLM -workload w -end 2026-01-05T12:00:00Z -range 1h", "-namespace: must be given, as there are pods in a, b"},
	} {
		url := "http://127.0.0.1:1"
		if strings.HasPrefix(row.args, "-engine VLLM") {
			url = two.URL
		}
		code, _, errs := start(t, append(strings.Fields(row.args), "-prometheus", url, "-report", "")...)
		require.Equal(t, exitUsage, code, row.args+": "+errs)
		require.Equal(t, "simulate: "+row.says+"\n\nsimulate -help shows the flags.\n", errs)
	}
}

// TestRegressionTwoModelsAreNotOneFleet: without -model the requests of all models were one fleet's, and one server was calibrated by their pods.
func TestRegressionTwoModelsAreNotOneFleet(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		series := ""
		for _, of := range []string{"large", "small"} {
			if !strings.HasPrefix(req.FormValue("query"), "last_over_time(vllm:num_requests_running") {
				break
			}
			series += `,{"metric":{"__name__":"vllm:num_requests_running","pod":"` + of + `-0","model_name":"` + of + `"},"values":[[1767614400,"1"]]}`
		}
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[`+strings.Trim(series, " ,")+`]}}`)
	}))
	defer server.Close()
	for _, row := range []struct {
		match string
		says  string
		code  int
	}{
		{`job="vllm"`, `-model: must be given, as there are values of large, small; -match 'model_name=~".+"' takes them for one`, exitUsage},
		{`model_name=~".+"`, "no verdict: ", exitRefused}, // one that was renamed
		{`model_name!="other"`, "no verdict: ", exitRefused},
	} {
		code, _, errs := start(t, "-prometheus", server.URL, "-engine", "VLLM", "-workload", "w", "-end", "2026-01-05T12:00:00Z", "-range", "1h", "-match", row.match, "-report", "")
		require.Equal(t, row.code, code, errs)
		require.Contains(t, errs, "simulate: "+row.says)
	}
}

func TestHistoryFlags(t *testing.T) {
	for _, row := range []struct{ args, says string }{
		{"-model m", "-model goes with -prometheus"},
		{"-prometheus http://x -history y", "-history does not go with -prometheus"},
		{"-prometheus http://x -trace y", "-trace does not go with"},
		{"-prometheus x", "must be a URL"},
		{"-prometheus http://a:b@x", "must not have a password"},
		{"-prometheus http://x -range soon", `-range "soon"`},
		{"-prometheus http://x -end today", `-end "today"`},
		{"-prometheus http://x -tls-cert y", "go together"},
		{"-prometheus http://x -router envoy", `-router "envoy": must be epp`},
		{"-prometheus http://x -max-series 0", "-max-series 0: must be at least 1"},
		{"-prometheus http://x -max-mb 2000000", "-max-mb 2000000: must be within 1 and 1048576"},
		{"-history nowhere.json", "-history: open nowhere.json"},
	} {
		code, _, errs := start(t, append(strings.Fields(row.args), "-report", "")...)
		require.Equal(t, exitUsage, code, row.args+": "+errs)
		require.Contains(t, errs, row.says, row.args)
	}
}
