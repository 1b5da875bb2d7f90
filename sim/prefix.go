package sim

// A prefixCache is what a replica keeps of prompts, and of answers whose blocks are known: blocks of the KV cache by their
// ids. The sequences of the batch use some of them, several the same one if they begin alike; the others are idle, and stay
// until their memory is needed. Those that became idle first go first, and of one sequence the last block before the one in
// front of it, so that what goes is always the end of a prefix: the order of vLLM's free queue.
//
// An id stands for a block and all before it. A sequence uses its blocks from the first on without a gap, so that a
// block is in use as long as one behind it is.
type prefixCache struct {
	size   int64 // tokens of a block
	places map[uint64]int32
	blocks []block
	unused []int32 // places in blocks
	idle   int64
	first  int32 // ends of the list of idle blocks, -1 for none; the first one goes first
	last   int32

	queries, hits int64 // tokens of prompts that were looked up, and of them those that were there
}

type block struct {
	id         uint64
	users      int32
	prev, next int32 // in the list of idle blocks
}

// A prompt is what a job has in a prefix cache.
type prompt struct {
	blocks    []uint64
	linked    int32 // of them, those that it uses in the cache of its replica, from the first on
	expected  int64 // tokens that were in the cache when it came
	found     int64 // tokens that were there when it was admitted first: they are not computed
	preempted bool
}

func newPrefixCache(size int64) *prefixCache {
	return &prefixCache{size: size, places: map[uint64]int32{}, first: -1, last: -1}
}

// use adds a user to a block, which is new if it is not there, and returns how many it had.
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

// drop takes a user from a block and returns how many are left.
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

// unlist takes a block off the list of idle ones.
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

// trim lets idle blocks go until they fit into so many tokens.
func (c *prefixCache) trim(tokens int64) {
	for c.first >= 0 && c.idle*c.size > tokens {
		i := c.first
		c.unlist(i)
		delete(c.places, c.blocks[i].id)
		c.unused = append(c.unused, i)
	}
}

// reset forgets everything: the process began anew.
func (c *prefixCache) reset() { *c = *newPrefixCache(c.size) }

// trim gives idle blocks of a replica's cache up for what its sequences hold.
func (r *replica) trim(held int64) {
	if r.cache != nil {
		r.cache.trim(r.speed.room + r.shared - held)
	}
}

// trimmed does so for what they hold at the end of the step that is under way.
func (e *engine) trimmed(r *replica) {
	if r.cache != nil && r.busy {
		r.trim(r.kvAt(e.now) + int64(len(r.decodes)))
	}
}

// match returns how many blocks of a job a replica has in its cache, from the first on. A token at least is always left
// to compute.
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

// matched returns the tokens of those blocks, and of them those that sequences use already.
func (e *engine) matched(r *replica, j int32) (tokens, shared int64) {
	for _, id := range e.blocksOf(r, j) {
		tokens += r.cache.size
		if r.cache.blocks[r.cache.places[id]].users > 0 {
			shared += r.cache.size
		}
	}
	return tokens, shared
}

func (e *engine) blocksOf(r *replica, j int32) []uint64 {
	if r.cache == nil {
		return nil
	}
	return e.prompts[j].blocks[:e.match(r, j)]
}

// link makes the first tokens of a job blocks of the cache. What another sequence has put there already is used in the
// place of its own.
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

// expect notes what of a job is in the cache of a replica that it will wait in.
func (e *engine) expect(r *replica, j int32) {
	if r.cache == nil {
		return
	}
	e.prompts[j].expected = int64(e.match(r, j)) * r.cache.size
}

// ahead returns the tokens that a job that waits is expected to be computed for.
func (e *engine) ahead(j int32) int64 {
	switch {
	case e.apart != nil && e.apart.of[j].stage == kept:
		return 0 // it is computed
	case e.prompts == nil:
		return e.need(j)
	}
	return e.need(j) - e.prompts[j].expected
}

// hit takes what there is of a job in the cache when it is admitted, and returns the tokens.
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

// found returns the tokens of a job's prompt that its replica had in the cache.
func (e *engine) found(r *replica, j int32) float64 {
	if r.cache == nil {
		return 0
	}
	return float64(e.prompts[j].found)
}

// cacheBalances reports whether a cache's blocks are those that the jobs of its replica use, and fit.
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
