package keda

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scaling"
)

// TestPlanNamesKeys: what is wrong in a spec is said of the key that sets it, as it was written.
func TestPlanNamesKeys(t *testing.T) {
	const (
		engines = "must be one of VLLM, SGLang, TGI, TRTLLM, Triton, Dynamo and LlamaCPP, beside a signal"
		other   = `metricName: "vllm:num_requests_waiting": must be read as scaler.realtime.metrics[0].source reads it, which has the same name`
	)
	for _, tt := range []struct {
		metadata map[string]string
		want     []string
	}{
		{inMetric("metricPort", "0"), []string{"metricPort: 0: must be between 1 and 65535"}},
		{inMetric("metricPort", "-1"), []string{"metricPort: -1: must be between 1 and 65535"}},
		{inMetric("metricPortFromEnv", "70000"), []string{"metricPortFromEnv: (not shown): must be between 1 and 65535"}},
		{inMetric("metricPath", "metrics"), []string{`metricPath: "metrics": must begin with a single '/' and have no fragment, space or control byte`}},
		{inMetric("aggregation", "Mean"), []string{`aggregation: "Mean": must be one of Only, Sum, Average, Max and Min`}},
		{inMetric("engine", "VLLM"), []string{`signal: "": must be one of Waiting, Running, InFlight, KVCacheUsage, TTFT, TPOT, PrefixCacheHitRate and Preemptions, beside an engine`}},
		{inMetric("signal", "Waiting"), []string{`engine: "": ` + engines}},
		{inMetric("engine", "vllm", "signal", "Waiting"), []string{`engine: "vllm": ` + engines}},
		{inMetric("engine", "VLLM", "signal", "Waiting", "metricName", "q"), []string{`metricName: "q": must not be given beside engine and signal`}},
		{inMetric("engine", "VLLM", "signal", "Waiting", "quantile", "0.5"), []string{`quantile: "0.5": must be given only with the signals TTFT and TPOT`}},
		{inMetric("engine", "VLLM", "signal", "TTFT", "quantile", "1"), []string{`quantile: "1": must be above 0 and below 1`}},
		{inReplicas("profile", "seed"), []string{`profile: "seed": must be llm, kthena, kpa or hpa`}},
		{inReplicas("proportional.profileFromEnv", "seed"), []string{`proportional.profileFromEnv: (not shown): must be llm, kthena, kpa or hpa`}},
		{inReplicas("lowThreshold", "1", "profile", "kpa"), []string{`profile: "kpa": must be kaito or responsive`}},
		{inReplicas("lowThreshold", "10"), []string{"threshold: 10: must be a number above low 10"}},
		{inReplicas("lowThreshold", "1e-3"), []string{`lowThreshold: "1e-3": must be written in digits, below 1e12 and with at most nine decimals, as 40 or "0.9"`}},
		{inReplicas("lowThreshold", "1", "realtime.scaleUpRule.scaleStep", "0"), []string{"realtime.scaleUpRule.scaleStep: 0: must be at least 1"}},
		{inReplicas("policy", "proportional", "realtime.holdWhilePending", "true"), []string{"realtime.metrics: 0: must be at least one"}},
		{
			inReplicas("policy", "proportional", "realtime.metrics", "[{threshold: {high: 2, low: 3}, source: {port: 0}}]"),
			[]string{other, "realtime.metrics[0].source.port: 0: must be between 1 and 65535", "realtime.metrics[0].threshold.high: 2: must be a number above low 3"},
		},
		{inReplicas("policy", "proportional", "realtime.metrics", "[{threshold: {high: 2, low: 1}, source: {path: /other}}]"), []string{other}},
		{inReplicas("interval", "1", "proportional.stableWindowSeconds", "601"), []string{"proportional.stableWindowSeconds: 601: must be at most 600 times interval 1"}},
		{inReplicas("proportional.stableWindowSeconds", "9001"), []string{"proportional.stableWindowSeconds: 9001: must be at most 600 times interval 15"}},
		{inReplicas("cron.policies", `[{name: a, schedule: "61 * * * *", targetReplicas: 1}]`), []string{`cron.policies[0].schedule: "61 * * * *": is not a cron expression of five fields: end of range (61) above maximum (59): 61`}},
		{inReplicas("cron.mode", "Last"), []string{"cron.policies: 0: must have at least one", `cron.mode: "Last": must be HoldLast, Match or InWindow`}},
		{inReplicas("threshold", "-", "scaler", ""), []string{`scaler: "": must be a policy document: scaler: must have a policy`}},
		{
			inReplicas("threshold", "-", "scaler", "{realtime: {metrics: [{threshold: {high: 1, low: 2}}], profile: kpa}}"),
			[]string{
				`scaler: "{realtime: {metrics: [{threshold: {high: 1, low: 2}}], profi...": must be a policy document: scaler:1: realtime.profile: "kpa": must be kaito or responsive`,
				`scaler: "{realtime: {metrics: [{threshold: {high: 1, low: 2}}], profi...": must be a policy document: scaler:1: realtime.metrics[0].threshold.high: 1: must be a number above low 2`,
			},
		},
		{
			inReplicas("threshold", "-", "scalerFromEnv", "{proportional: {metrics: [{target: 0, source: {port: 0}}]}}"),
			[]string{"scalerFromEnv: (not shown): must be a policy document", "scalerFromEnv: (not shown): must be a policy document"},
		},
	} {
		m, err := parse(tt.metadata)
		if err == nil {
			_, err = m.plan(chatTarget, oneToTen)
		}
		require.EqualError(t, err, strings.Join(tt.want, "\n"), "%v", tt.metadata)
		inOrder(t, tt.metadata, err)
	}
}

