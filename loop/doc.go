// Package loop carries out what a policy decides, as a value that does no I/O. A [Loop] says what to store before which
// write, what to tell the policy after which answer, and how to continue after a restart. The controller reads, stores and
// writes what the Loop says, in this order:
//
//	l, err := loop.New(scaling.GroupOf(policy), loop.Config{})
//	...
//	if l.NeedsRestore() {
//		err = l.Restore(load())                  // what is stored, nothing at the first time
//	}
//	l.Read(now, loop.Target{Replicas: spec})         // the targets as they are
//	step := l.Decide(now, observation)
//	if step.Store != nil {
//		l.Saved(save(step.Store))                // before anything is written
//	}
//	for w := range l.Writes() {
//		l.Wrote(w, write(w))                     // Applied, Refused, Conflict or Uncertain
//	}
//	store, again := l.Advance(now)                   // again: read and decide once more, now
//	if store != nil {
//		l.Saved(save(store))
//	}
//	sleep(loop.RequeueAfter(began, now, step.Next(), period))
//
// # What it keeps
//
// The Loop keeps the state of the group, the IDs of the targets that the state belongs to, the writes whose result is not
// known, and the last change.
//
// A write is stored as an intent before it is made. If the process ends between the two, or the answer is lost, the intent
// is still there when the targets are read again. If the target still has the old count, and the version that the write was
// conditional on, the write can still arrive. If the count differs, the write has happened or somebody else wrote; either is
// a reason to wait. The Loop then tells the group, and its cooldowns run from that time. The time given to Read must
// therefore be taken after the targets were read. Decisions are absolute counts, so a decision that is carried out twice has
// the effect of one.
//
// The promise is that no step is made twice and no cooldown is lost. It is tested for a process that ends at any point, with
// answers that are lost or late, conflicts, and other writers.
//
// # What is stored when
//
// Without Config.Period, every state that differs from the stored one is stored. Config.Period is for stores that should not
// be written in every round, such as an API server. With it the Loop stores at once what belongs to a write, before and after
// the write, and the IDs of the targets. It stores the memory of the group only if a process that starts with the stored
// state in the next round would answer differently, or answer more than a period earlier or later (scaling.Decision.Next).
// The Loop compares the answers to what was seen in this round and in the round before and, when 30 s have passed since the
// last store, the answers to no load at all. For this comparison it asks the group what it would do, and restores the group's
// state afterwards. Until a process has stored a state for the first time, it tolerates no difference in time. So when each
// process ends after one round, each still makes progress.
//
// A member of a state that is named volatile, at any depth, is never stored: the group collects it anew after a restart. For
// a group with such members, a stored state that differs is replaced after five minutes. Where they are large, the methods of
// scaling.Durable and scaling.Snapshot keep a round from marshalling them.
//
// So a process that ends at any point delays a decision by two periods at most, except those that need what is volatile: policy
// capacity scales down no earlier than five minutes and a cold start after a restart. A target at rest, for which time alone
// changes nothing, costs no write. One that waits for a window or a cooldown costs a write in about one of three periods.
//
// # Errors
//
// A state that cannot be used (see scaling.StateError) is refused and never overwritten. The Loop decides Unknown until
// Restore is given a usable state.
package loop
