package sim

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Signal is a quantity that can be measured on the fleet.
type Signal int8

// The signals. Those of replicas are what a vLLM server exposes: a Reading is the mean over the pods, an interval if pods
// are missing. Those of the router cover the whole fleet and are known exactly if there was traffic.
const (
	Waiting      Signal = iota // requests that wait in a replica (vllm:num_requests_waiting)
	Running                    // requests in its batch (vllm:num_requests_running)
	InFlight                   // Waiting + Running
	KVCacheUsage               // share of its KV cache in use (vllm:kv_cache_usage_perc)
	TTFT                       // quantile of the time to first token within the window, from the replicas' histograms
	TPOT                       // quantile of the time per output token, measured in the same way
	QueueTime                  // quantile of the time from arrival at a replica to its batch, measured in the same way
	RouterTTFT                 // quantile of the time from arrival at the router to the first token
	RouterTPOT                 // quantile of the time per output token as measured by the router
	// PredictedTTFT is the quantile of the predictions of a predictor that knows the chosen replica when the request
	// arrives: the time for the prompt tokens before it and its own at the prefill rate, plus the wait for room, if there is
	// none, at the rate of the last minute. It is the best that a trained latency predictor could be.
	PredictedTTFT
	RequestRate // requests per second that arrived at the router within the window
	// InFlightTokens are the prompt tokens, over the fleet, that replicas were given and have not computed yet
	// (llm_d_epp_inflight_tokens), without those expected in a prefix cache. With prefill and decode apart, tokens count
	// until their KV cache has been fetched, since the router learns of a computed prompt from the answer of the decode
	// replica.
	InFlightTokens
	// Held are the requests that the gateway holds because no replica is ready (llm_d_epp_flow_control_queue_size). No
	// replica reports them, and with no replicas they are the only visible load.
	Held

	// The signals from here on are histograms of the whole fleet, not readings: what its pods have counted since they were
	// first scraped, see [scaling.Histogram].

	PromptTokens     // prompt tokens of requests that finished (vllm:request_prompt_tokens)
	GenerationTokens // answer tokens of requests that finished (vllm:request_generation_tokens)
	Prefilled        // prompt tokens computed, not found in a prefix cache, of requests with a first token; in one bucket
	TTFTs            // seconds to the first token (vllm:time_to_first_token_seconds)
	TPOTs            // seconds per output token after the first, by request (vllm:request_time_per_output_token_seconds)
)

// String returns the signal's name.
func (s Signal) String() string {
	names := []string{"Waiting", "Running", "InFlight", "KVCacheUsage", "TTFT", "TPOT", "QueueTime", "RouterTTFT", "RouterTPOT", "PredictedTTFT", "RequestRate", "InFlightTokens", "Held", "PromptTokens", "GenerationTokens", "Prefilled", "TTFTs", "TPOTs"}
	if s < 0 || int(s) >= len(names) {
		return "Signal(?)"
	}
	return names[s]
}

// MarshalText returns the signal's name.
func (s Signal) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a signal's name.
func (s *Signal) UnmarshalText(text []byte) error {
	return unmarshal(s, TPOTs, text, "signal", "must be the name of a signal")
}

// unmarshal reads the name of a constant that is counted up from 0 to last.
func unmarshal[T interface {
	~int8
	fmt.Stringer
}](to *T, last T, text []byte, field, rule string) error {
	for known := T(0); known <= last; known++ {
		if known.String() == string(text) {
			*to = known
			return nil
		}
	}
	return &scaling.FieldError{Field: field, Value: string(text), Rule: rule}
}

// A Metric is a signal with the name by which the policy knows it.
type Metric struct {
	Name   string `json:"name"`
	Signal Signal `json:"signal"`
	// Type is the type whose pods are read; empty is all. Only Waiting, Running, InFlight and KVCacheUsage have pods.
	Type string `json:"type,omitempty"`
	// Fill is the value of a missing pod in the reading's upper end, usually the policy's threshold for scaling up. 0 means
	// no limit (+Inf): a missing pod then prevents every scale-down.
	Fill float64 `json:"fill"`
	// Window is the time over which quantiles and rates are taken, in whole scrapes, at most 100,000; 0 means a minute.
	Window time.Duration `json:"window"`
	// Quantile is the quantile to report, 0.5 for the median; 0 means 0.9.
	Quantile float64 `json:"quantile"`
}

// Names of the metrics: vLLM's, and own names for those that vLLM does not have.
const (
	MetricWaiting      = "vllm:num_requests_waiting"
	MetricRunning      = "vllm:num_requests_running"
	MetricInFlight     = "in_flight"
	MetricKVCacheUsage = "vllm:kv_cache_usage_perc"
)

// mostRounds is how many scrapes a window has at most, as the counts of each are kept.
const mostRounds = 100_000

// window returns the time over which quantiles and rates are taken.
func (m *Metric) window() time.Duration { return cmp.Or(m.Window, time.Minute) }

func (m *Metric) validate(field string) error {
	var e scaling.FieldErrors
	e.Check(m.Name != "", field+".name", m.Name, "must be set")
	e.Check(m.Signal >= Waiting && m.Signal <= TPOTs, field+".signal", int(m.Signal), "must be one of the signals")
	e.Check(m.Type == "" || m.Signal <= KVCacheUsage, field+".type", m.Type, "must be empty but for Waiting, Running, InFlight and KVCacheUsage")
	e.Check(m.Fill >= 0 && !math.IsInf(m.Fill, 1), field+".fill", m.Fill, "must be a number that is not negative")
	e.Check(m.Window >= 0 && m.Window <= 24*time.Hour, field+".window", m.Window, "must be within 0 and 24h")
	e.Check(m.Quantile >= 0 && m.Quantile < 1, field+".quantile", m.Quantile, "must be within 0 and 1")
	return e.Err()
}
