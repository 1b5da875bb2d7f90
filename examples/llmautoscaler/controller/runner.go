package controller

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// Reasons of the condition Ready for what happens before a round.
const (
	ReasonInvalidSpec = "InvalidSpec" // the spec breaks rules that the API server did not check
	ReasonTargetTaken = "TargetTaken" // another LLMAutoScaler scales the target
	ReasonCredentials = "CredentialsUnavailable"
)

// A runner runs one generation of an object.
type runner struct {
	controller *Controller
	namespace  string
	uid        types.UID
	generation int64
	target     string // its key, in whatever version, which scaled is about

	plan        build.Plan
	invalid     error // why there is no plan
	credentials *credentials
	loop        *k8s.Loop
	former      *k8s.Loop // that of the generation before, whose counters go on in the next one
	observer    *k8s.PodObserver
	watchers    watchers
	baselines   []byte // of counters and histograms, as the generation before remembered them
	taken       bool   // the state of other algorithms was taken over, or there is none

	due     time.Time
	late    time.Duration                 // how late the round is, if that is more than an interval
	until   time.Time                     // the controller's: when the round that is due counts as not made
	status  *v1alpha1.LLMAutoScalerStatus // as last written, or as found
	scaled  *metav1.Time                  // its lastScaleTime as it should be, also where the status could not be written
	counted *int32                        // the last count that a status had
	unread  bool                          // what is stored as the status could not be read
	written time.Time                     // when it was; zero if it was found
	pace    pace                          // of what it says beside counts
	told    string                        // the trouble that an event was made of last
}

// build makes the plan. A spec that is wrong stays so until it is changed, and the status says so.
func (r *runner) build(las *stored.LLMAutoScaler) {
	if r.invalid = las.SpecErr; r.invalid != nil {
		return
	}
	if r.plan, r.invalid = build.With(las.Spec.Document(), func() capacity.Tuner { return r.controller.tunings.Tuner(r.namespace) }); r.invalid != nil {
		return
	}
	r.taken = las.Generation == r.status.ObservedGeneration && len(r.others(las.Annotations)) == 0 // what the cache has may be old, but not so old
	if len(las.Spec.Shadow) > 0 {
		r.watchers = watchers{spec: las.Spec.Document(), raw: las.Spec.Shadows(), told: make(map[string]time.Time)}
		r.begin()
		if r.status.ObservedGeneration == las.Generation {
			r.watchers.Resume(found(r.status))
		}
	}
}

// round does a round and returns how long to wait for the next.
func (r *runner) round(ctx context.Context, las *v1alpha1.LLMAutoScaler) (time.Duration, error) {
	began := r.controller.config.Now()
	outcome, trouble := unable(las, began), (*trouble)(nil)
	bounded, cancel := context.WithTimeout(ctx, longestRound)
	defer cancel()
	rival, err := r.controller.rival(bounded, las)
	switch {
	case err != nil:
		return 0, err
	case r.invalid != nil:
		trouble = notReady(ReasonInvalidSpec, r.invalid)
	case rival != "":
		trouble = notReady(ReasonTargetTaken, fmt.Errorf("LLMAutoScaler %s scales %s already", rival, outcome.Target))
	default:
		if trouble = r.ready(bounded, las); trouble == nil {
			outcome, _ = r.loop.Tick(bounded) // its errors are in the outcome, and in events, metrics and the log
		}
	}
	if ctx.Err() != nil {
		return 0, nil // this is the end of the process: whatever failed, failed of that
	}
	if r.credentials != nil && (r.invalid != nil || rival != "" && !r.watchers.Scrapes()) {
		r.credentials.remove() // nothing reads them, and others may need the room
		r.credentials = nil
	}
	outcome.Late = r.late
	r.watch(bounded, las, &outcome)
	r.tell(las, trouble)
	ready := readiness(&outcome, trouble)
	r.controller.config.Numbers.ready(client.ObjectKeyFromObject(las), ready.Reason, ready.Status == metav1.ConditionTrue)
	if err := r.report(bounded, las, &outcome, trouble); err != nil {
		// The next round finds that the status is not what it should be, and writes it.
		r.controller.config.Logger.Warn("status not written", "namespace", las.Namespace, "name", las.Name, "error", err)
	}
	if trouble != nil && trouble.reason == k8s.ReasonStateNotStored {
		return 0, trouble.err // it is tried again soon, however long the interval
	}
	var wait time.Duration
	r.due, wait = r.controller.wait(began, las.Spec.Interval(), outcome.Next)
	return wait, nil
}

// ready reads the credentials, and makes observer and loop in the first round of a generation. A spec that builds can
// only be refused for what is in the credentials, or by a rule that build does not know.
func (r *runner) ready(ctx context.Context, las *v1alpha1.LLMAutoScaler) *trouble {
	err := r.authorize(ctx, las)
	if err == nil && r.plan.Scrapes() && r.observer == nil {
		r.observer, err = r.observeWith(r.plan.Scrape, r.plan.Port, r.controller.config.Budget, r.baselines)
		r.baselines = nil
	}
	if err != nil {
		return notReady(ReasonCredentials, err)
	}
	if r.loop == nil {
		// Until then there is no round: a loop that begins without a state has no cooldown.
		if err := r.takeState(ctx, las); err != nil {
			return notReady(k8s.ReasonStateNotStored, err)
		}
		if err := r.prepare(las); err != nil {
			return notReady(ReasonInvalidSpec, err)
		}
	}
	return nil
}

