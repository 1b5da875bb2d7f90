package build_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// read reads a spec as it stands in a manifest.
func read(tb testing.TB, text string) *policy.Spec {
	tb.Helper()
	data, err := yaml.ToJSON([]byte(strings.ReplaceAll(text, "\t", "  ")))
	require.NoError(tb, err)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	spec := &v1alpha1.LLMAutoScalerSpec{}
	require.NoError(tb, d.Decode(spec))
	return spec.Document()
}

const target = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}\nmaxReplicas: 8\n"

// spec reads what stands beside a target and a maximum of 8.
func spec(tb testing.TB, text string) *policy.Spec {
	tb.Helper()
	return read(tb, target+text)
}

func plan(tb testing.TB, text string) build.Plan {
	tb.Helper()
	p, err := build.Spec(spec(tb, text))
	require.NoError(tb, err)
	return p
}

func bounds() scaling.Bounds { return scaling.Bounds{Min: 1, Max: 8} }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestPolicies compares what a spec builds with what the packages build, decision by decision.
func TestPolicies(t *testing.T) {
	waiting := realtime.Metric{Name: realtime.DefaultMetric, High: 10, Low: 2}
	seed := func(change func(*realtime.Config)) scaling.Policy {
		c := realtime.Kaito(bounds(), waiting)
		change(&c)
		return scaling.New(must(realtime.New(c)))
	}
	load := func(c proportional.Config) scaling.Policy { return scaling.New(must(proportional.New(c))) }
	inFlight := proportional.Metric{Name: "InFlight", Target: 2}
	morning := must(cronscale.New(cronscale.Config{Bounds: bounds(), Policies: []cronscale.Policy{
		{Name: "day", Schedule: "5 8 * * *", TargetReplicas: 5}, {Name: "night", Schedule: "0 0 * * *", TargetReplicas: 1},
	}}))
	const (
		thresholds = `realtime: {metrics: [{threshold: {high: 10, low: 2}}]}`
		target     = `proportional: {metrics: [{source: {engine: VLLM, signal: InFlight}, target: 2}]}`
		day        = `cron: {policies: [{name: day, schedule: "5 8 * * *", targetReplicas: 5}, {name: night, schedule: "0 0 * * *", targetReplicas: 1}]}`
	)
	for _, tt := range []struct {
		scaler, kinds string
		want          scaling.Policy
	}{
		{thresholds, "realtime", seed(func(*realtime.Config) {})},
		{`realtime: {metrics: [{threshold: {high: "1.5", low: "0.5"}}]}`, "realtime", seed(func(c *realtime.Config) { c.Metrics[0].High, c.Metrics[0].Low = 1.5, .5 })},
		{`realtime: {metrics: [{threshold: {high: 10, low: 2}, role: UpOnly}]}`, "realtime", seed(func(c *realtime.Config) { c.Metrics[0].Role = realtime.UpOnly })},
		{
			`realtime: {metrics: [{threshold: {high: 10, low: 2}}], scaleUpRule: {scaleStep: 3}, scaleDownRule: {cooldownSeconds: 0, stabilizationWindowSeconds: 30}, cooldownScope: PerDirection, holdWhilePending: true}`,
			"realtime",
			seed(func(c *realtime.Config) {
				c.Up.Step, c.Down.Cooldown, c.Down.Window, c.CooldownScope, c.HoldWhilePending = 3, 0, 30*time.Second, realtime.PerDirection, true
			}),
		},
		{
			`realtime: {profile: responsive, metrics: [{threshold: {high: 10, low: 2}}], scaleUpRule: {cooldownSeconds: 60}}`, "realtime",
			seed(func(c *realtime.Config) {
				*c = realtime.Responsive(bounds(), waiting)
				c.Up.Cooldown = time.Minute
			}),
		},
		{target, "proportional", load(proportional.LLM(bounds(), inFlight))},
		{`proportional: {profile: kpa, metrics: [{source: {engine: VLLM, signal: InFlight}, target: 2}]}`, "proportional", load(proportional.KPA(bounds(), inFlight))},
		{`proportional: {profile: kthena, metrics: [{source: {engine: VLLM, signal: InFlight}, target: 2}]}`, "proportional", load(proportional.Kthena(bounds(), inFlight))},
		{day, "cron", scaling.New(morning)},
		{thresholds + "\n  " + day, "realtime+cron", must(scaling.Floor(seed(func(*realtime.Config) {}), morning, bounds()))},
		{
			thresholds + "\n  " + target, "realtime+proportional",
			must(scaling.Highest(scaling.Member{Name: "realtime", Policy: seed(func(*realtime.Config) {})}, scaling.Member{Name: "proportional", Policy: load(proportional.LLM(bounds(), inFlight))})),
		},
	} {
		p := plan(t, "scaler:\n  "+tt.scaler)
		require.Equal(t, tt.kinds, p.Kinds)
		now, count := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC), int32(3)
		for i := range 120 {
			value := float64((i / 7) % 3 * 8)
			obs := scaling.Observation{SpecReplicas: count, ReadyReplicas: count, Readings: []scaling.Reading{
				{Metric: realtime.DefaultMetric, Lower: value, Upper: value, Values: count}, {Metric: "InFlight", Lower: value, Upper: value, Values: count},
			}}
			got, want := p.Policy.Decide(now, obs), tt.want.Decide(now, obs)
			require.Equal(t, want.Explain(), got.Explain(), "%s\nat %s", tt.scaler, now)
			if got.Acts() {
				p.Policy.Applied(now, count, got.Replicas)
				tt.want.Applied(now, count, got.Replicas)
				count = got.Replicas
			}
			now = now.Add(15 * time.Second)
		}
	}
}

