package saturation_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestSteps goes through single decisions, one line a case: thresholds 0.80 and 5, triggers 0.10 and 3.
func TestSteps(t *testing.T) {
	a := func(current int32, more ...func(*saturation.Variant)) []saturation.Variant {
		v := saturation.Variant{Name: "a", Cost: 1, Current: current}
		for _, m := range more {
			m(&v)
		}
		return []saturation.Variant{v}
	}
	pending := func(n int32) func(*saturation.Variant) { return func(v *saturation.Variant) { v.Pending = n } }
	desired := func(n int32) func(*saturation.Variant) {
		return func(v *saturation.Variant) { v.Desired = saturation.CountOf(n) }
	}
	bounds := func(lo, hi int32) func(*saturation.Variant) {
		return func(v *saturation.Variant) { v.Min, v.Max = lo, hi }
	}
	nan := math.NaN()
	type line struct {
		name     string
		replicas []saturation.Replica
		variants []saturation.Variant
		want     string // verdict, target and last code
	}
	for _, l := range []line{
		{"spare at the trigger is enough", same("a", 1, 0.70, 2), a(1), "Hold 1 TooFew"},
		{"spare below the trigger", same("a", 1, 0.71, 2), a(1), "Up 2 Alone"},
		{"queue below the trigger", same("a", 1, 0.1, 2.5), a(1), "Up 2 Alone"},
		{"at the threshold is saturated", same("a", 1, 0.80, 0), a(1), "Up 2 Alone"},
		{"room for one less, exactly", same("a", 2, 0.35, 1), a(2), "Down 1 Alone"},
		{"no room for one less", same("a", 2, 0.36, 1), a(2), "Hold 2 FullKV"},
		{"no room in the queue", same("a", 2, 0.1, 1.5), a(2), "Hold 2 FullQueue"},
		{"no down with one saturated", rows("a", 0.8, 0, 0, 0, 0, 0, 0, 0), a(4), "Hold 4 SaturatedKV"},
		{"no down with one missing", rows("a", nan, 0, 0, 0, 0, 0), a(3), "Hold 3 Missing"},
		{"an up whatever the missing one says", rows("a", nan, 0, 0.9, 9, 0.9, 9), a(3), "Up 4 Alone"},
		{"no up that the missing one could refute", rows("a", nan, 0, 0.75, 0), a(2), "Hold 2 Missing"},
		{"all missing", rows("a", nan, 0, 0, -1), a(2), "Unknown 2 NoData"},
		{"nobody there", nil, a(2), "Unknown 2 Starting"},
		{"nobody wanted", nil, a(0), "Unknown 0 NoData"},
		{"the last replica stays", same("a", 1, 0, 0), a(1), "Hold 1 TooFew"},
		{"the minimum stays", same("a", 3, 0, 0), a(3, bounds(3, 5)), "Hold 3 AtMin"},
		{"the maximum stays", same("a", 3, 0.9, 9), a(3, bounds(1, 3)), "Hold 3 AtMax"},
		{"pending replicas that report", same("a", 3, 0.9, 9), a(3, pending(1)), "Hold 3 Pending"},
		{"pending does not stop a down", same("a", 3, 0, 0), a(3, pending(1)), "Down 2 Alone"},
		{"growing", same("a", 2, 0.9, 9), a(2, desired(4)), "Up 4 Growing"},
		{"desired zero is a count", same("a", 2, 0.9, 9), a(2, desired(0)), "Down 0 Shrinking"},
		{"desired is reached", same("a", 2, 0.9, 9), a(2, desired(2)), "Up 3 Alone"},
		{"desired beyond the bounds", same("a", 2, 0.9, 9), a(2, desired(9), bounds(1, 4)), "Up 4 AboveMax"},
		{"one does not report", same("a", 2, 0.9, 9), a(3), "Hold 3 Starting"},
		{"one too many reports", same("a", 4, 0, 0), a(3), "Hold 3 Stopping"},
		{"below the bounds", same("a", 1, 0, 0), a(1, bounds(3, 5)), "Up 3 BelowMin"},
		{"above the bounds, and saturated", same("a", 7, 0.9, 9), a(7, bounds(1, 5)), "Down 5 AboveMax"},
		{"above the bounds, nothing known", nil, a(7, bounds(1, 5)), "Down 5 Starting"},
		{"two states that differ", same("a", 2, 0.9, 9), append(a(2), a(3)...), "Unknown 3 Contradicted"},
		{"two states that differ, the other way round", same("a", 2, 0.9, 9), append(a(3), a(2)...), "Unknown 3 Contradicted"},
		{"two states that agree", same("a", 2, 0.9, 9), append(a(2), a(2)...), "Up 3 Alone"},
		{"a negative cost", same("a", 2, 0.9, 9), a(2, func(v *saturation.Variant) { v.Cost = -1 }), "Unknown 2 Invalid"},
		{"no state", same("a", 2, 0.9, 9), nil, "Unknown 2 NoState"},
	} {
		t.Run(l.name, func(t *testing.T) {
			c := saturation.Defaults()
			c.DownStabilization = 0
			p := decideOnce(t, c, scene{l.replicas, l.variants})
			require.Len(t, p.Targets, 1)
			d := &p.Targets[0].Decision
			require.NoError(t, scalingtest.Explained(d), d.Explain())
			require.Equal(t, l.want, fmt.Sprint(d.Verdict, " ", d.Replicas, " ", d.Code()), p.Explain())
		})
	}
}

