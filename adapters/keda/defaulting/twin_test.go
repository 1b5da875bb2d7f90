package defaulting_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
)

// naive is the twin of Default: it writes the defaults into the parsed object, one after the other.
func naive(o any) {
	root, _ := o.(map[string]any)
	if root["apiVersion"] != "keda.sh/v1alpha1" || root["kind"] != "ScaledObject" {
		return
	}
	if m, ok := root["metadata"].(map[string]any); ok && m["deletionTimestamp"] != nil {
		return
	}
	spec, _ := root["spec"].(map[string]any)
	triggers, _ := spec["triggers"].([]any)
	var found, anyReplicas, anyOther, zero bool
	for _, raw := range triggers {
		t, _ := raw.(map[string]any)
		m, _ := t["metadata"].(map[string]any)
		if t["type"] != "external" && t["type"] != "external-push" || m["scalerName"] != "keda-kaito-scaler" {
			continue
		}
		found = true
		switch {
		case m["mode"] == "replicas":
			anyReplicas = true
			zero = zero || m["minReplicas"] == "0"
		case m["mode"] != "metric" && (m["mode"] != nil || m["modeFromEnv"] != nil):
			anyOther = true
		}
		put(t, "authenticationRef", map[string]any{"name": "keda-kaito-creds", "kind": "ClusterTriggerAuthentication"})
		put(m, "scalerAddress", "keda-kaito-scaler.keda.svc.cluster.local:10450")
		switch t["metricType"] {
		case nil, "", "AverageValue":
			meta(m, "metricType", "AverageValue")
		case "Value":
			meta(m, "metricType", "Value")
		}
		paths := given(m, "cron.mode") || given(m, "realtime.profile") || given(m, "proportional.profile") || given(m, "realtime.metrics") || given(m, "proportional.metrics")
		if given(m, "scaler") || paths && m["mode"] == "replicas" && !given(m, "threshold") {
			continue
		}
		if !given(m, "interval") {
			meta(m, "scrapeTimeout", "5")
		}
		rules := given(m, "realtime.metrics") || given(m, "proportional.metrics")
		if given(m, "engine") || given(m, "signal") || rules && m["mode"] == "replicas" {
			continue
		}
		meta(m, "metricName", "vllm:num_requests_waiting")
		meta(m, "metricPort", "5000")
		meta(m, "metricPath", "/metrics")
		if !given(m, "metricPorotocol") {
			meta(m, "metricProtocol", "http")
		}
	}
	if !found {
		return
	}
	least := json.Number("1")
	if m, ok := spec["maxReplicaCount"].(json.Number); ok && (m == "0" || strings.HasPrefix(m.String(), "-")) {
		zero = true
	}
	if !zero {
		put(spec, "minReplicaCount", least)
	}
	if anyOther && !anyReplicas {
		return
	}
	b := inside(inside(inside(spec, "advanced"), "horizontalPodAutoscalerConfig"), "behavior")
	up, down := inside(b, "scaleUp"), inside(b, "scaleDown")
	put(up, "selectPolicy", "Max")
	put(down, "selectPolicy", "Max")
	policy := func(kind, value, period string) any {
		return []any{map[string]any{"type": kind, "value": json.Number(value), "periodSeconds": json.Number(period)}}
	}
	if anyReplicas {
		put(up, "stabilizationWindowSeconds", json.Number("0"))
		put(up, "tolerance", "0")
		put(up, "policies", policy("Pods", "100000", "1"))
		put(down, "stabilizationWindowSeconds", json.Number("0"))
		put(down, "tolerance", "0")
		put(down, "policies", policy("Percent", "100", "1"))
		return
	}
	put(up, "stabilizationWindowSeconds", json.Number("30"))
	put(up, "tolerance", "100m")
	put(up, "policies", policy("Pods", "1", "300"))
	put(down, "stabilizationWindowSeconds", json.Number("300"))
	put(down, "tolerance", "500m")
	put(down, "policies", policy("Pods", "1", "600"))
}

func put(m map[string]any, key string, v any) {
	if m != nil && m[key] == nil {
		m[key] = v
	}
}

func given(m map[string]any, key string) bool { return m[key] != nil || m[key+"FromEnv"] != nil }

func meta(m map[string]any, key string, v any) {
	if !given(m, key) {
		m[key] = v
	}
}

// inside returns the object at a key, made if it is not there, and nil if something else is.
func inside(m map[string]any, key string) map[string]any {
	put(m, key, map[string]any{})
	in, _ := m[key].(map[string]any)
	return in
}

// odd draws a value of the wrong type.
func odd() *rapid.Generator[any] {
	return rapid.SampledFrom([]any{nil, "", "x", 0, -1, 1.5, true, []any{}, []any{nil}, map[string]any{}, map[string]any{"a/b~c": nil}})
}

// mostly draws one of the values, or seldom an odd one.
func mostly(values ...any) *rapid.Generator[any] {
	return seldomOdd(rapid.SampledFrom(values))
}

func seldomOdd(g *rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.OneOf(g, g, g, g, g, g, g, g, g, odd())
}

