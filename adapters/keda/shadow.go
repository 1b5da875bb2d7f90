package keda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/loop/shadow/replay"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// shadowsOf reads the key shadow: a list as spec.shadow of an LLMAutoScaler.
func shadowsOf(text string) (all []policy.RawShadow, err error) {
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	var list []struct {
		Name   string    `yaml:"name"`
		Scaler yaml.Node `yaml:"scaler"`
	}
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); err != io.EOF { //nolint:errorlint // package yaml returns it as it is
		return nil, fmt.Errorf("must be one list")
	}
	for i := range list {
		var scaler []byte
		if !list[i].Scaler.IsZero() {
			if scaler, err = yaml.Marshal(&list[i].Scaler); err != nil {
				return nil, err
			}
		}
		all = append(all, policy.RawShadow{Name: list[i].Name, Scaler: scaler})
	}
	return all, nil
}

// shadows builds the policies that watch, beside what is wrong with them, by key: those that are right can be carried out.
func (m *Metadata) shadows(target k8s.Target, bounds scaling.Bounds) (plan build.ShadowPlan, err error) {
	if m.Shadow == "" && m.Attainment == "" {
		return plan, nil
	}
	if m.Shadow == "" {
		return plan, m.fault("attainment", m.Attainment, "must stand beside shadow: it is the counts of the policies that watch that are judged")
	}
	defer func() {
		if p := recover(); p != nil { // whatever is in a document, the trigger's own rounds go on
			plan, err = build.ShadowPlan{}, m.fault("shadow", m.Shadow, fmt.Sprintf("panic: %v", p))
		}
	}()
	raw, err := shadowsOf(m.Shadow)
	if err != nil {
		return plan, m.fault("shadow", m.Shadow, "must be a list of name and scaler, as spec.shadow of an LLMAutoScaler is: "+strings.Join(strings.Fields(err.Error()), " "))
	}
	spec := m.spec(target, bounds)
	if m.Attainment != "" {
		var bad error
		if spec.Attainment, bad = policy.ReadAttainment([]byte(m.Attainment), "spec.attainment"); bad != nil {
			bad = m.inKeys(bad)
		}
		defer func() { err = errors.Join(append(each(err), each(bad)...)...) }()
	}
	plan, err = build.Shadows(&spec, raw, m.shadowTuner)
	if len(plan.Scrape.Metrics) > 0 {
		m.complete(&plan.Scrape)
	}
	if err != nil {
		err = m.inKeys(err)
	}
	return plan, err
}

// watchers are the policies that watch a trigger's target. They are shown what a round saw once its decision is stored, decide beside
// the rounds, and can neither delay nor fail one.
type watchers struct {
	plan    build.ShadowPlan
	observe func() (Observer, error) // of what the trigger itself does not read
	beside  func(func())
	ctx     context.Context //nolint:containedctx // of what asks pods, which outlives a round
	cancel  context.CancelFunc

	mu       sync.Mutex
	shadows  *shadow.Shadows
	replays  *replay.Replays // what they would have attained; nil where nobody says by what to judge
	observer Observer
	asking   bool
	closed   bool
	trouble  string // why nothing could be shown to them
}

func newWatchers(plan build.ShadowPlan, observe func() (Observer, error), beside func(func()), of replay.Config) *watchers {
	if len(plan.All) == 0 {
		return nil
	}
	if beside == nil {
		beside = func(f func()) { go f() }
	}
	w := &watchers{plan: plan, observe: observe, beside: beside}
	w.ctx, w.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // it ends with Close
	c := shadow.Config{Go: beside, ColdStart: plan.ColdStart}
	for i := range plan.All {
		if plan.All[i].Err == nil {
			c.Policies = append(c.Policies, plan.All[i].Policy)
		}
	}
	if len(c.Policies) > 0 {
		var err error
		if w.shadows, err = shadow.New(c); err != nil {
			w.trouble = err.Error()
		}
	}
	if w.shadows != nil && plan.Capacity != nil {
		of.Capacity = *plan.Capacity
		w.replays, _ = replay.New(of) // what is wrong with it has been told
	}
	return w
}

