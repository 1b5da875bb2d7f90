package loop_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// Another autoscaler on the same target takes every write back: 10 + 10 writes in 40 s were the consequence, for ever.
func TestContendedTargetIsLeftAlone(t *testing.T) {
	for name, restart := range map[string]bool{"one process": false, "restarts": true} {
		t.Run(name, func(t *testing.T) {
			l, stored := newLoop(t, loop.Config{}), []byte(nil)
			target := loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: 3}
			var writes []time.Duration
			contended := 0
			for at := time.Duration(0); at < 6*time.Hour; at += 15 * time.Second {
				now := start().Add(at)
				if l.NeedsRestore() {
					require.NoError(t, l.Restore(stored))
				}
				target.Replicas = 3 // the other one's
				seen := l.Read(now, target)
				contended += len(seen.Contended)
				s := l.Decide(now, loaded(50))
				if s.Store != nil {
					stored = s.Store
					l.Saved(nil)
				}
				for w := range l.Writes() {
					writes = append(writes, at)
					target.Version += "1"
					l.Wrote(w, loop.Applied)
				}
				if n := len(writes); n >= loop.Reversals && at > writes[n-1] {
					require.NotNil(t, s.Contended[0], at)
					require.ErrorContains(t, s.Contended[0], "somebody else took back the last 3 writes of chat")
				}
				store, _ := l.Advance(now)
				if store != nil {
					stored = store
					l.Saved(nil)
				}
				if restart && contended > 0 && at%(10*time.Minute) == 0 {
					l = newLoop(t, loop.Config{})
				}
			}
			require.Equal(t, loop.Reversals, len(writes[:3]))
			require.LessOrEqual(t, len(writes), 3+9, "5, 10, 20, 40 minutes, and then an hour each")
			require.Positive(t, contended)
		})
	}
}

// One who changes a count by hand now and then is no rival, nor is one who goes further in the same direction.
func TestNoContest(t *testing.T) {
	for name, other := range map[string]func(round int, n int32) int32{
		"nobody":  func(_ int, n int32) int32 { return n },
		"further": func(_ int, n int32) int32 { return n + 1 },
		"twice by hand": func(round int, n int32) int32 {
			if round == 3 || round == 9 {
				return n - 1
			}
			return n
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, loop.Config{})
			require.NoError(t, l.Restore(nil))
			target := loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: 1}
			for round := range 40 {
				now := start().Add(time.Duration(round) * time.Minute)
				require.Empty(t, l.Read(now, target).Contended)
				s := l.Decide(now, loaded(50))
				l.Saved(nil)
				for w := range l.Writes() {
					target.Version += "1"
					target.Replicas = w.To
					l.Wrote(w, loop.Applied)
				}
				l.Advance(now)
				l.Saved(nil)
				if len(s.Contended) > 0 {
					require.Nil(t, s.Contended[0])
				}
				target.Replicas = min(other(round, target.Replicas), 8)
			}
			require.EqualValues(t, 8, target.Replicas)
		})
	}
}

// When the other one is gone it goes on, and nothing is left of it.
func TestContestEnds(t *testing.T) {
	l, stored := newLoop(t, loop.Config{}), []byte(nil)
	target := loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: 3}
	rival := true
	for at := time.Duration(0); at < 5*time.Hour; at += time.Minute {
		now := start().Add(at)
		if l.NeedsRestore() {
			require.NoError(t, l.Restore(stored))
		}
		if len(l.Read(now, target).Contended) > 0 {
			rival = false
		}
		_, after := l.Decide(now, loaded(50)), []byte(nil)
		l.Saved(nil)
		for w := range l.Writes() {
			target.Version += "1"
			if !rival {
				target.Replicas = w.To
			}
			l.Wrote(w, loop.Applied)
		}
		if after, _ = l.Advance(now); after != nil {
			stored = after
		}
		l.Saved(nil)
	}
	require.False(t, rival)
	require.EqualValues(t, 8, target.Replicas)
	state, err := l.State()
	require.NoError(t, err)
	require.NotContains(t, string(state), "contests")
}

// contend runs rounds every 15 s with a rival that always asks for so many, under a load, and returns when it wrote.
func contend(t *testing.T, l *loop.Loop, rival int32, load float64, d time.Duration) (writes []time.Duration) {
	t.Helper()
	target := loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: rival}
	for at := time.Duration(0); at < d; at += 15 * time.Second {
		now := start().Add(at)
		if l.NeedsRestore() {
			require.NoError(t, l.Restore(nil))
		}
		l.Read(now, target)
		l.Decide(now, loaded(load))
		l.Saved(nil)
		for w := range l.Writes() {
			target.Version += "1"
			writes = append(writes, at)
			l.Wrote(w, loop.Applied)
		}
		l.Advance(now)
		l.Saved(nil)
	}
	return writes
}

