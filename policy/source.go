package policy

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/inferscale/inferscale/internal/enginemetrics"
	"github.com/inferscale/inferscale/scaling"
)

// DefaultMetricName is the metric family that is read if a source names neither a family nor a signal.
const DefaultMetricName = "vllm:num_requests_waiting"

// A ProtocolType is how pods are asked.
//
// +kubebuilder:validation:Enum=http;https
type ProtocolType string

// The protocols.
const (
	HTTP  ProtocolType = "http"
	HTTPS ProtocolType = "https"
)

// An Engine is an inference server whose metrics are known.
//
// +kubebuilder:validation:Enum=VLLM;SGLang;TGI;TRTLLM;Triton;Dynamo;LlamaCPP
type Engine string

// A Signal is a number that engines have under names of their own.
//
// +kubebuilder:validation:Enum=Waiting;Running;InFlight;KVCacheUsage;TTFT;TPOT;PrefixCacheHitRate;Preemptions
type Signal string

// An Aggregation makes one number of several series of one pod, as a data-parallel server has them.
//
// +kubebuilder:validation:Enum=Only;Sum;Average;Max;Min
type Aggregation string

// A MetricSource says which number of a pod is read, and where. Either name is given, or engine and signal; without any
// of them the name is vllm:num_requests_waiting.
//
// +kubebuilder:validation:XValidation:rule="has(self.engine) == has(self.signal)",message="engine and signal must be given together"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !has(self.signal)",fieldPath=".name",message="must not be given beside engine and signal"
// +kubebuilder:validation:XValidation:rule="!has(self.aggregation) || !has(self.signal)",fieldPath=".aggregation",message="must not be given beside engine and signal: how a signal is aggregated is known"
// +kubebuilder:validation:XValidation:rule="!has(self.quantile) || (has(self.signal) && self.signal in ['TTFT', 'TPOT'])",message="quantile: must be given only with the signals TTFT and TPOT"
// +kubebuilder:validation:XValidation:rule="!has(self.quantile) || (double(string(self.quantile)) > 0.0 && double(string(self.quantile)) < 1.0)",message="quantile: must be above 0 and below 1"
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(k, size(k) > 0)",message="labels: must not have an empty name"
// +kubebuilder:validation:XValidation:rule="!has(self.signal) || !(self.engine + '/' + self.signal in ['TGI/TTFT', 'TGI/PrefixCacheHitRate', 'TGI/Preemptions', 'TRTLLM/Preemptions', 'Triton/TPOT', 'Triton/PrefixCacheHitRate', 'Triton/Preemptions', 'Dynamo/Preemptions', 'LlamaCPP/KVCacheUsage', 'LlamaCPP/TTFT', 'LlamaCPP/TPOT', 'LlamaCPP/PrefixCacheHitRate', 'LlamaCPP/Preemptions'])",messageExpression="'signal: ' + self.signal + ': ' + self.engine + ' has none'"
type MetricSource struct {
	// Name is a metric family of the pods. If neither name nor signal is given, vllm:num_requests_waiting is read.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_:][a-zA-Z0-9_:]*$`
	Name string `json:"name,omitempty"`

	// Engine is the inference server of the pods. With engine and signal, the names of the metric in the engine's
	// versions, the aggregation and the endpoint are known.
	// +optional
	Engine Engine `json:"engine,omitempty"`

	// Signal is the metric to read, by its meaning. TTFT and TPOT are means over the observations between two readings,
	// in seconds, or a quantile.
	// +optional
	Signal Signal `json:"signal,omitempty"`

	// Quantile reads TTFT or TPOT as this quantile, like "0.99".
	// +optional
	Quantile *Decimal `json:"quantile,omitempty"`

	// Protocol is the protocol of the metrics endpoint.
	// +optional
	// +kubebuilder:default=http
	Protocol ProtocolType `json:"protocol,omitempty"`

	// Port is the port at which pods serve metrics: a number, with or without quotes. If unset it is the engine's
	// default, or 5000 without an engine. For a named port use scrape.portName instead.
	// +optional
	Port *PortNumber `json:"port,omitempty"`

	// Path is the path at which pods serve metrics. If unset it is the engine's default, or /metrics without an engine.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/(([A-Za-z0-9._~!$&()*+,;=:@-]|%[0-9A-Fa-f]{2})([A-Za-z0-9._~!$&()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?(\?[A-Za-z0-9._~!$&()*+,;=:@/?%\[\]-]*)?$`
	Path string `json:"path,omitempty"`

	// Labels keep only the series that have each of these labels with this value.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Aggregation combines several series of one pod into one number. If unset, the one known for the family is used;
	// for an unknown family several series are an error.
	// +optional
	Aggregation Aggregation `json:"aggregation,omitempty"`
}

// A LabelValue is the value of a label of a series.
//
// +kubebuilder:validation:MaxLength=256
type LabelValue string

// MetricName returns the name of the source's reading: the metric family, or the signal.
func (s *MetricSource) MetricName() string {
	name := cmp.Or(s.Name, string(s.Signal), string(s.Engine))
	return cmp.Or(name, DefaultMetricName)
}

