package calibrate

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// A Card is an accelerator with the numbers of its data sheet.
type Card struct {
	Name         string  `json:"name"`
	MemoryGB     float64 `json:"memoryGB"`
	BandwidthGBs float64 `json:"bandwidthGBs"` // of its memory, in GB/s
	Teraflops    float64 `json:"teraflops"`    // with BF16, dense
	Source       string  `json:"source"`
}

// A Model is the shape of a transformer with grouped attention and gated layers, dense or mixture-of-experts.
type Model struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	// Billions and ActiveBillions are the published parameter counts, for a check; 0 is unknown.
	Billions       float64 `json:"billions"`
	ActiveBillions float64 `json:"activeBillions"`
	Config         Config  `json:"config"`
}

// A Config is the part of a Hugging Face config.json that a roofline needs.
type Config struct {
	HiddenSize            float64 `json:"hidden_size"`
	NumHiddenLayers       float64 `json:"num_hidden_layers"`
	NumAttentionHeads     float64 `json:"num_attention_heads"`
	NumKeyValueHeads      float64 `json:"num_key_value_heads"` // 0 means NumAttentionHeads
	HeadDim               float64 `json:"head_dim"`            // 0 means HiddenSize / NumAttentionHeads
	IntermediateSize      float64 `json:"intermediate_size"`
	VocabSize             float64 `json:"vocab_size"`
	TieWordEmbeddings     bool    `json:"tie_word_embeddings"`
	NumExperts            float64 `json:"num_experts"`       // 0 means dense
	NumLocalExperts       float64 `json:"num_local_experts"` // another name of NumExperts
	NumExpertsPerTok      float64 `json:"num_experts_per_tok"`
	MoEIntermediateSize   float64 `json:"moe_intermediate_size"` // 0 means IntermediateSize
	KVLoraRank            float64 `json:"kv_lora_rank"`          // multi-head latent attention, which is not supported
	SharedIntermediate    float64 `json:"shared_expert_intermediate_size"`
	NSharedExperts        float64 `json:"n_shared_experts"`
	FirstKDenseReplace    float64 `json:"first_k_dense_replace"`
	NumRoutedExpertsOther float64 `json:"n_routed_experts"`
}

