// Package saturation scales the variants of one model by what their replicas have to spare: the saturation analyzer of
// llm-d's workload variant autoscaler, with its gaps closed.
//
// [NewGroup] makes a [Group], which decides on the workloads that serve a model and differ in accelerator, cost and
// capacity; it is a scaling.Group. [NewSingle] is for one workload of which only averages are known, as a
// scaling.Policy. policy.ReadThresholds reads thresholds per model from a ConfigMap. [Scaler] is the algorithm without memory,
// for those who keep the [State] themselves.
//
// # The rule
//
// Replicas report two loads, the KV cache usage (a fraction) and the waiting requests. One is saturated when
// kv >= kvCacheThreshold or queue >= queueLengthThreshold. With
//
//	spare_i = threshold - load_i         0 for a saturated replica
//	spare   = sum(spare_i) / N           over all N replicas, for each of the two loads
//	after   = sum(load_i) / (N-1)        with one replica less, the load spread over the rest
//
// the model says
//
//	up      when  spareKV < kvSpareTrigger  or  spareQueue < queueSpareTrigger
//	down    when  threshold - after >= trigger  for both, N >= 2, and no replica is saturated or missing
//
// The triggers are strict for up and inclusive for down, so the two never meet. Then one variant moves by one replica:
//
//	up:    the cheapest that may grow, first by name: no replica pending, count below its maximum
//	down:  the dearest that may shrink, last by name: count above max(Min, 1), and what it takes along can be missed
//
// Cheap and dear are by cost per capacity. A variant in transition ([Scaler.Decide]) blocks the model, for a while.
// A replica that gives no value ([Replica]) is idle for up and saturated for down.
//
// # Defaults
//
// [Defaults]: thresholds 0.80 (fraction of the KV cache) and 5 (requests), triggers 0.10 and 3, transition timeout
// 10 minutes, down stabilization 300 s, one replica a step. [WVA]: the same thresholds, and mode [Literal].
//
// Source: llm-d workload variant autoscaler, user guide "Saturation Analyzer", as of version 0.7.
package saturation
