package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLintOfNoMapping: the error was one of Go's types.
func TestLintOfNoMapping(t *testing.T) {
	_, err := readAutoscalers([]byte("time,prompt_tokens\n"))
	require.EqualError(t, err, `document 1: "time,prompt_tokens": must be a mapping, with apiVersion and kind`)
}

// lintText runs -lint on a document.
func lintText(t *testing.T, text string, flags ...string) (code int, out, stderr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "installed.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	var a, b bytes.Buffer
	code = run(context.Background(), append([]string{"-lint", file}, flags...), &a, &b)
	return code, a.String(), b.String()
}

func hpa(spec string) string {
	return "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: chat, resourceVersion: \"7\"}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}\n" +
		indented(spec) + "status: {currentReplicas: 3, desiredReplicas: 3}\n"
}

func scaled(spec string) string {
	return "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: chat}\nspec:\n  scaleTargetRef: {name: chat}\n" + indented(spec)
}

func indented(spec string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

const podsMetric = "metrics: [{type: Pods, pods: {metric: {name: running}, target: {type: AverageValue, averageValue: 500m}}}]\n"

func prometheusTrigger(query, more string) string {
	return "triggers: [{type: prometheus, metadata: {serverAddress: 'http://p', threshold: '10', query: '" + query + "'}" + more + "}]\n"
}

// TestLint: one document for each finding, with its numbers, and beside it the one that is innocent.
func TestLint(t *testing.T) {
	calm := "behavior: {scaleDown: {stabilizationWindowSeconds: 600}}\n"
	for _, x := range []struct{ name, guilty, want, innocent string }{
		{
			"tolerance", hpa("minReplicas: 2\nmaxReplicas: 32\n" + podsMetric),
			"tolerance: with a tolerance of 0.1, 10 replicas that need 11 have a ratio of 1.1, which is within it, and stay 10: from 10 on, one more is never added; at 29 up to 2 are missing.",
			hpa("minReplicas: 2\nmaxReplicas: 10\n" + podsMetric),
		},
		{
			"tolerance of its own", hpa("maxReplicas: 8\nbehavior: {scaleUp: {tolerance: 200m}}\n" + podsMetric), "a tolerance of 0.2, 5 replicas that need 6 have a ratio of 1.2",
			hpa("maxReplicas: 100\nbehavior: {scaleUp: {tolerance: 0}}\n" + podsMetric),
		},
		{
			"average of KEDA", scaled("minReplicaCount: 1\nmaxReplicaCount: 8\n" + prometheusTrigger("avg(vllm:num_requests_waiting)", "")),
			"average: triggers[0] is a value of one replica, and AverageValue divides it by the replicas again: 4 replicas at 15 each, with a target of 10, have a ratio of 0.375 and become 2 where 6 are right.",
			scaled("minReplicaCount: 1\nmaxReplicaCount: 8\n" + prometheusTrigger("sum(vllm:num_requests_waiting)", "")),
		},
		{
			"quantile of KEDA", scaled("minReplicaCount: 1\nmaxReplicaCount: 8\n" + prometheusTrigger("histogram_quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))", "")),
			"average: triggers[0]",
			scaled("minReplicaCount: 1\nmaxReplicaCount: 8\n" + prometheusTrigger("avg(vllm:num_requests_waiting)", ", metricType: Value")),
		},
		{
			"average of an HPA", hpa("maxReplicas: 8\nmetrics: [{type: External, external: {metric: {name: kv_cache_usage_perc}, target: {type: AverageValue, averageValue: 800m}}}]"),
			"average: kv_cache_usage_perc is a value of one replica, and AverageValue divides it by the replicas again: 4 replicas at 1.2 each, with a target of 0.8, have a ratio of 0.375",
			hpa("maxReplicas: 8\nmetrics: [{type: External, external: {metric: {name: requests_waiting}, target: {type: AverageValue, averageValue: 8}}}]"),
		},
		{
			"total", scaled("minReplicaCount: 1\nmaxReplicaCount: 8\n" + prometheusTrigger("sum(vllm:num_requests_waiting)", ", metricType: Value")),
			"total: triggers[0] is a total, and Value multiplies its ratio with the replicas that are ready: a total of 20 with a target of 10 makes 4 replicas 8, and these 16",
			scaled("minReplicaCount: 1\nmaxReplicaCount: 8\n" + prometheusTrigger("sum(vllm:num_requests_waiting) / count(vllm:num_requests_waiting)", ", metricType: Value")),
		},
		{
			"stabilization", hpa("maxReplicas: 8\nbehavior: {scaleDown: {stabilizationWindowSeconds: 60}}\n" + podsMetric),
			"stabilization: scale-down is stabilized over 1m0s, and a replica takes 1m40s to start: a pause in the load of 1m0s stops replicas that are 1m40s away when it ends. Set behavior.scaleDown.stabilizationWindowSeconds to 100",
			hpa("maxReplicas: 8\n" + podsMetric),
		},
		{
			"cooldown", scaled("maxReplicaCount: 8\ncooldownPeriod: 30\ntriggers: [{type: kafka, metadata: {lagThreshold: '5'}}]"),
			"cooldown: cooldownPeriod is 30s, and a replica takes 1m40s to start",
			scaled("maxReplicaCount: 8\ntriggers: [{type: kafka, metadata: {lagThreshold: '5'}}]"),
		},
		{
			"percent", hpa("minReplicas: 2\nmaxReplicas: 8\nbehavior: {scaleUp: {policies: [{type: Percent, value: 10, periodSeconds: 60}]}}\n" + podsMetric),
			"percent: 10 % of at most 8 replicas is never more than one: scaleUp adds one replica each 1m0s, and takes 6m0s from 2 to 8.",
			hpa("minReplicas: 2\nmaxReplicas: 8\nbehavior: {scaleUp: {policies: [{type: Percent, value: 10, periodSeconds: 60}, {type: Pods, value: 4, periodSeconds: 60}]}}\n" + podsMetric),
		},
		{
			"percent with Min", hpa("minReplicas: 2\nmaxReplicas: 8\nbehavior: {scaleUp: {selectPolicy: Min, policies: [{type: Pods, value: 4, periodSeconds: 60}, {type: Percent, value: 10, periodSeconds: 30}]}}\n" + podsMetric),
			"adds one replica each 30s, and takes 3m0s from 2 to 8.",
			hpa("minReplicas: 2\nmaxReplicas: 8\nbehavior: {scaleUp: {policies: [{type: Percent, value: 50, periodSeconds: 60}]}}\n" + podsMetric),
		},
		{
			"disabled", hpa("maxReplicas: 8\nbehavior: {scaleUp: {selectPolicy: Disabled}}\n" + podsMetric),
			"disabled: scaleUp.selectPolicy is Disabled: whatever the load, nothing is ever added, and maxReplicas 8 is out of reach",
			hpa("maxReplicas: 8\n" + calm + podsMetric),
		},
		{
			"disabled downwards", hpa("maxReplicas: 8\nbehavior: {scaleDown: {selectPolicy: Disabled, stabilizationWindowSeconds: 0}}\n" + podsMetric),
			"disabled: scaleDown.selectPolicy is Disabled: after the first peak of 8 replicas there are 8 for ever",
			hpa("minReplicas: 8\nmaxReplicas: 8\nbehavior: {scaleDown: {selectPolicy: Disabled}}\n" + podsMetric),
		},
		{
			"window", scaled("minReplicaCount: 1\nmaxReplicaCount: 8\n" + prometheusTrigger("sum(rate(vllm:request_success_total[20s]))", "")),
			"window: triggers[0] looks at [20s], and pods are scraped each 15s: a rate needs two samples, and there are 1 or 2 within 20s. Take [30s] at least, better [1m0s]",
			scaled("minReplicaCount: 1\nmaxReplicaCount: 8\n" + prometheusTrigger("sum(rate(vllm:request_success_total[1m30s:5s]))", "")),
		},
		{
			"zero", scaled("maxReplicaCount: 8\n" + prometheusTrigger("sum(vllm:num_requests_waiting)", "")),
			"zero: minReplicaCount is 0 (KEDA's default), and triggers[0]: these are read off the pods themselves",
			scaled("maxReplicaCount: 8\n" + prometheusTrigger("sum(rate(nginx_ingress_controller_requests[1m]))", "")),
		},
		{
			"zero by idle, with a timetable", scaled("minReplicaCount: 2\nidleReplicaCount: 0\nmaxReplicaCount: 8\ntriggers: [{type: cron, metadata: {desiredReplicas: '2'}}, {type: prometheus, name: queue, metadata: {threshold: '5', query: 'sum(sglang:num_queue_reqs)'}}]"),
			"zero: minReplicaCount is 0 (KEDA's default), and queue: these",
			scaled("maxReplicaCount: 8\ntriggers: [{type: cron, metadata: {desiredReplicas: '2'}}]"),
		},
		{
			"zero of an HPA", hpa("minReplicas: 0\nmaxReplicas: 8\n" + podsMetric), "zero: minReplicas is 0, and running: these",
			hpa("minReplicas: 0\nmaxReplicas: 8\nmetrics: [{type: External, external: {metric: {name: gateway_requests}, target: {type: AverageValue, averageValue: 8}}}]"),
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			code, out, stderr := lintText(t, x.guilty)
			require.Equal(t, exitFail, code, stderr)
			require.Contains(t, out, x.want)
			require.Equal(t, 1, strings.Count(out, "\n"), "nothing else: %s", out)
			require.Contains(t, stderr, "1 of what is in it cannot work")
			code, out, stderr = lintText(t, x.innocent)
			require.Equal(t, exitOK, code, out+stderr)
			require.Contains(t, out, "nothing found in 1 documents, with starts of 1m40s and scrapes each 15s")
		})
	}
}

