package saturation_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

var start = time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)

func hundredths(t *rapid.T, lo, hi int, label string) float64 {
	return float64(rapid.IntRange(lo, hi).Draw(t, label)) / 100
}

func drawSeconds(t *rapid.T, lo, hi int, label string) time.Duration {
	return time.Duration(rapid.IntRange(lo, hi).Draw(t, label)) * time.Second
}

// drawThresholds draws valid thresholds, often the recommended ones.
func drawThresholds(t *rapid.T) saturation.Thresholds {
	if rapid.Bool().Draw(t, "recommended") {
		return saturation.Recommended()
	}
	kv := rapid.IntRange(1, 100).Draw(t, "kv threshold")
	queue := rapid.IntRange(1, 20).Draw(t, "queue threshold")
	return saturation.Thresholds{
		KVCache: float64(kv) / 100, KVSpare: hundredths(t, 0, kv-1, "kv trigger"),
		QueueLength: float64(queue), QueueSpare: float64(rapid.IntRange(0, 2*queue-1).Draw(t, "queue trigger")) / 2,
	}
}

func drawConfig(t *rapid.T) saturation.Config {
	c := saturation.Config{Thresholds: drawThresholds(t)}
	if rapid.IntRange(0, 3).Draw(t, "literal") == 0 {
		c.Mode = saturation.Literal
		return c
	}
	c.TransitionTimeout = drawSeconds(t, 0, 120, "timeout")
	c.DownStabilization = drawSeconds(t, 0, 90, "stabilization")
	if rapid.IntRange(0, 3).Draw(t, "deficit") == 0 {
		c.Step = saturation.Deficit
	}
	return c
}

// drawReplica draws a replica in a mood: idle, right, saturated, anything.
func drawReplica(t *rapid.T, variant string, i, mood int) saturation.Replica {
	r := saturation.Replica{Pod: fmt.Sprintf("%s-%d", variant, i), Variant: variant}
	switch mood {
	case 0:
		r.KV, r.Queue = hundredths(t, 0, 30, "kv"), float64(rapid.IntRange(0, 1).Draw(t, "queue"))
	case 1:
		r.KV, r.Queue = hundredths(t, 30, 70, "kv"), float64(rapid.IntRange(0, 3).Draw(t, "queue"))
	case 2:
		r.KV, r.Queue = hundredths(t, 60, 100, "kv"), float64(rapid.IntRange(1, 9).Draw(t, "queue"))
	default:
		r.KV, r.Queue = hundredths(t, 0, 120, "kv"), float64(rapid.IntRange(0, 40).Draw(t, "queue"))
	}
	return r
}

// drawMissing makes a replica's values unusable.
func drawMissing(t *rapid.T, r *saturation.Replica) {
	bad := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1}).Draw(t, "bad")
	if rapid.Bool().Draw(t, "in kv") {
		r.KV = bad
	} else {
		r.Queue = bad
	}
}

// A scene is one observation: variants and the replicas that report.
type scene struct {
	replicas []saturation.Replica
	variants []saturation.Variant
}

func drawVariants(t *rapid.T) (variants []saturation.Variant) {
	capacities := rapid.Bool().Draw(t, "capacities")
	for _, name := range []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "variants")] {
		v := saturation.Variant{
			Name: name, Cost: float64(rapid.IntRange(1, 4).Draw(t, "cost")),
			Current: rapid.Int32Range(0, 5).Draw(t, "current"),
		}
		if capacities {
			v.Capacity = float64(rapid.IntRange(1, 3).Draw(t, "capacity"))
		}
		if rapid.IntRange(0, 2).Draw(t, "bounded") == 0 {
			v.Min = rapid.Int32Range(0, 3).Draw(t, "min")
			v.Max = max(v.Min, 1) + rapid.Int32Range(0, 4).Draw(t, "span")
		}
		variants = append(variants, v)
	}
	return variants
}

// drawScene draws the replicas of variants, all of which mostly report.
func drawScene(t *rapid.T, variants []saturation.Variant, mood int, literal bool) scene {
	s := scene{variants: slices.Clone(variants)}
	for i := range s.variants {
		v := &s.variants[i]
		rows := v.Current
		if rapid.IntRange(0, 11).Draw(t, "off") == 0 {
			rows = max(0, rows+rapid.Int32Range(-1, 1).Draw(t, "rows"))
		}
		for k := range int(rows) {
			m := mood
			if rapid.IntRange(0, 9).Draw(t, "whim") == 0 {
				m = rapid.IntRange(0, 3).Draw(t, "kind")
			}
			r := drawReplica(t, v.Name, k, m)
			if !literal && rapid.IntRange(0, 39).Draw(t, "missing") == 0 {
				drawMissing(t, &r)
			}
			s.replicas = append(s.replicas, r)
		}
		if rapid.IntRange(0, 11).Draw(t, "pending") == 0 {
			v.Pending = rapid.Int32Range(1, 2).Draw(t, "pending")
		}
	}
	if rapid.IntRange(0, 39).Draw(t, "ghost") == 0 {
		s.replicas = append(s.replicas, drawReplica(t, "ghost", 0, mood))
	}
	return s
}

