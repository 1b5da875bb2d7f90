package loop

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// furthest is how many decisions a comparison of two states looks ahead.
const furthest = 4

// leastAge is the age from which a stored state is also compared on an observation that has not been seen yet: no load.
const leastAge = 30 * time.Second

// mostAge is the age at which the stored state is replaced by a different one if the group has volatile state, since what such
// a group has learned does not show in its next decisions.
const mostAge = 5 * time.Minute

// A durable has what is needed to tell whether the stored state is good enough.
type durable struct {
	now, stored time.Time // of the last decision, and of the decision whose state is stored
	seen, last  scaling.GroupObservation
}

// look keeps a copy of the observation, since the caller may reuse it in the next round.
func (d *durable) look(now time.Time, obs scaling.GroupObservation) {
	d.last, d.seen, d.now = d.seen, copied(obs, func(v float64) float64 { return v }), now
}

// copied returns a copy of an observation in which number replaces the known values of readings and pods.
func copied(obs scaling.GroupObservation, number func(float64) float64) scaling.GroupObservation {
	obs = scaling.GroupObservation{Readings: slices.Clone(obs.Readings), Targets: slices.Clone(obs.Targets), Histograms: slices.Clone(obs.Histograms)}
	for i := range obs.Histograms { // the counts stay as they are, since they only grow
		h := &obs.Histograms[i]
		h.Bounds, h.Counts = slices.Clone(h.Bounds), slices.Clone(h.Counts)
	}
	for i := range obs.Readings {
		if r := &obs.Readings[i]; r.Known() {
			r.Lower, r.Upper = number(r.Lower), number(r.Upper)
		}
	}
	for i := range obs.Targets {
		t := &obs.Targets[i]
		t.Pods = slices.Clone(t.Pods)
		for n := range t.Pods {
			t.Pods[n].Values = slices.Clone(t.Pods[n].Values)
			for k, v := range t.Pods[n].Values {
				if v == v { // not NaN, which is no value
					t.Pods[n].Values[k] = number(v)
				}
			}
		}
	}
	return obs
}

// unsaved returns the state if it is to be stored now, or nil.
func (l *Loop) unsaved() ([]byte, error) {
	group, err := scaling.Durable(l.group)
	if err != nil {
		return nil, err
	}
	data, err := seal(l.memory, group)
	if err != nil || string(data) == string(l.stored) {
		return nil, err
	}
	if l.config.Period > 0 {
		if will, err := l.suffices(group); err != nil || will {
			return nil, err
		}
	}
	return data, nil
}

// suffices reports whether the stored state is good enough instead of the present one, in which kept is to be stored of the group.
func (l *Loop) suffices(kept []byte) (bool, error) {
	was, err := unseal(l.stored)
	if err != nil {
		return false, nil //nolint:nilerr // whatever is stored, it will not do
	}
	old, err := json.Marshal(was.memory)
	if err != nil {
		return false, err
	}
	own, err := json.Marshal(l.memory)
	if err != nil || string(old) != string(own) {
		return false, err
	}
	if string(was.Group) == string(kept) {
		return true, nil
	}
	if l.durable.now.Sub(l.durable.stored).Abs() >= mostAge {
		if group, err := l.group.MarshalJSON(); err != nil || len(group) != len(kept) {
			return false, err
		}
	}
	present, err := scaling.Snapshot(l.group)
	if err != nil {
		return false, err
	}
	decided := slices.Clone(l.step.Targets) // the slice belongs to the group, which is asked again here
	will := l.answersAlike(was.Group, present)
	copy(l.step.Targets, decided)
	return will, present()
}

// answersAlike reports whether a process that starts in the next round with the stored state of the group would decide as this
// process will: on the present observation, on the one before, and, once the stored state is leastAge old, on no load at all.
func (l *Loop) answersAlike(stored []byte, present state) bool {
	if len(stored) == 0 {
		stored = l.fresh
	}
	if l.group.UnmarshalJSON(stored) != nil {
		return false
	}
	was, err := scaling.Snapshot(l.group)
	if err != nil {
		return false
	}
	d := &l.durable
	probes := []scaling.GroupObservation{d.seen}
	if len(d.last.Targets) == len(d.seen.Targets) {
		probes = append(probes, d.last)
	}
	if d.now.Sub(d.stored).Abs() >= leastAge {
		probes = append(probes, copied(d.seen, func(float64) float64 { return 0 }))
	}
	for _, obs := range probes {
		obs.Targets = slices.Clone(obs.Targets)
		for i := range obs.Targets {
			obs.Targets[i].SpecReplicas = d.seen.Targets[i].SpecReplicas
		}
		if !l.alike(was, present, obs) {
			return false
		}
	}
	return true
}

// alike reports whether two states lead to the same decisions on an observation that does not change: in the next round, and
// whenever time alone could change the decision of the second state. The times of these changes may differ by a period; a
// restart can then delay a decision by two, since the first reading of a counter is not known. If the second state waits for
// nothing, the first may wait for anything. If nothing has been stored yet, the times must not differ: otherwise processes that
// end after a round or two would each start their windows over.
func (l *Loop) alike(stored, present state, obs scaling.GroupObservation) bool {
	at, give := l.durable.now.Add(l.config.Period), l.config.Period
	if l.durable.stored.IsZero() {
		give = 0
	}
	for range furthest {
		is, next, known := l.would(present, at, obs)
		was, left, ok := l.would(stored, at, obs)
		if !ok || !known || !slices.EqualFunc(was.Targets, is.Targets, func(a, b scaling.Decision) bool {
			return a.Verdict == b.Verdict && a.Replicas == b.Replicas
		}) {
			return false
		}
		a, b := was.Next(), is.Next()
		switch {
		case is.Acts():
			a = at.Add(2 * give)
		case b.IsZero():
			return true
		case a.IsZero() || a.Sub(b).Abs() > give:
			return false
		case b.After(a):
			a = b
		}
		for i := range obs.Targets {
			obs.Targets[i].SpecReplicas = is.Targets[i].Replicas
		}
		at, stored, present = a, left, next
	}
	return true
}

// A state takes the group to itself.
type state func() error

// would returns what the group decides in a state at a time, and its state after that decision was carried out. ok is false if the
// group refuses the state.
func (l *Loop) would(s state, at time.Time, obs scaling.GroupObservation) (d scaling.GroupDecision, after state, ok bool) {
	if s() != nil {
		return d, nil, false
	}
	d = l.group.Decide(at, obs)
	d.Targets = slices.Clone(d.Targets)
	if d.Acts() {
		from, to := make([]int32, len(d.Targets)), make([]int32, len(d.Targets))
		for i := range d.Targets {
			from[i], to[i] = d.Targets[i].From, d.Targets[i].Replicas
		}
		l.group.Applied(at, from, to)
	}
	after, err := scaling.Snapshot(l.group)
	return d, after, err == nil
}
