package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/estimate"
)

// Defaulter writes the estimate of the nodes of a replica into an annotation, once. Make one with [NewDefaulter].
type Defaulter struct {
	decoder   admission.Decoder
	estimator estimate.NodeEstimator
}

// NewDefaulter returns a Defaulter.
func NewDefaulter(decoder admission.Decoder, estimator estimate.NodeEstimator) *Defaulter {
	return &Defaulter{decoder: decoder, estimator: estimator}
}

var _ admission.Handler = (*Defaulter)(nil)

// Handle implements [admission.Handler]. What it writes depends on what is there already:
//
//   - A new workspace gets the estimate, whatever annotation it brings: people do not choose the number.
//   - An update that lost the annotation, as a replace does, gets the old one back.
//   - A workspace that never had a good one, because it had no inference settings or is older than the webhook, gets
//     what its status says, or else the estimate.
func (d *Defaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	fresh, old, err := decode(d.decoder, &request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if !fresh.DeletionTimestamp.IsZero() {
		return admission.Allowed("it is being deleted")
	}
	brought, has := fresh.Annotations[v1alpha1.PerReplicaNodeCountAnnotation]
	if old != nil {
		if n, err := old.AnnotatedNodeCount(); err == nil && n > 0 {
			if has {
				return admission.Allowed("") // the validator compares
			}
			return annotate(fresh, old.Annotations[v1alpha1.PerReplicaNodeCountAnnotation])
		}
	}
	if fresh.Spec.Inference == nil {
		if has {
			return admission.Patched("", jsonpatch.NewOperation("remove", annotationPath(), nil))
		}
		return admission.Allowed("")
	}
	count, err := d.count(ctx, fresh, old)
	if invalid := (*field.Error)(nil); errors.As(err, &invalid) {
		return refuse(request.Name, field.ErrorList{invalid})
	} else if err != nil {
		return failed(fmt.Errorf("estimate of the nodes of a replica: %w", err))
	}
	value := strconv.Itoa(int(count))
	answer := annotate(fresh, value)
	if has && brought != value {
		answer.Warnings = append(answer.Warnings, fmt.Sprintf("metadata.annotations[%s]: %q is replaced with the estimate, %s",
			v1alpha1.PerReplicaNodeCountAnnotation, brought, value))
	}
	return answer
}

// count returns the nodes of a replica of a workspace that has no annotation yet.
func (d *Defaulter) count(ctx context.Context, fresh, old *v1alpha1.Workspace) (int32, error) {
	if old != nil && old.Status.Inference != nil && old.Status.Inference.PerReplicaNodeCount > 0 {
		return old.Status.Inference.PerReplicaNodeCount, nil
	}
	count, err := d.estimator.Estimate(ctx, fresh)
	if err == nil && count < 1 {
		err = fmt.Errorf("the estimator says %d, which is less than one", count)
	}
	return count, err
}

// annotate writes the annotation, and nothing else.
func annotate(w *v1alpha1.Workspace, value string) admission.Response {
	if len(w.Annotations) == 0 {
		return admission.Patched("", jsonpatch.NewOperation("add", "/metadata/annotations",
			map[string]string{v1alpha1.PerReplicaNodeCountAnnotation: value}))
	}
	return admission.Patched("", jsonpatch.NewOperation("add", annotationPath(), value))
}

// annotationPath is the JSON pointer to the annotation. "~1" is how a pointer spells the slash.
func annotationPath() string {
	return "/metadata/annotations/" + v1alpha1.Group + "~1" +
		v1alpha1.PerReplicaNodeCountAnnotation[len(v1alpha1.Group)+1:]
}
