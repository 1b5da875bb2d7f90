package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/scaling"
)

const (
	maxSteps    = 64
	maxReadings = 16 // as the definition allows
	maxError    = 300
	maxMessage  = 1024
)

// report writes the status if it says something new, or if numbers in it are older than they may be. What is new of a
// change of replicas or of the spec is said at once, the rest as tell lets it pass.
func (r *runner) report(ctx context.Context, las *v1alpha1.LLMAutoScaler, o *k8s.Outcome, t *trouble) error {
	status := r.status.DeepCopy()
	status.LastScaleTime = r.scaled
	fill(status, las.Generation, o, t)
	r.scaled = status.LastScaleTime.DeepCopy()
	r.watchers.fill(status)
	c := &r.controller.config
	if equality.Semantic.DeepEqual(status, r.status) {
		return nil
	}
	if equality.Semantic.DeepEqual(essence(status), essence(r.status)) && !r.written.IsZero() && o.At.Sub(r.written) < c.StatusRefresh {
		return nil
	}
	if !r.controller.tell(r, o.At, r.unread || r.written.IsZero() || urgent(status, r.status, r.counted)) {
		return nil // the next round finds it again
	}
	after := &stored.LLMAutoScaler{LLMAutoScaler: *las.DeepCopy()}
	after.Status = *status
	// Of a merge patch of the status, the API server drops the metadata, with the UID: only a test op is a condition.
	data, err := json.Marshal([]map[string]any{
		{"op": "test", "path": uidPath, "value": las.UID}, {"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return err
	}
	if err := c.Client.Status().Patch(ctx, after, client.RawPatch(types.JSONPatchType, data)); err != nil {
		if gone(err) {
			return nil
		}
		return fmt.Errorf("write status: %w", err)
	}
	r.unread = false
	c.Numbers.statusWritten()
	r.status, r.written = status, o.At
	if status.CurrentReplicas != nil {
		r.counted = status.CurrentReplicas
	}
	return nil
}

const uidPath = "/metadata/uid"

// gone reports whether an error says that the object is no longer there, or another one under its name.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || strings.Contains(err.Error(), uidPath)
}

// How often statuses may be written for reasons that come and go, as of a load at a threshold or of pods that answer now
// and then: one of an object each statusPause, and of all objects one each statusEach, in which namespaces have equal parts.
const (
	statusPause = 30 * time.Second
	statusBurst = 5 // that may be written before, of an object
	statusEach  = 200 * time.Millisecond
	allBurst    = 40 // and of all objects: of each namespace its part, and two at least
)

// A tenant is a namespace with objects.
type tenant struct {
	objects int
	pace    pace
}

// tell reports whether a status may be written, and counts it if so: one that is urgent may be in any case.
func (c *Controller) tell(r *runner, now time.Time, urgent bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tenants[r.namespace]
	if t == nil {
		return urgent // it was deleted meanwhile
	}
	pause, burst := statusEach*time.Duration(len(c.tenants)), max(2, allBurst/len(c.tenants))
	if !urgent && (!r.pace.may(now, statusPause, statusBurst) || !t.pace.may(now, pause, burst)) {
		return false
	}
	r.pace.count(now, statusPause, statusBurst)
	t.pace.count(now, pause, burst)
	return true
}

// A pace lets a burst pass at once, and one more each pause.
type pace struct{ full time.Time }

func (p *pace) may(now time.Time, pause time.Duration, burst int) bool {
	over := p.full.Sub(now)
	return over <= time.Duration(burst-1)*pause || over > time.Duration(burst)*pause // or the clock was set back
}

func (p *pace) count(now time.Time, pause time.Duration, burst int) {
	if over := p.full.Sub(now); over < 0 || over > time.Duration(burst)*pause {
		p.full = now
	}
	if next := p.full.Add(pause); next.Sub(now) <= time.Duration(burst)*pause {
		p.full = next
	}
}

// urgent reports whether a status speaks of another spec than one before or of other replicas than were counted last, or is the
// first to say what a dry run would have done. A count that cannot be read comes and goes.
func urgent(s, before *v1alpha1.LLMAutoScalerStatus, counted *int32) bool {
	return s.ObservedGeneration != before.ObservedGeneration || !s.LastScaleTime.Equal(before.LastScaleTime) ||
		s.CurrentReplicas != nil && !equality.Semantic.DeepEqual(s.CurrentReplicas, counted) || would(s) && !would(before)
}

// would reports whether a status says that a dry run would have changed the replicas.
func would(s *v1alpha1.LLMAutoScalerStatus) bool {
	d := s.LastDecision
	return d != nil && d.DryRun && (d.Verdict == scaling.Up.String() || d.Verdict == scaling.Down.String())
}

// fill makes the status that an outcome leaves.
func fill(s *v1alpha1.LLMAutoScalerStatus, generation int64, o *k8s.Outcome, t *trouble) {
	s.ObservedGeneration = generation
	if t != nil {
		refuse(s, generation, o, t)
		return
	}
	k8s.SetConditions(&s.Conditions, o, generation)
	s.CurrentReplicas, s.DesiredReplicas, s.CooldownUntil = nil, nil, nil
	if o.ScaleErr == nil && o.Scale.ResourceVersion != "" {
		current := o.Scale.Replicas
		if o.Write == k8s.Written {
			current = o.Decision.Replicas
		}
		s.CurrentReplicas = &current
	}
	if n, ok := desired(o); ok {
		s.DesiredReplicas = &n
	}
	if until, ok := o.CooldownUntil(); ok {
		s.CooldownUntil = &metav1.Time{Time: until}
	}
	if o.Anew {
		s.LastScaleTime = nil // it was another target
	}
	if acted(o) {
		at := metav1.NewTime(o.Changed)
		s.LastScaleTime = &at
	}
	if o.Decided {
		s.LastDecision = decision(o)
	}
	if o.Observed.Fleets != nil {
		s.Metrics = readings(o)
	}
}

// readiness returns the condition Ready of a round.
func readiness(o *k8s.Outcome, t *trouble) metav1.Condition {
	if t != nil {
		return metav1.Condition{Type: k8s.ConditionReady, Status: metav1.ConditionFalse, Reason: t.reason}
	}
	return k8s.Conditions(o, 0)[0]
}

// refuse sets the conditions of a round that did not come to its loop.
func refuse(s *v1alpha1.LLMAutoScalerStatus, generation int64, o *k8s.Outcome, t *trouble) {
	s.CurrentReplicas, s.DesiredReplicas, s.CooldownUntil = nil, nil, nil
	message := cut(t.err.Error(), maxMessage)
	unready := map[string]metav1.ConditionStatus{
		k8s.ConditionReady: metav1.ConditionFalse, k8s.ConditionScalingActive: metav1.ConditionFalse,
		k8s.ConditionAbleToScale: metav1.ConditionUnknown, k8s.ConditionMetricsAvailable: metav1.ConditionUnknown,
		k8s.ConditionScalingLimited: metav1.ConditionUnknown,
	}
	if meta.FindStatusCondition(s.Conditions, k8s.ConditionContended) != nil { // it is absent if that never happened
		unready[k8s.ConditionContended] = metav1.ConditionUnknown
	}
	for kind, status := range unready {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: t.reason, Message: message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(o.At),
		})
	}
	slices.SortFunc(s.Conditions, func(a, b metav1.Condition) int { return order(a.Type) - order(b.Type) })
}

