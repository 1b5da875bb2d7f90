package defaulting_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestRegressionANamespaceLeavesTheReviewsOfOthers: all come from the same API servers, whose part the large ScaledObjects of one
// namespace used up, so that those of others were admitted without defaults.
func TestRegressionANamespaceLeavesTheReviewsOfOthers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // in case that no review reaches the Check
	defer cancel()
	begun, end := make(chan struct{}, 100), make(chan struct{})
	slow := func(o map[string]any) error { //nolint:unparam // it is a Check
		if m, _ := o["metadata"].(map[string]any); m["name"] == "slow" {
			begun <- struct{}{}
			select {
			case <-end:
			case <-ctx.Done():
			}
		}
		return nil
	}
	d := defaulter(t, func(c *defaulting.Config) { c.Check = slow })
	post := func(namespace, name string, size int) int {
		req := request(admissionv1.Create, strings.Replace(scaledObject(`{"triggers":[`+ours+`]}`), "{",
			fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"a":%q}},`, name, strings.Repeat("x", size)), 1))
		req.Namespace = namespace
		body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req})
		require.NoError(t, err)
		return serve(d, http.MethodPost, "application/json", string(body)).Code
	}
	var done sync.WaitGroup
	most := defaulting.MaxOfNamespace/(256<<10) - 1 // each has a little more than its annotation
	codes := make([]int, most)
	for i := range codes {
		done.Add(1)
		go func() {
			defer done.Done()
			codes[i] = post("a", "slow", 256<<10)
		}()
		select {
		case <-begun:
		case <-ctx.Done():
			require.NoError(t, ctx.Err(), "a review did not reach the Check")
		}
	}
	require.Equal(t, http.StatusTooManyRequests, post("a", "quick", 256<<10))
	require.Equal(t, http.StatusOK, post("a", "quick", 1<<10), "there is room for a small one")
	for range 3 {
		require.Equal(t, http.StatusOK, post("b", "quick", 1<<20), "another namespace has a part of its own")
	}
	close(end)
	done.Wait()
	for _, code := range codes {
		require.Equal(t, http.StatusOK, code)
	}
	require.Equal(t, http.StatusOK, post("a", "quick", 2*defaulting.MaxOfNamespace), "one alone may be larger, and all was given back")
}
