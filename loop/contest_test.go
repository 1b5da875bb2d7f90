package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop"
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
