package controller

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/k8s/thresholds"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/examples/internal/turnstile"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// Key is the key of the ConfigMap that has the configuration, and the name of the file in errors.
const Key = "variants.yaml"

// jitter is the part of the interval by which a round may come early.
const jitter = 0.1

// A model is what runs one model.
type model struct {
	config   policy.Model
	policy   *remembered
	loop     *k8s.VariantLoop
	pods     *namespacePods
	observer *k8s.PodObserver
	release  func()
	logger   *slog.Logger
	now      func() time.Time
}

// A remembered is a policy with its first decision on all variants. The loop asks for more, of rounds that may come, to compare states.
type remembered struct {
	scaling.Group

	decided bool
	total   scaling.Decision
}

// Decide passes the policy's decision on.
func (r *remembered) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	d := r.Group.Decide(now, obs)
	if !r.decided {
		r.decided, r.total = true, d.Total
	}
	return d
}

// newModel returns what runs a model. It is to be closed.
func newModel(e *Env, c policy.Model) (*model, error) {
	m := &model{config: c, logger: e.logger().With("model", c.String()), now: e.Now}
	if m.now == nil {
		m.now = time.Now
	}
	group, metrics, retune, err := newPolicy(e, &c)
	if err != nil {
		return nil, err
	}
	m.policy = &remembered{Group: group}
	scraper, err := scrape.New(scrape.Config{
		Metrics: metrics, Interval: c.Interval, Budget: e.Budget, Tenant: c.Namespace, AllowLocal: e.AllowLocal, Now: e.Now,
	})
	if err != nil {
		return nil, err
	}
	m.pods, m.release = e.Pods.use(c.Namespace)
	pods, err := k8s.NewPods(m.pods.lister, k8s.Grouping{})
	if err == nil {
		var port k8s.Port
		if p := c.Variants[0].Port; p != "" {
			port.Port = intstr.Parse(string(p))
		}
		m.observer, err = k8s.NewPodObserver(pods, scraper, port)
	}
	if err != nil {
		m.release()
		scraper.Close()
		return nil, err
	}
	settings := k8s.VariantLoopConfig{Group: m.policy, Settings: k8s.Settings{
		Scales: e.Scales, Observer: m.observer, Store: e.Store, StateKey: StateKey(&c),
		Interval: c.Interval, DryRun: e.DryRun || c.DryRun, BeforeDecide: retune,
		Recorder: e.Recorder, Metrics: e.Metrics, Logger: m.logger, Now: e.Now,
	}}
	for i := range c.Variants {
		v, t := &c.Variants[i], target(&c, i)
		settings.Variants = append(settings.Variants, k8s.Variant{
			Name: t.Name, Target: t, Bounds: scaling.Bounds{Min: v.Min, Max: v.Max},
		})
	}
	if m.loop, err = k8s.NewVariantLoop(settings); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// MarshalDurable is that of the policy, which knows what of its state is not to be stored.
func (r *remembered) MarshalDurable() ([]byte, error) { return scaling.Durable(r.Group) }

// Snapshot is that of the policy.
func (r *remembered) Snapshot() (restore func() error, err error) { return scaling.Snapshot(r.Group) }

// target returns the target of a variant.
func target(c *policy.Model, variant int) k8s.Target {
	t := &c.Variants[variant].Target
	return k8s.Target{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: c.Namespace, Name: t.Name}
}

// Parse reads a configuration: a policy document with models.
func Parse(data []byte) ([]policy.Model, error) { return policy.ReadModels(data, Key) }

// check reports what is wrong with models that only shows when they are to be run.
func check(e *Env, models []policy.Model) error {
	var errs []error
	for i := range models {
		c := &models[i]
		_, metrics, _, err := newPolicy(e, c)
		if err == nil {
			err = scrape.Config{Metrics: metrics, Interval: c.Interval}.Validate()
		}
		for v := range c.Variants {
			err = errors.Join(err, target(c, v).Validate(fmt.Sprintf("variants[%d].target", v)))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: models[%d]: %w", Key, i, err))
		}
	}
	return errors.Join(errs...)
}

// newPolicy returns the policy of a model, the metrics that it reads, and what puts changed thresholds in force, if they
// can change.
func newPolicy(e *Env, c *policy.Model) (scaling.Group, []scrape.Metric, func() error, error) {
	tunings := cmp.Or(e.Tunings, new(capacity.Shared))
	group, err := c.BuildWith(func() capacity.Tuner { return tunings.Tuner(c.Namespace) })
	if err != nil {
		return nil, nil, nil, err
	}
	var retune func() error
	if s, ok := group.(*saturation.Group); ok && c.Saturation != nil && c.Saturation.ThresholdsFrom != nil {
		table, err := thresholds.New(thresholds.Config{
			Lister: e.ConfigMaps, Namespace: e.Namespace, Name: c.Saturation.ThresholdsFrom.ConfigMap, Mode: c.Saturation.Config().Mode,
		})
		if err != nil {
			return nil, nil, nil, err
		}
		retune = func() error {
			t, err := table.Resolve(c.Name, c.Namespace)
			return errors.Join(s.Retune(t), err)
		}
	}
	metrics, err := reads(c.Metrics())
	return group, metrics, retune, err
}

// reads returns how metrics are read of the pods. They are asked at the model's port, unless a source names its own.
func reads(uses []policy.Metric) ([]scrape.Metric, error) {
	var all []scrape.Metric
	for _, use := range uses {
		m, err := build.Metric(use)
		if err != nil {
			return nil, err
		}
		if s := use.Source; s.Port == nil && s.Path == "" && s.Protocol == "" {
			m.Endpoint = scrape.Endpoint{}
		}
		all = append(all, m)
	}
	return all, nil
}

// StateKey returns the key of a model's state. Each algorithm has its own, as they cannot read each other's.
func StateKey(m *policy.Model) string {
	const longest = 120 // of 253, and more is added
	algorithm := m.Algorithm
	if m.Hetero != nil {
		algorithm += "-" + layout(m.Hetero.Total)
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, m.Namespace+"."+m.Name)
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.String())) // a hash never fails
	return fmt.Sprintf("%s.%s.%s", name[:min(len(name), longest)], hex.EncodeToString(h.Sum(nil)), algorithm)
}

