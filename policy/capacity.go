package policy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A CapacityScaler runs as many replicas as the work needs that arrives, in tokens, and finds by itself how much work one
// replica may be given: it replays its last hour every five minutes. Nothing of it is to be tuned.
type CapacityScaler struct {
	// SLO is what requests must meet.
	SLO CapacitySLO `json:"slo"`

	// Server is the speed of a replica.
	Server CapacityServer `json:"server"`

	// ColdStartSeconds is the assumed duration of a start until one has been observed: 300 if unset.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	ColdStartSeconds *int32 `json:"coldStartSeconds,omitempty"`

	// Source is the engine of the pods, and where they serve metrics. If unset it is vLLM at its default port.
	// +optional
	// +kubebuilder:default={}
	Source CapacitySource `json:"source,omitempty"`

	// Forecast is a floor: the replicas for the work that earlier days had at this time. If unset there is one, for days in UTC.
	// +optional
	// +kubebuilder:default={}
	Forecast *Forecast `json:"forecast,omitempty"`
}

// A CapacitySLO is what a request must meet, and the share of requests that must.
type CapacitySLO struct {
	// TTFTSeconds is the longest time to the first token.
	// +kubebuilder:validation:XValidation:rule="double(string(self)) > 0.0 && double(string(self)) <= 3600.0",messageExpression="'%s: must be above 0 and at most 3600'.format([string(self)])"
	TTFTSeconds Decimal `json:"ttftSeconds"`
	// TPOTSeconds is the longest time per output token after the first, "0.1" for ten a second.
	// +kubebuilder:validation:XValidation:rule="double(string(self)) > 0.0 && double(string(self)) <= 3600.0",messageExpression="'%s: must be above 0 and at most 3600'.format([string(self)])"
	TPOTSeconds Decimal `json:"tpotSeconds"`
	// Goal is the share of requests that must meet both: "0.99" if unset.
	// +optional
	// +kubebuilder:validation:XValidation:rule="double(string(self)) >= 0.5 && double(string(self)) < 1.0",messageExpression="'%s: must be at least 0.5 and below 1'.format([string(self)])"
	Goal *Decimal `json:"goal,omitempty"`
}

// A CapacityServer is the speed of a replica: a known server by name, or the times of one step of its engine. Values
// given beside a name replace the known ones.
//
//	step = base + prefillToken * prompt tokens + sequence * sequences + kvToken * tokens in the KV cache
//
// Where all times are wrong by one factor, that is found out.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) || (has(self.baseMicroseconds) && has(self.prefillTokenMicroseconds) && has(self.maxSeqs) && has(self.tokenBudget) && has(self.kvTokens))",message="must have a name, or baseMicroseconds, prefillTokenMicroseconds, maxSeqs, tokenBudget and kvTokens"
type CapacityServer struct {
	// Name is the name of a known server: Qwen3-32B on two H100, Llama-2-70B on eight A100, on four H100, on eight
	// H100.
	// +optional
	// +kubebuilder:validation:Enum=qwen3-32b-2xh100;llama2-70b-8xa100;llama2-70b-4xh100;llama2-70b-8xh100
	Name string `json:"name,omitempty"`
	// BaseMicroseconds is the fixed time of a step.
	// +optional
	// +kubebuilder:validation:XValidation:rule="double(string(self)) >= 1.0 && double(string(self)) <= 3600000000.0",messageExpression="'%s: must be at least 1 and at most 3600000000'.format([string(self)])"
	BaseMicroseconds *Decimal `json:"baseMicroseconds,omitempty"`
	// PrefillTokenMicroseconds is the time of a step per prompt token: a million divided by the peak rate of prompt
	// tokens per second.
	// +optional
	// +kubebuilder:validation:XValidation:rule="double(string(self)) <= 3600000000.0",messageExpression="'%s: must be at most 3600000000'.format([string(self)])"
	PrefillTokenMicroseconds *Decimal `json:"prefillTokenMicroseconds,omitempty"`
	// SequenceMicroseconds is the time of a step per sequence that gets a token.
	// +optional
	// +kubebuilder:validation:XValidation:rule="double(string(self)) <= 3600000000.0",messageExpression="'%s: must be at most 3600000000'.format([string(self)])"
	SequenceMicroseconds *Decimal `json:"sequenceMicroseconds,omitempty"`
	// KVTokenMicroseconds is the time of a step per token in the KV cache.
	// +optional
	// +kubebuilder:validation:XValidation:rule="double(string(self)) <= 1000.0",messageExpression="'%s: must be at most 1000'.format([string(self)])"
	KVTokenMicroseconds *Decimal `json:"kvTokenMicroseconds,omitempty"`
	// MaxSeqs is the maximum number of sequences in a batch (vLLM's max_num_seqs).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	MaxSeqs *int32 `json:"maxSeqs,omitempty"`
	// TokenBudget is the maximum number of prompt tokens in a step (vLLM's max_num_batched_tokens).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	TokenBudget *int32 `json:"tokenBudget,omitempty"`
	// KVTokens is the size of the KV cache in tokens.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	KVTokens *int32 `json:"kvTokens,omitempty"`
}

