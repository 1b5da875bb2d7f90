package cronscale

import "time"

// State is what a Scaler keeps between decisions: the present answer, so that it need not be worked out each time. It
// changes no decision, belongs to no particular Scaler and is not stored: its JSON is {}.
type State struct {
	memo memo
}

// memo is an answer of the Scaler with the given fingerprint, and the next change if that was found exactly.
type memo struct {
	print uint64
	answer
	next  int64
	exact bool
}

// recall returns the answer at now and when it changes, and the state that remembers both.
func (s Scaler) recall(state State, now time.Time) (State, answer, time.Time) {
	t := now.Unix()
	if len(s.entries) == 0 || now.Before(time.Unix(firstTime, 0)) || !now.Before(time.Unix(endOfTime, 0)) {
		return state, answer{winner: -1}, time.Time{}
	}
	m := &state.memo
	if m.print != s.print {
		*m = memo{print: s.print}
	}
	same := m.from <= t && t < m.until
	found := same || m.exact && m.from <= t && t < m.next
	if !same {
		m.answer = s.answer(t)
	}
	if !found {
		m.next, m.exact = s.change(m.answer, t)
	}
	if m.next >= endOfTime {
		return state, m.answer, time.Time{}
	}
	return state, m.answer, time.Unix(m.next, 0).UTC()
}