// prepare makes the loop.
func (r *runner) prepare(las *v1alpha1.LLMAutoScaler) error {
	c := &r.controller.config
	settings := k8s.Settings{
		Scales: c.Scales, StateKey: stateKey(r.plan.Layout), Interval: r.plan.Interval, DryRun: r.plan.DryRun, Paused: r.plan.Paused,
		Recorder: c.Recorder, Object: reference(las), Metrics: c.Metrics, Logger: c.Logger, Now: c.Now,
		LastWriter: k8s.NewLastWriter(c.Metadata, c.Mapper), LeaveAtZero: r.plan.Bounds.Min > 0,
	}
	store, err := k8s.NewAnnotationStore(k8s.AnnotationStoreConfig{
		Client: c.Metadata, Mapper: c.Mapper,
		Object: k8s.Target{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind, Namespace: las.Namespace, Name: las.Name},
	})
	if err != nil {
		return err
	}
	settings.Store = store
	if at := r.scaled; at != nil {
		settings.LastScaled = at.Add(time.Second - time.Millisecond) // a status has whole seconds, rounded down
	}
	if r.observer != nil {
		settings.Observer = r.observer
	}
	r.loop, err = k8s.NewLoop(k8s.LoopConfig{Target: Target(las), Policy: r.plan.Policy, Bounds: r.plan.Bounds, Settings: settings})
	r.dropFormer()
	return err
}

// authorize brings the credentials up to date. Those of the generation before are dropped if this one has none.
func (r *runner) authorize(ctx context.Context, las *v1alpha1.LLMAutoScaler) error {
	if !r.plan.Scrapes() && r.watchers.Scrapes() {
		return nil // it is for the shadows alone, after the round
	}
	return r.authorizeFor(ctx, las, r.plan.Scrapes())
}

func (r *runner) authorizeFor(ctx context.Context, las *v1alpha1.LLMAutoScaler, scrapes bool) error {
	if las.Spec.Scrape == nil || !scrapes {
		if r.credentials != nil {
			r.credentials.remove()
			r.credentials = nil
		}
		return nil
	}
	c := &r.controller.config
	if r.credentials == nil {
		r.credentials = &credentials{secrets: c.Secrets, vault: &r.controller.vault, dir: filepath.Join(c.Credentials, string(las.UID)), namespace: las.Namespace}
	}
	return r.credentials.refresh(ctx, las.Spec.Scrape, c.Now())
}

// reference is what events are about: the object without its contents.
func reference(las *v1alpha1.LLMAutoScaler) *v1alpha1.LLMAutoScaler {
	return &v1alpha1.LLMAutoScaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: las.Namespace, Name: las.Name, UID: las.UID},
	}
}

// observeWith makes what asks pods.
func (r *runner) observeWith(config scrape.Config, port k8s.Port, budget *scrape.Budget, baselines []byte) (*k8s.PodObserver, error) {
	c := &r.controller.config
	config.AllowLocal, config.Now, config.Budget, config.Tenant = c.AllowLocal, c.Now, budget, r.namespace
	if r.credentials != nil {
		config.TLS.CAFile, config.TokenFile = r.credentials.ca, r.credentials.token
	}
	scraper, err := scrape.New(config)
	if err != nil {
		return nil, err
	}
	if len(baselines) > 0 {
		if err := scraper.Restore(baselines); err != nil {
			c.Logger.Warn("baselines of the spec before not taken over", "namespace", r.namespace, "error", err)
		}
	}
	pods, err := k8s.NewPods(c.Pods, r.plan.Grouping)
	if err != nil {
		return nil, err
	}
	pods.Now = c.Now
	return k8s.NewPodObserver(pods, scraper, port)
}

// tell makes an event of trouble that is new.
func (r *runner) tell(las *v1alpha1.LLMAutoScaler, t *trouble) {
	said := ""
	if t != nil {
		said = t.reason + t.err.Error()
	}
	if said != r.told && t != nil {
		message := cut(t.err.Error(), maxMessage) // as in the status
		r.controller.config.Logger.Warn("not ready", "namespace", las.Namespace, "name", las.Name, "reason", t.reason, "error", message)
		if r.controller.config.Recorder != nil {
			r.controller.config.Recorder.Event(reference(las), corev1.EventTypeWarning, t.reason, message)
		}
	}
	r.told = said
}

// close ends what is kept for the object.
func (r *runner) close() {
	r.dropFormer()
	r.watchers.Close()
	if r.loop != nil {
		r.loop.Close()
	}
	if r.observer != nil {
		r.observer.Close()
	}
	if r.credentials != nil {
		r.credentials.remove()
	}
}

// A trouble is why there was no round.
type trouble struct {
	reason string
	err    error
}

func notReady(reason string, err error) *trouble { return &trouble{reason, err} }

// acted reports whether replicas were written in a round, or found to have been written in the one before.
func acted(o *k8s.Outcome) bool {
	return o.Write == k8s.Written || o.Settled && !o.DryRun
}

// desired is the count that a decision asks for; it is not known without one.
func desired(o *k8s.Outcome) (int32, bool) {
	return o.Decision.Replicas, o.Decided && o.Decision.Verdict != scaling.Unknown
}
