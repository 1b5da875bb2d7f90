package keda

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// given reads metadata as they stand in a ScaledObject.
func given(tb testing.TB, text string) map[string]string {
	tb.Helper()
	m := make(map[string]string)
	require.NoError(tb, yaml.UnmarshalStrict([]byte(text), &m), text)
	return m
}

// inMetric adds metadata to what a trigger in mode metric needs; a value of "-" takes a key away.
func inMetric(pairs ...string) map[string]string {
	m := map[string]string{"scalerName": DefaultScalerName, "threshold": "10"}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
		if pairs[i+1] == "-" {
			delete(m, pairs[i])
		}
	}
	return m
}

// inReplicas is inMetric in mode replicas.
func inReplicas(pairs ...string) map[string]string {
	return inMetric(append([]string{"mode", "replicas"}, pairs...)...)
}

func parsed(tb testing.TB, metadata map[string]string) Metadata {
	tb.Helper()
	m, err := ParseMetadata(metadata)
	require.NoError(tb, err)
	return m
}

// source returns where mode metric reads.
func source(m Metadata) policy.MetricSource { return m.Scaler.Proportional.Metrics[0].Source }

func port(n int32) *policy.PortNumber {
	p := policy.NewPortNumber(n)
	return &p
}

// target and bounds of tests that build plans.
var (
	chatTarget = k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "models", Name: "chat"}
	oneToTen   = scaling.Bounds{Min: 1, Max: 10}
)

// read returns what is read of the pods.
func read(tb testing.TB, metadata map[string]string) scrape.Config {
	tb.Helper()
	m := parsed(tb, metadata)
	plan, err := m.plan(chatTarget, oneToTen)
	require.NoError(tb, err)
	return plan.Scrape
}

func TestDefaults(t *testing.T) {
	m := parsed(t, inMetric())
	require.Equal(t, "keda-kaito-scaler", m.ScalerName)
	require.Equal(t, Metric, m.Mode)
	require.Equal(t, AverageValue, m.MetricType)
	require.Equal(t, k8s.Target{}, m.Target)
	require.Nil(t, m.MinReplicas)
	require.Nil(t, m.MaxReplicas)
	require.InDelta(t, 10, m.Threshold, 0)
	require.Equal(t, 15*time.Second, m.Interval)
	require.Equal(t, 5*time.Second, m.ScrapeTimeout)
	require.Empty(t, m.PortName)
	require.Equal(t, "Pod", m.Grouping)
	require.Nil(t, m.TLS)
	require.Empty(t, m.Unknown)
	require.Empty(t, m.Warnings)
	require.Equal(t, Spec{Metric: "vllm:num_requests_waiting", Target: 10}, m.Spec())

	c := read(t, inMetric())
	require.Len(t, c.Metrics, 1)
	require.Equal(t, "vllm:num_requests_waiting", c.Metrics[0].Name)
	require.Equal(t, "http", c.Metrics[0].Endpoint.Scheme)
	require.Contains(t, []int{0, 5000}, c.Metrics[0].Endpoint.Port)
	require.Contains(t, []string{"", "/metrics"}, c.Metrics[0].Endpoint.Path)
	require.InDelta(t, 10, c.Metrics[0].Fill, 0)
	require.Equal(t, 5*time.Second, c.Timeout)

	m = parsed(t, inReplicas())
	require.Equal(t, Spec{Metric: "desired-replicas", Target: 1}, m.Spec())
	require.Equal(t, AverageValue, m.MetricType)
	require.Nil(t, m.Scaler.Realtime)
	require.Len(t, m.Scaler.Proportional.Metrics, 1)
}

// seedTrigger is the "Trigger Specification" of the proposal, word for word.
const seedTrigger = `
triggers:
- type: external
  metadata:
    # Required fields

    # Unique identifier for this scaler instance
    scalerName: keda-kaito-scaler

    # threshold for scaling up/down
    # When average waiting requests per pod exceeds this value * (1 + scaleUp.tolerance), scale up
    # When average waiting requests per pod drops below this value * (1 - scaleDown.tolerance), scale down
    threshold: "10"

    # Optional fields:

    # The name of the workspace resource
    # Default: name of the ScaledObject.Spec.scaleTargetRef
    workspaceName: my-vllm-workspace

    # The namespace of the workspace resource
    # Default: namespace of the ScaledObject object.
    workspaceNamespace: kaito-workloads

    # The address of the external scaler
    scalerAddress: kaito-scaler.keda.svc.cluster.local:9090

    # Metric name to scrape from pods
    # Default: "vllm:num_requests_waiting"
    metricName: "vllm:num_requests_waiting"

    # Protocol for scraping metrics from pods
    # Default: "https"
    metricPorotocol: "https"

    # Port name for scraping metrics from pods
    # Default: "5000"
    metricPort: "5000"

    # Path for metrics endpoint on pods
    # Default: "/metrics"
    metricPath: "/metrics"

    # Optional: Timeout for metric scraping in seconds
    # Default: 5
    scrapeTimeout: "5"
  # Optional: TLS Authentication used by keda-core to acess keda-kaito-scaler
  # Default: "keda-kaito-creds"
  authenticationRef:
    name: keda-kaito-creds
    kind: ClusterTriggerAuthentication
`

