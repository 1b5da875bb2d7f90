package controller

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/loop/shadow/replay"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
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

// watchers are the shadows of one generation of an object. Nothing of them is waited for: what is seen is shown to them
// once the round's decision is written, pods that are asked for their sake alone are asked beside the rounds, and what is wrong with them is told, and ends
// nothing else.
type watchers struct {
	controller *Controller
	namespace  string
	spec       *policy.Spec
	raw        []policy.RawShadow
	plan       build.ShadowPlan
	ctx        context.Context //nolint:containedctx // of what asks pods, which outlives a round
	cancel     context.CancelFunc
	told       map[string]time.Time // when an event was made, by shadow and reason

	mu       sync.Mutex // of what follows, as pods are asked beside rounds
	shadows  *shadow.Shadows
	target   types.UID
	observer *k8s.PodObserver
	asking   bool
	closed   bool
	trouble  string // why nothing could be shown to them

	replays *replay.Replays // what they would have attained; nil where nobody says by what to judge
}

// newWatchers returns the shadows of a spec, or nil if it has none.
func newWatchers(c *Controller, las *v1alpha1.LLMAutoScaler) *watchers {
	if len(las.Spec.Shadow) == 0 {
		return nil
	}
	w := &watchers{controller: c, namespace: las.Namespace, spec: las.Spec.Document(), raw: las.Spec.Shadows(), told: make(map[string]time.Time)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.begin()
	return w
}

// scrapes reports whether pods are asked for the shadows alone.
func (w *watchers) scrapes() bool { return w != nil && len(w.plan.Scrape.Metrics) > 0 }

// begin makes the shadows anew.
func (w *watchers) begin() {
	defer func() {
		if p := recover(); p != nil { // whatever is in a document, the object's own rounds go on
			w.shadows, w.plan, w.trouble = nil, build.ShadowPlan{}, fmt.Sprintf("panic: %v", p)
			w.controller.config.Logger.Error("shadows not made", "namespace", w.namespace, "panic", p)
		}
	}()
	w.plan, _ = build.Shadows(w.spec, w.raw, func() capacity.Tuner { return w.controller.shadowTunings.Tuner(w.namespace) }) // each says what is wrong with it
	c := shadow.Config{Go: w.controller.config.Beside, ColdStart: w.plan.ColdStart}
	for i := range w.plan.All {
		if p := &w.plan.All[i]; p.Err == nil {
			c.Policies = append(c.Policies, p.Policy)
		}
	}
	w.shadows, w.replays = nil, nil
	if len(c.Policies) == 0 {
		return
	}
	var err error
	if w.plan.Capacity != nil {
		if w.replays, err = replay.New(replay.Config{Capacity: *w.plan.Capacity, Turn: w.controller.replays, Failed: w.notReplayed}); err != nil {
			w.replays = nil // what is wrong with it has been told
		}
	}
	if w.shadows, err = shadow.New(c); err != nil {
		w.trouble = err.Error()
	}
}

// resume takes over what is known of the same shadows: what a status said, or the generation before.
func (w *watchers) resume(wishes []shadow.Wish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shadows != nil {
		w.shadows.Resume(wishes)
	}
}

// inherit takes over the shadows of the generation before that are as they were.
func (w *watchers) inherit(old *watchers) {
	if w == nil || old == nil {
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
		w.resume(slices.DeleteFunc(old.wishes(), func(wish shadow.Wish) bool { return !same(wish) }))
		w.told = old.told
	}
}

func (w *watchers) wishes() []shadow.Wish {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shadows == nil {
		return nil
	}
	return w.shadows.Wishes()
}

// close ends what asks pods for them.
func (w *watchers) close() {
	if w == nil {
		return
	}
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.observer != nil && !w.asking {
		w.observer.Close()
		w.observer = nil
	}
}

// watch shows the shadows what a round saw.
func (r *runner) watch(ctx context.Context, las *v1alpha1.LLMAutoScaler, o *k8s.Outcome) {
	w, key := r.watchers, client.ObjectKeyFromObject(las)
	if w == nil {
		r.controller.config.Numbers.shadows(key, nil)
		return
	}
	if o.Decided && !o.Disabled && o.Scale.ResourceVersion != "" {
		ask, replay := w.show(o, func() error {
			if r.plan.Scrapes() { // it was done for the round
				return nil
			}
			return r.authorizeFor(ctx, las, true)
		}, func() (*k8s.PodObserver, error) {
			return r.observeWith(w.plan.Scrape, w.plan.Port, r.controller.shadowBudget, nil)
		})
		if ask {
			scale := o.Scale
			r.controller.config.Beside(func() { w.ask(scale) })
		}
		if replay != nil {
			r.controller.config.Beside(replay)
		}
	}
	all := w.states()
	r.controller.config.Numbers.shadows(key, all)
	w.tell(r, las, all, o)
}

// show shows what the round saw, or reports that pods are to be asked; replay is what else is to be done beside the rounds.
// Whoever asks them has authorize bring the credentials up to date first: they may have been replaced, or taken back.
func (w *watchers) show(o *k8s.Outcome, authorize func() error, observer func() (*k8s.PodObserver, error)) (ask bool, replay func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.target != o.Scale.UID && w.target != "" {
		w.begin()
	}
	w.target = o.Scale.UID
	asking := w.asking
	switch {
	case w.shadows == nil:
	case len(w.plan.Scrape.Metrics) == 0:
		w.trouble = ""
		obs := seenBy(o.Scale.Replicas, &o.Observed, o.Fleet)
		w.shadows.Look(o.At, obs)
		replay = w.replay(o.At, obs)
	case w.asking:
		w.trouble = "the pods that were asked in the round before have not answered yet"
	default:
		err := authorize()
		if err == nil && w.observer == nil {
			w.observer, err = observer()
		}
		if err != nil {
			w.trouble = "pods cannot be asked: " + err.Error()
			return false, nil
		}
		if !w.controller.asks.begin(w.namespace) {
			w.trouble = "the pods of other objects are being asked for their shadows"
			return false, nil
		}
		w.asking = true
	}
	return w.asking && !asking, replay
}

// How many sweeps of pods there may be at once for shadows, beside those of rounds: of all objects, and of a namespace's.
const mostAsks, mostAsksOf = 32, 8

// asks are the sweeps for shadows that are under way. They have a lock of their own, as those of watchers are held meanwhile.
type asks struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by namespace
}

