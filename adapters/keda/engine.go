package keda

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scaling"
)

const (
	// DefaultIdle is the time without calls after which a trigger is forgotten.
	DefaultIdle = 10 * time.Minute
	// DefaultStale is for how many intervals a snapshot is used for answers.
	DefaultStale = 3
	// DefaultMaxTriggers is the maximum number of triggers.
	DefaultMaxTriggers = 10000
	// DefaultRounds is the maximum number of concurrent rounds.
	DefaultRounds = 256
	// The triggers of unknown ScaledObjects together may use 1/unknownPart of MaxTriggers.
	unknownPart = 10
	// supersede is the number of intervals after which a trigger without calls is replaced by another with the same identity
	// that gets calls. An HPA makes a call every 15 s.
	supersede = 2
	// A trigger counts once more in MaxTriggers for each placeBytes bytes of its metadata. What is kept of them takes up to 40
	// times as much memory.
	placeBytes = 512
	// shuttingDown is the reason of everything that ends with the engine.
	shuttingDown = "the scaler is shutting down"
)

// EngineConfig is the configuration of an Engine. Build must be set; every other zero field means its default.
type EngineConfig struct {
	// Build makes a trigger from metadata. An error is answered as InvalidArgument, unless it has a gRPC status.
	Build func(ref Ref, metadata map[string]string) (Plan, error)
	// Idle is the time without calls after which a trigger is forgotten, 10 min by default. It must be above the
	// ScaledObjects' pollingInterval.
	Idle time.Duration
	// Stale is for how many intervals after its round a snapshot is used for answers, 3 by default.
	Stale int
	// MaxTriggers is the maximum number of triggers, 10,000 by default. A trigger counts once more for each whole 512 bytes of
	// its metadata, because its memory grows with them. Namespaces share the triggers: when the maximum is reached, a new
	// trigger of a namespace with less than an equal part replaces the newest trigger of the namespace with the most. Triggers
	// of unknown ScaledObjects (Plan.Object) belong to no namespace, because the caller could name any. Together they may be a
	// tenth, at least 1, and they are replaced first.
	MaxTriggers int
	// Rounds is the maximum number of concurrent rounds, 256 by default. Namespaces take turns as in a k8s.FairQueue: one
	// namespace has at most half of the rounds, several share that half, and the other half is reserved for namespaces without
	// a round in progress.
	Rounds int
	// Metrics exports the results of the rounds; nil means none. Engines may share one if they do not run the same triggers.
	Metrics *Metrics
	// Logger receives failed rounds (Warn), new and forgotten triggers (Info) and the result of each round (Debug); nil means
	// none.
	Logger *slog.Logger

	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// After returns a channel that delivers once d has passed, and a function that stops the timer; nil means a time.Timer.
	After func(d time.Duration) (<-chan time.Time, func())
}

func (c EngineConfig) orDefault() EngineConfig {
	c.Idle, c.Stale, c.MaxTriggers = cmp.Or(c.Idle, DefaultIdle), cmp.Or(c.Stale, DefaultStale), cmp.Or(c.MaxTriggers, DefaultMaxTriggers)
	c.Rounds = cmp.Or(c.Rounds, DefaultRounds)
	if c.Metrics == nil {
		c.Metrics = NewMetrics() // nobody reads these
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the one clock of this package: the documented default of EngineConfig.Now
	}
	if c.After == nil {
		c.After = func(d time.Duration) (<-chan time.Time, func()) {
			t := time.NewTimer(d) //nolint:forbidigo // the documented default of EngineConfig.After
			return t.C, func() { t.Stop() }
		}
	}
	return c
}

// An Engine runs triggers: it makes their rounds when they are due, concurrently, but never two rounds of one trigger. Slow
// or numerous rounds delay only other rounds of their namespace. The Engine creates a trigger at the first call for it, and
// forgets it after Idle without a call. It is safe for concurrent use.
type Engine struct {
	c    EngineConfig
	ctx  context.Context //nolint:containedctx // its end stops the goroutines when the engine is closed
	stop context.CancelFunc
	wg   sync.WaitGroup

	// at returns a timer that delivers at a time. It is that of EngineConfig.After; tests replace it, as their clock may be advanced
	// after the duration was computed.
	at func(due time.Time) (<-chan time.Time, func())

	queue *k8s.FairQueue[*entry] // triggers whose round is due; the tenants are the namespaces

	drained chan struct{}
	drain   sync.Once

	mu       sync.RWMutex
	triggers map[string]*entry // by key
	objects  map[Ref]*object
	of       map[string]int // places used by triggers of known ScaledObjects, by namespace
	unknown  int            // places used by triggers of unknown ScaledObjects
	places   int            // places used by all triggers
}