// TestPlanNamesTheRest: what ParseMetadata and resolve let nobody get to.
func TestPlanNamesTheRest(t *testing.T) {
	m := parsed(t, inReplicas("interval", "30"))
	for path, want := range map[string]string{
		"spec.intervalSeconds": "interval", "spec.scrape.portName": "metricPort", "spec.scrape.timeout": "scrapeTimeout", "timeout": "scrapeTimeout",
		"spec.scrape.tls.serverName": "tlsServerName", "spec.minReplicas": "minReplicas", "spec.maxReplicas": "maxReplicas", "spec.grouping": "grouping", "spec.scaler": "scaler",
		"spec.scaler.proportional.metrics[0].source.name":     "metricName",
		"spec.scaler.proportional.metrics[0].source.name[0]":  "metricName",
		"spec.scaler.proportional.metrics[0].source.protocol": "metricProtocol",
		"spec.scaler.proportional.metrics[0].target":          "threshold",
		"spec.scaler.proportional.metrics[1].target":          "proportional.metrics[1].target",
	} {
		_, written := m.keyOf(path)
		require.Equal(t, want, written, path)
	}
	_, err := m.plan(chatTarget, scaling.Bounds{Min: 9, Max: 8})
	require.EqualError(t, err, "maxReplicas: 8: must not be below min 9")
}

func TestPlanPortAndTLS(t *testing.T) {
	m := parsed(t, inMetric("metricPort", "metrics", "metricProtocol", "https", "tlsServerName", "pods", "grouping", "LeaderWorkerSet"))
	plan, err := m.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.Equal(t, "metrics", plan.Port.Port.String())
	require.Equal(t, "https", plan.Port.Scheme)
	require.Equal(t, "pods", plan.Scrape.TLS.ServerName)
	require.Equal(t, k8s.LeaderWorkerSet(), plan.Grouping)

	m = parsed(t, inMetric("metricPort", "web"))
	plan, err = m.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.Equal(t, "web", plan.Port.Port.String(), "without TLS too")

	m = parsed(t, inMetric("metricProtocol", "https", "tlsServerName", "pods"))
	plan, err = m.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.Equal(t, "pods", plan.Scrape.TLS.ServerName, "without the name of a port too")
}