// begin reports whether there may be one more.
func (a *asks) begin(namespace string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all >= mostAsks || a.of[namespace] >= mostAsksOf {
		return false
	}
	if a.of == nil {
		a.of = make(map[string]int)
	}
	a.all++
	a.of[namespace]++
	return true
}

func (a *asks) end(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all--
	if a.of[namespace]--; a.of[namespace] == 0 {
		delete(a.of, namespace)
	}
}

// ask asks the pods, and shows what they say.
func (w *watchers) ask(scale k8s.Scale) {
	if replay := w.asked(scale); replay != nil {
		replay()
	}
}

func (w *watchers) asked(scale k8s.Scale) (replay func()) {
	ctx, cancel := context.WithTimeout(w.ctx, longestRound)
	defer cancel()
	defer w.controller.asks.end(w.namespace)
	seen, err := w.observer.Observe(ctx, []k8s.Scale{scale})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asking = false; w.closed {
		w.observer.Close()
		w.observer = nil
		return nil
	}
	if err != nil {
		w.trouble = "pods were not observed: " + err.Error()
		return nil
	}
	if w.trouble = ""; seen.Err != nil {
		w.trouble = "metrics without a value: " + seen.Err.Error()
	}
	if w.target != scale.UID || w.shadows == nil {
		return nil
	}
	now, obs := w.controller.config.Now(), seenBy(scale.Replicas, &seen, 0)
	w.shadows.Look(now, obs)
	return w.replay(now, obs)
}

// replay returns what is to be done beside the rounds, if a replay is due. The lock is held.
func (w *watchers) replay(now time.Time, obs scaling.Observation) func() {
	if w.replays == nil {
		return nil
	}
	return w.replays.See(now, obs, w.shadows)
}

func (w *watchers) notReplayed(why string) {
	w.controller.config.Logger.Error("shadows not replayed", "namespace", w.namespace, "panic", why)
}