// NewEngine returns an Engine without triggers, or an error with every wrong field of the configuration. The end of ctx ends
// its rounds, as Close does.
func NewEngine(ctx context.Context, c EngineConfig) (*Engine, error) {
	c = c.orDefault()
	var e scaling.FieldErrors
	e.Check(c.Build != nil, "build", nil, "must be set")
	e.Check(c.Idle >= 0, "idle", c.Idle, "must not be negative")
	e.Check(c.Stale >= 0, "stale", c.Stale, "must not be negative")
	e.Check(c.MaxTriggers >= 0, "maxTriggers", c.MaxTriggers, "must not be negative")
	e.Check(c.Rounds >= 0, "rounds", c.Rounds, "must not be negative")
	if err := e.Err(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	engine := &Engine{c: c, ctx: ctx, stop: stop, drained: make(chan struct{}), triggers: make(map[string]*entry), objects: make(map[Ref]*object), of: make(map[string]int)}
	engine.at = func(due time.Time) (<-chan time.Time, func()) { return c.After(due.Sub(c.Now())) }
	engine.queue = k8s.NewFairQueue(func(t *entry) string { return t.ref.Namespace }, 0).Workers(c.Rounds)
	context.AfterFunc(ctx, engine.queue.ShutDown)
	engine.wg.Add(1)
	go engine.work()
	c.Metrics.of(engine)
	return engine, nil
}

// Drain ends the open streams, and any that begin later. Other calls are still answered, so that a server that stops
// gracefully can end all calls before Close.
func (e *Engine) Drain() { e.drain.Do(func() { close(e.drained) }) }

// Close ends all rounds and waits for them. Later calls are answered with Unavailable.
func (e *Engine) Close() {
	e.mu.Lock() // nothing begins meanwhile
	e.stop()
	e.mu.Unlock()
	e.wg.Wait()
	e.c.Metrics.without(e)
}

// Spec returns the metric of a trigger for the HorizontalPodAutoscaler.
func (e *Engine) Spec(ref Ref, metadata map[string]string) (Spec, error) {
	t, err := e.find(ref, metadata)
	if err != nil {
		return Spec{}, err
	}
	return t.spec(), nil
}

// Snapshot returns the result of a trigger's last round. Before the first round has ended, and when the last is older than
// Stale intervals, the error is Unavailable.
func (e *Engine) Snapshot(ref Ref, metadata map[string]string) (Snapshot, error) {
	t, err := e.find(ref, metadata)
	if err != nil {
		return Snapshot{}, err
	}
	return e.answer(t)
}

func (e *Engine) answer(t *entry) (Snapshot, error) {
	s, err := t.last()
	because := ""
	if err != nil {
		because = ": the last round failed: " + err.Error()
	}
	if s == nil {
		return Snapshot{}, status.Error(codes.Unavailable, "cold start: no round of "+t.ref.String()+" has ended yet"+because)
	}
	if age, limit := e.c.Now().Sub(s.At), time.Duration(e.c.Stale)*t.plan.Interval; age > limit {
		return Snapshot{}, status.Errorf(codes.Unavailable, "stale: the last round of %s was %s ago, above the limit of %s%s",
			t.ref, age.Round(time.Second), limit, because)
	}
	return *s, nil
}

// find returns a trigger, and creates it if there is none.
func (e *Engine) find(ref Ref, metadata map[string]string) (*entry, error) {
	k := key(ref, metadata)
	e.mu.RLock()
	t := e.triggers[k]
	e.mu.RUnlock()
	if t == nil {
		var err error
		if t, err = e.begin(k, ref, metadata); err != nil {
			return nil, err
		}
	}
	t.ask(e.c.Now())
	return t, nil
}

// hold returns a trigger that will not be forgotten before release.
func (e *Engine) hold(ref Ref, metadata map[string]string) (*entry, error) {
	for {
		t, err := e.find(ref, metadata)
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		kept := e.triggers[t.key] == t
		if kept {
			t.streams.Add(1)
		}
		e.mu.Unlock()
		if kept {
			return t, nil
		}
	}
}

// release ends a hold. The trigger's time without calls begins now.
func (e *Engine) release(t *entry) {
	t.ask(e.c.Now())
	t.streams.Add(-1)
}

// begin creates a trigger and starts its rounds.
func (e *Engine) begin(k string, ref Ref, metadata map[string]string) (*entry, error) {
	plan, err := e.c.Build(ref, maps.Clone(metadata))
	if err != nil {
		if _, ok := status.FromError(err); ok {
			return nil, err
		}
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	unknown := plan.unknown()
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.triggers[k]; t != nil { // another call has created it meanwhile
		plan.Trigger.Close()
		return t, nil
	}
	t := newEntry(k, ref, plan, e.c.Now())
	t.known, t.places = unknown == nil, min(1+sizeOf(metadata)/placeBytes, e.c.MaxTriggers)
	if err := e.room(t, unknown); err != nil {
		plan.Trigger.Close()
		return nil, err
	}
	e.triggers[k] = t
	e.places += t.places
	e.count(t, 1)
	o := e.objects[ref]
	if o == nil {
		o = &object{engine: e, ref: ref, changed: make(chan struct{}, 1)}
		e.objects[ref] = o
		e.wg.Add(1)
		go o.run()
	}
	o.entries = append(o.entries, t)
	o.signal()
	e.c.Metrics.triggers.Inc()
	e.c.Logger.Info("trigger begins", "scaledObject", ref.String(), "metric", plan.Spec.Metric, "trigger", t.id, "target", plan.Spec.Target, "interval", plan.Interval.String())
	return t, nil
}

// count adds n triggers like this one to the counts. The caller holds the engine's mu.
func (e *Engine) count(t *entry, n int) {
	n *= t.places
	if !t.known {
		e.unknown += n
		return
	}
	if e.of[t.ref.Namespace] += n; e.of[t.ref.Namespace] == 0 {
		delete(e.of, t.ref.Namespace)
	}
}

// room makes room for another trigger, or returns an error if there is none. unknown says why the ScaledObject is not known:
// no other trigger is evicted for such a trigger.
func (e *Engine) room(t *entry, unknown error) error {
	if e.ctx.Err() != nil {
		return status.Error(codes.Unavailable, shuttingDown)
	}
	full := func() bool { return e.places+t.places > e.c.MaxTriggers }
	if part := max(e.c.MaxTriggers/unknownPart, 1); unknown != nil && (full() || e.unknown+min(t.places, part) > part) {
		return status.Errorf(codes.ResourceExhausted, "%v: there are %d triggers, which take %d places, those of ScaledObjects that are not known %d, and no more than %d and %d are allowed, of which this one would take %d",
			unknown, len(e.triggers), e.places, e.unknown, e.c.MaxTriggers, part, t.places)
	}
	for full() {
		namespaces := len(e.of)
		if e.of[t.ref.Namespace] == 0 {
			namespaces++
		}
		if part := e.c.MaxTriggers / namespaces; e.unknown == 0 && e.of[t.ref.Namespace]+t.places > part {
			return status.Errorf(codes.ResourceExhausted, "there are %d triggers, which take %d places, those of namespace %s %d, and no more than %d are allowed, of which this one would take %d: raise the limit, write shorter metadata, or wait %s until those that nobody asks for are forgotten",
				len(e.triggers), e.places, t.ref.Namespace, e.of[t.ref.Namespace], e.c.MaxTriggers, t.places, e.c.Idle)
		}
		e.evict()
	}
	return nil
}

// evict ends the trigger that is first in the order of before.
func (e *Engine) evict() {
	var last *entry
	for _, t := range e.triggers {
		if last == nil || e.before(t, last) {
			last = t
		}
	}
	why := "another namespace has fewer triggers, and there are as many as are allowed"
	if !last.known {
		why = "its ScaledObject is not known, and there are as many triggers as are allowed"
	}
	o := e.objects[last.ref]
	o.entries = slices.DeleteFunc(o.entries, func(t *entry) bool { return t == last })
	o.forget(last, why)
	o.signal()
}

// before reports whether a trigger is evicted before another: triggers of unknown ScaledObjects come first, then those of the
// namespace with the most; of these the newest comes first. The caller holds the engine's mu.
func (e *Engine) before(t, other *entry) bool {
	if t.known != other.known {
		return !t.known
	}
	newer := cmp.Or(t.born.Compare(other.born), strings.Compare(t.key, other.key))
	if !t.known {
		return newer > 0
	}
	of, than := t.ref.Namespace, other.ref.Namespace
	return cmp.Or(cmp.Compare(e.of[of], e.of[than]), strings.Compare(of, than), newer) > 0
}

// key identifies a trigger: different pairs of ScaledObject and metadata have different keys.
func key(ref Ref, metadata map[string]string) string {
	b := make([]byte, 0, 1024) // enough for most triggers
	write := func(s string) {
		b = append(append(append(b, strconv.Itoa(len(s))...), ':'), s...)
	}
	write(ref.Namespace)
	write(ref.Name)
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		write(k)
		write(metadata[k])
	}
	return string(b)
}
