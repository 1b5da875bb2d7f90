package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// arrivals computes the requests that arrived. In order of preference:
//
//	router's or engine's count of requests
//	finished + running + waiting, of each pod
//	first tokens + waiting, of each pod: late by the time that a prompt takes
func (r *reducer) arrivals() error {
	router := false
	for _, p := range r.routers {
		router = router || len(p.keys(Requests, Whole)) > 0
	}
	pods := r.pods
	if router {
		pods = r.routers
	}
	sum, need := make([]float64, r.steps), make([]uint16, r.steps)
	got, spread := make([]uint16, r.steps), make([]bool, r.steps)
	for _, p := range pods {
		came := p.arrived
		if router {
			var err error
			if came, err = p.increase(Requests, Whole); err != nil {
				return err
			}
		}
		for i := p.bornAt + 1; i <= p.last; i++ {
			need[i]++
		}
		for k, x := range came.by {
			span := int(came.span[k])
			if !known(x) || span == 0 {
				continue
			}
			if span >= 2*r.every && x > 0 {
				r.fleet.Repairs.Spread += int(math.Round(x))
			}
			vague := x != 0 && time.Duration(span)*r.fleet.Step > longGap && span >= 2*r.every
			for i := p.first + k - span + 1; i <= p.first+k; i++ {
				if i > 0 {
					sum[i] += x / float64(span)
					got[i]++
					if vague && !spread[i] {
						spread[i] = true
						r.fleet.spread++
					}
				}
			}
		}
	}
	carried := 0.0 // a negative remainder, when another pod took over a queue
	for i := 1; i < r.steps; i++ {
		if need[i] == 0 || got[i] < need[i] {
			if need[i] == 0 && r.fleet.Spec[i-1] == 0 {
				r.fleet.Arrivals[i-1] = 0 // no replica was asked for that could take any
			}
			continue
		}
		x := sum[i] + carried
		r.fleet.Arrivals[i-1] = max(0, x)
		carried = min(0, x)
	}
	return nil
}

// longGap is the longest gap within which requests are assumed to have arrived evenly.
const longGap = 5 * time.Minute

// finishes returns the counters by which finished requests are known, in order of preference.
func finishes() []part {
	return []part{{GenerationTokens, Count}, {PromptTokens, Count}, {Finished, Whole}, {TTFT, Count}}
}

// came returns the requests that arrived at a pod. Some servers create a counter with their first request. Until then it is
// zero, if no request that was in flight went away.
func (r *reducer) came(p *replica, counted map[part]increase) (increase, error) {
	if came := counted[part{Requests, Whole}]; came.any {
		return came, nil
	}
	var done increase
	for _, at := range finishes() {
		if up := counted[at]; up.any && !done.any {
			done = increase{slices.Clone(up.by), slices.Clone(up.span), true}
			r.lacks[Finished] = r.lacks[Finished] || at.signal == TTFT
		}
	}
	waiting, running := p.gauge(Waiting), p.gauge(Running)
	unbegun := len(p.keys(Waiting, Whole)) > 0 && len(p.keys(Running, Whole)) > 0
	if r.dump.Engine == Dynamo { // it counts a request from its arrival
		waiting = make([]float64, len(running))
	}
	for _, g := range []struct {
		signal Signal
		values []float64
	}{{Waiting, waiting}, {Running, running}} {
		if len(p.keys(g.signal, Whole)) == 0 {
			clear(g.values) // finished requests show the arrivals too, only later
		}
	}
	if !done.any && len(r.routers) > 0 {
		return done, nil
	}
	began := slices.IndexFunc(done.by, known)
	switch {
	case done.any:
	case r.counting:
		began = len(running)
		done = increase{unknown(began), make([]uint16, began), true}
	default:
		return increase{}, r.uncounted()
	}
	if r.lacks[Finished] { // running requests have a first token, or will soon have one
		running = make([]float64, len(waiting))
	}
	there, before := math.NaN(), -1
	if p.known {
		there, before = 0, p.bornAt
	}
	restart := 0
	carried := 0.0
	for i := range done.by {
		now := waiting[i] + running[i]
		unbegun = unbegun && i < began && !(now < there)
		if unbegun && known(now) {
			done.by[i] = 0
		}
		if known(done.by[i]) {
			carried += done.by[i]
		}
		first := i == 0 && !p.known
		if !known(now) || !known(done.by[i]) && !first {
			done.by[i], done.span[i] = math.NaN(), 0
			continue
		}
		for restart < len(p.restarts) && p.restarts[restart] <= p.first+i {
			if p.restarts[restart] > before {
				// Requests in flight are lost; those that are sent again arrive again.
				r.doubles += there
				there = 0
			}
			restart++
		}
		if first {
			done.by[i], done.span[i] = math.NaN(), 0
		} else {
			done.by[i] = carried + now - there
			done.span[i] = uint16(min(p.first+i-before, math.MaxUint16))
		}
		there, before, carried = now, p.first+i, 0
	}
	return done, nil
}

// uncounted is the refusal of a history in which nothing shows that requests came.
func (r *reducer) uncounted() *RefusedError {
	var names []string
	_, counted := r.dump.Engine.source(GenerationTokens)
	for _, at := range finishes() {
		if found, ok := r.dump.Engine.source(at.signal); ok && (at.signal != Finished || !counted) {
			names = append(names, found.Families[0]+at.part.suffix())
		}
	}
	if len(names) == 0 {
		return &RefusedError{Finished, fmt.Sprintf("%s counts neither requests that came, nor those that finished, nor first tokens: what came cannot be known. Ask a router (EPP) for it", r.dump.Engine)}
	}
	return &RefusedError{Finished, fmt.Sprintf("no pod has a value of %s: what came cannot be known. Are they dropped, renamed by a recording rule, or kept as native histograms alone? Or ask a router (EPP) for it", strings.Join(names, ", "))}
}
