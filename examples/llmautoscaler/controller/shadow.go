package controller

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/k8s/watch"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/loop/shadow/replay"
	"github.com/inferscale/inferscale/policy"
)

// Reasons of events about shadows.
const (
	ReasonShadowApart   = "ShadowApart"   // a shadow asks for another count than the real one
	ReasonShadowLeftOut = "ShadowLeftOut" // a shadow is wrong, has failed, or has not decided in time
	ReasonNotReplayed   = "NotReplayed"   // spec.attainment is wrong, so that nothing is said of what they would have attained
)

// refused is why a shadow is left out that is wrong, beside what shadow.Out has.
const refused = "Refused"

// apartAgain is how long after an event about a shadow's wish there may be the next.
const apartAgain = time.Hour

// watchers are the shadows of one generation of an object. What is seen is shown to them once the round's decision is written, and
// what is wrong with them is told, and ends nothing else.
type watchers struct {
	*watch.Shadows

	spec       *policy.Spec // nil without shadows
	raw        []policy.RawShadow
	attainment error                // what is wrong with the spec's
	told       map[string]time.Time // when an event was made, by shadow and reason
	target     types.UID
}

// begin makes the shadows anew.
func (r *runner) begin() {
	c, w := r.controller, &r.watchers
	w.Close()
	defer func() {
		if p := recover(); p != nil { // whatever is in a document, the object's own rounds go on
			w.Shadows = nil
			c.config.Logger.Error("shadows not made", "namespace", r.namespace, "panic", p)
		}
	}()
	plan, _ := build.Shadows(w.spec, w.raw, func() capacity.Tuner { return c.shadowTunings.Tuner(r.namespace) }) // each says what is wrong with it
	w.attainment = plan.Attainment
	w.Shadows = watch.New(&watch.Config{
		Plan: plan, Observe: func() (watch.Observer, error) { return r.observeWith(plan.Scrape, plan.Port, c.shadowBudget, nil) }, Within: longestRound,
		Asks: &c.asks, Namespace: r.namespace, Beside: c.config.Beside,
		Replay: replay.Config{Turn: c.replays, Failed: func(why string) {
			c.config.Logger.Error("shadows not replayed", "namespace", r.namespace, "panic", why)
		}},
	})
}

// inherit takes over the shadows of the generation before that are as they were.
func (w *watchers) inherit(old *watchers) {
	if w.spec == nil || old.spec == nil {
		return
	}
	same := func(wish shadow.Wish) bool {
		at := func(all []policy.RawShadow) int {
			return slices.IndexFunc(all, func(r policy.RawShadow) bool { return r.Name == wish.Name })
		}
		i, k := at(w.raw), at(old.raw)
		return i >= 0 && k >= 0 && bytes.Equal(w.raw[i].Scaler, old.raw[k].Scaler)
	}
	if w.spec.ScaleTargetRef == old.spec.ScaleTargetRef {
		w.Resume(slices.DeleteFunc(old.Wishes(), func(wish shadow.Wish) bool { return !same(wish) }))
		w.told = old.told
		maps.DeleteFunc(w.told, func(topic string, _ time.Time) bool { // of a name that is gone: each edit may bring others
			_, name, _ := strings.Cut(topic, "/")
			return name != "" && !slices.ContainsFunc(w.raw, func(r policy.RawShadow) bool { return r.Name == name })
		})
	}
}

// watch shows the shadows what a round saw. Those of another target begin anew.
func (r *runner) watch(ctx context.Context, las *v1alpha1.LLMAutoScaler, o *k8s.Outcome) {
	w := &r.watchers
	if w.spec != nil && o.Decided && !o.Disabled && o.Scale.ResourceVersion != "" {
		if w.target != o.Scale.UID && w.target != "" {
			r.begin()
		}
		w.target = o.Scale.UID
		w.Show(o.At, o.Scale, &o.Observed, func() error {
			if r.plan.Scrapes() { // it was done for the round
				return nil
			}
			return r.authorizeFor(ctx, las, true)
		})
	}
	all := w.States()
	r.controller.config.Numbers.shadows(client.ObjectKeyFromObject(las), all)
	w.tell(r, las, all, o)
}

