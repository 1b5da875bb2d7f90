package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/inferscale/inferscale/scaling"
)

// One step, and then the cooldown of 10 min.
func Example() {
	main()
	// Output:
	// 00:00:15 Up 3 -> 4: AboveHigh waiting lower=14 > high=10, held=30s >= window=30s
}

// Whatever the answers are, and however often the process begins anew: one step a cooldown.
func TestAnswersAndRestarts(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, tt := range map[string]struct {
		answer  error
		written bool // although the answer is an error
		after   int32
	}{
		"conflict":             {apierrors.NewConflict(resource, "chat", errors.New("changed")), false, 4}, // decided again in the same round
		"refused":              {apierrors.NewForbidden(resource, "chat", errors.New("quota")), false, 4},  // and written in the next
		"lost":                 {errors.New("connection reset"), false, 4},
		"answer lost, written": {errors.New("connection reset"), true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			replicas := int32(3)
			clients := fake.NewClientset(&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "chat", UID: "1"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas},
			})
			failed := false
			clients.PrependReactor("update", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
				d := action.(clienttesting.UpdateAction).GetObject().(*appsv1.Deployment)
				if failed || *d.Spec.Replicas == 3 {
					return false, nil, nil
				}
				failed = true
				if tt.written {
					_ = clients.Tracker().Update(action.GetResource(), d, "default")
				}
				return true, nil, tt.answer
			})
			client := clients.AppsV1().Deployments("default")
			for i := range 20 { // five minutes, of which each round is a new process
				l, err := newLoop()
				require.NoError(t, err)
				_, _ = round(t.Context(), l, client, "chat", time.Unix(int64(15*i), 0), scaling.Exactly("waiting", 14))
			}
			require.True(t, failed)
			d, err := client.Get(t.Context(), "chat", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, tt.after, *d.Spec.Replicas)
		})
	}
}
