package sim

// Router says how requests are distributed over the ready replicas.
type Router int8

// The routers.
const (
	// LeastLoaded gives a request to the replica with the fewest waiting and running requests for its weight; of several, to
	// the oldest. It is the default.
	LeastLoaded Router = iota
	// RoundRobin gives requests to one replica after the other.
	RoundRobin
	// PrefixCache gives a request to the replica with the highest score; of several, to the least loaded:
	//
	//	3 * share of the prompt that is in its prefix cache
	//	+ 2 * (most - waiting) / (most - least)      requests that wait, over all replicas; 1 where all have as many
	//	+ 2 * (1 - share of its KV cache in use)
	//
	// These are the scorers prefix-cache, queue and kv-cache-utilization of llm-d's endpoint picker, with the weights of its
	// guides. The router knows the content of the caches, as llm-d does by KV events, and the present queues, not those of
	// the last scrape. It needs Scenario.BlockTokens.
	PrefixCache
)

const routerRule = "must be LeastLoaded, RoundRobin or PrefixCache"

func routers() []Router { return []Router{LeastLoaded, RoundRobin, PrefixCache} }

// String returns the router's name.
func (r Router) String() string {
	switch r {
	case RoundRobin:
		return "RoundRobin"
	case PrefixCache:
		return "PrefixCache"
	case LeastLoaded:
	}
	return "LeastLoaded"
}

// MarshalText returns the router's name.
func (r Router) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a router's name.
func (r *Router) UnmarshalText(text []byte) error {
	return unmarshal(r, PrefixCache, text, "router", routerRule)
}

// Weights of the scorers.
const (
	prefixWeight = 3
	queueWeight  = 2
	kvWeight     = 2
)

// route gives a job to a ready replica, or keeps it until one is ready.
func (e *engine) route(j int32) {
	if len(e.takers.ready) == 0 {
		e.hold(j)
		return
	}
	to := e.pick(&e.takers, e.scenario.Router, j)
	if !e.everFits(to, j) {
		e.refused++
		e.lose(j)
		return
	}
	e.predict(to, j)
	e.join(to, j)
}

// everFits reports whether a job fits into an empty replica, and its answer into any decode replica.
func (e *engine) everFits(r *replica, j int32) bool {
	b := &e.jobs[j]
	longest := int64(b.input) + int64(b.output) - 1
	if e.apart == nil {
		return longest <= r.speed.room
	}
	return int64(b.input) <= r.speed.room && (b.output == 1 || longest <= e.apart.room)
}

// pick returns the replica of a pool for a job.
func (e *engine) pick(p *pool, router Router, j int32) (to *replica) {
	best := 0.0
	switch router {
	case RoundRobin:
		if p.turn >= len(p.ready) {
			p.turn = 0
		}
		to = p.ready[p.turn]
		p.turn++
	case LeastLoaded:
		for _, r := range p.ready {
			if load := float64(r.load()) / r.weight; to == nil || load < best {
				to, best = r, load
			}
		}
	case PrefixCache:
		least, most := p.queues()
		for _, r := range p.ready {
			score := e.score(r, j, least, most)
			if to == nil || score > best || score == best && float64(r.load())/r.weight < float64(to.load())/to.weight {
				to, best = r, score
			}
		}
	}
	return to
}

// queues returns the shortest and the longest queue of the replicas, relative to their weights.
func (p *pool) queues() (least, most float64) {
	for i, r := range p.ready {
		n := float64(r.waiting.Len()) / r.weight
		if i == 0 {
			least, most = n, n
		}
		least, most = min(least, n), max(most, n)
	}
	return least, most
}

// score returns how well a replica suits a job.
func (e *engine) score(r *replica, j int32, least, most float64) float64 {
	e.trimmed(r)
	cached, _ := e.matched(r, j)
	queue := 1.0
	if most > least {
		queue = (most - float64(r.waiting.Len())/r.weight) / (most - least)
	}
	return prefixWeight*float64(cached)/float64(e.need(j)) + queueWeight*queue + kvWeight*(1-r.inUse(e.now))
}
