package controller_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// behind is a cache that shows a workspace as it was, until it has caught up.
type behind struct {
	client.Client

	then *v1alpha1.Workspace
}

func (b *behind) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if w, ok := o.(*v1alpha1.Workspace); ok && b.then != nil {
		b.then.DeepCopyInto(w)
		return nil
	}
	return b.Client.Get(ctx, key, o, options...)
}

// TestRegressionAnUnreadableWorkspaceKeepsTheConditionsOfOthers: the whole list of conditions was written over one that had changed since.
func TestRegressionAnUnreadableWorkspaceKeepsTheConditionsOfOthers(t *testing.T) {
	w := newWorld(t, served())
	w.settle(t.Context(), t)
	cache := &behind{Client: w.Client, then: w.workspace(t.Context(), t)}

	// The program that provides nodes reports, and the cache of this one does not show it yet.
	other := w.workspace(t.Context(), t)
	meta.SetStatusCondition(&other.Status.Conditions, metav1.Condition{Type: "ResourceReady", Status: metav1.ConditionTrue, Reason: "Provided"})
	require.NoError(t, w.Status().Update(t.Context(), other))

	w.reconciler.Client = unread{cache}
	_, err := w.reconcile(t.Context())
	require.NoError(t, err)
	require.Equal(t, "True Provided", condition(w.workspace(t.Context(), t), "ResourceReady"), "conditions of others stay as they are")

	cache.then = nil
	_, err = w.reconcile(t.Context())
	require.NoError(t, err)
	require.Equal(t, "True Provided", condition(w.workspace(t.Context(), t), "ResourceReady"))
	require.Equal(t, "False InvalidSpec", condition(w.workspace(t.Context(), t), v1alpha1.ConditionNodesEstimated))
}