// fields draws an object with some of the fields, and one that nobody knows.
func fields(all map[string]*rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		o := map[string]any{}
		often := rapid.SampledFrom([]int{2, 8}).Draw(t, "often")
		for _, key := range sorted(all) {
			if rapid.IntRange(1, 10).Draw(t, "has") <= often {
				o[key] = all[key].Draw(t, key)
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "more") == 0 {
			o["x/~\u00e9<"] = odd().Draw(t, "unknown")
		}
		return o
	})
}

func anyScaledObject() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		direction := fields(map[string]*rapid.Generator[any]{
			"stabilizationWindowSeconds": mostly(0, 30),
			"tolerance":                  mostly("0.2", 0.2, 0),
			"policies":                   mostly([]any{}, []any{map[string]any{"type": "Pods"}}),
			"selectPolicy":               mostly("Min", "Disabled"),
		})
		behavior := fields(map[string]*rapid.Generator[any]{"scaleUp": seldomOdd(direction), "scaleDown": seldomOdd(direction)})
		hpa := fields(map[string]*rapid.Generator[any]{"behavior": seldomOdd(behavior), "name": mostly("x")})
		advanced := fields(map[string]*rapid.Generator[any]{"horizontalPodAutoscalerConfig": seldomOdd(hpa), "restoreToOriginalReplicaCount": mostly(true)})
		trigger := rapid.Custom(func(t *rapid.T) any {
			metadata := map[string]*rapid.Generator[any]{"mode": mostly("metric", "replicas", "replicas"), "modeFromEnv": mostly("M")}
			for _, key := range []string{
				"scalerAddress", "metricName", "metricProtocol", "metricPorotocol", "metricPort", "metricPath", "scrapeTimeout", "metricType",
				"threshold", "scaler", "engine", "signal", "interval", "minReplicas", "cron.mode", "realtime.profile", "proportional.profile",
				"realtime.metrics", "proportional.metrics",
			} {
				metadata[key] = mostly("0", "x")
				metadata[key+"FromEnv"] = mostly("X")
			}
			o, _ := fields(map[string]*rapid.Generator[any]{
				"metricType":        mostly("AverageValue", "Value", "Utilization"),
				"authenticationRef": mostly(map[string]any{"name": "x"}),
				"useCachedMetrics":  mostly(true),
			}).Draw(t, "trigger").(map[string]any)
			o["type"] = mostly("external", "external", "external-push", "cron").Draw(t, "type")
			m, _ := fields(metadata).Draw(t, "metadata").(map[string]any)
			m["scalerName"] = mostly("keda-kaito-scaler", "keda-kaito-scaler", "other").Draw(t, "scalerName")
			o["metadata"] = m
			return o
		})
		spec, _ := fields(map[string]*rapid.Generator[any]{
			"minReplicaCount":  mostly(0, 1, 5),
			"maxReplicaCount":  mostly(0, 1, 10),
			"idleReplicaCount": mostly(0),
			"minReplicas":      mostly(1),
			"advanced":         seldomOdd(advanced),
		}).Draw(t, "spec").(map[string]any)
		spec["triggers"] = rapid.SliceOfN(seldomOdd(trigger), 1, 3).Draw(t, "triggers")
		root := map[string]any{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": map[string]any{"name": "x"}, "spec": spec}
		if rapid.IntRange(0, 9).Draw(t, "spoil") == 0 {
			root[rapid.SampledFrom(sorted(root)).Draw(t, "spoilt")] = odd().Draw(t, "with")
		}
		raw, err := json.Marshal(root)
		require.NoError(t, err)
		return raw
	})
}

// TestDefaultIsHonest: the patch only adds, nothing is overridden, and a second pass adds nothing.
func TestDefaultIsHonest(t *testing.T) {
	d := defaulter(t, func(c *defaulting.Config) { c.Known = func(key string) bool { return key == "x" } })
	rapid.Check(t, func(t *rapid.T) {
		object := anyScaledObject().Draw(t, "object")
		patch, _, err := d.Default(object)
		require.NoError(t, err)
		honest(t, d, object, patch)
	})
}

// TestDefaultIsItsTwin compares the patched object with the twin's.
func TestDefaultIsItsTwin(t *testing.T) {
	d := defaulter(t)
	rapid.Check(t, func(t *rapid.T) {
		object := anyScaledObject().Draw(t, "object")
		patch, _, err := d.Default(object)
		require.NoError(t, err)
		want := parsed(t, object)
		naive(want)
		require.Equal(t, want, parsed(t, apply(t, object, patch)))
	})
}

// TestCheckSeesTheDefaults: what is checked is what is stored.
func TestCheckSeesTheDefaults(t *testing.T) {
	var checked map[string]any
	d := defaulter(t, func(c *defaulting.Config) {
		c.Check = func(object map[string]any) error {
			checked = object
			return nil
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		object := anyScaledObject().Draw(t, "object")
		patch, _, err := d.Default(object)
		require.NoError(t, err)
		checked = nil
		require.True(t, d.Review(request(admissionv1.Create, string(object))).Allowed)
		if checked == nil {
			require.Empty(t, patch)
			return
		}
		raw, err := json.Marshal(checked)
		require.NoError(t, err)
		require.Equal(t, parsed(t, apply(t, object, patch)), parsed(t, raw))
	})
}