func TestSeedTrigger(t *testing.T) {
	var s struct {
		Triggers []struct {
			Metadata map[string]string `json:"metadata"`
		} `json:"triggers"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(seedTrigger), &s))
	metadata := s.Triggers[0].Metadata
	m := parsed(t, metadata)
	require.Equal(t, k8s.Target{Namespace: "kaito-workloads", Name: "my-vllm-workspace"}, m.Target)
	require.InDelta(t, 10, m.Threshold, 0)
	require.Equal(t, 5*time.Second, m.ScrapeTimeout)
	require.Equal(t, policy.MetricSource{Name: "vllm:num_requests_waiting", Protocol: "https", Port: port(5000), Path: "/metrics"}, source(m))
	require.Empty(t, m.Unknown, "scalerAddress is KEDA's own")
	require.Equal(t, []string{"metricPorotocol: is spelt metricProtocol"}, m.Warnings)
	c := read(t, metadata)
	require.Equal(t, scrape.Endpoint{Scheme: "https", Port: 5000, Path: "/metrics"}, c.Metrics[0].Endpoint)
	require.Equal(t, 5*time.Second, c.Timeout)

	metadata["metricPorotocol"] = "http"
	require.Equal(t, "http", read(t, metadata).Metrics[0].Endpoint.Scheme)

	// The proposal's other example leaves the rest to the defaults. Theirs is https, here it is http.
	short := given(t, "scalerName: keda-kaito-scaler\nmetricName: \"vllm:num_requests_waiting\"\nthreshold: \"10\"\n")
	require.Equal(t, "http", read(t, short).Metrics[0].Endpoint.Scheme)
}

func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		metadata map[string]string
		get      func(Metadata) any
		want     any
	}{
		{inMetric("scalerName", "mine"), func(m Metadata) any { return m.ScalerName }, "mine"},
		{inMetric("mode", "metric"), func(m Metadata) any { return m.Mode }, Metric},
		{inReplicas(), func(m Metadata) any { return m.Mode }, Replicas},
		{inMetric("metricType", "Value"), func(m Metadata) any { return m.MetricType }, Value},
		{inMetric("metricType", "AverageValue"), func(m Metadata) any { return m.MetricType }, AverageValue},
		{inReplicas("metricType", "AverageValue"), func(m Metadata) any { return m.MetricType }, AverageValue},
		{inMetric("metricName", "queue"), func(m Metadata) any { return m.Spec().Metric }, "queue"},
		{inMetric("metricProtocol", "https"), func(m Metadata) any { return source(m).Protocol }, policy.HTTPS},
		{inMetric("metricProtocol", "http", "metricPorotocol", "http"), func(m Metadata) any { return source(m).Protocol }, policy.HTTP},
		{inMetric("metricPort", "8080"), func(m Metadata) any { return source(m).Port }, port(8080)},
		{inMetric("metricPort", "", "metricName", "", "metricPath", "", "metricProtocol", ""), func(m Metadata) any { return source(m) }, policy.MetricSource{}},
		{inMetric("metricPort", "http-metrics"), func(m Metadata) any { return m.PortName }, "http-metrics"},
		{inMetric("metricPath", "/m"), func(m Metadata) any { return source(m).Path }, "/m"},
		{inMetric("aggregation", "Max"), func(m Metadata) any { return source(m).Aggregation }, policy.Aggregation("Max")},
		{inMetric("threshold", "0.9", "engine", "VLLM", "signal", "KVCacheUsage"), func(m Metadata) any { return m.Spec().Metric }, "KVCacheUsage"},
		{inMetric("engine", "VLLM", "signal", "TTFT", "quantile", "0.9"), func(m Metadata) any { return source(m).Quantile.String() }, "0.9"},
		{inMetric("scrapeTimeout", "1500ms"), func(m Metadata) any { return m.ScrapeTimeout }, 1500 * time.Millisecond},
		{inMetric("tlsServerName", "pods"), func(m Metadata) any { return *m.TLS }, policy.ScrapeTLS{ServerName: "pods"}},
		{inMetric("tlsInsecureSkipVerify", "true"), func(m Metadata) any { return *m.TLS }, policy.ScrapeTLS{InsecureSkipVerify: true}},
		{inMetric("tlsInsecureSkipVerify", "false"), func(m Metadata) any { return m.TLS == nil }, true},
		{inMetric("workspaceName", "w"), func(m Metadata) any { return m.Target.Name }, "w"},
		{inMetric("targetName", "w"), func(m Metadata) any { return m.Target.Name }, "w"},
		{inMetric("targetName", "w", "workspaceName", "w"), func(m Metadata) any { return m.Target.Name }, "w"},
		{inMetric("workspaceNamespace", "n"), func(m Metadata) any { return m.Target.Namespace }, "n"},
		{inMetric("targetNamespace", "n"), func(m Metadata) any { return m.Target.Namespace }, "n"},
		{inMetric("targetAPIVersion", "kaito.sh/v1beta1", "targetKind", "InferenceSet"), func(m Metadata) any { return m.Target }, k8s.Target{APIVersion: "kaito.sh/v1beta1", Kind: "InferenceSet"}},
		{inMetric("grouping", "LeaderWorkerSet"), func(m Metadata) any { return m.Grouping }, "LeaderWorkerSet"},
		{inMetric("grouping", "KaitoWorkspace"), func(m Metadata) any { return m.Grouping }, "KaitoWorkspace"},
		{inMetric("interval", "30"), func(m Metadata) any { return m.Interval }, 30 * time.Second},
		{inMetric("threshold", " 10 "), func(m Metadata) any { return m.Threshold }, 10.0},
		{inMetric("thresholdFromEnv", "7", "threshold", "-"), func(m Metadata) any { return m.Threshold }, 7.0},
		{inMetric("scalerAddressFromEnv", "x", "enableTLS", "true", "unsafeSsl", "true"), func(m Metadata) any { return len(m.Unknown) }, 0},
		{inReplicas("minReplicas", "0", "maxReplicas", "5"), func(m Metadata) any { return []int32{*m.MinReplicas, *m.MaxReplicas} }, []int32{0, 5}},
		{inReplicas("profile", "kpa"), func(m Metadata) any { return m.Scaler.Proportional.Profile }, policy.ProfileKPA},
		{inReplicas("profile", "kpa", "proportional.profile", "kpa"), func(m Metadata) any { return m.Scaler.Proportional.Profile }, policy.ProfileKPA},
		{inReplicas("proportional.profile", "kpa"), func(m Metadata) any { return m.Scaler.Proportional.Profile }, policy.ProfileKPA},
		{inReplicas("lowThreshold", "2"), func(m Metadata) any { return m.Scaler.Realtime.Metrics[0].Threshold }, policy.MetricThreshold{High: policy.NewDecimal("10"), Low: policy.NewDecimal("2")}},
		{inReplicas("policy", "realtime", "lowThreshold", "2", "profile", "responsive"), func(m Metadata) any { return m.Scaler.Realtime.Profile }, policy.ProfileResponsive},
	} {
		m := parsed(t, tt.metadata)
		require.Equal(t, tt.want, tt.get(m), "%v", tt.metadata)
		require.Empty(t, m.Unknown)
		_, err := m.plan(chatTarget, oneToTen)
		require.NoError(t, err, "%v", tt.metadata)
	}
}

func TestUnknownKeys(t *testing.T) {
	m := parsed(t, inMetric("zeta", "1", "metricname", "x", "secretFromEnv", "abc", "thresholdFromEnv", "99", "", "nothing", "FromEnv", "x", "realtimeX.a", "1"))
	require.Equal(t, []string{"", "FromEnv", "metricname", "realtimeX.a", "secretFromEnv", "thresholdFromEnv", "zeta"}, m.Unknown)
	require.InDelta(t, 10, m.Threshold, 0)
}

// TestKnown: Known and Unknown are of one mind.
func TestKnown(t *testing.T) {
	for _, metadata := range []map[string]string{inMetric(), inReplicas()} {
		for _, key := range append(append(ownKeys(), sourceKeys()...), "zeta", "metricname", "metricNameFromEnv", "zetaFromEnv", "cron", "scaler.x") {
			m, err := ParseMetadata(inMetric(key, "x"))
			if err == nil {
				require.Equal(t, !slices.Contains(m.Unknown, key), Known(key), "%s beside %v", key, metadata)
			} else {
				require.True(t, Known(key), key)
			}
		}
	}
}

// wrong checks the faults of metadata, one a line.
func wrong(t *testing.T, metadata map[string]string, want ...string) {
	t.Helper()
	m, err := ParseMetadata(metadata)
	require.EqualError(t, err, strings.Join(want, "\n"), "%v", metadata)
	require.Equal(t, Metadata{}, m)
}

func TestWrongKeys(t *testing.T) {
	const (
		number  = "must be a number from 0.001 to below 1e+12: KEDA counts in thousandths"
		seconds = `must be seconds or a duration, as 5 or "5s", between `
		beside  = "must not be given beside scaler, which says it all"
		alone   = "must be given with threshold only: the rules are given by their paths"
	)
	for _, tt := range []struct {
		metadata map[string]string
		want     string
	}{
		{inMetric("scalerName", "-"), `scalerName: "": must not be empty`},
		{inMetric("scalerName", "-", "scalerNameFromEnv", " "), `scalerNameFromEnv: (not shown): must not be empty`},
		{inMetric("mode", "both"), `mode: "both": must be metric or replicas`},
		{inMetric("mode", ""), `mode: "": must be metric or replicas`},
		{inMetric("threshold", "-"), `threshold: "": must be given in mode metric`},
		{inMetric("threshold", "many"), `threshold: "many": ` + number},
		{inMetric("threshold", "-", "thresholdFromEnv", "many"), `thresholdFromEnv: (not shown): ` + number},
		{inMetric("metricType", "Utilization"), `metricType: "Utilization": must be AverageValue or Value`},
		{inReplicas("metricType", "Value"), `metricType: "Value": must be AverageValue in mode replicas, as the trigger's own metricType: Value is multiplied by the ready pods`},
		{inMetric("metricProtocol", "ftp"), `metricProtocol: "ftp": must be http or https`},
		{inMetric("metricPorotocol", "ftp"), `metricPorotocol: "ftp": must be http or https`},
		{inMetric("metricProtocol", "https", "metricPorotocol", "http"), `metricPorotocol: "http": must be that of metricProtocol, "https", or not be given`},
		{inMetric("targetName", "a", "workspaceName", "b"), `workspaceName: "b": must be that of targetName, "a", or not be given`},
		{inMetric("targetNamespace", "a", "workspaceNamespace", "b"), `workspaceNamespace: "b": must be that of targetNamespace, "a", or not be given`},
		{inMetric("metricName", "a/b"), `metricName: "a/b": must not contain / or %: a HorizontalPodAutoscaler cannot ask for it`},
		{inMetric("metricName", "a%b"), `metricName: "a%b": must not contain / or %: a HorizontalPodAutoscaler cannot ask for it`},
		{inMetric("metricPort", "99999999999"), `metricPort: "99999999999": must be a number, or the name of a container's port`},
		{inMetric("metricPort", "5000.5"), `metricPort: "5000.5": must be a number, or the name of a container's port`},
		{inMetric("metricPort", "the port"), `metricPort: "the port": must be a number, or the name of a container's port`},
		{inMetric("tlsInsecureSkipVerify", "yes"), `tlsInsecureSkipVerify: "yes": must be true or false`},
		{inMetric("targetKind", "InferenceSet"), `targetKind: "InferenceSet": must be given with targetAPIVersion, and only with it`},
		{inMetric("targetAPIVersion", "v1"), `targetKind: "": must be given with targetAPIVersion, and only with it`},
		{inMetric("targetAPIVersion", "a/b/c", "targetKind", "K"), `targetAPIVersion: "a/b/c": must be "version" or "group/version"`},
		{inMetric("grouping", "Pods"), `grouping: "Pods": must be Pod or LeaderWorkerSet or KaitoWorkspace`},
		{inMetric("interval", "0.5"), `interval: "0.5": ` + seconds + "1s and 1h0m0s"},
		{inMetric("interval", "3601"), `interval: "3601": ` + seconds + "1s and 1h0m0s"},
		{inMetric("interval", "1.5"), `interval: "1.5": must be whole seconds`},
		{inMetric("interval", "1500ms"), `interval: "1500ms": must be whole seconds`},
		{inMetric("interval", "soon"), `interval: "soon": ` + seconds + "1s and 1h0m0s"},
		{inMetric("scrapeTimeout", "15"), `scrapeTimeout: "15": ` + seconds + "1ms and 14.999s"},
		{inMetric("scrapeTimeout", "0"), `scrapeTimeout: "0": ` + seconds + "1ms and 14.999s"},
		{inMetric("scrapeTimeout", "NaN"), `scrapeTimeout: "NaN": ` + seconds + "1ms and 14.999s"},
		{inMetric("scrapeTimeout", "1e99"), `scrapeTimeout: "1e99": ` + seconds + "1ms and 14.999s"},
		{inMetric("scrapeTimeout", "-1"), `scrapeTimeout: "-1": ` + seconds + "1ms and 14.999s"},
		{inMetric("scrapeTimeout", "5", "interval", "5"), `scrapeTimeout: "5": ` + seconds + "1ms and 4.999s"},

		{inMetric("policy", "realtime"), `policy: "realtime": must be given in mode replicas only`},
		{inMetric("profile", "kpa"), `profile: "kpa": must be given in mode replicas only`},
		{inMetric("lowThreshold", "1"), `lowThreshold: "1": must be given in mode replicas only`},
		{inMetric("minReplicas", "1"), `minReplicas: "1": must be given in mode replicas only`},
		{inMetric("maxReplicas", "1"), `maxReplicas: "1": must be given in mode replicas only`},
		{inMetric("scaler", "{}"), `scaler: "{}": must be given in mode replicas only`},
		{inMetric("cron.outside", "1"), `cron.outside: "1": must be given in mode replicas only`},

		{inReplicas("threshold", "-"), `threshold: "": must be given in mode replicas, unless every policy has its metrics, or is capacity or cron`},
		{inReplicas("threshold", "0"), `threshold: "0": ` + number},
		{inReplicas("minReplicas", "-1"), `minReplicas: "-1": must be a whole number between 0 and 2147483647`},
		{inReplicas("maxReplicas", "0"), `maxReplicas: "0": must be a whole number between 1 and 2147483647`},
		{inReplicas("maxReplicas", "2147483648"), `maxReplicas: "2147483648": must be a whole number between 1 and 2147483647`},
		{inReplicas("minReplicas", "1.5"), `minReplicas: "1.5": must be a whole number between 0 and 2147483647`},
		{inReplicas("policy", "cron"), `policy: "cron": must be proportional or realtime`},
		{inReplicas("policy", "realtime"), `lowThreshold: "": must be given with policy realtime: fewer replicas are wanted below it`},
		{inReplicas("policy", "proportional", "lowThreshold", "1"), `lowThreshold: "1": must be given with policy realtime only`},
		{inReplicas("profile", "kpa", "proportional.profile", "llm"), `profile: "kpa": must be that of proportional.profile, or not be given`},
		{inReplicas("lowThreshold", "1", "profile", "seed", "realtime.profile", "responsive"), `profile: "seed": must be that of realtime.profile, or not be given`},
		{inReplicas("proportional.metrics", "[{target: 1}]"), "proportional.metrics: 1: must not be given beside threshold"},
		{inReplicas("lowThreshold", "1", "realtime.metrics", "[{threshold: {high: 2, low: 1}}]"), "realtime.metrics: 1: must not be given beside threshold"},

		{inReplicas("realtime.scaleUpRule.coolDown", "1", "policy", "proportional"), "realtime.metrics: 0: must be at least one\nrealtime.scaleUpRule.coolDown: 1: is not a field here: is it cooldownSeconds? the fields are scaleStep, cooldownSeconds, stabilizationWindowSeconds"},
		{inReplicas("proportional.stabilization.downseconds", "1"), `proportional.stabilization.downseconds: 1: is not a field here: is it downSeconds? the fields are upSeconds, downSeconds`},
		{inReplicas("proportional.stabilization.downSeconds", "1m"), `proportional.stabilization.downSeconds: "1m": must be a whole number of seconds, without a unit: 60`},
		{inReplicas("proportional.stabilization.downSeconds", "1.5"), `proportional.stabilization.downSeconds: 1.5: must be a whole number of seconds, as 30`},
		{inReplicas("proportional.stabilization.downSeconds", "99999999999"), `proportional.stabilization.downSeconds: 99999999999: must be a whole number of seconds of at most 2147483647`},
		{inReplicas("policy", "proportional", "realtime.metrics", "[{source: {port: x}}]"), "metricName: \"vllm:num_requests_waiting\": must be read as scaler.realtime.metrics[0].source reads it, which has the same name\nrealtime.metrics[0].source.port: \"x\": must be the number of a port\nrealtime.metrics[0].threshold: \"\": must be given"},
		{inReplicas("proportional.foo", strings.Repeat("é", 50)), `proportional.foo: "éééééééééééééééééééééééééééééé...": is not a field here; the fields are profile, metrics, scaleUp, scaleDown, stableWindowSeconds, resolutionSeconds, panic, stabilization, rateLimits, activationScale, startupCredit, forecast`},
		{inReplicas("proportional.foo", "x"+strings.Repeat("é", 50)), `proportional.foo: "xééééééééééééééééééééééééééééé...": is not a field here; the fields are profile, metrics, scaleUp, scaleDown, stableWindowSeconds, resolutionSeconds, panic, stabilization, rateLimits, activationScale, startupCredit, forecast`},
		{inReplicas("proportional.", "1"), `proportional.: "1": must name a field`},
		{inReplicas("proportional..x", "1"), `proportional..x: "1": must name a field`},
		{inReplicas("proportional.scaleUp", "{maxStep: 1}", "proportional.scaleUp.maxStep", "2"), `proportional.scaleUp.maxStep: "2": must not be given in part and as a whole`},
		{inReplicas("cron.windows", "nothing"), "cron.policies: 0: must have at least one\ncron.windows: \"nothing\": must be a list"},

		{inReplicas("scaler", "{}"), "threshold: \"10\": must not be given beside scaler, which says it all\nscaler: \"{}\": must be a policy document: scaler:1: must have at least one of realtime, proportional, saturation, capacity, static and cron"},
		{inReplicas("threshold", "-", "scaler", "{}", "profile", "kpa"), "profile: \"kpa\": must not be given beside scaler, which says it all\nscaler: \"{}\": must be a policy document: scaler:1: must have at least one of realtime, proportional, saturation, capacity, static and cron"},
		{inReplicas("threshold", "-", "scaler", "{}", "policy", "realtime"), "policy: \"realtime\": must not be given beside scaler, which says it all\nscaler: \"{}\": must be a policy document: scaler:1: must have at least one of realtime, proportional, saturation, capacity, static and cron"},
		{inReplicas("threshold", "-", "scaler", "{}", "lowThreshold", "1"), "lowThreshold: \"1\": must not be given beside scaler, which says it all\nscaler: \"{}\": must be a policy document: scaler:1: must have at least one of realtime, proportional, saturation, capacity, static and cron"},
		{inReplicas("threshold", "-", "scaler", "{}", "metricPort", "1"), "metricPort: \"1\": must not be given beside scaler, which says it all\nscaler: \"{}\": must be a policy document: scaler:1: must have at least one of realtime, proportional, saturation, capacity, static and cron"},
		{inReplicas("threshold", "-", "scaler", "{}", "cron.outside", "1"), "cron.outside: \"1\": must not be given beside scaler, which says it all\nscaler: \"{}\": must be a policy document: scaler:1: must have at least one of realtime, proportional, saturation, capacity, static and cron"},
		{inReplicas("threshold", "-", "scaler", "[]"), `scaler: "[]": must be a policy document: scaler:1: file: a list: must be a mapping; {} is an empty one`},
		{inReplicas("threshold", "-", "scaler", "a: 1\na: 2"), "scaler: \"a: 1\\na: 2\": must be a policy document: scaler:1: a: 1: is not a field here; the fields are name, realtime, proportional, saturation, capacity, static, cron, stabilization, rateLimits, highest\nscaler: \"a: 1\\na: 2\": must be a policy document: scaler:1: must have at least one of realtime, proportional, saturation, capacity, static and cron\nscaler: \"a: 1\\na: 2\": must be a policy document: scaler:2: a: 2: is not a field here; the fields are name, realtime, proportional, saturation, capacity, static, cron, stabilization, rateLimits, highest"},
		{inReplicas("threshold", "-", "scaler", "cron: {}\n---\nrealtime: {}"), `scaler: "cron: {}\n---\nrealtime: {}": must be a policy document: scaler:1: cron.policies: 0: must have at least one`},
		{inReplicas("threshold", "-", "scaler", "cron: {Outside: 1}"), "scaler: \"cron: {Outside: 1}\": must be a policy document: scaler:1: cron.Outside: 1: is not a field here: is it outside? the fields are mode, policies, windows, outside\nscaler: \"cron: {Outside: 1}\": must be a policy document: scaler:1: cron.policies: 0: must have at least one"},
		{inReplicas("threshold", "-", "scalerFromEnv", "cron: {outside: x}"), "scalerFromEnv: (not shown): must be a policy document\nscalerFromEnv: (not shown): must be a policy document"},

		{inReplicas("threshold", "-", "cron.outside", "1", "lowThreshold", "2"), "lowThreshold: \"2\": must be given with threshold only: the rules are given by their paths\ncron.policies: 0: must have at least one\ncron.outside: 1: must be 0 unless mode is InWindow"},
		{inReplicas("threshold", "-", "cron.outside", "1", "policy", "realtime"), "policy: \"realtime\": must be given with threshold only: the rules are given by their paths\ncron.policies: 0: must have at least one\ncron.outside: 1: must be 0 unless mode is InWindow"},
		{inReplicas("threshold", "-", "cron.outside", "1", "metricName", "q"), "metricName: \"q\": must be given with threshold only: the rules are given by their paths\ncron.policies: 0: must have at least one\ncron.outside: 1: must be 0 unless mode is InWindow"},
	} {
		wrong(t, tt.metadata, tt.want)
	}
}

