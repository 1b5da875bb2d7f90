package sim

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Page is what a replica exposes when it is scraped: the content of a vLLM server's metrics page. Gauges have their value
// at that time; counters count since the start of the replica's process.
type Page struct {
	Pod   string
	Type  int       // index of its type in the scenario
	Asked time.Time // when the replica was requested
	Ready bool      // whether it takes requests; a draining replica does not, but it answers the scrape
	// Answered is false while the replica starts, and if the scrape failed: the fields after it are then zero.
	Answered bool

	Waiting, Running int32
	KVUse            float64 // share of the KV cache in use (vllm:kv_cache_usage_perc)

	Steps            int64   // engine steps (vllm:iteration_tokens_total_count)
	PromptTokens     float64 // of requests with a first token, computed or found in the cache (vllm:prompt_tokens_total)
	GenerationTokens float64 // generated tokens (vllm:generation_tokens_total)
	// PrefixQueries are the prompt tokens that were looked up in the prefix cache (vllm:prefix_cache_queries_total), and
	// PrefixHits those that were found (vllm:prefix_cache_hits_total). A sequence is not counted again after a preemption.
	PrefixQueries, PrefixHits float64
	// ITLSeconds and ITLs are the sum and the count of the times between two tokens of an answer
	// (vllm:inter_token_latency_seconds).
	ITLSeconds, ITLs float64
	// The histograms of requests, without metric names: lengths of finished requests, times to first token, and times per
	// output token of finished requests. The callback must not keep their bounds and counts.
	Prompts, Answers, TTFT, TPOT scaling.Histogram
}

// page makes the page of every replica at a scrape.
func (o *observer) page(e *engine) {
	o.shown = o.shown[:0]
	for _, r := range e.fleet {
		p := Page{Pod: r.name, Type: int(r.kind), Asked: e.at(r.asked), Ready: r.life == ready}
		if r.life == draining || r.life == ready && r.scraped == e.now {
			r.answer(e, &p)
		}
		o.shown = append(o.shown, p)
	}
	e.options.Pages(e.at(e.now), o.shown)
}

// answer fills in a page.
func (r *replica) answer(e *engine, p *Page) {
	p.Answered, p.Waiting, p.Running = true, int32(r.waiting.Len()), r.running
	p.KVUse = r.inUse(e.now)
	if r.cache != nil {
		p.PrefixQueries, p.PrefixHits = float64(r.cache.queries), float64(r.cache.hits)
	}
	done, spent := int64(0), int64(0) // in the present stretch
	if r.busy {
		done = steps(e.now-r.from+1, r.first, r.growth, r.length) - 1
		spent = sum(done, r.first, r.growth)
	}
	n := float64(len(r.decodes))
	p.Steps = r.step + done
	p.ITLs = r.decoded + n*float64(done)
	p.ITLSeconds = r.decoding + n*seconds(spent)
	p.GenerationTokens = p.ITLs + float64(r.firsts)
	table := func(s Signal) scaling.Histogram {
		t := &r.meter.now[s-firstTallied]
		return scaling.Histogram{Bounds: t.bounds.ends, Counts: t.counts, Sum: t.sum, At: e.at(e.now)}
	}
	p.PromptTokens = r.meter.now[Prefilled-firstTallied].sum + r.found
	p.Prompts, p.Answers, p.TTFT, p.TPOT = table(PromptTokens), table(GenerationTokens), table(TTFTs), table(TPOTs)
}
