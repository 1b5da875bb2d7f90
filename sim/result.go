package sim

import "time"

// A Result is the outcome of a run: cost and service together, since each alone is easy to make look good.
type Result struct {
	Scenario string `json:"scenario"`
	Policy   string `json:"policy"`
	Seed     uint64 `json:"seed"`

	// Requests is the number of requests that arrived: Finished + Unfinished + Refused + Rejected + Expired. Unfinished
	// requests were not done when the run ended. Refused ones can never fit into the KV cache of the replica that the router chose. Rejected ones came
	// while the gateway's queue was full, and Expired ones were held by it for too long. None of these four meets an SLO.
	Requests   int64 `json:"requests"`
	Finished   int64 `json:"finished"`
	Unfinished int64 `json:"unfinished"`
	Refused    int64 `json:"refused"`
	Rejected   int64 `json:"rejected,omitempty"`
	Expired    int64 `json:"expired,omitempty"`
	// Preempted counts how often a sequence lost its KV cache and was computed again. Retried counts how often a request was
	// sent to another replica because its own crashed or drained before the request was in a batch.
	Preempted int64 `json:"preempted"`
	Retried   int64 `json:"retried"`

	// PrefixQueries are the prompt tokens that were looked up in prefix caches, and PrefixHits those that were found.
	PrefixQueries int64 `json:"prefixQueries,omitempty"`
	PrefixHits    int64 `json:"prefixHits,omitempty"`

	// These fields are of a fleet with roles, and of its finished requests with more than one token. Transfers is their
	// number, Transfer the time from the first token until the KV cache was in the decode replica, and SecondToken the time
	// from the first token to the second, in seconds.
	Transfers   int64     `json:"transfers,omitempty"`
	Transfer    Quantiles `json:"transfer,omitzero"`
	SecondToken Quantiles `json:"secondToken,omitzero"`

	// Reference is, for Sessions, the number of requests that come if each answer takes what Sessions.Reference says. If
	// fewer came because answers were later, the missing ones count as misses.
	Reference int64 `json:"reference,omitempty"`
	// Omitted is, for Sessions, the number of requests that did not come as users waited for an answer: those that would have come in
	// the reference between its answer and the one of this run. They count as misses, too.
	Omitted int64 `json:"omitted,omitempty"`

	// Attainment is the share of Requests and Omitted, or of Reference if that is more, that met both SLOs; AttainedTTFT and
	// AttainedTPOT are the shares that met the one and the other alone.
	Attainment   float64 `json:"attainment"`
	AttainedTTFT float64 `json:"attainedTTFT"`
	AttainedTPOT float64 `json:"attainedTPOT"`

	// ReplicaHours count from the time a replica is asked for until it is gone, starting and draining included, up to the horizon.
	// Cost is their sum with each type's price. AverageReplicas is replica-hours over the horizon, AverageSpec the average
	// of the requested count, and PeakReplicas the most replicas that were counted at once.
	ReplicaHours    float64 `json:"replicaHours"`
	Cost            float64 `json:"cost"`
	AverageReplicas float64 `json:"averageReplicas"`
	AverageSpec     float64 `json:"averageSpec"`
	PeakReplicas    int32   `json:"peakReplicas"`

	// The times are in seconds, within 1 %: to the first token, in a queue before the batch, and per output token. TTFT and
	// Queue cover all requests but the refused and the rejected ones. A request that the run or the gateway ended before its
	// first token, or before its batch, counts with the time that it had waited, so that the quantile is a lower bound. TPOT
	// covers the finished requests.
	TTFT  Quantiles `json:"ttft"`
	Queue Quantiles `json:"queue"`
	TPOT  Quantiles `json:"tpot"`

	// Goodput is the rate of requests that met both SLOs, per second over the horizon; GoodputPerReplicaHour is their number
	// per replica-hour.
	Goodput               float64 `json:"goodput"`
	GoodputPerReplicaHour float64 `json:"goodputPerReplicaHour"`

	// Actions are writes that changed a count. Reversals are the actions within 10 minutes of one in the other direction of
	// the same type. Starts are the replicas that were started: the sum of those of Types. All three count up to the
	// horizon. Refusals and Crashes count over the whole run.
	Actions   int64 `json:"actions"`
	Ups       int64 `json:"ups"`
	Downs     int64 `json:"downs"`
	Reversals int64 `json:"reversals"`
	Starts    int64 `json:"starts"`
	Refusals  int64 `json:"refusals"` // writes that were refused
	Crashes   int64 `json:"crashes"`  // of the controller

	// Under and Over are the replica-hours by which ready replicas were below and above the scenario's demand.
	Under float64 `json:"under"`
	Over  float64 `json:"over"`

	Reasons []ReasonCount `json:"reasons"` // in order of verdict and code
	Types   []TypeResult  `json:"types"`
	Little  Little        `json:"little"`
	Events  int64         `json:"events"`

	// TTFTHistogram is for charts: shares of the requests that TTFT covers.
	TTFTHistogram []Bucket `json:"ttftHistogram,omitempty"`
	// Timeline is the recorded fleet, see Options.Timeline.
	Timeline []Moment `json:"timeline,omitempty"`
}

// Quantiles of a time, in seconds.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// A ReasonCount is how often decisions had a verdict for a reason.
type ReasonCount struct {
	Verdict string `json:"verdict"`
	Code    string `json:"code"`
	Count   int64  `json:"count"`
}

// A TypeResult is the part of the result that belongs to one type.
type TypeResult struct {
	Name         string  `json:"name"`
	ReplicaHours float64 `json:"replicaHours"`
	Cost         float64 `json:"cost"`
	Starts       int64   `json:"starts"`
	Finished     int64   `json:"finished"`
}

// Little is the check of Little's law, L = lambda * W. Different parts of the simulator keep the two sides: one counts
// requests over time and the other adds up the time of each request. They must be equal.
type Little struct {
	L       float64 `json:"l"`       // requests in the system, on average over the run
	LambdaW float64 `json:"lambdaW"` // arrivals per second times the mean time in the system
}

// A Bucket is a bar of a histogram.
type Bucket struct {
	From  float64 `json:"from"` // seconds
	To    float64 `json:"to"`
	Share float64 `json:"share"`
}

// A Moment is the state of the fleet at a time.
type Moment struct {
	At       time.Duration `json:"at"`
	Rate     float64       `json:"rate"`     // requests per second since the moment before
	Spec     int32         `json:"spec"`     // requested replicas
	Ready    int32         `json:"ready"`    // of these, ready
	Replicas int32         `json:"replicas"` // replicas that cost: starting and draining ones too
	Demand   int32         `json:"demand"`   // the scenario's Demand
	Waiting  int32         `json:"waiting"`  // requests, those without a replica included
	Running  int32         `json:"running"`
	KV       float64       `json:"kv"` // share of the KV caches in use, over the ready replicas
}
