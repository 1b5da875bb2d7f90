package saturation_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestEveryReasonIsTold has the explanations of single decisions in both modes and of both step rules, and when time alone
// would change them. One plan is used for all, so that nothing of one decision is left in the next.
func TestEveryReasonIsTold(t *testing.T) {
	nan := math.NaN()
	v := func(name string, cost float64, current int32, more ...func(*saturation.Variant)) saturation.Variant {
		v := saturation.Variant{Name: name, Cost: cost, Current: current}
		for _, m := range more {
			m(&v)
		}
		return v
	}
	pending := func(n int32) func(*saturation.Variant) { return func(v *saturation.Variant) { v.Pending = n } }
	desired := func(n int32) func(*saturation.Variant) {
		return func(v *saturation.Variant) { v.Desired = saturation.CountOf(n) }
	}
	capacity := func(c float64) func(*saturation.Variant) { return func(v *saturation.Variant) { v.Capacity = c } }
	bounds := func(lo, hi int32) func(*saturation.Variant) {
		return func(v *saturation.Variant) { v.Min, v.Max = lo, hi }
	}
	join := func(parts ...[]saturation.Replica) (all []saturation.Replica) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	three := func(a, b, c float64) []saturation.Variant {
		return []saturation.Variant{v("a", a, 2), v("b", b, 2), v("c", c, 2)}
	}
	of3 := func(kv, queue float64) []saturation.Replica {
		return join(same("a", 2, kv, queue), same("b", 2, kv, queue), same("c", 2, kv, queue))
	}
	uneven := []saturation.Variant{v("a", 1, 1), v("b", 9, 1, capacity(4))}
	nothing := saturation.Recommended()
	nothing.KVSpare, nothing.QueueSpare = 0, 0
	type line struct {
		name     string
		replicas []saturation.Replica
		variants []saturation.Variant
	}
	shared := []line{
		{"up, the cheapest is not the first", of3(0.75, 1), three(2, 1, 3)},
		{"up, short of both, with a long name", join(same("variant-of-a-model", 2, 0.75, 4), same("b", 1, 0.9, 1)), []saturation.Variant{v("variant-of-a-model", 2, 2), v("b", 5, 1)}},
		{"up, short of queue", of3(0.1, 4), three(3, 3, 3)},
		{"up, one is pending", of3(0.75, 1), []saturation.Variant{v("a", 1, 2, pending(1)), v("b", 2, 2), v("c", 3, 2)}},
		{"up, all are pending", same("a", 2, 0.75, 1), []saturation.Variant{v("a", 1, 2, pending(2))}},
		{"up, at the maximum", same("a", 2, 0.75, 1), []saturation.Variant{v("a", 1, 2, bounds(0, 2))}},
		{"up, the first has no replicas", same("b", 2, 0.75, 1), []saturation.Variant{v("a", 1, 0), v("b", 2, 2)}},
		{"down, the dearest is not the first", of3(0.1, 0), three(2, 3, 1)},
		{"down, the dearest is the first", of3(0.1, 0), three(3, 1, 2)},
		{"down, of equal ones the last", of3(0.1, 0), three(2, 2, 2)},
		{"down, one is the last of its variant", join(same("a", 2, 0.1, 0), same("b", 1, 0.1, 0)), []saturation.Variant{v("a", 1, 2), v("b", 9, 1)}},
		{"down, all are the last", join(same("a", 1, 0.1, 0), same("b", 1, 0.1, 0)), []saturation.Variant{v("a", 1, 1), v("b", 9, 1)}},
		{"down, below its minimum", same("a", 3, 0.1, 0), []saturation.Variant{v("a", 1, 3, bounds(3, 0))}},
		{"no room in the cache", of3(0.6, 1), three(1, 2, 3)},
		{"no room in the queue", of3(0.1, 1.9), three(1, 2, 3)},
		{"alone", same("a", 1, 0.1, 0), []saturation.Variant{v("a", 1, 1)}},
		{"nobody", nil, three(1, 2, 3)},
		{"no value", rows("a", nan, 0, 0.1, nan), []saturation.Variant{v("a", 1, 2)}},
		{"a value that is none beside good ones", rows("a", 0.1, 0, nan, 0, 0.1, 0), []saturation.Variant{v("a", 1, 3)}},
		{"a queue that is none beside good ones", rows("a", 0.1, 0, 0.1, nan, 0.1, 0), []saturation.Variant{v("a", 1, 3)}},
		{"the first is on its way", of3(0.75, 1), []saturation.Variant{v("a", 1, 2, desired(3)), v("b", 2, 2), v("c", 3, 2, desired(1))}},
		{"one has a surplus", of3(0.75, 1), []saturation.Variant{v("a", 1, 2), v("b", 2, 1), v("c", 3, 2)}},
		{"one does not report", of3(0.75, 1), []saturation.Variant{v("a", 1, 2), v("b", 2, 3, pending(1)), v("c", 3, 2)}},
		{"desired nothing", of3(0.75, 1), []saturation.Variant{v("a", 1, 2, desired(0)), v("b", 2, 2), v("c", 3, 2)}},
		{"no state beside one", join(same("a", 2, 0.1, 0), same("ghost", 2, 0.1, 0)), []saturation.Variant{v("a", 1, 2)}},
		{"no state beside one that is short", join(same("a", 2, 0.75, 0), same("ghost", 2, 0.75, 0)), []saturation.Variant{v("a", 1, 2)}},
		{"contradicted beside one that is short", join(same("a", 2, 0.75, 0), same("b", 2, 0.75, 0)), []saturation.Variant{v("a", 1, 2), v("b", 1, 2), v("b", 2, 2)}},
		{"invalid beside one that is short", join(same("a", 2, 0.75, 0), same("b", 2, 0.75, 0)), []saturation.Variant{v("a", 1, 2), v("b", -1, 2)}},
		{"saturated", rows("a", 0.95, 0, 0.1, 0, 0.1, 0, 0.1, 0, 0.1, 0), []saturation.Variant{v("a", 1, 5)}},
		{"saturated by queue", rows("a", 0.1, 0, 0.1, 6, 0.1, 0, 0.1, 0, 0.1, 0), []saturation.Variant{v("a", 1, 5)}},
		{"a tie", rows("a", 0.7, 2, 0.7, 2, 0.7, 2), []saturation.Variant{v("a", 1, 3)}},
		{"a tie of loads that add up to more in decimals", rows("a", 0.7000000000000001, 2, 0.7, 2), []saturation.Variant{v("a", 1, 2)}},
		{"a queue that adds up to more in decimals", rows("a", 0.1, 2.0000000000000004, 0.1, 2), []saturation.Variant{v("a", 1, 2)}},
		{"a tie of what is left", rows("a", 0.7000000000000001, 0, 0, 0), []saturation.Variant{v("a", 1, 2)}},
		{"a queue that is a tie of what is left", rows("a", 0, 2.0000000000000004, 0, 0), []saturation.Variant{v("a", 1, 2)}},
		{"uneven, one each, idle", join(same("a", 1, 0.1, 0), same("b", 1, 0.1, 0)), uneven},
		{"uneven, one each, busy", join(same("a", 1, 0.6, 0), same("b", 1, 0.6, 0)), uneven},
		{"uneven, one saturated", join(rows("a", 0.95, 0), same("b", 4, 0.2, 0)), []saturation.Variant{v("a", 1, 1), v("b", 9, 4, capacity(4))}},
		{"uneven, one missing", join(rows("a", nan, 0), same("b", 4, 0.2, 0)), []saturation.Variant{v("a", 1, 1), v("b", 9, 4, capacity(4))}},
		{"uneven and small", join(same("a", 2, 0.2, 0), same("b", 2, 0.2, 0)), []saturation.Variant{v("a", 1, 2, capacity(0.1)), v("b", 9, 2, capacity(0.2))}},
	}
	var out strings.Builder
	var analysis saturation.Analysis
	var plan saturation.Plan
	tell := func(title string, c saturation.Config, at time.Duration, state saturation.State, l line) saturation.State {
		s := build(t, c)
		s.Analyze(&analysis, l.replicas)
		state = s.Decide(state, start.Add(at), &analysis, l.variants, &plan)
		fmt.Fprintf(&out, "# %s: %s\n%s", title, l.name, plan.Explain())
		for i := range plan.Targets {
			d := &plan.Targets[i].Decision
			require.NoError(t, scalingtest.Explained(d), d.Explain())
			require.True(t, plan.Targets[i].IsPriced || plan.Targets[i].Price == 0)
			if c.Step == saturation.Deficit {
				out.WriteString(d.Explain())
			}
			if !d.Next.IsZero() {
				fmt.Fprintf(&out, "%s next %s\n", plan.Targets[i].Variant, d.Next.Sub(start))
			}
		}
		out.WriteString("\n")
		return state
	}
	quick := saturation.Defaults()
	quick.DownStabilization = 0
	for _, l := range shared {
		tell("default", quick, 0, saturation.State{}, l)
		tell("literal", saturation.WVA(), 0, saturation.State{}, l)
	}
	deficit := quick
	deficit.Step = saturation.Deficit
	for _, l := range []line{
		{"short of cache", same("a", 4, 0.79, 0), []saturation.Variant{v("a", 1, 4)}},
		{"short of queue", same("a", 4, 0.1, 3), []saturation.Variant{v("a", 1, 4)}},
		{"less than one is lacking", same("a", 2, 0.71, 0), []saturation.Variant{v("a", 1, 2)}},
		{"as many report as are desired, and more are short", same("a", 4, 0.75, 3), []saturation.Variant{v("a", 1, 2, desired(4))}},
		{"on its way", same("a", 4, 0.79, 0), []saturation.Variant{v("a", 1, 6)}},
		{"some on its way", same("a", 4, 0.1, 4), []saturation.Variant{v("a", 1, 5)}},
		{"the rest goes to another", same("a", 4, 0.1, 4), []saturation.Variant{v("a", 1, 5, bounds(0, 5)), v("b", 3, 0)}},
		{"with a ghost of capacity 1", join(same("a", 2, 0.75, 3), same("ghost", 2, 0.75, 3)), []saturation.Variant{v("a", 1, 2)}},
		{"with one that is contradicted, of capacity 1", join(same("a", 2, 0.75, 3), same("b", 2, 0.75, 3)), []saturation.Variant{v("a", 1, 2), v("b", 1, 2), v("b", 2, 2)}},
	} {
		tell("deficit", deficit, 0, saturation.State{}, l)
	}
	// Replicas that do not come: after ten minutes the variant grows again only if it is where it was asked to be.
	for _, l := range []line{
		{"growing", same("a", 2, 0.75, 3), []saturation.Variant{v("a", 1, 2, desired(3))}},
		{"pending", same("a", 2, 0.75, 3), []saturation.Variant{v("a", 1, 2, pending(1))}},
		{"starting", same("a", 2, 0.75, 3), []saturation.Variant{v("a", 1, 3)}},
	} {
		for _, c := range []saturation.Config{deficit, quick} {
			state := tell(c.Step.String()+" at 0", c, 0, saturation.State{}, l)
			tell(c.Step.String()+" at 10m", c, 10*time.Minute, state, l)
		}
	}
	full := quick
	full.Thresholds = nothing
	tell("nothing to spare", full, 0, saturation.State{}, line{"up to the queue's threshold", same("a", 2, 0.1, 2.5), []saturation.Variant{v("a", 1, 2)}})
	tell("nothing to spare", full, 0, saturation.State{}, line{"up to the cache's threshold", same("a", 2, 0.4, 1), []saturation.Variant{v("a", 1, 2)}})
	for _, c := range []saturation.Config{quick, saturation.WVA(), full} {
		reading := func(name string, lower, upper float64) scaling.Reading {
			return scaling.Reading{Metric: name, Lower: lower, Upper: upper, Values: 1}
		}
		for _, r := range [][4]float64{
			{0.6, 0.6, 1, 1},
			{0.71, 0.71, 1, 1},
			{0.1, 0.1, 5, 5},
			{0.2, 0.2, 1, 1},
			{0.2, 0.2, 1.5, 1.5},
			{0.5, 0.9, 1, 1},
			{0.1, 0.1, 1, 5},
			{0.1, 0.8, 1, 1},
			{0.7, 0.7, 2, 2},
			{0.7000000000000001, 0.7000000000000001, 2, 2},
			{0.1, 0.1, 2.0000000000000004, 2.0000000000000004},
			{nan, nan, 1, 1},
			{0.1, 0.1, nan, nan},
			{nan, nan, nan, nan},
			{0.35, 0.35, 1, 1},
			{0.4, 0.4, 2.5, 2.5},
			{0.1, 0.1, 2.5, 2.5},
		} {
			for _, n := range []int32{1, 2, 3} {
				single, err := saturation.NewSingle(singleConfig(c))
				require.NoError(t, err)
				d := single.Decide(start, scaling.Observation{SpecReplicas: n, ReadyReplicas: n, Readings: []scaling.Reading{
					reading(saturation.DefaultKV, r[0], r[1]), reading(saturation.DefaultQueue, r[2], r[3]),
				}})
				fmt.Fprintf(&out, "# single %s of %d, cache %v to %v, queue %v to %v\n%s\n", c.Mode, n, r[0], r[1], r[2], r[3], d.Explain())
			}
		}
	}
	scalingtest.Golden(t, "explained.txt", out.String())
}
