package saturation_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// rows returns replicas of one variant with the given kv and queue in turn.
func rows(variant string, loads ...float64) (replicas []saturation.Replica) {
	for i := 0; i < len(loads); i += 2 {
		replicas = append(replicas, saturation.Replica{
			Pod: fmt.Sprintf("%s-%d", variant, i/2), Variant: variant, KV: loads[i], Queue: loads[i+1],
		})
	}
	return replicas
}

// same returns n replicas of one variant with the same loads.
func same(variant string, n int, kv, queue float64) (replicas []saturation.Replica) {
	var loads []float64
	for range n {
		loads = append(loads, kv, queue)
	}
	return rows(variant, loads...)
}

// acts reports whether any target is to be written.
func acts(p *saturation.Plan) bool {
	d := p.Model()
	return d.Acts()
}

func codeOf(p *saturation.Plan) scaling.Code {
	d := p.Model()
	return d.Code()
}

func both(t *testing.T) (byDefault, literal saturation.Scaler) {
	t.Helper()
	return scalerOf(t, saturation.Default, saturation.Recommended()), scalerOf(t, saturation.Literal, saturation.Recommended())
}

// TestSeedExampleStable is the seed's first example of llama-70b: a stable model that is short of capacity grows its
// cheapest variant.
func TestSeedExampleStable(t *testing.T) {
	s := scene{
		replicas: append(same("v1-l4", 2, 0.5, 3), same("v2-a100", 2, 0.5, 2)...),
		variants: []saturation.Variant{
			{Name: "v1-l4", Cost: 5, Current: 2},
			{Name: "v2-a100", Cost: 20, Current: 2},
		},
	}
	for _, c := range []saturation.Config{saturation.Defaults(), saturation.WVA()} {
		p := decideOnce(t, c, s)
		require.EqualValues(t, 3, p.Target("v1-l4").Decision.Replicas, p.Explain())
		require.EqualValues(t, 2, p.Target("v2-a100").Decision.Replicas)
		require.Equal(t, scaling.Hold, p.Target("v2-a100").Decision.Verdict)
	}
	scalingtest.Golden(t, "seed_stable.txt", decideOnce(t, saturation.Defaults(), s).Explain())
}

// TestSeedExampleTransition is the seed's second example of llama-70b: three of four replicas of a variant report, so
// every variant keeps its count.
func TestSeedExampleTransition(t *testing.T) {
	s := scene{
		replicas: append(same("v1-l4", 2, 0.9, 9), same("v2-a100", 3, 0.9, 9)...),
		variants: []saturation.Variant{
			{Name: "v1-l4", Cost: 5, Current: 2},
			{Name: "v2-a100", Cost: 20, Current: 4},
		},
	}
	for _, c := range []saturation.Config{saturation.Defaults(), saturation.WVA()} {
		p := decideOnce(t, c, s)
		require.EqualValues(t, 2, p.Target("v1-l4").Decision.Replicas, p.Explain())
		require.EqualValues(t, 4, p.Target("v2-a100").Decision.Replicas)
	}
	scalingtest.Golden(t, "seed_transition.txt", decideOnce(t, saturation.Defaults(), s).Explain())
}

// TestSeedTimelineWithProtection is the seed's timeline: saturation at 0 s, a replica that starts for a minute and
// more, no second one before it is there.
func TestSeedTimelineWithProtection(t *testing.T) {
	for _, c := range []saturation.Config{saturation.Defaults(), saturation.WVA()} {
		m := modelOf(t, c)
		v := saturation.Variant{Name: "variant-1", Cost: 5, Current: 2}
		for _, event := range []struct{ at, reporting, want int }{
			{0, 2, 3}, {30, 2, 3}, {60, 2, 3}, {90, 3, 4},
		} {
			v.Pending = v.Current - int32(event.reporting)
			p := m.Decide(start.Add(time.Duration(event.at)*time.Second), same(v.Name, event.reporting, 0.9, 9), []saturation.Variant{v})
			require.EqualValues(t, event.want, p.Targets[0].Decision.Replicas, "%ds\n%s", event.at, p.Explain())
			v.Current = p.Targets[0].Decision.Replicas
		}
	}
}

