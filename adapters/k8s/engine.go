package k8s

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// A member is one target of an engine.
type member struct {
	name   string
	target Target
	bounds scaling.Bounds
}

// An engine reads, observes, stores and writes for both loops; what and in which order is loop.Loop's to say.
type engine struct {
	Settings

	members  []member
	loop     *loop.Loop
	store    upgraded
	reporter *reporter
	rivals   map[int]string // who takes writes of a target back, by its place
	next     time.Time      // when time alone could change the last answer
	closed   bool
}

func newEngine(s Settings, members []member, group scaling.Group) (*engine, error) {
	c := loop.Config{DryRun: s.DryRun, Paused: s.Paused, Conflicts: s.Conflicts, Period: s.Interval, LastChange: s.LastScaled}
	if s.EveryState {
		c.Period = 0
	}
	l, err := loop.New(group, c)
	if err != nil {
		return nil, err
	}
	if s.Metrics != nil {
		for _, m := range members {
			s.Metrics.hold(m.target.series(s.autoscaler()))
		}
	}
	return &engine{Settings: s, members: members, loop: l, store: upgraded{Store: s.Store}, reporter: newReporter(s), rivals: make(map[int]string)}, nil
}

// A round is one pass through the duties of a loop.
type round struct {
	*engine

	now      time.Time // when the targets were read
	outcomes []Outcome
	targets  []loop.Target
	seen     scaling.GroupObservation
}

func (e *engine) tick(ctx context.Context) []Outcome {
	r, began := &round{engine: e, outcomes: make([]Outcome, len(e.members))}, e.Now()
	for i, m := range e.members {
		r.outcomes[i] = Outcome{Target: m.target, Bounds: m.bounds, At: began, DryRun: e.DryRun, Paused: e.Paused, Fleet: i}
	}
	e.next = time.Time{}
	bounded, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	r.do(bounded)
	e.reporter.report(ctx, r.outcomes, e.Now().Sub(began))
	return r.outcomes
}

// do goes through the duties in their order, and stops where one fails.
func (r *round) do(ctx context.Context) {
	if !r.restore(ctx) || !r.read(ctx) || !r.observe(ctx) {
		return
	}
	if r.BeforeDecide != nil {
		err := r.BeforeDecide()
		for i := range r.outcomes {
			r.outcomes[i].ConfigErr = err
		}
	}
	for r.decide(ctx) && r.read(ctx) { //nolint:revive // both do what there is to do
	}
}

// restore loads the state where that is needed. It reports whether there is one to go on with, be it a refused one,
// with which the decision says why.
func (r *round) restore(ctx context.Context) bool {
	if !r.loop.NeedsRestore() {
		return true
	}
	data, err := r.store.Load(ctx, r.StateKey)
	if err != nil {
		r.stateErr(fmt.Errorf("load state: %w", err))
		return false
	}
	if err := r.loop.Restore(data); err != nil {
		r.stateErr(err)
	}
	return true
}

// read reads the targets. It reports whether there is something to decide on: when it is decided again, only if the
// targets are still those that were observed.
func (r *round) read(ctx context.Context) bool {
	ok, found, again := true, false, r.targets != nil
	before := r.targets
	r.targets = make([]loop.Target, len(r.members))
	for i, m := range r.members {
		o := &r.outcomes[i]
		s, err := r.Scales.Get(ctx, m.target)
		o.ScaleErr = err
		if err != nil {
			ok = ok && errors.Is(err, ErrNotFound)
		} else {
			found, o.Scale = true, s
		}
		t := loop.Target{
			Name: m.name, Key: m.target.key(), ID: string(s.UID), Version: s.ResourceVersion, Replicas: s.Replicas, Missing: err != nil,
			Alone: err == nil && r.LeaveAtZero && s.Replicas == 0,
		}
		o.Disabled = t.Alone
		ok = ok && (!again || t.Missing || !before[i].Missing && before[i].ID == t.ID)
		r.targets[i] = t
	}
	if !ok || !found {
		return false
	}
	r.now = r.Now() // what is found may have happened a moment ago, and its cooldown runs from then on
	for i := range r.outcomes {
		r.outcomes[i].At = r.now
	}
	seen := r.loop.Read(r.now, r.targets...)
	if seen.Anew {
		r.Logger.InfoContext(ctx, "the stored state is that of another target: beginning anew", "target", r.members[0].target.String())
	}
	for _, i := range seen.Settled {
		r.outcomes[i].Settled, r.outcomes[i].Changed = true, r.now
	}
	return true
}

