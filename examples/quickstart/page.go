package main

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:embed data/constructed-vllm-v1-dp1.txt
var vllmPage string

// gauges are the values of a page that follow the simulated server; the rest stays as the template has it.
type gauges struct {
	waiting, running int
	kvUsage          float64

	started float64            // Unix seconds
	tokens  float64            // of prompts
	counted map[string]*counts // by family
}

// counts are what a histogram has counted. The page knows its buckets.
type counts struct {
	values []float64 // one each, as a demonstration has few
	sum    float64
}

func (c *counts) add(v float64) {
	c.values, c.sum = append(c.values, v), c.sum+v
}

// upTo is how many are at most v.
func (c *counts) upTo(v float64) (n float64) {
	for _, x := range c.values {
		if x <= v {
			n++
		}
	}
	return n
}

// The families of histograms that follow the server.
const (
	firstTokens  = "vllm:time_to_first_token_seconds"
	eachToken    = "vllm:request_time_per_output_token_seconds"
	promptTokens = "vllm:request_prompt_tokens"
	answerTokens = "vllm:request_generation_tokens"
)

// histogramValue returns the value of a line of a histogram that follows the server, or nil if it is no such line.
func histogramValue(name, labels string) func(gauges) float64 {
	for _, family := range []string{firstTokens, eachToken, promptTokens, answerTokens} {
		switch part, ok := strings.CutPrefix(name, family); {
		case !ok:
		case part == "_sum":
			return func(g gauges) float64 { return g.counted[family].sum }
		case part == "_count":
			return func(g gauges) float64 { return float64(len(g.counted[family].values)) }
		case part == "_bucket":
			_, le, _ := strings.Cut(labels, `le="`)
			le, _, _ = strings.Cut(le, `"`)
			bound, err := strconv.ParseFloat(le, 64)
			if err != nil {
				return nil
			}
			return func(g gauges) float64 { return g.counted[family].upTo(bound) }
		}
	}
	return nil
}

// A page is a vLLM /metrics page cut into text and the gauges between it.
type page struct {
	text  []string
	gauge []func(gauges) float64 // gauge[i] stands between text[i] and text[i+1]
}

// newPage cuts a page at the values of the gauges that follow the server and, for who looks at them, at those of its counters and
// histograms too.
func newPage(template string, counting bool) page {
	waiting := func(g gauges) float64 { return float64(g.waiting) }
	live := map[string]func(gauges) float64{
		"vllm:num_requests_waiting": waiting,
		"vllm:num_requests_running": func(g gauges) float64 { return float64(g.running) },
		"vllm:kv_cache_usage_perc":  func(g gauges) float64 { return g.kvUsage },
	}
	if counting {
		live["vllm:prompt_tokens_total"] = func(g gauges) float64 { return g.tokens }
		live["vllm:prompt_tokens_cached_total"] = func(gauges) float64 { return 0 }
	}
	var p page
	var text strings.Builder
	for line := range strings.Lines(template) {
		name, labels, _ := strings.Cut(line, "{")
		value := live[name]
		if value == nil && counting {
			value = histogramValue(name, labels)
		}
		if counting && (strings.HasPrefix(line, "process_start_time_seconds ") || strings.HasSuffix(name, "_created")) {
			value = func(g gauges) float64 { return g.started }
		}
		if name == "vllm:num_requests_waiting_by_reason" && strings.Contains(labels, `reason="capacity"`) {
			value = waiting
		}
		end := strings.LastIndexByte(line, ' ')
		if value == nil || end < 0 {
			text.WriteString(line)
			continue
		}
		text.WriteString(line[:end+1])
		p.text = append(p.text, text.String())
		p.gauge = append(p.gauge, value)
		text.Reset()
		text.WriteByte('\n')
	}
	p.text = append(p.text, text.String())
	return p
}

// render writes the page with the given gauges.
func (p page) render(g gauges) []byte {
	var out []byte
	for i, value := range p.gauge {
		out = append(out, p.text[i]...)
		out = strconv.AppendFloat(out, value(g), 'f', -1, 64)
	}
	return append(out, p.text[len(p.gauge)]...)
}
