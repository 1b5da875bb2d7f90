package scrape

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTurnsAreTakenByTenants: however many pieces of however many tenants wait, one of which little was parsed is next, until
// it has caught up; then tenants take turns.
func TestTurnsAreTakenByTenants(t *testing.T) {
	const hostile, pieces, size = 10, 100, 64 << 10
	s := newTurnstile(1)
	var waiting []chan struct{} // of all, in the order in which they came
	var of []string
	join := func(tenant string) {
		if turn := s.join(tenant, size); turn != nil {
			waiting, of = append(waiting, turn), append(of, tenant)
		}
	}
	served := func() string {
		s.leave()
		for i, turn := range waiting {
			select {
			case <-turn:
				tenant := of[i]
				waiting, of = slices.Delete(waiting, i, i+1), slices.Delete(of, i, i+1)
				return tenant
			default:
			}
		}
		return ""
	}
	for range pieces {
		for i := range hostile {
			join(fmt.Sprint("hostile ", i))
		}
	}
	for i := range hostile * pieces / 2 {
		require.Equal(t, fmt.Sprint("hostile ", (i+1)%hostile), served())
	}
	for range lead / size {
		join("orderly")
		require.Equal(t, "orderly", served())
	}
	counts := map[string]int{}
	for range 3 * (hostile + 1) {
		join("orderly")
		counts[served()]++
	}
	require.Len(t, counts, hostile+1)
	for tenant, n := range counts {
		require.InDelta(t, 3, n, 1, tenant)
	}
	for range waiting {
		require.NotEmpty(t, served())
	}
	require.Empty(t, served())
	require.Equal(t, 1, s.free)
	require.Empty(t, s.turns)
	require.Empty(t, s.waiting)
}

// TestTurnsAreThoseOfATwin: they are given as in a twin that forgets nothing and looks through everything, whoever comes,
// leaves and gives up; and while a piece is the first of its tenant, of each other one no more than is promised is parsed.
func TestTurnsAreThoseOfATwin(t *testing.T) {
	const size = 64 << 10
	type waiter struct {
		tenant string
		bytes  int
		turn   chan struct{}
		before map[string]int64 // parsed of others while it was the first of its tenant
	}
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.IntRange(1, 3).Draw(t, "free")
		s := newTurnstile(free)
		var (
			queue  []*waiter
			busy   int
			most   int64
			clock  int
			tags   = map[string]int64{}
			inLine = map[string]int{} // since when a tenant is in the line
		)
		start := func(tenant string) int64 { return max(tags[tenant], most-lead) }
		first := func(tenant string) int {
			return slices.IndexFunc(queue, func(w *waiter) bool { return w.tenant == tenant })
		}
		count := func(tenant string, bytes int) {
			cost := max(int64(bytes), leastPiece)
			for i, w := range queue {
				if w.tenant == tenant || first(w.tenant) != i {
					continue
				}
				w.before[tenant] += cost
				require.LessOrEqual(t, w.before[tenant], int64(lead+2*size), "of %s before %s", tenant, w.tenant)
			}
			begin := start(tenant)
			most = max(most, begin)
			tags[tenant] = begin + cost
			busy++
		}
		next := func() {
			busy--
			best := -1
			for i, w := range queue {
				if first(w.tenant) != i {
					continue
				}
				if best < 0 || start(w.tenant) < start(queue[best].tenant) ||
					start(w.tenant) == start(queue[best].tenant) && inLine[w.tenant] < inLine[queue[best].tenant] {
					best = i
				}
			}
			if best < 0 {
				return
			}
			w := queue[best]
			queue = slices.Delete(queue, best, best+1)
			clock++
			inLine[w.tenant] = clock
			count(w.tenant, w.bytes)
			select {
			case <-w.turn:
			default:
				require.Fail(t, "another one was served", "not %s", w.tenant)
			}
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what < 6:
				w := &waiter{tenant: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "tenant"), bytes: rapid.IntRange(1, size).Draw(t, "bytes"), before: map[string]int64{}}
				w.turn = s.join(w.tenant, w.bytes)
				require.Equal(t, busy < free, w.turn == nil)
				if w.turn == nil {
					count(w.tenant, w.bytes)
					continue
				}
				if first(w.tenant) < 0 {
					clock++
					inLine[w.tenant] = clock
				}
				queue = append(queue, w)
			case what < 9:
				if busy > 0 {
					s.leave()
					next()
				}
			case len(queue) > 0:
				i := rapid.IntRange(0, len(queue)-1).Draw(t, "who")
				s.quit(queue[i].tenant, queue[i].turn)
				queue = slices.Delete(queue, i, i+1)
			}
			for _, w := range queue {
				select {
				case <-w.turn:
					require.Fail(t, "somebody was served", "%s", w.tenant)
				default:
				}
			}
		}
		for busy > 0 {
			s.leave()
			next()
		}
		require.Equal(t, free, s.free)
		require.Empty(t, s.turns)
		require.Empty(t, s.waiting)
	})
}

