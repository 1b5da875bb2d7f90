package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/inferscale/inferscale/adapters/k8s/watch"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop/shadow"
)

// TestRestlessStatusesShareARate: a thousand objects of which something comes and goes in every round cost the API server
// five writes a second, and those of one namespace take nothing from another.
func TestRestlessStatusesShareARate(t *testing.T) {
	c := &Controller{runners: make(map[types.NamespacedName]*runner), tenants: make(map[string]*tenant)}
	var all []*runner
	for i := range 1000 {
		r := &runner{controller: c, namespace: "many", uid: types.UID(fmt.Sprint(i))}
		if i == 0 {
			r.namespace = "one"
		}
		if c.tenants[r.namespace] == nil {
			c.tenants[r.namespace] = &tenant{}
		}
		all = append(all, r)
	}
	began := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	written := make(map[string]int)
	now := began
	for range 40 {
		for _, r := range all {
			if c.tell(r, now, false) {
				written[r.namespace]++
			}
			now = now.Add(15 * time.Millisecond)
		}
	}
	require.LessOrEqual(t, written["many"], 600*5/2+allBurst/2)
	require.GreaterOrEqual(t, written["many"], 500*5/2)
	require.GreaterOrEqual(t, written["one"], 20)
	require.LessOrEqual(t, written["one"], 20+statusBurst)

	require.True(t, c.tell(all[1], now, true), "what is urgent is told in any case")
	now = began // the clock is set back
	require.True(t, c.tell(all[0], now, false))
}

// TestWhatIsAttainedGoesWithItsReason: without an attainment the metric has none, as the status.
func TestWhatIsAttainedGoesWithItsReason(t *testing.T) {
	n, key := NewNumbers(), types.NamespacedName{Namespace: "a", Name: "b"}
	one := watch.State{Wish: shadow.Wish{Name: "s", At: time.Now()}, Attained: &capacity.Attainment{Attained: 0.9}, Actual: &capacity.Attainment{Attained: 0.8}}
	n.shadows(key, []watch.State{one})
	require.Equal(t, 3, testutil.CollectAndCount(n, "inferscale_shadow_attained"))
	one.Attained, one.Actual = nil, nil
	n.shadows(key, []watch.State{one})
	require.Zero(t, testutil.CollectAndCount(n, "inferscale_shadow_attained"))
}
