package hetero_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

var start = time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)

const asked scaling.Code = "Asked want"

// asks is an algorithm that asks for what the reading "want" says, and remembers the clock and what was applied.
type asks struct{}

type asksState struct {
	Seen    scaling.Stamp `json:"seen,omitzero"`
	Applied []int32       `json:"applied"`
}

func (asks) Kind() scaling.Kind { return scaling.Kind{Name: "asks", Version: 1} }

func (asks) Decide(s asksState, now time.Time, obs scaling.Observation) (asksState, scaling.Decision) {
	back := s.Seen.Set && now.UnixMilli() < s.Seen.Milli
	s.Seen = scaling.StampOf(now)
	r := obs.Reading("want")
	d := scaling.HoldAt(obs.SpecReplicas)
	switch {
	case back:
		d.To(obs.SpecReplicas, scaling.ClockBack, "", 1)
	case !r.Known():
		d = scaling.UnknownAt(obs.SpecReplicas, asked, "want", 0)
	default:
		d.To(scaling.Ceil(r.Lower), asked, "want", r.Lower)
	}
	d.NextBy(now.Add(time.Minute))
	return s, d
}

func (asks) Applied(s asksState, _ time.Time, from, to int32) asksState {
	s.Applied = append(slices.Clone(s.Applied), from, to)
	return s
}

func fleet(t require.TestingT, rate float64, types ...hetero.Type) *hetero.Fleet {
	f, err := hetero.New(hetero.Config{Types: types, ExpansionRate: rate})
	require.NoError(t, err)
	return f
}

func policy(t require.TestingT, f *hetero.Fleet, o hetero.Options) *hetero.Policy {
	p, err := hetero.NewPolicy(scaling.New[asksState](asks{}), f, o)
	require.NoError(t, err)
	return p
}

func wants(total float64, spec ...int32) hetero.Observation {
	obs := hetero.Observation{Spec: spec}
	if total >= 0 {
		obs.Readings = []scaling.Reading{scaling.Exactly("want", total)}
	}
	return obs
}

// TestStory tells how a fleet of three types follows a total up and down, as a transcript: cheap batches first, the
// dear card only at the peak, and the way down is the way up.
func TestStory(t *testing.T) {
	p := policy(t, fleet(t, 2,
		hetero.Type{Name: "h100", Cost: 100, Min: 1, Max: 5},
		hetero.Type{Name: "a100", Cost: 60, Min: 2, Max: 8},
		hetero.Type{Name: "l40s", Cost: 30, Max: 16},
	), hetero.Options{Exchanges: 1})
	spec := []int32{1, 2, 0}
	var story strings.Builder
	for i, total := range []float64{4, 9, 12, -1, 12, 5, 2} {
		now := start.Add(time.Duration(i) * 15 * time.Second)
		obs := wants(total, spec...)
		d := p.Decide(now, obs)
		fmt.Fprintf(&story, "%s  %v -> %v\n%s", now.Format(time.TimeOnly), spec, d.Target, d.Explain())
		for _, c := range p.Fleet().Plan(nil, spec, d.Target) {
			fmt.Fprintf(&story, "plan %s: start %d, stop %d\n", c.Name, c.Starts(), c.Stops())
		}
		story.WriteByte('\n')
		p.Applied(now, spec, d.Target)
		spec = slices.Clone(d.Target)
	}
	scalingtest.Golden(t, "story.txt", story.String())
}

