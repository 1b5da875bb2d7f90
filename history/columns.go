package history

import (
	"cmp"
	"math"
	"strconv"
)

// pod computes the columns of a pod.
func (r *reducer) pod(p *replica) error {
	n := p.last - p.first + 1
	narrow := func(values []float64) []float32 {
		to := make([]float32, n)
		for i, x := range values {
			to[i] = float32(x)
		}
		return to
	}
	out := Pod{Name: p.name, First: p.first - 1, KVTokens: p.cache(), Span: make([]uint16, n)}
	out.Waiting, out.Running = narrow(p.gauge(Waiting)), narrow(p.gauge(Running))
	kv := p.gauge(KVCacheUsage)
	if keys := p.keys(KVCapacity, Whole); len(keys) > 0 {
		room := p.gauge(KVCapacity)
		for i := range kv {
			kv[i] /= room[i]
		}
	}
	out.KV = narrow(kv)
	counted, err := p.counters()
	if err != nil {
		return err
	}
	if p.arrived, err = r.came(p, counted); err != nil {
		return err
	}
	first := func(a, b increase) increase {
		if a.any {
			return a
		}
		return b
	}
	tokens := counted[part{TPOT, Count}]
	prompted := first(counted[part{Prompted, Whole}], counted[part{PromptTokens, Sum}])
	hits, queries := counted[part{PrefixCacheHits, Whole}], counted[part{PrefixCacheQueries, Whole}]
	if !queries.any && counted[part{Cached, Whole}].any {
		hits, queries = counted[part{Cached, Whole}], prompted
	}
	rate := p.gauge(PrefixCacheHitRate)
	computed := make([]float64, n)
	for i := range computed {
		computed[i] = prompted.by[i]
		switch {
		case queries.any && queries.by[i] > 0:
			computed[i] *= 1 - math.Min(math.Max(hits.by[i]/queries.by[i], 0), 1)
		case queries.any && !known(queries.by[i]):
			computed[i] = math.NaN()
		case !queries.any && known(rate[i]):
			computed[i] *= 1 - math.Min(rate[i], 1)
		}
	}
	r.fleet.hit(prompted.by, computed, queries.any || len(p.keys(PrefixCacheHitRate, Whole)) > 0)
	out.Prompted = narrow(computed)
	out.Generated = narrow(first(counted[part{Generated, Whole}], counted[part{GenerationTokens, Sum}]).by)
	out.Firsts, out.TTFT = narrow(counted[part{TTFT, Count}].by), narrow(counted[part{TTFT, Sum}].by)
	out.ITL, out.Tokens = narrow(counted[part{TPOT, Sum}].by), narrow(tokens.by)
	copy(out.Span, first(tokens, counted[part{TTFT, Count}]).span)
	for _, i := range p.restarts {
		out.Span[i-p.first] = 0 // the process did not run for the whole interval
	}
	if out.First < 0 { // the first value is at the start of the first interval
		out.First = 0
		for _, column := range []*[]float32{&out.Waiting, &out.Running, &out.KV, &out.Prompted, &out.Generated, &out.Firsts, &out.TTFT, &out.ITL, &out.Tokens} {
			*column = (*column)[1:]
		}
		out.Span = out.Span[1:]
	}
	r.fleet.Pods = append(r.fleet.Pods, out)
	return nil
}

// counters returns the increases of all counters of a pod. If a counter exceeds its old value before it is scraped again, it
// hides that the process restarted. Other counters may show it, so all are read again if one does.
func (p *replica) counters() (map[part]increase, error) {
	counted := map[part]increase{}
	for range 2 {
		p.relabelled, p.doubled = 0, false
		for _, at := range []part{
			{TTFT, Sum},
			{TTFT, Count},
			{TPOT, Sum},
			{TPOT, Count},
			{Prompted, Whole},
			{Generated, Whole},
			{Requests, Whole},
			{PrefixCacheHits, Whole},
			{PrefixCacheQueries, Whole},
			{Cached, Whole},
			{Finished, Whole},
			{PromptTokens, Sum},
			{PromptTokens, Count},
			{GenerationTokens, Sum},
			{GenerationTokens, Count},
		} {
			up, err := p.increase(at.signal, at.part)
			if err != nil {
				return nil, err
			}
			counted[at] = up
		}
		if len(p.restarts) == 0 {
			break
		}
	}
	return counted, nil
}

// cache returns the size of a pod's KV caches in tokens, of all engines. An engine that restarts may size its cache anew: what it
// said last counts.
func (p *replica) cache() float64 {
	type size struct {
		first, last int // steps at which the engine said so
		tokens      float64
	}
	sizes := map[string]size{}
	for _, k := range p.keys(CacheBlocks, Whole) {
		block, err := strconv.ParseFloat(k.labels["block_size"], 64)
		blocks, err2 := strconv.ParseFloat(k.labels["num_gpu_blocks"], 64)
		if err != nil || err2 != nil || !(block > 0 && blocks > 0) {
			return math.NaN()
		}
		this := size{math.MaxInt, -1, block * blocks}
		for _, v := range k.variants {
			if first, last := v.span(0, p.until); first >= 0 {
				this.first, this.last = min(this.first, first), max(this.last, last)
			}
		}
		engine := k.labels["engine"]
		if of, ok := sizes[engine]; !ok || cmp.Or(cmp.Compare(this.last, of.last), cmp.Compare(this.first, of.first)) > 0 {
			sizes[engine] = this
		}
	}
	room := 0.0
	for _, of := range sizes {
		room += of.tokens
	}
	if room == 0 || math.IsInf(room, 0) {
		return math.NaN()
	}
	return room
}
