package controller_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/controller"
	"github.com/inferscale/inferscale/examples/workspace/estimate"
)

// key is the name of the workspace of every test.
func key() types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: "llama"} }

// servers knows what estimate knows.
func servers() controller.Servers {
	return controller.Servers{
		Instances: estimate.AzureInstances(), Presets: estimate.Presets(), PresetImage: "vllm/vllm-openai:test",
	}
}

// served returns a workspace as the webhook lets it through, changed.
func served(change ...func(*v1alpha1.Workspace)) *v1alpha1.Workspace {
	w := &v1alpha1.Workspace{}
	w.Name, w.Namespace, w.UID, w.Generation = key().Name, key().Namespace, "uid-1", 1
	w.Annotations = map[string]string{v1alpha1.PerReplicaNodeCountAnnotation: "1"}
	w.Spec.Resource.InstanceType = "Standard_NC48ads_A100_v4"
	w.Spec.Inference = &v1alpha1.InferenceSpec{
		Replicas: new(int32(2)), Preset: &v1alpha1.PresetSpec{Name: "phi-4"},
	}
	for _, f := range change {
		f(w)
	}
	return w
}

// count sets what the webhook estimated.
func count(text string) func(*v1alpha1.Workspace) {
	return func(w *v1alpha1.Workspace) { w.Annotations[v1alpha1.PerReplicaNodeCountAnnotation] = text }
}

// writes are the requests that changed, or tried to change, something.
type writes struct {
	status, applied int
	// fail, if any, is asked before every write.
	fail func(what string) error
	// between, if any, runs once before the next write of a status.
	between func(client.Client)
}

// world is a reconciler and the API server that it works on.
type world struct {
	client.Client

	reconciler *controller.Reconciler
	writes     *writes
	events     *record.FakeRecorder
}

// newWorld returns a world with the given objects.
func newWorld(t require.TestingT, objects ...client.Object) *world {
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	counted := &writes{}
	plain := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithReturnManagedFields().
		WithStatusSubresource(&v1alpha1.Workspace{}, &appsv1.Deployment{})
	c := plain.WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			counted.applied++
			if counted.fail != nil {
				if err := counted.fail("apply"); err != nil {
					return err
				}
			}
			return c.Apply(ctx, o, options...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			counted.status++
			if f := counted.between; f != nil {
				counted.between = nil
				f(c)
			}
			if counted.fail != nil {
				if err := counted.fail(sub); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Update(ctx, o, options...)
		},
	}).Build()
	events := record.NewFakeRecorder(1000)
	return &world{
		Client: c, writes: counted, events: events,
		reconciler: &controller.Reconciler{Client: c, Servers: servers(), Recorder: events},
	}
}

// reconcile does one reconciliation.
func (w *world) reconcile(ctx context.Context) (ctrl.Result, error) {
	return w.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: key()})
}

// settle reconciles until nothing is written any more.
func (w *world) settle(ctx context.Context, t require.TestingT) {
	for range 10 {
		before := *w.writes
		result, err := w.reconcile(ctx)
		require.NoError(t, err)
		if result.RequeueAfter == 0 && before.status == w.writes.status && before.applied == w.writes.applied {
			return
		}
	}
	require.Fail(t, "it does not settle")
}

// workspace reads the workspace.
func (w *world) workspace(ctx context.Context, t require.TestingT) *v1alpha1.Workspace {
	var out v1alpha1.Workspace
	require.NoError(t, w.Get(ctx, key(), &out))
	return &out
}

// deployment reads the Deployment.
func (w *world) deployment(ctx context.Context, t require.TestingT) *appsv1.Deployment {
	var out appsv1.Deployment
	require.NoError(t, w.Get(ctx, key(), &out))
	return &out
}

// scale writes spec.inference.replicas, as /scale does.
func scale(ctx context.Context, c client.Client, replicas int32) error {
	var w v1alpha1.Workspace
	if err := c.Get(ctx, key(), &w); err != nil {
		return err
	}
	w.Spec.Inference.Replicas = &replicas
	w.Generation++ // the fake client does not count
	return c.Update(ctx, &w)
}

// serve plays the Deployment's controller: so many pods, all ready.
func (w *world) serve(ctx context.Context, t require.TestingT, pods int32) {
	d := w.deployment(ctx, t)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: pods, UpdatedReplicas: pods, AvailableReplicas: pods, ReadyReplicas: pods,
	}
	require.NoError(t, w.Status().Update(ctx, d))
}

// condition tells a condition as STATUS REASON.
func condition(w *v1alpha1.Workspace, kind string) string {
	c := meta.FindStatusCondition(w.Status.Conditions, kind)
	if c == nil {
		return "absent"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

// message returns that of a condition.
func message(w *v1alpha1.Workspace, kind string) string {
	if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// foreignDeployment has the name of the workspace and belongs to somebody else.
func foreignDeployment() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Name, d.Namespace = key().Name, key().Namespace
	d.Labels = map[string]string{v1alpha1.NameLabel: key().Name}
	d.Spec.Replicas = new(int32(9))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "theirs"}}
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	return d
}
