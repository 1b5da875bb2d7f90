package k8s

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/inferscale/inferscale/scaling"
)

// The condition types.
const (
	// ConditionReady says that rounds end in a decision that can be carried out: AbleToScale and ScalingActive are True. It is
	// also True if no decision is possible because the target has no replicas, which its bounds allow.
	ConditionReady = "Ready"
	// ConditionAbleToScale says that the target and the state can be read and written.
	ConditionAbleToScale = "AbleToScale"
	// ConditionScalingActive says that the policy can decide. Its reason is the code of the decision.
	ConditionScalingActive = "ScalingActive"
	// ConditionScalingLimited says that the deciding step of the decision was a bound or a limit. Its reason is the code of
	// that step.
	ConditionScalingLimited = "ScalingLimited"
	// ConditionMetricsAvailable says that every metric has a value.
	ConditionMetricsAvailable = "MetricsAvailable"
	// ConditionContended says that another writer reverts the loop's writes, who that is, and until when the loop leaves the
	// target alone. It is absent if that has never happened.
	ConditionContended = "Contended"
)

// Conditions returns the conditions of an outcome, in the order of the constants. The result depends only on the arguments.
// Every transition time is the time of the round; use it only for a condition whose status has changed.
func Conditions(o *Outcome, generation int64) []metav1.Condition {
	able, active := AbleToScale(o), ScalingActive(o)
	conditions := []metav1.Condition{
		ready(o, able, active), able, active, ScalingLimited(&o.Decision), MetricsAvailable(o),
	}
	if contended := (*ContendedError)(nil); errors.As(o.WriteErr, &contended) {
		conditions = append(conditions, metav1.Condition{
			Type: ConditionContended, Status: metav1.ConditionTrue, Reason: ReasonContended, Message: contended.Error(),
		})
	}
	for i := range conditions {
		conditions[i].ObservedGeneration = generation
		conditions[i].LastTransitionTime = metav1.NewTime(o.At)
		conditions[i].Message = shorten(conditions[i].Message)
	}
	return conditions
}

// SetConditions updates the conditions of a status with those of an outcome, and reports whether any changed. A condition
// whose status stays keeps its transition time. Messages contain numbers and therefore change in most rounds: a controller
// that wants to write a status less often should compare status and reason.
func SetConditions(conditions *[]metav1.Condition, o *Outcome, generation int64) bool {
	now := Conditions(o, generation)
	old := meta.FindStatusCondition(*conditions, ConditionContended)
	if old != nil && old.Status != metav1.ConditionFalse && !meta.IsStatusConditionTrue(now, ConditionContended) { // Unknown, too
		now = append(now, metav1.Condition{
			Type: ConditionContended, Status: metav1.ConditionFalse, Reason: ReasonNotContended, Message: "what is written stays, as far as was seen",
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(o.At),
		})
	}
	changed := false
	for _, c := range now {
		changed = meta.SetStatusCondition(conditions, c) || changed
	}
	return changed
}

func ready(o *Outcome, able, active metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonReady, Message: "deciding and able to act"}
	switch {
	case able.Status != metav1.ConditionTrue:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, able.Reason, able.Message
	case active.Status != metav1.ConditionTrue && !atZero(o):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, active.Reason, active.Message
	case o.Paused:
		c.Reason, c.Message = ReasonPaused, "paused: decides, and writes no replicas"
	case o.Late > 0:
		c.Reason, c.Message = ReasonLate, "the round began "+o.Late.Round(time.Millisecond).String()+" after it was due: the slow rounds of this namespace take its share"
	case o.ConfigErr != nil:
		c.Reason, c.Message = ReasonConfigRefused, "the last good configuration is in force: "+o.ConfigErr.Error()
	case active.Status != metav1.ConditionTrue:
		c.Reason, c.Message = active.Reason, active.Message
	}
	return c
}

// atZero reports whether no decision is possible because the target has no replicas, which its bounds allow.
func atZero(o *Outcome) bool {
	return o.Decided && o.Decision.Verdict == scaling.Unknown && o.StateErr == nil && o.Scale.Replicas == 0 && o.Bounds.Min == 0 && o.Bounds.Max > 0
}

// CooldownUntil returns the end of the cooldown that the decision waits for, and whether it waits for one.
func (o *Outcome) CooldownUntil() (time.Time, bool) {
	for _, s := range o.Decision.Steps() {
		if s.Branch == 0 && s.Code.String() == "Cooldown" {
			left := time.Duration((s.Numbers[1] - s.Numbers[0]) * float64(time.Second)).Round(time.Millisecond)
			at := o.At.Truncate(time.Millisecond).Add(left) // elapsed is in whole milliseconds, too
			if whole := at.Truncate(time.Second); !whole.Equal(at) {
				at = whole.Add(time.Second)
			}
			return at, left > 0
		}
	}
	return time.Time{}, false
}

// Lasting returns a text of the decision in which the end of the cooldown replaces its elapsed time. The text then stays the
// same from round to round, so that a status need not be written in each.
func (o *Outcome) Lasting(text string) string {
	until, ok := o.CooldownUntil()
	if !ok {
		return text
	}
	before, after, found := strings.Cut(text, "elapsed=")
	_, cooldown, less := strings.Cut(after, " < ")
	if !found || !less {
		return text
	}
	return before + "until=" + until.UTC().Format(time.RFC3339) + " " + o.Lasting(cooldown)
}

