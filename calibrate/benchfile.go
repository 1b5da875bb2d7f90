package calibrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/scaling"
)

// largestBench is the largest file of a run: with -save-detailed it contains all requests.
const largestBench = 256 << 20

// largestYAML is the largest report in YAML, which takes some fifty times its size in memory.
const largestYAML = 4 << 20

// ReadRuns reads the table of a benchmark in one of these forms:
//
//   - the output of vllm bench serve --save-result, one run per file, or several if --append-result appended them,
//   - the stages of inference-perf (stage_0_lifecycle_metrics.json), one run per file,
//   - benchmark reports of llm-d, versions 0.1 and 0.2, JSON or YAML, one run per file,
//   - a file with the suffix .csv and a header of rate, input, output, ttft and itl, in any order; times in seconds.
//
// replicas is the number of replicas that served the benchmark together, usually 1: each served its part of the rate. A report of
// llm-d that tells of another number is an error. Errors name file, field, value and rule.
func ReadRuns(data []byte, file string, replicas int) ([]Run, error) {
	var e scaling.FieldErrors
	e.Check(len(data) <= largestBench, "length", len(data), fmt.Sprintf("must be at most %d bytes", largestBench))
	e.Check(replicas >= 1 && replicas <= 1e6, "replicas", replicas, "must be within 1 and 1000000")
	err := e.Err()
	var runs []Run
	if err == nil {
		if text := unmarked(data); strings.HasSuffix(file, ".csv") {
			runs, err = readTable(string(text))
		} else {
			runs, err = readReport(bytes.TrimSpace(text), replicas)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i := range runs {
		runs[i].Rate /= float64(replicas)
	}
	return runs, nil
}

// documents reads JSON, possibly several objects one after another, or one YAML document.
func documents(data []byte) ([]tree, error) {
	if bytes.HasPrefix(data, []byte("{")) {
		var all []tree
		in := newDecoder(quoted(data))
		for {
			x, err := decode(in, "", 0)
			wrong := new(scaling.FieldError)
			switch t, ok := x.(map[string]any); {
			case errors.Is(err, io.EOF):
				return all, nil
			case err != nil && len(all) > 0:
				return nil, fmt.Errorf("behind run %d: %w", len(all), err)
			case errors.As(err, &wrong):
				return nil, err
			case err == nil && !ok:
				return nil, errNone()
			case err == nil:
				all = append(all, t)
				continue
			}
			break // YAML has braces too
		}
	}
	if len(data) > largestYAML {
		return nil, &scaling.FieldError{Field: "length", Value: len(data), Rule: fmt.Sprintf("must be at most %d bytes if it is not JSON", largestYAML)}
	}
	var t any // as a tree, all maps would become trees
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
		return nil, typed.Error(err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("must have one document, or several in JSON")
	}
	m, ok := t.(map[string]any)
	if !ok && t != nil {
		return nil, errNone()
	}
	return []tree{m}, nil
}

// quoted returns JSON in which the numbers that only Python writes, NaN and Infinity, are texts.
func quoted(data []byte) []byte {
	var out []byte
	text, from := false, 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			text = !text
		case c == '\\' && text:
			i++
		case (c == 'N' || c == 'I' || c == '-') && !text:
			for _, number := range [...]string{"NaN", "Infinity", "-Infinity"} {
				if bytes.HasPrefix(data[i:], []byte(number)) {
					out = append(append(append(append(out, data[from:i]...), '"'), number...), '"')
					i += len(number) - 1
					from = i + 1
					break
				}
			}
		}
	}
	if out == nil {
		return data
	}
	return append(out, data[from:]...)
}

