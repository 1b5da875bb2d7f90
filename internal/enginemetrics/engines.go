// Package enginemetrics is the one table of what inference servers call their numbers: the names through the versions, and how
// several series of one pod make one number. Package scrape reads pages by it, package history asks Prometheus by it.
package enginemetrics

// The engines.
const (
	VLLM     = "VLLM"
	SGLang   = "SGLang"
	TGI      = "TGI"
	TRTLLM   = "TRTLLM"
	Triton   = "Triton"
	Dynamo   = "Dynamo"
	LlamaCPP = "LlamaCPP"
	EPP      = "EPP" // llm-d's and the gateway API inference extension's endpoint picker: a router, which counts for the fleet
)

// The signals. Those of the first group are gauges, those of the second histograms, those of the third counters.
const (
	Waiting            = "Waiting"
	Running            = "Running"
	InFlight           = "InFlight"
	KVCacheUsage       = "KVCacheUsage" // over KVCapacity, where the engine has that
	KVCapacity         = "KVCapacity"
	PrefixCacheHitRate = "PrefixCacheHitRate" // where hits and queries are not counted

	TTFT             = "TTFT"
	TPOT             = "TPOT"  // by token, if the engine has that
	TPOTs            = "TPOTs" // by request, if the engine has that
	PromptTokens     = "PromptTokens"
	GenerationTokens = "GenerationTokens"

	PrefixCacheHits    = "PrefixCacheHits"
	PrefixCacheQueries = "PrefixCacheQueries"
	Preemptions        = "Preemptions"
	Requests           = "Requests"  // that arrived
	Finished           = "Finished"  // requests, however they ended
	Prompted           = "Prompted"  // tokens of prompts
	Cached             = "Cached"    // of them, those that were not computed
	Generated          = "Generated" // tokens
)

// A Kind is what a signal's families are in Prometheus.
type Kind uint8

// The kinds.
const (
	Gauge Kind = iota
	Counter
	Histogram
)

// KindOf returns the kind of a signal.
func KindOf(signal string) Kind {
	switch signal {
	case TTFT, TPOT, TPOTs, PromptTokens, GenerationTokens:
		return Histogram
	case PrefixCacheHits, PrefixCacheQueries, Preemptions, Requests, Finished, Prompted, Cached, Generated:
		return Counter
	default:
		return Gauge
	}
}

// A Source says where a signal is found.
type Source struct {
	// Families are its names, newest first. The first one that there is holds.
	Families []string
	// Label and Value keep only the series with that label, if it is set.
	Label, Value string
	// GroupBy are the labels that tell the data-parallel engines of one pod apart; none means that each series is one.
	GroupBy []string
	// Prefer, if any series of a group has an empty value of this label, drops the others.
	Prefer string
	// Max makes one number of the series of a group by their largest: ranks repeat one queue. Otherwise there is one.
	Max bool
	// Mean makes one number of the groups by their mean. Otherwise they are added.
	Mean bool
	// Scale multiplies what is read; 0 is 1.
	Scale float64
	// Parts are labels by which an engine splits one number: series that differ in them add up.
	Parts []string
	// PerRequest says that a histogram has one value of each request, the mean of its tokens, instead of one of each token.
	PerRequest bool
}

// Of returns where an engine has a signal, and false if it has not.
func Of(engine, signal string) (Source, bool) {
	var table map[string]Source
	switch engine {
	case VLLM:
		table = vllm()
	case SGLang:
		table = sglang()
	case TGI:
		table = tgi()
	case TRTLLM:
		table = trtllm()
	case Triton:
		table = triton()
	case Dynamo:
		table = dynamo()
	case LlamaCPP:
		table = llamaCPP()
	case EPP:
		table = epp()
	}
	found, ok := table[signal]
	return found, ok
}

// ModelLabel returns the label that names the model in an engine's series, empty if it has none.
func ModelLabel(engine string) string {
	switch engine {
	case VLLM, SGLang, TRTLLM, EPP:
		return "model_name"
	case Triton, Dynamo:
		return "model"
	default:
		return ""
	}
}

func sum(families ...string) Source { return Source{Families: families} }

func mean(families ...string) Source { return Source{Families: families, Mean: true} }

func perRequest(families ...string) Source { return Source{Families: families, PerRequest: true} }

func parts(label, family string) Source {
	return Source{Families: []string{family}, Parts: []string{label}}
}