// show shows them what a round saw, or asks the pods for what they need, beside the rounds and within an interval.
func (w *watchers) show(now time.Time, interval time.Duration, scale k8s.Scale, seen k8s.Observed) {
	if w == nil {
		return
	}
	if run := w.due(now, interval, scale, seen); run != nil {
		w.beside(run)
	}
}

// due shows them what a round saw, and returns what is to be done beside the rounds.
func (w *watchers) due(now time.Time, interval time.Duration, scale k8s.Scale, seen k8s.Observed) (run func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.shadows == nil || w.closed:
	case len(w.plan.Scrape.Metrics) == 0:
		return w.look(now, shownOf(scale, &seen))
	case w.asking:
		w.trouble = "the pods that were asked in the round before have not answered yet"
	default:
		if w.observer == nil {
			var err error
			if w.observer, err = w.observe(); err != nil {
				w.trouble = "pods cannot be asked: " + err.Error()
				return nil
			}
		}
		w.asking = true
		observer := w.observer
		return func() { w.ask(observer, now, interval, scale) }
	}
	return nil
}

// ask asks the pods, shows what they say, and replays what came if it is time to.
func (w *watchers) ask(observer Observer, now time.Time, interval time.Duration, scale k8s.Scale) {
	if run := w.asked(observer, now, interval, scale); run != nil {
		run()
	}
}

func (w *watchers) asked(observer Observer, now time.Time, interval time.Duration, scale k8s.Scale) (run func()) {
	ctx, cancel := context.WithTimeout(w.ctx, interval)
	defer cancel()
	seen, err := observed(ctx, observer, scale)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asking = false; w.closed {
		observer.Close()
		return nil
	}
	if w.trouble = ""; err != nil {
		w.trouble = "pods were not observed: " + err.Error()
		return nil
	}
	return w.look(now, shownOf(scale, &seen))
}

// look shows them what was seen, and returns what is to be run beside the rounds if a replay is due. The lock is held.
func (w *watchers) look(now time.Time, obs scaling.Observation) (run func()) {
	w.shadows.Look(now, obs)
	if w.replays == nil {
		return nil
	}
	return w.replays.See(now, obs, w.shadows)
}

func observed(ctx context.Context, observer Observer, scale k8s.Scale) (seen k8s.Observed, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return observer.Observe(ctx, []k8s.Scale{scale})
}

func shownOf(scale k8s.Scale, seen *k8s.Observed) scaling.Observation {
	obs := scaling.Observation{SpecReplicas: scale.Replicas, ReadyReplicas: scale.StatusReplicas, Readings: seen.Readings, Histograms: seen.Histograms}
	if len(seen.Fleets) > 0 {
		obs.ReadyReplicas = seen.Fleets[0].Ready
	}
	return obs
}

// close ends what asks pods for them.
func (w *watchers) close() {
	if w == nil {
		return
	}
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed = true; w.observer != nil && !w.asking {
		w.observer.Close()
	}
}

// A watcher is what is told of one.
type watcher struct {
	shadow.Wish

	leftOut bool

	attained, actual *capacity.Attainment // nil where they are not known
}

// states returns what there is to tell, in their order.
func (w *watchers) states() (all []watcher) {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	byName := map[string]shadow.Wish{}
	if w.shadows != nil {
		for _, wish := range w.shadows.Wishes() {
			byName[wish.Name] = wish
		}
	}
	var found *replay.Found
	if w.replays != nil {
		found = w.replays.Found()
	}
	told := map[string]bool{}
	for i := range w.plan.All {
		p := &w.plan.All[i]
		if told[p.Name] {
			continue // it is wrong, and no two series may be alike
		}
		told[p.Name] = true
		wish, ok := byName[p.Name]
		wish.Name = strings.ToValidUTF8(cut(p.Name, 63), "")
		one := watcher{Wish: wish, leftOut: p.Err != nil || !ok || wish.Out != shadow.None || w.trouble != ""}
		if found != nil {
			if a, ok := found.Shadows[p.Name]; ok {
				one.attained, one.actual = &a, &found.Actual
			}
		}
		all = append(all, one)
	}
	return all
}
