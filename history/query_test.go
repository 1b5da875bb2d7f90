package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
)

func ExampleQueries() {
	queries, err := history.Queries(history.VLLM, history.Options{Model: "qwen", Namespace: "serving", Workload: "qwen", Router: history.EPP})
	if err != nil {
		panic(err)
	}
	for _, q := range queries {
		if q.Part != history.Bucket && q.Signal != history.TTFT {
			fmt.Println(q.Expr)
		}
	}
	// Output:
	// last_over_time(vllm:num_requests_waiting{namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time(vllm:num_requests_running{namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time({__name__=~"vllm:kv_cache_usage_perc|vllm:gpu_cache_usage_perc",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time({__name__=~"vllm:inter_token_latency_seconds_sum|vllm:time_per_output_token_seconds_sum",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time({__name__=~"vllm:inter_token_latency_seconds_count|vllm:time_per_output_token_seconds_count",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time(vllm:request_prompt_tokens_sum{namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time(vllm:request_prompt_tokens_count{namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time(vllm:request_generation_tokens_sum{namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time(vllm:request_generation_tokens_count{namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time(vllm:prompt_tokens_total{namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time(vllm:generation_tokens_total{namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time({__name__=~"vllm:prefix_cache_hits_total|vllm:gpu_prefix_cache_hits_total",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time({__name__=~"vllm:prefix_cache_queries_total|vllm:gpu_prefix_cache_queries_total",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time(vllm:cache_config_info{namespace="serving"}[299999ms])
	// last_over_time({__name__=~"inference_objective_request_total|inference_model_request_total",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time({__name__=~"inference_objective_running_requests|inference_model_running_requests",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time({__name__=~"inference_objective_input_tokens_sum|inference_model_input_tokens_sum",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time({__name__=~"inference_objective_input_tokens_count|inference_model_input_tokens_count",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time({__name__=~"inference_objective_output_tokens_sum|inference_model_output_tokens_sum",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time({__name__=~"inference_objective_output_tokens_count|inference_model_output_tokens_count",namespace="serving",model_name="qwen"}[14999ms])
	// last_over_time(kube_deployment_spec_replicas{namespace="serving",deployment="qwen"}[59999ms]) or last_over_time(kube_deployment_spec_replicas{exported_namespace="serving",deployment="qwen"}[59999ms])
	// last_over_time(kube_statefulset_replicas{namespace="serving",statefulset="qwen"}[59999ms]) or last_over_time(kube_statefulset_replicas{exported_namespace="serving",statefulset="qwen"}[59999ms])
	// last_over_time(kube_deployment_status_replicas_ready{namespace="serving",deployment="qwen"}[59999ms]) or last_over_time(kube_deployment_status_replicas_ready{exported_namespace="serving",deployment="qwen"}[59999ms])
	// last_over_time(kube_statefulset_status_replicas_ready{namespace="serving",statefulset="qwen"}[59999ms]) or last_over_time(kube_statefulset_status_replicas_ready{exported_namespace="serving",statefulset="qwen"}[59999ms])
	// last_over_time(kube_pod_created{namespace="serving",pod=~"qwen-.+"}[59999ms]) or last_over_time(kube_pod_created{exported_namespace="serving",exported_pod=~"qwen-.+"}[59999ms])
	// last_over_time(kube_pod_status_ready_time{namespace="serving",pod=~"qwen-.+"}[59999ms]) or last_over_time(kube_pod_status_ready_time{exported_namespace="serving",exported_pod=~"qwen-.+"}[59999ms])
	// last_over_time(kube_pod_status_ready{condition="true",namespace="serving",pod=~"qwen-.+"}[59999ms]) or last_over_time(kube_pod_status_ready{condition="true",exported_namespace="serving",exported_pod=~"qwen-.+"}[59999ms])
}

func TestEveryEngineIsAskedForSomething(t *testing.T) {
	for _, e := range history.Engines() {
		queries, err := history.Queries(e, history.Options{})
		require.NoError(t, err)
		require.NotEmpty(t, queries)
		for _, q := range queries {
			require.NotContains(t, q.Expr, "rate(")
			require.NotContains(t, q.Expr, "increase(")
			require.True(t, strings.HasPrefix(q.Expr, "last_over_time("), q.Expr)
		}
	}
}