// TestPaceOfAContest: three writes, the cooldown of a minute apart, and then one after 5, 10, 20 and 40 minutes and then each
// hour from the round in which the last one turned out to be taken back; up or down.
func TestPaceOfAContest(t *testing.T) {
	for name, load := range map[string]float64{"up": 50, "down": 0} {
		t.Run(name, func(t *testing.T) {
			var gaps []time.Duration
			writes := contend(t, newLoop(t, loop.Config{}), 3, load, 5*time.Hour)
			for i := range writes {
				if i > 0 {
					gaps = append(gaps, writes[i]-writes[i-1])
				}
			}
			const found = 15 * time.Second
			require.Equal(t, []time.Duration{
				cooldown, cooldown, 5*time.Minute + found, 10*time.Minute + found, 20*time.Minute + found, 40*time.Minute + found, time.Hour + found, time.Hour + found, time.Hour + found,
			}, gaps)
		})
	}
}

// TestReversalsAnHourApart: what was taken back an hour ago does not count, as long as nothing was left alone for it.
func TestReversalsAnHourApart(t *testing.T) {
	for last, contended := range map[time.Duration]bool{time.Hour - time.Second: true, time.Hour: false} {
		l := newLoop(t, loop.Config{})
		require.NoError(t, l.Restore(nil))
		n := 0
		for _, found := range []time.Duration{0, 10 * time.Minute, last} {
			written := start().Add(found - 5*time.Minute)
			l.Read(written, loop.Target{Key: "chat", Replicas: 3})
			require.True(t, l.Decide(written, loaded(50)).Acts())
			l.Saved(nil)
			require.Equal(t, 1, write(l, loop.Applied))
			l.Advance(written)
			l.Saved(nil)
			n += len(l.Read(start().Add(found), loop.Target{Key: "chat", Replicas: 3}).Contended)
		}
		require.Equal(t, contended, n > 0, last)
	}
}

// TestAContestIsNotLongerForAClockThatStepsBack: what is left alone for longer than it ever is, is not.
func TestAContestIsNotLongerForAClockThatStepsBack(t *testing.T) {
	l := newLoop(t, loop.Config{})
	require.Len(t, contend(t, l, 3, 50, 5*time.Minute), loop.Reversals)
	for back, left := range map[time.Duration]bool{50 * time.Minute: true, 3 * time.Hour: false} {
		now := start().Add(5*time.Minute - back)
		l.Read(now, loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: 3})
		s := l.Decide(now, loaded(50))
		require.Equal(t, left, s.Contended != nil && s.Contended[0] != nil, back)
	}
}

// TestContestsOfTargetsThatAreGone: nothing is left of them.
func TestContestsOfTargetsThatAreGone(t *testing.T) {
	l := newLoop(t, loop.Config{})
	contend(t, l, 3, 50, 5*time.Minute)
	state, err := l.State()
	require.NoError(t, err)
	require.Contains(t, string(state), "contests")
	l.Read(start().Add(5*time.Minute), loop.Target{Key: "chat2", ID: "1", Version: "7", Replicas: 3})
	state, err = l.State()
	require.NoError(t, err)
	require.NotContains(t, string(state), "contests")
}

// TestRegressionAWriteWithoutAnAnswerIsNoRivals: the Loop's own write, which went the other way and whose answer was lost, counted as
// somebody who takes back the write before it. After three of them the target was left alone.
func TestRegressionAWriteWithoutAnAnswerIsNoRivals(t *testing.T) {
	l := newLoop(t, loop.Config{})
	require.NoError(t, l.Restore(nil))
	target := loop.Target{Key: "chat", ID: "1", Version: "1", Replicas: 3}
	lost := 0
	for at := time.Duration(0); at < 2*time.Hour; at += 15 * time.Second {
		now := start().Add(at)
		seen := l.Read(now, target)
		require.Empty(t, seen.Contended)
		s := l.Decide(now, loaded([]float64{50, 0}[int(at/(20*time.Minute))%2]))
		if s.Store != nil {
			l.Saved(nil)
		}
		for w := range l.Writes() {
			target.Version += "1"
			target.Replicas = w.To // every write arrives
			if w.To > w.From {
				l.Wrote(w, loop.Applied)
			} else {
				l.Wrote(w, loop.Uncertain)
				lost++
			}
		}
		if store, _ := l.Advance(now); store != nil {
			l.Saved(nil)
		}
	}
	require.GreaterOrEqual(t, lost, loop.Reversals)
}

