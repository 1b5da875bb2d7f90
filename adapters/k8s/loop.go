package k8s

import (
	"context"

	"github.com/inferscale/inferscale/scaling"
)

// LoopConfig says what a Loop scales and how.
type LoopConfig struct {
	Target Target
	// Policy decides. It belongs to the loop from then on, which restores its state.
	Policy scaling.Policy
	// Bounds are those of the policy, to show in metrics and conditions; the loop does not apply them. The zero value
	// shows none.
	Bounds scaling.Bounds

	Settings
}

// A Loop scales one target. Each round does, in this order:
//
//  1. load the state, in the first round and after trouble with it
//  2. read /scale, and settle what is open of earlier writes: see below
//  3. observe the pods
//  4. decide
//  5. store the state, and with it the intent to write, if there is one
//  6. write replicas, on condition that the target is as it was read
//  7. tell the policy (Applied), whose cooldowns count from now, and store the state without the intent
//
// What fails ends the round there; the next begins anew. A conflict in step 6 takes the decision back and goes to step 2,
// at most Settings.Conflicts times.
//
// A state is stored in step 5 if there is a write, or if a restart without it would decide otherwise, or at a time that is
// more than two rounds away: see package loop. So at rest nothing is stored. A state that is gone from the store, as after
// a kubectl replace, is stored again; one that somebody else has stored is found when the next one is to be.
//
// A loop that ends between 5 and 7, or gets no answer in step 6, finds in step 2 what became of the write, be it in
// another process and be it late: see package loop. Decisions are absolute counts, so nothing is done twice.
//
// # First round and restart
//
// Without a stored state the policy starts afresh: its windows are empty, so nothing but bounds and timetables moves
// the target until they have filled. With one it goes on where it was.
//
// A state belongs to its target, by UID: a target that was made anew under its name, or another one under the same key,
// starts afresh. A state of an earlier version, which did not note the target, is taken for that of the present one.
// loop.CarryOver takes a state over to another policy of the same target.
//
// A state that is refused (damaged, of another policy, of a newer version) is kept as it is: the loop decides Unknown,
// writes neither state nor replicas, and looks again in each round, so that it goes on once the state is mended or
// removed.
//
// # Dry run and pause
//
// Both do everything but step 6. A dry run tells its policy that the write happened, as otherwise it would ask for the
// same in every round instead of showing the pace that cooldowns set; so its state is stored under a key of its own, and
// that of the real loop stays as it was. Where there is no room for both, the dry run goes on from memory and says so. A
// pause tells the policy nothing: it acts at once when the pause ends, from the state that it goes on storing.
//
// # No pods
//
// A target with no replicas has nobody to ask: its readings are not known, and a policy that needs them holds. What
// follows from the time alone, as the floor of a timetable, still acts.
//
// A Loop is not safe for concurrent use.
type Loop struct{ *engine }

// NewLoop returns the Loop of a configuration, or every rule that it breaks.
func NewLoop(c LoopConfig) (*Loop, error) {
	s := c.orDefault()
	var e scaling.FieldErrors
	e.Add(c.Target.Validate("target"))
	e.Check(c.Policy != nil, "policy", nil, "must be set")
	s.check(&e, []Target{c.Target})
	if c.Bounds != (scaling.Bounds{}) {
		e.Add(c.Bounds.Validate("bounds"))
	}
	if err := e.Err(); err != nil {
		return nil, err
	}
	engine, err := newEngine(s, []member{{target: c.Target, bounds: c.Bounds}}, scaling.GroupOf(c.Policy))
	if err != nil {
		return nil, err
	}
	return &Loop{engine}, nil
}

// Tick does one round at the present time and reports it. The error is that of the outcome.
func (l *Loop) Tick(ctx context.Context) (Outcome, error) {
	o := l.tick(ctx)[0]
	return o, o.Err()
}