// TestNineOfTenSaturated: the seed's averages leave saturated replicas out, so one idle replica among nine saturated
// ones looks like a healthy model.
func TestNineOfTenSaturated(t *testing.T) {
	replicas := append(same("a", 9, 0.9, 9), rows("a", 0.1, 0)...)
	byDefault, literal := both(t)
	require.False(t, analyze(literal, replicas).ScaleUp, "the literal rule says: nothing to do")
	a := analyze(byDefault, replicas)
	require.True(t, a.ScaleUp)
	require.True(t, a.ShortKV && a.ShortQueue)
	require.InDelta(t, 0.07, a.SpareKV, 1e-12)
}

// TestThreeOfFiveSaturated: by the seed's averages two idle replicas are enough to call it safe to remove one, while
// three others are saturated.
func TestThreeOfFiveSaturated(t *testing.T) {
	replicas := append(same("a", 3, 0.9, 9), same("a", 2, 0.1, 0)...)
	byDefault, literal := both(t)
	require.True(t, analyze(literal, replicas).DownSafe, "the literal rule says: safe to remove one")
	a := analyze(byDefault, replicas)
	require.False(t, a.DownSafe)
	require.True(t, a.ScaleUp)
}

// TestLiteralIsNotMonotone: more load turns an up off, as the replica that becomes saturated leaves the average.
func TestLiteralIsNotMonotone(t *testing.T) {
	before, after := rows("a", 0.75, 0, 0.1, 0, 0.78, 0, 0.79, 0, 0.79, 0, 0.79, 0), rows("a", 0.80, 0, 0.1, 0, 0.80, 0, 0.80, 0, 0.80, 0, 0.80, 0)
	byDefault, literal := both(t)
	for i := range before {
		require.GreaterOrEqual(t, after[i].KV, before[i].KV)
	}
	before[1].KV = 0.5
	after[1].KV = 0.5
	require.True(t, analyze(literal, before).ScaleUp)
	require.False(t, analyze(literal, after).ScaleUp, "more load, and the literal rule asks for less")
	require.True(t, analyze(byDefault, before).ScaleUp)
	require.True(t, analyze(byDefault, after).ScaleUp)
}

// TestLiteralGivesAndAsksBack: with a trigger of 0 the literal rule lets a replica go although the rest is then
// saturated, and asks for it back at once.
func TestLiteralGivesAndAsksBack(t *testing.T) {
	thresholds := saturation.Thresholds{KVCache: 0.8, KVSpare: 0, QueueLength: 5, QueueSpare: 3}
	byDefault, literal := scalerOf(t, saturation.Default, thresholds), scalerOf(t, saturation.Literal, thresholds)
	two, one := same("a", 2, 0.4, 0), same("a", 1, 0.8, 0)
	require.True(t, analyze(literal, two).DownSafe)
	require.True(t, analyze(literal, one).ScaleUp, "down, and then up again")
	require.False(t, analyze(byDefault, two).DownSafe)
}

// TestLiteralTies: loads that add up to 0.7 in decimals leave exactly the trigger without one of two replicas.
func TestLiteralTies(t *testing.T) {
	_, literal := both(t)
	for _, c := range []struct {
		one, other float64
		safe       bool
	}{
		{0.35, 0.35, true},
		{0.1, 0.6, true},
		{0.75, -0.05, true},
		{0.6999999999999999, 1e-16, true},
		{0.7, 1e-16, false},
		{0.7, 1e-12, false},
		{0.7, 0, true},
		{0.7000000000000001, 0, false},
	} {
		a := analyze(literal, rows("a", c.one, 0, c.other, 0))
		require.Equal(t, c.safe, a.DownSafe, "%v", c)
		require.InDelta(t, 0.7, a.AfterKV, 1e-9, "a tie, or next to one")
	}
}

