package history

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Reduce makes a fleet of a dump. Errors are those of [Dump.Validate], and a [*RefusedError] if it has no pods, no arrivals
// or ambiguous numbers only. Everything else that is missing is in the fleet's notes.
func Reduce(d *Dump) (*Fleet, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	r := &reducer{dump: d, steps: d.Steps()}
	n := r.steps - 1
	r.fleet = &Fleet{
		Model: d.Model, Engine: d.Engine, Start: d.Start, Step: time.Duration(d.Step),
		Target:   Target{Namespace: d.Namespace, Name: d.Workload},
		Arrivals: unknown(n), Spec: unknown(n), Ready: unknown(n),
	}
	if err := r.collect(); err != nil {
		return nil, err
	}
	if len(r.pods) == 0 {
		return nil, &RefusedError{Waiting, fmt.Sprintf("no pod of %s has any value%s: is the name of the model, the engine and the range right?", d.Engine, ofModel(d.Model))}
	}
	r.births()
	r.replicas()
	for _, p := range r.pods {
		if err := r.pod(p); err != nil {
			return nil, err
		}
	}
	if err := r.arrivals(); err != nil {
		return nil, err
	}
	if err := r.spans(); err != nil {
		return nil, err
	}
	for _, p := range r.pods {
		p.tally(&r.fleet.Repairs)
	}
	r.starts()
	r.missing()
	r.fleet.Repairs.Pods, r.fleet.every = len(r.pods), r.every
	return r.fleet, nil
}

func ofModel(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" with model %q", name)
}

func unknown(n int) []float64 {
	return slices.Repeat([]float64{math.NaN()}, n)
}

// A reducer is the state of a reduction.
type reducer struct {
	dump  *Dump
	steps int
	fleet *Fleet
	pods  []*replica // pods that serve requests, by name
	// workers are Dynamo's workers, which serve the requests that frontends count, and report none themselves.
	workers []*replica
	// routers count for the whole fleet.
	routers []*replica
	// fleetwide has the series of Kubernetes.
	fleetwide map[Signal][]*Series
	mixer     mixer         // of the distributions
	every     int           // steps between two scrapes, rounded up
	scrape    time.Duration // time between two scrapes
	seen      []bool        // steps at which any pod has a value
	has       map[Signal]bool
	lacks     map[Signal]bool // signals that a pod lacks and others have
	counting  bool            // whether any pod has counted finished requests
	doubles   float64         // requests in flight when a process restarted
	baseless  int             // pods whose counts at their first value are unknown
	returned  int             // lives of names with several lives
	looked    float64         // how often a value of a series is looked for
	apart     map[Signal]int  // steps at which series of Kubernetes differ, and names of pods whose series do
}