func readReport(data []byte, replicas int) ([]Run, error) {
	all, err := documents(data)
	if err != nil {
		return nil, err
	}
	var runs []Run
	for i, t := range all {
		r, err := readRun(t, replicas)
		if err != nil && len(all) > 1 {
			err = fmt.Errorf("run %d: %w", i+1, err)
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

func errNone() error {
	return errors.New("is none of: vllm bench serve --save-result, a stage of inference-perf, a benchmark report of llm-d (0.1 or 0.2), or a .csv with rate, input, output, ttft and itl")
}

func readRun(t tree, replicas int) (Run, error) {
	g := getter{tree: t}
	var r Run
	switch {
	case g.has("request_throughput") && g.has("total_input_tokens"): // vLLM
		completed := g.need("completed")
		g.oneByOne("mean_itl_ms", g.may("mean_itl_ms"), g.may("mean_tpot_ms"))
		r = Run{Rate: g.need("request_throughput"), Input: g.need("total_input_tokens") / completed, Output: g.need("total_output_tokens") / completed}
		r.TTFT, r.ITL = g.may("mean_ttft_ms")/1e3, g.first([]string{"mean_itl_ms"}, []string{"mean_tpot_ms"})/1e3
		r.Closed = g.closed(&r, []string{"request_rate"}, []string{"max_concurrency"})
	case g.has("successes", "latency"): // inference-perf
		s := "successes"
		r.Rate = g.first([]string{s, "throughput", "requests_per_sec"}, []string{"load_summary", "achieved_rate"})
		r.Input = g.first([]string{s, "prompt_len", "mean"}, []string{s, "prompt_tokens", "mean"})
		r.Output = g.first([]string{s, "output_len", "mean"}, []string{s, "output_tokens", "mean"})
		r.TTFT = g.may(s, "latency", "time_to_first_token", "mean")
		r.ITL = g.first([]string{s, "latency", "inter_token_latency", "mean"}, []string{s, "latency", "time_per_output_token", "mean"})
		_, r.Closed = g.at("load_summary", "concurrency") // only stages without a rate have it
	case g.has("results", "request_performance", "aggregate"): // llm-d 0.2
		a := []string{"results", "request_performance", "aggregate"}
		g.report(&r, a)
		served, known := 0.0, false
		for _, x := range g.list(scenario, "stack") {
			component, _ := x.(map[string]any)
			if n, ok := tree(component).at("standardized", "replicas"); ok {
				served, known = served+n, true
			}
		}
		g.errs.Check(!known || served == float64(replicas), "scenario.stack.standardized.replicas", served, fmt.Sprintf(servedRule, replicas))
		r.Rate = g.first(append(slices.Clone(a), "throughput", "request_rate", "mean"))
		load := []string{"scenario", "load", "standardized"}
		r.Closed = g.closed(&r, append(slices.Clone(load), "rate_qps"), append(slices.Clone(load), "concurrency"))
	case g.has("metrics", "latency"): // llm-d 0.1
		g.report(&r, []string{"metrics"})
		served := len(g.list(scenario, "host", "type"))
		g.errs.Check(served == 0 || served == replicas, "scenario.host.type", served, fmt.Sprintf(servedRule, replicas))
		r.Rate = g.need("metrics", "throughput", "requests_per_sec")
		load := []string{"scenario", "load", "args"}
		r.Closed = g.closed(&r, append(slices.Clone(load), "request_rate"), append(slices.Clone(load), "max_concurrency"))
	default:
		return r, errNone()
	}
	return r, g.errs.Err()
}

// servedRule is the rule for the replicas that a report tells of.
const servedRule = "must be as many replicas as are said to have served the benchmark, %d"

// A getter reads numbers of a tree and records which are missing.
type getter struct {
	tree
	errs scaling.FieldErrors
}

func (g *getter) need(path ...string) float64 { return g.first(path) }

// first returns the first number that is present and above zero.
func (g *getter) first(paths ...[]string) float64 {
	var names []string
	var there any = printable.Plain("not there")
	for _, path := range paths {
		if x, ok := g.at(path...); ok && x > 0 {
			return x
		}
		if x, ok := g.value(path...); ok && len(names) == 0 {
			there = told(x)
		}
		names = append(names, strings.Join(path, "."))
	}
	g.errs.Check(false, strings.Join(names, " or "), there, "must be a number above 0")
	return math.NaN()
}

func (g *getter) may(path ...string) float64 {
	if x, ok := g.at(path...); ok {
		return x
	}
	return math.NaN()
}

// nearlyAll is the share of the requests that may be in flight from which on each waits for another.
const nearlyAll = 0.8

// closed reports whether each request came when another was done: there was no rate, or about as many as may be were in flight.
func (g *getter) closed(r *Run, rate, limit []string) bool {
	if x, _ := g.value(rate...); slices.Contains([]any{"inf", "Infinity", math.Inf(1)}, x) {
		return true
	}
	most, ok := g.at(limit...)
	flight := r.Rate * (r.Output - 1) * r.ITL
	if r.TTFT > 0 {
		flight += r.Rate * r.TTFT
	}
	return ok && flight >= nearlyAll*most
}

// report reads what the reports of llm-d have in common. Each statistic states its unit.
func (g *getter) report(r *Run, top []string) {
	path := func(names ...string) []string { return append(slices.Clone(top), names...) }
	r.Input, r.Output = g.first(path("requests", "input_length", "mean")), g.first(path("requests", "output_length", "mean"))
	seconds := func(name string) float64 {
		x, ok := g.at(path("latency", name, "mean")...)
		if !ok || x <= 0 {
			return math.NaN()
		}
		switch units := g.text(path("latency", name, "units")...); units {
		case "ms", "ms/token":
			return x / 1e3
		default:
			g.errs.Check(slices.Contains([]string{"", "s", "s/token"}, units), strings.Join(path("latency", name, "units"), "."), units, "must be s, ms, s/token or ms/token")
			return x
		}
	}
	r.TTFT, r.ITL = seconds("time_to_first_token"), seconds("inter_token_latency")
	perToken := seconds("time_per_output_token")
	g.oneByOne(strings.Join(path("latency", "inter_token_latency", "mean"), "."), r.ITL, perToken)
	if math.IsNaN(r.ITL) {
		r.ITL = perToken
	}
	g.errs.Check(r.ITL > 0, strings.Join(path("latency", "inter_token_latency or time_per_output_token", "mean"), "."), r.ITL, "must be a number above 0")
}

// piecemeal is how far the mean time between tokens may be above the mean time per token: the one is of tokens, the other of requests.
const piecemeal = 1.5

// oneByOne refuses times between pieces of an answer that have several tokens each: between two tokens it is less.
func (g *getter) oneByOne(field string, between, perToken float64) {
	g.errs.Check(!(perToken > 0 && between > piecemeal*perToken), field, between,
		fmt.Sprintf("must be between tokens: with %g per token, answers came in pieces of several, as with speculative decoding", perToken))
}

// readTable reads a CSV without quotes. Of what is wrong it tells the first line.
func readTable(text string) ([]Run, error) {
	lines := strings.Split(text, "\n")
	head := max(0, slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) != "" }))
	names := strings.Split(strings.TrimSpace(lines[head]), ",")
	shown := printable.Cut(strings.TrimSpace(lines[head]), mostShown)
	columns := map[string]int{}
	var e scaling.FieldErrors
	for i, name := range names {
		name = strings.TrimSpace(name)
		if _, twice := columns[name]; twice {
			return nil, &scaling.FieldError{Field: printable.Cut(name, mostShown), Value: shown, Rule: "must be a column of the header once"}
		}
		columns[name] = i
	}
	for _, name := range []string{"rate", "input", "output", "itl"} {
		_, ok := columns[name]
		e.Check(ok, name, shown, "must be a column of the header")
	}
	if err := e.Err(); err != nil {
		return nil, err
	}
	var runs []Run
	for n := head + 1; n < len(lines); n++ {
		line := lines[n]
		if strings.TrimSpace(line) == "" {
			continue
		}
		cells := strings.Split(line, ",")
		if len(cells) != len(names) {
			return nil, fmt.Errorf("line %d: has %d columns, and the header %d", n+1, len(cells), len(names))
		}
		cell := func(name string) float64 {
			i, ok := columns[name]
			if !ok {
				return math.NaN()
			}
			text := strings.TrimSpace(cells[i])
			x, err := strconv.ParseFloat(text, 64)
			e.Check(err == nil && x > 0 && x <= 1e9, fmt.Sprintf("line %d: %s", n+1, name), printable.Cut(text, mostShown), "must be a number above 0, of at most 1000000000")
			return x
		}
		runs = append(runs, Run{Rate: cell("rate"), Input: cell("input"), Output: cell("output"), TTFT: cell("ttft"), ITL: cell("itl")})
		if err := e.Err(); err != nil {
			return nil, err
		}
	}
	return runs, nil
}
