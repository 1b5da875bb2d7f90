// Package simhistory is what Prometheus would have scraped of a simulated fleet of vLLM servers and of kube-state-metrics
// beside it: as samples, as an OpenMetrics file for promtool, and as a dump of package history.
package simhistory

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// Names of what is recorded.
const (
	Model     = "my-model"
	Namespace = "serving"
	Workload  = "replica"
)

// A Series is what was scraped of one series.
type Series struct {
	Signal history.Signal
	Part   history.Part
	Name   string
	Labels map[string]string
	At     []time.Time
	Values []float64
}

// A Recording is what was scraped of a run.
type Recording struct {
	Start  time.Time
	End    time.Time // the last scrape
	Scrape time.Duration
	Series []*Series
	// Arrived are the requests that came up to each scrape, and Spec the replicas that were asked for then.
	Arrived []float64
	Spec    []float64
	Result  sim.Result
	Done    []sim.Outcome
	// Engine is whose names the pods have.
	Engine history.Engine
	by     map[string]*Series
	latest map[string]*sim.Page // what a worker said last
}

// Record runs a scenario and scrapes it.
func Record(ctx context.Context, s *sim.Scenario, newGroup func() (scaling.Group, error), seed uint64) (*Recording, error) {
	return RecordAs(ctx, history.VLLM, s, newGroup, seed)
}

// RecordAs is Record of servers of an engine: what it does not say is not in the recording.
func RecordAs(ctx context.Context, e history.Engine, s *sim.Scenario, newGroup func() (scaling.Group, error), seed uint64) (*Recording, error) {
	r := &Recording{Engine: e, Start: s.Begin(), Scrape: s.Scrape.Interval, by: map[string]*Series{}, latest: map[string]*sim.Page{}}
	counted := *s
	arrived := 0.0
	counted.Workload = counting{s.Workload, &arrived}
	var err error
	r.Result, err = sim.Run(ctx, &counted, newGroup, sim.Options{
		Seed:    seed,
		Request: func(o sim.Outcome) { r.Done = append(r.Done, o) },
		Pages: func(now time.Time, pages []sim.Page) {
			r.End = now
			r.scrape(now, s.Types[0].Server.KVTokens, pages)
			r.Arrived = append(r.Arrived, arrived)
		},
	})
	return r, err
}

// counting counts requests when they come. The simulator looks one request ahead.
type counting struct {
	sim.Workload

	arrived *float64
}

func (c counting) Arrivals(seed uint64) sim.Arrivals {
	next := c.Workload.Arrivals(seed)
	*c.arrived = -1
	return func() (sim.Request, bool) {
		*c.arrived++
		return next()
	}
}

// add adds a sample.
func (r *Recording) add(now time.Time, signal history.Signal, part history.Part, name string, value float64, labels ...string) {
	key := name + "\x00" + strings.Join(labels, "\x00")
	s := r.by[key]
	if s == nil {
		s = &Series{Signal: signal, Part: part, Name: name, Labels: map[string]string{}}
		for i := 0; i < len(labels); i += 2 {
			s.Labels[labels[i]] = labels[i+1]
		}
		r.by[key] = s
		r.Series = append(r.Series, s)
	}
	s.At, s.Values = append(s.At, now), append(s.Values, value)
}

func (r *Recording) scrape(now time.Time, room int64, pages []sim.Page) {
	spec, ready := 0.0, 0.0
	for i := range pages {
		p := &pages[i]
		draining := p.Answered && !p.Ready
		if !draining {
			spec++
		}
		is := 0.0
		if p.Ready {
			ready++
			is = 1
		}
		kube := []string{"namespace", Namespace, "pod", p.Pod}
		r.add(now, history.PodCreated, history.Whole, "kube_pod_created", float64(p.Asked.UnixNano())/1e9, kube...)
		r.add(now, history.PodReady, history.Whole, "kube_pod_status_ready", is, append(kube, "condition", "true")...)
		switch {
		case !p.Answered:
		case r.Engine == history.VLLM:
			r.page(now, p, room)
		default:
			r.other(now, p, room)
		}
	}
	if r.Engine == history.Dynamo {
		r.frontend(now, pages)
	}
	of := []string{"namespace", Namespace, "statefulset", Workload}
	r.add(now, history.SpecReplicas, history.Whole, "kube_statefulset_replicas", spec, of...)
	r.add(now, history.ReadyReplicas, history.Whole, "kube_statefulset_status_replicas_ready", ready, of...)
	r.Spec = append(r.Spec, spec)
}

