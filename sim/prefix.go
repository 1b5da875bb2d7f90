package sim

// A prefixCache has the blocks of the KV cache that a replica keeps of prompts, and of answers with known blocks, by their
// ids. Sequences of the batch use some of the blocks; sequences with the same beginning share them. The other blocks are
// idle and stay until their memory is needed. Blocks that became idle first are evicted first, and of one sequence the last
// block first, so that only the end of a prefix is evicted: the order of vLLM's free queue.
//
// An id stands for a block and all blocks before it. A sequence uses its blocks from the first on without a gap, so that a
// block is in use while a block after it is.
type prefixCache struct {
	size   int64 // tokens of a block
	places map[uint64]int32
	blocks []block
	unused []int32 // indexes in blocks that are free
	idle   int64
	first  int32 // ends of the list of idle blocks, -1 for none; the first one is evicted first
	last   int32

	queries, hits int64 // prompt tokens that were looked up, and those of them that were found
}

type block struct {
	id         uint64
	users      int32
	prev, next int32 // in the list of idle blocks
}

// A prompt is the state of a job in a prefix cache.
type prompt struct {
	blocks    []uint64
	linked    int32 // number of its blocks, from the first on, that it uses in the cache of its replica
	expected  int64 // tokens that were in the cache when it arrived at the replica
	found     int64 // tokens that were there when it was first admitted: they are not computed
	preempted bool
}

func newPrefixCache(size int64) *prefixCache {
	return &prefixCache{size: size, places: map[uint64]int32{}, first: -1, last: -1}
}

// use adds a user to a block, which is created if it is missing, and returns how many users it had.
func (c *prefixCache) use(id uint64) int32 {
	i, known := c.places[id]
	switch {
	case !known && len(c.unused) > 0:
		i = c.unused[len(c.unused)-1]
		c.unused = c.unused[:len(c.unused)-1]
	case !known:
		i = int32(len(c.blocks))
		c.blocks = append(c.blocks, block{})
	}
	b := &c.blocks[i]
	if !known {
		c.places[id] = i
		*b = block{id: id, prev: -1, next: -1}
	} else if b.users == 0 {
		c.unlist(i)
	}
	b.users++
	return b.users - 1
}

// drop removes a user from a block and returns how many are left.
func (c *prefixCache) drop(id uint64) int32 {
	i := c.places[id]
	b := &c.blocks[i]
	b.users--
	if b.users > 0 {
		return b.users
	}
	b.prev, b.next = c.last, -1
	if c.last >= 0 {
		c.blocks[c.last].next = i
	} else {
		c.first = i
	}
	c.last = i
	c.idle++
	return 0
}

// unlist removes a block from the list of idle ones.
func (c *prefixCache) unlist(i int32) {
	b := &c.blocks[i]
	if b.prev >= 0 {
		c.blocks[b.prev].next = b.next
	} else {
		c.first = b.next
	}
	if b.next >= 0 {
		c.blocks[b.next].prev = b.prev
	} else {
		c.last = b.prev
	}
	c.idle--
}

// trim evicts idle blocks until they fit into so many tokens.
func (c *prefixCache) trim(tokens int64) {
	for c.first >= 0 && c.idle*c.size > tokens {
		i := c.first
		c.unlist(i)
		delete(c.places, c.blocks[i].id)
		c.unused = append(c.unused, i)
	}
}

// reset empties the cache: the process restarted.
func (c *prefixCache) reset() { *c = *newPrefixCache(c.size) }

// trim evicts idle blocks of a replica's cache to make room for the tokens that its sequences hold.
func (r *replica) trim(held int64) {
	if r.cache != nil {
		r.cache.trim(r.speed.room + r.shared - held)
	}
}

// trimmed makes room for the tokens that they hold at the end of the present step.
func (e *engine) trimmed(r *replica) {
	if r.cache != nil && r.busy {
		r.trim(r.kvAt(e.now) + int64(len(r.decodes)))
	}
}

