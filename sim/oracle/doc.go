// Package oracle computes what the best schedule would have cost. It splits a policy's replica-hours into the price of not
// knowing the future, the price of its configuration, and waste.
//
// # From traffic to replicas
//
// [FindCapacity] measures the capacity of one replica in the simulator: mu, the highest open-loop rate at which it attains
// the SLO. [Demand] turns a workload into replicas for each slot of time,
//
//	demand[t] = ceil( work that arrives in slot t / (step * mu) )
//
// where work weights a request by its tokens, so that the mean request is 1.
//
// # Bounds
//
// [Cover] is the exact cheapest plan with n[t] >= demand[t], where each start costs as much as its cold start.
// [Constrained] is the cheapest plan, with foresight, within the steps, cooldowns, bounds and cold start of a controller.
// With the costs of
//
//	Cover <= Constrained <= policy
//
// the first difference is the regret of the configuration and the second that of the algorithm. [Bound] gives
// replica-hours of a plan.
//
// These are bounds for a fleet whose replicas each handle mu, slot by slot. A fleet can do better: several replicas average
// out the noise of arrivals, and a queue or a batch that fills up carries load from one slot to the next. With the capacity
// of one replica, Cover is therefore the cost of a schedule rather than a bound. It becomes a bound in practice, though not
// by proof, with [FindFleetCapacity] at the maximum number of replicas and with slots much longer than a request takes.
// [Floor] is proved to be a bound for any schedule, and is much lower.
//
// # A schedule that works
//
// [Replay] finds a schedule that attains the SLO, as certified by a run of the simulator. It plans with Cover for demands
// with different safety factors, requests replicas one cold start early, and keeps the cheapest schedule that attains the
// SLO. Search with Trims then removes single replicas from it. That makes the schedule much cheaper at an attainment of
// 0.999: a new replica is empty, so the router LeastLoaded sends it every arriving request. When that is more than it can
// prefill, each start under load makes a few first tokens late, however much capacity the other replicas have to spare.
//
// The optimum among schedules that begin with the scenario's Initial replicas lies between Floor and Replay. [Score] is a
// policy's replica-hours divided by those of Replay, at the same attainment.
//
// [ZeroLag] is a policy rather than an oracle: it sees the demand without any delay and knows nothing of the future. It
// shows what lag and smoothing cost a reactive policy, and what the cold start costs every policy.
//
// [Hetero] is the reference for fleets of several types: the cheapest placement for each demand ([Optimal]), and what a
// fleet that keeps its running replicas costs above it.
//
// # Determinism
//
// Nothing here reads a clock. The random numbers of FindCapacity come from fixed seeds, Replay takes the seed of the run
// that it is compared with, and every search tries the same candidates in the same order.
package oracle
