package scrape

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Scraper reads the metrics of pods. It remembers the last values and counters of the pods of its last sweep only. Its
// methods may be called by several goroutines; sweeps run one after another.
type Scraper struct {
	config Config
	plan   *plan
	http   *fetcher

	turn   chan struct{}      // holds one element while somebody uses the fields below
	memory map[string]*memory // by Pod.identity
	began  time.Time          // start of the first sweep
	totals []tally            // by metric, for Counts
	// gone has the times of the last pages of pods that were forgotten, by their names: what their processes have counted until then
	// may be in the totals. It is empty if no metric is read as Counts.
	gone map[string]time.Time

	opening sync.Mutex // while a visit is opened
}

// maxGone is how many pods that were forgotten are known.
const maxGone = 1024

// memory is what is remembered of a pod. The slices are nil until a page of the pod is read.
type memory struct {
	last      []*share     // by metric; nil until there was a value
	baselines [][]baseline // by metric and series; none of a metric that needs no other page
	counted   []tally      // by metric, for Counts: what its pages have counted in this sweep
	taken     int64        // bytes of the budget beside those of baselines and distributions
	name      string       // of the pod
	since     time.Time    // what the pod's process counted is counted in full if it began since; zero means never
	budget    *Budget
	tenant    string
}

// New returns a Scraper. It reports all wrong fields of the Config at once, or a credential file that cannot be used.
func New(c Config) (*Scraper, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.orDefault()
	p := newPlan(c.Metrics)
	f, err := newFetcher(c, p.filter)
	if err != nil {
		return nil, err
	}
	return fresh(c, p, f), nil
}

func fresh(c Config, p *plan, f *fetcher) *Scraper {
	return &Scraper{config: c, plan: p, http: f, turn: make(chan struct{}, 1), memory: make(map[string]*memory), gone: make(map[string]time.Time), totals: make([]tally, len(c.Metrics))}
}

