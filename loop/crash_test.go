package loop_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// A world has targets and a store. It changes a target only at the version that a write is conditional on.
type world struct {
	replicas []int32
	version  []int
	stored   []byte
	before   []byte // what a kubectl replace brings back
	atomic   bool
	own      []time.Time // when writes of the loop had their effect
	late     []func(now time.Time)
}

func (w *world) targets() []loop.Target {
	all := make([]loop.Target, len(w.replicas))
	for i := range all {
		all[i] = loop.Target{Name: string(rune('a' + i)), ID: "1", Version: strconv.Itoa(w.version[i]), Replicas: w.replicas[i]}
	}
	return all
}

// write has its effect now, if the target is at the version.
func (w *world) write(now time.Time, x loop.Write, store []byte) bool {
	if strconv.Itoa(w.version[x.Index]) != x.Version {
		return false
	}
	w.version[x.Index]++
	w.replicas[x.Index] = x.To
	w.own = append(w.own, now)
	if w.atomic {
		w.stored = store
	}
	return true
}

// arrive lets the writes arrive that are on their way.
func (w *world) arrive(now time.Time) {
	for _, f := range w.late {
		f(now)
	}
	w.late = nil
}

// both spreads a total over two targets: the second one is full at 3.
type both struct{ scaling.Policy }

func (b both) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	total := scaling.Plus(obs.Targets[0].SpecReplicas, obs.Targets[1].SpecReplicas)
	d := b.Policy.Decide(now, scaling.Observation{SpecReplicas: total, ReadyReplicas: total, Readings: obs.Readings})
	second := min(d.Replicas/2, 3)
	g := scaling.GroupDecision{Total: d, Targets: make([]scaling.Decision, 2)}
	for i, n := range []int32{d.Replicas - second, second} {
		g.Targets[i] = scaling.HoldAt(obs.Targets[i].SpecReplicas)
		if d.Acts() {
			g.Targets[i].To(n, "Share", "")
		}
	}
	return g
}

func (b both) Applied(now time.Time, from, to []int32) {
	if a, z := from[0]+from[1], to[0]+to[1]; a != z {
		b.Policy.Applied(now, a, z)
	}
}

// The points at which a process can end, and what can become of a write.
var (
	points  = []string{"", "", "", "read", "decided", "stored", "written", "told", "advanced"}
	answers = []string{"applied", "applied", "refused", "conflict", "lost", "lost, written", "late", "conflict with itself"}
)

// round goes through the duties of one round, and ends the process at a point by returning a nil loop.
func (w *world) round(t *rapid.T, l *loop.Loop, now time.Time, load float64, faults bool) *loop.Loop {
	end, answer := "", "applied"
	if faults {
		end, answer = rapid.SampledFrom(points).Draw(t, "ends after"), rapid.SampledFrom(answers).Draw(t, "answer")
	}
	for again := true; again; {
		if l.NeedsRestore() {
			require.NoError(t, l.Restore(w.stored))
		}
		l.Read(now, w.targets()...)
		if end == "read" {
			return nil
		}
		s := l.Decide(now, loaded(load))
		acts := s.Acts()
		if end == "decided" {
			return nil
		}
		if s.Store != nil && (!w.atomic || !acts) {
			if faults && rapid.IntRange(0, 9).Draw(t, "store") == 0 {
				if !w.atomic && len(w.late) == 0 && rapid.Bool().Draw(t, "erased") {
					w.stored = rapid.SampledFrom([][]byte{nil, w.before}).Draw(t, "what a kubectl replace leaves")
				}
				l.Saved(storeError{})
				return l
			}
			w.before, w.stored = w.stored, s.Store
			l.Saved(nil)
		}
		if end == "stored" {
			return nil
		}
		for x := range l.Writes() {
			l.Wrote(x, w.carryOut(t, now, x, s.Store, answer))
			if end == "written" {
				return nil
			}
			answer = "applied"
		}
		store, more := l.Advance(now)
		if end == "told" {
			return nil
		}
		if store != nil {
			w.stored = store
			l.Saved(nil)
		}
		if end == "advanced" {
			return nil
		}
		again = more
	}
	return l
}