// AbleToScale says whether the target and the state can be read and written: True with the count, or False with the error.
func AbleToScale(o *Outcome) metav1.Condition {
	c := metav1.Condition{Type: ConditionAbleToScale, Status: metav1.ConditionFalse}
	switch {
	case o.StateErr != nil:
		c.Reason, c.Message = stateReason(o.StateErr), o.StateErr.Error()
	case o.ScaleErr != nil:
		c.Reason, c.Message = targetReason(o.ScaleErr, ReasonScaleNotRead), o.ScaleErr.Error()
	case o.WriteErr != nil:
		c.Reason, c.Message = writeReason(o.WriteErr), o.WriteErr.Error()
	case o.Write == Written || o.Write == Would:
		c.Status, c.Reason = metav1.ConditionTrue, actReason(o)
		c.Message = fmt.Sprintf("%d -> %d", o.Decision.From, o.Decision.Replicas)
		if o.Paused {
			c.Message = "paused: " + c.Message
		}
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonScaleRead, fmt.Sprintf("spec.replicas is %d", o.Scale.Replicas)
	}
	return c
}

// ScalingActive says whether the policy can decide: True or False with the code and the numbers of the decision, or Unknown
// if the round ended before a decision.
func ScalingActive(o *Outcome) metav1.Condition {
	c := metav1.Condition{Type: ConditionScalingActive}
	switch {
	case o.ObserveErr != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, targetReason(o.ObserveErr, ReasonNotObserved), o.ObserveErr.Error()
	case o.Disabled:
		c.Status, c.Reason = metav1.ConditionFalse, ReasonScalingDisabled
		c.Message = "somebody has scaled to 0, below the minimum: left alone until somebody scales up"
	case !o.Decided:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonNotDecided, "the round ended before a decision"
	case atZero(o):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonAtZero, "no replicas, as minReplicas allows: there is no pod to ask"
	case o.Decision.Verdict == scaling.Unknown:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, codeReason(&o.Decision), o.Decision.Reason()
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, codeReason(&o.Decision), o.Lasting(o.Decision.Reason())
	}
	return c
}

// ScalingLimited says whether the deciding step of the decision was a bound or a limit, with its numbers.
func ScalingLimited(d *scaling.Decision) metav1.Condition {
	c := metav1.Condition{Type: ConditionScalingLimited, Status: metav1.ConditionFalse, Reason: ReasonNotLimited, Message: "no bound or limit had the last word"}
	if limits(d.Code()) {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, codeReason(d), d.Reason()
	}
	return c
}

// limits reports whether a code of this module's algorithms is that of a bound, a step limit or a rate limit.
func limits(code scaling.Code) bool {
	switch code.String() {
	case "BelowMin", "AboveMax", "UpLimited", "DownLimited", "UpRate", "DownRate", "UpStep", "DownStep", "AtMax", "AtMin":
		return true
	}
	return false
}

// MetricsAvailable says whether every metric has a value. Its message has the interval of each reading, and how many pods
// gave a value or did not.
func MetricsAvailable(o *Outcome) metav1.Condition {
	c := metav1.Condition{Type: ConditionMetricsAvailable}
	if o.ScaleErr != nil || o.ObserveErr != nil || o.At.IsZero() || o.Observed.Fleets == nil {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonNotObserved, "the round ended before the pods were asked"
		return c
	}
	if atZero(o) {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonAtZero, "no replicas: there is no pod to ask"
		return c
	}
	if len(o.Observed.Readings)+len(o.Observed.Histograms) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonNoMetrics, "no metrics are used"
		return c
	}
	c.Status, c.Reason = metav1.ConditionTrue, ReasonMetricsKnown
	parts := make([]string, 0, len(o.Observed.Readings)+1)
	for _, r := range o.Observed.Readings {
		switch {
		case !r.Known():
			c.Status, c.Reason = metav1.ConditionFalse, ReasonMetricsUnavailable
		case c.Status == metav1.ConditionTrue && r.NotReady+r.Failed+r.Reused > 0:
			c.Reason = ReasonMetricsPartial
		}
		parts = append(parts, describe(r))
	}
	for i := range o.Observed.Histograms {
		h := &o.Observed.Histograms[i]
		switch {
		case !h.Known():
			c.Status, c.Reason = metav1.ConditionFalse, ReasonMetricsUnavailable
			parts = append(parts, fmt.Sprintf("%s has no counts (%d failed)", h.Metric, h.Failed))
			continue
		case c.Status == metav1.ConditionTrue && h.Failed > 0:
			c.Reason = ReasonMetricsPartial
		}
		parts = append(parts, fmt.Sprintf("%s is counted (%d failed)", h.Metric, h.Failed))
	}
	if o.Observed.Err != nil {
		parts = append(parts, o.Observed.Err.Error())
	}
	c.Message = strings.Join(parts, "; ")
	return c
}

func describe(r scaling.Reading) string {
	of := fmt.Sprintf("%d values, %d not ready, %d failed, %d reused", r.Values, r.NotReady, r.Failed, r.Reused)
	if !r.Known() {
		return fmt.Sprintf("%s has no value (%s)", r.Metric, of)
	}
	return fmt.Sprintf("%s is in [%.6g, %.6g] (%s)", r.Metric, r.Lower, r.Upper, of)
}
