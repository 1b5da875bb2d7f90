package sim

import (
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Role is the part of a request that the replicas of a type process.
type Role int8

// The roles. Either all types of a scenario have the role Both, or there is at least one type with each of the other two.
const (
	// Both computes prompts and generates answers. It is the default.
	Both Role = iota
	// Prefill computes prompts and generates the first token of the answer. It keeps the KV cache of the prompt until a
	// decode replica has fetched it.
	Prefill
	// Decode generates the rest of the answer. It recomputes the sequences that it preempts by itself.
	Decode
)

const roleRule = "must be Both, Prefill or Decode"

// String returns the role's name.
func (r Role) String() string {
	switch r {
	case Prefill:
		return "Prefill"
	case Decode:
		return "Decode"
	case Both:
	}
	return "Both"
}

// MarshalText returns the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a role's name.
func (r *Role) UnmarshalText(text []byte) error {
	return unmarshal(r, Decode, text, "role", roleRule)
}

// Transfer says how KV caches get from prefill replicas to decode replicas. The transfer of a cache takes
//
//	TokenBytes * tokens of the prompt / Type.Bandwidth + Latency
//
// at the slower of the two ends. Both ends transfer one cache after the other: the sender in the order of the requests for
// them, the receiver in the order in which sending began. Sending and receiving do not slow each other down, nor the steps
// of a replica. A decode replica requests caches, first come first served, at the end of a step, when there is room in its
// KV cache and in its batch. A requested cache counts in both from then on.
type Transfer struct {
	// TokenBytes is the KV cache of a token in bytes: 2 * layers * KV heads * head size * bytes per number. It is 262,144
	// for Qwen3-32B in bfloat16 and 327,680 for Llama-2-70B.
	TokenBytes float64 `json:"tokenBytes"`
	// Latency is added to each transfer.
	Latency time.Duration `json:"latency"`
}

// A Handover says when the KV cache of a finished request was transferred. All times are since the start of the run.
type Handover struct {
	Arrived time.Duration `json:"arrived"`
	Input   int32         `json:"input"`
	Output  int32         `json:"output"`
	First   time.Duration `json:"first"`  // its first token
	Came    time.Duration `json:"came"`   // when its cache was in the decode replica
	Second  time.Duration `json:"second"` // its second token
}

// validateRoles checks the roles of the types and the transfer between them.
func (s *Scenario) validateRoles(e *scaling.FieldErrors) {
	count := [Decode + 1]int{}
	for i := range s.Types {
		if r := s.Types[i].Role; r >= Both && r <= Decode {
			count[r]++
		}
	}
	apart := count[Prefill]+count[Decode] > 0
	e.Check(!apart || count[Both] == 0, "types", count[Both], "must have no type with the role Both beside Prefill and Decode")
	e.Check(!apart || count[Prefill] > 0 && count[Decode] > 0, "types", len(s.Types), "must have a type with the role Prefill and one with Decode, or none of them")
	linked := slices.ContainsFunc(s.Types, func(t Type) bool { return t.Bandwidth > 0 })
	t := s.Transfer
	e.Check(t.TokenBytes >= 0 && t.TokenBytes <= 1e9, "transfer.tokenBytes", t.TokenBytes, "must be within 0 and 1e9")
	e.Check(t.TokenBytes > 0 || !linked, "transfer.tokenBytes", t.TokenBytes, "must be above 0 where a type has a bandwidth")
	e.Check(t.Latency >= 0 && t.Latency <= time.Hour, "transfer.latency", t.Latency, "must be within 0 and 1h")
	e.Check(apart || t == Transfer{}, "transfer", t, "must be empty where no type has the role Prefill or Decode")
}

// link returns the transfer time of one token of a KV cache on a type's link.
func (s *Scenario) link(t *Type) int64 {
	if t.Bandwidth == 0 {
		return 0
	}
	return int64(min(math.Round(s.Transfer.TokenBytes/t.Bandwidth*second), float64(ticks(MaxDuration))))
}

// apart reports whether replicas have roles.
func (s *Scenario) apart() bool { return len(s.Types) > 0 && s.Types[0].Role != Both }

// later returns the time at + tokens*each, or never if that is beyond the end of any run.
func later(at, tokens, each int64) int64 {
	most := ticks(MaxDuration)
	if at > most || each > 0 && tokens > (most-at)/each {
		return never
	}
	return at + tokens*each
}
