package shadow_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// policies are those that are drawn from, each fresh.
func policies(t require.TestingT) map[string]func() scaling.Policy {
	bounds := scaling.Bounds{Min: 1, Max: 12}
	return map[string]func() scaling.Policy{
		"realtime": func() scaling.Policy {
			c := realtime.Kaito(bounds, realtime.Metric{Name: "load", High: 10, Low: 3})
			c.Up.Cooldown, c.Down.Cooldown = time.Minute, 2*time.Minute
			s, err := realtime.New(c)
			require.NoError(t, err)
			return scaling.New(s)
		},
		"proportional": func() scaling.Policy {
			s, err := proportional.New(proportional.LLM(bounds, proportional.Metric{Name: "load", Target: 6}))
			require.NoError(t, err)
			return scaling.New(s)
		},
	}
}

// A world is a target with replicas that take a while to start, and load on those that are ready.
type world struct {
	spec  int32
	ready int32
	ups   []time.Time // of replicas that are not ready
}

func (w *world) write(now time.Time, n int32) {
	for range n - w.spec {
		w.ups = append(w.ups, now)
	}
	for range w.spec - n {
		if len(w.ups) > 0 {
			w.ups = w.ups[:len(w.ups)-1]
		}
	}
	w.spec = n
}

func (w *world) look(now time.Time, start time.Duration, load float64) scaling.Observation {
	w.ups = slices.DeleteFunc(w.ups, func(at time.Time) bool { return now.Sub(at) >= start })
	w.ready = w.spec - int32(len(w.ups))
	return seen(w.spec, w.ready, load/float64(max(w.ready, 1)))
}

// An incumbent is a loop on a world, with what it said.
type incumbent struct {
	loop  *loop.Loop
	store []byte
	said  []string
}

func newIncumbent(t require.TestingT, p scaling.Policy) *incumbent {
	l, err := loop.New(scaling.GroupOf(p), loop.Config{Period: period})
	require.NoError(t, err)
	return &incumbent{loop: l}
}

// round is one of the loop, with an answer to its write.
func (r *incumbent) round(t require.TestingT, now time.Time, w *world, obs scaling.Observation, answer loop.Result) *loop.Step {
	if r.loop.NeedsRestore() {
		require.NoError(t, r.loop.Restore(r.store))
	}
	r.loop.Read(now, loop.Target{Key: "a", Replicas: w.spec})
	step := r.loop.Decide(now, scaling.GroupObservation{
		Targets: []scaling.TargetObservation{{ReadyReplicas: obs.ReadyReplicas}}, Readings: obs.Readings, Histograms: obs.Histograms,
	})
	require.NoError(t, step.Err)
	r.said = append(r.said, step.Explain())
	save := func(state []byte) {
		if state != nil {
			r.store = slices.Clone(state)
			r.said = append(r.said, string(state))
			r.loop.Saved(nil)
		}
	}
	save(step.Store)
	for write := range r.loop.Writes() {
		r.said = append(r.said, fmt.Sprint(write))
		if answer == loop.Applied {
			w.write(now, write.To)
		}
		r.loop.Wrote(write, answer)
	}
	store, _ := r.loop.Advance(now)
	save(store)
	return step
}

