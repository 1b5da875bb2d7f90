// Package scaling is the vocabulary that the algorithms of this module share, and the seam between them and whatever
// drives them.
//
// # The seam
//
// An algorithm is a [Stepper]: a value that, given its state, a time and an [Observation], returns the next state and
// a [Decision]. [New] joins it with its state to a [Policy], which is all that loops, adapters, the simulator and the
// test harness know. A Policy's state is versioned JSON, so a restart changes no decision.
//
// # What an algorithm sees
//
// An [Observation] has the replicas that were asked for, those that are ready, and a [Reading] for every metric. A
// Reading is an interval: pods that gave no value count 0 below and a fill above. Scale-up looks at the lower end and
// scale-down at the upper, so that no guess about a missing pod can move the fleet.
//
// # What it answers
//
// A [Decision] is a [Verdict] (Unknown, Hold, Up, Down), a count to write for Up and Down, and a chain of [Step]
// values: each has a [Code] that states an inequality, the count before and after, and the numbers that made the
// inequality hold. [Decision.Explain] prints the chain, [Decision.Reason] its last word.
//
// # Composition
//
// [Highest], [Floor], [Bounded], [Stabilized] and [RateLimited] wrap policies in policies. What they overrule stays
// in the chain. [Stabilization] and [RateLimits] are also values that algorithms apply to a decision of their own.
//
// # Numbers
//
// Replicas are int32, loads float64. [Ceil] and [Saturate] turn one into the other without a wrap, [Exceeds] compares
// above the noise of float64 arithmetic.
//
// # Errors
//
// Constructors report every wrong field at once, each a [FieldError], joined by errors.Join. A stored state that
// cannot be used is a [StateError]. Deciding never fails: what cannot be known is the verdict Unknown, which never
// acts.
package scaling
