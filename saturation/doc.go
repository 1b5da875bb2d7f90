// Package saturation scales the variants of one model by the spare capacity of their replicas: the saturation analyzer of
// llm-d's workload variant autoscaler, with its gaps closed.
//
// [NewGroup] makes a [Group], a scaling.Group for the workloads that serve one model and differ in accelerator, cost and
// capacity. [NewSingle] makes a scaling.Policy for one workload with known averages only. policy.ReadThresholds reads
// thresholds per model from a ConfigMap. [Scaler] is the algorithm without memory, for callers that keep the [State]
// themselves.
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
// the decision for the model is
//
//	up      when  spareKV < kvSpareTrigger  or  spareQueue < queueSpareTrigger
//	down    when  threshold - after >= trigger  for both, N >= 2, and no replica is saturated or missing
//
// The triggers are strict for up and inclusive for down, so that both never hold at once. Then one variant moves by one
// replica:
//
//	up:    the cheapest that may grow, first by name: no replica pending, count below its maximum
//	down:  the dearest that may shrink, last by name: count above max(Min, 1), and its capacity is not needed
//
// Cheap and dear refer to cost per capacity. A variant in transition ([Scaler.Decide]) blocks the model, up to a timeout.
// A replica that gives no value ([Replica]) counts as idle for up and as saturated for down.
//
// # Defaults
//
// [Defaults]: thresholds 0.80 (fraction of the KV cache) and 5 (requests), triggers 0.10 and 3, transition timeout
// 10 minutes, down stabilization 300 s, one replica per step. [WVA]: the same thresholds, and mode [Literal].
//
// Source: llm-d workload variant autoscaler, user guide "Saturation Analyzer", as of version 0.7.
package saturation
