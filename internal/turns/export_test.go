package turns

// Known returns of how many tenants the work is kept.
func (q *Queue[J]) Known() int { return len(q.done) }
