package scrape

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTurnsAreTakenByTenants: however many pieces of pages one tenant has waiting, another one is next or next but one.
func TestTurnsAreTakenByTenants(t *testing.T) {
	s := newTurnstile(1)
	require.NoError(t, s.enter(t.Context(), "hostile"))
	served := make(chan string, 101)
	waits := func(tenant string, n int) {
		for range n {
			go func() {
				if s.enter(t.Context(), tenant) == nil {
					served <- tenant
				}
			}()
		}
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.waiting[tenant]) == n
		}, 10*time.Second, time.Millisecond)
	}
	waits("hostile", 100)
	waits("orderly", 1)
	s.leave()
	require.Equal(t, "hostile", <-served)
	s.leave()
	require.Equal(t, "orderly", <-served)
	for range 99 {
		s.leave()
		require.Equal(t, "hostile", <-served)
	}
	s.leave()
	require.Equal(t, 1, s.free)
	require.Empty(t, s.turns)
	require.Empty(t, s.waiting)
}

// TestTurnsAreGivenBack: whatever ends the wait for a turn, in the end all are there.
func TestTurnsAreGivenBack(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.IntRange(1, 3).Draw(t, "free")
		s := newTurnstile(free)
		done := make(chan struct{})
		n := rapid.IntRange(1, 30).Draw(t, "readers")
		for i := range n {
			ctx, cancel := context.WithCancel(ctx)
			if rapid.Bool().Draw(t, "canceled") {
				go cancel()
			}
			go func() {
				defer cancel()
				if s.enter(ctx, fmt.Sprint(i%4)) == nil {
					s.leave()
				}
				done <- struct{}{}
			}()
		}
		for range n {
			<-done
		}
		require.Equal(t, free, s.free)
		require.Empty(t, s.turns)
		require.Empty(t, s.waiting)
	})
}

// TestTurnsOfWhoGivesUp: a wait ends with its context, and a turn that comes at that moment is given on.
func TestTurnsOfWhoGivesUp(t *testing.T) {
	s := newTurnstile(1)
	waits := func(ctx context.Context, tenant string) chan error {
		done := make(chan error, 1)
		go func() { done <- s.enter(ctx, tenant) }()
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.waiting[tenant]) == 1
		}, 10*time.Second, 10*time.Microsecond)
		return done
	}
	for range 200 {
		require.NoError(t, s.enter(t.Context(), "first"))
		ctx, giveUp := context.WithCancel(t.Context())
		waiter := waits(ctx, "waiter")
		giveUp()
		require.ErrorIs(t, <-waiter, context.Canceled)
		require.Empty(t, s.waiting)
		require.Empty(t, s.turns)

		ctx, giveUp = context.WithCancel(t.Context())
		waiter = waits(ctx, "waiter")
		giveUp()
		s.leave()
		if <-waiter == nil {
			s.leave()
		}
		require.Equal(t, 1, s.free)
		require.Empty(t, s.turns)
	}
}

// TestWhoGivesUpTakesNobodysTurn: one that was behind another leaves that where it was.
func TestWhoGivesUpTakesNobodysTurn(t *testing.T) {
	s := newTurnstile(1)
	require.NoError(t, s.enter(t.Context(), "first"))
	results := map[string]chan error{"second": make(chan error, 1), "third": make(chan error, 1)}
	ctx, giveUp := context.WithCancel(t.Context())
	for i, tenant := range []string{"second", "third"} {
		of := []context.Context{t.Context(), ctx}[i]
		go func() { results[tenant] <- s.enter(of, tenant) }()
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.turns) == i+1
		}, 10*time.Second, time.Millisecond)
	}
	giveUp()
	require.ErrorIs(t, <-results["third"], context.Canceled)
	s.mu.Lock()
	require.Len(t, s.waiting["second"], 1)
	require.Equal(t, []string{"second"}, s.turns)
	s.mu.Unlock()
	s.leave()
	require.NoError(t, <-results["second"])
	s.leave()
	require.Equal(t, 1, s.free)
}

// TestWhatASweepMayRead: all of it, and not a byte more.
func TestWhatASweepMayRead(t *testing.T) {
	const length = 100
	var left atomic.Int64
	for allowed, want := range map[int64]error{length: nil, length - 1: errSweep} {
		left.Store(allowed)
		r := &bodyReader{Reader: bytes.NewReader(make([]byte, length)), ctx: t.Context(), left: &left, turns: newTurnstiles()}
		n, err := r.Read(make([]byte, length))
		require.Equal(t, length, n)
		require.ErrorIs(t, err, want)
		r.rest()
	}
}

// TestAPageIsLongBeyondAMebibyte: until then its pieces take the turns of all pages, and then those of long ones. At its end
// it has none.
func TestAPageIsLongBeyondAMebibyte(t *testing.T) {
	var left atomic.Int64
	left.Store(1 << 30)
	r := &bodyReader{Reader: io.LimitReader(zeros{}, 1<<20+1), ctx: t.Context(), left: &left, turns: newTurnstiles()}
	all := r.turns.all.free
	piece := make([]byte, 64<<10)
	for range 16 {
		n, err := r.Read(piece)
		require.NoError(t, err)
		require.Len(t, piece, n)
		require.Equal(t, [2]int{all - 1, 1}, [2]int{r.turns.all.free, r.turns.long.free})
	}
	n, err := r.Read(piece)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, [2]int{all, 0}, [2]int{r.turns.all.free, r.turns.long.free})
	n, err = r.Read(piece)
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, n)
	r.rest()
	require.Equal(t, [2]int{all, 1}, [2]int{r.turns.all.free, r.turns.long.free})
}

// TestLongPagesArePaced: what is longer than real pages are takes no more of a core than 64 MiB a second do.
func TestLongPagesArePaced(t *testing.T) {
	const length, pods = 5 << 20, 2
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", textVersion)
		_, _ = w.Write(bytes.Repeat([]byte("other_metric 1\n"), length/15))
	})
	s := newScraper(t, Config{Timeout: 10 * time.Second})
	begun := time.Now()
	sweep := s.Scrape(t.Context(), []Pod{{Name: "a", URL: base + "/metrics"}, {Name: "b", URL: base + "/metrics"}})
	require.Equal(t, NotFound, sweep.Pods[0].Values[0].Err.Reason, "%v", sweep.Pods[0].Values[0].Err)
	require.GreaterOrEqual(t, time.Since(begun), pods*(length-longPage)/(64<<10)*longPause)
}
