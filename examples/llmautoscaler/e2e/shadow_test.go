package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
)

// TestShadows watch a Deployment that holds: their wishes are in the status and an event, one that is wrong is left out, and
// nothing of it is written to the Deployment. A new process goes on with their counts.
func TestShadows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.waiting.Store(3) // between the thresholds
	raw := func(scaler string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(scaler)} }
	w.autoscaler(func(s *v1alpha1.LLMAutoScalerSpec) {
		s.Shadow = []v1alpha1.Shadow{
			{Name: "load", Scaler: raw(`{"highest":[{"proportional":{"profile":"hpa","metrics":[{"source":{"name":"vllm:num_requests_waiting"},"target":1}]}}]}`)},
			{Name: "two", Scaler: raw(`{"static":{"replicas":2}}`)},
			{Name: "wrong", Scaler: raw(`{"proportional":{"profile":"none"}}`)}, // no webhook is there to refuse it
		}
	})
	process := w.run("-leader-elect=false")
	shadow := func(name string) v1alpha1.ShadowStatus {
		for _, one := range w.status().Status.Shadows {
			if one.Name == name {
				return one
			}
		}
		return v1alpha1.ShadowStatus{}
	}
	told := func(reason, message string) bool {
		var events corev1.EventList
		require.NoError(t, w.client.List(t.Context(), &events, client.InNamespace(namespace)))
		for i := range events.Items {
			if events.Items[i].Reason == reason && len(events.Items[i].Message) >= len(message) && events.Items[i].Message[:len(message)] == message {
				return true
			}
		}
		return false
	}
	w.eventually("a wish is told", time.Minute, func() bool { return told("ShadowApart", "shadow load would run ") })
	w.eventually("one that is wrong is told", time.Minute, func() bool {
		return told("ShadowLeftOut", "shadow wrong is left out (Refused): spec.shadow[2].scaler.proportional.profile")
	})
	w.eventually("it is ready", time.Minute, func() bool {
		status, _ := w.condition("Ready")
		return status == metav1.ConditionTrue && shadow("wrong").LeftOut == "Refused" && shadow("load").Since != nil
	})
	require.Equal(t, int32(1), w.replicas())
	require.Empty(t, w.writes())

	before := shadow("load")
	process.kill()
	w.run("-leader-elect=false")
	w.waiting.Store(20)
	// What the status says of them is some minutes old, unless there is something else to tell: the Deployment goes up.
	w.eventually("a new process goes on with them", time.Minute, func() bool {
		now := shadow("load")
		return now.RemembersSince != nil && before.RemembersSince.Before(now.RemembersSince) && now.Since.Equal(before.Since) && now.Replicas == 8
	})
}