// isStateKey reports whether a key is one that StateKey returns, or that of a dry run.
func isStateKey(key string) bool {
	return regexp.MustCompile(`^.+\.[0-9a-f]{8}\.(saturation|hetero)`).MatchString(key)
}

// layout names the algorithms of a policy, without their profiles, and what stands around them.
func layout(p policy.Policy) string {
	plan, _ := p.Plan("", scaling.Bounds{Max: math.MaxInt32}) // what is wrong is said when it is built
	return strings.ReplaceAll(plan.Layout, "+", "-")
}

// run does rounds until the context ends, each when the turnstile lets it. It reports whether one of them panicked: then
// the model is to begin anew, as after a restart.
func (m *model) run(ctx context.Context, rounds *turnstile.Turnstile) (panicked bool) {
	if m.pods.await(ctx, m.logger) != nil {
		return false
	}
	for !panicked {
		leave := rounds.Enter(ctx, m.config.Namespace)
		if leave == nil {
			return false
		}
		var wait time.Duration
		wait, panicked = m.round(ctx)
		leave()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
	return true
}

// round does a round, and returns how long to wait for the next. A panic is an error of this model: it must not end the
// rounds of all others.
func (m *model) round(ctx context.Context) (wait time.Duration, panicked bool) {
	began, next := m.now(), time.Time{}
	period := max(m.config.Interval-time.Duration(jitter*rand.Float64()*float64(m.config.Interval)), time.Second) // the least interval
	defer func() {
		if p := recover(); p != nil {
			panicked = true
			m.logger.Error("the round panicked: the model begins anew with its stored state", "error", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		wait = loop.RequeueAfter(began, m.now(), next, period)
	}()
	outcomes, _ := m.loop.Tick(ctx) // what failed is in events, metrics and the log
	for i := range outcomes {
		if outcomes[i].Decided {
			next = outcomes[i].Next // the same of all that are there
		}
	}
	return 0, false
}

// close ends what is kept for the model.
func (m *model) close() {
	if m.loop != nil {
		m.loop.Close()
	}
	m.observer.Close()
	m.release()
}
