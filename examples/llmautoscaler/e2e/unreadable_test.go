package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// TestOneObjectStopsNobody: objects that a definition without maxima let in, which the types cannot hold. A controller
// that runs goes on hearing of every other object, one that starts begins with all of them, and each of the two is ready;
// what is wrong with the objects is in their own conditions and in a metric. With today's definition none gets in.
func TestOneObjectStopsNobody(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	const file = "../../../adapters/k8s/api/crd/autoscaling.inferscale.io_llmautoscalers.yaml"
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	bad := func(name, spec string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte("apiVersion: autoscaling.inferscale.io/v1alpha1\nkind: LLMAutoScaler\nmetadata: {name: "+name+", namespace: models}\n"+
			"spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "+name+"}\n"+spec), &o.Object))
		return o
	}
	large := bad("large", "  maxReplicas: 3000000000\n  scaler: {static: {replicas: 1}}\n")
	fraction := bad("fraction", "  maxReplicas: 8.000000001\n  scaler: {static: {replicas: 1}}\n")
	for _, o := range []*unstructured.Unstructured{large, fraction} {
		require.ErrorContains(t, w.client.Create(ctx, o.DeepCopy()), "spec.maxReplicas", "today's definition")
	}

	address := cluster.FreeAddress(t)
	running := w.run("-leader-elect=false", "-health-address", address)
	w.waiting.Store(20)
	w.autoscaler(nil)
	w.eventually("it scales up", 30*time.Second, func() bool { return w.replicas() > 1 })

	// As it was: numbers without maxima, and no rules. Before Kubernetes 1.37 API servers let in what no int32 holds, and fractions.
	loose := regexp.MustCompile(`(?m)^ +(maximum: .*|format: int32)\n`).ReplaceAllString(string(now), "")
	loose = strings.ReplaceAll(loose, "type: integer", "type: number")
	before := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(loose), &before.Object))
	unruled(before.Object)
	swap := func(definition *unstructured.Unstructured) {
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(definition.GroupVersionKind())
		require.NoError(t, w.client.Get(ctx, client.ObjectKeyFromObject(definition), current))
		definition = definition.DeepCopy()
		definition.SetResourceVersion(current.GetResourceVersion())
		require.NoError(t, w.client.Update(ctx, definition))
	}
	swap(before)
	for _, o := range []*unstructured.Unstructured{large, fraction} {
		w.eventually("it is let in", 30*time.Second, func() bool { return w.client.Create(ctx, o.DeepCopy()) == nil })
	}
	good := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(now, &good.Object))
	swap(good)

	invalid := func(name string) bool {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind))
		if w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o) != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		return strings.Contains(fmt.Sprint(conditions), "reason:InvalidSpec") && strings.Contains(fmt.Sprint(conditions), "maxReplicas")
	}
	edited := func(most int32) {
		var las *v1alpha1.LLMAutoScaler
		require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error { // with the status that the controller writes
			las = w.status()
			las.Spec.MaxReplicas = most
			return w.client.Update(ctx, las)
		}))
		w.eventually("the edit counts", 30*time.Second, func() bool {
			return w.status().Status.ObservedGeneration == las.Generation && w.replicas() <= most
		})
	}
	for _, name := range []string{"large", "fraction"} {
		w.eventually(name+" is told", 30*time.Second, func() bool { return invalid(name) })
	}
	edited(2)
	running.kill()

	metrics := cluster.FreeAddress(t)
	w.run("-leader-elect=false", "-health-address", address, "-metrics-address", metrics, "-metrics-insecure")
	edited(1)
	w.eventually("it is ready", 30*time.Second, func() bool { return strings.HasPrefix(get(t, "http://"+address+"/readyz"), "200") })
	page := get(t, "http://"+metrics+"/metrics")
	for _, name := range []string{"large", "fraction"} {
		require.Contains(t, page, `inferscale_ready{name="`+name+`",namespace="models",reason="InvalidSpec"} 0`)
	}
	require.Contains(t, page, `inferscale_ready{name="chat",namespace="models",reason=`)
}

// unruled removes the rules of a definition, and its fields with large numbers in formats.
func unruled(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "x-kubernetes-validations")
		for _, one := range v {
			unruled(one)
		}
	case []any:
		for _, one := range v {
			unruled(one)
		}
	}
}

// get returns the status and the text of a page.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return fmt.Sprint(answer.StatusCode, " ", string(text))
}