func TestWrongKeysAllAtOnce(t *testing.T) {
	wrong(t, map[string]string{
		"mode": "replicas", "threshold": "0", "interval": "0", "grouping": "x", "metricPortFromEnv": "a b", "maxReplicas": "none",
		"proportional.foo": "1", "proportional.stabilization.bar": "2", "tlsInsecureSkipVerify": "1", "metricType": "Value",
	},
		`scalerName: "": must not be empty`,
		`interval: "0": must be seconds or a duration, as 5 or "5s", between 1s and 1h0m0s`,
		`grouping: "x": must be Pod or LeaderWorkerSet or KaitoWorkspace`,
		`tlsInsecureSkipVerify: "1": must be true or false`,
		`metricType: "Value": must be AverageValue in mode replicas, as the trigger's own metricType: Value is multiplied by the ready pods`,
		`maxReplicas: "none": must be a whole number between 1 and 2147483647`,
		`metricPortFromEnv: (not shown): must be a number, or the name of a container's port`,
		`threshold: "0": must be a number from 0.001 to below 1e+12: KEDA counts in thousandths`,
		`proportional.foo: 1: is not a field here; the fields are profile, metrics, scaleUp, scaleDown, stableWindowSeconds, resolutionSeconds, panic, stabilization, rateLimits, activationScale, startupCredit, forecast`,
		`proportional.stabilization.bar: 2: is not a field here; the fields are upSeconds, downSeconds`,
	)
}

func TestSecondsAndDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "1.5": 1500 * time.Millisecond, "1500ms": 1500 * time.Millisecond, " 2s ": 2 * time.Second,
		"0.001": time.Millisecond, "1e1": 10 * time.Second, "1m": time.Minute, "59.9995": 60 * time.Second,
	} {
		require.Equal(t, want, parsed(t, inMetric("scrapeTimeout", text, "interval", "90")).ScrapeTimeout, text)
	}
	for _, text := range []string{"", "5 s", "five", "-5", "0", "0.0001", "100us", "Inf", "NaN", "1e300", "90", "90s", "1h1h"} {
		_, err := ParseMetadata(inMetric("scrapeTimeout", text, "interval", "90"))
		require.ErrorContains(t, err, "scrapeTimeout: "+strconv.Quote(text)+": must be seconds", text)
	}
	for _, text := range []string{"1", "1s", "3600", "1h", "1.0", "2000ms"} {
		m := parsed(t, inMetric("interval", text))
		require.LessOrEqual(t, m.ScrapeTimeout, m.Interval/2, "the default gives way")
	}
}

// TestATimeoutIsJudgedByAnIntervalThatIsKnown: the default is, whatever else is wrong; what cannot be read is not.
func TestATimeoutIsJudgedByAnIntervalThatIsKnown(t *testing.T) {
	const between = "must be seconds or a duration, as 5 or \"5s\", between "
	wrong(t, inMetric("scalerName", "-", "scrapeTimeout", "20"), `scalerName: "": must not be empty`, `scrapeTimeout: "20": `+between+"1ms and 14.999s")
	wrong(t, inMetric("interval", "soon", "scrapeTimeout", "20"), `interval: "soon": `+between+"1s and 1h0m0s")
}

