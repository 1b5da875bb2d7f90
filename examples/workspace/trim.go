package main

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/controller"
)

const (
	// mostDeployment is how many bytes are kept of a Deployment. What is applied for the largest workspace is smaller.
	mostDeployment = 2 * stored.MaxPart
	// mostCount is how many bytes are kept of the annotation of a workspace: more than any number that it may have.
	mostCount = 64
)

// trim keeps of workspaces and Deployments what the controller looks at: the cache has those of all namespaces, and whoever may
// write them can fill each up to 1.5 MB. Of a workspace the spec and the status are bounded when they are read.
func trim(o any) (any, error) {
	switch o := o.(type) {
	case *v1alpha1.Workspace:
		count, has := o.Annotations[v1alpha1.PerReplicaNodeCountAnnotation]
		o.Annotations, o.Labels, o.OwnerReferences, o.Finalizers, o.ManagedFields = nil, nil, nil, nil, nil
		if has {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.PerReplicaNodeCountAnnotation, count[:min(len(count), mostCount)])
		}
		return o, nil
	case *appsv1.Deployment:
		trimDeployment(o)
		return o, nil
	}
	return cache.TransformStripManagedFields()(o)
}

// trimDeployment keeps of a Deployment what the controller has applied or reads. If that is too large, the controller did not
// apply it, or somebody has added to it: then its spec counts as unknown, and is applied again.
func trimDeployment(d *appsv1.Deployment) {
	owner, name, managed := metav1.GetControllerOf(d), d.Labels[v1alpha1.NameLabel], d.ManagedFields
	d.Annotations, d.Labels, d.OwnerReferences, d.Finalizers, d.ManagedFields = nil, nil, nil, nil, nil
	if owner == nil || owner.Kind != v1alpha1.Kind {
		d.Spec, d.Status = appsv1.DeploymentSpec{}, appsv1.DeploymentStatus{} // it is somebody else's
		return
	}
	d.Labels, d.OwnerReferences = map[string]string{v1alpha1.NameLabel: name}, []metav1.OwnerReference{*owner}
	for _, m := range managed {
		if m.Manager == controller.FieldOwner && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" {
			d.ManagedFields = append(d.ManagedFields, m)
		}
	}
	d.Status.Conditions = nil
	if d.Size() > mostDeployment {
		d.Spec, d.ManagedFields = appsv1.DeploymentSpec{}, nil
	}
}