// TestRegressionAStaleReadIsNoRival: a target that is read from a cache, as controllers do, is for a round or two as it was before the
// Loop's own write. That counted as somebody who takes the write back, and after three the target was left alone. A rival
// has another version, however late it is seen.
func TestRegressionAStaleReadIsNoRival(t *testing.T) {
	for name, rival := range map[string]bool{"nobody": false, "a rival": true} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, loop.Config{Volatile: true})
			version, server := 7, loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: 1}
			cached := [3]loop.Target{server, server, server} // two rounds behind
			writes, contended := 0, 0
			set := func(n int32) {
				version++
				server.Version, server.Replicas = strconv.Itoa(version), n
			}
			for round := range 400 {
				now := start().Add(time.Duration(round) * 15 * time.Second)
				contended += len(l.Read(now, cached[0]).Contended)
				l.Decide(now, loaded([]float64{50, 0}[round/100%2]))
				for w := range l.Writes() {
					require.Equal(t, server.Version, w.Version, "the cooldown is longer than the cache lags behind")
					writes++
					set(w.To)
					l.Wrote(w, loop.Applied)
				}
				l.Advance(now)
				if rival && server.Replicas != 3 {
					set(3)
				}
				cached = [3]loop.Target{cached[1], cached[2], server}
			}
			require.Equal(t, rival, contended > 0)
			require.GreaterOrEqual(t, writes, loop.Reversals)
		})
	}
}

// TestRegressionATargetMadeAnewIsNoReversal: of two targets one is deleted and made anew with fewer replicas after each write. Each
// time counted as a write that somebody else had taken back, and after three the target was left alone.
func TestRegressionATargetMadeAnewIsNoReversal(t *testing.T) {
	l := loopOf(t, scaling.Each(scaling.New(stepper{}), scaling.New(stepper{})), loop.Config{})
	require.NoError(t, l.Restore(nil))
	read := []loop.Target{{Name: "a", ID: "1", Version: "1", Replicas: 8}, {Name: "b", ID: "2", Version: "1", Replicas: 3}}
	round := func(at time.Duration) (contended []int) {
		contended = l.Read(start().Add(at), read...).Contended
		l.Decide(start().Add(at), loaded(50))
		l.Saved(nil)
		require.Equal(t, 1, write(l, loop.Applied), at)
		read[1].Version += "1"
		l.Advance(start().Add(at))
		l.Saved(nil)
		return contended
	}
	for n := range 2 * loop.Reversals {
		require.Empty(t, round(time.Duration(n)*cooldown))
		read[1].ID += "0"
	}
	for n := range loop.Reversals - 1 { // now somebody does take back the writes
		require.Empty(t, round(time.Duration(2*loop.Reversals+n)*cooldown))
	}
	read[1].ID += "0" // and deletes the target: those do not count for the next one
	for n := range loop.Reversals {
		require.Empty(t, round(time.Duration(3*loop.Reversals+n)*cooldown))
	}
	require.Equal(t, []int{1}, l.Read(start().Add(time.Duration(4*loop.Reversals)*cooldown), read...).Contended)
}

// TestRegressionALeaderIsNoRival: two instances of one controller take turns as the leader. What the other one had written since counted as
// a reversal, and the target was left alone although nobody else writes it.
func TestRegressionALeaderIsNoRival(t *testing.T) {
	a, b := newLoop(t, loop.Config{}), newLoop(t, loop.Config{})
	target := loop.Target{Key: "chat", ID: "1", Version: "7", Replicas: 3}
	var stored []byte
	require.NoError(t, a.Restore(nil))
	now := start()
	lead := func(l *loop.Loop, load float64) {
		now = now.Add(5 * time.Minute)
		l.Saved(errors.New("was not the leader"))
		require.NoError(t, l.Restore(stored))
		seen := l.Read(now, target)
		require.Empty(t, seen.Contended, "after %s: %s", now.Sub(start()), stored)
		s := l.Decide(now, loaded(load))
		if s.Store != nil {
			stored = s.Store
			l.Saved(nil)
		}
		for w := range l.Writes() {
			target.Replicas, target.Version = w.To, target.Version+"1"
			l.Wrote(w, loop.Applied)
		}
		if store, _ := l.Advance(now); store != nil {
			stored = store
			l.Saved(nil)
		}
	}
	for range 6 {
		lead(a, 50) // up
		lead(b, 0)  // down
	}
}