func TestThresholds(t *testing.T) {
	for text, want := range map[string]float64{
		"0.001": 0.001, "1e-3": 0.001, "0.9": 0.9, "1e3": 1000, "10 ": 10, "+5": 5, "999999999999": 999999999999, ".5": 0.5,
	} {
		m := parsed(t, inMetric("threshold", text))
		require.InDelta(t, want, m.Threshold, 0, text)
		require.Empty(t, m.Warnings, text)
		require.InDelta(t, want, read(t, inMetric("threshold", text)).Metrics[0].Fill, 0, text)
	}
	for _, text := range []string{
		"", "0.0009", "0", "-0", "-1", "NaN", "nan", "Inf", "+Inf", "-Inf", "infinity", "1e12", "999999999999.9999", "1e400", "0x10", "10%", "1,5", "1 0", "ten",
	} {
		for _, metadata := range []map[string]string{inMetric("threshold", text), inReplicas("threshold", text)} {
			_, err := ParseMetadata(metadata)
			require.ErrorContains(t, err, "threshold: "+strconv.Quote(text)+": must be a number from 0.001 to below 1e+12", text)
		}
	}
}

// TestThresholdIsWhatKEDAHas: a target of 0.9004 is 0.9 for a HorizontalPodAutoscaler. Ten replicas held at 0.9004 each
// were 11 at 0.9.
func TestThresholdIsWhatKEDAHas(t *testing.T) {
	m := parsed(t, inMetric("threshold", "0.9004"))
	require.InDelta(t, 0.9, m.Threshold, 0)
	require.InDelta(t, 0.9, m.Spec().Target, 0)
	require.Equal(t, []string{"threshold: 0.9004 counts as 0.9: KEDA rounds to thousandths"}, m.Warnings)
	held := scaling.Reading{Metric: "q", Lower: 0.1, Upper: 2, Values: 5, NotReady: 5}
	value, _, err := metricValue(AverageValue, m.Threshold, held, 10, 5)
	require.NoError(t, err)
	require.EqualValues(t, 10, hpa{spec: 10, status: 10}.wants(AverageValue, 0.9004, value))
	require.EqualValues(t, 11, hpa{spec: 10, status: 10}.wants(AverageValue, 0.9004, 0.9004*10))
	// In mode replicas KEDA never sees it.
	require.Equal(t, "0.9004", parsed(t, inReplicas("threshold", "0.9004")).Scaler.Proportional.Metrics[0].Target.String())
}

