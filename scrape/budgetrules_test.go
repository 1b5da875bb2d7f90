package scrape

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

func TestNewBudget(t *testing.T) {
	for bytes, ok := range map[int64]bool{0: true, -1: false, 32<<20 - 1: false, 32 << 20: true, 1 << 50: false} {
		b, err := NewBudget(bytes)
		require.Equal(t, ok, err == nil, bytes)
		var field *scaling.FieldError
		require.True(t, ok || b == nil)
		if !ok {
			require.ErrorAs(t, err, &field)
		}
	}
}

func TestBudgetIsSharedFairly(t *testing.T) {
	b := newBudget(64 << 20) // 32 MiB for reading
	take := func(tenant string) (got int64) {
		for b.TryAcquire(tenant, 1<<20) {
			got++
		}
		return got
	}
	require.Equal(t, int64(16), take("a"), "one tenant may hold half")
	require.Equal(t, int64(5), take("b"), "of the rest, two may hold a third each")
	require.Equal(t, int64(4), take("c"))
	require.Equal(t, int64(3), take("d"), "and somebody new finds room")
	require.False(t, b.TryAcquire("a", 1))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.Acquire(ctx, "a", 1<<20), context.DeadlineExceeded)
	require.Empty(t, b.reading.accounts["a"].queue)
	require.LessOrEqual(t, b.reading.used, b.reading.size)
}

// TestBudgetServesWhoHoldsLeast: two tenants wait, and the room goes to the one that holds nothing.
func TestBudgetServesWhoHoldsLeast(t *testing.T) {
	b := newBudget(64 << 20)
	require.True(t, b.TryAcquire("greedy", 16<<20))
	require.True(t, b.TryAcquire("other", 10<<20))
	require.True(t, b.TryAcquire("third", 6<<20), "who holds nothing is served while there is room")
	served := make(chan string, 2)
	var group sync.WaitGroup
	for _, tenant := range []string{"greedy", "victim"} {
		group.Add(1)
		go func() {
			defer group.Done()
			if b.Acquire(t.Context(), tenant, 6<<20) == nil {
				served <- tenant
			}
		}()
		require.Eventually(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.reading.accounts[tenant].queue) == 1
		}, time.Second, time.Millisecond)
	}
	b.Release("third", 6<<20)
	require.Equal(t, "victim", <-served)
	b.Release("other", 10<<20)
	b.Release("greedy", 16<<20)
	require.Equal(t, "greedy", <-served)
	group.Wait()
	b.Release("greedy", 6<<20)
	b.Release("victim", 6<<20)
	require.Zero(t, b.reading.used)
	require.Empty(t, b.reading.accounts)
}

// TestBudgetHalves: half of a budget is for reading and half for what is remembered, and of each a tenant alone has half.
func TestBudgetHalves(t *testing.T) {
	b, err := NewBudget(0) // 64 MiB
	require.NoError(t, err)
	require.True(t, b.TryAcquire("a", 16<<20))
	require.False(t, b.TryAcquire("a", 1))
	require.True(t, b.keep("a", 16<<20))
	require.False(t, b.keep("a", 1))
	require.True(t, b.keep("a", 0))
	require.True(t, b.keep("a", -1), "less is always granted")
	require.True(t, b.keep("a", 1))
}

// TestBudgetKeepsTheOrderOfATenant: a page that asks for little does not pass one of its tenant that waits, and takes its
// place when that one gives up.
func TestBudgetKeepsTheOrderOfATenant(t *testing.T) {
	b := newBudget(64 << 20)
	require.True(t, b.TryAcquire("other", 20<<20))
	queued := func(n int) {
		require.Eventually(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.reading.accounts["a"].queue) == n
		}, 10*time.Second, time.Millisecond)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	large, small := make(chan error, 1), make(chan error, 1)
	go func() { large <- b.Acquire(ctx, "a", 20<<20) }()
	queued(1)
	go func() { small <- b.Acquire(t.Context(), "a", 1<<20) }()
	queued(2)
	require.Empty(t, small)
	giveUp()
	require.ErrorIs(t, <-large, context.Canceled)
	require.NoError(t, <-small)
	b.Release("a", 1<<20)
	b.Release("other", 20<<20)
	require.Zero(t, b.reading.used)
	require.Empty(t, b.reading.accounts)
}

// TestBudgetLosesNothingToWhoGivesUp: what is granted while its context ends is given back.
func TestBudgetLosesNothingToWhoGivesUp(t *testing.T) {
	b := newBudget(64 << 20)
	for range 200 {
		require.True(t, b.TryAcquire("other", 20<<20))
		ctx, giveUp := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.Acquire(ctx, "a", 20<<20) }()
		require.Eventually(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.reading.accounts["a"].queue) == 1
		}, 10*time.Second, 10*time.Microsecond)
		giveUp()
		b.Release("other", 20<<20)
		if <-done == nil {
			b.Release("a", 20<<20)
		}
		require.Zero(t, b.reading.used)
		require.Empty(t, b.reading.accounts)
	}
}