// leftOut returns why a shadow is left out, if it is, and what else there is to say of it.
func leftOut(s *watch.State) (out, why string) {
	switch {
	case s.Err != nil:
		return refused, s.Err.Error()
	case s.Out != shadow.None:
		return s.Out.String(), s.Why
	case s.Trouble == "" && s.Lacking != nil:
		return "", "metrics without a value: " + s.Lacking.Error()
	}
	return "", s.Trouble
}

// tell makes an event of a wish that parts from the real count, and of a shadow that is left out: the first time, and
// once an hour as long as it is so.
func (w *watchers) tell(r *runner, las *v1alpha1.LLMAutoScaler, all []watch.State, o *k8s.Outcome) {
	recorder := r.controller.config.Recorder
	if recorder == nil {
		return
	}
	say := func(name, kind, reason, message string) {
		topic := reason + "/" + name
		if at, ok := w.told[topic]; ok && o.At.Sub(at).Abs() < apartAgain {
			return
		}
		w.told[topic] = o.At
		recorder.Event(reference(las), kind, reason, cut(message, maxMessage))
	}
	if err := w.attainment; err != nil {
		say("", corev1.EventTypeWarning, ReasonNotReplayed, "what shadows would have attained is not known: "+err.Error())
	}
	for i := range all {
		one := &all[i]
		switch out, why := leftOut(one); {
		case out != "":
			say(one.Name, corev1.EventTypeWarning, ReasonShadowLeftOut, fmt.Sprintf("shadow %s is left out (%s): %s", one.Name, out, why))
		case one.At.IsZero() || !o.Decided || one.Replicas == o.Scale.Replicas || o.Write == k8s.Written && one.Replicas == o.Decision.Replicas:
		default:
			say(one.Name, corev1.EventTypeNormal, ReasonShadowApart, fmt.Sprintf("shadow %s would run %d replicas, %d are asked for: %s", one.Name, one.Replicas, o.Scale.Replicas, one.Reason))
		}
	}
}

// fill writes what there is to tell into a status.
func (w *watchers) fill(s *v1alpha1.LLMAutoScalerStatus) {
	s.Shadows = nil
	for _, one := range w.States() {
		if one.Name == "" || slices.ContainsFunc(s.Shadows, func(other v1alpha1.ShadowStatus) bool { return other.Name == cut(one.Name, 63) }) {
			continue // an API server would refuse the whole status
		}
		out, why := leftOut(&one)
		s.Shadows = append(s.Shadows, v1alpha1.ShadowStatus{
			Name: cut(one.Name, 63), Replicas: one.Replicas, ReadyReplicas: one.Ready, Verdict: verdict(&one), Reason: cut(one.Reason, maxMessage),
			LeftOut: out, Message: cut(why, maxMessage),
			Since: stamp(one.Since), RemembersSince: stamp(one.Remembers), ApartSince: stamp(one.Apart), LastScaleTime: stamp(one.Changed), Time: stamp(one.At),
			ReplicaSeconds: int64(min(one.ReplicaSeconds, 1<<53-1)), RealReplicaSeconds: int64(min(one.RealReplicaSeconds, 1<<53-1)),
		})
		if last := &s.Shadows[len(s.Shadows)-1]; one.Attained != nil {
			last.Attained, last.RealAttained, last.MeasuredAttained = share(one.Attained.Attained), share(one.Actual.Attained), share(one.Actual.Measured)
		}
	}
}

// verdict is empty until it has been shown something.
func verdict(one *watch.State) string {
	if one.At.IsZero() || one.Err != nil {
		return ""
	}
	return one.Verdict.String()
}

// found returns the wishes that a status speaks of.
func found(s *v1alpha1.LLMAutoScalerStatus) (all []shadow.Wish) {
	for i := range s.Shadows {
		one := &s.Shadows[i]
		all = append(all, shadow.Wish{
			Name: one.Name, Replicas: one.Replicas, Ready: one.ReadyReplicas, At: since(one.Time), Since: since(one.Since), Changed: since(one.LastScaleTime),
			Apart: since(one.ApartSince), ReplicaSeconds: float64(one.ReplicaSeconds), RealReplicaSeconds: float64(one.RealReplicaSeconds),
		})
	}
	return all
}

func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.Truncate(time.Second)}
}

func since(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// share writes a share, with three digits.
func share(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
