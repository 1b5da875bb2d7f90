package k8s

import (
	"context"

	"github.com/inferscale/inferscale/scaling"
)

// LoopConfig is the configuration of a Loop.
type LoopConfig struct {
	Target Target
	// Policy makes the decisions. After NewLoop it belongs to the loop, which restores its state.
	Policy scaling.Policy
	// Bounds are the policy's bounds, for display in metrics and conditions; the loop does not apply them. The zero value
	// displays none.
	Bounds scaling.Bounds

	Settings
}

// A Loop scales one target. Each round does, in this order:
//
//  1. load the state, in the first round and after an error with it
//  2. read /scale, and settle earlier writes whose result is unknown: see below
//  3. observe the pods
//  4. decide
//  5. store the state, and with it the intent to write, if there is one
//  6. write replicas, on condition that the target has not changed since it was read
//  7. tell the policy (Applied), whose cooldowns count from now, and store the state without the intent
//
// A failing step ends the round; the next round starts again from the top. A conflict in step 6 discards the decision and
// goes back to step 2, at most Settings.Conflicts times.
//
// Step 5 stores the state if there is a write, or if a restart without it would decide differently, or more than an interval
// earlier or later: see package loop. So a loop at rest stores nothing. A state that disappears from the store, for example
// after a kubectl replace, is stored again. A state that somebody else has stored is noticed at the next save.
//
// If a loop ends between steps 5 and 7, or gets no answer in step 6, a later step 2 finds out whether the write happened,
// even in another process and even if the write arrives late: see package loop. Decisions are absolute counts, so no change
// is made twice.
//
// # First round and restart
//
// Without a stored state the policy starts afresh: its windows are empty, so only bounds and timetables move the target until
// they have filled. With a stored state it continues where it was.
//
// A state belongs to its target, by UID: a target that was deleted and created again, or another target with the same key,
// starts afresh. A state of an earlier version, which did not record the target, counts as that of the present one.
// loop.CarryOver converts a state for another policy of the same target.
//
// A refused state (damaged, of another policy, or of a newer version) is kept unchanged: the loop decides Unknown, writes
// neither state nor replicas, and loads the state again in each round, so that it continues once the state is repaired or
// removed.
//
// # Dry run and pause
//
// Both do everything except step 6. A dry run tells its policy that the write happened; otherwise the policy would ask for
// the same in every round, instead of showing the pace that cooldowns set. Therefore its state is stored under its own key,
// and the state of the real loop stays unchanged. If the store has no room for both, the dry run continues from memory and
// reports that. A pause tells the policy nothing, and goes on storing its state: the policy acts at once when the pause ends.
//
// # No pods
//
// A target without replicas has no pod to scrape: its readings are unknown, and a policy that needs them holds. Rules that
// depend on the time alone, such as the floor of a timetable, still act.
//
// A Loop is not safe for concurrent use.
type Loop struct{ *engine }

// NewLoop returns the Loop of a configuration, or an error with every rule that it breaks.
func NewLoop(c LoopConfig) (*Loop, error) {
	s := c.orDefault()
	var e scaling.FieldErrors
	e.Add(c.Target.Validate("target"))
	e.Check(c.Policy != nil, "policy", nil, "must be set")
	target := []Variant{{Target: c.Target, Bounds: c.Bounds}}
	s.check(&e, target)
	if c.Bounds != (scaling.Bounds{}) {
		e.Add(c.Bounds.Validate("bounds"))
	}
	if err := e.Err(); err != nil {
		return nil, err
	}
	engine, err := newEngine(s, target, scaling.GroupOf(c.Policy))
	if err != nil {
		return nil, err
	}
	return &Loop{engine}, nil
}

// Tick makes one round at the present time and returns its outcome. The error is that of the outcome.
func (l *Loop) Tick(ctx context.Context) (Outcome, error) {
	o := l.tick(ctx)[0]
	return o, o.Err()
}
