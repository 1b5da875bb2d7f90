package defaulting_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
)

// full returns a ScaledObject with so many triggers, each with a document of about so many bytes that is wrong in every line.
func full(t *testing.T, triggers, size int) string {
	t.Helper()
	document := "proportional:\n  metrics:\n" + strings.Repeat("  - 1\n", size/len("  - 1\n"))
	one, err := json.Marshal(map[string]any{"type": "external", "metadata": map[string]any{
		"scalerName": defaulting.Default().ScalerName, "mode": "replicas", "scaler": document,
	}})
	require.NoError(t, err)
	return scaledObject(`{"triggers":[` + strings.TrimSuffix(strings.Repeat(string(one)+",", triggers), ",") + `]}`)
}

// TestTriggersThatGetDefaultsAreBounded: in their number, and in the bytes of their metadata.
func TestTriggersThatGetDefaultsAreBounded(t *testing.T) {
	d := defaulter(t)
	for _, row := range []struct {
		name           string
		triggers, size int
		warning        string
	}{
		{"as many as there may be", 100, 100, ""},
		{"one more", 101, 100, "spec.triggers: 101 of this scaler, more than 100: no defaults were added"},
		{"nearly all bytes", 4, 60 << 10, ""},
		{"more bytes", 5, 60 << 10, "bytes of metadata for this scaler, more than 262144: no defaults were added"},
	} {
		patch, warnings, err := d.Default([]byte(full(t, row.triggers, row.size)))
		require.NoError(t, err, row.name)
		require.Equal(t, row.warning == "", len(patch) > 0, row.name)
		if row.warning != "" {
			require.Len(t, warnings, 1, row.name)
			require.Contains(t, warnings[0], row.warning, row.name)
		}
	}
}

// TestRegressionAReviewOfManyDocumentsTakesLittle: the largest object that an API server takes had 2,400 triggers with a
// document of 1,000 bytes each, of which all were read before anybody asked how many there are: 12 GB were allocated.
func TestRegressionAReviewOfManyDocumentsTakesLittle(t *testing.T) {
	refuse := func(map[string]any) error { return fmt.Errorf("spec.triggers: too many") }
	d := defaulter(t, func(c *defaulting.Config) { c.Check = refuse })
	object := full(t, 2400, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res := d.Review(request(admissionv1.Create, object))
	runtime.ReadMemStats(&after)
	require.False(t, res.Allowed)
	require.Len(t, res.Warnings, 1)
	require.Less(t, int(after.TotalAlloc-before.TotalAlloc), 10*len(object))
}
