package scrape

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
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
