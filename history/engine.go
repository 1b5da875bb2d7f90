package history

import (
	"slices"
	"strings"

	"github.com/inferscale/inferscale/internal/enginemetrics"
)

// An Engine is an inference server or a router with known metrics.
type Engine string

// The engines: those of package scrape, and llm-d's endpoint picker, which counts for the whole fleet.
const (
	VLLM     Engine = enginemetrics.VLLM // V1's names, or V0's if those are absent
	SGLang   Engine = enginemetrics.SGLang
	TGI      Engine = enginemetrics.TGI
	TRTLLM   Engine = enginemetrics.TRTLLM
	Triton   Engine = enginemetrics.Triton
	Dynamo   Engine = enginemetrics.Dynamo
	LlamaCPP Engine = enginemetrics.LlamaCPP
	EPP      Engine = enginemetrics.EPP
)

// Engines returns all engines whose pods serve requests.
func Engines() []Engine { return []Engine{VLLM, SGLang, TGI, TRTLLM, Triton, Dynamo, LlamaCPP} }

const engineRule = "must be VLLM, SGLang, TGI, TRTLLM, Triton, Dynamo or LlamaCPP"

// A Signal is a quantity of a fleet, whatever name its engine gives it.
type Signal string

// The signals of pods that serve requests.
const (
	Waiting            Signal = enginemetrics.Waiting
	Running            Signal = enginemetrics.Running
	InFlight           Signal = enginemetrics.InFlight // only of routers
	KVCacheUsage       Signal = enginemetrics.KVCacheUsage
	KVCapacity         Signal = enginemetrics.KVCapacity
	PrefixCacheHitRate Signal = enginemetrics.PrefixCacheHitRate
	TTFT               Signal = enginemetrics.TTFT
	TPOT               Signal = enginemetrics.TPOT  // by token
	TPOTs              Signal = enginemetrics.TPOTs // by request
	PromptTokens       Signal = enginemetrics.PromptTokens
	GenerationTokens   Signal = enginemetrics.GenerationTokens
	PrefixCacheHits    Signal = enginemetrics.PrefixCacheHits
	PrefixCacheQueries Signal = enginemetrics.PrefixCacheQueries
	Requests           Signal = enginemetrics.Requests
	Finished           Signal = enginemetrics.Finished
	Prompted           Signal = enginemetrics.Prompted
	Cached             Signal = enginemetrics.Cached
	Generated          Signal = enginemetrics.Generated

	CacheBlocks Signal = "CacheBlocks" // vllm:cache_config_info: the number of blocks and their size are labels
)

// The signals of Kubernetes, from kube-state-metrics.
const (
	SpecReplicas  Signal = "SpecReplicas"
	ReadyReplicas Signal = "ReadyReplicas"
	PodCreated    Signal = "PodCreated"
	PodReadyTime  Signal = "PodReadyTime"
	PodReady      Signal = "PodReady"
)

// A Part is a part of a histogram.
type Part string

// The parts. Anything but a histogram has the part Whole.
const (
	Whole  Part = ""
	Sum    Part = "sum"
	Count  Part = "count"
	Bucket Part = "bucket"
)

// suffix is what the names of a part's families end with.
func (p Part) suffix() string {
	if p == Whole {
		return ""
	}
	return "_" + string(p)
}

// source returns where an engine has a signal.
func (e Engine) source(s Signal) (enginemetrics.Source, bool) {
	switch s {
	case CacheBlocks:
		return enginemetrics.Source{Families: []string{"vllm:cache_config_info"}}, e == VLLM
	case SpecReplicas:
		return enginemetrics.Source{Families: []string{"kube_deployment_spec_replicas", "kube_statefulset_replicas"}}, true
	case ReadyReplicas:
		return enginemetrics.Source{Families: []string{"kube_deployment_status_replicas_ready", "kube_statefulset_status_replicas_ready"}}, true
	case PodCreated:
		return enginemetrics.Source{Families: []string{"kube_pod_created"}}, true
	case PodReadyTime:
		return enginemetrics.Source{Families: []string{"kube_pod_status_ready_time"}}, true
	case PodReady:
		return enginemetrics.Source{Families: []string{"kube_pod_status_ready"}, Label: "condition", Value: "true"}, true
	default:
		return enginemetrics.Of(string(e), string(s))
	}
}

// perRequest reports whether times per token are counted by request, as the mean of each.
func (e Engine) perRequest() bool {
	found, _ := e.source(TPOT)
	return found.PerRequest
}

func (s Signal) kubernetes() bool {
	return slices.Contains([]Signal{SpecReplicas, ReadyReplicas, PodCreated, PodReadyTime, PodReady}, s)
}

// fleetwide reports whether a signal belongs to the fleet, not to a pod.
func (s Signal) fleetwide() bool { return s == SpecReplicas || s == ReadyReplicas }

// labels returns the labels that distinguish the parts of a signal. All other labels say where and by whom a pod was
// scraped: series that differ only in those are duplicates.
func (e Engine) labels(s Signal) []string {
	found, _ := e.source(s)
	keep := slices.Concat(found.GroupBy, found.Parts)
	if found.Prefer != "" {
		keep = append(keep, found.Prefer)
	}
	switch {
	case s == CacheBlocks:
		keep = append(keep, "block_size", "num_gpu_blocks", "engine")
	case s.fleetwide():
	case s.kubernetes():
		keep = append(keep, "uid")
	default:
		keep = append(keep, "engine")
	}
	slices.Sort(keep)
	return slices.Compact(keep)
}

// WorkloadOf returns the name of the Deployment or StatefulSet of the pods, if their names all show the same one.
func WorkloadOf(pods []string) (string, bool) {
	name := ""
	for _, pod := range pods {
		of, ok := ownerOf(pod)
		if !ok || name != "" && of != name {
			return "", false
		}
		name = of
	}
	return name, name != ""
}

func ownerOf(pod string) (string, bool) {
	const hash = "bcdfghjklmnpqrstvwxz2456789" // the characters of which Kubernetes draws names
	of := func(s, letters string) bool { return s != "" && strings.Trim(s, letters) == "" }
	i := strings.LastIndexByte(pod, '-')
	if i <= 0 {
		return "", false
	}
	rest, last := pod[:i], pod[i+1:]
	if k := strings.LastIndexByte(rest, '-'); k > 0 && len(last) == 5 && of(last, hash) {
		if template := rest[k+1:]; len(template) >= 6 && len(template) <= 10 && of(template, hash) {
			return rest[:k], true
		}
	}
	return rest, of(last, "0123456789")
}
