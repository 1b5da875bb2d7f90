package certs_test

import (
	"crypto/rand"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/certs"
)

// drawRules are rules that Validate accepts.
func drawRules(t *rapid.T) certs.Rules {
	r := rules()
	if rapid.Bool().Draw(t, "defaults") {
		return r
	}
	hour := int64(time.Hour)
	r.Overlap = time.Duration(rapid.Int64Range(hour, 48*hour).Draw(t, "overlap"))
	r.LeafLife = time.Duration(rapid.Int64Range(4, 40).Draw(t, "leaf")) * r.Overlap
	r.CALife = time.Duration(rapid.Int64Range(4, 9).Draw(t, "ca")) * (r.LeafLife + r.Overlap)
	if rapid.Bool().Draw(t, "early") {
		r.DropAfter = time.Duration(rapid.Int64Range(1, 5).Draw(t, "drop")) * r.Overlap
	}
	return r
}

func overlap(r certs.Rules) (overlap, leafLife time.Duration) {
	overlap, leafLife = r.Overlap, r.LeafLife
	if overlap == 0 {
		overlap = day
	}
	if leafLife == 0 {
		leafLife = 90 * day
	}
	return overlap, leafLife
}

// A reading is a material that could be read from an instant on.
type reading struct {
	at time.Time
	m  certs.Material
}

// A history has what could be read when.
type history struct {
	overlap time.Duration
	seen    []reading
}

func (h *history) add(at time.Time, m certs.Material) {
	h.seen = append(h.seen, reading{at, m})
}

// check has everything that could be read in the last overlap verify what there is now, in either role.
func (h *history) check(t *rapid.T, at time.Time) {
	t.Helper()
	var window []certs.Material
	for i, r := range h.seen {
		if i == len(h.seen)-1 || h.seen[i+1].at.After(at.Add(-h.overlap)) {
			window = append(window, r.m)
		}
	}
	last := window[len(window)-1]
	for i, m := range window {
		require.NoError(t, verify(t, m, last, at), "client %d of %d at %s", i, len(window), at)
		require.NoError(t, verify(t, last, m, at), "server %d of %d at %s", i, len(window), at)
	}
}

// TestPromise has whoever read what he has in the last overlap let in, and let others in, at every instant: with
// requests, crashes between the two writes, and calls that come late or for nothing.
func TestPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRules(t)
		over, life := overlap(r)
		late := life/3 - over // by how much Ensure may be late
		now := start
		s := next(t, r, certs.State{}, "", now)
		h := history{overlap: over}
		h.add(now, s.State.Material)
		state, due, request, phases := s.State, s.Next, "", 0
		for range rapid.IntRange(5, 15).Draw(t, "steps") {
			was := state.Authority.Phase
			request = rapid.SampledFrom([]string{"", request, request, "a", "b"}).Draw(t, "request")
			crash := rapid.IntRange(0, 3).Draw(t, "crash") == 0
			switch rapid.IntRange(0, 3).Draw(t, "when") {
			case 0: // early
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(due.Sub(now))).Draw(t, "for nothing")))
			case 1: // late, but a crash is not
				if !crash {
					now = due.Add(time.Duration(rapid.Int64Range(0, int64(late)).Draw(t, "late")))
				}
			default:
				now = due
			}
			h.check(t, now)
			step := next(t, r, state, request, now)
			state.Authority = step.State.Authority
			if crash {
				// As an Ensure that failed is called again soon, due stays now; the rest of late is still to be had.
				due = now
				continue
			}
			state.Material = step.State.Material
			h.add(now, state.Material)
			h.check(t, now)
			require.False(t, step.Next.Before(now))
			due = step.Next
			if was != state.Authority.Phase {
				phases++
			}
			for _, p := range []certs.Pair{state.Material.Client, state.Material.Server} {
				require.False(t, leaf(t, p).NotAfter.After(leaf(t, state.Authority.CA).NotAfter))
				require.True(t, due.Before(leaf(t, p).NotAfter), "renewal before expiry")
			}
			// What is stored is stable, and a fresh look at it is due at the same time.
			again := next(t, r, state, request, now)
			if len(again.Actions) == 0 {
				require.Equal(t, state, again.State)
			}
			require.LessOrEqual(t, len(state.Authority.CA.Cert)+len(state.Authority.CA.Key)+len(state.Authority.Next.Cert)+len(state.Authority.Next.Key)+len(state.Authority.Old)+len(state.Material.Bundle), 4096)
		}
	})
}

// A store has both Secrets as an API server has them: a write names the version that it replaces.
type store struct {
	state              certs.State
	authority, written int // versions
}

// A writer is a keeper that stops between any two of its calls to the API server.
type writer struct {
	did      int // of the four calls
	m        certs.Material
	mVersion int
	a        certs.Authority
	aVersion int
	request  string
	step     certs.Step
}

// call does one call: read the material, read the authority, write the authority, write the material.
// It says whether that was the end of a round.
func (w *writer) call(t *rapid.T, r certs.Rules, s *store, request string, now time.Time) bool {
	switch w.did {
	case 0:
		w.m, w.mVersion = s.state.Material, s.written
	case 1:
		w.a, w.aVersion, w.request = s.state.Authority, s.authority, request
	case 2:
		step, err := certs.Next(r, certs.State{Authority: w.a, Material: w.m}, w.request, now, rand.Reader)
		require.NoError(t, err)
		w.step = step
		if reflect.DeepEqual(w.a, step.State.Authority) {
			break // what is the same is not written, so that its version is not looked at
		}
		if w.aVersion != s.authority {
			w.did = 0
			return false
		}
		s.state.Authority = step.State.Authority
		s.authority++
	case 3:
		w.did = 0
		if reflect.DeepEqual(w.m, w.step.State.Material) {
			return true
		}
		if w.mVersion != s.written {
			return false
		}
		s.state.Material = w.step.State.Material
		s.written++
		return true
	}
	w.did++
	return false
}

// TestTwoWriters has two keepers interleaved call by call, each of which may die at any time: the promise holds, and in
// the end what is published is what the authority says.
func TestTwoWriters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rules()
		now := start
		s := &store{state: next(t, r, certs.State{}, "", now).State}
		h := history{overlap: day}
		h.add(now, s.state.Material)
		writers := make([]writer, 2)
		request, progress := "", now
		for range rapid.IntRange(10, 35).Draw(t, "events") {
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				request = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "request")
			case 1: // a writer dies and begins anew
				writers[rapid.IntRange(0, 1).Draw(t, "who")].did = 0
			case 2, 3: // time passes, but a round that has computed what to write does not take longer than its limit
				d := time.Duration(rapid.Int64Range(0, int64(10*day)).Draw(t, "time"))
				if progress.Add(20 * day).Before(now.Add(d)) {
					continue
				}
				now = now.Add(d)
				for i := range writers {
					if writers[i].did == 3 && d > time.Minute {
						writers[i].did = 0
					}
				}
				h.check(t, now)
			default:
				w := &writers[rapid.IntRange(0, 1).Draw(t, "who")]
				for range rapid.IntRange(1, 4).Draw(t, "calls in a row") {
					if w.call(t, r, s, request, now) {
						progress = now
						h.add(now, s.state.Material)
						h.check(t, now)
					}
				}
			}
		}
		alone := writer{}
		for range 4 {
			alone.call(t, r, s, request, now)
		}
		step := next(t, r, s.state, s.state.Authority.Request, now)
		require.Empty(t, step.Actions)
	})
}