// TestThresholdSurvives: what the scraper counts a missing pod as is what KEDA is told, and what was written, to
// thousandths.
func TestThresholdSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Float64Range(leastTarget, 10), rapid.Float64Range(leastTarget, 999999999999), rapid.Just(123456789.123456789)).Draw(t, "threshold")
		text := strconv.FormatFloat(v, byte(rapid.SampledFrom([]rune("efg")).Draw(t, "format")), rapid.SampledFrom([]int{-1, 3, 9, 17}).Draw(t, "digits"), 64)
		v, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		if !(v >= leastTarget && v < greatestValue-1) {
			return
		}
		m, err := ParseMetadata(inMetric("threshold", text))
		require.NoError(t, err)
		require.InDelta(t, v, m.Threshold, 0.0005+v*1e-15)
		plan, err := m.plan(chatTarget, oneToTen)
		require.NoError(t, err)
		require.InDelta(t, m.Threshold, plan.Scrape.Metrics[0].Fill, 0)
		require.InDelta(t, m.Threshold, m.Spec().Target, 0)
		require.InDelta(t, m.Threshold, math.Round(m.Threshold*1000)/1000, 0)

		// In mode replicas nothing but the nine places of a Decimal rounds.
		m, err = ParseMetadata(inReplicas("threshold", text))
		require.NoError(t, err)
		plan, err = m.plan(chatTarget, oneToTen)
		require.NoError(t, err)
		require.InDelta(t, v, plan.Scrape.Metrics[0].Fill, 5.1e-10+v*3e-16)
	})
}

