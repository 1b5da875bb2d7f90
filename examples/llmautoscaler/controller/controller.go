package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/adapters/k8s/watch"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/loop/shadow/replay"
	"github.com/inferscale/inferscale/scrape"
)

// A Config is what the controller works with. Client, Secrets, Scales, Metadata, Mapper and Pods must be set.
type Config struct {
	// Client reads LLMAutoScalers, from a cache, and writes their status. Its scheme has those of package stored.
	Client client.Client
	// Secrets reads Secrets, without a cache: a cache would need to list all of them.
	Secrets client.Reader
	// Scales reads and writes the targets.
	Scales *k8s.Scales
	// Metadata and Mapper reach the annotations that keep the state.
	Metadata metadata.Interface
	Mapper   meta.RESTMapper
	// Pods lists pods, from an informer.
	Pods corelisters.PodLister

	// Recorder, Metrics, Numbers and Logger tell of the rounds; each may be nil.
	Recorder record.EventRecorder
	Metrics  *k8s.Metrics
	Numbers  *Numbers
	Logger   *slog.Logger

	// Credentials is the directory that takes what is read of Secrets, for the scrapers to read.
	Credentials string
	// Budget bounds the memory that pods' pages take, of all objects together, and shares it between namespaces; nil means
	// one of 64 MiB.
	Budget *scrape.Budget
	// AllowLocal lets pods have addresses of this machine, as they have in tests.
	AllowLocal bool
	// StatusRefresh is the maximum age of a status of which only numbers have changed, 5 min by default.
	StatusRefresh time.Duration
	// Jitter is the part of the interval by which a round may come early, 0.1 by default.
	Jitter float64

	// Beside runs what shadows do beside the rounds; nil means a goroutine.
	Beside func(func())
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Random returns numbers in [0, 1); nil means math/rand/v2.
	Random func() float64
}

const (
	defaultStatusRefresh = 5 * time.Minute
	defaultJitter        = 0.1
	leastWait            = time.Second
	// longestRound bounds what a round asks of the API server beside the loop's own part, whatever the interval.
	longestRound = 20 * time.Second
)

// A Controller is the Reconciler of LLMAutoScalers. It is safe for concurrent use with one object at a time, as
// controller-runtime's queue has it.
type Controller struct {
	config  Config
	tunings capacity.Shared // of all objects, one at a time, by namespace

	// Shadows have their own, so that they take nothing away.
	shadowTunings capacity.Shared
	shadowBudget  *scrape.Budget
	replays       *replay.Turn
	asks          watch.Asks

	vault vault // of what is kept of Secrets

	mu      sync.Mutex
	started time.Time // when the first object came: a process that waits to be the leader has none
	runners map[types.NamespacedName]*runner
	tenants map[string]*tenant // by namespace
	last    time.Time          // when a round was finished last
}