// TestTurnsForgetTenants: what is known of tenants is bounded, whoever comes once.
func TestTurnsForgetTenants(t *testing.T) {
	s := newTurnstile(1)
	for i := range 10 * tagsLimit {
		require.Nil(t, s.join(fmt.Sprint(i), 1))
		s.leave()
		require.LessOrEqual(t, len(s.tags), tagsLimit)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		require.Nil(t, s.join("heavy", 64<<10))
		s.leave()
	}))
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
				if s.enter(ctx, fmt.Sprint(i%4), 1+i) == nil {
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
		go func() { done <- s.enter(ctx, tenant, 1) }()
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.waiting[tenant]) == 1
		}, 10*time.Second, 10*time.Microsecond)
		return done
	}
	for range 200 {
		require.NoError(t, s.enter(t.Context(), "first", 1))
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
	require.NoError(t, s.enter(t.Context(), "first", 1))
	results := map[string]chan error{"second": make(chan error, 1), "third": make(chan error, 1)}
	ctx, giveUp := context.WithCancel(t.Context())
	for i, tenant := range []string{"second", "third"} {
		of := []context.Context{t.Context(), ctx}[i]
		go func() { results[tenant] <- s.enter(of, tenant, 1) }()
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

// TestAPageIsLongBeyondAMebibyte: until then its pieces take the turns of all pages, and then those of long ones too. At its
// end it has none.
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
	require.Equal(t, [2]int{all - 1, 0}, [2]int{r.turns.all.free, r.turns.long.free})
	n, err = r.Read(piece)
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, n)
	r.rest()
	require.Equal(t, [2]int{all, 1}, [2]int{r.turns.all.free, r.turns.long.free})
}

// TestDecompressionTakesTurns: a page is decompressed during a turn, and read from the network, which may take long, without.
func TestDecompressionTakesTurns(t *testing.T) {
	var left atomic.Int64
	left.Store(1 << 30)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := io.Copy(z, io.LimitReader(rand.NewChaCha8([32]byte{}), 1<<19))
	require.NoError(t, err)
	_, err = io.Copy(z, io.LimitReader(zeros{}, 1<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	r := &bodyReader{ctx: t.Context(), left: &left, turns: newTurnstiles(), zipped: true}
	all, reads := r.turns.all.free, 0
	free := func() [2]int { return [2]int{r.turns.all.free, r.turns.long.free} }
	r.Reader, err = gzip.NewReader(compressed{reader(func(p []byte) (int, error) {
		require.Equal(t, [2]int{all, 1}, free())
		reads++
		return zipped.Read(p)
	}), r})
	require.NoError(t, err)
	for piece := make([]byte, 64<<10); err == nil; {
		want := [2]int{all - 1, 1}
		if r.read > longPage {
			want[1] = 0
		}
		if _, err = r.Read(piece); err == nil {
			require.Equal(t, want, free())
		}
	}
	require.ErrorIs(t, err, io.EOF)
	require.EqualValues(t, 3<<19, r.read)
	require.Greater(t, reads, 8)
	r.rest()
	require.Equal(t, [2]int{all, 1}, free())
}

// A reader is a function.
type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

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
