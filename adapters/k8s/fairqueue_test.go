package k8s_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/k8s"
)

func tenant(item string) string { return strings.Split(item, "/")[0] }

// A tenant with 250 objects whose pods hang, 3 s a round, and another one with a single object and an interval of 5 s, and 64
// workers: with one queue for all the other one was late by up to 7 s in a round, and fell from 6 rounds in 30 s to 0 or 1.
func TestSlowTenantCostsItself(t *testing.T) {
	const workers, interval, slow = 64, 5 * time.Second, 3 * time.Second
	for name, queue := range map[string]workqueue.TypedInterface[string]{
		"fair": k8s.NewFairQueue(tenant, workers/4), "one for all": workqueue.NewTyped[string](),
	} {
		t.Run(name, func(t *testing.T) {
			type due struct {
				item string
				at   time.Duration
			}
			var dues, ends []due
			for i := range 250 {
				dues = append(dues, due{fmt.Sprintf("slow/%d", i), 0})
			}
			dues = append(dues, due{"victim/0", 0})
			active, rounds, latest := 0, 0, time.Duration(0)
			at := map[string]time.Duration{}
			perTenant := map[string]int{}
			for now := time.Duration(0); now < 30*time.Second; now += 10 * time.Millisecond {
				ends = slices.DeleteFunc(ends, func(e due) bool {
					if e.at <= now {
						queue.Done(e.item)
						active--
						perTenant[tenant(e.item)]--
					}
					return e.at <= now
				})
				dues = slices.DeleteFunc(dues, func(d due) bool {
					if d.at <= now {
						at[d.item] = d.at
						queue.Add(d.item)
					}
					return d.at <= now
				})
				for active < workers && queue.Len() > 0 {
					if name == "fair" && perTenant["slow"] == workers/4 && at["victim/0"] < 0 {
						break // Get would wait
					}
					item, _ := queue.Get()
					active++
					perTenant[tenant(item)]++
					took := slow
					if item == "victim/0" {
						rounds, latest, took = rounds+1, max(latest, now-at[item]), 10*time.Millisecond
					}
					next := max(at[item]+interval, now+took)
					at[item] = -1
					ends, dues = append(ends, due{item, now + took}), append(dues, due{item, next})
				}
			}
			if name == "fair" {
				require.GreaterOrEqual(t, rounds, 6)
				require.Zero(t, latest)
				return
			}
			require.Less(t, rounds, 6, "what the test is about")
		})
	}
}

// What a queue of client-go promises, with workers at the same time: everything that is added is worked on, never the same
// at once, and never more of a tenant than its share.
func TestFairQueueKeepsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.IntRange(0, 3).Draw(t, "share")
		q := k8s.NewFairQueue(tenant, share)
		added := rapid.SliceOfN(rapid.SampledFrom([]string{"a/1", "a/2", "a/3", "a/4", "b/1", "b/2", "c/1"}), 1, 60).Draw(t, "added")
		var mu sync.Mutex
		busy, tenants, worked := map[string]bool{}, map[string]int{}, map[string]bool{}
		var workers sync.WaitGroup
		var wrong []string
		for range 5 {
			workers.Add(1)
			go func() {
				defer workers.Done()
				for {
					item, end := q.Get()
					if end {
						return
					}
					mu.Lock()
					tenants[tenant(item)]++
					if busy[item] || share > 0 && tenants[tenant(item)] > share {
						wrong = append(wrong, item)
					}
					busy[item], worked[item] = true, true
					mu.Unlock()
					mu.Lock()
					busy[item] = false
					tenants[tenant(item)]--
					mu.Unlock()
					q.Done(item)
				}
			}()
		}
		for _, item := range added {
			q.Add(item)
		}
		q.ShutDownWithDrain()
		workers.Wait()
		q.Add("late/1")
		require.Zero(t, q.Len())
		require.True(t, q.ShuttingDown())
		require.Empty(t, wrong)
		for _, item := range added {
			require.True(t, worked[item], item)
		}
	})
}

// What is added while it is worked on is worked on once more, and not before.
func TestFairQueueAgain(t *testing.T) {
	q := k8s.NewFairQueue(tenant, 1)
	q.Add("a/1")
	q.Add("a/2")
	q.Add("b/1")
	q.Add("a/1")
	first, _ := q.Get()
	second, _ := q.Get()
	require.Equal(t, []string{"a/1", "b/1"}, []string{first, second}, "tenants take turns")
	q.Add("a/1")
	require.Equal(t, 1, q.Len(), "it waits until it is done")
	q.Done("b/1")
	q.Done("a/1")
	third, _ := q.Get()
	q.Done(third)
	fourth, _ := q.Get()
	require.Equal(t, []string{"a/2", "a/1"}, []string{third, fourth})
}