// TestPolicySteps goes through single decisions. The fleet is a (cost 10, 0..20) and b (cost 20, 0..20) at rate 2, in
// which a total of 30 is 20 and 10.
func TestPolicySteps(t *testing.T) {
	none, one, unlimited := hetero.Options{}, hetero.Options{Exchanges: 1}, hetero.Options{Exchanges: hetero.Unlimited}
	patient := hetero.Options{Exchanges: 5, WhenReady: true}
	for _, s := range []struct {
		about   string
		options hetero.Options
		obs     hetero.Observation
		want    []int32
		codes   []string
		total   string
	}{
		{"the seed rewrites a fleet that only stays", unlimited, wants(30, 18, 12), []int32{20, 10}, []string{"Up Within", "Down Beyond"}, "Hold Asked"},
		{"without exchanges it stays", none, wants(30, 18, 12), []int32{18, 12}, []string{"Hold Sticky", "Hold Sticky"}, "Hold Asked"},
		{"one at a time", one, wants(30, 18, 12), []int32{19, 11}, []string{"Up Sticky", "Down Sticky"}, "Hold Asked"},
		{"growing stops nothing", none, wants(31, 18, 12), []int32{19, 12}, []string{"Up Sticky", "Hold Sticky"}, "Up Asked"},
		{"shrinking starts nothing", none, wants(29, 18, 12), []int32{18, 11}, []string{"Hold Sticky", "Down Sticky"}, "Down Asked"},
		{"what is in place stays", unlimited, wants(30, 20, 10), []int32{20, 10}, []string{"Hold Placed", "Hold Placed"}, "Hold Asked"},
		{"no data: nothing moves", unlimited, wants(-1, 18, 12), []int32{18, 12}, []string{"Unknown Sticky", "Unknown Sticky"}, "Unknown Asked"},
		{"no data, but a bound is broken: the total stays", unlimited, wants(-1, 24, 4), []int32{20, 8}, []string{"Down Placed", "Up Within"}, "Unknown Asked"},
		{"beyond all bounds", none, wants(99, 18, 12), []int32{20, 20}, []string{"Up Within", "Up Within"}, "Up AboveMax"},
		{"not ready yet: no exchange", patient, hetero.Observation{Spec: []int32{18, 12}, Ready: []int32{18, 11}, Readings: wants(30).Readings}, []int32{18, 12}, []string{"Hold Sticky", "Hold Sticky"}, "Hold Asked"},
		{"ready: exchange", patient, hetero.Observation{Spec: []int32{18, 12}, Ready: []int32{18, 12}, Readings: wants(30).Readings}, []int32{20, 10}, []string{"Up Within", "Down Beyond"}, "Hold Asked"},
		{"counts of another fleet", unlimited, wants(30, 18), []int32{18, 0}, []string{"Unknown Mismatched", "Unknown Mismatched"}, "Unknown Mismatched"},
		{"ready counts of another fleet", unlimited, hetero.Observation{Spec: []int32{18, 12}, Ready: []int32{18}}, []int32{18, 12}, []string{"Unknown Mismatched", "Unknown Mismatched"}, "Unknown Mismatched"},
	} {
		t.Run(s.about, func(t *testing.T) {
			f := fleet(t, 2, hetero.Type{Name: "a", Cost: 10, Max: 20}, hetero.Type{Name: "b", Cost: 20, Max: 20})
			d := policy(t, f, s.options).Decide(start, s.obs)
			require.Equal(t, s.want, d.Target, d.Explain())
			var codes []string
			for i := range d.Types {
				codes = append(codes, d.Types[i].Verdict.String()+" "+d.Types[i].Code().String())
				require.NoError(t, scalingtest.Explained(&d.Types[i]), d.Explain())
			}
			require.Equal(t, s.codes, codes, d.Explain())
			require.Equal(t, s.total, d.Total.Verdict.String()+" "+d.Total.Code().String(), d.Explain())
		})
	}
}

// TestClockBackExchangesNothing: C8 holds for exchanges too, however many are allowed.
func TestClockBackExchangesNothing(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 10, Max: 20}, hetero.Type{Name: "b", Cost: 20, Max: 20})
	p := policy(t, f, hetero.Options{Exchanges: hetero.Unlimited})
	d := p.Decide(start, wants(30, 18, 12))
	require.True(t, d.Acts())
	d = p.Decide(start.Add(-time.Second), wants(30, 18, 12))
	require.Equal(t, scaling.ClockBack, d.Total.Code())
	require.False(t, d.Acts(), d.Explain())
	require.Equal(t, []int32{18, 12}, d.Target)
}