// TestDownStabilization goes through a run, one line an event: the window is 300 s.
func TestDownStabilization(t *testing.T) {
	scaler := build(t, saturation.Defaults())
	m := saturation.NewModel(scaler)
	v := saturation.Variant{Name: "a", Cost: 1, Current: 4}
	for _, e := range []struct {
		at   int
		kv   float64
		want string
	}{
		{0, 0.1, "Hold 4 Settling"},
		{299, 0.1, "Hold 4 Settling"},
		{300, 0.1, "Down 3 Alone"},
		{310, 0.1, "Down 3 Alone"}, // the write was refused
		{320, 0.6, "Hold 4 FullKV"},
		{330, 0.1, "Hold 4 Settling"},
		{629, 0.1, "Hold 4 Settling"},
		{500, 0.1, "Hold 4 ClockBack"},
		{501, 0.1, "Down 3 Alone"}, // what had been waited for stays waited for, and a second more
	} {
		p := m.Decide(start.Add(time.Duration(e.at)*time.Second), same("a", 4, e.kv, 0), []saturation.Variant{v})
		d := &p.Targets[0].Decision
		require.Equal(t, e.want, fmt.Sprint(d.Verdict, " ", d.Replicas, " ", d.Code()), "%d s\n%s", e.at, p.Explain())
	}
	// Carried out, the wait starts anew, by Applied or by the count that is seen.
	for _, report := range []bool{true, false} {
		data, err := json.Marshal(m)
		require.NoError(t, err)
		next := saturation.NewModel(scaler)
		require.NoError(t, json.Unmarshal(data, next))
		now := start.Add(505 * time.Second)
		if report {
			next.Applied(now, 4, 3)
		}
		v.Current = 3
		p := next.Decide(now, same("a", 3, 0.1, 0), []saturation.Variant{v})
		require.Equal(t, saturation.Settling, p.Targets[0].Decision.Code())
		require.Equal(t, now.Add(300*time.Second), p.Model().Next.UTC())
	}
	// Other thresholds start it anew too.
	c := saturation.Defaults()
	c.KVSpare = 0.2
	other := build(t, c)
	data, err := json.Marshal(m)
	require.NoError(t, err)
	next := saturation.NewModel(other)
	require.NoError(t, json.Unmarshal(data, next))
	v.Current = 4
	p := next.Decide(start.Add(502*time.Second), same("a", 4, 0.1, 0), []saturation.Variant{v})
	require.Equal(t, saturation.Settling, p.Targets[0].Decision.Code())
}

// TestDeficit: the option takes as many as are lacking at once, counts what is on its way, and asks for no more.
func TestDeficit(t *testing.T) {
	c := saturation.Defaults()
	c.Step = saturation.Deficit
	m := modelOf(t, c)
	variants := []saturation.Variant{
		{Name: "big", Cost: 9, Capacity: 4, Current: 0},
		{Name: "small", Cost: 2, Current: 4, Max: 10},
	}
	decide := func(at, reporting int, queue float64) *saturation.Plan {
		p := m.Decide(start.Add(time.Duration(at)*time.Second), same("small", reporting, 0.5, queue), variants)
		for i := range p.Targets {
			require.NoError(t, scalingtest.Explained(&p.Targets[i].Decision), p.Explain())
		}
		return p
	}
	// 4 replicas with 3 waiting each, 2 are allowed: 6 are needed.
	p := decide(0, 4, 3)
	require.EqualValues(t, 6, p.Target("small").Decision.Replicas, p.Explain())
	require.Zero(t, p.Target("big").Decision.Replicas)
	variants[1].Current = 6
	// While they start, the same load asks for nothing, and more load for what is still lacking.
	p = decide(15, 4, 3)
	require.False(t, acts(p), p.Explain())
	require.Equal(t, saturation.Starting, p.Target("small").Decision.Code())
	require.Contains(t, p.Explain(), "Coming")
	p = decide(30, 4, 3.5)
	require.EqualValues(t, 7, p.Target("small").Decision.Replicas, p.Explain())
	variants[1].Current = 7
	// However long the queue, it at most doubles what reports.
	p = decide(45, 4, 1000)
	require.EqualValues(t, 8, p.Target("small").Decision.Replicas, p.Explain())
	// The cheapest per capacity takes capacity 4 with one replica.
	variants[1].Max = 7
	p = decide(60, 7, 1000)
	require.EqualValues(t, 2, p.Target("big").Decision.Replicas, p.Explain())
	// What is on its way to its maximum takes no more: the next one does.
	variants[1].Max, variants[1].Desired = 8, saturation.CountOf(8)
	p = decide(70, 7, 1000)
	require.EqualValues(t, 8, p.Target("small").Decision.Replicas, p.Explain())
	require.EqualValues(t, 2, p.Target("big").Decision.Replicas, p.Explain())
	// A fleet that shrinks blocks as ever.
	variants[1].Desired = saturation.CountOf(5)
	p = decide(75, 7, 1000)
	require.Zero(t, p.Target("big").Decision.Replicas, p.Explain())
}

