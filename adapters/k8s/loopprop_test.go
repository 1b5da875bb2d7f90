package k8s_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/hetero"
)

// A crash ends a loop in the middle of a round.
type crash struct{}

// A fault is what befalls one call of a round.
type fault struct {
	at   int // the number of the call in its round, or atWrite
	kind string
}

// atWrite is the first write of replicas in a round, whatever its number.
const atWrite = -2

func drawFault(t *rapid.T, kinds []string) fault {
	at := rapid.IntRange(-7, 8).Draw(t, "call")
	return fault{at: max(at, atWrite), kind: rapid.SampledFrom(kinds).Draw(t, "fault")}
}

// Faults after which what was to be written was written, by this round or by its repetition.
var lossless = []string{"none", "none", "crash before", "crash after", "answer lost", "conflict"}

// Faults of which some lose a write, or let it arrive later: after the round has ended, or after its process has.
var anyFault = append([]string{
	"refused", "request lost", "state answer lost", "crash and wait", "conflicts", "late", "crash, late", "answered twice",
}, lossless...)

// machine drives a loop through faults. A crash drops the loop; the next one has nothing but what is stored.
type machine struct {
	c       *cluster
	o       *observer
	clock   *clock
	restart func() // begins anew
	tick    func() k8s.Outcome
	late    []late // writes that are still on their way
	arrive  int    // the number of the call before which they arrive
	longest time.Duration
	took    time.Duration // by each call of the round
	written int           // writes that had their effect
	at      time.Time     // when the last one had
}

// effect notes when a write has its effect.
func (m *machine) effect(f func()) func() {
	return func() {
		f()
		if n := len(m.c.Written); n != m.written {
			m.written, m.at = n, m.clock.now
		}
	}
}

// A late write has its effect when it arrives, unless that takes longer than the API server works on it.
type late struct {
	asked  time.Time
	effect func()
}

func newMachine(t *rapid.T, every bool) *machine {
	m := &machine{c: newCluster(3), o: &observer{}, clock: &clock{now: start}, longest: time.Hour}
	m.restart = func() {
		l := newLoop(t, m.c, m.o, m.clock, func(c *k8s.LoopConfig) { c.EveryState = every })
		m.tick = func() k8s.Outcome { o, _ := l.Tick(context.Background()); return o }
	}
	m.restart()
	return m
}

// newVariantMachine drives a VariantLoop of two targets, of which one is full at 4 replicas.
func newVariantMachine(t *rapid.T) *machine {
	every := rapid.Bool().Draw(t, "every state")
	m := &machine{c: newCluster(3, "cheap", "dear"), o: &observer{}, clock: &clock{now: start}, longest: 2 * time.Minute}
	m.c.Targets["dear"].Spec.Replicas = 0
	m.restart = func() {
		f, err := hetero.New(hetero.Config{
			Types: []hetero.Type{{Name: "cheap", Cost: 10, Max: 4}, {Name: "dear", Cost: 20, Max: 8}}, ExpansionRate: 1,
		})
		require.NoError(t, err)
		v, err := hetero.NewGroup(policy(t), f, hetero.Options{})
		require.NoError(t, err)
		l, err := k8s.NewVariantLoop(k8s.VariantLoopConfig{
			Variants: variants("dear", "cheap"), Group: v,
			Settings: k8s.Settings{Scales: m.c.Scales(), Observer: m.o, Store: m.c.store(t), Now: m.clock.read, EveryState: every},
		})
		require.NoError(t, err)
		m.tick = func() k8s.Outcome {
			outcomes, _ := l.Tick(context.Background())
			if outcomes[1].Decision.Acts() || outcomes[1].Conflicts > 0 {
				return outcomes[1]
			}
			return outcomes[0]
		}
	}
	m.restart()
	return m
}

// touch changes the targets, but not their replicas.
func (m *machine) touch() {
	for _, name := range slices.Sorted(maps.Keys(m.c.Targets)) {
		m.c.Touch(name)
	}
}

// land lets the writes arrive that are on their way.
func (m *machine) land() {
	for _, w := range m.late {
		if m.clock.now.Sub(w.asked) < m.longest {
			w.effect()
		}
	}
	m.late = nil
}

