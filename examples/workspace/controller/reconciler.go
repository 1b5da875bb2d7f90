package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// FieldOwner is the name under which fields are applied.
const FieldOwner = "workspace.inferscale.io/controller"

// afterConflict is when to look again after somebody else wrote first. Their event usually comes sooner.
const afterConflict = 100 * time.Millisecond

// Reconciler keeps workspaces. All fields but Recorder are needed.
type Reconciler struct {
	// Client reads from a cache and writes to the API server.
	Client client.Client
	// Servers knows what to run for a workspace.
	Servers Servers
	// Recorder tells people about scaling. Nil is allowed.
	Recorder record.EventRecorder
}

// SetupWithManager makes a manager call the Reconciler for every change of a workspace or of its Deployment.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).For(&v1alpha1.Workspace{}).Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{RateLimiter: limiter()}).Complete(r)
}

// A workspace that failed is tried again after so long, and at last each minute: of what is in the way there may be no event,
// as of a Deployment of somebody else, of a quota, or of the webhook of another program.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

// limiter says when.
func limiter() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)
}

// Reconcile brings one workspace to what its specification says.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var w v1alpha1.Workspace
	if err := r.Client.Get(ctx, request.NamespacedName, &w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes the Deployment
	}
	var err error
	if w.Unreadable != "" {
		err = r.unreadable(ctx, &w)
	} else {
		var status *v1alpha1.WorkspaceStatus
		if status, err = r.work(ctx, &w); !apierrors.IsConflict(err) {
			err = errors.Join(err, r.write(ctx, &w, status))
		}
	}
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	return ctrl.Result{}, err
}

// unreadable tells of a workspace that its type cannot hold. Its Deployment stays as it is.
func (r *Reconciler) unreadable(ctx context.Context, w *v1alpha1.Workspace) error {
	n := newNote(w)
	n.unplanned(&Problem{v1alpha1.ReasonUnreadable, w.Unreadable})
	if equality.Semantic.DeepEqual(&w.Status, n.status) {
		return nil
	}
	before := w.DeepCopy()
	w.Status = *n.status
	// A patch replaces the list of conditions as a whole, those of others too.
	return r.Client.Status().Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// work does what is to do for a workspace and returns what its status becomes. The status is of use even beside an
// error.
func (r *Reconciler) work(ctx context.Context, w *v1alpha1.Workspace) (*v1alpha1.WorkspaceStatus, error) {
	n := newNote(w)
	plan, problem := NewPlan(w)
	n.scalable(w)
	if problem == nil {
		n.planned(w, plan)
	}
	current, err := r.deployment(ctx, w)
	if err == nil || errors.Is(err, errForeign) {
		n.exist(current)
	}
	if problem != nil {
		n.unplanned(problem)
		return n.status, nil
	}
	if plan.PerReplicaNodes > 1 {
		n.notReady(v1alpha1.ReasonDistributed, fmt.Sprintf(
			"a replica needs %d nodes of %s: distributed inference is not supported, so its nodes are counted but no pods are made",
			plan.PerReplicaNodes, w.Spec.Resource.InstanceType))
		return n.status, nil
	}
	desired, unknown := r.Servers.Deployment(w, plan)
	if unknown != nil {
		n.notReady(v1alpha1.ReasonUnknownSettings, unknown.Error())
		return n.status, nil // the condition says it; trying again would not help
	}
	written := false
	if err == nil {
		written, err = r.apply(ctx, w, current, desired)
	}
	switch {
	case errors.Is(err, errForeign):
		n.notReady(v1alpha1.ReasonDeploymentConflict, err.Error())
		return n.status, err
	case err != nil:
		n.notReady(v1alpha1.ReasonDeploymentFailed, err.Error())
		return n.status, err
	}
	n.serving(plan, current, written)
	return n.status, nil
}

// write replaces the status if it differs.
func (r *Reconciler) write(ctx context.Context, w *v1alpha1.Workspace, status *v1alpha1.WorkspaceStatus) error {
	if equality.Semantic.DeepEqual(&w.Status, status) {
		return nil
	}
	before := w.Status.Inference
	w.Status = *status
	if err := r.Client.Status().Update(ctx, w); err != nil {
		return err
	}
	after := status.Inference
	if r.Recorder != nil && after != nil && (before == nil || before.TargetNodeCount != after.TargetNodeCount) {
		var from int32
		if before != nil {
			from = before.TargetNodeCount
		}
		r.Recorder.Eventf(w, corev1.EventTypeNormal, "TargetNodeCountChanged",
			"status.inference.targetNodeCount %d -> %d: %d nodes a replica", from, after.TargetNodeCount, after.PerReplicaNodeCount)
	}
	return nil
}