// TestLintMeasured: the measured start and the interval between scrapes are what windows are compared with.
func TestLintMeasured(t *testing.T) {
	code, out, _ := lintText(t, hpa("maxReplicas: 8\n"+podsMetric), "-cold-start", "10m")
	require.Equal(t, exitFail, code)
	require.Contains(t, out, "stabilized over 5m0s, and a replica takes 10m0s to start")
	query := scaled("minReplicaCount: 1\nmaxReplicaCount: 8\n" + prometheusTrigger("sum(rate(vllm:request_success_total[1m]))", ""))
	code, _, _ = lintText(t, query)
	require.Equal(t, exitOK, code)
	code, out, _ = lintText(t, query, "-scrape-interval", "1m")
	require.Equal(t, exitFail, code)
	require.Contains(t, out, "there are 1 or 2 within 1m")
}

// TestLintReadsLists: what kubectl get prints, and several documents in a file, each by its name.
func TestLintReadsLists(t *testing.T) {
	one := scaled("maxReplicaCount: 8\n" + prometheusTrigger("sum(vllm:num_requests_waiting)", ""))
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(one), "\n", "\n  ") + "\n---\n" + hpa("maxReplicas: 32\n"+podsMetric)
	code, out, stderr := lintText(t, list)
	require.Equal(t, exitFail, code)
	require.Contains(t, out, "ScaledObject chat: zero:")
	require.Contains(t, out, "HorizontalPodAutoscaler chat: tolerance:")
	require.Contains(t, stderr, "2 of what is in it cannot work")
}

