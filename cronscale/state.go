package cronscale

import "time"

// State is what a Scaler keeps between decisions: a cache of the present answer. It changes no decision, belongs to no
// particular Scaler and is not stored: its JSON is {}.
type State struct {
	memo memo
}

// memo is an answer of the Scaler with the given fingerprint, and the next change after it. Both hold for every instant in
// [from, until), since nothing happens there. For other instants the search starts over: a search that has to end early ends
// elsewhere if it starts from another answer, and the result must depend on the time alone.
type memo struct {
	print uint64
	answer
	next int64
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
	if t < m.from || t >= m.until {
		m.answer = s.answer(t)
		m.next, _ = s.change(m.answer, t)
	}
	if m.next >= endOfTime {
		return state, m.answer, time.Time{}
	}
	return state, m.answer, time.Unix(m.next, 0).UTC()
}
