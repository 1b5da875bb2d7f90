// Package loop has the duties of whoever carries out what a policy decides, as a value: what to store before which
// write, what to tell the policy after which answer, what a restart finds. It does no I/O. A controller reads, stores
// and writes, and a [Loop] says what and in which order:
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
// The state of the group, whose it is (the targets' IDs), the writes whose end is not known, and the last change. A
// write is stored as an intent before it is made. Whoever ends between the two, or gets no answer, finds the intent
// again: if the target still has the count that the write was to leave, and the version that it was conditional on, the
// write can yet arrive; if the count is another one, it has happened, or somebody else wrote, which is as good a reason
// to wait. The group is then told, and its cooldowns run from then on: the time that Read is given is to be one at which the
// targets had been read, not one before. Decisions are absolute counts, so that one that is
// made twice does nothing twice.
//
// The promise, checked at every point at which a process can end, with answers that are lost or late, conflicts and
// others who write: no step is made twice, and no cooldown is lost.
//
// # What is stored when
//
// Without Config.Period every state that is not stored yet. With it, as a store such as an API server is not to be written
// in every round: at once what belongs to a write, before it and after it, and whose the state is; and the memory of the
// group only if a process that began with the stored one in the next round would answer otherwise, or more than a period
// sooner or later (scaling.Decision.Next), to what was seen now or in the round before; or, when 30 s have passed since it
// was stored, to no load at all. To find that out the group is asked what it would do, and given its state back. A process
// that has not stored any yet allows no period: of processes that end after a round each, every one gets further.
//
// A member of a state that is called volatile, at whatever depth, is never stored: it is what a group gathers anew after a
// restart. Of a group that has any, what is stored is replaced after five minutes if it is another.
//
// So a process that ends at any point delays a decision by two periods at most. A target at rest, with nothing that time
// alone could change, costs no write; one that waits for a window or a cooldown about one in three periods.
//
// # Errors
//
// A state that cannot be used (see scaling.StateError) is refused and never overwritten: the Loop decides Unknown until
// Restore is given a good one.
package loop
