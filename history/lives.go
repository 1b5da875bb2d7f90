package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// mostLives is the highest number of lives of names that come back: each has its own columns.
const mostLives = 20_000

// A life is a pod from its creation to the creation of the next pod with its name. Pods of a Deployment have unique names,
// and so one life per name. Pods of a StatefulSet or a LeaderWorkerSet come back under their names as other pods. A
// container that restarts within its pod does not begin a new life.
type life struct {
	created  float64 // seconds since 1970; NaN if unknown
	readyAt  float64 // first time of readiness; NaN if unknown
	wasReady bool    // already ready at the first value from Kubernetes
	uid      string
	shown    int // the first step at which Kubernetes reports it
}

func nothingKnown() life { return life{created: math.NaN(), readyAt: math.NaN()} }

// several reports whether pods of one name were there at once, as in two clusters behind one Prometheus: what Kubernetes says of the two
// cannot be told apart. A pod that is gone may be reported for a while beside the next one.
func (r *reducer) several(of []*Series) bool {
	of = slices.DeleteFunc(slices.Clone(of), func(s *Series) bool { return s.Signal != PodCreated })
	slices.SortStableFunc(of, func(a, b *Series) int { return cmp.Compare(a.From, b.From) })
	for n := 1; n < len(of); n++ {
		one, other, since := of[n-1], of[n], -1
		first, last := extent(of[n:n+1], 0, r.steps-1)
		for i := first; i <= last; i += other.every() {
			x, y := one.at(i), other.at(i)
			switch {
			case !known(x) || !known(y):
				continue
			case x == y:
				since = -1
			case since < 0:
				since = i
			}
			if since >= 0 && time.Duration(i-since)*r.fleet.Step > longGap {
				return true
			}
		}
		if _, reach := extent(of[n-1:n], 0, r.steps-1); reach > last {
			of[n] = one // which is there for longer
		}
	}
	return false
}

// lives returns the lives of a name from the data of Kubernetes, in order: one for each creation, or one with unknown times.
func (r *reducer) lives(of []*Series) ([]life, error) {
	by := map[float64]life{}
	for _, s := range of {
		for k, x := range s.Values {
			if s.Signal != PodCreated || !(x > 0) || k > 0 && x == s.Values[k-1] {
				continue
			}
			at := s.From + k*s.every()
			l, ok := by[x]
			if !ok {
				l = life{created: x, readyAt: math.NaN(), shown: at}
			}
			l.uid, l.shown = cmp.Or(l.uid, s.Labels["uid"]), min(l.shown, at)
			if by[x] = l; len(by) > 1 && r.returned+len(by) > mostLives {
				return nil, &RefusedError{PodCreated, fmt.Sprintf("pods were created under the names of others more than %d times: choose a shorter range", mostLives)}
			}
		}
	}
	if len(by) == 0 {
		by[0] = nothingKnown()
	}
	all := make([]life, 0, len(by))
	for _, l := range by {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b life) int { return cmp.Compare(a.created, b.created) })
	if len(all) > 1 {
		r.returned += len(all)
	}
	if first, last := extent(of, 0, r.steps-1); last >= first {
		if err := r.look(of[0].Pod, len(of), last-first+len(all)); err != nil {
			return nil, err
		}
	}
	r.readiness(all, of)
	return all, nil
}

// readiness finds the time at which each life was first ready: the time that Kubernetes reports, or else the first step at
// which it reports the pod as ready. Series with a uid belong to the life with it, others to the life that Kubernetes
// reported at the step.
func (r *reducer) readiness(all []life, of []*Series) {
	type about struct {
		signal Signal
		uid    string
	}
	by := map[about][]*Series{}
	for _, s := range of {
		uid := s.Labels["uid"]
		if !known(all[0].created) {
			uid = "" // there is only one life
		}
		by[about{s.Signal, uid}] = append(by[about{s.Signal, uid}], s)
	}
	for k := range all {
		l := &all[k]
		from, upTo, before := l.shown, r.steps-1, math.Inf(1)
		if k == 0 {
			from = 0
		}
		if k+1 < len(all) {
			upTo, before = all[k+1].shown-1, all[k+1].created
		}
		told := func(s Signal) []*Series {
			if l.uid == "" {
				return by[about{s, ""}]
			}
			return slices.Concat(by[about{s, l.uid}], by[about{s, ""}])
		}
		l.timed(told(PodReadyTime), from, upTo, before)
		if !known(l.readyAt) {
			l.seen(told(PodReady), from, upTo, r.dump)
		}
	}
}