// TestSlowTenantsKeepRoom: ten tenants whose rounds never end, each below its share, leave workers for others.
func TestSlowTenantsKeepRoom(t *testing.T) {
	const workers = 64
	q := k8s.NewFairQueue(func(item [2]int) string { return fmt.Sprint(item[0]) }, 16).Workers(workers)
	for tenant := range 10 {
		for i := range 100 {
			q.Add([2]int{tenant, i})
		}
	}
	got := make(chan [2]int)
	for range workers {
		go func() {
			if item, shutdown := q.Get(); !shutdown {
				got <- item
			}
		}()
	}
	taken := 0
	for ; taken < workers/2; taken++ {
		require.Less(t, (<-got)[0], 10)
	}
	for tenant := 10; tenant < 14; tenant++ {
		for i := range 2 {
			q.Add([2]int{tenant, i})
			require.Equal(t, [2]int{tenant, i}, <-got, "at once, though all the others wait")
		}
	}
	q.ShutDown()
}

// TestWhoWaitsIsWoken: of each reason for which somebody may wait, that it ends wakes them.
func TestWhoWaitsIsWoken(t *testing.T) {
	get := func(q *k8s.FairQueue[string]) string {
		item, shutdown := q.Get()
		if shutdown {
			return "shut down"
		}
		return item
	}
	drain := func(q *k8s.FairQueue[string]) string {
		q.ShutDownWithDrain()
		return "drained"
	}
	for name, row := range map[string]struct {
		before, then func(q *k8s.FairQueue[string])
		wait         func(q *k8s.FairQueue[string]) string
		want         string
	}{
		"an item comes": {
			before: func(*k8s.FairQueue[string]) {}, wait: get,
			then: func(q *k8s.FairQueue[string]) { q.Add("a/1") }, want: "a/1",
		},
		"a tenant may have another one": {
			before: func(q *k8s.FairQueue[string]) { q.Add("a/1"); q.Add("a/2"); q.Get() }, wait: get,
			then: func(q *k8s.FairQueue[string]) { q.Done("a/1") }, want: "a/2",
		},
		"there will be none": {
			before: func(*k8s.FairQueue[string]) {}, wait: get,
			then: func(q *k8s.FairQueue[string]) { q.ShutDown() }, want: "shut down",
		},
		"the last one is done": {
			before: func(q *k8s.FairQueue[string]) { q.Add("a/1"); q.Get() }, wait: drain,
			then: func(q *k8s.FairQueue[string]) { q.Done("a/1") }, want: "drained",
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := k8s.NewFairQueue(tenant, 1)
			row.before(q)
			woken := make(chan string, 1)
			go waitIn(func() { woken <- row.wait(q) })
			require.Eventually(t, somebodyWaits, 10*time.Second, time.Millisecond)
			go row.then(q)
			select {
			case got := <-woken:
				require.Equal(t, row.want, got)
			case <-time.After(10 * time.Second):
				require.Fail(t, "not woken")
			}
		})
	}
}

// waitIn is looked for by somebodyWaits.
func waitIn(wait func()) { wait() }

// somebodyWaits reports whether what is called by waitIn waits for a condition.
func somebodyWaits() bool {
	stacks := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "k8s_test.waitIn") && strings.Contains(stack, "sync.(*Cond).Wait") {
			return true
		}
	}
	return false
}

// TestForgottenItemsAreProcessedNoMore: neither what waits nor what was added again while in process.
func TestForgottenItemsAreProcessedNoMore(t *testing.T) {
	q := k8s.NewFairQueue(tenant, 0)
	for _, item := range []string{"a/1", "a/2", "b/1"} {
		q.Add(item)
	}
	q.Forget("a/1")
	q.Forget("b/1")
	q.Forget("b/1")
	require.Equal(t, 1, q.Len())
	item, _ := q.Get()
	require.Equal(t, "a/2", item)
	q.Add("a/2")
	q.Forget("a/2")
	q.Done("a/2")
	require.Zero(t, q.Len())
	q.Add("b/1")
	item, _ = q.Get()
	require.Equal(t, "b/1", item, "it may be added again")
	q.ShutDown()
	_, down := q.Get()
	require.True(t, down)
}
