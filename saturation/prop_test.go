package saturation_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

func scalerOf(t require.TestingT, mode saturation.Mode, thresholds saturation.Thresholds) saturation.Scaler {
	return build(t, saturation.Config{Thresholds: thresholds, Mode: mode})
}

func build(t require.TestingT, c saturation.Config) saturation.Scaler {
	s, err := saturation.New(c)
	require.NoError(t, err)
	return s
}

func modelOf(t require.TestingT, c saturation.Config) *saturation.Model {
	return saturation.NewModel(build(t, c))
}

func analyze(s saturation.Scaler, replicas []saturation.Replica) *saturation.Analysis {
	var a saturation.Analysis
	s.Analyze(&a, replicas)
	return &a
}

// drawReplicas draws replicas with any loads at all: hundredths, so that thresholds are met exactly, numbers next to
// the thresholds, and in mode Default values that are none.
func drawReplicas(t *rapid.T, mode saturation.Mode, thresholds saturation.Thresholds) (replicas []saturation.Replica) {
	mood := rapid.IntRange(0, 3).Draw(t, "mood")
	for i := range rapid.IntRange(0, 12).Draw(t, "replicas") {
		r := drawReplica(t, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "variant"), i, mood)
		switch rapid.IntRange(0, 15).Draw(t, "odd") {
		case 0:
			r.KV = math.Nextafter(thresholds.KVCache, float64(rapid.IntRange(0, 1).Draw(t, "side")))
		case 1:
			r.KV = rapid.Float64Range(0, 1.5).Draw(t, "any kv")
		case 2:
			r.Queue = rapid.Float64Range(0, 1e9).Draw(t, "any queue")
		case 3:
			r.Queue = rapid.SampledFrom([]float64{math.MaxFloat64, 1e300, 5e-324, math.Copysign(0, -1)}).Draw(t, "extreme")
		case 4:
			if mode == saturation.Default {
				drawMissing(t, &r)
			}
		}
		replicas = append(replicas, r)
	}
	return replicas
}

func drawMode(t *rapid.T) saturation.Mode {
	return rapid.SampledFrom([]saturation.Mode{saturation.Default, saturation.Literal}).Draw(t, "mode")
}

func TestNeverUpAndSafeTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode, thresholds := drawMode(t), drawThresholds(t)
		a := analyze(scalerOf(t, mode, thresholds), drawReplicas(t, mode, thresholds))
		require.False(t, a.ScaleUp && a.DownSafe, "%+v", a)
	})
}

func TestMoreLoadNeverAsksForLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thresholds := drawThresholds(t)
		s := scalerOf(t, saturation.Default, thresholds)
		replicas := drawReplicas(t, saturation.Default, thresholds)
		before := analyze(s, replicas)
		busier := slices.Clone(replicas)
		for i := range busier {
			r := &busier[i]
			more := rapid.SampledFrom([]float64{0, 0, 1e-16, 1e-10, 0.01, 0.1, 1}).Draw(t, "more")
			switch {
			case isMissing(*r): // whatever it would have said
				if rapid.Bool().Draw(t, "speaks") {
					*r = drawReplica(t, r.Variant, i, rapid.IntRange(0, 3).Draw(t, "kind"))
				}
			case rapid.Bool().Draw(t, "kv"):
				r.KV += more
			default:
				r.Queue += more
			}
		}
		after := analyze(s, busier)
		require.False(t, before.ScaleUp && !after.ScaleUp, "up was turned off by load")
		if before.Missing == 0 {
			require.False(t, !before.DownSafe && after.DownSafe, "down was turned on by load")
		}
	})
}

func TestNoDownWhileOneIsSaturated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thresholds := drawThresholds(t)
		s := scalerOf(t, saturation.Default, thresholds)
		replicas := drawReplicas(t, saturation.Default, thresholds)
		a := analyze(s, replicas)
		n := 0
		for _, r := range replicas {
			if s.IsSaturated(r) {
				n++
			}
		}
		require.Equal(t, n, a.Saturated)
		if n > 0 {
			require.False(t, a.DownSafe)
		}
		if n > 0 && n == len(replicas) && thresholds.KVSpare+thresholds.QueueSpare > 0 {
			require.True(t, a.ScaleUp)
		}
	})
}