// TestCapacityThatLeaves: what a big replica takes along, the small ones could not serve.
func TestCapacityThatLeaves(t *testing.T) {
	c := saturation.Defaults()
	c.DownStabilization = 0
	s := scene{
		replicas: append(same("big", 2, 0.4, 0), same("small", 4, 0.4, 0)...),
		variants: []saturation.Variant{
			{Name: "big", Cost: 50, Capacity: 4, Current: 2},
			{Name: "small", Cost: 10, Capacity: 1, Current: 4},
		},
	}
	// Without big: 0.4 * 12/8 = 0.6. Fine, and big is dearer by capacity.
	p := decideOnce(t, c, s)
	require.EqualValues(t, 1, p.Target("big").Decision.Replicas, p.Explain())
	// At 0.5: 0.75 without big, 0.545 without small.
	for i := range s.replicas {
		s.replicas[i].KV = 0.5
	}
	p = decideOnce(t, c, s)
	require.EqualValues(t, 2, p.Target("big").Decision.Replicas, p.Explain())
	require.EqualValues(t, 3, p.Target("small").Decision.Replicas, p.Explain())
	require.Equal(t, saturation.FullKV, p.Target("big").Decision.Code())
	// At 0.65 neither.
	for i := range s.replicas {
		s.replicas[i].KV = 0.65
	}
	p = decideOnce(t, c, s)
	require.False(t, acts(p), p.Explain())
	require.Equal(t, saturation.FullKV, p.Target("small").Decision.Code())
}

// TestSurplusReplicaIsNotAReasonToShrink: one more reports than should, for ever. After the timeout the others are
// decided; the variant itself does not shrink, as it has not done so yet.
func TestSurplusReplicaIsNotAReasonToShrink(t *testing.T) {
	c := saturation.Defaults()
	c.DownStabilization = 0
	m := modelOf(t, c)
	s := scene{
		replicas: append(same("dear", 3, 0.1, 0), same("cheap", 2, 0.1, 0)...),
		variants: []saturation.Variant{{Name: "dear", Cost: 9, Current: 2}, {Name: "cheap", Cost: 1, Current: 2}},
	}
	require.Equal(t, saturation.Stopping, m.Decide(start, s.replicas, s.variants).Target("dear").Decision.Code())
	p := m.Decide(start.Add(c.TransitionTimeout), s.replicas, s.variants)
	require.EqualValues(t, 1, p.Target("cheap").Decision.Replicas, p.Explain())
	require.Equal(t, saturation.SetAside, p.Target("dear").Decision.Code())
	require.EqualValues(t, 2, p.Target("dear").Decision.Replicas)
}

// TestManyVariants: more variants than are looked through one by one, in any order of rows.
func TestManyVariants(t *testing.T) {
	m := modelOf(t, saturation.Defaults())
	for _, n := range []int{30, 8, 9, 40} {
		var s scene
		for i := range n {
			name := fmt.Sprintf("v%02d", (i*7)%n)
			s.variants = append(s.variants, saturation.Variant{Name: name, Cost: float64(1 + (i*7)%n)})
		}
		rows := map[string]int{}
		for i := range 3 * n {
			place := min(i, 2*n-1-i) // the second time the other way round
			if i >= 2*n {
				place = i * 2 % n // then every other one
			}
			v := s.variants[place]
			rows[v.Name]++
			s.replicas = append(s.replicas, saturation.Replica{Pod: v.Name, Variant: v.Name, KV: 0.75})
		}
		for i := range s.variants {
			s.variants[i].Current = int32(rows[s.variants[i].Name])
		}
		p := m.Decide(start, s.replicas, s.variants)
		require.Len(t, p.Targets, len(s.variants))
		require.Len(t, m.Analysis().Variants, len(s.variants))
		require.EqualValues(t, rows["v00"]+1, p.Targets[0].Decision.Replicas, p.Explain())
		for _, v := range m.Analysis().Variants {
			require.Equal(t, rows[v.Variant], v.Replicas)
		}
	}
}