// round does one round with a fault and reports whether it crashed.
func (m *machine) round(f fault) (o k8s.Outcome, crashed bool) {
	calls := 0
	m.c.Fault = func(call string, effect func()) error {
		calls++
		m.clock.now = m.clock.now.Add(m.took)
		effect = m.effect(effect)
		isScale := call == "update scale"
		if calls-1 == m.arrive {
			m.land()
		}
		if f.kind == "conflicts" && isScale {
			m.touch()
		}
		if here := calls-1 == f.at || f.at == atWrite && isScale; !here {
			effect()
			return nil
		}
		f.at = -1 // once a round
		switch f.kind {
		case "crash before", "crash and wait":
			panic(crash{})
		case "crash after":
			effect()
			panic(crash{})
		case "answer lost":
			effect()
			if call == "get scale" || call == "get state" {
				return nil // an answer that is no write loses nothing
			}
			if !isScale {
				return nil // the state's own answer is the subject of the next test
			}
			return apierrors.NewServerTimeout(schema.GroupResource{Resource: "deployments"}, call, 1)
		case "state answer lost":
			effect()
			if isScale {
				return nil
			}
			return errors.New("connection reset")
		case "request lost":
			return errors.New("connection reset")
		case "refused":
			return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "llama", errors.New("quota"))
		case "conflict":
			if isScale {
				m.touch()
			}
		case "late", "crash, late":
			if !isScale {
				break
			}
			m.late = append(m.late, late{m.clock.now, effect})
			if f.kind == "crash, late" {
				panic(crash{})
			}
			return errors.New("connection reset")
		case "answered twice": // a client that is told to try again after a server error does so by itself
			effect()
			if isScale {
				return apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "llama", errors.New("changed"))
			}
			return nil
		}
		effect()
		return nil
	}
	defer func() {
		m.c.Fault, m.arrive = nil, -1
		if p := recover(); p != nil {
			if _, ok := p.(crash); !ok {
				panic(p)
			}
			crashed = true
			m.restart()
		}
	}()
	return m.tick(), false
}

// drawLoad draws a load that stays for a while, as otherwise no window ever fills.
func drawLoad(t *rapid.T, n int) []float64 {
	loads := make([]float64, 0, n)
	for len(loads) < n {
		load := rapid.SampledFrom([]float64{0, 5, 50}).Draw(t, "load")
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			loads = append(loads, load)
		}
	}
	return loads[:n]
}

// Faults that lose no write leave no trace: replicas and state are those of a twin that had none.
func TestLoopUninterruptedTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, twin := newMachine(t, true), newMachine(t, true)
		for i, load := range drawLoad(t, 40) {
			m.o.value, twin.o.value = load, load
			f := drawFault(t, lossless)
			if o, crashed := m.round(f); crashed || o.Write == k8s.Uncertain {
				_, again := m.round(fault{kind: "none", at: -1})
				require.False(t, again)
			}
			o, _ := twin.round(fault{kind: "none", at: -1})
			require.NoError(t, o.Err())
			require.Equal(t, twin.c.Replicas("llama"), m.c.Replicas("llama"), "round %d", i)
			m.clock.pass()
			twin.clock.pass()
		}
		// A last round settles what the last fault left open.
		m.o.value, twin.o.value = 5, 5
		m.round(fault{kind: "none", at: -1})
		twin.round(fault{kind: "none", at: -1})
		require.Equal(t, twin.c.Written, m.c.Written)
		require.JSONEq(t, twin.c.stored(t), m.c.stored(t))
	})
}

// Whatever happens, and whenever it arrives: a write is one step from the count it was decided on, no two are closer
// than the cooldown, and a round that holds writes nothing.
func TestLoopNeverDoubles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, rapid.Bool().Draw(t, "every state"))
		neverDoubles(t, m, func() int32 { return m.c.Replicas("llama") })
		require.EqualValues(t, 8, m.c.Replicas("llama"))
	})
}

// The same holds for the total of several targets.
func TestVariantLoopNeverDoubles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newVariantMachine(t)
		neverDoubles(t, m, func() int32 { return m.c.Replicas("cheap") + m.c.Replicas("dear") })
		require.EqualValues(t, 4, m.c.Replicas("cheap"))
		require.EqualValues(t, 4, m.c.Replicas("dear"))
	})
}

// neverDoubles drives a machine through loads and faults. In the end the load is high, and there are no faults.
func neverDoubles(t *rapid.T, m *machine, count func() int32) {
	var last time.Time
	wrote, before := 0, count()
	check := func() {
		n := len(m.c.Written) - wrote
		if n == 0 {
			return
		}
		require.Equal(t, 1, n, "two writes at once")
		require.InDelta(t, before, count(), 1)
		if !last.IsZero() {
			require.GreaterOrEqual(t, m.at.Sub(last), time.Minute, "the cooldown was lost")
		}
		last, wrote, before = m.at, len(m.c.Written), count()
	}
	for _, load := range drawLoad(t, 60) {
		m.o.value = load
		f := drawFault(t, anyFault)
		m.arrive = rapid.IntRange(0, 12).Draw(t, "arrive")
		m.took = time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "seconds of a call")) * time.Second
		tried := m.c.Updates
		o, crashed := m.round(f)
		if crashed && f.kind != "crash and wait" {
			m.arrive = rapid.IntRange(0, 12).Draw(t, "arrive again")
			m.round(fault{kind: "none", at: -1})
		}
		if !crashed && !o.Decision.Acts() && o.Conflicts == 0 {
			require.Equal(t, tried, m.c.Updates, "held, and wrote")
		}
		if rapid.IntRange(0, 7).Draw(t, "between rounds") == 0 {
			m.land()
		}
		check()
		m.clock.pass()
	}
	// Without faults it gets to where the load asks for.
	m.o.value, m.took = 50, 0
	m.land()
	for range 60 {
		_, crashed := m.round(fault{kind: "none", at: -1})
		require.False(t, crashed)
		check()
		m.clock.pass()
	}
}
