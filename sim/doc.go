// Package sim simulates what a scaling policy would have done on given traffic, and what that would have meant for cost
// and service. It is a discrete-event simulation of a fleet of LLM servers, their router, the scraping of their metrics and
// the controller's loop around any scaling.Policy.
//
// # The model
//
//   - Requests arrive independently of the fleet (open loop): from a Trace, in Stages, or by the rates of a Series. Or each
//     request follows an answer (closed loop): Sessions.
//   - A replica does continuous batching with chunked prefill. One step processes every decoding sequence and up to
//     TokenBudget prompt tokens, first come, first served. Server defines how long a step takes. A request is admitted
//     while there are fewer than MaxSeqs sequences and the KV cache has room for its prompt. When the cache overflows, the
//     newest sequence is preempted and recomputed later, first in the queue.
//   - With Scenario.BlockTokens a replica keeps prompt blocks in KV memory that no sequence needs, evicts the least recently
//     used ones first, and computes only the part of a prompt that is not cached. Sequences with the same prefix share memory.
//   - The Router gives a request to the least loaded replica, to the replicas in turn, or according to their prefix caches.
//   - Types with the roles Prefill and Decode serve a request one after the other and send its KV cache over a link, see
//     Transfer. They are scaled separately.
//   - A Gateway holds requests that arrive while no replica is ready, within its limits on their number and time.
//   - A replica is provisioned, loads its model, is ready, drains, and is gone. It costs from the request until it is gone.
//     Scaling down removes replicas that are not ready first, the newest first, and then those with the least work. A draining
//     replica finishes its batch, and its waiting requests go to other replicas.
//   - The controller sees what it scrapes: Readings whose interval includes pods that boot or fail to answer, and quantiles
//     from histograms with vLLM's buckets. It decides at its ticks, its writes take time and may be refused, and it may crash.
//
// Not modelled: LoRA adapters, speculative decoding, and the network except for the links of Transfer.
//
// # Promises
//
// The same Scenario, policy and seed give the same Result to the bit. Each subsystem has its own random numbers, so that
// under every policy the same requests arrive and the k-th replica takes the same time to start. Requests and tokens in
// KV caches are conserved, and Little's law holds exactly. Each run checks this, and fails with ErrBookkeeping otherwise.
// Memory does not grow with the length of a run, except for the requests that are in the system.
//
// # Use
//
// Run runs a Scenario once. scaling.GroupOf makes a group from a policy. Ramp is the reference scenario. Package traces has
// recorded traffic, package oracle computes what the best schedule would have cost, and the command examples/simulate
// combines them and writes a report.
package sim