// match returns how many blocks of a job, from the first on, are in a replica's cache. At least one token is always left to
// compute.
func (e *engine) match(r *replica, j int32) (blocks int32) {
	if r.cache == nil {
		return 0
	}
	all := e.prompts[j].blocks
	for _, id := range all[:min(int64(len(all)), (e.need(j)-1)/r.cache.size)] {
		if _, there := r.cache.places[id]; !there {
			break
		}
		blocks++
	}
	return blocks
}

// matched returns the tokens of those blocks, and how many of them are in use by sequences already.
func (e *engine) matched(r *replica, j int32) (tokens, shared int64) {
	if r.cache == nil {
		return 0, 0
	}
	for _, id := range e.prompts[j].blocks[:e.match(r, j)] {
		tokens += r.cache.size
		if r.cache.blocks[r.cache.places[id]].users > 0 {
			shared += r.cache.size
		}
	}
	return tokens, shared
}

// link makes blocks of the cache of the first tokens of a job. Blocks that another sequence has in the cache already are
// shared.
func (e *engine) link(r *replica, j int32, tokens int64) {
	if r.cache == nil {
		return
	}
	p := &e.prompts[j]
	for int64(p.linked) < min(int64(len(p.blocks)), tokens/r.cache.size) {
		if r.cache.use(p.blocks[p.linked]) > 0 {
			r.shared += r.cache.size
		}
		p.linked++
	}
}

// unlink ends a job's use of the cache, its last block first.
func (e *engine) unlink(r *replica, j int32) {
	if r.cache == nil {
		return
	}
	p := &e.prompts[j]
	for ; p.linked > 0; p.linked-- {
		if r.cache.drop(p.blocks[p.linked-1]) > 0 {
			r.shared -= r.cache.size
		}
	}
}

// expect records how much of a job is in the cache of the replica in which it will wait.
func (e *engine) expect(r *replica, j int32) {
	if r.cache == nil {
		return
	}
	e.prompts[j].expected = int64(e.match(r, j)) * r.cache.size
}

// ahead returns how many tokens are expected to be computed for a waiting job.
func (e *engine) ahead(j int32) int64 {
	switch {
	case e.apart != nil && e.apart.of[j].stage == kept:
		return 0 // its prompt is computed already
	case e.prompts == nil:
		return e.need(j)
	}
	return e.need(j) - e.prompts[j].expected
}

// hit uses the blocks of a job that are in the cache when it is admitted, and returns their tokens.
func (e *engine) hit(r *replica, j int32) int64 {
	if r.cache == nil {
		return 0
	}
	p := &e.prompts[j]
	tokens := int64(e.match(r, j)) * r.cache.size
	e.link(r, j, tokens)
	if !p.preempted {
		r.cache.queries += e.need(j)
		r.cache.hits += tokens
		p.found = tokens
		e.prefixQueries += e.need(j)
		e.prefixHits += tokens
	}
	r.ahead += p.expected - tokens
	return tokens
}

// found returns how many tokens of a job's prompt its replica had in the cache.
func (e *engine) found(r *replica, j int32) float64 {
	if r.cache == nil {
		return 0
	}
	return float64(e.prompts[j].found)
}

// cacheBalances reports whether the blocks of a cache in use are those of the jobs of its replica, and whether they fit.
func (e *engine) cacheBalances(r *replica) bool {
	if r.cache == nil {
		return r.shared == 0
	}
	users, shared, idle := int64(0), int64(0), int64(0)
	for _, i := range r.cache.places {
		n := int64(r.cache.blocks[i].users)
		users += n
		shared += max(0, n-1) * r.cache.size
		if n == 0 {
			idle++
		}
	}
	for j := r.oldest; j >= 0; j = e.jobs[j].next {
		users -= int64(e.prompts[j].linked)
	}
	_, blocks := e.asideIn(r)
	users -= blocks
	balance := users == 0 && shared == r.shared && idle == r.cache.idle
	r.trim(r.held)
	return balance && r.held-r.shared+r.cache.idle*r.cache.size <= r.speed.room
}
