// Package ratio keeps the two roles of a disaggregated deployment, prefill and decode, in a range of ratios: Kthena's
// constraint on roles.
//
// [New] makes a [Ratio] from a [Config]. [Ratio.Adjust] takes the decisions of two policies, one per role, moves them to the
// least pair of whole numbers that covers both and is in the range, and adds its step to their chains. [Ratio.Project] does
// the same with two plain counts. Limits are [Fraction] values, read by [ParseFraction]: arithmetic is exact.
//
// # The rule
//
// A pair of counts is feasible if both counts are within their bounds, and either both are 0, or neither is 0 and
//
//	Min <= prefill/decode <= Max
//
// The answer is the least feasible pair that covers what was asked for. There is exactly one. [New] refuses a range
// without any feasible pair.
//
// # Defaults
//
// None: a limit that is not set does not apply, and bounds must be set. The zero Ratio is no constraint; it changes no
// decision.
//
// # Where Kthena differs
//
// Kthena projects in a single pass. With ranges up to 0.5 wide and up to ten replicas of each role, that leaves the range in
// 41 percent of the cases that have an answer.
//
// Source: Kthena 0.1.0, the ratio constraint of disaggregated roles.
package ratio