// lock waits for the turn, and reports whether it came before ctx ended.
func (s *Scraper) lock(ctx context.Context) bool {
	select {
	case s.turn <- struct{}{}: // also if ctx has ended, when the turn is free
		return true
	default:
	}
	select {
	case s.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Scraper) unlock() { <-s.turn }

// Close closes the connections that are kept between sweeps, discards what is remembered of pods and returns its memory to
// the budget. The Scraper can be used again afterwards, like a new one.
func (s *Scraper) Close() {
	s.turn <- struct{}{}
	defer s.unlock()
	s.http.close()
	s.visits(nil)
	s.began = time.Time{}
	clear(s.totals)
	s.forgetGone()
}

// A visit is one pod in one sweep.
type visit struct {
	pod    Pod
	own    *memory // nil if nothing is to be remembered of the pod
	memory *memory // own, unless it is empty
	result PodResult
	shares []*share // by metric

	separated bool // whether shares and result.Values are not those that visits share
}

// A task is one page of one pod.
type task struct {
	visit *visit
	fetch int       // index into PodResult.Fetches
	page  *pagePlan // its metrics
	url   *url.URL
	err   error // the pod has no usable address
	delay time.Duration
}

// Scrape reads the metrics of every ready pod and returns them. It never fails as a whole, and the failure of one pod does
// not affect others: see Sweep.Errors and PodResult. It returns by the SweepTimeout, or soon after ctx ends. If another
// sweep takes that long, no pod is scraped, and no last values are reused.
func (s *Scraper) Scrape(ctx context.Context, pods []Pod) Sweep {
	limited, cancel := context.WithTimeout(ctx, s.config.SweepTimeout)
	defer cancel()
	sweep := Sweep{}
	if s.lock(limited) {
		defer s.unlock()
		sweep.Credentials = s.http.refresh()
	} else {
		s = fresh(s.config, s.plan, s.http) // the other sweep uses what is remembered
	}
	sweep.At = s.config.Now()
	visits := s.visits(roster(pods))
	if s.began.IsZero() {
		s.began = sweep.At
	}
	tasks := s.tasks(visits)
	s.run(limited, ctx, tasks)
	for i := range tasks {
		s.failed(&tasks[i])
	}
	for _, v := range visits {
		s.reuse(v, sweep.At)
		sweep.Pods = append(sweep.Pods, v.result)
	}
	s.restart()
	for i := range s.plan.metrics {
		if s.plan.metrics[i].counts() {
			histogram, err := s.collect(i, visits, sweep.At)
			sweep.Histograms = append(sweep.Histograms, histogram)
			sweep.Errors = append(sweep.Errors, err)
			continue
		}
		reading, err := s.plan.metrics[i].reading(i, visits, sweep.At)
		sweep.Readings = append(sweep.Readings, reading)
		sweep.Errors = append(sweep.Errors, err)
	}
	for _, v := range visits {
		if v.memory != v.own {
			v.memory.forget()
		}
	}
	return sweep
}

// visits joins the pods with what is remembered of them, and discards the memory of all others. A pod is remembered from the
// time on at which it was first ready.
func (s *Scraper) visits(pods []Pod) []*visit {
	next := make(map[string]*memory, len(pods))
	for i := range pods {
		if m := s.memory[pods[i].identity()]; m != nil {
			next[pods[i].identity()], m.name = m, pods[i].Name
		}
	}
	for id, m := range s.memory {
		if next[id] == nil {
			m.forget()
			s.remember(m)
		}
	}
	s.memory = next
	visits := make([]*visit, len(pods))
	n := len(s.plan.metrics)
	// Shared by all pods of which no page is read: there may be thousands that do not exist, and no budget counts them.
	none := visit{memory: s.plan.memory(s.config.Budget, s.config.Tenant), shares: make([]*share, n), result: PodResult{Values: make([]PodValue, n)}}
	for i := range pods {
		p := pods[i]
		v := none
		v.pod = p
		m := next[p.identity()]
		if p.State == Ready {
			if m == nil {
				m = &memory{budget: s.config.Budget, tenant: s.config.Tenant}
				if m.name, m.since = p.Name, s.began; s.gone[p.Name].After(m.since) {
					m.since = s.gone[p.Name]
				}
				next[p.identity()] = m
			}
		}
		if v.own = m; m != nil && m.last != nil {
			v.memory = m
		}
		v.result.Name, v.result.UID, v.result.State = p.Name, p.UID, p.State
		visits[i] = &v
	}
	return visits
}

// remember adds a pod to gone. If that is full, or the budget has no memory left, all are forgotten, this one too.
func (s *Scraper) remember(m *memory) {
	if s.plan.counts == 0 {
		return
	}
	if _, is := s.gone[m.name]; !is && (len(s.gone) == maxGone || !s.config.Budget.keep(s.config.Tenant, goneBytes(m.name))) {
		s.forgetGone()
		s.began = s.config.Now() // a process that is older may have been counted
		return
	}
	s.gone[m.name] = m.until()
}

// forgetGone returns the memory of gone to the budget.
func (s *Scraper) forgetGone() {
	for name := range s.gone {
		s.config.Budget.keep(s.config.Tenant, -goneBytes(name))
	}
	clear(s.gone)
}

// goneBytes is the approximate memory of a pod in gone.
func goneBytes(name string) int64 { return 96 + int64(len(name)) }

// until is the time of the pod's last page, or since if there was none.
func (m *memory) until() time.Time {
	last := m.since
	for _, series := range m.baselines {
		for i := range series {
			if series[i].at.After(last) {
				last = series[i].at
			}
		}
	}
	return last
}

// memory returns one for a page, of which the budget counts nothing yet.
func (p *plan) memory(b *Budget, tenant string) *memory {
	m := &memory{budget: b, tenant: tenant}
	m.fill(p)
	return m
}

func (m *memory) fill(p *plan) {
	m.last, m.baselines, m.counted = make([]*share, len(p.metrics)), make([][]baseline, len(p.metrics)), make([]tally, p.counts)
	for i := range p.metrics {
		m.baselines[i] = make([]baseline, p.metrics[i].baselines())
	}
}

// begin makes room for the pages of a pod, if the budget has the memory.
func (m *memory) begin(p *plan) bool {
	if m.last != nil {
		return true
	}
	if !m.budget.keep(m.tenant, p.bytes) {
		return false
	}
	m.taken = p.bytes
	m.fill(p)
	return true
}

// separate makes the values of a visit its own, and reports whether they were not.
func (v *visit) separate(p *plan) bool {
	if v.separated {
		return false
	}
	v.shares, v.result.Values, v.separated = make([]*share, len(p.metrics)), make([]PodValue, len(p.metrics)), true
	return true
}

// open prepares a visit for the values of a page. If the budget has no memory for the pod, they are remembered until the sweep
// ends, and nothing is counted: there is no baseline.
func (s *Scraper) open(v *visit, at time.Time) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if !v.separate(s.plan) {
		return
	}
	if v.memory = v.own; v.own.begin(s.plan) {
		return
	}
	v.memory = s.plan.memory(s.config.Budget, s.config.Tenant)
	for _, series := range v.memory.baselines {
		for i := range series {
			series[i] = baseline{at: at, lost: true}
		}
	}
}

// failed sets the failure of a page that could not be fetched in the values of its metrics, when the sweep ends: a pod that is
// waited for takes no memory for each of them.
func (s *Scraper) failed(t *task) {
	v := t.visit
	fail := v.result.Fetches[t.fetch].Err
	if fail == nil {
		return
	}
	v.separate(s.plan)
	for _, i := range t.page.metrics {
		v.result.Values[i].Err = fail.of(v.pod.Name, s.plan.metrics[i].Name)
	}
}