// TestZeroThresholdsFreezeAModel: the seed says that a missing ConfigMap means zeros and that every replica then looks
// saturated. It does, and 0 < 0 is false: nothing ever happens.
func TestZeroThresholdsFreezeAModel(t *testing.T) {
	table, err := policy.ReadThresholds(nil, saturation.Literal)
	require.NoError(t, err)
	zeros, key, err := table.Resolve("m", "n")
	require.NoError(t, err)
	require.Equal(t, saturation.Thresholds{}, zeros)
	require.Empty(t, key)
	a := analyze(scalerOf(t, saturation.Literal, zeros), same("a", 3, 0.9, 9))
	require.Equal(t, 3, a.Saturated)
	require.False(t, a.ScaleUp)
	_, err = saturation.New(saturation.Config{Thresholds: zeros})
	require.Error(t, err, "mode Default refuses it")
}

// TestOneMissingReplicaDoesNotHideASaturatedOne: in the recorded system one NaN makes every comparison false.
func TestOneMissingReplicaDoesNotHideASaturatedOne(t *testing.T) {
	replicas := rows("a", math.NaN(), 0, 0.95, 0)
	byDefault, literal := both(t)
	require.False(t, analyze(literal, replicas).ScaleUp)
	require.True(t, math.IsNaN(analyze(literal, replicas).SpareKV))
	a := analyze(byDefault, replicas)
	require.True(t, a.ScaleUp)
	require.Equal(t, 1, a.Missing)
	require.Equal(t, "a-0", a.Lost.Pod)
	require.False(t, math.IsNaN(a.SpareKV))
}

// TestTransitionTimeoutStory: a replica of the dearer variant never starts. The model is blocked for ten minutes, then
// the replica is set aside and the cheaper variant grows; when the load falls, the stuck replica is the first to go.
func TestTransitionTimeoutStory(t *testing.T) {
	m := modelOf(t, saturation.Defaults())
	variants := []saturation.Variant{
		{Name: "v1-l4", Cost: 5, Current: 2, Max: 3},
		{Name: "v2-a100", Cost: 20, Current: 3, Pending: 1},
	}
	stuck := int32(1)
	var story strings.Builder
	last := ""
	for elapsed := time.Duration(0); elapsed <= 27*time.Minute; elapsed += 15 * time.Second {
		now := start.Add(elapsed)
		kv, queue := 0.75, 2.0
		switch {
		case elapsed >= 16*time.Minute:
			kv, queue = 0.2, 0
		case elapsed >= 13*time.Minute:
			kv, queue = 0.6, 1 // the third replica took three minutes to start, and helps
		}
		l4 := variants[0].Current
		if elapsed < 13*time.Minute {
			l4 = 2
		}
		variants[0].Pending, variants[1].Pending = variants[0].Current-l4, stuck
		p := m.Decide(now, append(same("v1-l4", int(l4), kv, queue), same("v2-a100", int(variants[1].Current-stuck), kv, queue)...), variants)
		acted := false
		for i := range variants {
			d := &p.Targets[i].Decision
			require.NoError(t, scalingtest.Explained(d))
			if d.Acts() {
				acted = true
			}
		}
		codes := fmt.Sprint(codeOf(p), p.Targets[0].Decision.Code(), p.Targets[1].Decision.Code())
		if acted || codes != last { // one entry a turn of the story
			fmt.Fprintf(&story, "%s  %s", now.Format(time.TimeOnly), p.Explain())
			last = codes
		}
		for i := range variants {
			if d := &p.Targets[i].Decision; d.Acts() {
				m.Applied(now, d.From, d.Replicas)
				variants[i].Current = d.Replicas
				if i == 1 {
					stuck = 0 // a workload removes what is not ready first
				}
				last = ""
			}
		}
	}
	scalingtest.Golden(t, "transition_timeout.txt", story.String())
}
