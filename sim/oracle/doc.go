// Package oracle says what the best schedule would have cost: of a policy's replica-hours, how much is the price of
// not knowing the future, how much that of its configuration, and how much is waste.
//
// # From traffic to replicas
//
// [FindCapacity] measures in the simulator what one replica takes: mu, the highest open-loop rate at which it attains
// the SLO. [Demand] turns a workload into replicas for each slot of time,
//
//	demand[t] = ceil( work that arrives in slot t / (step * mu) )
//
// where work counts a request by its tokens, so that the mean request is 1.
//
// # Bounds
//
// [Cover] is the cheapest plan with n[t] >= demand[t], exactly, where a start costs its cold start. [Constrained] is the
// cheapest under the steps, cooldowns, bounds and cold start that a controller has, with foresight. With the costs of
//
//	Cover <= Constrained <= policy
//
// the first difference is the regret of the configuration and the second that of the algorithm. [Bound] gives
// replica-hours of a plan.
//
// These are bounds for a fleet whose replicas take mu each, slot by slot. A fleet can do better: several replicas pool
// their noise, and a queue or a batch that fills up carries load from one slot to the next. Measured with the capacity of
// one replica, Cover is a schedule's cost rather than a bound. It becomes one in practice, though not by proof, with
// [FindFleetCapacity] at the most replicas that there can be, and slots that are long against the time a request takes.
// [Floor] is a bound that is proved for any schedule, and a good deal lower.
//
// # A schedule that works
//
// [Replay] finds a schedule that attains the SLO, as certified by a run of the simulator: it plans with Cover for demands
// of more and less safety, asks for replicas their cold start early, and keeps the cheapest schedule that does. Search
// with Trims takes single replicas out of it afterwards. That makes it much cheaper at an attainment of 0.999: a new
// replica is empty, so the router LeastLoaded gives it all that arrives, and where that is more than it can prefill,
// every start under load costs a few requests their first token in time, whatever the other replicas have to spare.
//
// The optimum of what begins with the scenario's Initial replicas lies between Floor and Replay. [Score] is a policy's
// replica-hours divided by those of Replay, at the same attainment.
//
// [ZeroLag] is a policy rather than an oracle: it sees the demand without any delay and knows nothing of the future, which
// shows what lag and smoothing cost a reactive policy, and what the cold start costs all of them.
//
// [Hetero] is the reference for fleets of several types: the cheapest placement for each demand ([Optimal]), and what a
// fleet that keeps what runs costs above it.
//
// # Determinism
//
// Nothing here reads a clock. The random numbers of FindCapacity come from fixed seeds, Replay takes the seed of the run
// that it is compared with, and every search tries the same things in the same order.
package oracle
