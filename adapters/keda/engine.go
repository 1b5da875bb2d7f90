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
	// DefaultIdle is the time after which a trigger that nobody asks for is forgotten.
	DefaultIdle = 10 * time.Minute
	// DefaultStale is how many intervals a snapshot answers.
	DefaultStale = 3
	// DefaultMaxTriggers is how many triggers there may be.
	DefaultMaxTriggers = 10000
	// DefaultRounds is how many rounds there may be at once.
	DefaultRounds = 256
	// unknownPart is the part of MaxTriggers that those of ScaledObjects that are not known have together.
	unknownPart = 10
	// supersede is how many intervals a trigger is not asked for, while another of its identity is, until that has
	// taken its place. An HPA asks once in 15 s.
	supersede = 2
	// placeBytes is how many bytes of metadata take a place of MaxTriggers more. What is kept of them is up to 40 times as long.
	placeBytes = 512
)

// EngineConfig says how triggers are made and run. Build must be set; every other zero field means its default.
type EngineConfig struct {
	// Build makes the trigger of metadata. An error is answered as InvalidArgument, unless it has a gRPC status.
	Build func(ref Ref, metadata map[string]string) (Plan, error)
	// Idle is the time after which a trigger that nobody asks for is forgotten, 10 min by default. It must be above the
	// ScaledObjects' pollingInterval.
	Idle time.Duration
	// Stale is how many intervals after its round a snapshot is still answered with, 3 by default.
	Stale int
	// MaxTriggers is how many triggers there may be, 10,000 by default, where one counts once more for each whole 512 bytes of
	// its metadata: what is kept of it grows with them. Namespaces share them: once there are as many, one more of a namespace
	// that has less than an equal part takes the place of the newest of the namespace that has most.
	// Those of ScaledObjects that are not known (Plan.Object) are in no namespace, as whoever calls says which it is: they
	// have a tenth together, at least 1, and are the first to make room.
	MaxTriggers int
	// Rounds is how many rounds there may be at once, 256 by default. Namespaces take turns as in a k8s.FairQueue: one has half
	// of them at most, several share that half, and the other half is for those that have none under way.
	Rounds int
	// Metrics gets the numbers; nil means none. Engines may share one if they do not run the same triggers.
	Metrics *Metrics
	// Logger gets rounds that fail (Warn), triggers that come and go (Info) and what each round came to (Debug); nil means
	// none.
	Logger *slog.Logger

	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// After returns a channel that delivers once d has passed, and a function that gives up on it; nil means a timer.
	After func(d time.Duration) (<-chan time.Time, func())
}

func (c EngineConfig) orDefault() EngineConfig {
	c.Idle, c.Stale, c.MaxTriggers = cmp.Or(c.Idle, DefaultIdle), cmp.Or(c.Stale, DefaultStale), cmp.Or(c.MaxTriggers, DefaultMaxTriggers)
	c.Rounds = cmp.Or(c.Rounds, DefaultRounds)
	if c.Metrics == nil {
		c.Metrics = NewMetrics() // that nobody reads
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the one clock of this package: the documented default of EngineConfig.Now
	}
	if c.After == nil {
		c.After = func(d time.Duration) (<-chan time.Time, func()) {
			t := time.NewTimer(d) //nolint:forbidigo // likewise of EngineConfig.After
			return t.C, func() { t.Stop() }
		}
	}
	return c
}

// An Engine runs triggers: it makes their rounds when they are due, side by side, but never two of one trigger. Rounds that take
// long, or are many, hold up those of their namespace alone. It begins with a trigger when it is first asked for it, and forgets
// it when it has not been asked for Idle. It is safe for concurrent use.
type Engine struct {
	c    EngineConfig
	ctx  context.Context //nolint:containedctx // it ends the goroutines when the engine is closed
	stop context.CancelFunc
	wg   sync.WaitGroup

	queue *k8s.FairQueue[*entry] // triggers whose round is due; a namespace is a tenant

	drained chan struct{}
	drain   sync.Once

	mu       sync.RWMutex
	triggers map[string]*entry // by key
	objects  map[Ref]*object
	of       map[string]int // how many places triggers of known ScaledObjects of a namespace have
	unknown  int            // how many those of others have
	places   int            // how many all have
}

// NewEngine returns an Engine without triggers, or every field of the configuration that is wrong. The end of ctx ends its
// rounds, as Close does.
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
	engine.queue = k8s.NewFairQueue(func(t *entry) string { return t.ref.Namespace }, 0).Workers(c.Rounds)
	context.AfterFunc(ctx, engine.queue.ShutDown)
	engine.wg.Add(1)
	go engine.work()
	c.Metrics.of(engine)
	return engine, nil
}

// Drain ends the streams, and whichever begin later. Other calls are answered as before, so that a server that stops
// gracefully can end them all before Close.
func (e *Engine) Drain() { e.drain.Do(func() { close(e.drained) }) }

// Close ends all rounds and waits for them. What is asked for afterwards is answered with Unavailable.
func (e *Engine) Close() {
	e.mu.Lock() // nothing begins beside it
	e.stop()
	e.mu.Unlock()
	e.wg.Wait()
}

// Spec returns what the HorizontalPodAutoscaler is to be told of a trigger.
func (e *Engine) Spec(ref Ref, metadata map[string]string) (Spec, error) {
	t, err := e.find(ref, metadata)
	if err != nil {
		return Spec{}, err
	}
	return t.spec(), nil
}

// Snapshot returns what the last round of a trigger came to. Before there is one, and when it is older than Stale
// intervals, the error is Unavailable.
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

// find returns a trigger, a new one if need be.
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

// hold returns a trigger that is not forgotten before release.
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

// release lets a held trigger go. The time for which nobody asks for it begins now.
func (e *Engine) release(t *entry) {
	t.ask(e.c.Now())
	t.streams.Add(-1)
}

// begin makes a trigger and sees to its rounds.
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
	if t := e.triggers[k]; t != nil { // somebody else was as fast
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

// count notes that there are n triggers more like this one. The engine's mu is held.
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

// room reports why there is no place for another trigger, or makes some. Unknown is why the ScaledObject is not known: for
// such a trigger no other goes.
func (e *Engine) room(t *entry, unknown error) error {
	if e.ctx.Err() != nil {
		return status.Error(codes.Unavailable, "the scaler is shutting down")
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

// evict ends the trigger that is the first to make room.
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

// before reports whether a trigger makes room before another does: it is of a ScaledObject that is not known, or of the namespace
// that has most, and the newest of those. The engine's mu is held.
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

// key tells triggers apart: no two pairs of ScaledObject and metadata have the same.
func key(ref Ref, metadata map[string]string) string {
	b := make([]byte, 0, 1024) // more than most take
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