// TestTimeouts: whatever interval and scrapeTimeout are accepted fit each other and the scraper.
func TestTimeouts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := rapid.IntRange(1, 3600).Draw(t, "interval")
		metadata := inMetric("interval", strconv.Itoa(interval))
		if rapid.Bool().Draw(t, "given") {
			metadata["scrapeTimeout"] = fmt.Sprintf("%dms", interval*rapid.OneOf(rapid.IntRange(0, 1010), rapid.IntRange(900, 1000)).Draw(t, "thousandths"))
		}
		m, err := ParseMetadata(metadata)
		if err != nil {
			require.ErrorContains(t, err, "scrapeTimeout: ")
			return
		}
		plan, err := m.plan(chatTarget, oneToTen)
		require.NoError(t, err)
		c := plan.Scrape
		require.NoError(t, c.Validate())
		require.Equal(t, m.ScrapeTimeout, c.Timeout)
		require.LessOrEqual(t, c.DialTimeout, c.Timeout)
		require.LessOrEqual(t, c.Timeout, c.SweepTimeout)
		require.Less(t, c.SweepTimeout, c.Interval)
	})
}

// TestTooManyKeys: 3,384 keys that are wrong were compared with each other at each call, and what was kept of 6,730 was 0.9 MiB.
func TestTooManyKeys(t *testing.T) {
	metadata := inMetric()
	for i := len(metadata); i < 256; i++ {
		metadata[fmt.Sprintf("note%d", i)] = ""
	}
	_, err := ParseMetadata(metadata)
	require.NoError(t, err)
	metadata["one"] = ""
	_, err = ParseMetadata(metadata)
	require.EqualError(t, err, "metadata: 257: must have at most 256 keys")
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: newWorld(t).eyes})
	require.NoError(t, err)
	_, err = triggers.Build(chat, metadata)
	require.EqualError(t, err, "metadata: 257: must have at most 256 keys")
	require.Less(t, len(slices.Concat(ownKeys(), sourceKeys())), 100, "known keys are fewer, beside the paths of fields")
}

