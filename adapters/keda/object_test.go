package keda

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// TestPropTrimObject: a ScaledObject that was trimmed says what it said before, and nothing of it was changed.
func TestPropTrimObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
		spec := map[string]any{"pollingInterval": int64(5), "fallback": map[string]any{"replicas": int64(3)}}
		if rapid.Bool().Draw(t, "has a target") {
			spec["scaleTargetRef"] = map[string]any{"name": text("name", "chat", ""), "envSourceContainerName": "a"}
			if kind := text("kind", "", "StatefulSet"); kind != "" {
				spec["scaleTargetRef"].(map[string]any)["kind"] = kind
				spec["scaleTargetRef"].(map[string]any)["apiVersion"] = "apps/v1"
			}
		}
		for _, field := range []string{"minReplicaCount", "maxReplicaCount"} {
			if rapid.Bool().Draw(t, field) {
				spec[field] = rapid.SampledFrom([]any{int64(0), int64(1), int64(7), int64(-1), int64(1) << 40}).Draw(t, field)
			}
		}
		if rapid.Bool().Draw(t, "has modifiers") {
			spec["advanced"] = map[string]any{"restoreToOriginalReplicaCount": true, "scalingModifiers": map[string]any{
				"formula": text("formula", "", "a + b"), "target": "5", "metricType": text("result", "Value", "AverageValue"),
			}}
		}
		var triggers []any
		for i := range rapid.IntRange(0, 6).Draw(t, "triggers") {
			trigger := map[string]any{"type": text("type", "cron", "external", "external-push", "prometheus"), "name": "t", "useCachedMetrics": true}
			if m := text("metricType", "", "Value", "AverageValue"); m != "" {
				trigger["metricType"] = m
			}
			if rapid.Bool().Draw(t, "has metadata") {
				trigger["metadata"] = map[string]any{"scalerAddress": "a:1", "threshold": fmt.Sprint(i)}
			}
			triggers = append(triggers, trigger)
		}
		spec["triggers"] = triggers
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": spec}}
		u.SetNamespace("default")
		u.SetName("chat")
		u.SetUID("1")
		u.SetResourceVersion("2")
		u.SetAnnotations(map[string]string{"a": strings.Repeat("x", 1000)})
		whole := u.DeepCopy()
		kept := TrimObject(u)
		require.Equal(t, whole, u)
		want, wantErr := ObjectOf(u)
		got, err := ObjectOf(kept)
		require.Equal(t, wantErr == nil, err == nil)
		if err != nil {
			require.EqualError(t, err, wantErr.Error())
		}
		require.Equal(t, want.externals(), got.externals())
		require.Equal(t, want.triggers, got.triggers)
		want.owners, got.owners = nil, nil // found of the triggers when they are asked for
		require.Equal(t, want, got)
		require.Equal(t, [4]string{"default", "chat", "1", "2"}, [4]string{kept.GetNamespace(), kept.GetName(), string(kept.GetUID()), kept.GetResourceVersion()})
		require.Empty(t, kept.GetAnnotations())
	})
}

// TestAScaledObjectThatIsFullTakesLittleMemory: annotations, labels, texts, other triggers and external ones beyond the limits, of a megabyte each.
func TestAScaledObjectThatIsFullTakesLittleMemory(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	trigger := func(kind, value string) any {
		return map[string]any{"type": kind, "name": long, "metadata": map[string]any{"threshold": value}}
	}
	var many, large []any
	for range 1000 {
		many = append(many, trigger("cron", long), trigger("external", "1"))
		large = append(large, trigger("external", long[:100<<10]))
	}
	for name, row := range map[string]struct {
		triggers []any
		bytes    int
		says     string
	}{
		"many":  {many, 16 << 10, "spec.triggers: 101: must be at most 100"},
		"large": {large, 260 << 10, "spec.triggers: 262145: must be at most 262144 bytes of metadata"},
		"one":   {[]any{trigger("external", long)}, 260 << 10, "spec.triggers: 262145: must be at most 262144 bytes of metadata"},
		"other": {many[:1], 4 << 10, "spec.scaleTargetRef.name"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"scaleTargetRef": map[string]any{"name": "", "kind": long}, "triggers": row.triggers,
				"advanced": map[string]any{"scalingModifiers": map[string]any{"formula": long}}, "fallback": map[string]any{"behavior": long},
			}}}
			u.SetAnnotations(map[string]string{"a": long})
			u.SetLabels(map[string]string{"a": long})
			u.SetFinalizers([]string{long})
			kept := TrimObject(u)
			text, err := json.Marshal(kept)
			require.NoError(t, err)
			require.Less(t, len(text), row.bytes)
			_, err = ObjectOf(kept)
			require.ErrorContains(t, err, row.says)
		})
	}
}
