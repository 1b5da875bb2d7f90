// Package scaling defines the types that the algorithms of this module share, and the interface (the seam) between the
// algorithms and the code that drives them.
//
// # The seam
//
// An algorithm is a [Stepper]: a value that, given its state, a time and an [Observation], returns the next state and
// a [Decision]. [New] joins it with its state to a [Policy], the only interface that loops, adapters, the simulator and
// the test harness use. A Policy's state is stored as versioned JSON, so a restart changes no decision.
//
// # What an algorithm sees
//
// An [Observation] has the replicas that were asked for, the replicas that are ready, and a [Reading] for every metric. A
// Reading is an interval: a pod that gave no value counts as 0 in the lower end and as a fill value in the upper end.
// Scale-up uses the lower end and scale-down the upper end, so that no guess about a missing pod can move the fleet.
//
// # What it answers
//
// A [Decision] is a [Verdict] (Unknown, Hold, Up, Down), a count to write for Up and Down, and a chain of [Step]
// values. Each step has a [Code] that states an inequality, the count before and after, and the numbers that make the
// inequality true. [Decision.Explain] prints the chain, [Decision.Reason] its last step.
//
// # Composition
//
// [Highest], [Floor], [Bounded], [Stabilized] and [RateLimited] wrap policies in policies. The steps that they overrule
// stay in the chain. [Stabilization] and [RateLimits] are also values that an algorithm can apply to its own decision.
//
// # Numbers
//
// Replicas are int32, loads float64. [Ceil] and [Saturate] convert loads to replicas without overflow. [Exceeds] compares
// with a tolerance for float64 rounding.
//
// # Errors
//
// Constructors report every wrong field at once, each as a [FieldError], joined by errors.Join. A stored state that
// cannot be used gives a [StateError]. Deciding never fails: if nothing can be said, the verdict is Unknown, which never
// acts.
package scaling
