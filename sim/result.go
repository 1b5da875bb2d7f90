package sim

import "time"

// A Result is what came of a run: cost and service together, as each alone is easy to make look good.
type Result struct {
	Scenario string `json:"scenario"`
	Policy   string `json:"policy"`
	Seed     uint64 `json:"seed"`

	// Requests are those that arrived: Finished + Unfinished + Refused + Rejected + Expired. Unfinished were not done when the
	// run ended; Refused can never fit into a replica's KV cache; Rejected came while the gateway's queue was full, and
	// Expired were held by it for too long. None of these meets an SLO.
	Requests   int64 `json:"requests"`
	Finished   int64 `json:"finished"`
	Unfinished int64 `json:"unfinished"`
	Refused    int64 `json:"refused"`
	Rejected   int64 `json:"rejected,omitempty"`
	Expired    int64 `json:"expired,omitempty"`
	// Preempted counts how often a sequence lost its KV cache and was computed again, Retried how often a request was
	// sent to another replica because its own crashed or drained before it was in a batch.
	Preempted int64 `json:"preempted"`
	Retried   int64 `json:"retried"`

	// PrefixQueries are the tokens of prompts that were looked up in prefix caches, and PrefixHits those that were there.
	PrefixQueries int64 `json:"prefixQueries,omitempty"`
	PrefixHits    int64 `json:"prefixHits,omitempty"`

	// Of a fleet with roles, and of its finished requests with more than one token: Transfers is their number, Transfer the time
	// from the first token until the KV cache was in the replica that decodes, and SecondToken that from the first token to
	// the second, in seconds.
	Transfers   int64     `json:"transfers,omitempty"`
	Transfer    Quantiles `json:"transfer,omitzero"`
	SecondToken Quantiles `json:"secondToken,omitzero"`

	// Reference are, of Sessions, the requests that come if each answer takes what Sessions.Reference says. Where fewer came
	// since answers were later, those that did not come are missed.
	Reference int64 `json:"reference,omitempty"`

	// Attainment is the share of Requests, or of Reference if those are more, that met both SLOs; AttainedTTFT and
	// AttainedTPOT that of each.
	Attainment   float64 `json:"attainment"`
	AttainedTTFT float64 `json:"attainedTTFT"`
	AttainedTPOT float64 `json:"attainedTPOT"`

	// ReplicaHours are counted from request to gone, booting and draining included, up to the horizon; Cost is their
	// sum with each type's price. AverageReplicas are replica-hours over the horizon, AverageSpec what was asked for,
	// PeakReplicas the most that were counted at once.
	ReplicaHours    float64 `json:"replicaHours"`
	Cost            float64 `json:"cost"`
	AverageReplicas float64 `json:"averageReplicas"`
	AverageSpec     float64 `json:"averageSpec"`
	PeakReplicas    int32   `json:"peakReplicas"`

	// Times are in seconds, within 1 %: to the first token, in a queue before the batch, and per output token. TTFT and
	// Queue are of all requests but the refused and the rejected: one that the run or the gateway ended before its first token, or before its batch,
	// counts with the time that it had waited, so that a quantile is the least that it can be. TPOT is of the finished.
	TTFT  Quantiles `json:"ttft"`
	Queue Quantiles `json:"queue"`
	TPOT  Quantiles `json:"tpot"`

	// Goodput are requests per second that met both SLOs, over the horizon; GoodputPerReplicaHour the requests that did
	// for each replica-hour.
	Goodput               float64 `json:"goodput"`
	GoodputPerReplicaHour float64 `json:"goodputPerReplicaHour"`

	// Actions are writes that changed a count, Reversals those within 10 minutes of one in the other direction of the
	// same type, Starts the replicas that were started, with those of Types as their sum: all up to the horizon. Refusals
	// and Crashes are of the whole run.
	Actions   int64 `json:"actions"`
	Ups       int64 `json:"ups"`
	Downs     int64 `json:"downs"`
	Reversals int64 `json:"reversals"`
	Starts    int64 `json:"starts"`
	Refusals  int64 `json:"refusals"` // writes that were refused
	Crashes   int64 `json:"crashes"`  // of the controller

	// Under and Over are replica-hours that ready replicas were below and above the scenario's demand.
	Under float64 `json:"under"`
	Over  float64 `json:"over"`

	Reasons []ReasonCount `json:"reasons"` // in order of verdict and code
	Types   []TypeResult  `json:"types"`
	Little  Little        `json:"little"`
	Events  int64         `json:"events"`

	// TTFTHistogram is for pictures: shares of the requests that TTFT is of.
	TTFTHistogram []Bucket `json:"ttftHistogram,omitempty"`
	// Timeline is what was recorded, see Options.Timeline.
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

// A ReasonCount says how often a decision had a verdict for a reason.
type ReasonCount struct {
	Verdict string `json:"verdict"`
	Code    string `json:"code"`
	Count   int64  `json:"count"`
}

// A TypeResult is the part of one type.
type TypeResult struct {
	Name         string  `json:"name"`
	ReplicaHours float64 `json:"replicaHours"`
	Cost         float64 `json:"cost"`
	Starts       int64   `json:"starts"`
	Finished     int64   `json:"finished"`
}

// Little is the check of Little's law, L = lambda * W: both sides are kept by different parts of the simulator, one
// counting requests over time and the other the time of each request, and must be the same.
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

// A Moment is the fleet at a time.
type Moment struct {
	At       time.Duration `json:"at"`
	Rate     float64       `json:"rate"`     // requests per second since the moment before
	Spec     int32         `json:"spec"`     // replicas asked for
	Ready    int32         `json:"ready"`    // of them, ready
	Replicas int32         `json:"replicas"` // that cost: booting and draining too
	Demand   int32         `json:"demand"`   // of the scenario
	Waiting  int32         `json:"waiting"`  // requests, those without a replica included
	Running  int32         `json:"running"`
	KV       float64       `json:"kv"` // share in use, over the ready replicas
}