// tasks returns the pages to get, in the order in which the requests begin.
func (s *Scraper) tasks(visits []*visit) []task {
	var tasks []task
	for _, v := range visits {
		if v.pod.State != Ready {
			continue
		}
		delay := offset(&v.pod, s.config.Spread)
		for i := range s.plan.pages {
			t := task{visit: v, fetch: i, page: &s.plan.pages[i], delay: delay}
			var own bool
			t.url, own, t.err = target(&v.pod, t.page.endpoint)
			if own {
				t.page = &s.plan.static
			}
			tasks = append(tasks, t)
			v.result.Fetches = append(v.result.Fetches, Fetch{})
			if own {
				break
			}
		}
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(a.delay, b.delay) })
	return tasks
}

// offset is the time of a pod within the spread: the same in every sweep, so that its samples are an interval apart.
func offset(p *Pod, spread time.Duration) time.Duration {
	if spread <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.identity()))
	return time.Duration(h.Sum64() % uint64(spread))
}

// run carries out the tasks. outer is the caller's context, which shows whether the caller or the sweep ended.
func (s *Scraper) run(ctx, outer context.Context, tasks []task) {
	queue := make(chan *task)
	var group sync.WaitGroup
	var left atomic.Int64
	left.Store(sweepBytes + int64(len(tasks))*podBytes)
	for range min(s.config.Concurrency, len(tasks)) {
		group.Add(1)
		go func() {
			defer group.Done()
			for t := range queue {
				s.visit(ctx, outer, &left, t)
			}
		}()
	}
	begun := time.Now() //nolint:forbidigo // the connection's clock
	for i := range tasks {
		if left := tasks[i].delay - time.Since(begun); left > 0 { //nolint:forbidigo // as above
			wait(ctx, left)
		}
		queue <- &tasks[i]
	}
	close(queue)
	group.Wait()
}

// wait returns after d or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

// visit gets one page and reduces it.
func (s *Scraper) visit(ctx, outer context.Context, left *atomic.Int64, t *task) {
	v := t.visit
	f := &v.result.Fetches[t.fetch]
	f.At = s.config.Now()
	l := lease{budget: s.config.Budget, tenant: s.config.Tenant, left: left}
	defer l.end()
	var fail *Error
	switch {
	case t.err != nil:
		fail = &Error{Reason: Target, Err: t.err}
	case ctx.Err() != nil:
		fail = &Error{Reason: Timeout, Err: ctx.Err()}
	default:
		var n int64
		n, fail = s.http.get(ctx, t.url, &l)
		f.Bytes = int(n)
	}
	f.Duration = s.config.Now().Sub(f.At)
	if fail != nil {
		f.Bytes = 0
		if fail.Reason == Timeout {
			switch {
			case errors.Is(outer.Err(), context.Canceled):
				fail = &Error{Reason: Canceled, Err: outer.Err()}
			case ctx.Err() != nil:
				fail = &Error{Reason: Deadline, Err: fmt.Errorf("the sweep ended first: %w", ctx.Err())}
			}
		}
		if fail.Reason.Fetch() {
			f.Err = fail.of(v.pod.Name, "") // for each metric when the sweep ends: see failed
			return
		}
		s.open(v, f.At)
		for _, i := range t.page.metrics {
			v.memory.remember(i, nil)
			v.result.Values[i].Err = fail.of(v.pod.Name, s.plan.metrics[i].Name)
		}
		return
	}
	s.open(v, f.At)
	now := moment{at: f.At, staleness: s.config.Staleness}
	s.plan.read(l.worker, t.page, now, v.memory, func(i int, sh *share, fail *Error) {
		value := &v.result.Values[i]
		// The page replaces what was remembered, even if it has no value: an older value would contradict it.
		v.memory.remember(i, sh)
		v.shares[i] = sh
		switch {
		case fail != nil:
			value.Err = s.http.clean(fail).of(v.pod.Name, s.plan.metrics[i].Name)
		default:
			value.fill(sh)
			if sh.idle() {
				value.Err = failf(NoObservations, "nothing between the last two scrapes").of(v.pod.Name, s.plan.metrics[i].Name)
			}
		}
	})
}

func (v *PodValue) fill(s *share) {
	v.OK = !s.idle()
	v.Value, v.Min, v.Max, v.Weight = s.value, s.min, s.max, s.den
	v.Engines, v.Series, v.At = s.engines, s.series, s.at
}

// reuse uses the last value of a pod if its page could not be fetched, while it is younger than the staleness limit.
func (s *Scraper) reuse(v *visit, now time.Time) {
	for i := range v.result.Values {
		value, last := &v.result.Values[i], v.memory.last[i]
		if value.Err == nil || !value.Err.Reason.Fetch() || last == nil || s.plan.metrics[i].counts() {
			continue
		}
		if age := now.Sub(last.at); age < 0 || age >= s.config.Staleness {
			continue
		}
		v.shares[i] = last
		value.fill(last)
		value.Reused = true
	}
}