func seenBy(replicas int32, o *k8s.Observed, fleet int) scaling.Observation {
	obs := scaling.Observation{SpecReplicas: replicas, Readings: o.Readings, Histograms: o.Histograms}
	if fleet < len(o.Fleets) {
		obs.ReadyReplicas = o.Fleets[fleet].Ready
	}
	return obs
}

// A shadowState is what is told of one.
type shadowState struct {
	shadow.Wish

	out string // why it is left out, if it is
	why string

	attained, actual *capacity.Attainment // nil where they are not known
}

// states returns what there is to tell, in the order of the spec.
func (w *watchers) states() []shadowState {
	w.mu.Lock()
	defer w.mu.Unlock()
	var wishes []shadow.Wish
	if w.shadows != nil {
		wishes = w.shadows.Wishes()
	}
	var found *replay.Found
	if w.replays != nil {
		found = w.replays.Found()
	}
	all := make([]shadowState, 0, len(w.plan.All))
	for i := range w.plan.All {
		p := &w.plan.All[i]
		one := shadowState{Wish: shadow.Wish{Name: p.Name}, why: w.trouble}
		if p.Err != nil {
			one.out, one.why = refused, p.Err.Error()
		}
		for _, wish := range wishes {
			if wish.Name == p.Name {
				one.Wish = wish
				if wish.Out != shadow.None {
					one.out, one.why = wish.Out.String(), wish.Why
				}
			}
		}
		if found != nil {
			if a, ok := found.Shadows[p.Name]; ok {
				one.attained, one.actual = &a, &found.Actual
			}
		}
		all = append(all, one)
	}
	return all
}

// tell makes an event of a wish that parts from the real count, and of a shadow that is left out: the first time, and
// once an hour as long as it is so.
func (w *watchers) tell(r *runner, las *v1alpha1.LLMAutoScaler, all []shadowState, o *k8s.Outcome) {
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
	if err := w.plan.Attainment; err != nil {
		say("", corev1.EventTypeWarning, ReasonNotReplayed, "what shadows would have attained is not known: "+err.Error())
	}
	for i := range all {
		one := &all[i]
		switch {
		case one.out != "":
			say(one.Name, corev1.EventTypeWarning, ReasonShadowLeftOut, fmt.Sprintf("shadow %s is left out (%s): %s", one.Name, one.out, one.why))
		case one.At.IsZero() || !o.Decided || one.Replicas == o.Scale.Replicas || o.Write == k8s.Written && one.Replicas == o.Decision.Replicas:
		default:
			say(one.Name, corev1.EventTypeNormal, ReasonShadowApart, fmt.Sprintf("shadow %s would run %d replicas, %d are asked for: %s", one.Name, one.Replicas, o.Scale.Replicas, one.Reason))
		}
	}
}

// fill writes what there is to tell into a status.
func (w *watchers) fill(s *v1alpha1.LLMAutoScalerStatus) {
	if s.Shadows = nil; w == nil {
		return
	}
	for _, one := range w.states() {
		if one.Name == "" || slices.ContainsFunc(s.Shadows, func(other v1alpha1.ShadowStatus) bool { return other.Name == cut(one.Name, 63) }) {
			continue // an API server would refuse the whole status
		}
		s.Shadows = append(s.Shadows, v1alpha1.ShadowStatus{
			Name: cut(one.Name, 63), Replicas: one.Replicas, ReadyReplicas: one.Ready, Verdict: verdict(&one), Reason: cut(one.Reason, maxMessage),
			LeftOut: one.out, Message: cut(one.why, maxMessage),
			Since: stamp(one.Since), RemembersSince: stamp(one.Remembers), ApartSince: stamp(one.Apart), LastScaleTime: stamp(one.Changed), Time: stamp(one.At),
			ReplicaSeconds: int64(min(one.ReplicaSeconds, 1<<53-1)), RealReplicaSeconds: int64(min(one.RealReplicaSeconds, 1<<53-1)),
		})
		if last := &s.Shadows[len(s.Shadows)-1]; one.attained != nil {
			last.Attained, last.RealAttained, last.MeasuredAttained = share(one.attained.Attained), share(one.actual.Attained), share(one.actual.Measured)
		}
	}
}

// verdict is empty until it has been shown something.
func verdict(one *shadowState) string {
	if one.At.IsZero() || one.out == refused {
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