// TestTextOfUsersCannotLeaveItsQuotes has models and names that would end a matcher.
func TestTextOfUsersCannotLeaveItsQuotes(t *testing.T) {
	queries, err := history.Queries(history.VLLM, history.Options{Model: `a"} or vector(1) #`, Namespace: "b\"\n", Workload: `c.*|d"`})
	require.NoError(t, err)
	for _, q := range queries {
		require.NotContains(t, q.Expr, `a"}`)
		require.NotContains(t, q.Expr, "\n")
		require.NotContains(t, q.Expr, `pod=~"c.*`)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, row := range []struct {
		engine history.Engine
		o      history.Options
		field  string
	}{
		{"vllm", history.Options{}, "engine"},
		{history.EPP, history.Options{}, "engine"},
		{history.TGI, history.Options{Model: "m"}, "model"},
		{history.VLLM, history.Options{Step: -1}, "step"},
		{history.VLLM, history.Options{Step: 1500 * time.Millisecond}, "step"},
		{history.VLLM, history.Options{Router: history.SGLang}, "router"},
		{history.VLLM, history.Options{PodLabel: "a b"}, "podLabel"},
		{history.VLLM, history.Options{Match: []string{`job="a"`, `job="a"} or up{x="`}}, "match[1]"},
	} {
		_, err := history.Queries(row.engine, row.o)
		require.ErrorContains(t, err, row.field)
	}
}

func TestWorkloadOf(t *testing.T) {
	for _, row := range []struct {
		pods []string
		want string
	}{
		{[]string{"qwen-7d9c8b6f5d-x2x4z", "qwen-5b5b5b5b5b-bbbbb"}, "qwen"},
		{[]string{"qwen-32b-0", "qwen-32b-11"}, "qwen-32b"},
		{[]string{"qwen-7d9c8b6f5d-x2x4z", "llama-7d9c8b6f5d-x2x4z"}, ""},
		{[]string{"10"}, ""},
		{[]string{"-1"}, ""},
		{nil, ""},
		{[]string{"somebody"}, ""},
	} {
		got, ok := history.WorkloadOf(row.pods)
		require.Equal(t, row.want, got)
		require.Equal(t, row.want != "", ok)
	}
}

func TestFillerKeepsNoAddressesAndNoOtherLabels(t *testing.T) {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	f, err := history.NewFiller(history.VLLM, history.Options{}, start.Add(time.Second), start.Add(time.Minute))
	require.NoError(t, err)
	queries, err := history.Queries(history.VLLM, history.Options{})
	require.NoError(t, err)
	labels := map[string]string{"__name__": "vllm:num_requests_waiting", "instance": "10.1.2.3:8000", "job": "secret-job", "engine": "0"}
	for _, second := range []int64{45, 0, 15} { // pieces in any order
		require.NoError(t, f.Add(&queries[0], labels, 1, func(int) (int64, float64) { return start.UnixMilli() + second*1000, float64(second) }))
	}
	err = f.Add(&queries[0], labels, 1, func(int) (int64, float64) { return start.UnixMilli() + 1, 1 })
	require.ErrorContains(t, err, "must be at one of the times")
	d, err := f.Dump()
	require.NoError(t, err)
	require.Equal(t, "replica-1", d.Series[0].Pod)
	require.Equal(t, map[string]string{"engine": "0"}, d.Series[0].Labels)
	require.True(t, slices.EqualFunc(d.Series[0].Values, history.Values{0, 15, nan, 45}, same))

	labels["namespace"] = "a"
	require.NoError(t, f.Add(&queries[0], labels, 0, nil))
	labels["namespace"] = "b"
	require.NoError(t, f.Add(&queries[0], labels, 0, nil))
	_, err = f.Dump()
	require.ErrorContains(t, err, "namespace")
}

// minute returns a filler for a minute of vLLM, and its queries.
func minute(t *testing.T) (*history.Filler, []history.Query) {
	t.Helper()
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	f, err := history.NewFiller(history.VLLM, history.Options{}, start, start.Add(time.Minute))
	require.NoError(t, err)
	queries, err := history.Queries(history.VLLM, history.Options{})
	require.NoError(t, err)
	return f, queries
}

// TestNumberedPodsHaveNoWorkload: the numbers that pods without a name get were taken for those of a StatefulSet "replica", whose
// replicas and starts were then asked for, and which a manifest would have scaled.
func TestNumberedPodsHaveNoWorkload(t *testing.T) {
	f, queries := minute(t)
	add := func(label, value string) {
		require.NoError(t, f.Add(&queries[0], map[string]string{"__name__": "vllm:num_requests_waiting", label: value}, 0, nil))
	}
	add("instance", "10.1.2.3:8000")
	add("instance", "10.1.2.4:8000")
	require.Empty(t, f.Pods())
	_, ok := history.WorkloadOf(f.Pods())
	require.False(t, ok)
	add("pod", "qwen-0")
	require.Equal(t, []string{"qwen-0"}, f.Pods())
}

// TestFillerTakesTheNewestPieceFirst: each value of an earlier piece moved all that were there, so that one series of 60 days took
// most of a minute.
func TestFillerTakesTheNewestPieceFirst(t *testing.T) {
	start, began := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), time.Now()
	const pieces, piece = 34, 10_000
	step := history.DefaultStep.Milliseconds()
	f, err := history.NewFiller(history.VLLM, history.Options{}, start, start.Add((pieces*piece-1)*history.DefaultStep))
	require.NoError(t, err)
	queries, err := history.Queries(history.VLLM, history.Options{})
	require.NoError(t, err)
	labels := map[string]string{"__name__": "vllm:num_requests_waiting", "pod": "a"}
	for first := (pieces - 1) * piece; first >= 0; first -= piece {
		require.NoError(t, f.Add(&queries[0], labels, piece, func(i int) (int64, float64) {
			return start.UnixMilli() + int64(first+i)*step, float64(first + i)
		}))
	}
	d, err := f.Dump()
	require.NoError(t, err)
	require.Len(t, d.Series[0].Values, pieces*piece)
	for i, v := range d.Series[0].Values {
		if v != float64(i) {
			t.Fatalf("value %d is %v", i, v)
		}
	}
	require.Less(t, time.Since(began), 10*time.Second)
}

