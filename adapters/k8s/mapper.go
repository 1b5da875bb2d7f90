package k8s

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	failureLife  = 30 * time.Second // how long a failed question is not asked again, and the least time between two resets
	mostFailures = 1024             // how many failed questions are remembered
)

// Remembering returns a RESTMapper that remembers what another one answers to RESTMapping and ResourceFor, which are asked for in
// each round of each target. Mappers ask the API server about a kind that they do not know, and others wait meanwhile: without
// this, a target of an unknown kind, or of an API that does not answer, delays the rounds of all targets.
//
// A kind that was found once is returned without asking again. If it is removed later, its mapping remains, and the requests of
// its targets fail. A failure is returned for 30 s, whether the kind is unknown or the API server did not answer; the last 1,024
// failures are remembered. Those who ask the same at the same time share one answer. If a kind is unknown and the mapper is a
// meta.ResettableRESTMapper, it is reset and asked once more, at most every 30 s, so that a kind that was installed later is
// found. Reset forgets all answers. The other methods are those of the mapper.
func Remembering(mapper meta.RESTMapper) meta.RESTMapper {
	return remember(mapper, time.Now) //nolint:forbidigo // how long an answer counts is no decision's time
}

func remember(mapper meta.RESTMapper, now func() time.Time) *rememberingMapper {
	m := &rememberingMapper{RESTMapper: mapper, now: now, asked: map[question]*answer{}}
	m.forget()
	return m
}

type rememberingMapper struct {
	meta.RESTMapper
	now func() time.Time

	mu     sync.Mutex // not held while the mapper is asked
	known  map[question]*answer
	failed map[question]*answer
	asked  map[question]*answer // what is being asked
	reset  time.Time            // of the mapper, the last time
}

// A question is either for the mapping of a kind or for a resource.
type question struct {
	kind     schema.GroupKind
	versions int // how many versions were given
	version  string
	resource schema.GroupVersionResource
}

type answer struct {
	done     chan struct{} // closed when the rest is set
	at       time.Time
	mapping  *meta.RESTMapping
	resource schema.GroupVersionResource
	err      error
}

// RESTMapping returns the mapping of a kind, see meta.RESTMapper. With several versions nothing is remembered.
func (m *rememberingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	q := question{kind: kind, versions: len(versions)}
	switch len(versions) {
	case 0:
	case 1:
		q.version = versions[0]
	default:
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	a := m.answer(q, func(a *answer) { a.mapping, a.err = m.RESTMapper.RESTMapping(kind, versions...) })
	return a.mapping, a.err
}

// ResourceFor returns the full name of a resource, see meta.RESTMapper. Clients of /scale ask for it before each request.
func (m *rememberingMapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	a := m.answer(question{resource: r}, func(a *answer) { a.resource, a.err = m.RESTMapper.ResourceFor(r) })
	return a.resource, a.err
}

// Reset forgets all answers, and resets the mapper if that is possible.
func (m *rememberingMapper) Reset() {
	m.mu.Lock()
	m.forget()
	m.mu.Unlock()
	meta.MaybeResetRESTMapper(m.RESTMapper)
}

func (m *rememberingMapper) forget() {
	m.known, m.failed = map[question]*answer{}, map[question]*answer{}
}

// answer returns what is remembered, or what is being asked by somebody else, or asks.
func (m *rememberingMapper) answer(q question, ask func(*answer)) *answer {
	m.mu.Lock()
	a, ok := m.known[q]
	if !ok {
		a, ok = m.failed[q]
		ok = ok && m.now().Sub(a.at) < failureLife
	}
	if ok {
		m.mu.Unlock()
		return a
	}
	if a, ok = m.asked[q]; ok {
		m.mu.Unlock()
		<-a.done
		return a
	}
	a = &answer{done: make(chan struct{}), err: errPanicked}
	m.asked[q] = a
	m.mu.Unlock()

	defer m.keep(q, a) // also if the mapper panics: others wait
	ask(a)
	if meta.IsNoMatchError(a.err) && m.renew() {
		ask(a)
	}
	return a
}

var errPanicked = errors.New("the REST mapper panicked")

// keep remembers an answer, and hands it to those who wait for it.
func (m *rememberingMapper) keep(q question, a *answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.asked, q)
	delete(m.failed, q)
	a.at = m.now()
	if a.err == nil {
		m.known[q] = a
	} else {
		if len(m.failed) >= mostFailures {
			m.dropOldest()
		}
		m.failed[q] = a
	}
	close(a.done)
}

func (m *rememberingMapper) dropOldest() {
	var oldest question
	var at time.Time
	for q, a := range m.failed {
		if at.IsZero() || a.at.Before(at) {
			oldest, at = q, a.at
		}
	}
	delete(m.failed, oldest)
}

// renew resets the mapper, and reports whether it did. A kind may have been installed since the mapper looked.
func (m *rememberingMapper) renew() bool {
	mapper, ok := m.RESTMapper.(meta.ResettableRESTMapper)
	if !ok {
		return false
	}
	m.mu.Lock()
	now := m.now()
	due := m.reset.IsZero() || now.Sub(m.reset) >= failureLife
	if due {
		m.reset = now
	}
	m.mu.Unlock()
	if due {
		mapper.Reset()
	}
	return due
}
