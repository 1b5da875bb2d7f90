package k8s

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// An engine reads, observes, stores and writes for both loops. loop.Loop determines what is done, and in which order.
type engine struct {
	Settings

	members []Variant // one of a Loop, without a name
	loop    *loop.Loop
	store   upgraded
	events  *Events        // nil without a recorder
	rivals  map[int]string // who reverts the writes of a target, by the target's index
	next    time.Time      // when the passing of time alone could change the last decision
	closed  bool
}

func newEngine(s Settings, members []Variant, group scaling.Group) (*engine, error) {
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
			s.Metrics.hold(m.Target.series(s.autoscaler()))
		}
	}
	e := &engine{Settings: s, members: members, loop: l, store: upgraded{Store: s.Store}, rivals: make(map[int]string)}
	if s.Recorder != nil {
		e.events = NewEvents(s.Recorder, s.EventPeriod)
	}
	return e, nil
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
		r.outcomes[i] = Outcome{Target: m.Target, Autoscaler: e.autoscaler(), Bounds: m.Bounds, At: began, DryRun: e.DryRun, Paused: e.Paused, Fleet: i}
	}
	e.next = time.Time{}
	bounded, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	r.do(bounded)
	if !errors.Is(ctx.Err(), context.Canceled) || slices.ContainsFunc(r.outcomes, func(o Outcome) bool { return o.Write != NoWrite }) {
		e.report(ctx, r.outcomes, e.Now().Sub(began))
	} // else the caller ended the round: what failed, failed of that, and nothing was written
	return r.outcomes
}

// do runs the duties in their order, and stops at the first that fails.
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
	for r.decide(ctx) && r.read(ctx) { //nolint:revive // the conditions do the work
	}
}

// restore loads the state if that is needed. It reports whether the round can go on. It can with a state that is refused:
// then the decision says why.
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

// read reads the targets. It reports whether the round can decide on them. A round that decides again can only if the targets
// are still those that were observed.
func (r *round) read(ctx context.Context) bool {
	ok, found, again := true, false, r.targets != nil
	before := r.targets
	r.targets = make([]loop.Target, len(r.members))
	for i, m := range r.members {
		o := &r.outcomes[i]
		s, err := r.Scales.Get(ctx, m.Target)
		o.ScaleErr = err
		if err != nil {
			ok = ok && errors.Is(err, ErrNotFound)
		} else {
			found, o.Scale = true, s
		}
		t := loop.Target{
			Name: m.Name, Key: m.Target.key(), ID: string(s.UID), Version: s.ResourceVersion, Replicas: s.Replicas, Missing: err != nil,
			Alone: err == nil && r.LeaveAtZero && s.Replicas == 0,
		}
		o.Disabled = t.Alone
		ok = ok && (!again || t.Missing || !before[i].Missing && before[i].ID == t.ID)
		r.targets[i] = t
	}
	if !ok || !found {
		return false
	}
	r.now = r.Now() // a write found now may have happened a moment ago, and its cooldown counts from now
	for i := range r.outcomes {
		r.outcomes[i].At = r.now
	}
	seen := r.loop.Read(r.now, r.targets...)
	if seen.Anew {
		r.Logger.InfoContext(ctx, "the stored state is that of another target: beginning anew", "target", r.members[0].Target.String())
		for i := range r.outcomes {
			r.outcomes[i].Anew = true
		}
	}
	for _, i := range seen.Settled {
		r.outcomes[i].Settled, r.outcomes[i].Changed = true, r.now
	}
	return true
}

// observe observes the targets that exist.
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
		seen.Fleets[i].Ready = scales[i].Replicas // without an observer all replicas count as ready
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

// observation returns what a group is told of a fleet, with this number of readings. It leaves out pods that are not ready,
// because they were not scraped.
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

// decide decides, stores the state, writes, and stores again. It reports whether the round must decide again.
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
	answered := r.Now() // cooldowns count from this time
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

// save stores the state, if there is one to store. It reports whether the round can go on: the state is stored, or this is a
// dry run, which goes on without.
func (r *round) save(ctx context.Context, state []byte) bool {
	if state == nil {
		return true
	}
	err := r.store.Save(ctx, r.StateKey, r.loop.Stored(), state)
	if err != nil {
		r.stateErr(fmt.Errorf("store state: %w", err))
		if size := (*SizeError)(nil); r.DryRun && errors.As(err, &size) {
			return true // the real loop's state keeps the room: a dry run goes on from memory
		}
	}
	r.loop.Saved(err)
	return err == nil
}

// unwritten records why a decision that acts is not written.
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
				Target: r.members[i].Target, Doing: fmt.Sprintf("tell yet about the write %d -> %d of", w.From, w.To), What: ErrUncertain,
			}
		}
	}
	return w
}

// write writes one target, and records the result.
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

// stateErr records an error that concerns the state of all targets.
func (r *round) stateErr(err error) {
	for i := range r.outcomes {
		r.outcomes[i].StateErr = err
	}
}

// Run makes a round at each interval, and earlier if the passing of time alone could change the decision before that, until
// ctx ends. Errors of rounds are in the events, the metrics and the log; Run returns nil when ctx has ended.
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

// Flush stores the state if the stored one differs, so that a loop that replaces this one loses nothing, not even what a
// restart could do without. It must not be called during a round.
func (e *engine) Flush(ctx context.Context) error {
	if e.loop.NeedsRestore() && len(e.loop.Stored()) == 0 {
		return nil // there is nothing to store
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

// Close removes the series of the loop's targets from Metrics, except those of targets that another loop shows too. So the
// counters keep their values if the loop is closed after its replacement was made.
func (e *engine) Close() {
	if e.Metrics == nil || e.closed {
		return
	}
	e.closed = true
	for _, m := range e.members {
		e.Metrics.release(m.Target.series(e.autoscaler()))
	}
}