// TestEpisodes drives a Model and its naive twin through the same long random life: replicas that do not report, values
// that are none, counts changed by others, refused writes, steps back of the clock, restarts. On the way it checks
// what holds of every plan (checkPlan), that the order of rows, a copy of the state and a restart change nothing, and that
// the state stays small.
func TestEpisodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		s := build(t, c)
		literal := c.Mode == saturation.Literal
		twin := &naive{config: c, moving: map[string]naiveMove{}}
		m, other := saturation.NewModel(s), saturation.NewModel(s)
		variants := drawVariants(t)
		now := start
		mood := 1
		for tick := range rapid.IntRange(1, 30).Draw(t, "ticks") {
			if rapid.IntRange(0, 5).Draw(t, "mood swing") == 0 {
				mood = rapid.IntRange(0, 2).Draw(t, "mood")
			}
			back := false
			switch rapid.IntRange(0, 19).Draw(t, "clock") {
			case 0:
				now = now.Add(-drawSeconds(t, 1, 100, "back"))
				back = tick > 0
			case 1:
				now = now.Add(drawSeconds(t, 0, 200, "gap"))
			default:
				now = now.Add(15 * time.Second)
			}
			switch rapid.IntRange(0, 19).Draw(t, "fate") {
			case 0: // someone else scales a variant
				i := rapid.IntRange(0, len(variants)-1).Draw(t, "whose")
				variants[i].Current = rapid.Int32Range(0, 6).Draw(t, "count")
			case 1: // a target of before that has not been reached
				i := rapid.IntRange(0, len(variants)-1).Draw(t, "whose")
				variants[i].Desired = saturation.CountOf(rapid.Int32Range(0, 6).Draw(t, "desired"))
			case 2: // a restart from the stored state
				data, err := json.Marshal(m)
				require.NoError(t, err)
				m = saturation.NewModel(s)
				require.NoError(t, json.Unmarshal(data, m))
			}
			scene := drawScene(t, variants, mood, literal)
			input := fmt.Sprint(scene)
			// Another order and a copy of the state answer the same, reason included.
			data, err := json.Marshal(m)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, other))
			dice := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "place") }
			same := other.Decide(now, shuffled(scene.replicas, dice), shuffled(scene.variants, dice))
			plan := m.Decide(now, scene.replicas, scene.variants)
			require.Equal(t, plan.Explain(), same.Explain(), "another order, another answer")
			require.Equal(t, plan.Targets, same.Targets, "another order, another answer")
			require.Equal(t, plan.Model(), same.Model(), "another order, another answer")
			require.Equal(t, input, fmt.Sprint(scene), "the input was changed")
			left, err := json.Marshal(other)
			require.NoError(t, err)
			data, err = json.Marshal(m)
			require.NoError(t, err)
			require.JSONEq(t, string(data), string(left), "another order, another answer")
			require.LessOrEqual(t, len(data), 200+100*len(variants), "the state grows: %s", data)

			want := twin.decide(now, scene.replicas, scene.variants)
			checkPlan(t, c, scene, plan, m.Analysis(), want, back)

			if rapid.IntRange(0, 3).Draw(t, "refused") == 0 {
				continue
			}
			for i := range variants {
				v := &variants[i]
				d := &plan.Target(v.Name).Decision
				if v.Desired.Set && rapid.Bool().Draw(t, "reached") {
					v.Desired = saturation.Count{}
				}
				if d.Acts() {
					m.Applied(now, d.From, d.Replicas)
					twin.applied(now)
					v.Current = min(d.Replicas, 12)
				}
			}
		}
	})
}

// checkPlan compares a plan with the twin's and checks what holds of every plan.
func checkPlan(t *rapid.T, c saturation.Config, s scene, p *saturation.Plan, a *saturation.Analysis, want map[string]naiveTarget, back bool) {
	table := p.Explain()
	require.Len(t, p.Targets, len(want), "the union of states and metrics\n%s", table)
	model := p.Model()
	require.NoError(t, scalingtest.Explained(&model), "not explained\n%s", table)
	require.False(t, a.ScaleUp && a.DownSafe, "up and safe")
	states := map[string]saturation.Variant{}
	for _, v := range s.variants {
		states[v.Name] = v
	}
	moves, free := 0, 0
	for i := range p.Targets {
		target := &p.Targets[i]
		d := &target.Decision
		require.NoError(t, scalingtest.Explained(d), "not explained: %s\n%s", target.Variant, d.Explain())
		w, ok := want[target.Variant]
		require.True(t, ok, target.Variant)
		require.Equal(t, w.replicas, d.Replicas, "%s\n%s\n%s", target.Variant, d.Explain(), table)
		require.Equal(t, w.unknown, d.Verdict == scaling.Unknown, "%s\n%s", target.Variant, table)
		v, stated := states[target.Variant]
		if !stated {
			require.False(t, d.Acts(), "no target is written for lack of state")
			continue
		}
		require.Equal(t, v.Current, d.From)
		if c.Mode == saturation.Literal {
			continue
		}
		if d.Acts() {
			require.GreaterOrEqual(t, d.Replicas, v.Min, "out of bounds")
			require.True(t, v.Max == 0 || d.Replicas <= v.Max, "out of bounds")
		}
		wish := v.Current
		if v.Desired.Set {
			wish = v.Desired.N
		}
		if wish = clampTo(v, wish); d.Replicas != wish {
			moves++
			if c.Step == saturation.One || d.Replicas < wish {
				require.EqualValues(t, 1, max(d.Replicas-wish, wish-d.Replicas), "one variant, by one\n%s", table)
			}
			require.False(t, back, "a clock that steps back causes no action")
			require.NotZero(t, a.Free+a.Saturated, "no data: hold")
			if d.Replicas < wish {
				require.Zero(t, a.Saturated, "no down while a replica is saturated")
			}
		}
		free++
	}
	require.LessOrEqual(t, moves, 1, "one variant, by one\n%s", table)
	if c.Mode == saturation.Default && a.Saturated == a.Replicas && a.Replicas > 0 {
		require.Equal(t, c.KVSpare > 0 || c.QueueSpare > 0, a.ScaleUp, "all saturated: up")
	}
}