// TestFillerTakesTheNewestValueFirst: as for pieces, of values one by one, and of a series that is answered again for each, as
// somebody else's Prometheus may. These two series took 41 s, as each value moved all that were there.
func TestFillerTakesTheNewestValueFirst(t *testing.T) {
	start, began := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), time.Now()
	const values, before = 300_000, 7
	step := history.DefaultStep.Milliseconds()
	f, err := history.NewFiller(history.VLLM, history.Options{}, start, start.Add((before+values-1)*history.DefaultStep))
	require.NoError(t, err)
	queries, err := history.Queries(history.VLLM, history.Options{})
	require.NoError(t, err)
	for _, pod := range []string{"a", "b"} {
		labels, pieces, piece := map[string]string{"__name__": "vllm:num_requests_waiting", "pod": pod}, 1, values
		if pod == "b" {
			pieces, piece = values, 1
		}
		for k := range pieces {
			require.NoError(t, f.Add(&queries[0], labels, piece, func(i int) (int64, float64) {
				place := before + values - 1 - k*piece - i
				return start.UnixMilli() + int64(place)*step, float64(place)
			}))
		}
	}
	d, err := f.Dump()
	require.NoError(t, err)
	for _, s := range d.Series {
		require.Equal(t, before, s.From)
		require.Len(t, s.Values, values)
		for i, v := range s.Values {
			if v != float64(before+i) {
				t.Fatalf("value %d is %v", i, v)
			}
		}
	}
	require.Less(t, time.Since(began), 10*time.Second)
}

// TestFillerBeginsAtATimeOfAllQueries: a server that rounds the start of a query down to a multiple of its step answers at the
// times that were asked for.
func TestFillerBeginsAtATimeOfAllQueries(t *testing.T) {
	for _, step := range []time.Duration{0, time.Second, 7 * time.Second, 15 * time.Second, time.Minute, time.Hour} {
		o := history.Options{Step: step}
		queries, err := history.Queries(history.VLLM, o)
		require.NoError(t, err)
		asked := time.Date(2026, 1, 5, 1, 2, 3, 0, time.UTC)
		f, err := history.NewFiller(history.VLLM, o, asked, asked.Add(24*time.Hour))
		require.NoError(t, err)
		start, end := f.Span()
		require.False(t, start.After(asked))
		require.Less(t, asked.Sub(start), o.Longest())
		require.False(t, end.Before(asked.Add(24*time.Hour)))
		for _, q := range queries {
			require.Zero(t, start.Unix()%int64(q.Step(&o)/time.Second), "%s: %s", step, q.Expr)
			require.LessOrEqual(t, q.Step(&o), o.Longest())
		}
	}
}

// TestFillerNamesTheLabelThatIsMissing: it was Dump that refused a series without a name, by its number.
func TestFillerNamesTheLabelThatIsMissing(t *testing.T) {
	f, queries := minute(t)
	require.EqualError(t, f.Add(&queries[0], map[string]string{"pod": "a"}, 0, nil),
		`labels.__name__: "": must be the name of the metric, as it was answered`)
	require.EqualError(t, f.Add(&queries[0], map[string]string{"__name__": "vllm:num_requests_waiting"}, 0, nil),
		`vllm:num_requests_waiting: "": must have a label pod or instance, which names the pod`)
	d, err := f.Dump()
	require.NoError(t, err)
	require.Empty(t, d.Series)
}

// TestEveryOperatorOfAMatcher: =, !=, =~ and !~, as the documentation of Options.Match says. It named the first two only.
func TestEveryOperatorOfAMatcher(t *testing.T) {
	for _, m := range []string{`job="a"`, `job!="a"`, `job=~"a|b"`, `job!~"a|b"`} {
		queries, err := history.Queries(history.VLLM, history.Options{Match: []string{m}})
		require.NoError(t, err)
		require.Contains(t, queries[0].Expr, m)
	}
}
