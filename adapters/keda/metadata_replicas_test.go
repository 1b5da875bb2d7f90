package keda

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/policy"
)

func TestReplicasFields(t *testing.T) {
	m := parsed(t, given(t, `
scalerName: keda-kaito-scaler
mode: replicas
threshold: "10"
lowThreshold: "2"
realtime.scaleUpRule.cooldownSeconds: "60"
realtime.scaleUpRule: "{scaleStep: 2}"
realtime.holdWhilePending: "true"
cron.mode: InWindow
cron.windows: |
  - {name: day, start: "0 8 * * 1-5", end: "0 18 * * 1-5", targetReplicas: 3, timeZone: Europe/Berlin}
`))
	want := policy.Scaler{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
realtime:
  metrics: [{source: {}, threshold: {high: "10", low: "2"}}]
  scaleUpRule: {cooldownSeconds: 60, scaleStep: 2}
  holdWhilePending: true
cron:
  mode: InWindow
  windows: [{name: day, start: "0 8 * * 1-5", end: "0 18 * * 1-5", targetReplicas: 3, timeZone: Europe/Berlin}]
`), &want))
	require.Equal(t, want, m.Scaler.Scaler)
	plan, err := m.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.Equal(t, "realtime+cron", plan.Kinds)

	m = parsed(t, inReplicas("proportional.stabilization.downSeconds", "300", "proportional.scaleUp.tolerance", "0.05"))
	require.EqualValues(t, 300, *m.Scaler.Proportional.Stabilization.DownSeconds)
	require.Equal(t, "0.05", m.Scaler.Proportional.ScaleUp.Tolerance.String())
	require.Len(t, m.Scaler.Proportional.Metrics, 1)

	clock := parsed(t, inReplicas("threshold", "-", "cron.policies", `[{name: a, schedule: "*/5 * * * *", targetReplicas: 2}]`))
	plan, err = clock.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.False(t, plan.Scrapes())

	// The other policy may have metrics of its own.
	both := parsed(t, inReplicas("policy", "proportional", "realtime.metrics", `[{source: {name: other}, threshold: {high: 2, low: 1}}]`))
	plan, err = both.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.Equal(t, "realtime+proportional", plan.Kinds)
}

// TestMetricsByPath: a policy that has its metrics needs no threshold, and with several there is none to be given.
func TestMetricsByPath(t *testing.T) {
	m := parsed(t, inReplicas("threshold", "-", "realtime.profile", "responsive",
		"realtime.metrics", `[{source: {name: a, port: 8000}, threshold: {high: "10", low: "2"}}, {source: {name: b}, threshold: {high: "1", low: "0.5"}}]`))
	plan, err := m.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.Equal(t, "realtime", plan.Kinds)
	require.Len(t, plan.Scrape.Metrics, 2)
	require.Equal(t, 8000, plan.Scrape.Metrics[0].Endpoint.Port)

	m = parsed(t, inReplicas("threshold", "-", "proportional.metrics", "[{target: 3}]", "cron.policies", `[{name: a, schedule: "0 0 * * *", targetReplicas: 2}]`))
	plan, err = m.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.Equal(t, "proportional+cron", plan.Kinds)

	const missing = `threshold: "": must be given in mode replicas, unless every policy has its metrics, or is capacity or cron`
	wrong(t, inReplicas("threshold", "-", "realtime.profile", "seed"), missing)
	wrong(t, inReplicas("threshold", "-", "realtime.profile", "seed", "cron.policies", `[{name: a, schedule: "0 0 * * *", targetReplicas: 2}]`), missing)
	wrong(t, inReplicas("threshold", "-", "realtime.metrics", "[]", "proportional.metrics", "[{target: 3}]"), missing, "realtime.metrics: 0: must be at least one")
	wrong(t, inReplicas("threshold", "-", "proportional.metrics", "[{target: 3}]", "metricPort", "8000"), `metricPort: "8000": must be given with threshold only: the rules are given by their paths`)

	_, err = ParseMetadata(inReplicas("threshold", "-", "proportional.metrics", "[{target: -1}]"))
	require.ErrorContains(t, err, "proportional.metrics[0].target")
}

func TestReplicasWhole(t *testing.T) {
	const text = `
realtime:
  metrics:
  - source: {name: queue, port: 8000}
    threshold: {high: "1.5", low: "0.5"}
cron:
  policies:
  - {name: a, schedule: "0 0 * * *", targetReplicas: 2}
`
	m := parsed(t, inReplicas("threshold", "-", "scaler", text, "minReplicas", "2"))
	var want policy.Scaler
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &want))
	require.Equal(t, want, m.Scaler.Scaler)
	plan, err := m.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.Equal(t, "realtime+cron", plan.Kinds)
	require.Equal(t, 8000, plan.Scrape.Metrics[0].Endpoint.Port)
	require.Equal(t, Spec{Metric: "desired-replicas", Target: 1}, m.Spec())
	// A separator in front begins the one document.
	parsed(t, inReplicas("threshold", "-", "scaler", "---\nstatic: {replicas: 1}\n"))
}

// TestCapacityByKeys: dotted keys say what a document says, and what is wrong is told of the key.
func TestCapacityByKeys(t *testing.T) {
	rules := func(pairs ...string) map[string]string {
		m := map[string]string{"scalerName": DefaultScalerName, "mode": "replicas"}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	byKeys := parsed(t, rules(
		"capacity.slo.ttftSeconds", "2", "capacity.slo.tpotSeconds", "0.1", "capacity.server.name", "qwen3-32b-2xh100", "capacity.source.port", "8000",
	))
	whole := parsed(t, rules("policy", `capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}, source: {port: 8000}}`))
	require.Equal(t, whole.Scaler, byKeys.Scaler)
	other := parsed(t, rules("policy", "static: {replicas: 2}"))
	require.NotEqual(t, other.identity(), byKeys.identity())
	plan, err := byKeys.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.Len(t, plan.Scrape.Metrics, 8)
	require.Equal(t, 8000, plan.Scrape.Metrics[7].Endpoint.Port)
	_, err = ParseMetadata(rules("capacity.slo.ttftSeconds", "0", "capacity.slo.tpotSeconds", "0.1", "capacity.server.name", "abacus"))
	require.ErrorContains(t, err, "capacity.slo.ttftSeconds")
	require.ErrorContains(t, err, "capacity.server.name")
}
