// Package hetero distributes a total number of replicas over several types that do the same work at different cost:
// Kthena's heterogeneous autoscaling.
//
// [New] makes a [Fleet] from its types, and [Fleet.Allocate] returns the count of each type for a total. [NewGroup] takes
// the total from any scaling.Policy; the [Group] decides for every type. [Kthena] is the configuration with Kthena's rate.
//
// # The rule
//
// With C_i = Max_i - Min_i the capacity of type i, c_i the cost of a replica and P the expansion rate, every type is
// divided into batches of
//
//	max(1, floor(P^k))   replicas, for k = 0, 1, 2, ... while they fit; the remainder is the last batch
//
// P^k itself is not rounded from one k to the next. A batch costs its size times c_i. All batches of all types are sorted by
//
//	(cost of the batch, name of the type, number of the batch)
//
// and written out as single replicas, which gives the sequence. A total of K replicas then is
//
//	counts_i = Min_i + its share of the first clamp(K, sum Min, sum Max) - sum Min places
//
// For any K, one replica more adds one replica of one type: scaling up never stops a replica, and scaling down never
// starts one. The order of the types in the configuration and the unit of the costs make no difference.
//
// # Where to look
//
// What the mix saves, and at what price: [Config]. A demand instead of a total: [Fleet.AllocateFor]. Counts close to the
// present placement: [Fleet.AllocateSticky], [Fleet.Plan]. The order itself: [Fleet.Batches]. The exact optimum: package
// sim/oracle. Prefill and decode: package ratio.
//
// Defaults: Kthena's rate is 2, an unset weight is 1. Everything else must be set.
//
// Source: Kthena documentation 0.1.0, "Autoscaler", Heterogeneous Instances Autoscale. Differences: [Fleet].
package hetero