// observe looks at the targets that exist.
func (r *round) observe(ctx context.Context) bool {
	var scales []Scale
	var index []int
	for i := range r.targets {
		if !r.targets[i].Missing {
			scales, index = append(scales, r.outcomes[i].Scale), append(index, i)
		}
	}
	seen := Observed{Fleets: make([]FleetView, len(scales))}
	for i := range scales {
		seen.Fleets[i].Ready = scales[i].Replicas // without an observer nothing is known to be missing
	}
	var err error
	if r.Observer != nil {
		seen, err = r.Observer.Observe(ctx, scales)
		if err == nil && len(seen.Fleets) != len(scales) {
			err = errors.New("the observer did not answer for every target")
		}
	}
	if err != nil {
		for i := range r.outcomes {
			r.outcomes[i].ObserveErr = err
		}
		return false
	}
	fleets := make([]FleetView, len(r.targets))
	for n, i := range index {
		fleets[i] = seen.Fleets[n]
	}
	seen.Fleets = fleets
	r.seen = scaling.GroupObservation{Readings: seen.Readings, Histograms: seen.Histograms, Targets: make([]scaling.TargetObservation, len(fleets))}
	for i := range fleets {
		r.outcomes[i].Observed = seen
		r.seen.Targets[i] = fleets[i].observation(len(seen.Readings))
	}
	return true
}

// observation is what a group is told of a fleet, of which there are so many readings. A pod that is not ready is not there to be asked.
func (v *FleetView) observation(readings int) scaling.TargetObservation {
	t := scaling.TargetObservation{ReadyReplicas: v.Ready, PendingReplicas: v.NotReady}
	for i := range v.Pods {
		pod := &v.Pods[i]
		if pod.State != scrape.Ready {
			continue
		}
		values := make([]float64, min(readings, len(pod.Values)))
		for k := range values {
			if values[k] = math.NaN(); pod.Values[k].OK {
				values[k] = pod.Values[k].Value
			}
		}
		t.Pods = append(t.Pods, scaling.PodObservation{Name: pod.Name, Values: values})
	}
	return t
}

// decide asks the group, stores, writes, and stores again. It reports whether the round is to decide again.
func (r *round) decide(ctx context.Context) (again bool) {
	step := r.loop.Decide(r.now, r.seen)
	r.next = step.Next()
	for i := range r.outcomes {
		if o := &r.outcomes[i]; !r.targets[i].Missing {
			o.Decided, o.Decision, o.Next = true, step.Targets[i], r.next
		}
	}
	if step.Err == nil && r.save(ctx, step.Store) {
		r.unwritten(step)
	}
	r.contend(ctx, step)
	for w := range r.loop.Writes() {
		r.loop.Wrote(w, r.write(ctx, w))
	}
	answered := r.Now() // cooldowns count from then on
	store, again := r.loop.Advance(answered)
	for i := range r.outcomes {
		if o := &r.outcomes[i]; o.Write == Written {
			o.Changed = answered
		}
	}
	r.save(ctx, store)
	if step.Err != nil {
		r.stateErr(step.Err)
	}
	if again {
		for i := range r.outcomes {
			o := &r.outcomes[i]
			o.Decided, o.Decision, o.Next, o.Write, o.WriteErr = false, scaling.Decision{}, time.Time{}, NoWrite, nil
		}
	}
	return again
}

