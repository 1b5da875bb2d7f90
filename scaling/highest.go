package scaling

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Member is one policy of a composition, with the name that its state and its reasons have.
type Member struct {
	Name   string
	Policy Policy
}

// Highest returns a policy that asks for the highest count that any of its members asks for:
//
//	replicas = max over members of (replicas if Up or Down, else the present count)
//
// So it scales up if any member decides Up, and down only if every member decides Down: a member with Hold or Unknown blocks a
// scale-down but never a scale-up. The verdict is Unknown only if every member that asks for the resulting count is Unknown.
// Among members with the same count, one that is not Unknown comes first, then the first by name. The lines of the other
// members stay in the chain as considered ones. A change that was carried out is reported to every member.
//
// Names must be unique and not empty, no policy may be there twice (one pointer, to more than an empty struct), and there must be at
// least one member.
func Highest(members ...Member) (Policy, error) {
	var e FieldErrors
	e.Check(len(members) > 0, "members", len(members), "must be at least one")
	seen, policies := map[string]bool{}, known{}
	for i, m := range members {
		field := fmt.Sprintf("members[%d].", i)
		e.Check(m.Name != "", field+"name", m.Name, "must not be empty")
		e.Check(m.Name == "" || !seen[m.Name], field+"name", m.Name, "must be unique")
		e.Check(m.Policy != nil, field+"policy", m.Policy, "must be set")
		e.Check(!policies.has(m.Policy) || seen[m.Name], field+"policy", m.Name, "must not be that of another member, as it would decide twice in a round")
		seen[m.Name] = true
	}
	if err := e.Err(); err != nil {
		return &unconfigured{}, err
	}
	h := &highest{members: slices.Clone(members)}
	slices.SortFunc(h.members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	n := len(h.members)
	h.decisions, h.renew, h.refused = make([]Decision, n), make([]func() error, n), make([]bool, n)
	for i, m := range h.members {
		renew, err := Snapshot(m.Policy)
		if err != nil {
			renew = func() error { return err }
		}
		h.renew[i] = renew
	}
	return &sealed{body: h}, nil
}

// known are the policies of a composition that are pointers.
type known map[Policy]bool

// has reports whether a policy is one of them, with the same state, and adds it. A pointer to an empty struct may equal another one: such a
// policy has no state.
func (k known) has(p Policy) bool {
	if !strings.HasPrefix(fmt.Sprintf("%T", p), "*") {
		return false
	}
	twice := k[p]
	k[p] = true
	return twice && fmt.Sprintf("%+v", p) != "&{}"
}

type highest struct {
	members   []Member       // by name
	renew     []func() error // take them back to their states at first
	refused   []bool         // whether they refused their last state
	decisions []Decision     // scratch
}

func (h *highest) kind() Kind { return Kind{"highest", 1} }

func (h *highest) decide(now time.Time, obs Observation) Decision {
	winner := 0
	for i, m := range h.members {
		d := m.Policy.Decide(now, obs)
		h.decisions[i] = d
		if best := &h.decisions[winner]; d.Replicas > best.Replicas ||
			d.Replicas == best.Replicas && best.Verdict == Unknown && d.Verdict != Unknown {
			winner = i
		}
	}
	d := h.decisions[winner]
	steps := 1 - d.count
	for i := range h.decisions {
		steps += h.decisions[i].count
	}
	d.reserve(steps)
	d.put(Step{Code: Chosen, From: d.Replicas, To: d.Replicas, Subject: h.members[winner].Name, Numbers: [maxNumbers]float64{float64(len(h.members))}})
	for i := range h.decisions {
		if i != winner {
			d.considerAll(&h.decisions[i])
			d.NextBy(h.decisions[i].Next)
		}
	}
	return d
}

func (h *highest) applied(now time.Time, from, to int32) {
	for _, m := range h.members {
		m.Policy.Applied(now, from, to)
	}
}

func (h *highest) save(form form) (any, error) {
	states := make(map[string]json.RawMessage, len(h.members))
	for _, m := range h.members {
		data, err := form.of(m.Policy)
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", m.Name, err)
		}
		states[m.Name] = data
	}
	return states, nil
}

func (h *highest) snapshot() (restore func() error, err error) {
	policies := make([]Policy, len(h.members))
	for i, m := range h.members {
		policies[i] = m.Policy
	}
	refused := slices.Clone(h.refused)
	back, err := snapshots(policies)
	if err != nil {
		return nil, err
	}
	return func() error {
		copy(h.refused, refused)
		return back()
	}, nil
}

// load gives each member its state. A member that the stored state lacks, because it was added later, keeps the state it has, or
// that which it had at first if it refused one since; the stored state of a removed member is dropped.
func (h *highest) load(data []byte) error {
	var states map[string]json.RawMessage
	if err := decodeStrictly(data, &states); err != nil {
		return err
	}
	for i, m := range h.members {
		var err error
		if state, ok := states[m.Name]; ok {
			err = m.Policy.UnmarshalJSON(state)
		} else if h.refused[i] {
			err = h.renew[i]()
		}
		h.refused[i] = err != nil
		if err != nil {
			return fmt.Errorf("member %s: %w", m.Name, err)
		}
	}
	return nil
}
