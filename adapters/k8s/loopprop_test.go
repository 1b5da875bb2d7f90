package k8s_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// A crash ends a loop in the middle of a round.
type crash struct{}

// A fault is what befalls one call of a round.
type fault struct {
	at   int // the number of the call in its round
	kind string
}

// Faults after which what was to be written was written, by this round or by its repetition.
var lossless = []string{"none", "none", "crash before", "crash after", "answer lost", "conflict"}

// Faults of which some lose a write.
var anyFault = append([]string{"refused", "request lost", "state answer lost", "crash and wait", "conflicts"}, lossless...)

// machine drives a loop through faults. A crash drops the loop; the next one has nothing but what is stored.
type machine struct {
	t     *rapid.T
	c     *cluster
	o     *observer
	clock *clock
	loop  *k8s.Loop
}

func newMachine(t *rapid.T) *machine {
	m := &machine{t: t, c: newCluster(3), o: &observer{}, clock: &clock{now: start}}
	m.restart()
	return m
}

func (m *machine) restart() { m.loop = newLoop(m.t, m.c, m.o, m.clock, nil) }

// round does one round with a fault and reports whether it crashed.
func (m *machine) round(f fault) (o k8s.Outcome, crashed bool) {
	calls := 0
	m.c.fault = func(call string, effect func()) error {
		calls++
		isScale := call == "update scale"
		if f.kind == "conflicts" && isScale {
			m.c.touch("llama")
		}
		if calls-1 != f.at {
			effect()
			return nil
		}
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
				m.c.touch("llama")
			}
		}
		effect()
		return nil
	}
	defer func() {
		m.c.fault = nil
		if p := recover(); p != nil {
			if _, ok := p.(crash); !ok {
				panic(p)
			}
			crashed = true
			m.restart()
		}
	}()
	o, _ = m.loop.Tick(context.Background())
	return o, false
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
		m, twin := newMachine(t), newMachine(t)
		for i, load := range drawLoad(t, 40) {
			m.o.value, twin.o.value = load, load
			f := fault{at: rapid.IntRange(0, 8).Draw(t, "call"), kind: rapid.SampledFrom(lossless).Draw(t, "fault")}
			if _, crashed := m.round(f); crashed {
				_, again := m.round(fault{kind: "none", at: -1})
				require.False(t, again)
			}
			o, _ := twin.round(fault{kind: "none", at: -1})
			require.NoError(t, o.Err())
			require.Equal(t, twin.c.replicas("llama"), m.c.replicas("llama"), "round %d", i)
			m.clock.pass()
			twin.clock.pass()
		}
		// A last round settles what the last fault left open.
		m.o.value, twin.o.value = 5, 5
		m.round(fault{kind: "none", at: -1})
		twin.round(fault{kind: "none", at: -1})
		require.Equal(t, twin.c.written, m.c.written)
		require.JSONEq(t, twin.c.stored(t), m.c.stored(t))
	})
}

// Whatever happens: a write is one step from the count it was decided on, no two are closer than the cooldown, and a
// round that holds writes nothing.
func TestLoopNeverDoubles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		var last time.Time
		for _, load := range drawLoad(t, 60) {
			m.o.value = load
			f := fault{at: rapid.IntRange(0, 8).Draw(t, "call"), kind: rapid.SampledFrom(anyFault).Draw(t, "fault")}
			before, wrote, tried := m.c.replicas("llama"), len(m.c.written), m.c.updates
			o, crashed := m.round(f)
			if crashed && f.kind != "crash and wait" {
				m.round(fault{kind: "none", at: -1})
			}
			if !crashed && !o.Decision.Acts() && o.Conflicts == 0 {
				require.Equal(t, tried, m.c.updates, "held, and wrote")
			}
			if n := len(m.c.written) - wrote; n > 0 {
				require.Equal(t, 1, n, "two writes in one round")
				require.InDelta(t, before, m.c.replicas("llama"), 1)
				if !last.IsZero() {
					require.GreaterOrEqual(t, m.clock.now.Sub(last), time.Minute, "the cooldown was lost")
				}
				last = m.clock.now
			}
			m.clock.pass()
		}
		// Without faults it gets to where the load asks for.
		m.o.value = 50
		for range 60 {
			_, crashed := m.round(fault{kind: "none", at: -1})
			require.False(t, crashed)
			m.clock.pass()
		}
		require.EqualValues(t, 8, m.c.replicas("llama"))
	})
}
