package traces

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/inferscale/inferscale/sim"
)

//go:embed data/*.csv.gz
var data embed.FS

// The names that Open knows.
const (
	NameAzure2023Conversation = "azure2023-conversation"
	NameMooncakeSynthetic     = "mooncake-synthetic"
	NameServeGenLarge         = "servegen-m-large"
	NameServeGenSmall         = "servegen-m-small"
)

// An Info describes a trace and its source.
type Info struct {
	Name     string        `json:"name"` // for Open
	Title    string        `json:"title"`
	Requests int           `json:"requests"` // recorded requests, if it has requests
	Windows  int           `json:"windows"`  // windows of the series, if it has rates
	Filled   int           `json:"filled"`   // windows that were gaps in the collection and were filled
	Length   time.Duration `json:"length"`
	Source   string        `json:"source"`
	Licence  string        `json:"licence"` // as an SPDX identifier
	Citation string        `json:"citation"`
}

// List returns the traces, by name.
func List() []Info {
	const fortnight = 14 * 24 * time.Hour
	return []Info{
		{
			Name:     NameAzure2023Conversation,
			Title:    "Conversations of Azure's LLM inference service, 2023",
			Requests: 19366,
			Length:   3502 * time.Second,
			Source:   "Azure/AzurePublicDataset data/AzureLLMInferenceTrace_conv.csv @b469a113",
			Licence:  "CC-BY-4.0",
			Citation: "Patel et al., Splitwise, ISCA 2024",
		},
		{
			Name:     NameMooncakeSynthetic,
			Title:    "Long prompts of public data sets that begin alike, as Mooncake's evaluation has them",
			Requests: 3993,
			Length:   1023 * time.Second,
			Source:   "kvcache-ai/Mooncake FAST25-release/traces/synthetic_trace.jsonl @3b5a5941",
			Licence:  "Apache-2.0",
			Citation: "Qin et al., Mooncake, FAST 2025",
		},
		{
			Name:     NameServeGenLarge,
			Title:    "A large language model of ServeGen, 162 clients, two weeks from midnight",
			Windows:  2016,
			Length:   fortnight,
			Source:   "alibaba/ServeGen data/language/m-large @f891d118",
			Licence:  "Apache-2.0",
			Citation: "alibaba/ServeGen",
		},
		{
			Name:     NameServeGenSmall,
			Title:    "A small language model of ServeGen, 43 clients, two weeks from midnight",
			Windows:  2016,
			Filled:   37,
			Length:   fortnight,
			Source:   "alibaba/ServeGen data/language/m-small @f891d118",
			Licence:  "Apache-2.0",
			Citation: "alibaba/ServeGen",
		},
	}
}

// Open returns the traffic of a name in List.
func Open(name string) (sim.Workload, error) {
	var w sim.Workload
	var err error
	switch name {
	case NameAzure2023Conversation:
		w, err = Azure2023Conversation()
	case NameMooncakeSynthetic:
		w, err = MooncakeSynthetic()
	case NameServeGenLarge:
		w, err = ServeGenLarge()
	case NameServeGenSmall:
		w, err = ServeGenSmall()
	default:
		var names []string
		for _, info := range List() {
			names = append(names, info.Name)
		}
		err = fmt.Errorf("trace %q: must be one of %s", name, strings.Join(names, ", "))
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Azure2023Conversation returns the requests of one hour of conversations with Azure's LLM inference service in 2023.
func Azure2023Conversation() (sim.Trace, error) {
	return embedded[sim.Trace]("azure2023_conv.csv")
}

// MooncakeSynthetic returns the requests of Mooncake's synthetic trace, 17 minutes of prompts of 15,000 tokens, with their
// blocks of BlockTokens. The trace says how many blocks of each prompt had occurred before, but not in which prompt: here
// each prompt begins like the latest one that has that many. The hits of an unlimited cache are therefore exact. A limited
// cache hits at least as much as with the original trace, if it keeps the latest blocks.
func MooncakeSynthetic() (sim.Trace, error) {
	return embedded[sim.Trace]("mooncake_synthetic.csv")
}

// ServeGenLarge returns the rates of two weeks of a large language model, in windows of ten minutes from local midnight on.
func ServeGenLarge() (sim.Series, error) {
	return embedded[sim.Series]("servegen_m-large_600s.csv")
}

// ServeGenSmall returns the rates of two weeks of a small language model, in windows of ten minutes from local midnight on,
// with its gaps filled.
func ServeGenSmall() (sim.Series, error) {
	s, err := embedded[sim.Series]("servegen_m-small_600s.csv")
	if err != nil {
		return sim.Series{}, err
	}
	s, _ = FillGaps(s)
	return s, nil
}

// embedded reads one of the files in this package.
func embedded[W sim.Workload](file string) (W, error) {
	var none W
	compressed, err := data.ReadFile("data/" + file + ".gz")
	if err != nil {
		return none, err
	}
	w, err := Read(bytes.NewReader(compressed), file)
	if err != nil {
		return none, err
	}
	return w.(W), nil
}