// save stores what is to be stored. It reports whether the store has it, or a dry run goes on without.
func (r *round) save(ctx context.Context, state []byte) bool {
	if state == nil {
		return true
	}
	err := r.store.Save(ctx, r.StateKey, r.loop.Stored(), state)
	if err != nil {
		r.stateErr(fmt.Errorf("store state: %w", err))
		if size := (*SizeError)(nil); r.DryRun && errors.As(err, &size) {
			return true // the state of the real loop has the room; a dry run has nothing to lose but its own memory
		}
	}
	r.loop.Saved(err)
	return err == nil
}

// unwritten notes why a decision that acts is not written.
func (r *round) unwritten(step *loop.Step) {
	for i := range r.outcomes {
		o := &r.outcomes[i]
		switch {
		case !o.Decided || !o.Decision.Acts() || o.Disabled:
		case r.DryRun || r.Paused:
			o.Write = Would
		case step.Waiting != nil:
			o.WriteErr = r.waiting(step.Waiting)
		}
	}
}

func (r *round) waiting(w *loop.WaitingError) error {
	for i := range r.targets {
		if r.targets[i].Key == w.Key {
			return &TargetError{
				Target: r.members[i].target, Doing: fmt.Sprintf("tell yet about the write %d -> %d of", w.From, w.To), What: ErrUncertain,
			}
		}
	}
	return w
}

// write writes one target, and notes what became of it.
func (r *round) write(ctx context.Context, w loop.Write) loop.Result {
	o := &r.outcomes[w.Index]
	_, o.WriteErr = r.Scales.Set(ctx, o.Target, o.Scale, w.To)
	switch {
	case o.WriteErr == nil:
		o.Write = Written
		return loop.Applied
	case errors.Is(o.WriteErr, ErrConflict):
		o.Write = Conflict
		o.Conflicts++
		return loop.Conflict
	case isRefusal(o.WriteErr):
		o.Write = Refused
		return loop.Refused
	}
	o.Write = Uncertain
	return loop.Uncertain
}

// stateErr notes an error that concerns the state of all targets.
func (r *round) stateErr(err error) {
	for i := range r.outcomes {
		r.outcomes[i].StateErr = err
	}
}

// Run ticks at the interval, and when time alone could change a decision if that is earlier, until ctx ends. Failures of
// rounds are in events, metrics and the log; it returns nil when ctx has ended.
func (e *engine) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		began := e.Now()
		e.tick(ctx)
		period := e.Interval - time.Duration(e.Jitter*e.Random()*float64(e.Interval))
		fire, stop := e.After(loop.RequeueAfter(began, e.Now(), e.next, max(period, min(leastWait, e.Interval))))
		select {
		case <-fire:
		case <-ctx.Done():
		}
		stop()
	}
	return nil
}

// Flush stores the state if the store has another one, so that a loop that takes the place of this one loses nothing, be it
// that the state would have done. It is not to be called during a round.
func (e *engine) Flush(ctx context.Context) error {
	if e.loop.NeedsRestore() && len(e.loop.Stored()) == 0 {
		return nil // it has nothing to lose
	}
	for range 2 {
		if e.loop.NeedsRestore() {
			data, err := e.store.Load(ctx, e.StateKey)
			if err == nil {
				err = e.loop.Restore(data)
			}
			if err != nil {
				return fmt.Errorf("load state: %w", err)
			}
		}
		state, err := e.loop.Unsaved()
		if state == nil || err != nil {
			return err
		}
		err = e.store.Save(ctx, e.StateKey, e.loop.Stored(), state)
		e.loop.Saved(err)
		if !errors.Is(err, ErrStateConflict) {
			return err
		}
	}
	return nil
}

// Close drops what the loop shows of its targets: their series in Metrics, unless another loop shows a target too. So a
// loop that is closed after the one in its place was made leaves the counters as they are.
func (e *engine) Close() {
	if e.Metrics == nil || e.closed {
		return
	}
	e.closed = true
	for _, m := range e.members {
		e.Metrics.release(m.target.series(e.autoscaler()))
	}
}