type storeError struct{}

func (storeError) Error() string { return "the store did not answer" }

func (w *world) carryOut(t *rapid.T, now time.Time, x loop.Write, store []byte, answer string) loop.Result {
	switch answer {
	case "refused":
		return loop.Refused
	case "conflict":
		w.version[x.Index]++ // somebody touched it
		return loop.Conflict
	case "lost":
		return loop.Uncertain
	case "lost, written":
		w.write(now, x, store)
		return loop.Uncertain
	case "late":
		if w.atomic {
			w.write(now, x, store)
			return loop.Uncertain
		}
		w.late = append(w.late, func(then time.Time) {
			if then.Sub(now) < loop.LongestWrite {
				w.write(then, x, store)
			}
		})
		return loop.Uncertain
	case "conflict with itself":
		if w.atomic {
			return loop.Conflict
		}
		w.write(now, x, store)
		return loop.Conflict
	}
	require.True(t, w.write(now, x, store) || w.atomic)
	return loop.Applied
}

// Wherever a process ends, whatever becomes of a write and whenever it arrives: two changes of the loop's are never
// closer than the cooldown, each is a single step of the total, and in the end it gets to where the load asks for.
func neverTwice(t *testing.T, targets int, c loop.Config) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{replicas: make([]int32, targets), version: make([]int, targets), atomic: c.Atomic}
		w.replicas[0] = 2
		begin := func() *loop.Loop {
			group := scaling.GroupOf(scaling.New(stepper{}))
			if targets == 2 {
				group = both{scaling.New(stepper{})}
			}
			c := c
			if len(w.own) > 0 {
				c.LastChange = w.own[len(w.own)-1] // of a status
			}
			return loopOf(t, group, c)
		}
		l, now := begin(), start()
		total := func() (n int32) {
			for _, r := range w.replicas {
				n += r
			}
			return n
		}
		step := func(load float64, faults bool) {
			before, own := total(), len(w.own)
			if l = w.round(t, l, now, load, faults); l == nil {
				l = begin()
			}
			if n := len(w.own) - own; n > 0 {
				require.InDelta(t, before, total(), 1, "a step is one of the total")
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			load := rapid.SampledFrom([]float64{50, 50, 50, 5, 0}).Draw(t, "load")
			step(load, true)
			now = now.Add(15 * time.Second)
			if rapid.IntRange(0, 3).Draw(t, "arrives") == 0 && len(w.late) > 0 {
				w.late = w.late[:1] // of two conditional writes one is carried out at most; the others fail
				w.arrive(now)
			}
		}
		w.late = nil
		now = now.Add(loop.LongestWrite)
		for range 60 {
			step(50, false)
			now = now.Add(15 * time.Second)
		}
		require.EqualValues(t, 8, total())
		for i := range w.own {
			if i > 0 {
				require.GreaterOrEqual(t, w.own[i].Sub(w.own[i-1]), cooldown, "the cooldown was lost")
			}
		}
	})
}

func TestNeverTwice(t *testing.T)             { neverTwice(t, 1, loop.Config{Conflicts: 2}) }
func TestNeverTwiceWithoutRetry(t *testing.T) { neverTwice(t, 1, loop.Config{}) }
func TestNeverTwiceAtomic(t *testing.T)       { neverTwice(t, 1, loop.Config{Atomic: true, Conflicts: 1}) }

func TestNeverTwiceWithPeriod(t *testing.T) {
	neverTwice(t, 1, loop.Config{Conflicts: 2, Period: 15 * time.Second})
	neverTwice(t, 2, loop.Config{Conflicts: 2, Period: 15 * time.Second})
	neverTwice(t, 1, loop.Config{Atomic: true, Conflicts: 1, Period: 15 * time.Second})
}
func TestNeverTwiceSeveral(t *testing.T) { neverTwice(t, 2, loop.Config{Conflicts: 2}) }
