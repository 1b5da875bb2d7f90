// Package webhook refuses LLMAutoScalers that the schema and its rules cannot: those with schedules that never fire or
// time zones that do not exist, and those whose target another autoscaler scales already, of whatever kind.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/examples/internal/turnstile"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// A Validator judges LLMAutoScalers. Its Reader needs the index controller.TargetIndex.
type Validator struct {
	Reader client.Reader
	// Others lists the HorizontalPodAutoscalers and ScaledObjects of a namespace, from no cache: they are looked at when
	// an LLMAutoScaler is made or gets another target, and else not. Nil looks at none.
	Others client.Reader
	// Namespaces are those that are worked in; none means all. What is elsewhere is somebody else's, and allowed.
	Namespaces []string

	begin sync.Once
	turns *turnstile.Turnstile // of those who read pages of others
}

// ValidateCreate refuses what cannot be carried out.
func (v *Validator) ValidateCreate(ctx context.Context, given *stored.LLMAutoScaler) (admission.Warnings, error) {
	return v.validate(ctx, nil, given)
}

// ValidateUpdate refuses what cannot be carried out. What was so before the update may stay, so that labels can be
// changed of an object that a newer version would refuse.
func (v *Validator) ValidateUpdate(ctx context.Context, before, given *stored.LLMAutoScaler) (admission.Warnings, error) {
	return v.validate(ctx, before, given)
}

// ValidateDelete allows every deletion.
func (*Validator) ValidateDelete(context.Context, *stored.LLMAutoScaler) (admission.Warnings, error) {
	return nil, nil
}

func (v *Validator) validate(ctx context.Context, before, given *stored.LLMAutoScaler) (admission.Warnings, error) {
	las := &given.LLMAutoScaler
	if len(v.Namespaces) > 0 && !slices.Contains(v.Namespaces, las.Namespace) {
		return nil, nil
	}
	if las.DeletionTimestamp != nil || before != nil && before.Generation == las.Generation && before.Generation != 0 {
		return nil, nil
	}
	if given.SpecErr != nil {
		return nil, invalid(las.Name, field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, given.SpecErr.Error())})
	}
	document := las.Spec.Document()
	_, err := build.Spec(document)
	shadows, wrong := build.Shadows(document, las.Spec.Shadows(), nil)
	problems := append(list(err), list(wrong)...)
	if before == nil || before.Spec.ScaleTargetRef != las.Spec.ScaleTargetRef {
		taken, err := v.taken(ctx, las)
		if err != nil {
			return nil, err
		}
		if taken != nil {
			problems = append(problems, taken)
		}
	}
	fights, warnings := v.fights(ctx, former(before), las)
	if fights != nil {
		problems = append(problems, fights)
	}
	if len(problems) > 0 {
		return warnings, invalid(las.Name, problems)
	}
	for _, e := range shadows.Warnings {
		warnings = append(warnings, e.Error())
	}
	return append(warn(&las.Spec), warnings...), nil
}

// former is what an object was, or nil if it is new or could not be read.
func former(before *stored.LLMAutoScaler) *v1alpha1.LLMAutoScaler {
	if before == nil || before.SpecErr != nil {
		return nil
	}
	return &before.LLMAutoScaler
}

func invalid(name string, problems field.ErrorList) error {
	return apierrors.NewInvalid(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind).GroupKind(), name, problems)
}

// taken is a problem if somebody else scales the target.
func (v *Validator) taken(ctx context.Context, las *v1alpha1.LLMAutoScaler) (*field.Error, error) {
	var all stored.LLMAutoScalerList
	key := controller.IndexKey(controller.Target(las))
	if err := v.Reader.List(ctx, &all, client.InNamespace(las.Namespace), client.MatchingFields{controller.TargetIndex: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if other := &all.Items[i]; other.Name != las.Name && other.DeletionTimestamp == nil {
			ref := las.Spec.ScaleTargetRef
			return field.Invalid(field.NewPath("spec", "scaleTargetRef"), ref.Kind+" "+ref.Name, "is scaled by LLMAutoScaler "+other.Name+" already"), nil
		}
	}
	return nil, nil
}

// list makes of each wrong field what an API server says of one.
func list(err error) field.ErrorList {
	var all field.ErrorList
	for _, e := range typed.Split(err) {
		if wrong, ok := errors.AsType[*scaling.FieldError](e); ok {
			all = append(all, field.Invalid(field.NewPath(wrong.Field), wrong.Value, wrong.Rule))
		} else {
			all = append(all, field.InternalError(field.NewPath("spec"), e))
		}
	}
	return all
}

// warn says what is allowed and yet seldom meant.
func warn(spec *v1alpha1.LLMAutoScalerSpec) admission.Warnings {
	var w admission.Warnings
	if n := spec.MinReplicas; n != nil && *n == 0 && (spec.Scaler.Realtime != nil || spec.Scaler.Proportional != nil || spec.Scaler.Capacity != nil) && !wakes(spec.Scaler.Cron) {
		w = append(w, "spec.minReplicas: 0: metrics may take the last replica away and cannot bring one back, as there is no pod to ask; a cron policy can")
	}
	if r := spec.Scaler.Realtime; r != nil {
		for i, m := range r.Metrics {
			low, err := m.Threshold.Low.Float()
			if err == nil && low == 0 && m.Role != "UpOnly" {
				w = append(w, fmt.Sprintf("spec.scaler.realtime.metrics[%d].threshold.low: 0: nothing is below 0, so this metric blocks every scale-down; role UpOnly lets it ask for more alone", i))
			}
		}
	}
	if c := spec.Scaler.Cron; c != nil && c.Mode == "Match" && spec.IntervalSeconds != nil && *spec.IntervalSeconds > int32(time.Minute/time.Second) {
		w = append(w, fmt.Sprintf("spec.scaler.cron.mode: Match: with an interval of %d s minutes in which a policy fires can be missed; HoldLast misses none", *spec.IntervalSeconds))
	}
	for _, e := range spec.Document().Warnings("spec") {
		w = append(w, e.Error())
	}
	if s := spec.Scrape; s != nil && s.TLS != nil && s.TLS.InsecureSkipVerify {
		w = append(w, "spec.scrape.tls.insecureSkipVerify: true: who can redirect traffic can answer in place of a pod")
	}
	return w
}

// wakes reports whether there is a time at which cron asks for replicas.
func wakes(c *policy.CronScaler) bool {
	return c != nil && (c.Outside > 0 ||
		slices.ContainsFunc(c.Policies, func(p policy.CronPolicy) bool { return p.TargetReplicas > 0 }) ||
		slices.ContainsFunc(c.Windows, func(w policy.CronWindow) bool { return w.TargetReplicas > 0 }))
}
