// Package turns is a bounded queue whose tenants take turns.
//
// The next job is that of the tenant for which the least work was done since Take last found no job; ties are broken by name. Within a
// tenant the order is first in, first out. A tenant that comes anew begins with the work of the tenant that was served last, so that it
// neither waits for what others have had nor catches up on it.
package turns

import "slices"

// Most is how many jobs may wait.
const Most = 32

// A Queue has the jobs that wait. The zero value is ready to use. It is not safe for concurrent use.
type Queue[J any] struct {
	waiting map[string][]J
	count   int
	done    map[string]float64 // work by tenant
	last    float64            // work of the tenant served last, before that job
}

// Len returns how many jobs wait.
func (q *Queue[J]) Len() int { return q.count }

// Of returns how many jobs of a tenant wait.
func (q *Queue[J]) Of(tenant string) int { return len(q.waiting[tenant]) }

// Room reports whether a tenant may put one more job. If Most jobs wait, a tenant with less than an equal part of them replaces
// the newest job of the tenant with the most, which Room removes and returns.
func (q *Queue[J]) Room(tenant string) (dropped J, replaces, ok bool) {
	if q.count < Most {
		return dropped, false, true
	}
	tenants := len(q.waiting)
	if len(q.waiting[tenant]) == 0 {
		tenants++
	}
	if len(q.waiting[tenant]) >= Most/tenants {
		return dropped, false, false
	}
	most := ""
	for other, jobs := range q.waiting {
		if n := len(q.waiting[most]); len(jobs) > n || len(jobs) == n && other < most {
			most = other
		}
	}
	jobs := q.waiting[most]
	dropped = jobs[len(jobs)-1]
	q.set(most, slices.Clone(jobs[:len(jobs)-1]))
	q.count--
	return dropped, true, true
}

// Put adds a job, for which there must be Room.
func (q *Queue[J]) Put(tenant string, j J) {
	if q.waiting == nil {
		q.waiting, q.done = make(map[string][]J), make(map[string]float64)
	}
	if len(q.waiting[tenant]) == 0 {
		q.done[tenant] = max(q.done[tenant], q.last)
	}
	q.set(tenant, append(q.waiting[tenant], j))
	q.count++
}

func (q *Queue[J]) set(tenant string, jobs []J) {
	if q.waiting[tenant] = jobs; len(jobs) == 0 {
		delete(q.waiting, tenant)
	}
}

// Take removes the next job and returns it with its tenant. If none waits, it returns false and forgets what was done for whom.
func (q *Queue[J]) Take() (first string, j J, ok bool) {
	for tenant := range q.waiting {
		if !ok || q.done[tenant] < q.done[first] || q.done[tenant] == q.done[first] && tenant < first {
			first, ok = tenant, true
		}
	}
	if !ok { // nobody waits, so nobody is ahead of another
		clear(q.done)
		q.last = 0
		return "", j, false
	}
	q.last = q.done[first]
	for tenant, n := range q.done { // a tenant at or below the work that it would begin with again
		if n <= q.last && len(q.waiting[tenant]) == 0 {
			delete(q.done, tenant)
		}
	}
	jobs := q.waiting[first]
	q.set(first, slices.Clone(jobs[1:]))
	q.count--
	return first, jobs[0], true
}

// Did adds work that was done for a tenant.
func (q *Queue[J]) Did(tenant string, work float64) {
	if q.done != nil {
		q.done[tenant] += work
	}
}