func (r *Recording) page(now time.Time, p *sim.Page, room int64) {
	pod := []string{"namespace", Namespace, "pod", p.Pod, "instance", "10.0.0.1:8000", "job", "vllm"}
	t := &teller{r, now, append(slices.Clone(pod), "model_name", Model, "engine", "0")}
	t.gauge(history.Waiting, "vllm:num_requests_waiting", float64(p.Waiting))
	t.gauge(history.Running, "vllm:num_requests_running", float64(p.Running))
	t.gauge(history.KVCacheUsage, "vllm:kv_cache_usage_perc", p.KVUse)
	t.gauge(history.Prompted, "vllm:prompt_tokens_total", p.PromptTokens)
	t.gauge(history.Generated, "vllm:generation_tokens_total", p.GenerationTokens)
	t.gauge(history.PrefixCacheHits, "vllm:prefix_cache_hits_total", p.PrefixHits)
	t.gauge(history.PrefixCacheQueries, "vllm:prefix_cache_queries_total", p.PromptTokens)
	r.add(now, history.CacheBlocks, history.Whole, "vllm:cache_config_info", 1,
		append(slices.Clone(pod), "engine", "0", "block_size", "1", "num_gpu_blocks", strconv.FormatInt(room, 10))...)
	t.ofTokens("vllm:inter_token_latency_seconds", p)
	t.histogram(history.PromptTokens, history.PromptTokens, "vllm:request_prompt_tokens", &p.Prompts, 1)
	t.histogram(history.GenerationTokens, history.GenerationTokens, "vllm:request_generation_tokens", &p.Answers, 1)
	t.histogram(history.TTFT, history.TTFT, "vllm:time_to_first_token_seconds", &p.TTFT, 1)
	t.histogram(history.TPOTs, history.TPOTs, "vllm:request_time_per_output_token_seconds", &p.TPOT, 1)
}

// OpenMetrics writes the recording for promtool tsdb create-blocks-from openmetrics.
func (r *Recording) OpenMetrics(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, s := range r.Series {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
			labels = append(labels, name+"="+strconv.Quote(s.Labels[name]))
		}
		head := s.Name + "{" + strings.Join(labels, ",") + "} "
		for i, at := range s.At {
			fmt.Fprintf(out, "%s%s %d.%03d\n", head, strconv.FormatFloat(s.Values[i], 'g', -1, 64), at.Unix(), at.Nanosecond()/1e6)
		}
	}
	out.WriteString("# EOF\n") //nolint:errcheck // Flush has it
	return out.Flush()
}

// Options are those with which the recording is asked about.
func (r *Recording) Options() history.Options {
	o := history.Options{Model: Model, Workload: Workload, Namespace: Namespace, Step: r.Scrape}
	if o.Validate(r.engine()) != nil {
		o.Model = "" // its series do not name it
	}
	return o
}

func (r *Recording) engine() history.Engine {
	if r.Engine == V0 {
		return history.VLLM
	}
	return r.Engine
}

// Dump is what Prometheus would answer about the recording.
func (r *Recording) Dump() (*history.Dump, error) {
	o := r.Options()
	f, err := history.NewFiller(r.engine(), o, r.Start, r.End)
	if err != nil {
		return nil, err
	}
	queries, err := history.Queries(r.engine(), o)
	if err != nil {
		return nil, err
	}
	for _, s := range r.Series {
		asked := slices.IndexFunc(queries, func(q history.Query) bool { return q.Signal == s.Signal && q.Part == s.Part })
		if asked < 0 {
			continue
		}
		q := queries[asked]
		labels := maps.Clone(s.Labels)
		labels["__name__"] = s.Name
		step := q.Step(&o)
		var at []int64
		var values []float64
		for i, t := range s.At {
			// The last value of each step.
			end := t.Truncate(step)
			if end.Before(t) {
				end = end.Add(step)
			}
			if n := len(at); n > 0 && at[n-1] == end.UnixMilli() {
				values[n-1] = s.Values[i]
				continue
			}
			if _, last := f.Span(); end.After(last) {
				break
			}
			at, values = append(at, end.UnixMilli()), append(values, s.Values[i])
		}
		if err := f.Add(&q, labels, len(at), func(i int) (int64, float64) { return at[i], values[i] }); err != nil {
			return nil, err
		}
	}
	return f.Dump()
}
