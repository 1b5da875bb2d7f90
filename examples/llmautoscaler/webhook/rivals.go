package webhook

import (
	"context"
	"fmt"
	"strconv"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/turnstile"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
)

const scaledObject = "ScaledObject"

// Annotations with which a ScaledObject leaves its target alone: the first with whatever value.
const (
	pausedReplicas = "autoscaling.keda.sh/paused-replicas"
	pausedByKEDA   = "autoscaling.keda.sh/paused"
)

// scalers are the kinds of other autoscalers that name their target in spec.scaleTargetRef: that of KEDA first, which
// makes an HPA of each.
func scalers() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "keda.sh", Version: "v1alpha1", Kind: scaledObject},
		autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
	}
}

// fights says who scales the target beside the object: a problem if it writes, as the two would undo each other's
// writes for ever, and a warning if it does not. An update may leave as it is what was so before it. Where nobody knows,
// as the kinds cannot be listed, it is allowed with a warning: the controller finds out when its writes are undone.
func (v *Validator) fights(ctx context.Context, before, las *v1alpha1.LLMAutoScaler) (*field.Error, admission.Warnings) {
	writes := func(l *v1alpha1.LLMAutoScaler) bool { return !l.Spec.DryRun && !l.Spec.Paused }
	if v.Others == nil || before != nil && before.Spec.ScaleTargetRef == las.Spec.ScaleTargetRef && (writes(before) || !writes(las)) {
		return nil, nil
	}
	target := controller.IndexKey(controller.Target(las))
	var warnings admission.Warnings
	for _, kind := range scalers() {
		other, err := v.rival(ctx, kind, las.Namespace, target)
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			continue // the cluster has none
		case err != nil:
			warnings = append(warnings, fmt.Sprintf("spec.scaleTargetRef: whether a %s scales it too could not be found out: %v", kind.Kind, err))
			continue
		case other == nil:
			continue
		}
		ref := las.Spec.ScaleTargetRef
		rule := fmt.Sprintf("is scaled by %s %s already", kind.Kind, other.GetName())
		if writes(las) && !isPaused(kind, other) {
			return field.Invalid(field.NewPath("spec", "scaleTargetRef"), ref.Kind+" "+ref.Name, rule+": remove it, or set spec.dryRun or spec.paused"), warnings
		}
		warnings = append(warnings, fmt.Sprintf("spec.scaleTargetRef: %s %s: %s: only one of the two may write", ref.Kind, ref.Name, rule))
	}
	return nil, warnings
}

const (
	// pageOf is how many other autoscalers a page has: each may have 1.5 MB, and their number has no limit.
	pageOf = 5
	// maxPages is how many pages a review reads of a kind: it has to be answered within seconds.
	maxPages = 20
	// readAtOnce is how many pages are read at once, of all namespaces together. Of one namespace it is one.
	readAtOnce = 4
)

// rival returns the first autoscaler of a kind with a target, one that is paused only if no other has it, nil where none
// has it. It is an error if none of the first maxPages pages has one that writes, and there are more.
func (v *Validator) rival(ctx context.Context, kind schema.GroupVersionKind, namespace, target string) (paused *unstructured.Unstructured, err error) {
	token := ""
	for range maxPages {
		all, err := v.page(ctx, kind, namespace, token)
		if err != nil {
			return nil, err
		}
		for i := range all.Items {
			other := &all.Items[i]
			switch {
			case other.GetDeletionTimestamp() != nil || targetOf(other) != target:
			case !isPaused(kind, other):
				return other, nil
			case paused == nil:
				paused = other
			}
		}
		if token = all.GetContinue(); token == "" {
			return paused, nil
		}
	}
	return nil, fmt.Errorf("namespace %s has more than %d, and no more are read", namespace, maxPages*pageOf)
}

// page reads the next few of a kind, while nobody else reads of the namespace.
func (v *Validator) page(ctx context.Context, kind schema.GroupVersionKind, namespace, token string) (*unstructured.UnstructuredList, error) {
	v.begin.Do(func() { v.turns = turnstile.New(readAtOnce, 1) })
	leave := v.turns.Enter(ctx, namespace)
	if leave == nil {
		return nil, ctx.Err()
	}
	defer leave()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := v.Others.List(ctx, all, client.InNamespace(namespace), client.Limit(pageOf), client.Continue(token))
	return all, err
}

// targetOf returns the key of what another autoscaler scales. KEDA takes a Deployment where nothing is said.
func targetOf(o *unstructured.Unstructured) string {
	text := func(name, otherwise string) string {
		if s, _, err := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", name); err == nil && s != "" {
			return s
		}
		return otherwise
	}
	return controller.IndexKey(k8s.Target{APIVersion: text("apiVersion", "apps/v1"), Kind: text("kind", "Deployment"), Name: text("name", "")})
}

// isPaused reports whether KEDA takes a ScaledObject for paused: by a value that is no truth value, too. Nothing pauses an HPA.
func isPaused(kind schema.GroupVersionKind, o *unstructured.Unstructured) bool {
	if kind.Kind != scaledObject {
		return false
	}
	annotations := o.GetAnnotations()
	if _, ok := annotations[pausedReplicas]; ok {
		return true
	}
	value, ok := annotations[pausedByKEDA]
	paused, err := strconv.ParseBool(value)
	return ok && (err != nil || paused)
}