// TestUpAndDownLeaveRoomBetween: a fleet that gave one replica and spread its load does not ask for it back, and one
// that got one does not give it away. (In mode Literal the first does not hold for a trigger of 0: see
// TestLiteralGivesAndAsksBack.)
func TestUpAndDownLeaveRoomBetween(t *testing.T) {
	evenly := func(n int, kv, queue float64) (replicas []saturation.Replica) {
		for i := range n {
			replicas = append(replicas, saturation.Replica{Pod: strconv.Itoa(i), Variant: "a", KV: kv / float64(n), Queue: queue / float64(n)})
		}
		return replicas
	}
	rapid.Check(t, func(t *rapid.T) {
		s := scalerOf(t, saturation.Default, drawThresholds(t))
		var free []saturation.Replica
		kv, queue := 0.0, 0.0
		for i := range rapid.IntRange(2, 12).Draw(t, "replicas") {
			r := drawReplica(t, "a", i, rapid.IntRange(0, 1).Draw(t, "mood"))
			if !s.IsSaturated(r) {
				free = append(free, r)
				kv += r.KV
				queue += r.Queue
			}
		}
		n := len(free)
		if analyze(s, free).DownSafe {
			require.False(t, analyze(s, evenly(n-1, kv, queue)).ScaleUp, "down, and then up again")
		}
		if n > 0 && analyze(s, evenly(n, kv, queue)).ScaleUp {
			require.False(t, analyze(s, evenly(n+1, kv, queue)).DownSafe, "up, and then down again")
		}
	})
}

// quiet draws variants and replicas that all report: nothing is in transition.
func quiet(t *rapid.T, busy bool) scene {
	var s scene
	s.variants = drawVariants(t)
	for i := range s.variants {
		v := &s.variants[i]
		v.Current = clampTo(*v, v.Current)
		for k := range int(v.Current) {
			r := saturation.Replica{Pod: fmt.Sprintf("%s-%d", v.Name, k), Variant: v.Name, KV: 0.01}
			if busy {
				r.KV = 0.9
			}
			s.replicas = append(s.replicas, r)
		}
		if rapid.IntRange(0, 3).Draw(t, "pending") == 0 {
			v.Pending = 1
		}
	}
	return s
}

func decideOnce(t require.TestingT, c saturation.Config, s scene) *saturation.Plan {
	return modelOf(t, c).Decide(start, s.replicas, s.variants)
}

// mover returns the variant whose target differs from its count, and by how much.
func mover(t require.TestingT, s scene, p *saturation.Plan) (name string, by int32) {
	for _, v := range s.variants {
		if d := &p.Target(v.Name).Decision; d.Replicas != v.Current {
			require.Empty(t, name, "one variant moves\n%s", p.Explain())
			name, by = v.Name, d.Replicas-v.Current
		}
	}
	return name, by
}

func TestCheapestGrowsDearestShrinks(t *testing.T) {
	c := saturation.Defaults()
	c.DownStabilization = 0
	rapid.Check(t, func(t *rapid.T) {
		busy := rapid.Bool().Draw(t, "busy")
		s := quiet(t, busy)
		p := decideOnce(t, c, s)
		name, by := mover(t, s, p)
		best, found := saturation.Variant{}, false
		capacity := new(big.Rat)
		for _, v := range s.variants {
			capacity.Add(capacity, new(big.Rat).Mul(rat(capacityOf(v)), big.NewRat(int64(v.Current), 1)))
		}
		for _, v := range s.variants {
			// At 0.01 the rest can take all load of a replica whose capacity is not above 69/70 of the whole.
			may := busy && v.Pending == 0 && (v.Max == 0 || v.Current < v.Max) ||
				!busy && v.Current > max(v.Min, 1) && len(s.replicas) >= 2 && rat(capacityOf(v)).Cmp(capacity) < 0
			if !may || len(s.replicas) == 0 {
				continue
			}
			order := priceOf(v).Cmp(priceOf(best))
			if !found || busy && order < 0 || !busy && order >= 0 {
				best, found = v, true
			}
		}
		require.Equal(t, best.Name, name, p.Explain())
		switch {
		case !found:
			require.Zero(t, by)
		case busy:
			require.EqualValues(t, 1, by)
		default:
			require.EqualValues(t, -1, by)
		}
		// Names in the same order, the same choice.
		renamed := scene{slices.Clone(s.replicas), slices.Clone(s.variants)}
		rename := func(old string) string { return "z/" + old + old }
		for i := range renamed.replicas {
			renamed.replicas[i].Variant = rename(renamed.replicas[i].Variant)
		}
		for i := range renamed.variants {
			renamed.variants[i].Name = rename(renamed.variants[i].Name)
		}
		other, otherBy := mover(t, renamed, decideOnce(t, c, renamed))
		require.Equal(t, by, otherBy)
		if found {
			require.Equal(t, rename(name), other)
		}
	})
}

func TestTransitionKeepsEveryTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := quiet(t, rapid.Bool().Draw(t, "busy"))
		i := rapid.IntRange(0, len(s.variants)-1).Draw(t, "whose")
		v := &s.variants[i]
		if rapid.Bool().Draw(t, "by desired") {
			v.Desired = saturation.CountOf(clampTo(*v, v.Current+1))
			if v.Desired.N == v.Current {
				v.Desired = saturation.Count{}
				v.Current++ // and so one does not report, and the bounds are broken
			}
		} else {
			s.replicas = append(s.replicas, saturation.Replica{Pod: "one more", Variant: v.Name, KV: 0.5})
		}
		p := decideOnce(t, saturation.Defaults(), s)
		for _, v := range s.variants {
			want := v.Current
			if v.Desired.Set {
				want = v.Desired.N
			}
			d := &p.Target(v.Name).Decision
			require.Equal(t, clampTo(v, want), d.Replicas, p.Explain())
			if v.Current > 0 {
				require.NotZero(t, d.Replicas)
			}
		}
	})
}

// TestStuckReplicaBlocksForTheTimeoutAtMost: replicas that never report, in some variants, while the rest is
// saturated.
func TestStuckReplicaBlocksForTheTimeoutAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := saturation.Defaults()
		c.TransitionTimeout = drawSeconds(t, 1, 900, "timeout")
		s := quiet(t, true)
		for i := range s.variants {
			v := &s.variants[i]
			v.Max, v.Min, v.Pending = 0, 0, 0
			if stuck := rapid.Int32Range(0, 2).Draw(t, "stuck"); i == 0 || stuck > 0 {
				v.Current += max(stuck, 1)
				v.Pending = max(stuck, 1)
			}
		}
		if len(s.replicas) == 0 {
			s.replicas = append(s.replicas, saturation.Replica{Variant: s.variants[0].Name, KV: 0.9})
			s.variants[0].Current++
		}
		m := modelOf(t, c)
		for now := start; ; now = now.Add(drawSeconds(t, 1, 60, "period")) {
			p := m.Decide(now, s.replicas, s.variants)
			if _, by := mover(t, s, p); by > 0 {
				require.GreaterOrEqual(t, now.Sub(start), c.TransitionTimeout)
				return
			}
			require.Less(t, now.Sub(start), c.TransitionTimeout, p.Explain())
			require.False(t, p.Model().Next.After(start.Add(c.TransitionTimeout)), "Next is when it can change")
		}
	})
}

func TestDuplicatingEveryReplica(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode, thresholds := drawMode(t), drawThresholds(t)
		s := scalerOf(t, mode, thresholds)
		replicas := drawReplicas(t, mode, thresholds)
		once, twice := analyze(s, replicas), analyze(s, append(slices.Clone(replicas), replicas...))
		require.Equal(t, once.ScaleUp, twice.ScaleUp)
		require.False(t, once.DownSafe && !twice.DownSafe)
	})
}

func TestTargetsAreTheUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}), 0, 12)
		want := map[string]bool{}
		var s scene
		for i, name := range names.Draw(t, "metrics") {
			s.replicas = append(s.replicas, saturation.Replica{Pod: strconv.Itoa(i), Variant: name})
			want[name] = true
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "c", "e", "g", "m", "z"}), 0, 6, rapid.ID).Draw(t, "states") {
			s.variants = append(s.variants, saturation.Variant{Name: name, Current: 1})
			want[name] = true
		}
		c := saturation.Defaults()
		if rapid.Bool().Draw(t, "literal") {
			c = saturation.WVA()
		}
		p := decideOnce(t, c, s)
		require.Len(t, p.Targets, len(want))
		for i, target := range p.Targets {
			require.True(t, want[target.Variant])
			require.True(t, i == 0 || p.Targets[i-1].Variant < target.Variant, "in order of names")
			require.Same(t, &p.Targets[i], p.Target(target.Variant))
		}
		require.Nil(t, p.Target("nobody"))
	})
}

// TestTimeShift: adding a duration to all times changes nothing but the times.
func TestTimeShift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		s := build(t, c)
		shift := time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "shift ms")) * time.Millisecond
		a, b := saturation.NewModel(s), saturation.NewModel(s)
		variants := drawVariants(t)
		now := start
		mood := rapid.IntRange(0, 2).Draw(t, "mood")
		for range rapid.IntRange(1, 12).Draw(t, "ticks") {
			now = now.Add(drawSeconds(t, -10, 60, "step"))
			scene := drawScene(t, variants, mood, c.Mode == saturation.Literal)
			p, q := a.Decide(now, scene.replicas, scene.variants), b.Decide(now.Add(shift), scene.replicas, scene.variants)
			require.Equal(t, p.Explain(), q.Explain())
			require.Equal(t, p.Model().Next.IsZero(), q.Model().Next.IsZero())
			if !p.Model().Next.IsZero() {
				require.True(t, p.Model().Next.Add(shift).Equal(q.Model().Next))
				require.True(t, p.Model().Next.After(now))
			}
		}
	})
}

// TestAnyInputIsAnswered: no panic, no number that is none, no count out of bounds, whatever the input.
func TestAnyInputIsAnswered(t *testing.T) {
	odd := []float64{0, 1, -1, 1e-100, 1e100, 1e308, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324}
	counts := []int32{0, 1, 2, -1, math.MaxInt32, math.MinInt32, math.MaxInt32 - 1}
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		var s scene
		number := func() float64 { return rapid.SampledFrom(odd).Draw(t, "number") }
		count := func() int32 { return rapid.SampledFrom(counts).Draw(t, "count") }
		for i := range rapid.IntRange(0, 5).Draw(t, "replicas") {
			s.replicas = append(s.replicas, saturation.Replica{Pod: strconv.Itoa(i), Variant: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "variant"), KV: number(), Queue: number()})
		}
		for range rapid.IntRange(0, 4).Draw(t, "variants") {
			s.variants = append(s.variants, saturation.Variant{
				Name: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "name"), Cost: number(), Capacity: number(),
				Min: count(), Max: count(), Current: count(), Pending: count(),
				Desired: saturation.Count{Set: rapid.Bool().Draw(t, "set"), N: count()},
			})
		}
		p := decideOnce(t, c, s)
		data, err := json.Marshal(p)
		require.NoError(t, err, "a plan can be written, whatever was given")
		require.True(t, json.Valid(data))
		if c.Mode == saturation.Literal {
			return // takes its input as it is
		}
		for _, v := range s.variants {
			d := &p.Target(v.Name).Decision
			if v.Validate() != nil {
				require.Equal(t, scaling.Unknown, d.Verdict)
			}
			if d.Acts() {
				require.GreaterOrEqual(t, d.Replicas, v.Min)
				require.True(t, v.Max == 0 || d.Replicas <= v.Max)
			}
			for _, step := range d.Steps() {
				for _, x := range step.Numbers {
					require.False(t, math.IsNaN(x) || math.IsInf(x, 0), d.Explain())
				}
			}
		}
		a := analyze(scalerOf(t, c.Mode, c.Thresholds), s.replicas)
		for _, x := range []float64{a.SpareKV, a.SpareQueue, a.AfterKV, a.AfterQueue, a.LoadKV, a.LoadQueue} {
			require.False(t, math.IsNaN(x) || math.IsInf(x, 0), "%+v", a)
		}
	})
}
