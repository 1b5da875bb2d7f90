package webhook

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// Validator judges workspaces. Make one with [NewValidator].
type Validator struct {
	decoder admission.Decoder
}

// NewValidator returns a Validator.
func NewValidator(decoder admission.Decoder) *Validator {
	return &Validator{decoder: decoder}
}

var _ admission.Handler = (*Validator)(nil)

// Handle implements [admission.Handler].
func (v *Validator) Handle(_ context.Context, request admission.Request) admission.Response {
	fresh, old, err := decode(v.decoder, &request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if !fresh.DeletionTimestamp.IsZero() {
		return admission.Allowed("it is being deleted")
	}
	var errs field.ErrorList
	if old != nil {
		errs = append(errs, constant(fresh, old)...)
		errs = append(errs, rescaled(fresh, old)...)
	}
	if replicas, ok := fresh.DesiredReplicas(); ok {
		errs = append(errs, countable(fresh, replicas)...)
	}
	if len(errs) > 0 {
		return refuse(request.Name, errs)
	}
	return admission.Allowed("").WithWarnings(warnings(fresh, old)...)
}

// constant refuses another number of nodes of a replica than before. The schema does the same for the status.
func constant(fresh, old *v1alpha1.Workspace) field.ErrorList {
	if n, err := old.AnnotatedNodeCount(); n == 0 || err != nil {
		return nil // nothing, or nothing of use, that must stay
	}
	before := old.Annotations[v1alpha1.PerReplicaNodeCountAnnotation]
	now, has := fresh.Annotations[v1alpha1.PerReplicaNodeCountAnnotation]
	if has && now == before {
		return nil
	}
	return field.ErrorList{field.Invalid(annotationField(), now,
		fmt.Sprintf("it is %q for the life of the workspace: its nodes were estimated when it was created", before))}
}

// rescaled refuses other replicas than before for a workspace with preferred nodes. Inference settings that are new are
// no scale request: they bring their replicas with them.
func rescaled(fresh, old *v1alpha1.Workspace) field.ErrorList {
	before, had := old.DesiredReplicas()
	now, has := fresh.DesiredReplicas()
	if !had || !has || now == before {
		return nil
	}
	nodes := fresh.Spec.Resource.PreferredNodes
	if len(nodes) == 0 {
		// Whoever removes them and scales in the same request asks to scale what had preferred nodes.
		nodes = old.Spec.Resource.PreferredNodes
	}
	return pinned(nodes, before, now)
}

// pinned refuses to scale from before to now if there are preferred nodes.
func pinned(nodes []string, before, now int32) field.ErrorList {
	if len(nodes) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "resource", "preferredNodes"), nodes,
		fmt.Sprintf("a workspace with preferred nodes cannot be scaled (spec.inference.replicas from %d to %d): "+
			"remove preferredNodes first, in a request of its own", before, now))}
}

// countable refuses replicas whose nodes no int32 can count.
func countable(w *v1alpha1.Workspace, replicas int32) field.ErrorList {
	path := field.NewPath("spec", "inference", "replicas")
	perReplica, err := w.PerReplicaNodeCount()
	if err != nil {
		return field.ErrorList{field.Invalid(annotationField(),
			w.Annotations[v1alpha1.PerReplicaNodeCountAnnotation], err.Error())}
	}
	if _, err := v1alpha1.TargetNodeCount(perReplica, replicas); err != nil {
		return field.ErrorList{field.Invalid(path, replicas, "status.inference.targetNodeCount would be "+err.Error())}
	}
	return nil
}

// warnings are for what is allowed and yet not what somebody wants.
func warnings(fresh, old *v1alpha1.Workspace) []string {
	var all []string
	if fresh.Spec.Resource.Count != nil {
		all = append(all, "spec.resource.count is deprecated and ignored: "+
			"the number of nodes is status.inference.targetNodeCount = perReplicaNodeCount * spec.inference.replicas")
	}
	if n, err := fresh.PerReplicaNodeCount(); old == nil && err == nil && n > 1 {
		all = append(all, fmt.Sprintf("spec.resource.instanceType: a replica needs %d nodes of %q: "+
			"distributed inference is not supported, so its nodes are counted but no pods are made",
			n, fresh.Spec.Resource.InstanceType))
	}
	return all
}

// annotationField is the annotation, in messages.
func annotationField() *field.Path {
	return field.NewPath("metadata", "annotations").Key(v1alpha1.PerReplicaNodeCountAnnotation)
}