// TestLintOfUnlimitedPods: a policy of as many pods as there can be was taken for one of fewer than none.
func TestLintOfUnlimitedPods(t *testing.T) {
	code, out, _ := lintText(t, hpa("minReplicas: 1\nmaxReplicas: 9\nbehavior: {scaleUp: {policies: [{type: Pods, value: 2147483647, periodSeconds: 15}, {type: Percent, value: 10, periodSeconds: 60}]}, scaleDown: {stabilizationWindowSeconds: 600}}\n"+podsMetric))
	require.Zero(t, code, out)
}

// TestLintRefuses: what cannot be read is a usage error that says what.
func TestLintRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "has no HorizontalPodAutoscaler and no ScaledObject",
		"apiVersion: apps/v1\nkind: Deployment\n":       `apiVersion "apps/v1", kind "Deployment": must be`,
		hpa("maxReplica: 8"):                            "maxReplica",
		hpa("maxReplicas: 1\nminReplicas: 2"):           "the most replicas are 1: must be at least 1 and not below the least, 2",
		hpa("maxReplicas: 2\nmetrics: [{type: Pods}]"):  "spec.metrics[0]: has no source of its type",
		"? {a: 1}\n: 2\n":                               "document 1: must have no lists and mappings for keys",
		"1: 2\n":                                        "document 1: must be what JSON can have: keys that are text",
		"{apiVersion: v1, kind: List, items: [{1: 2}]}": "document 1: must be what JSON can have",
		strings.Repeat("{apiVersion: v1, kind: List, items: [", 3000) + strings.Repeat("]}", 3000): `document 1: items[0]: kind "List": must not be in a list`, // it took minutes
		"a: [":                    "document 1",
		"apiVersion: []":          "document 1: apiVersion: array: must be text",
		hpa("maxReplicas: eight"): "document 1: spec.maxReplicas: string: must be a whole number of at most 32 bits",
		scaled("maxReplicaCount: eight\ntriggers: []"):                         "document 1: spec.maxReplicaCount: string: must be a whole number",
		hpa("maxReplicas: 2\nbehavior: {scaleUp: {policies: [{type: Pods}]}}"): "periodSeconds 0",
		// It was read for minutes.
		hpa(strings.Replace("maxReplicas: 2\n"+podsMetric, "500m", `"1e-99999999"`, 1)):                                                          `averageValue: "1e-99999999": must be a quantity of 32 characters and an exponent of two digits at most`,
		scaled("maxReplicaCount: 8\nadvanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp: {tolerance: '1e-99999999'}}}}\ntriggers: []"): `tolerance: "1e-99999999": must be a quantity`,
	} {
		code, _, stderr := lintText(t, text)
		require.Equal(t, exitUsage, code, text)
		require.Contains(t, stderr, want)
	}
	code := run(context.Background(), []string{"-lint", filepath.Join(t.TempDir(), "none.yaml")}, &bytes.Buffer{}, &bytes.Buffer{})
	require.Equal(t, exitUsage, code)
}

// FuzzLint: no document breaks it.
func FuzzLint(f *testing.F) {
	f.Add([]byte(hpa("maxReplicas: 32\n" + podsMetric)))
	f.Add([]byte(scaled("maxReplicaCount: 8\n" + prometheusTrigger("avg(rate(a[30s]))", ""))))
	f.Fuzz(func(_ *testing.T, data []byte) {
		all, err := readAutoscalers(data)
		if err != nil {
			return
		}
		for _, a := range all {
			a.coldStart, a.scrape = 100e9, 15e9
			a.findings()
		}
	})
}