// TestTheRealLoopIsTheSame with any shadows, be they hostile: what it decides, stores and writes is what it does without.
func TestTheRealLoopIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := policies(t)
		kind := rapid.SampledFrom([]string{"realtime", "proportional"}).Draw(t, "real")
		alone, watched := newIncumbent(t, all[kind]()), newIncumbent(t, all[kind]())
		a, b := &world{spec: 3}, &world{spec: 3}
		release := make(chan struct{})
		defer close(release)
		turns := 0
		hostile := map[string]func() scaling.Policy{
			"realtime": all["realtime"], "proportional": all["proportional"],
			"panic": func() scaling.Policy {
				return script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision {
					if turns++; turns > 3 {
						panic("three are enough")
					}
					return to(9, obs)
				}}
			},
			"slow": func() scaling.Policy {
				return script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision { <-release; return to(1, obs) }}
			},
			"ends": func() scaling.Policy {
				return script{decide: func(time.Time, scaling.Observation) scaling.Decision { runtime.Goexit(); panic(0) }}
			},
			"wild":  func() scaling.Policy { return always(-7) },
			"large": func() scaling.Policy { return always(1<<31 - 1) },
			"vandal": func() scaling.Policy {
				return script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision {
					clear(obs.Readings)
					return to(obs.SpecReplicas+1, obs)
				}}
			},
			"refuses": func() scaling.Policy {
				p := all["realtime"]()
				_ = p.UnmarshalJSON([]byte("{}"))
				return p
			},
		}
		c := shadow.Config{}
		for i, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"realtime", "proportional", "panic", "slow", "ends", "wild", "large", "vandal", "refuses"}), 1, 8).Draw(t, "shadows") {
			if name == "panic" && slices.ContainsFunc(c.Policies, func(p shadow.Policy) bool { return p.Name[2:] == name }) {
				name = "wild" // one counts its turns alone
			}
			c.Policies = append(c.Policies, shadow.Policy{Name: fmt.Sprint(i, " ", name), Policy: hostile[name]()})
		}
		s, err := shadow.New(c)
		require.NoError(t, err)
		now := begin()
		for range rapid.IntRange(5, 30).Draw(t, "rounds") {
			now = now.Add(rapid.SampledFrom([]time.Duration{period, period, period, time.Minute, -time.Second}).Draw(t, "later"))
			load := rapid.Float64Range(0, 100).Draw(t, "load")
			answer := rapid.SampledFrom([]loop.Result{loop.Applied, loop.Applied, loop.Refused, loop.Conflict, loop.Uncertain}).Draw(t, "answer")
			one, two := a.look(now, time.Minute, load), b.look(now, time.Minute, load)
			alone.round(t, now, a, one, answer)
			watched.round(t, now, b, two, answer)
			s.Look(now, two)
			if rapid.Bool().Draw(t, "gosched") {
				runtime.Gosched()
			}
			wishes := s.Wishes()
			require.Equal(t, one, two)
			require.Len(t, wishes, len(c.Policies))
			for _, w := range wishes {
				require.LessOrEqual(t, w.Ready, w.Replicas)
				require.GreaterOrEqual(t, w.Ready, int32(0))
			}
		}
		require.Equal(t, alone.said, watched.said)
		require.Equal(t, a, b)
	})
}

// TestTheSamePolicyWishesTheSame: a shadow with the real policy wishes in every round what that decides, as long as
// every write is carried out, whatever starts take.
func TestTheSamePolicyWishesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policies(t)[rapid.SampledFrom([]string{"realtime", "proportional"}).Draw(t, "policy")]
		r, w := newIncumbent(t, p()), &world{spec: rapid.Int32Range(1, 6).Draw(t, "replicas")}
		s, err := shadow.New(shadow.Config{Policies: []shadow.Policy{{Name: "same", Policy: p(), Metrics: []shadow.Metric{{Name: "load", Fill: 10}}}}, Go: atOnce})
		require.NoError(t, err)
		start := rapid.SampledFrom([]time.Duration{0, time.Minute, 10 * time.Minute}).Draw(t, "start")
		now, load := begin(), rapid.Float64Range(0, 60).Draw(t, "load")
		for range rapid.IntRange(5, 60).Draw(t, "rounds") {
			now = now.Add(rapid.SampledFrom([]time.Duration{period, period, 40 * time.Second}).Draw(t, "later"))
			load = max(0, load+rapid.Float64Range(-20, 20).Draw(t, "more"))
			obs := w.look(now, start, load)
			d := r.round(t, now, w, obs, loop.Applied).Targets[0]
			s.Look(now, obs)
			wish := s.Wishes()[0]
			require.Equal(t, d.Replicas, wish.Replicas)
			require.Equal(t, d.Verdict, wish.Verdict)
			require.Equal(t, d.Reason(), wish.Reason)
		}
		require.InDelta(t, s.Wishes()[0].RealReplicaSeconds, s.Wishes()[0].ReplicaSeconds, 1e-9)
		require.True(t, s.Wishes()[0].Apart.IsZero())
	})
}
