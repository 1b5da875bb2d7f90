package sim

import (
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// A Server says how fast one replica is: the time of one step of its engine,
//
//	step = Base + PrefillToken * prefilled tokens + Sequence * decoding sequences + KVToken * tokens in the KV cache
//
// and its limits. All times are in seconds.
type Server struct {
	Name         string  `json:"name"`
	Base         float64 `json:"base"`         // of every step
	PrefillToken float64 `json:"prefillToken"` // of every prompt token in a step; 1/PrefillToken is the peak prefill rate
	Sequence     float64 `json:"sequence"`     // of every sequence that generates a token in a step
	KVToken      float64 `json:"kvToken"`      // of every token that the KV cache holds
	MaxSeqs      int32   `json:"maxSeqs"`      // most sequences in the batch (vLLM's max_num_seqs)
	TokenBudget  int32   `json:"tokenBudget"`  // most prompt tokens in a step (vLLM's max_num_batched_tokens)
	KVTokens     int64   `json:"kvTokens"`     // size of the KV cache in tokens
}

// Qwen32B is Qwen3-32B in bfloat16 on two H100 SXM of 80 GB (tensor parallel 2), from physics except for two numbers:
//
//	Base          14 ms      65.5 GB of weights read at 2 * 3.35 TB/s take 9.8 ms; the rest is for all-reduces,
//	                         sampling and scheduling, fitted
//	KVToken       39 ns      64 layers * 8 heads * 128 * keys and values of 2 bytes = 256 KiB, read at the same rate
//	PrefillToken  64.1 us    15,600 tokens/s: llm-d measured a peak of 15,375 to 15,928
//	Sequence      40 us      fitted
//	KVTokens      350,000    160 GB at 0.9, less the weights, at 256 KiB
//
// With it the simulator reproduces what llm-d publishes of its SLO-aware loop on this hardware, see docs/simulator.md.
func Qwen32B() Server {
	return Server{
		Name: "Qwen3-32B on 2 H100", Base: 0.014, PrefillToken: 1.0 / 15600, Sequence: 4e-5, KVToken: 39e-9,
		MaxSeqs: 256, TokenBudget: 8192, KVTokens: 350_000,
	}
}

// Qwen32BFitted is an earlier fit to the same publication, with a slow step and a KV cache that costs little to read: 24 ms,
// 5 ns, and 600,000 tokens of cache, which is more than two H100 have room for. It reaches the published load per replica
// too, but at any lower load the histograms of llm-d's router stay in one bucket (20 to 40 ms per token), so that its loop
// never scales down.
func Qwen32BFitted() Server {
	s := Qwen32B()
	s.Name, s.Base, s.KVToken, s.KVTokens = "Qwen3-32B on 2 H100, fitted", 0.024, 5e-9, 600_000
	return s
}

// Llama70BA100 and the next two are Llama-2-70B as measured by Patel et al., "Splitwise" (ISCA 2024), the paper of the
// bundled Azure trace; this one on eight A100 (tensor parallel 8). The KV cache is 90 % of 640 GB, less 138 GB of weights,
// at 320 KiB per token.
func Llama70BA100() Server {
	return Server{
		Name: "Llama-2-70B on 8 A100", Base: 0.0446, PrefillToken: 1.0 / 5420, Sequence: 2.82e-4,
		MaxSeqs: 256, TokenBudget: 8192, KVTokens: 1_300_000,
	}
}

// Llama70BH100x4 is Llama-2-70B on four H100, see Llama70BA100. The KV cache is 90 % of 320 GB, less 138 GB.
func Llama70BH100x4() Server {
	return Server{
		Name: "Llama-2-70B on 4 H100", Base: 0.0294, PrefillToken: 1.0 / 8757, Sequence: 2.32e-4,
		MaxSeqs: 256, TokenBudget: 8192, KVTokens: 450_000,
	}
}

// Llama70BH100x8 is Llama-2-70B on eight H100, see Llama70BA100.
func Llama70BH100x8() Server {
	return Server{
		Name: "Llama-2-70B on 8 H100", Base: 0.0300, PrefillToken: 1.0 / 9982, Sequence: 2.71e-4,
		MaxSeqs: 256, TokenBudget: 8192, KVTokens: 1_300_000,
	}
}

// TokenWork returns the cost of a prompt token and of an answer token in a full batch of requests with these mean lengths,
// in replica-seconds:
//
//	PrefillToken   and   Base/B + Sequence + KVToken K,   K = prompt + answer/2,   B = min(MaxSeqs, KVTokens/K, what TPOT allows)
func (s Server) TokenWork(slo SLO, prompt, answer float64) (promptToken, answerToken float64) {
	kv := prompt + answer/2
	batch := min(float64(s.MaxSeqs), float64(s.KVTokens)/kv)
	each := s.Sequence + s.KVToken*kv
	if each > 0 {
		batch = min(batch, (slo.TPOT.Seconds()-s.Base)/each)
	}
	return s.PrefillToken, s.Base/max(1, batch) + each
}

// Validate reports every wrong field at once, under field.
func (s Server) Validate(field string) error {
	var e scaling.FieldErrors
	seconds := func(x float64, name string, least float64) {
		e.Check(x >= least && x <= 3600, field+"."+name, x, "must be seconds, not negative and at most 3600")
	}
	seconds(s.Base, "base", 0)
	seconds(s.PrefillToken, "prefillToken", 0)
	seconds(s.Sequence, "sequence", 0)
	seconds(s.KVToken, "kvToken", 0)
	e.Check(s.Base+s.Sequence >= 1e-6, field+".base", s.Base, "must be at least 0.000001 together with sequence: a step takes time")
	e.Check(s.KVToken <= 1e-3, field+".kvToken", s.KVToken, "must be at most 0.001")
	e.Check(s.MaxSeqs >= 1 && s.MaxSeqs <= 1<<20, field+".maxSeqs", s.MaxSeqs, "must be within 1 and 1048576")
	e.Check(s.TokenBudget >= 1, field+".tokenBudget", s.TokenBudget, "must be at least 1")
	e.Check(s.KVTokens >= 1 && s.KVTokens <= 1e9, field+".kvTokens", s.KVTokens, "must be within 1 and 1000000000")
	longest := s.Base + s.PrefillToken*min(float64(s.TokenBudget), float64(s.KVTokens)) + s.Sequence*float64(s.MaxSeqs) + s.KVToken*float64(s.KVTokens)
	e.Check(e.Err() != nil || longest <= MaxDuration.Seconds(), field+".prefillToken", s.PrefillToken, "must make no step of more than 90 days, together with the other times: all are times, and not tokens per second")
	return e.Err()
}

// speed is a Server in the simulator's unit of time.
type speed struct {
	base, prefill, sequence, kv int64
	maxSeqs, budget             int32
	room                        int64
	most                        int64 // tokens in the cache that a step can read within the longest run
}

func (s Server) speed() speed {
	ps := func(seconds float64) int64 { return int64(math.Round(seconds * second)) }
	v := speed{
		base: ps(s.Base), prefill: ps(s.PrefillToken), sequence: ps(s.Sequence), kv: ps(s.KVToken),
		maxSeqs: s.MaxSeqs, budget: s.TokenBudget, room: s.KVTokens,
	}
	v.most = ticks(MaxDuration) / max(1, v.kv)
	return v
}

// first returns the duration of a step with these numbers of decoding sequences, prefilled tokens and tokens in the cache. Sequences that
// share blocks may read far more tokens than there is room for; a step that would take longer than the longest run does not end within
// it.
func (s *speed) first(sequences, prefilled int32, kv int64) int64 {
	d := s.base + s.prefill*int64(prefilled) + s.sequence*int64(sequences) + s.kv*kv
	if longest := ticks(MaxDuration) + 1; kv > s.most || uint64(d) > uint64(longest) { // or it overflowed
		return longest
	}
	return d
}

// sum returns the duration of n steps of which the first takes first and each next one growth more.
func sum(n, first, growth int64) int64 { return n*first + growth*(n*(n-1)/2) }

// steps returns the smallest n >= 1 with sum(n, first, growth) >= t, or limit if that is smaller.
func steps(t, first, growth, limit int64) int64 {
	if t <= first {
		return 1
	}
	n := t / first // without growth; with it, fewer steps
	if growth > 0 {
		// solve n*(first - growth/2) + n*n*growth/2 = t, to within one step
		a, b := float64(growth)/2, float64(first)-float64(growth)/2
		n = int64((math.Sqrt(b*b+4*a*float64(t)) - b) / (2 * a))
	}
	n = min(max(n, 1), limit)
	for n > 1 && sum(n-1, first, growth) >= t {
		n--
	}
	for n < limit && sum(n, first, growth) < t {
		n++
	}
	return n
}
