package controller_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// After any sequence of scale requests, other writers' changes between reading and writing, failures, lost Deployments
// and statuses that somebody made up: once it is quiet, targetNodeCount is perReplicaNodeCount * spec.inference.replicas
// and the Deployment has the replicas. And at any moment, what the status says was true of the generation that it says.
func TestTargetNodeCountFollowsWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perReplica := rapid.SampledFrom([]int32{1, 1, 2, 8}).Draw(t, "per replica")
		start := served()
		start.Annotations[v1alpha1.PerReplicaNodeCountAnnotation] = map[int32]string{1: "1", 2: "2", 8: "8"}[perReplica]
		w := newWorld(t, start)
		ctx := t.Context()
		amounts := rapid.OneOf(rapid.Int32Range(0, 12), rapid.SampledFrom([]int32{math.MaxInt32 / 8, math.MaxInt32 / 2}))
		wanted := map[int64]int32{1: 2} // generation -> replicas
		rescale := func(c client.Client, n int32) {
			require.NoError(t, scale(ctx, c, n))
			var now v1alpha1.Workspace
			require.NoError(t, c.Get(ctx, key(), &now))
			wanted[now.Generation] = n
		}
		t.Repeat(map[string]func(*rapid.T){
			"scale": func(t *rapid.T) {
				n := amounts.Draw(t, "replicas")
				if _, err := v1alpha1.TargetNodeCount(perReplica, n); err != nil {
					t.Skip("the webhook refuses it")
				}
				rescale(w, n)
			},
			"scale between reading and writing": func(t *rapid.T) {
				n := rapid.Int32Range(0, 12).Draw(t, "replicas")
				w.writes.between = func(c client.Client) { rescale(c, n) }
			},
			"reconcile": func(t *rapid.T) {
				_, err := w.reconcile(ctx)
				require.NoError(t, err)
			},
			"reconcile and fail": func(t *rapid.T) {
				at := rapid.SampledFrom([]string{"apply", "status"}).Draw(t, "at")
				w.writes.fail = func(what string) error {
					if what == at {
						return errors.New("connection reset")
					}
					return nil
				}
				_, _ = w.reconcile(ctx) // it may have nothing to write
				w.writes.fail = nil
			},
			"lose the deployment": func(t *rapid.T) {
				if w.Get(ctx, key(), foreignDeployment()) == nil {
					require.NoError(t, w.Delete(ctx, w.deployment(ctx, t)))
				}
			},
			"scale the deployment by hand": func(t *rapid.T) {
				if w.Get(ctx, key(), foreignDeployment()) != nil {
					t.Skip("there is none")
				}
				d := w.deployment(ctx, t)
				d.Spec.Replicas = new(rapid.Int32Range(0, 12).Draw(t, "replicas"))
				require.NoError(t, w.Update(ctx, d, client.FieldOwner("somebody")))
			},
			"": func(t *rapid.T) {
				status := w.workspace(ctx, t).Status
				if status.Inference == nil {
					return
				}
				require.Equal(t, perReplica, status.Inference.PerReplicaNodeCount)
				require.Equal(t, perReplica*wanted[status.ObservedGeneration], status.Inference.TargetNodeCount)
			},
		})
		w.writes.between = nil
		w.settle(ctx, t)
		got := w.workspace(ctx, t)
		require.Equal(t, got.Generation, got.Status.ObservedGeneration)
		require.Equal(t, perReplica*wanted[got.Generation], got.Status.Inference.TargetNodeCount)
		if perReplica == 1 {
			require.Equal(t, wanted[got.Generation], *w.deployment(ctx, t).Spec.Replicas)
		}
	})
}