// timed sets the first time of readiness within the life: values of a series may still be those of the previous pod for some
// steps.
func (l *life) timed(of []*Series, from, upTo int, before float64) {
	from, upTo = extent(of, from, upTo)
	for i := from; i <= upTo; i++ {
		for _, s := range of {
			if x := s.at(i); x > 0 && !(x < l.created) && x < before && !(x > l.readyAt) {
				l.readyAt = x
			}
		}
		if known(l.readyAt) {
			return
		}
	}
}

// seen sets the first step at which all series report the pod as ready. It is only known if the pod was observed before it
// was ready.
func (l *life) seen(of []*Series, from, upTo int, d *Dump) {
	from, upTo = extent(of, from, upTo)
	asked := false
	for i := from; i <= upTo; i++ {
		least := math.NaN()
		for _, s := range of {
			if x := s.at(i); known(x) && !(x > least) {
				least = x
			}
		}
		switch {
		case least == 1 && asked:
			l.readyAt = float64(d.at(i).Unix())
			return
		case least == 1:
			l.wasReady = true
			return
		case known(least):
			asked = true
		}
	}
}

// extent narrows a range of steps to those with values of a series.
func extent(of []*Series, from, upTo int) (int, int) {
	first, last := math.MaxInt, -1
	for _, s := range of {
		first, last = min(first, s.From), max(last, s.From+(len(s.Values)-1)*s.every())
	}
	return max(from, first), min(upTo, last)
}

// split divides what is recorded under a name into pods, one for each life with values.
func (p *replica) split(all []life, d *Dump) []*replica {
	begin, step := float64(d.Start.Unix()), time.Duration(d.Step).Seconds()
	from := make([]int, 0, len(all)+1)
	latest := 0
	for _, l := range all {
		if l.created > begin {
			latest = max(latest, p.begins(int(min(math.Ceil((l.created-begin)/step), MaxSteps))))
		}
		from = append(from, latest)
	}
	if p.first < from[0] {
		all, from = slices.Insert(all, 0, nothingKnown()), slices.Insert(from, 0, 0)
	}
	var pods []*replica
	for k, l := range all {
		upTo := p.last
		if k+1 < len(all) {
			upTo = min(upTo, from[k+1]-1)
		}
		if one := p.within(from[k], upTo); one.last >= 0 {
			one.life = l
			pods = append(pods, one)
		}
	}
	if len(pods) == 1 {
		pods[0].series = p.series
		return pods
	}
	for k, one := range pods {
		if k > 0 {
			one.gone = pods[k-1].last
		}
		if k+1 < len(pods) {
			one.until = pods[k+1].first - 1
		}
		one.take(p.series, d)
	}
	return pods
}

// begins returns the first step of a life whose pod was created by the step created. That step, and the next one if clocks
// differ, may still have the last scrape of the previous pod: that is so if its series continue and no counter is lower.
func (p *replica) begins(created int) int {
	for i := created; i < created+2; i++ {
		if !p.goesOn(created, i) {
			return i
		}
	}
	return created + 2
}

// goesOn reports whether the values at a step are of the same process as the last values before another step.
func (p *replica) goesOn(before, i int) bool {
	goes := false
	for at, series := range p.series {
		for _, s := range series {
			x := s.at(i)
			if !s.scraped() || !known(x) {
				continue
			}
			if _, last := s.span(0, before-1); last >= 0 {
				if goes = true; at.counts() && x < s.at(last) {
					return false
				}
			}
		}
	}
	return goes
}

// within returns a pod with the first and the last value within a range of steps, both included.
func (p *replica) within(from, upTo int) *replica {
	one := &replica{name: p.name, engine: p.engine, first: math.MaxInt, last: -1, gone: -MaxSteps, until: p.until}
	for _, series := range p.series {
		for _, s := range series {
			if !s.scraped() {
				continue
			}
			if first, last := s.span(from, upTo); first >= 0 {
				one.first, one.last = min(one.first, first), max(one.last, last)
			}
		}
	}
	return one
}

// take takes the series of a name that have a value of the life. A value may cover several steps: none of them may be of the
// previous life, and the last one not of the next life. Some servers create a counter with their first request: if the life
// lacks a counter that its name has, it gets one without values, since its count is unknown.
func (p *replica) take(all map[part][]*Series, d *Dump) {
	p.series = map[part][]*Series{}
	for at, series := range all {
		for _, s := range series {
			reach := s.every()
			if s.Signal == CacheBlocks {
				reach = max(reach, int(time.Minute/time.Duration(d.Step)))
			}
			if first, _ := s.span(max(p.first, p.gone+reach), min(p.until, p.last+reach-1)); first >= 0 {
				p.series[at] = append(p.series[at], s)
			}
		}
		if p.series[at] == nil && at.counts() && at.part != Bucket {
			p.series[at] = series[:1:1]
		}
	}
}