// A CapacitySource says what the pods run, and where they are asked.
type CapacitySource struct {
	// Engine is the inference server of the pods: VLLM, or SGLang with --enable-metrics. Other engines lack the
	// histograms of lengths and of times to the first token that are needed.
	// +optional
	// +kubebuilder:default=VLLM
	// +kubebuilder:validation:Enum=VLLM;SGLang
	Engine string `json:"engine,omitempty"`
	// Protocol is the protocol of the metrics endpoint.
	// +optional
	// +kubebuilder:default=http
	Protocol ProtocolType `json:"protocol,omitempty"`
	// Port is the port at which pods serve metrics. If unset it is the engine's default.
	// +optional
	Port *PortNumber `json:"port,omitempty"`
	// Path is the path at which pods serve metrics. If unset it is the engine's default.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/(([A-Za-z0-9._~!$&()*+,;=:@-]|%[0-9A-Fa-f]{2})([A-Za-z0-9._~!$&()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?(\?[A-Za-z0-9._~!$&()*+,;=:@/?%\[\]-]*)?$`
	Path string `json:"path,omitempty"`
	// Labels keep only the series that have each of these labels with this value.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]LabelValue `json:"labels,omitempty"`
}

// Servers returns the names of the known servers.
func Servers() []string {
	return []string{"qwen3-32b-2xh100", "llama2-70b-8xa100", "llama2-70b-4xh100", "llama2-70b-8xh100"}
}

// knownServer returns the server of a name; ok is false if the name is unknown.
func knownServer(name string) (v sim.Server, ok bool) {
	switch name {
	case "qwen3-32b-2xh100":
		return sim.Qwen32B(), true
	case "llama2-70b-8xa100":
		return sim.Llama70BA100(), true
	case "llama2-70b-4xh100":
		return sim.Llama70BH100x4(), true
	case "llama2-70b-8xh100":
		return sim.Llama70BH100x8(), true
	}
	return v, name == ""
}

func (b *builder) capacity(s *CapacityScaler, p place) scaling.Policy {
	c, names := b.capacityConfig(s, p), p.capacityPaths(b.root)
	if b.work == nil {
		b.work = &c
	}
	policy := live(b, names, c, func(c capacity.Config) (capacity.Scaler, error) {
		var tuner capacity.Tuner
		if b.tuner != nil {
			tuner = b.tuner()
		}
		return capacity.New(c, tuner)
	})
	floor := forecast.For(p.within, nil)
	floor.ColdStart, floor.Demand = c.ColdStart, "capacity "+s.Server.Name
	return b.foreseen(policy, s.Forecast, capacity.Demand, floor, p.at+"capacity.", names)
}

// capacityConfig returns the configuration of a capacity scaler and records its metrics.
func (b *builder) capacityConfig(s *CapacityScaler, p place) capacity.Config {
	at := p.at + "capacity."
	server, known := knownServer(s.Server.Name)
	if !known {
		server = sim.Qwen32B() // so that the other fields can still be checked
	}
	b.errs.Check(known, at+"server.name", s.Server.Name, "must be "+oneOf(Servers()))
	micro := func(to *float64, given *Decimal, name string, most float64) {
		if given == nil {
			return
		}
		us := b.decimal(*given, at+"server."+name)
		*to = us / 1e6
		b.errs.Check(us <= most, at+"server."+name, given.String(), fmt.Sprintf("must be at most %.0f", most))
	}
	if g := &s.Server; g.Name == "" {
		missing := g.BaseMicroseconds == nil || g.PrefillTokenMicroseconds == nil || g.MaxSeqs == nil || g.TokenBudget == nil || g.KVTokens == nil
		b.errs.Check(!missing, at+"server", "", "must have a name, or baseMicroseconds, prefillTokenMicroseconds, maxSeqs, tokenBudget and kvTokens")
		if missing {
			server = sim.Qwen32B() // likewise
		}
	}
	micro(&server.Base, s.Server.BaseMicroseconds, "baseMicroseconds", 3.6e9)
	b.errs.Check(s.Server.BaseMicroseconds == nil || b.unread[at+"server.baseMicroseconds"] || server.Base >= 1e-6, at+"server.baseMicroseconds",
		text(s.Server.BaseMicroseconds), "must be at least 1")
	micro(&server.PrefillToken, s.Server.PrefillTokenMicroseconds, "prefillTokenMicroseconds", 3.6e9)
	micro(&server.Sequence, s.Server.SequenceMicroseconds, "sequenceMicroseconds", 3.6e9)
	micro(&server.KVToken, s.Server.KVTokenMicroseconds, "kvTokenMicroseconds", 1000)
	set(&server.MaxSeqs, s.Server.MaxSeqs)
	set(&server.TokenBudget, s.Server.TokenBudget)
	if s.Server.KVTokens != nil {
		server.KVTokens = int64(*s.Server.KVTokens)
	}
	c := b.worked(s.SLO, &s.Source, server, p, at)
	setSeconds(&c.ColdStart, s.ColdStartSeconds)
	return c
}