// ReadConfig reads a model's config.json. It ignores fields that a roofline does not need; the errors name every field that
// is missing or not supported.
func ReadConfig(data []byte, file string) (Config, error) {
	var c Config
	if len(data) > 1<<20 {
		return c, fmt.Errorf("%s: %w", file, &scaling.FieldError{Field: "length", Value: len(data), Rule: "must be at most 1048576 bytes"})
	}
	in := newDecoder(unmarked(data))
	x, err := decode(in, "", 0)
	if err == nil {
		if _, more := in.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("must have one document")
		}
	} else if wrong := new(scaling.FieldError); !errors.As(err, &wrong) {
		err = fmt.Errorf("must be JSON: %w", unexpected(err))
	}
	outer, ok := x.(map[string]any)
	if err == nil && !ok {
		err = &scaling.FieldError{Field: "document", Value: told(x), Rule: "must be an object"}
	}
	if err == nil {
		err = c.read(outer)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// read reads the fields of a document, in which a multimodal model has them in text_config.
func (c *Config) read(outer tree) error {
	var e scaling.FieldErrors
	inner := outer
	if x := outer["text_config"]; x != nil {
		text, ok := x.(map[string]any)
		e.Check(ok, "text_config", told(x), "must be an object")
		inner = text
	}
	for _, f := range c.fields() {
		if x := inner[f.name]; x != nil { // null counts as missing
			var ok bool
			*f.value, ok = inner.at(f.name)
			e.Check(ok, f.name, told(x), "must be a number")
		}
	}
	if x := inner["tie_word_embeddings"]; x != nil {
		var ok bool
		c.TieWordEmbeddings, ok = x.(bool)
		e.Check(ok, "tie_word_embeddings", told(x), "must be true or false")
	}
	if e.Err() == nil {
		e.Add(c.validate())
	}
	for _, name := range uncommon() {
		e.Check(inner[name] == nil, name, told(inner[name]), notCovered)
	}
	if x := inner["decoder_sparse_step"]; x != nil {
		step, ok := inner.at("decoder_sparse_step")
		e.Check(ok && step == 1, "decoder_sparse_step", told(x), notCovered+", unless it is 1")
	}
	if q := cmp.Or(inner["quantization_config"], outer["quantization_config"]); q != nil {
		method := q
		if m, ok := q.(map[string]any); ok {
			method = tree(m).text("quant_method")
		}
		e.Check(false, "quantization_config", told(method), "is not covered, as weights are taken to have two bytes: calibrate by a benchmark or by production")
	}
	return e.Err()
}

const notCovered = "is not covered: calibrate by a benchmark or by production"

// uncommon are fields of models whose layers are not all alike, so that their weights and KV caches are others: Llama 4's dense
// layers and shared experts, and layers of Jamba, Mamba, Nemotron-H and Qwen3-Next that have no KV cache.
func uncommon() []string {
	return []string{
		"intermediate_size_mlp", "interleave_moe_layer_step", "attn_layer_period", "expert_layer_period", "mamba_d_state",
		"ssm_state_size", "hybrid_override_pattern", "full_attention_interval",
	}
}

// A shape is a number of a Config, with its name in config.json.
type shape struct {
	name  string
	value *float64
	least float64 // 0 means optional
	most  float64 // 0 means not supported
}

func (c *Config) fields() []shape {
	const most = 1e7
	needed := 0.0
	if c.experts() > 0 {
		needed = 1
	}
	return []shape{
		{"hidden_size", &c.HiddenSize, 1, most},
		{"num_hidden_layers", &c.NumHiddenLayers, 1, most},
		{"num_attention_heads", &c.NumAttentionHeads, 1, most},
		{"num_key_value_heads", &c.NumKeyValueHeads, 0, most},
		{"head_dim", &c.HeadDim, 0, most},
		{"intermediate_size", &c.IntermediateSize, 1, most},
		{"vocab_size", &c.VocabSize, 1, most},
		{"num_experts", &c.NumExperts, 0, most},
		{"num_local_experts", &c.NumLocalExperts, 0, most},
		{"num_experts_per_tok", &c.NumExpertsPerTok, needed, most},
		{"moe_intermediate_size", &c.MoEIntermediateSize, 0, most},
		{"kv_lora_rank", &c.KVLoraRank, 0, 0},
		{"n_routed_experts", &c.NumRoutedExpertsOther, 0, 0},
		{"n_shared_experts", &c.NSharedExperts, 0, 0},
		{"shared_expert_intermediate_size", &c.SharedIntermediate, 0, 0},
		{"first_k_dense_replace", &c.FirstKDenseReplace, 0, 0},
	}
}

func (c *Config) validate() error {
	var e scaling.FieldErrors
	for _, f := range c.fields() {
		x, rule := *f.value, "must be within 1 and 10000000"
		if f.most == 0 {
			rule = notCovered
		}
		e.Check(x == 0 && f.least == 0 || x >= 1 && x <= f.most, f.name, x, rule)
	}
	e.Check(c.NumExpertsPerTok <= c.experts() || c.experts() == 0, "num_experts_per_tok", c.NumExpertsPerTok, "must not be above the number of experts")
	return e.Err()
}

func (c *Config) experts() float64 { return max(c.NumExperts, c.NumLocalExperts) }

// Weights returns the parameters of the model, and those that one token uses.
func (c *Config) Weights() (all, active float64) {
	head := cmp.Or(c.HeadDim, c.HiddenSize/c.NumAttentionHeads)
	attention := 2*c.HiddenSize*c.NumAttentionHeads*head + 2*c.HiddenSize*cmp.Or(c.NumKeyValueHeads, c.NumAttentionHeads)*head
	layer, used := 3*c.HiddenSize*c.IntermediateSize, 3*c.HiddenSize*c.IntermediateSize
	if n := c.experts(); n > 0 {
		expert := 3 * c.HiddenSize * cmp.Or(c.MoEIntermediateSize, c.IntermediateSize)
		layer, used = n*expert+n*c.HiddenSize, c.NumExpertsPerTok*expert+n*c.HiddenSize
	}
	embeddings := 2 * c.VocabSize * c.HiddenSize
	if c.TieWordEmbeddings {
		embeddings /= 2
	}
	return c.NumHiddenLayers*(attention+layer) + embeddings, c.NumHiddenLayers*(attention+used) + embeddings
}

// KVBytes returns the bytes of a token in the KV cache, with two bytes per number.
func (c *Config) KVBytes() float64 {
	return 2 * 2 * c.NumHiddenLayers * cmp.Or(c.NumKeyValueHeads, c.NumAttentionHeads) * cmp.Or(c.HeadDim, c.HiddenSize/c.NumAttentionHeads)
}

// The shares of the data sheet that a good present engine reaches, from Qwen3-32B on two H100 (sim.Qwen32B): 70 % of the
// bandwidth for reading weights, and half of the arithmetic for prompts. Older engines reach a third of that.
const (
	reachedBandwidth  = 0.7
	reachedArithmetic = 0.52
	usedMemory        = 0.9 // vLLM's gpu_memory_utilization
	bytesPerWeight    = 2   // BF16
)

// Roofline returns a server from the shape of its model and a number of cards, with tensor parallelism and weights of two
// bytes:
//
//	Base          the weights, read once a step          Sequence   the arithmetic of a token
//	PrefillToken  the arithmetic of a token              KVToken    its bytes, read once a step
//
// None of it is measured. Lower ends are the limits of the data sheets, which nothing can beat. There are no upper ends, as
// an engine can be arbitrarily slow. All experts are assumed to be read, as they are with many sequences; the lower end has
// only those of one token. Errors name the wrong field, for example if the weights do not fit.
func Roofline(name string, c Config, card Card, cards int) (Document, error) {
	var e scaling.FieldErrors
	e.Add(c.validate())
	e.Check(cards >= 1 && cards <= 1024, "cards", cards, "must be within 1 and 1024")
	e.Check(card.MemoryGB > 0 && card.BandwidthGBs > 0 && card.Teraflops > 0, "card", card.Name, "must have memory, bandwidth and arithmetic")
	if err := e.Err(); err != nil {
		return Document{}, err
	}
	n := float64(cards)
	all, active := c.Weights()
	bandwidth, arithmetic := n*card.BandwidthGBs*1e9, n*card.Teraflops*1e12
	room := min(math.Floor((n*card.MemoryGB*1e9*usedMemory-all*bytesPerWeight)/c.KVBytes()), 1e9)
	if room < 1 {
		return Document{}, &scaling.FieldError{Field: "cards", Value: cards, Rule: fmt.Sprintf("must have room for weights of %.0f GB: %s has %g GB", all*bytesPerWeight/1e9, card.Name, card.MemoryGB)}
	}
	const why = "computed from data sheets, and measured by nobody"
	computed := func(value, lower float64) Estimate {
		return Estimate{Value: value, Lower: lower, Upper: math.Inf(1), Source: Computed, Unknown: why}
	}
	work := 2 * active / arithmetic
	return Document{
		Name:         fmt.Sprintf("%s on %d %s, by roofline", name, cards, card.Name),
		Base:         computed(all*bytesPerWeight/bandwidth/reachedBandwidth, active*bytesPerWeight/bandwidth),
		PrefillToken: computed(work/reachedArithmetic, work),
		Sequence:     computed(work, 0),
		KVToken:      computed(c.KVBytes()/bandwidth, c.KVBytes()/bandwidth),
		KVTokens:     Estimate{Value: room, Lower: 0, Upper: room / usedMemory * 1.2, Source: Computed, Unknown: why},
		MaxSeqs:      Estimate{Value: defaultMaxSeqs, Lower: 1, Upper: math.Inf(1), Source: Assumed},
		TokenBudget:  Estimate{Value: defaultTokenBudget, Lower: 1, Upper: math.Inf(1), Source: Assumed},
	}, nil
}

//go:embed roofline.json
var sheets []byte

// Sheets returns the known cards and models, each with its source.
func Sheets() (cards []Card, models []Model, err error) {
	var s struct {
		Cards  []Card  `json:"cards"`
		Models []Model `json:"models"`
	}
	err = json.Unmarshal(sheets, &s)
	return s.Cards, s.Models, err
}
