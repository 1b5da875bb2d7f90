package k8s

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A member is one target of an engine.
type member struct {
	name   string
	target Target
	bounds scaling.Bounds
}

// An engine does the rounds of both loops: a Loop is one with a single member.
type engine struct {
	Settings

	members []member
	policy  VariantPolicy
	voice   *voice

	fresh    []byte // the policy's state before it decided anything
	loaded   bool
	refused  error     // why the stored state cannot be used, until it can
	stored   []byte    // what the store has, as far as we know
	subjects []subject // the targets that the policy's memory is about; none if that is not known
	open     []intent  // writes that may or may not have happened
	last     *change   // what the policy was told of last
	closed   bool
}

func newEngine(s Settings, members []member, policy VariantPolicy) (*engine, error) {
	fresh, err := policy.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if s.Metrics != nil {
		for _, m := range members {
			s.Metrics.hold(m.target)
		}
	}
	return &engine{Settings: s, members: members, policy: policy, voice: newVoice(s), fresh: fresh}, nil
}

// A round is one pass through the duties of a loop.
type round struct {
	*engine

	now      time.Time
	outcomes []Outcome
	views    []VariantView
	readings []scaling.Reading
	before   []byte           // the policy's state before the decision, to take it back
	older    map[int][]intent // what was open of each member that is written, before that
	decision VariantDecision
}

func (e *engine) tick(ctx context.Context) []Outcome {
	r := &round{engine: e, now: e.Now(), outcomes: make([]Outcome, len(e.members)), views: make([]VariantView, len(e.members))}
	for i, m := range e.members {
		r.outcomes[i] = Outcome{Target: m.target, Bounds: m.bounds, At: r.now, DryRun: e.DryRun, Fleet: i}
		r.views[i].Name = m.name
	}
	r.do(ctx)
	e.voice.say(ctx, r.outcomes, e.Now().Sub(r.now))
	return r.outcomes
}

// do goes through the duties in their order, and stops where one fails.
func (r *round) do(ctx context.Context) {
	if !r.restore(ctx) || !r.read(ctx) || !r.bind(ctx) {
		return
	}
	r.settle()
	if !r.observe(ctx) {
		return
	}
	for attempt := 0; ; attempt++ {
		if !r.decide() || !r.act(ctx, attempt < r.Conflicts) {
			return
		}
		if !r.read(ctx) || !r.bound() {
			return
		}
		r.settle() // what came between may have been a write of an earlier round
	}
}

// read reads the targets. It reports whether there is something to decide on.
func (r *round) read(ctx context.Context) bool {
	ok, found := true, false
	for i, m := range r.members {
		o := &r.outcomes[i]
		s, err := r.Scales.Get(ctx, m.target)
		o.ScaleErr = err
		r.views[i].Found = err == nil
		if err == nil {
			found = true
			r.views[i].Scale, o.Scale = s, s
		} else if !errors.Is(err, ErrNotFound) {
			ok = false
		}
	}
	return ok && found
}

// settle finds out which of the open writes happened, and tells the policy. It counts from now: when a write without an
// answer arrived is not known, and a cooldown that is too long does no harm. A write of which it shows that it did not
// happen is forgotten; one that can yet arrive stays open.
func (r *round) settle() {
	if r.refused != nil || len(r.open) == 0 {
		return
	}
	happened := make(map[int]intent, len(r.open))
	still := r.open[:0:0]
	for _, w := range r.open {
		i := slices.IndexFunc(r.members, func(m member) bool { return m.target.same(w.Target()) })
		switch {
		case i < 0:
		case !r.views[i].Found:
			still = append(still, w)
		case w.happened(&r.views[i].Scale):
			happened[i] = w
			r.outcomes[i].Settled = true
		case w.pending(&r.views[i].Scale):
			still = append(still, w)
		}
	}
	r.open = still
	r.applied(func(i int) (from, to int32, ok bool) {
		w, ok := happened[i]
		return w.From, r.views[i].Scale.Replicas, ok
	})
}

// applied tells the policy what was carried out.
func (r *round) applied(what func(i int) (from, to int32, ok bool)) {
	from, to := make([]int32, len(r.members)), make([]int32, len(r.members))
	changed, total := false, change{At: scaling.StampOf(r.now)}
	for i := range r.members {
		from[i], to[i] = r.views[i].Scale.Replicas, r.views[i].Scale.Replicas
		if a, b, ok := what(i); ok {
			from[i], to[i], changed = a, b, true
		}
		total.From, total.To = total.From+from[i], total.To+to[i]
	}
	if changed {
		r.policy.Applied(r.now, from, to)
		r.last = &total
	}
}

// observe looks at the targets that exist.
func (r *round) observe(ctx context.Context) bool {
	var scales []Scale
	var index []int
	for i := range r.views {
		if r.views[i].Found {
			scales, index = append(scales, r.views[i].Scale), append(index, i)
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
	fleets := make([]FleetView, len(r.views))
	for n, i := range index {
		fleets[i] = seen.Fleets[n]
		r.views[i].Fleet = seen.Fleets[n]
	}
	seen.Fleets = fleets
	for i := range r.outcomes {
		r.outcomes[i].Observed = seen
	}
	r.readings = seen.Readings
	return true
}

// decide asks the policy. It reports whether there is a state that can be stored.
func (r *round) decide() bool {
	if r.refused != nil {
		for i := range r.outcomes {
			r.outcomes[i].Decided = true
			r.outcomes[i].Decision = scaling.UnknownAt(r.views[i].Scale.Replicas, scaling.StateRefused, r.StateKey)
		}
		return false
	}
	before, err := r.policy.MarshalJSON()
	if err != nil {
		r.stateErr(err)
		return false
	}
	r.before = before
	r.decision = r.policy.Decide(r.now, r.views, r.readings)
	for i := range r.outcomes {
		o := &r.outcomes[i]
		o.ConfigErr = r.decision.ConfigErr
		o.Decided, o.Decision, o.Next = false, scaling.Decision{}, time.Time{}
		o.Write, o.WriteErr = NoWrite, nil
		if i >= len(r.decision.Targets) || !r.views[i].Found {
			continue
		}
		o.Decided, o.Decision, o.Next = true, r.decision.Targets[i], r.decision.Targets[i].Next
	}
	return true
}

// stateErr notes an error that concerns the state of all targets.
func (r *round) stateErr(err error) {
	for i := range r.outcomes {
		r.outcomes[i].StateErr = err
	}
}
