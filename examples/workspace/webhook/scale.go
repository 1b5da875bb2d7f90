package webhook

import (
	"context"
	"fmt"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// ScaleValidator judges scale requests of workspaces. Make one with [NewScaleValidator].
type ScaleValidator struct {
	decoder admission.Decoder
	reader  client.Reader
}

// NewScaleValidator returns a ScaleValidator. The reader must not be a cache; the package's documentation says why.
func NewScaleValidator(decoder admission.Decoder, uncached client.Reader) *ScaleValidator {
	return &ScaleValidator{decoder: decoder, reader: uncached}
}

var _ admission.Handler = (*ScaleValidator)(nil)

// Handle implements [admission.Handler].
func (v *ScaleValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "scale" {
		return admission.Errored(http.StatusBadRequest,
			fmt.Errorf("subresource %q of %s: this webhook answers for /scale only", request.SubResource, request.Resource.Resource))
	}
	var scale autoscalingv1.Scale
	if err := v.decoder.DecodeRaw(request.Object, &scale); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var w v1alpha1.Workspace
	if err := v.reader.Get(ctx, types.NamespacedName{Namespace: request.Namespace, Name: request.Name}, &w); err != nil {
		return failed(err)
	}
	if w.Unreadable != "" {
		return admission.Denied("the workspace cannot be read: " + w.Unreadable)
	}
	if errs := scalable(&w, scale.Spec.Replicas); len(errs) > 0 {
		return refuse(request.Name, errs)
	}
	return admission.Allowed("")
}

// scalable says why a workspace cannot have so many replicas. A request for the replicas that it has already is refused
// too: it is a scale request.
func scalable(w *v1alpha1.Workspace, replicas int32) field.ErrorList {
	before, ok := w.DesiredReplicas()
	if !ok {
		return field.ErrorList{field.Required(field.NewPath("spec", "inference"),
			fmt.Sprintf("a workspace without inference settings cannot be scaled (to %d)", replicas))}
	}
	if errs := pinned(w.Spec.Resource.PreferredNodes, before, replicas); len(errs) > 0 {
		return errs
	}
	return countable(w, replicas)
}