// worked returns the configuration for a server and an SLO, and records its metrics.
func (b *builder) worked(want CapacitySLO, from *CapacitySource, server sim.Server, p place, at string) capacity.Config {
	slo := sim.SLO{TTFT: b.time(want.TTFTSeconds, at+"slo.ttftSeconds"), TPOT: b.time(want.TPOTSeconds, at+"slo.tpotSeconds")}
	c := capacity.For(p.within, slo, server)
	b.setDecimal(&c.Goal, want.Goal, at+"slo.goal")
	c.Scrape, c.Control = b.interval, b.interval
	engines := []string{"VLLM", "SGLang"}
	engine := cmp.Or(from.Engine, "VLLM")
	b.errs.Check(engine == "VLLM" || engine == "SGLang", at+"source.engine", engine, "must be "+oneOf(engines)+": others lack histograms that are needed")
	for _, m := range capacity.Metrics() {
		source := MetricSource{
			Engine: Engine(engine), Signal: Signal(m.Signal.String()), Protocol: from.Protocol, Port: from.Port, Path: from.Path, Labels: from.Labels,
		}
		b.use(Metric{Name: m.Name, Source: source, Field: at + "source", Counted: m.Signal >= sim.PromptTokens}, true)
	}
	var e scaling.FieldErrors
	checkEndpoint(&e, from.Protocol, from.Port, at+"source")
	b.errs.Add(e.Err())
	return c
}

// time reads seconds with a fraction: above 0 and at most 3600.
func (b *builder) time(d Decimal, path string) time.Duration {
	s := b.decimal(d, path)
	if b.unread[path] {
		return time.Second // already reported
	}
	b.errs.Check(s > 0 && s <= 3600, path, d.String(), "must be above 0 and at most 3600")
	return time.Duration(max(1, min(s, 3600)*1e9))
}

// capacityPaths returns the renames for a capacity scaler, for example at "spec.scaler.capacity.".
func (p *place) capacityPaths(root string) []rename {
	at := p.at + "capacity."
	return append(p.boundsPaths(),
		rename{"slo.ttft", at + "slo.ttftSeconds"}, rename{"slo.tpot", at + "slo.tpotSeconds"}, rename{"goal", at + "slo.goal"},
		rename{"server.base", at + "server.baseMicroseconds"}, rename{"server.prefillToken", at + "server.prefillTokenMicroseconds"},
		rename{"server.sequence", at + "server.sequenceMicroseconds"}, rename{"server.kvTokens", at + "server.kvTokens"}, rename{"server.kvToken", at + "server.kvTokenMicroseconds"},
		rename{"coldStart", at + "coldStartSeconds"}, rename{"scrape", root + "intervalSeconds"}, rename{"control", root + "intervalSeconds"},
		rename{"", at},
	)
}

// CapacityOf returns the document's scaler for a configuration, with all times of the server written out. It does not have
// the bounds, the intervals of scrapes and decisions, or the router. A cold start is rounded up to whole seconds, and the
// step times are rounded to nine decimals of a microsecond.
func CapacityOf(c capacity.Config) *CapacityScaler {
	c.ColdStart = (c.ColdStart + time.Second - 1).Truncate(time.Second)
	slo := CapacitySLO{TTFTSeconds: decimal(c.SLO.TTFT.Seconds()), TPOTSeconds: decimal(c.SLO.TPOT.Seconds())}
	return capacityInForce(&CapacityScaler{SLO: slo}, c)
}

func capacityInForce(s *CapacityScaler, c capacity.Config) *CapacityScaler {
	micro := func(given *Decimal, seconds float64) *Decimal { return number(given, seconds*1e6) }
	v, g := c.Server, &s.Server
	out := &CapacityScaler{
		SLO:              CapacitySLO{TTFTSeconds: s.SLO.TTFTSeconds, TPOTSeconds: s.SLO.TPOTSeconds, Goal: number(s.SLO.Goal, c.Goal)},
		ColdStartSeconds: whole(c.ColdStart),
		Server: CapacityServer{
			Name: g.Name, BaseMicroseconds: micro(g.BaseMicroseconds, v.Base), PrefillTokenMicroseconds: micro(g.PrefillTokenMicroseconds, v.PrefillToken),
			SequenceMicroseconds: micro(g.SequenceMicroseconds, v.Sequence), KVTokenMicroseconds: micro(g.KVTokenMicroseconds, v.KVToken),
			MaxSeqs: &v.MaxSeqs, TokenBudget: &v.TokenBudget, KVTokens: pointer(int32(v.KVTokens)),
		},
		Source: s.Source, Forecast: pointer(or(s.Forecast, Forecast{})).inForce(),
	}
	out.Source.Engine = cmp.Or(out.Source.Engine, "VLLM")
	out.Source.Protocol = cmp.Or(out.Source.Protocol, HTTP)
	if len(out.Source.Labels) == 0 {
		out.Source.Labels = nil
	}
	return out
}