// TestPolicyEpisodes drives a Policy through random lives: totals, gaps in the data, steps back of the clock, counts
// changed by others, refused writes, restarts. On the way it checks
//
//	C1 C2 C5 C6 C7 C8 C9 C10
func TestPolicyEpisodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawTypes(t, 4, 12)
		f, err := hetero.New(configOf(types, drawRate(t), drawUnit(t)))
		require.NoError(t, err)
		if f.Bounds().Max == 0 {
			_, err := hetero.NewPolicy(scaling.New[asksState](asks{}), f, hetero.Options{})
			require.Equal(t, []string{"bounds.max"}, fieldsOf(err), "a fleet without room is no target: %v", err)
			return
		}
		o := hetero.Options{
			Exchanges: rapid.SampledFrom([]int32{0, 1, 3, hetero.Unlimited}).Draw(t, "exchanges"),
			WhenReady: rapid.Bool().Draw(t, "when ready"),
		}
		p := policy(t, f, o)
		spec := f.Allocate(nil, rapid.Int64Range(0, 40).Draw(t, "first"))
		now := start
		for range rapid.IntRange(1, 20).Draw(t, "ticks") {
			step := 15 * time.Second
			if rapid.IntRange(0, 9).Draw(t, "clock") == 0 {
				step = -step
			}
			now = now.Add(step)
			switch rapid.IntRange(0, 9).Draw(t, "fate") {
			case 0: // someone else scales
				spec[rapid.IntRange(0, len(spec)-1).Draw(t, "which")] = rapid.Int32Range(-1, 20).Draw(t, "count")
			case 1: // C5: a restart
				data, err := p.MarshalJSON()
				require.NoError(t, err)
				require.Less(t, len(data), 2000, "C7")
				p = policy(t, f, o)
				require.NoError(t, p.UnmarshalJSON(data))
			}
			total := rapid.OneOf(
				rapid.Map(rapid.IntRange(-1, 50), func(n int) float64 { return float64(n) }),
				rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), 1e300, -1}),
			).Draw(t, "total")
			obs := wants(0, spec...)
			obs.Readings[0].Lower, obs.Readings[0].Upper = total, total
			if rapid.Bool().Draw(t, "ready known") {
				obs.Ready = slices.Clone(spec)
				obs.Ready[0] -= rapid.Int32Range(0, 1).Draw(t, "not ready")
			}
			before := slices.Clone(spec)
			state, err := p.MarshalJSON()
			require.NoError(t, err)
			d := p.Decide(now, obs)
			require.Equal(t, before, obs.Spec, "C6")
			checkDecision(t, f, types, o, obs, &d)

			again := policy(t, f, o)
			require.NoError(t, again.UnmarshalJSON(state))
			same := again.Decide(now, obs)
			require.Equal(t, d.Explain(), same.Explain(), "C5, C6")

			target := slices.Clone(d.Target)
			if rapid.IntRange(0, 3).Draw(t, "refused") == 0 {
				i := rapid.IntRange(0, len(spec)-1).Draw(t, "refused type")
				target[i] = spec[i]
			}
			p.Applied(now, spec, target)
			spec = target
		}
	})
}

// checkDecision holds a decision against the plain rule.
func checkDecision(t *rapid.T, f *hetero.Fleet, types []wholeType, o hetero.Options, obs hetero.Observation, d *hetero.Decision) {
	require.NoError(t, scalingtest.Explained(&d.Total), "C10\n%s", d.Explain())
	within := make([]int32, len(types))
	repaired := false
	acts := false
	for i := range d.Types {
		require.NoError(t, scalingtest.Explained(&d.Types[i]), "C10\n%s", d.Explain())
		require.Equal(t, obs.Spec[i], d.Types[i].From)
		require.Equal(t, d.Target[i], d.Types[i].Replicas)
		require.True(t, types[i].min <= d.Target[i] && d.Target[i] <= types[i].max, "C1")
		require.True(t, d.Total.Next.Equal(d.Types[i].Next))
		within[i] = max(types[i].min, min(obs.Spec[i], types[i].max))
		repaired = repaired || within[i] != obs.Spec[i]
		acts = acts || d.Types[i].Acts()
	}
	require.Equal(t, acts, d.Acts())
	require.EqualValues(t, d.Total.Replicas, hetero.Sum(d.Target), "the types add up to the total\n%s", d.Explain())

	limit := int64(o.Exchanges)
	ready := obs.Ready == nil || hetero.Sum(obs.Ready) >= hetero.Sum(obs.Spec)
	if d.Total.Verdict == scaling.Unknown || d.Total.Code() == scaling.ClockBack || o.WhenReady && !ready {
		limit = 0
	}
	require.LessOrEqual(t, exchanges(within, d.Target), limit, "%s", d.Explain())
	if limit == hetero.Unlimited {
		require.Equal(t, f.Allocate(nil, int64(d.Total.Replicas)), d.Target, "the seed's counts")
	}
	if !d.Total.Acts() && limit == 0 && !repaired {
		require.Equal(t, obs.Spec, d.Target, "C8, C9: nothing moves\n%s", d.Explain())
		require.False(t, d.Acts())
	}
}

// TestPolicyReportsOnlyChangesOfTheTotal: exchanges start no cooldown, and neither do repairs of the bounds.
func TestPolicyReportsOnlyChangesOfTheTotal(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 10, Max: 20}, hetero.Type{Name: "b", Cost: 20, Max: 20})
	applied := func(p *hetero.Policy) (state asksState) {
		data, err := p.MarshalJSON()
		require.NoError(t, err)
		var outer struct {
			Kind  string `json:"kind"`
			State struct {
				Base struct {
					State json.RawMessage `json:"state"`
				} `json:"base"`
			} `json:"state"`
		}
		require.NoError(t, json.Unmarshal(data, &outer))
		require.Equal(t, "bounded", outer.Kind)
		require.NoError(t, json.Unmarshal(outer.State.Base.State, &state))
		return state
	}
	p := policy(t, f, hetero.Options{Exchanges: hetero.Unlimited})
	d := p.Decide(start, wants(30, 18, 12))
	p.Applied(start, []int32{18, 12}, d.Target)
	require.Empty(t, applied(p).Applied, "an exchange")
	p.Applied(start, []int32{18, 12}, []int32{20, 12})
	require.Equal(t, []int32{30, 32}, applied(p).Applied, "a write that was refused in part")

	p = policy(t, f, hetero.Options{})
	d = p.Decide(start, wants(-1, 20, 25))
	require.Equal(t, []int32{20, 20}, d.Target)
	p.Applied(start, []int32{20, 25}, d.Target)
	require.Empty(t, applied(p).Applied, "a repair of the bounds")
}