// New returns the Controller of a configuration.
func New(c Config) (*Controller, error) {
	if c.Client == nil || c.Secrets == nil || c.Scales == nil || c.Metadata == nil || c.Mapper == nil || c.Pods == nil {
		return nil, errors.New("controller: Client, Secrets, Scales, Metadata, Mapper and Pods must be set")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Numbers == nil {
		c.Numbers = NewNumbers() // nobody reads these
	}
	c.StatusRefresh, c.Jitter = cmp.Or(c.StatusRefresh, defaultStatusRefresh), cmp.Or(c.Jitter, defaultJitter)
	if c.Budget == nil {
		var err error
		if c.Budget, err = scrape.NewBudget(0); err != nil {
			return nil, err
		}
	}
	if c.Beside == nil {
		c.Beside = func(f func()) { go f() }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	ofShadows, err := scrape.NewBudget(0)
	if err != nil {
		return nil, err
	}
	return &Controller{config: c, shadowBudget: ofShadows, replays: new(replay.Turn), runners: make(map[types.NamespacedName]*runner), tenants: make(map[string]*tenant), vault: vault{of: make(map[string]int)}}, nil
}

// Reconcile does a round of an object if one is due, and says when the next is.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	las := &stored.LLMAutoScaler{}
	err := c.config.Client.Get(ctx, request.NamespacedName, las)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || las.DeletionTimestamp != nil {
		c.forget(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r := c.runner(las)
	every := las.Spec.Interval()
	if wait := r.due.Sub(c.config.Now()); wait > 0 && wait <= max(every, leastWait) { // it is more where the clock was set back
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	r.late = 0
	if late := c.config.Now().Sub(r.due); !r.due.IsZero() { // what was due at no time, as the first round after an edit, is not late
		c.config.Numbers.late(request.Namespace, late)
		if late > every {
			r.late = late
		}
	}
	wait, err := r.round(ctx, &las.LLMAutoScaler)
	c.finished(r, every)
	return reconcile.Result{RequeueAfter: wait}, err
}

// runner returns what runs an object: what there is, unless the spec has changed, or something new.
func (c *Controller) runner(las *stored.LLMAutoScaler) *runner {
	key := client.ObjectKeyFromObject(las)
	c.mu.Lock()
	old := c.runners[key]
	c.mu.Unlock()
	if old != nil && old.uid == las.UID && old.generation == las.Generation {
		return old
	}
	r := &runner{controller: c, namespace: las.Namespace, uid: las.UID, generation: las.Generation, target: IndexKey(Target(&las.LLMAutoScaler)), status: las.Status.DeepCopy(), scaled: las.Status.LastScaleTime.DeepCopy(), unread: las.StatusErr != nil}
	r.counted = r.status.CurrentReplicas
	if d := las.Status.LastDecision; d != nil && d.Time != nil {
		r.written = d.Time.Time
	}
	r.build(las)
	if old == nil {
		r.due = c.first(&las.LLMAutoScaler)
	} else if old.uid == las.UID {
		r.status, r.counted, r.written, r.pace, r.credentials = old.status, old.counted, old.written, old.pace, old.credentials
		old.credentials = nil
		if las.SpecErr != nil {
			r.target = old.target // it is not known: what follows may have the same
		}
		if r.scaled = nil; r.target == old.target {
			r.scaled = old.scaled
		}
		r.inherit(old)
	}
	if old != nil {
		old.close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runners[key] == nil {
		if c.tenants[key.Namespace] == nil {
			c.tenants[key.Namespace] = &tenant{}
		}
		c.tenants[key.Namespace].objects++
	}
	c.runners[key] = r
	return r
}

// first returns when an object that this process has not seen before is due: at once if it is new, and otherwise at a
// place of its own within the interval, so that neither a restart nor a new leader makes all of them due together.
func (c *Controller) first(las *v1alpha1.LLMAutoScaler) time.Time {
	interval, now := las.Spec.Interval(), c.config.Now()
	began := c.begun(now)
	if now.Sub(las.CreationTimestamp.Time) < interval || now.Sub(began) > interval {
		return now
	}
	return now.Add(time.Duration(c.config.Random() * float64(interval)))
}

// begun returns when the first object came.
func (c *Controller) begun(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started.IsZero() {
		c.started = now
	}
	return c.started
}

func (c *Controller) forget(key types.NamespacedName) {
	c.mu.Lock()
	r := c.runners[key]
	if r != nil {
		delete(c.runners, key)
		if t := c.tenants[key.Namespace]; t.objects > 1 {
			t.objects--
		} else {
			delete(c.tenants, key.Namespace)
		}
	}
	c.mu.Unlock()
	if r != nil {
		r.close()
		c.config.Numbers.forget(key)
	}
}

// Close ends what is kept for objects: connections, and files with credentials.
func (c *Controller) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, r := range c.runners {
		r.close()
		delete(c.runners, key)
	}
	clear(c.tenants)
}

// rival returns the LLMAutoScaler that scales the same target and was there before all others, if there is one. A cache lists them in
// another order each time.
func (c *Controller) rival(ctx context.Context, las *v1alpha1.LLMAutoScaler) (string, error) {
	var all stored.LLMAutoScalerList
	target := Target(las)
	// Not copied, as only names and times are read: any number may have the target, each with a large spec.
	if err := c.config.Client.List(ctx, &all, client.InNamespace(las.Namespace), client.MatchingFields{TargetIndex: IndexKey(target)}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list LLMAutoScalers: %w", err)
	}
	first := las
	for i := range all.Items {
		if other := &all.Items[i].LLMAutoScaler; Precedes(other, first) {
			first = other
		}
	}
	if first == las {
		return "", nil
	}
	return first.Name, nil
}

// TargetIndex is the name of the index that has LLMAutoScalers by target.
const TargetIndex = "spec.scaleTargetRef"

// IndexKey returns the key under which the index has a target: its version does not matter.
func IndexKey(t k8s.Target) string {
	group, _, found := strings.Cut(t.APIVersion, "/")
	if !found {
		group = ""
	}
	return group + "/" + t.Kind + "/" + t.Name
}

// Index returns the keys of an object for the index by target.
func Index(o client.Object) []string {
	las, ok := o.(*stored.LLMAutoScaler)
	if !ok || las.SpecErr != nil { // what cannot be read has no target
		return nil
	}
	return []string{IndexKey(Target(&las.LLMAutoScaler))}
}

// Precedes reports whether one of two objects has the right to their common target: the older, or the first by name.
// An object that is being deleted has none.
func Precedes(a, b *v1alpha1.LLMAutoScaler) bool {
	switch {
	case a.DeletionTimestamp != nil || a.Name == b.Name:
		return false
	case !a.CreationTimestamp.Equal(&b.CreationTimestamp):
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// wait returns the time until the next round after one that began at a time: the interval less a jitter, so that it is
// never late, or what the decision asks for if that is earlier.
func (c *Controller) wait(began time.Time, every time.Duration, next time.Time) (at time.Time, wait time.Duration) {
	period := every - time.Duration(c.config.Jitter*c.config.Random()*float64(every))
	now := c.config.Now()
	wait = loop.RequeueAfter(began, now, next, max(period, min(leastWait, every)))
	return now.Add(wait), wait
}

// unable is the outcome of a round that did not come to its loop.
func unable(las *v1alpha1.LLMAutoScaler, now time.Time) k8s.Outcome {
	return k8s.Outcome{Target: Target(las), At: now, DryRun: las.Spec.DryRun, Paused: las.Spec.Paused}
}

// Target returns the target of an object.
func Target(las *v1alpha1.LLMAutoScaler) k8s.Target {
	ref := las.Spec.ScaleTargetRef
	return k8s.Target{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: las.Namespace, Name: ref.Name}
}
