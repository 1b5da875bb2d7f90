package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// TestRegressionMaxReplicasZero: a maxReplicas of 0 was read as none, so that the bounds of the reader counted.
func TestRegressionMaxReplicasZero(t *testing.T) {
	const rule = "maxReplicas: 0: must be at least 1"
	for text, want := range map[string][]string{
		"scaler: {static: {replicas: 1}}\nmaxReplicas: 0":                                    {"p.yaml:2: " + rule},
		"scaler: {static: {replicas: 1}}\nminReplicas: 0\nmaxReplicas: 0x0":                  {"p.yaml:3: maxReplicas: 0x0: must be at least 1"},
		"policies:\n- scaler: {static: {replicas: 1}}\n  maxReplicas: 0":                     {"p.yaml:3: policies[0]." + rule},
		"highest:\n- static: {replicas: 1}\n  maxReplicas: 0":                                {"p.yaml:3: highest[0]." + rule},
		"highest:\n- static: {replicas: 1}\n  minReplicas: 2\n  maxReplicas: 0":              {"p.yaml:4: highest[0]." + rule},
		"scaler: {static: {replicas: 1}}\nmaxReplicas: -1":                                   {"p.yaml:2: maxReplicas: -1: must be at least 1"},
		"shadow:\n- name: a\n  scaler: {highest: [{maxReplicas: 0, static: {replicas: 1}}]}": {"p.yaml:1: scaler: must be given", "p.yaml:3: shadow[0].scaler.highest[0]." + rule},
		head + "spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}\n  maxReplicas: 0\n  scaler: {static: {replicas: 1}}\n": {
			"p.yaml:6: spec." + rule,
		},
	} {
		_, err := policy.Read([]byte(text), "p.yaml")
		require.EqualError(t, err, strings.Join(want, "\n"), text)
	}
	spec := policy.Spec{Scaler: policy.Composite{Scaler: policy.Scaler{Static: &policy.StaticScaler{Replicas: 1}}}}
	_, err := spec.RawShadows("spec", []policy.RawShadow{{Name: "a", Scaler: []byte("highest: [{maxReplicas: 0, static: {replicas: 1}}]")}}, bounds(), nil)
	require.EqualError(t, err, "spec.shadow[0].scaler.highest[0]."+rule)
	_, err = policy.ReadModels([]byte("models:\n- name: a\n  namespace: b\n  algorithm: hetero\n  variants:\n"+
		"  - {target: {apiVersion: apps/v1, kind: Deployment, name: c}, cost: 1, min: 1, max: 2}\n"+
		"  hetero: {total: {maxReplicas: 0, scaler: {static: {replicas: 1}}}}\n"), "m.yaml")
	require.EqualError(t, err, "m.yaml:7: models[0].hetero.total."+rule)
}

// TestRegressionMinReplicasAlone: it was said of a maxReplicas of 0, which did not stand in the document.
func TestRegressionMinReplicasAlone(t *testing.T) {
	const rule = "maxReplicas: must be given beside minReplicas"
	for text, want := range map[string]string{
		"scaler: {static: {replicas: 1}}\nminReplicas: 5":                                             "p.yaml:2: " + rule,
		"highest:\n- static: {replicas: 1}\n  minReplicas: 0":                                         "p.yaml:3: highest[0]." + rule,
		"scaler: {static: {replicas: 1}}\nminReplicas: 5\nmaxReplicas: [5]":                           "p.yaml:3: maxReplicas: a list: must be one value",
		"attainment: {slo: {}, server: {}}\nminReplicas: 5\nscaler: {static: {replicas: 1}}":          "",
		head + "spec:\n  minReplicas: 5\n  scaleTargetRef: {apiVersion: apps/v1, kind: A, name: a}\n": "",
	} {
		_, err := policy.Read([]byte(text), "p.yaml")
		if want == "" {
			require.Error(t, err)
			require.NotContains(t, err.Error(), "maxReplicas: 0")
			require.Equal(t, 1, strings.Count(err.Error(), "maxReplicas: must be given"))
			continue
		}
		require.EqualError(t, err, want)
	}
	least := int32(5)
	spec := policy.Spec{
		Settings: policy.Settings{MinReplicas: &least},
		Scaler:   policy.Composite{Scaler: policy.Scaler{Static: &policy.StaticScaler{Replicas: 1}}},
	}
	_, err := spec.Plan("spec", scaling.Bounds{Min: 1, Max: 9})
	require.EqualError(t, err, "spec.maxReplicas: 0: must be given beside minReplicas")
}

// TestRegressionNameOfANeighbour: of a document that is a scaler, the error said that ".static" has the name.
func TestRegressionNameOfANeighbour(t *testing.T) {
	_, err := policy.Read([]byte("static: {replicas: 1}\nhighest:\n- {name: static, static: {replicas: 2}}\n"), "p.yaml")
	require.EqualError(t, err, `p.yaml:3: highest[0].name: "static": must be unique: static has it`)
}

// TestRegressionStaticAboveMaxReplicas: the fleet had maxReplicas replicas, and nothing said that it was fewer than the document's.
func TestRegressionStaticAboveMaxReplicas(t *testing.T) {
	for text, want := range map[string]string{
		"maxReplicas: 3\nscaler: {static: {replicas: 4}}":                                               "p.yaml:2: scaler.static.replicas: 4: must not be above maxReplicas 3",
		"maxReplicas: 3\nscaler:\n  highest:\n  - static: {replicas: 4}":                                "p.yaml:4: scaler.highest[0].static.replicas: 4: must not be above maxReplicas 3",
		"highest:\n- static: {replicas: 4}\n  maxReplicas: 3":                                           "p.yaml:2: highest[0].static.replicas: 4: must not be above highest[0].maxReplicas 3",
		"maxReplicas: 0\nscaler: {static: {replicas: 4}}":                                               "p.yaml:1: maxReplicas: 0: must be at least 1",
		"maxReplicas: 3\nscaler: {realtime: {}}\nshadow:\n- {name: a, scaler: {static: {replicas: 4}}}": "p.yaml:4: shadow[0].scaler.static.replicas: 4: must not be above maxReplicas 3",
	} {
		_, err := policy.Read([]byte(text), "p.yaml")
		require.EqualError(t, err, want)
	}
	one(t, "maxReplicas: 3\nscaler: {static: {replicas: 3}}")
	one(t, "static: {replicas: 4}")
	p, err := policy.Named("static/40")
	require.NoError(t, err)
	_, err = p.Build(scaling.Bounds{Min: 1, Max: 3}) // these are the caller's
	require.NoError(t, err)
}