// collect sorts the series by pod.
func (r *reducer) collect() error {
	r.fleetwide, r.has, r.lacks, r.apart = map[Signal][]*Series{}, map[Signal]bool{}, map[Signal]bool{}, map[Signal]int{}
	r.seen = make([]bool, r.steps)
	serving, routing := map[string]*replica{}, map[string]*replica{}
	kubernetes := map[string][]*Series{}
	for i := range r.dump.Series {
		s := &r.dump.Series[i]
		first, last := s.span(0, r.steps-1)
		switch {
		case first < 0:
			continue
		case s.Signal.fleetwide():
			r.fleetwide[s.Signal] = append(r.fleetwide[s.Signal], s)
			r.has[s.Signal] = true
			continue
		case s.Signal.kubernetes():
			kubernetes[s.Pod] = append(kubernetes[s.Pod], s)
			r.has[s.Signal] = true
			continue
		}
		in, engine := serving, r.dump.Engine
		if s.Router {
			in, engine = routing, EPP
		} else {
			r.has[s.Signal] = true
		}
		p := in[s.Pod]
		if p == nil {
			p = &replica{name: s.Pod, engine: engine, series: map[part][]*Series{}, first: math.MaxInt, last: -1, gone: -MaxSteps, until: r.steps - 1, life: nothingKnown()}
			in[s.Pod] = p
		}
		at := part{s.Signal, s.Part}
		p.series[at] = append(p.series[at], s)
		r.counting = r.counting || !s.Router && slices.Contains(finishes(), at)
		if s.scraped() {
			p.first, p.last = min(p.first, first), max(p.last, last)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(routing)) {
		if p := routing[name]; p.last >= 0 {
			r.routers = append(r.routers, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(serving)) {
		p := serving[name]
		if p.last < 0 {
			continue // buckets or a configuration alone are not a pod
		}
		if r.several(kubernetes[name]) {
			kubernetes[name] = nil
			r.apart[PodCreated]++
		}
		lives, err := r.lives(kubernetes[name])
		if err != nil {
			return err
		}
		all := 0
		for _, series := range p.series {
			all += len(series)
		}
		if err := r.look(name, all, len(lives)); err != nil {
			return err
		}
		for _, one := range p.split(lives, r.dump) {
			if p.engine == Dynamo && !slices.ContainsFunc([]part{{GenerationTokens, Count}, {Finished, Whole}, {TTFT, Count}}, func(at part) bool { return p.series[at] != nil }) {
				r.workers = append(r.workers, one)
			} else {
				r.pods = append(r.pods, one)
			}
		}
	}
	if err := r.bounded(r.pods, r.workers, r.routers); err != nil {
		return err
	}
	for _, p := range r.pods {
		r.scraped(p)
	}
	r.interval()
	return nil
}

// mostSteps is the highest total of steps of all pods. A pod has columns from its first value to its last, so a dump of a
// few bytes could take gigabytes. More steps are accepted if there are as many values.
const mostSteps = MaxValues / 16

func (r *reducer) bounded(pods ...[]*replica) error {
	values, steps := 0, 0
	for i := range r.dump.Series {
		values += len(r.dump.Series[i].Values)
	}
	for _, in := range pods {
		for _, p := range in {
			steps += p.last - p.first + 1
			for _, series := range p.series {
				every := series[0].every()
				for _, s := range series {
					every = min(every, s.every())
				}
				if err := r.look(p.name, len(series), (p.last-p.first)/every+1); err != nil {
					return err
				}
			}
		}
	}
	if most := max(mostSteps, values); steps > most {
		return &RefusedError{Waiting, fmt.Sprintf("from their first values to their last pods have %d steps together, and %d values: must be at most %d steps, so choose a shorter range", steps, values, most)}
	}
	return nil
}

// mostLooked is how often a value of a series may be looked for, in all. Series of one number are looked at together, at each step
// of their pod, and all of a name for each of its lives, so a dump of a few megabytes could take hours.
const mostLooked = 1 << 31

// look counts that each of some series of a pod is looked at so many times, and refuses too many.
func (r *reducer) look(pod string, series, times int) error {
	if r.looked += float64(series) * float64(times); r.looked > mostLooked {
		const why = "pod %s has so many series, steps and lives, with those of other pods, that values are looked for more than " +
			"%d times: choose a shorter range"
		return &RefusedError{Waiting, fmt.Sprintf(why, pod, int64(mostLooked))}
	}
	return nil
}

// scraped records the steps at which a pod was scraped, and the distances between them.
func (r *reducer) scraped(p *replica) {
	there := make([]bool, p.last-p.first+1)
	for _, series := range p.series {
		for _, s := range series {
			if !s.scraped() {
				continue
			}
			for i := range there {
				there[i] = there[i] || known(s.at(p.first+i))
			}
		}
	}
	before := -1
	for i, yes := range there {
		if !yes {
			continue
		}
		r.seen[p.first+i] = true
		if before >= 0 {
			p.distances = append(p.distances, i-before)
		}
		before = i
	}
}

// leastDistances is the number of distances between scrapes that determines the scrape interval of a pod.
const leastDistances = 20

// interval finds the scrape interval of pods, in steps, rounded up: from the pods with enough scrapes or, if there is none, from
// all pods together. It counts the gaps between scrapes.
func (r *reducer) interval() {
	var all []int
	for _, p := range r.pods {
		if all = append(all, p.distances...); len(p.distances) >= leastDistances {
			r.every = max(r.every, usual(p.distances))
		}
	}
	if r.every == 0 {
		r.every = max(1, usual(all))
	}
	regular, long := 0, 0
	for _, p := range r.pods {
		each := r.every
		if len(p.distances) >= leastDistances {
			each = usual(p.distances)
		}
		for _, d := range p.distances {
			if d >= 2*each {
				r.fleet.Repairs.Gaps++
				r.fleet.Repairs.GapSteps += d - each
			} else if each == r.every {
				regular++
				long += d
			}
		}
	}
	r.scrape = r.fleet.Step
	if regular > 0 {
		r.scrape = (time.Duration(long) * r.fleet.Step / time.Duration(regular)).Round(time.Second)
	}
}

// usual returns the usual distance between scrapes: the lower median, or one more if the interval is no whole number of steps.
// Then at least a fifth of the distances are one more, and hardly any is longer than that. Where scrapes fail instead, so many
// failures would leave longer distances, too. It is 0 if there are no distances.
func usual(distances []int) int {
	if len(distances) == 0 {
		return 0
	}
	m := slices.Sorted(slices.Values(distances))[(len(distances)-1)/2]
	more, longer := 0, 0
	for _, d := range distances {
		switch {
		case d == m+1:
			more++
		case d > m+1:
			longer++
		}
	}
	if 5*more >= len(distances) && 50*longer <= len(distances) {
		m++
	}
	return m
}

// births finds the pods that began within the history, with counters at zero, and when they began.
func (r *reducer) births() {
	for _, p := range slices.Concat(r.pods, r.routers) {
		p.bornAt = p.first
		if p.first == 0 {
			continue
		}
		begin := float64(r.dump.Start.Unix())
		switch {
		case known(p.created):
			p.known = p.created >= begin
		case p.first >= r.every:
			// Others were scraped just before, so this pod did not exist.
			p.known = slices.Contains(r.seen[max(0, p.first-2*r.every):p.first], true) && !p.older(2*r.every)
		}
		if !p.known {
			if p.engine != EPP {
				r.baseless++
			}
			continue
		}
		p.bornAt = max(0, p.first-r.every)
		since := p.readyAt
		if !known(since) && !slices.Contains(r.seen[max(0, p.first-2*r.every):p.first], true) {
			since = p.created // no pod was scraped when it began
		}
		if since > begin {
			p.bornAt = int(min(float64(p.bornAt), (since-begin)/time.Duration(r.dump.Step).Seconds()))
		}
	}
}

// older reports whether a pod had counted more at its first value than can have come within some steps, by ten times the
// largest rate that it had later: it is not new, but has a new name, or nobody scraped it before.
func (p *replica) older(steps int) bool {
	for _, at := range append(finishes(), part{Requests, Whole}) { // a router may have the last alone
		for _, s := range p.series[at] {
			began, last := s.span(p.first, p.last)
			if began != p.first {
				continue
			}
			rate, before := 0.0, began
			for i := began + 1; i <= last; i++ {
				if x := s.at(i); known(x) {
					rate, before = max(rate, (x-s.at(before))/float64(i-before)), i
				}
			}
			if first := s.at(began); first > leastOlder && last > began && first > 10*float64(steps)*rate {
				return true
			}
		}
	}
	return false
}

// leastOlder is how many requests a new pod may always have had.
const leastOlder = 100

// replicas reads the counts of Kubernetes.
func (r *reducer) replicas() {
	f := r.fleet
	for _, c := range []struct {
		signal Signal
		to     []float64
	}{{SpecReplicas, f.Spec}, {ReadyReplicas, f.Ready}} {
		apart := map[int]bool{}
		for _, s := range r.fleetwide[c.signal] {
			if f.Target.Kind = "Deployment"; strings.HasPrefix(s.Family, "kube_statefulset") {
				f.Target.Kind = "StatefulSet"
			}
			since, upTo := -1, 0 // when it began to differ from those before it, and up to where that is noted
			for i, x := range s.Values {
				k := s.From + i*s.every() - 1
				switch {
				case !known(x) || k < 0:
					continue
				case !known(c.to[k]):
					c.to[k] = x
				case c.to[k] == x:
					since = -1
				case since < 0:
					since, upTo = k, k
				}
				if since >= 0 && time.Duration(k-since)*f.Step > longGap {
					for ; upTo <= k; upTo++ {
						apart[upTo] = true
					}
				}
			}
		}
		// A missing scrape between two equal counts is filled in; other missing counts stay unknown.
		last := -1
		for i, x := range c.to {
			if !known(x) {
				continue
			}
			if last >= 0 && i-last > 1 && i-last <= 20 && c.to[last] == x {
				for k := last + 1; k < i; k++ {
					c.to[k] = x
				}
			}
			last = i
		}
		for k := range apart { // of two objects of one name, of which one is not this fleet
			c.to[k] = math.NaN()
		}
		r.apart[c.signal] = len(apart)
	}
	if r.has[ReadyReplicas] || f.Engine == Dynamo {
		return // frontends are not replicas
	}
	for i := range f.Ready {
		if r.seen[i+1] {
			f.Ready[i] = 0
		}
	}
	for _, p := range r.pods {
		for i := max(1, p.first); i <= p.last; i++ {
			if known(f.Ready[i-1]) {
				f.Ready[i-1]++
			}
		}
	}
}

// starts lists the starts of replicas.
func (r *reducer) starts() {
	begin := float64(r.dump.Start.Unix())
	replicas := r.pods
	if f := r.fleet; f.Engine == Dynamo {
		replicas = r.workers
	}
	for _, p := range replicas {
		ready := p.readyAt
		if !known(ready) && p.known && !p.wasReady {
			ready = float64(r.dump.at(p.first).Unix())
		}
		if known(p.created) && known(ready) && ready >= p.created && p.created >= begin-float64(time.Hour/time.Second) {
			r.fleet.Starts = append(r.fleet.Starts, Start{p.name, unix(p.created), unix(ready)})
		}
	}
	slices.SortStableFunc(r.fleet.Starts, func(a, b Start) int { return a.Created.Compare(b.Created) })
}

// unix returns a time since 1970, of at most a few thousand years.
func unix(seconds float64) time.Time {
	whole, part := math.Modf(min(seconds, 1e11))
	return time.Unix(int64(whole), int64(part*1e9)).UTC()
}