func TestPolicyKeepsAStateThatItCannotUse(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 10, Max: 20})
	p := policy(t, f, hetero.Options{})
	newer := []byte(`{"kind":"bounded","version":2,"state":{}}`)
	require.ErrorIs(t, p.UnmarshalJSON(newer), scaling.ErrNewerState)
	d := p.Decide(start, wants(9, 3))
	require.Equal(t, scaling.Unknown, d.Total.Verdict)
	require.Equal(t, scaling.Unknown, d.Types[0].Verdict)
	require.Equal(t, []int32{3}, d.Target)
	require.False(t, d.Acts())
	data, err := p.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, newer, data)
}

func TestNewPolicyErrors(t *testing.T) {
	_, err := hetero.NewPolicy(nil, nil, hetero.Options{Exchanges: -1})
	require.Equal(t, []string{"total", "fleet", "options.exchanges"}, fieldsOf(err))
	var types []hetero.Type
	for i := range 2148 {
		types = append(types, hetero.Type{Name: fmt.Sprint(i), Cost: 1, Max: hetero.MaxReplicas})
	}
	f := fleet(t, 2, types...)
	require.Equal(t, scaling.Bounds{Min: 0, Max: math.MaxInt32}, f.Bounds(), "what does not fit saturates")
	_, err = hetero.NewPolicy(scaling.New[asksState](asks{}), f, hetero.Options{})
	require.Equal(t, []string{"fleet"}, fieldsOf(err))
}

// TestC4OrderOfTypesChangesNoDecision: the same fleet declared in another order answers the same for each type, reasons
// included.
func TestC4OrderOfTypesChangesNoDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types, rate, unit := drawTypes(t, 5, 12), drawRate(t), drawUnit(t)
		types[0].max++ // some room
		o := hetero.Options{Exchanges: rapid.Int32Range(0, 4).Draw(t, "exchanges")}
		order := make([]int, len(types))
		spec := make([]int32, len(types))
		for i := range order {
			order[i] = i
			spec[i] = rapid.Int32Range(0, 18).Draw(t, "spec")
		}
		order = rapid.Permutation(order).Draw(t, "order")
		permuted, turned := make([]wholeType, len(types)), make([]int32, len(types))
		for i, from := range order {
			permuted[i], turned[i] = types[from], spec[from]
		}
		a, err := hetero.New(configOf(types, rate, unit))
		require.NoError(t, err)
		b, err := hetero.New(configOf(permuted, rate, unit))
		require.NoError(t, err)
		total := float64(rapid.IntRange(-1, 60).Draw(t, "total"))
		first := policy(t, a, o).Decide(start, wants(total, spec...))
		second := policy(t, b, o).Decide(start, wants(total, turned...))
		require.Equal(t, first.Total, second.Total)
		for i, from := range order {
			require.Equal(t, first.Types[from], second.Types[i])
		}
	})
}

// TestRealtimeOverAFleet puts another package's policy above a fleet: its window, its step and its cooldown hold for
// the total, whichever type the step falls to.
func TestRealtimeOverAFleet(t *testing.T) {
	f := fleet(t, 2,
		hetero.Type{Name: "h100", Cost: 100, Min: 0, Max: 4},
		hetero.Type{Name: "a100", Cost: 60, Min: 1, Max: 8},
	)
	scaler, err := realtime.New(realtime.Kaito(f.Bounds(), realtime.Metric{Name: "queue", High: 10, Low: 2}))
	require.NoError(t, err)
	p, err := hetero.NewPolicy(scaling.New(scaler), f, hetero.Options{})
	require.NoError(t, err)
	spec := []int32{0, 1}
	var answers []string
	for i := range 82 { // 20 minutes, with a cooldown of 10
		now := start.Add(time.Duration(i) * 15 * time.Second)
		d := p.Decide(now, hetero.Observation{Spec: spec, Readings: []scaling.Reading{scaling.Exactly("queue", 14)}})
		if d.Acts() {
			answers = append(answers, fmt.Sprintf("%s %v %s", now.Format(time.TimeOnly), d.Target, d.Total.Code()))
			p.Applied(now, spec, d.Target)
			spec = slices.Clone(d.Target)
		}
	}
	require.Equal(t, []string{
		"08:00:15 [0 2] AboveHigh",
		"08:10:15 [1 2] AboveHigh",
		"08:20:15 [2 2] AboveHigh",
	}, answers)
}