// TestDeepFields: a field of 16,000 names took 20 s of a processor and 2.9 GB to refuse, mappings in mappings 0.5 s, and lists in lists
// 0.1 s, at each call.
func TestDeepFields(t *testing.T) {
	const rule = "must be at most 16 deep, its key's names included"
	path := func(n int) string { return "realtime" + strings.Repeat(".a", n-1) }
	for _, c := range []struct {
		key, value string
		ok         bool
	}{
		{path(16), "1", true},
		{path(17), "1", false},
		{path(16000), "1", false},
		{path(16000), "", false},
		{path(14), "{a: {b: 1}}", true},
		{path(14), "[[1]]", true},
		{path(15), "[1, [], {a: 1}]", false},
		{path(15), "[1, []]", true},
		{"realtime.metrics", strings.Repeat("[", 14) + "1" + strings.Repeat("]", 14), true},
		{"realtime.metrics", strings.Repeat("[", 15) + "1" + strings.Repeat("]", 15), false},
		{"realtime.metrics", strings.Repeat("[", 9000) + strings.Repeat("]", 9000), false},
		{"realtime.metrics", strings.Repeat("{a: ", 4000) + "1" + strings.Repeat("}", 4000), false},
	} {
		_, err := ParseMetadata(inReplicas(c.key, c.value))
		require.Equal(t, !c.ok, strings.Contains(fmt.Sprint(err), ": "+rule), "%.40s %.40s: %v", c.key, c.value, err)
	}
	_, err := ParseMetadata(inReplicas("realtime.scaleUpRule", strings.Repeat("[", 16)+strings.Repeat("]", 16)))
	require.ErrorContains(t, err, `realtime.scaleUpRule: "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]": `+rule)
}

// TestRegressionTheExampleOfADurationIsTaken: an interval that is wrong was refused with the example "1500ms", which is refused
// too, as an interval is whole seconds.
func TestRegressionTheExampleOfADurationIsTaken(t *testing.T) {
	for _, key := range []string{"interval", "scrapeTimeout"} {
		_, err := ParseMetadata(inMetric(key, "soon"))
		require.ErrorContains(t, err, "must be seconds or a duration, as ")
		_, examples, _ := strings.Cut(err.Error(), ", as ")
		examples, _, _ = strings.Cut(examples, ", between")
		for example := range strings.SplitSeq(examples, " or ") {
			_, err := ParseMetadata(inMetric(key, strings.Trim(example, `"`)))
			require.NoError(t, err, key)
		}
	}
}