func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte("apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: chat, namespace: models}\n"+text), &u.Object))
	return u
}

func TestObjectOf(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Object
	}{
		{"spec: {scaleTargetRef: {name: c}}", Object{Target: k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "models", Name: "c"}, Min: 0, Max: 100}},
		{
			"spec: {scaleTargetRef: {apiVersion: kaito.sh/v1alpha1, kind: Workspace, name: c}, minReplicaCount: 2, maxReplicaCount: 7, pollingInterval: 5, triggers: []}",
			Object{Target: k8s.Target{APIVersion: "kaito.sh/v1alpha1", Kind: "Workspace", Namespace: "models", Name: "c"}, Min: 2, Max: 7},
		},
		{"spec: {scaleTargetRef: {kind: StatefulSet, name: c}, minReplicaCount: 0, maxReplicaCount: 1}", Object{Target: k8s.Target{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "models", Name: "c"}, Min: 0, Max: 1}},
		// The proposal's names are not ScaledObject's.
		{"spec: {scaleTargetRef: {name: c}, minReplicas: 3, maxReplicas: 10}", Object{Target: k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "models", Name: "c"}, Min: 0, Max: 100}},
	} {
		o, err := ObjectOf(manifest(t, tt.text))
		require.NoError(t, err, tt.text)
		require.Equal(t, tt.want, o)
	}
	for text, want := range map[string]string{
		"spec: {}":   `spec.scaleTargetRef.name: "": must not be empty`,
		"status: {}": `spec.scaleTargetRef.name: "": must not be empty`,
		"spec: {scaleTargetRef: {}, minReplicaCount: -1, maxReplicaCount: 0}": `spec.scaleTargetRef.name: "": must not be empty` +
			"\nspec.minReplicaCount: -1: must be at least 0\nspec.maxReplicaCount: 0: must be at least 1, and at least minReplicaCount",
		"spec: {scaleTargetRef: {name: c}, minReplicaCount: 5, maxReplicaCount: 4}": "spec.maxReplicaCount: 4: must be at least 1, and at least minReplicaCount",
		"spec: {scaleTargetRef: {name: c}, minReplicaCount: 101}":                   "spec.maxReplicaCount: 100: must be at least 1, and at least minReplicaCount",
	} {
		_, err := ObjectOf(manifest(t, text))
		require.EqualError(t, err, want, text)
	}
	for text, says := range map[string]string{
		"spec: {minReplicaCount: two}":         "spec.minReplicaCount: string: must be a whole number of at most 32 bits",
		"spec: {maxReplicaCount: 1.5}":         "spec.maxReplicaCount: number 1.5: must be a whole number of at most 32 bits",
		"spec: []":                             "spec: array: must be an object",
		"spec: {scaleTargetRef: c}":            "spec.scaleTargetRef: string: must be an object",
		"spec: {maxReplicaCount: 99999999999}": "spec.maxReplicaCount: number 99999999999: must be a whole number of at most 32 bits",
	} {
		_, err := ObjectOf(manifest(t, text))
		require.EqualError(t, err, "ScaledObject models/chat: "+says, text)
	}
}