// TestProportionalFields gives every field of the proportional scaler another value than its profile has.
func TestProportionalFields(t *testing.T) {
	given := plan(t, `
scaler:
  proportional:
    profile: hpa
    metrics: [{source: {name: load}, target: "2.5", measure: Total}]
    scaleUp: {tolerance: "0.05", maxRate: 3, maxStep: 4}
    scaleDown: {tolerance: "0.2", maxRate: "1.5", maxStep: 2}
    stableWindowSeconds: 120
    panic: {windowSeconds: 10, threshold: "1.5"}
    stabilization: {upSeconds: 15, downSeconds: 30}
    rateLimits:
      up: {limits: [{replicas: 2, periodSeconds: 30}, {percent: 50, periodSeconds: 60}], select: Min}
      down: {limits: [{replicas: 1, periodSeconds: 45}]}
    activationScale: 2
    startupCredit: true
`)
	want := scaling.New(must(proportional.New(proportional.Config{
		Bounds: bounds(), Metrics: []proportional.Metric{{Name: "load", Target: 2.5, Measure: proportional.Total}},
		Up: proportional.Rule{Tolerance: .05, MaxRate: 3, MaxStep: 4}, Down: proportional.Rule{Tolerance: .2, MaxRate: 1.5, MaxStep: 2},
		StableWindow: 2 * time.Minute, Resolution: time.Second, Panic: proportional.Panic{Window: 10 * time.Second, Threshold: 1.5},
		Stabilization: scaling.Stabilization{Up: 15 * time.Second, Down: 30 * time.Second},
		RateLimits: scaling.RateLimits{
			Up:   scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 2, Period: 30 * time.Second}, {Percent: 50, Period: time.Minute}}, Select: scaling.SelectMin},
			Down: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 1, Period: 45 * time.Second}}},
		},
		ActivationScale: 2, StartupCredit: true,
	})))
	now, count := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC), int32(3)
	for i := range 400 {
		value := float64((i*i + i/5) % 23)
		obs := scaling.Observation{SpecReplicas: count, ReadyReplicas: 1 + int32(i)%count, Readings: []scaling.Reading{{Metric: "load", Lower: value, Upper: value, Values: count}}}
		a, b := given.Policy.Decide(now, obs), want.Decide(now, obs)
		require.Equal(t, b.Explain(), a.Explain())
		if a.Acts() {
			given.Policy.Applied(now, count, a.Replicas)
			want.Applied(now, count, a.Replicas)
			count = a.Replicas
		}
		now = now.Add(5 * time.Second)
	}
	state, err := json.Marshal(given.Policy)
	require.NoError(t, err)
	expected, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, string(expected), string(state))
}

func TestCronFields(t *testing.T) {
	p := plan(t, `
scaler:
  cron:
    mode: InWindow
    outside: 2
    windows: [{name: noon, start: "0 11 * * *", end: "0 14 * * *", targetReplicas: 6, timeZone: America/New_York}]
`)
	require.False(t, p.Scrapes())
	for hour, want := range map[int]int32{15: 2, 16: 6, 18: 6, 19: 2} {
		d := p.Policy.Decide(time.Date(2026, 1, 15, hour, 30, 0, 0, time.UTC), scaling.Observation{SpecReplicas: 3})
		require.Equal(t, want, d.Replicas, "%d:30", hour)
	}
	for mode, verdict := range map[string]scaling.Verdict{"HoldLast": scaling.Up, "Match": scaling.Hold} {
		p := plan(t, "scaler: {cron: {mode: "+mode+", policies: [{name: a, schedule: '0 8 * * *', targetReplicas: 5}]}}")
		d := p.Policy.Decide(time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC), scaling.Observation{SpecReplicas: 3})
		require.Equal(t, verdict, d.Verdict)
	}
}

// TestPlan looks at what is beside the policy.
func TestPlan(t *testing.T) {
	const realtime = "scaler: {realtime: {metrics: [{threshold: {high: 10, low: 2}}]}}\n"
	p := plan(t, realtime)
	require.Equal(t, scaling.Bounds{Min: 1, Max: 8}, p.Bounds)
	require.Equal(t, 15*time.Second, p.Interval)
	require.False(t, p.DryRun)
	require.Equal(t, k8s.Grouping{}, p.Grouping)
	require.Equal(t, k8s.Port{}, p.Port)
	require.Equal(t, 15*time.Second, p.Scrape.Interval)

	p = plan(t, realtime+"minReplicas: 0\nintervalSeconds: 5\ndryRun: true\ngrouping: LeaderWorkerSet\nscrape: {portName: metrics, tls: {serverName: pods.example, insecureSkipVerify: true}}\n")
	require.Equal(t, scaling.Bounds{Min: 0, Max: 8}, p.Bounds)
	require.Equal(t, 5*time.Second, p.Interval)
	require.True(t, p.DryRun)
	require.Equal(t, k8s.LeaderWorkerSet(), p.Grouping)
	require.Equal(t, k8s.KaitoWorkspace(), plan(t, realtime+"grouping: KaitoWorkspace\n").Grouping)
	require.Equal(t, k8s.Port{Port: intstr.FromString("metrics"), Scheme: "http"}, p.Port)
	require.Equal(t, scrape.TLSConfig{ServerName: "pods.example", InsecureSkipVerify: true}, p.Scrape.TLS)
}
