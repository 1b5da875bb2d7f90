package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// errForeign means that the Deployment belongs to somebody else.
var errForeign = errors.New("belongs to somebody else")

// deployment returns the Deployment of a workspace, nil if there is none.
func (r *Reconciler) deployment(ctx context.Context, w *v1alpha1.Workspace) (*appsv1.Deployment, error) {
	current := &appsv1.Deployment{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(w), current)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !metav1.IsControlledBy(current, w):
		return nil, fmt.Errorf("deployment %s/%s: %w", w.Namespace, w.Name, errForeign)
	}
	return current, nil
}

// apply brings the Deployment of a workspace, nil if there is none, to what is desired. It reports whether that changed its spec: the
// next event brings what becomes of it. Where a webhook replaces a field, as an image by that of a mirror, there is something to
// write each time, which changes nothing.
func (r *Reconciler) apply(
	ctx context.Context, w *v1alpha1.Workspace, current *appsv1.Deployment, desired *appsv1ac.DeploymentApplyConfiguration,
) (written bool, err error) {
	if current == nil {
		// Without force: if one is there that the cache does not show, this fails and changes nothing.
		err := r.Client.Apply(ctx, desired, client.FieldOwner(FieldOwner))
		if apierrors.IsConflict(err) {
			err = fmt.Errorf("deployment %s/%s: %w: %w", w.Namespace, w.Name, errForeign, opaque{err})
		}
		return true, err
	}
	owned, err := appsv1ac.ExtractDeployment(current, FieldOwner)
	if err != nil {
		return false, fmt.Errorf("deployment %s/%s: its managed fields: %w", w.Namespace, w.Name, err)
	}
	owned.Status = nil // it is not desired; controller-runtime's fake client has an empty one as owned
	if equality.Semantic.DeepEqual(owned, desired) {
		return false, nil
	}
	// The UID keeps a Deployment that was deleted meanwhile from coming back as something else's.
	if err := r.Client.Apply(ctx, desired.WithUID(current.UID), client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return true, err
	}
	answer := &appsv1.Deployment{} // desired is now the whole object
	data, err := json.Marshal(desired)
	if err == nil {
		err = json.Unmarshal(data, answer)
	}
	return err != nil || !equality.Semantic.DeepEqual(answer.Spec, current.Spec), err
}

// opaque is an error whose kind does not matter any more: a conflict with another owner is no conflict of versions, and
// trying again at once would not help.
type opaque struct{ error }
