// Package hetero spreads a total over replicas of several types that do the same work at different cost: Kthena's
// heterogeneous autoscaling.
//
// [New] makes a [Fleet] of its types, and [Fleet.Allocate] says how many of each a total gives. [NewGroup] puts any
// scaling.Policy above it: the [Group] decides for every type. [Kthena] is the configuration with Kthena's rate.
//
// # The rule
//
// With C_i = Max_i - Min_i the capacity of type i, c_i the cost of a replica and P the expansion rate, every type is
// cut into batches of
//
//	max(1, floor(P^k))   replicas, for k = 0, 1, 2, ... while they fit; the remainder is the last batch
//
// P^k is carried unrounded. A batch costs its size times c_i. All batches of all types are put in the order of
//
//	(cost of the batch, name of the type, number of the batch)
//
// and written out as replicas: the sequence. A total of K replicas then is
//
//	counts_i = Min_i + its share of the first clamp(K, sum Min, sum Max) - sum Min places
//
// One replica more is one more of one type, for any K: on the way up nothing is ever stopped, on the way down nothing
// is started. The order of the types in the configuration, and the unit of the costs, change nothing.
//
// # Where to look
//
// What it buys and at what price: [Config]. A demand instead of a total: [Fleet.AllocateFor]. Near where replicas run:
// [Fleet.AllocateSticky], [Fleet.Plan]. The order itself: [Fleet.Batches]. The exact optimum: package sim/oracle.
// Prefill and decode: package ratio.
//
// Defaults: Kthena's rate is 2, a weight that is not set is 1. Everything else must be set.
//
// Source: Kthena documentation 0.1.0, "Autoscaler", Heterogeneous Instances Autoscale. Differences: [Fleet].
package hetero
