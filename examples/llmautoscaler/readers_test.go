package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// TestReaders reads every sample manifest as the simulator and quickstart do, as an API server stores it, as what Effective
// writes, as the key policy of a KEDA trigger, and as the total of the variants' ConfigMap: all decide alike on the same
// readings.
func TestReaders(t *testing.T) {
	files, err := filepath.Glob("deploy/samples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	a := newAdmission(t)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		d, err := policy.Read(data, file)
		require.NoError(t, err)
		doc := d.Policies[0]
		bounds := scaling.Bounds{Min: 1, Max: doc.MaxReplicas}
		live := func(p policy.Policy) scaling.Policy {
			built, err := p.Build(bounds)
			require.NoError(t, err)
			return built
		}
		readers := map[string]scaling.Policy{"simulate and quickstart": live(doc)}

		las, err := a.admit(t, string(data))
		require.NoError(t, err)
		plan, err := build.Spec(las.Spec.Document())
		require.NoError(t, err)
		readers["API server"] = plan.Policy

		text, err := doc.Effective()
		require.NoError(t, err)
		again, err := policy.Read(text, "effective")
		require.NoError(t, err)
		readers["effective"] = live(again.Policies[0])

		// A trigger has no dry run, and shadows by keys of their own: nothing but these is taken out of the manifest.
		manifest, _, _ := strings.Cut(string(data), "\n  shadow:\n")
		trigger, err := keda.ParseMetadata(map[string]string{
			"scalerName": keda.DefaultScalerName, "mode": "replicas", "policy": strings.Replace(manifest, "  dryRun: true\n", "", 1),
		})
		require.NoError(t, err)
		require.Equal(t, doc.MaxReplicas, *trigger.MaxReplicas)
		readers["KEDA"] = live(policy.Policy{Spec: policy.Spec{Settings: doc.Settings, Scaler: trigger.Scaler}})

		_, rules, _ := strings.Cut(string(text), "\n  scaler:\n")
		models := "models:\n- name: m\n  namespace: ns\n  algorithm: hetero\n  variants: [{target: {apiVersion: apps/v1, kind: Deployment, name: a}, cost: 1, min: 1, max: 16}]\n  hetero:\n    total:\n      maxReplicas: " +
			strings.TrimSpace(strings.SplitN(strings.SplitN(string(text), "maxReplicas:", 2)[1], "\n", 2)[0]) + "\n      scaler:\n" + indented(rules)
		variants, err := policy.ReadModels([]byte(models), file)
		require.NoError(t, err, models)
		readers["variants"] = live(variants[0].Hetero.Total)

		now, count := time.Date(2026, 1, 15, 12, 58, 0, 0, time.UTC), int32(2)
		for i := range 80 {
			obs := scaling.Observation{SpecReplicas: count, ReadyReplicas: count}
			for _, m := range doc.Metrics() {
				if m.Counted {
					n := float64(10 * i)
					obs.Histograms = append(obs.Histograms, scaling.Histogram{Metric: m.Name, Bounds: []float64{1e4}, Counts: []float64{n, 0}, Sum: n * 100})
					continue
				}
				value := m.Fill * float64(i/5%7) / 3
				obs.Readings = append(obs.Readings, scaling.Reading{Metric: m.Name, Lower: value, Upper: value, Values: count})
			}
			want := readers["effective"].Decide(now, obs)
			for name, p := range readers {
				if name != "effective" {
					got := p.Decide(now, obs)
					require.Equal(t, want.Explain(), got.Explain(), "%s of %s", name, file)
				}
				if want.Acts() {
					p.Applied(now, count, want.Replicas)
				}
			}
			if want.Acts() {
				count = want.Replicas
			}
			now = now.Add(15 * time.Second)
		}
	}
}

// indented moves rules further in.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