func TestResolve(t *testing.T) {
	ref := Ref{Namespace: "models", Name: "chat"}
	o := Object{Target: chatTarget, Min: 0, Max: 100}
	cron := []string{"cron.policies", `[{name: a, schedule: "0 1 * * *", targetReplicas: 2}]`}
	for _, tt := range []struct {
		metadata map[string]string
		object   Object
		target   k8s.Target
		bounds   scaling.Bounds
	}{
		{inMetric(), o, chatTarget, scaling.Bounds{Min: 0, Max: 100}},
		{inMetric(), Object{Target: chatTarget, Min: 3, Max: 7}, chatTarget, scaling.Bounds{Min: 0, Max: 7}},
		{inMetric(), Object{Target: k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"}, Min: 0, Max: 1}, chatTarget, scaling.Bounds{Min: 0, Max: 1}},
		{inMetric("workspaceName", "w"), o, k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "models", Name: "w"}, scaling.Bounds{Min: 0, Max: 100}},
		{inMetric("targetAPIVersion", "v1", "targetKind", "K"), o, k8s.Target{APIVersion: "v1", Kind: "K", Namespace: "models", Name: "chat"}, scaling.Bounds{Min: 0, Max: 100}},
		{inMetric("workspaceNamespace", "models"), o, chatTarget, scaling.Bounds{Min: 0, Max: 100}},
		{inReplicas(), o, chatTarget, scaling.Bounds{Min: 1, Max: 100}},
		{inReplicas(), Object{Target: chatTarget, Min: 4, Max: 9}, chatTarget, scaling.Bounds{Min: 4, Max: 9}},
		{inReplicas("minReplicas", "2", "maxReplicas", "3"), Object{Target: chatTarget, Min: 4, Max: 9}, chatTarget, scaling.Bounds{Min: 2, Max: 3}},
		{inReplicas("maxReplicas", "200"), Object{Target: chatTarget, Min: 4, Max: 9}, chatTarget, scaling.Bounds{Min: 4, Max: 200}},
		{inReplicas("minReplicas", "0"), o, chatTarget, scaling.Bounds{Min: 0, Max: 100}},
		{inReplicas(cron...), o, chatTarget, scaling.Bounds{Min: 0, Max: 100}},
	} {
		m := parsed(t, tt.metadata)
		target, bounds, err := m.resolve(ref, tt.object, false)
		require.NoError(t, err, "%v", tt.metadata)
		require.Equal(t, tt.target, target, "%v", tt.metadata)
		require.Equal(t, tt.bounds, bounds, "%v", tt.metadata)
	}
}

func TestResolveRefuses(t *testing.T) {
	ref := Ref{Namespace: "models", Name: "chat"}
	for _, tt := range []struct {
		metadata map[string]string
		object   Object
		want     string
	}{
		{inMetric("workspaceNamespace", "other"), Object{Target: chatTarget, Min: 0, Max: 100}, `workspaceNamespace: "other": must be the ScaledObject's namespace, models, unless the scaler allows others`},
		{inMetric("targetNamespaceFromEnv", "other"), Object{Target: chatTarget, Min: 0, Max: 100}, `targetNamespaceFromEnv: (not shown): must be the ScaledObject's namespace, models, unless the scaler allows others`},
		{inReplicas("maxReplicas", "3"), Object{Target: chatTarget, Min: 4, Max: 100}, "maxReplicas: 3: must be at least minReplicas 4"},
		{inReplicas("minReplicas", "101"), Object{Target: chatTarget, Min: 4, Max: 100}, "maxReplicas: 100: must be at least minReplicas 101"},
		{inReplicas("minReplicas", "3", "maxReplicasFromEnv", "2"), Object{Target: chatTarget, Min: 0, Max: math.MaxInt32}, "maxReplicasFromEnv: (not shown): must be at least minReplicas 3"},
		{inMetric(), Object{Target: k8s.Target{APIVersion: "a/b/c", Kind: "K", Name: "x"}, Min: 0, Max: 1}, `target.apiVersion: "a/b/c": must be "version" or "group/version"`},
	} {
		m := parsed(t, tt.metadata)
		_, _, err := m.resolve(ref, tt.object, false)
		require.EqualError(t, err, tt.want)
	}
	m := parsed(t, inMetric("targetNamespace", "other"))
	target, _, err := m.resolve(ref, Object{Target: chatTarget, Min: 0, Max: 1}, true)
	require.NoError(t, err)
	require.Equal(t, "other", target.Namespace)
}
