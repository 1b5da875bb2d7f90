package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/controller"
)

// unread is a client that reads a workspace which its type cannot hold.
type unread struct{ client.Client }

func (u unread) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := u.Client.Get(ctx, key, o, options...)
	if w, ok := o.(*v1alpha1.Workspace); ok {
		w.Spec, w.Unreadable = v1alpha1.WorkspaceSpec{}, "json: cannot unmarshal number 3000000000"
	}
	return err
}

// TestE2EUnreadable: the controller's rights are enough to tell of a workspace that cannot be read.
func TestE2EUnreadable(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{CRDs: []string{"deploy/crd/workspace.inferscale.io_workspaces.yaml"}})
	for _, file := range []string{"namespace", "service_account", "rbac"} {
		text, err := os.ReadFile(filepath.Join("deploy/base", file+".yaml"))
		require.NoError(t, err)
		require.NoError(t, c.Apply(t.Context(), text))
	}
	scheme, err := newScheme()
	require.NoError(t, err)
	admin, err := client.New(c.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	w := &v1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	w.Spec.Resource.InstanceType = "Standard_NC24ads_A100_v4"
	require.NoError(t, admin.Create(t.Context(), w))
	as := rest.CopyConfig(c.Config())
	as.Impersonate.UserName = "system:serviceaccount:workspace-system:workspace-controller"
	own, err := client.New(as, client.Options{Scheme: scheme})
	require.NoError(t, err)
	r := &controller.Reconciler{Client: unread{own}}
	_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)})
	require.NoError(t, err)
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(w), w))
	require.NotEmpty(t, w.Status.Conditions)
}
