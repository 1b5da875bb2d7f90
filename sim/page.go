package sim

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Page is what a replica says of itself when it is scraped: what is on the metrics page of a vLLM server. Gauges are as
// they are at that time, counters are since its process began.
type Page struct {
	Pod   string
	Type  int       // of the scenario
	Asked time.Time // when the replica was asked for
	Ready bool      // whether it takes requests; one that drains does not, and answers
	// Answered is false while it starts, and where the scrape failed: all that follows is zero then.
	Answered bool

	Waiting, Running int32
	KVUse            float64 // share of the KV cache in use (vllm:kv_cache_usage_perc)

	Steps            int64   // of the engine (vllm:iteration_tokens_total_count)
	PromptTokens     float64 // of requests that have their first token, computed or not (vllm:prompt_tokens_total)
	GenerationTokens float64 // written (vllm:generation_tokens_total)
	// PrefixQueries are the tokens of prompts that were looked up in the prefix cache (vllm:prefix_cache_queries_total), and
	// PrefixHits those that were there (vllm:prefix_cache_hits_total). A sequence that was preempted is not counted again.
	PrefixQueries, PrefixHits float64
	// ITLSeconds and ITLs are the sum and the count of the times between two tokens of an answer
	// (vllm:inter_token_latency_seconds).
	ITLSeconds, ITLs float64
	// The histograms of requests, without a metric's name: lengths of what finished, times to first token, times per output
	// token of what finished. Their bounds and counts must not be kept.
	Prompts, Answers, TTFT, TPOT scaling.Histogram
}

// page shows what every replica says at a scrape.
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

// answer fills a page in.
func (r *replica) answer(e *engine, p *Page) {
	p.Answered, p.Waiting, p.Running = true, int32(r.waiting.len()), r.running
	p.KVUse = r.inUse(e.now)
	if r.cache != nil {
		p.PrefixQueries, p.PrefixHits = float64(r.cache.queries), float64(r.cache.hits)
	}
	done, spent := int64(0), int64(0) // of the stretch under way
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
