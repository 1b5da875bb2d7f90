package controller_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// mirrored is an API server with a mutating webhook that rewrites images to a mirror, as Kyverno's policies for Deployments do. Managed
// fields have no values: the field stays the controller's, with the webhook's value.
type mirrored struct{ client.Client }

func (m mirrored) Apply(ctx context.Context, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	if d, ok := o.(*appsv1ac.DeploymentApplyConfiguration); ok {
		c := &d.Spec.Template.Spec.Containers[0]
		if !strings.HasPrefix(*c.Image, "mirror/") {
			changed := "mirror/" + *c.Image
			c.Image = &changed
		}
	}
	return m.Client.Apply(ctx, o, options...)
}

// TestAWorkspaceIsReadyWhereAWebhookChangesTheDeployment: there is something to write in each reconciliation, and a workspace whose
// replicas all serve was never ready, as "the Deployment is being changed".
func TestAWorkspaceIsReadyWhereAWebhookChangesTheDeployment(t *testing.T) {
	w := newWorld(t, served())
	w.reconciler.Client = mirrored{w.Client}
	for range 3 {
		_, err := w.reconcile(t.Context())
		require.NoError(t, err)
	}
	w.serve(t.Context(), t, 2)
	for range 5 {
		_, err := w.reconcile(t.Context())
		require.NoError(t, err)
	}
	got := w.workspace(t.Context(), t)
	require.Equal(t, "True Available", condition(got, v1alpha1.ConditionInferenceReady), message(got, v1alpha1.ConditionInferenceReady))
}
