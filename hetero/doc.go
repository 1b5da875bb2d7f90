// Package hetero spreads a total over replicas of several types that do the same work at different cost: Kthena's
// heterogeneous autoscaling.
//
// # The rule
//
// With C_i = Max_i - Min_i the capacity of type i, c_i the cost of a replica and P the expansion rate, every type is
// cut into batches of
//
//	max(1, floor(P^k))   replicas, for k = 0, 1, 2, ... while they fit; the remainder is the last batch
//
// P^k is carried unrounded: at 1.5 the sizes are 1, 1, 2, 3, 5, 7, 11. A rate up to 1 gives batches of one. A batch
// costs its size times c_i, a remainder included. All batches of all types are put in the order of
//
//	(cost of the batch, name of the type, number of the batch)
//
// and written out as replicas: the sequence. A total of K replicas then is
//
//	counts_i = Min_i + its share of the first clamp(K, sum Min, sum Max) - sum Min places
//
// One replica more is one more of one type, for any K: on the way up nothing is ever stopped, on the way down nothing
// is started. The order of the types in the configuration, and the unit of the costs, change nothing. Costs of batches
// that differ by less than 1e-14 of themselves tie, as 3 * 0.1 and 1 * 0.3 do.
//
// A [Fleet] keeps the sequence as runs of batches of one size and counts in a walk over them. It never writes the
// places out, and where there are too many runs it finds the end of the total without them.
//
// # What it buys, and at what price
//
// A rate above 1 makes the next batch of a cheap type dearer, so that other types get their share before it is full:
// a fleet does not hang on one kind of device. That costs more than filling up the cheapest, and the premium is not
// bounded by the rate. A rate up to 1 is cheapest-first, and with equal weights the cheapest there is.
//
// The cheapest placement for a demand in units of work (see Type.Weight) is a covering knapsack. [Fleet.Optimal]
// solves it, and [Fleet.Compare] says for a walk of the demand what the sequence costs above it and how many cold
// starts it saves: the optimum for one unit more may share no replica with the one before.
//
// # Placing in steps
//
// [Fleet.Allocate] knows the total alone. A fleet that was placed otherwise, or whose costs were edited, would be
// rewritten at once. [Fleet.AllocateSticky] limits how many replicas are stopped in one type to be started in another,
// [Fleet.Plan] lists starts and stops. [Fleet.AllocateFor] takes a demand in the unit of the weights and finds the
// least total that covers it.
//
// # As a policy
//
// [Policy] gives the total of any scaling.Policy to the types, with a decision that explains itself for each.
//
// # Prefill and decode
//
// [Ratio] keeps two roles of one deployment in a range of ratios. It projects what they ask for onto the least pair of
// whole numbers that covers both and is in range, in exact arithmetic, and refuses ranges that no pair is in.
//
// # Defaults
//
// [Kthena] gives an expansion rate of 2. Weight is 1 if not set. Everything else must be set: types, costs above 0 in
// any common unit, minima and maxima in replicas.
//
// # Where the seed differs
//
// The seed's formula has the batch cost P^k * c_i, which for a broken P is the cost of no whole number of replicas;
// here a batch costs what its replicas cost. It does not say what happens between equal costs; names decide. It does
// not define rates below 1 (a sum of powers that never reaches the capacity); they give batches of one. Kthena itself
// breaks ties by the order of declaration, takes a cost of 0 and a minimum above the maximum, and projects ratios in a
// single pass that leaves the range in a fifth of the cases that have an answer; none of that is kept.
//
// Source: Kthena documentation 0.1.0, "Autoscaler", Heterogeneous Instances Autoscale.
package hetero
