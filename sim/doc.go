// Package sim answers what a scaling policy would have done on given traffic, and what that would have meant for cost
// and service: a discrete-event simulation of a fleet of LLM servers, their router, the scraping of their metrics and the
// controller's loop around any scaling.Policy.
//
// # The model
//
//   - Requests arrive on their own time, whatever the fleet does: from a Trace, in Stages, or by the rates of a Series. Or they
//     follow answers: Sessions.
//   - A replica does continuous batching with chunked prefill. One step carries every sequence that decodes and up to
//     TokenBudget prompt tokens, first come first served, and takes the time that Server says. A request is admitted
//     while there are fewer than MaxSeqs and the KV cache has room for its prompt; where the cache overflows, the newest
//     sequence is taken out and computed again later, first in the queue.
//   - With Scenario.BlockTokens a replica keeps blocks of prompts in the KV memory that no sequence needs, the least recently
//     used go first, and computes only what of a prompt is not there. Sequences that begin alike share memory.
//   - The Router gives a request to the least loaded replica, to one after the other, or by what their prefix caches have.
//   - Types with the roles Prefill and Decode serve a request one after the other, with its KV cache on a link between them, see
//     Transfer. They are scaled apart.
//   - A Gateway holds what comes while no replica is ready, as many and as long as it says.
//   - A replica is provisioned, loads its model, is ready, drains, and is gone. It costs from the request to the end. On
//     the way down, what is not ready goes first, the newest of it, and then what has the least to do; it finishes its
//     batch, and what waits in it goes to others.
//   - The controller sees what it scrapes: Readings with the pods that boot or fail in their interval, quantiles from
//     histograms with vLLM's buckets. It decides at its ticks, its writes take time and may be refused, and it may crash.
//
// Left out: LoRA adapters, speculation, and the network but for the links of Transfer.
//
// # Promises
//
// The same Scenario, policy and seed give the same Result to the bit. Each subsystem has random numbers of its own, so
// that under every policy the same requests arrive and the k-th replica takes as long to start. Requests and tokens in
// KV caches are conserved, and Little's law holds exactly: each run checks it, and fails with ErrBookkeeping if not.
// Memory does not grow with the length of a run, but for the requests that are in the system.
//
// # Use
//
// Run runs a Scenario once; scaling.GroupOf makes a group of a policy; Ramp is the reference scenario. Package traces has
// recorded traffic, package oracle says what the best schedule would have cost, and the command examples/simulate does all of
// it and makes a report.
package sim