// Fraction reports whether the number is known to be a fraction, which is never above 1.
func (s *MetricSource) Fraction() bool {
	if s.Signal != "" || s.Engine != "" {
		return s.Signal == "KVCacheUsage" || s.Signal == "PrefixCacheHitRate"
	}
	switch s.Name {
	case "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage", "sglang:cache_hit_rate",
		"trtllm_kv_cache_utilization", "trtllm_kv_cache_hit_rate",
		"dynamo_component_gpu_cache_usage_percent", "dynamo_component_kvstats_gpu_cache_usage_percent",
		"dynamo_component_kv_cache_hit_rate", "dynamo_component_kvstats_gpu_prefix_cache_hit_rate":
		return s.Aggregation != "Sum"
	}
	return false
}

const fractionRule = "must be at most 1: the metric is a fraction"

// Engines returns the names of the inference servers with known metrics.
func Engines() []Engine {
	return []Engine{"VLLM", "SGLang", "TGI", "TRTLLM", "Triton", "Dynamo", "LlamaCPP"}
}

// Signals returns the names of the numbers that engines have.
func Signals() []Signal {
	return []Signal{"Waiting", "Running", "InFlight", "KVCacheUsage", "TTFT", "TPOT", "PrefixCacheHitRate", "Preemptions"}
}

// has reports whether the engine shows a signal.
func (e Engine) has(s Signal) bool {
	names := []string{string(s)}
	switch s {
	case enginemetrics.InFlight:
		names = []string{enginemetrics.Waiting, enginemetrics.Running}
	case enginemetrics.PrefixCacheHitRate:
		if e == enginemetrics.VLLM {
			names = []string{enginemetrics.PrefixCacheHits, enginemetrics.PrefixCacheQueries}
		}
	}
	for _, name := range names {
		if _, ok := enginemetrics.Of(string(e), name); !ok {
			return false
		}
	}
	return true
}

// source checks a source, and reports whether it is valid. It does not check the path and the labels: only the packages that read
// pods know about these.
func (b *builder) source(s MetricSource, path string) bool {
	var e scaling.FieldErrors
	if s.Signal == "" && s.Engine == "" {
		e.Check(s.Quantile == nil, path+".quantile", text(s.Quantile), quantileRule)
	} else {
		e.Check(s.Name == "", path+".name", s.Name, "must not be given beside engine and signal")
		e.Check(s.Aggregation == "", path+".aggregation", string(s.Aggregation), "must not be given beside engine and signal: how a signal is aggregated is known")
		e.Check(slices.Contains(Engines(), s.Engine), path+".engine", string(s.Engine), "must be one of "+allOf(Engines())+", beside a signal")
		e.Check(slices.Contains(Signals(), s.Signal), path+".signal", string(s.Signal), "must be one of "+allOf(Signals())+", beside an engine")
		if slices.Contains(Engines(), s.Engine) && slices.Contains(Signals(), s.Signal) {
			e.Check(s.Engine.has(s.Signal), path+".signal", string(s.Signal), string(s.Engine)+" has none")
		}
		if s.Quantile != nil {
			q, err := s.Quantile.Float()
			e.Check(s.Signal == "TTFT" || s.Signal == "TPOT", path+".quantile", text(s.Quantile), quantileRule)
			e.Check(err == nil, path+".quantile", text(s.Quantile), decimalRule)
			e.Check(err != nil || q > 0 && q < 1, path+".quantile", text(s.Quantile), "must be above 0 and below 1")
		}
	}
	checkEndpoint(&e, s.Protocol, s.Port, path)
	all := []Aggregation{"Only", "Sum", "Average", "Max", "Min"}
	e.Check(s.Aggregation == "" || slices.Contains(all, s.Aggregation), path+".aggregation", string(s.Aggregation), "must be one of "+allOf(all))
	b.errs.Add(e.Err())
	return e.Err() == nil
}

func checkEndpoint(e *scaling.FieldErrors, protocol ProtocolType, port *PortNumber, path string) {
	e.Check(protocol == "" || protocol == HTTP || protocol == HTTPS, path+".protocol", string(protocol), "must be http or https")
	if port != nil {
		e.Check(port.Int() >= 1 && port.Int() <= 65535, path+".port", port.Int(), "must be between 1 and 65535")
	}
}

const quantileRule = "must be given only with the signals TTFT and TPOT"

// allOf returns "a, b and c".
func allOf[T any](all []T) string { return listed(all, " and ") }

func text(d *Decimal) string {
	if d == nil {
		return ""
	}
	return d.String()
}

// same reports whether two sources with the same name are equal, apart from how they are written.
func same(a, b MetricSource) bool {
	plain := func(s MetricSource) MetricSource {
		name := s.MetricName()
		s = sourceInForce(s)
		s.Name = name
		if q, err := or(s.Quantile, Decimal{}).Float(); err == nil {
			s.Quantile = pointer(decimal(q))
		}
		return s
	}
	return reflect.DeepEqual(plain(a), plain(b))
}