func order(condition string) int {
	return slices.Index([]string{
		k8s.ConditionReady, k8s.ConditionAbleToScale, k8s.ConditionScalingActive, k8s.ConditionScalingLimited, k8s.ConditionMetricsAvailable,
		k8s.ConditionContended,
	}, condition)
}

func decision(o *k8s.Outcome) *v1alpha1.Decision {
	d := &o.Decision
	at := metav1.NewTime(o.At)
	said := &v1alpha1.Decision{
		Verdict: d.Verdict.String(), Code: d.Code().String(), Reason: o.Lasting(d.Reason()), Explain: o.Lasting(d.Explain()), Time: &at, DryRun: o.DryRun,
	}
	for i, step := range d.Steps() {
		if i == maxSteps {
			break
		}
		said.Steps = append(said.Steps, v1alpha1.DecisionStep{
			Code: step.Code.String(), Subject: step.Subject, From: step.From, To: step.To, Because: o.Lasting(step.Because()), Considered: step.Branch != 0,
		})
	}
	return said
}

func readings(o *k8s.Outcome) []v1alpha1.MetricReading {
	var all []v1alpha1.MetricReading
	for _, r := range o.Observed.Readings[:min(len(o.Observed.Readings), maxReadings)] {
		one := v1alpha1.MetricReading{Name: r.Metric, Pods: r.Values, NotReady: r.NotReady, Failed: r.Failed, Error: failure(o, r)}
		if r.Known() {
			one.Lower, one.Upper = number(r.Lower), number(r.Upper)
		}
		all = append(all, one)
	}
	return all
}

// number writes a number with six digits; what has no limit is left out.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'g', 6, 64)
	if s == "+Inf" {
		return ""
	}
	return s
}

// failure is one pod's reason for having no value of a metric.
func failure(o *k8s.Outcome, r scaling.Reading) string {
	i := slices.IndexFunc(o.Observed.Readings, func(other scaling.Reading) bool { return other.Metric == r.Metric })
	for _, pod := range o.View().Pods {
		if i < len(pod.Values) && pod.Values[i].Err != nil {
			return cut(pod.Values[i].Err.Error(), maxError)
		}
	}
	return ""
}

// essence is a status without its numbers, times and texts: where it changes, there is something to tell.
func essence(s *v1alpha1.LLMAutoScalerStatus) *v1alpha1.LLMAutoScalerStatus {
	s = s.DeepCopy()
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.LastTransitionTime = metav1.Time{}
		if c.Reason != ReasonInvalidSpec && c.Reason != ReasonTargetTaken && c.Reason != ReasonCredentials {
			c.Message = ""
		}
	}
	if d := s.LastDecision; d != nil { // how it came about is in the metrics of each round
		d.Reason, d.Explain, d.Time, d.Steps = "", "", nil, nil
	}
	for i := range s.Shadows { // what they wish is in the metrics of each round
		s.Shadows[i] = v1alpha1.ShadowStatus{Name: s.Shadows[i].Name, LeftOut: s.Shadows[i].LeftOut}
	}
	for i := range s.Metrics {
		m := &s.Metrics[i]
		m.Lower, m.Upper, m.Error = truth(m.Lower), truth(m.Upper), truth(m.Error)
	}
	return s
}

// truth says only whether there is a text.
func truth(s string) string {
	if s == "" {
		return ""
	}
	return "-"
}
