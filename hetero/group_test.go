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
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/saturation"
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
	return fleetFrom(t, hetero.Config{Types: types, ExpansionRate: rate})
}

func fleetFrom(t require.TestingT, c hetero.Config) *hetero.Fleet {
	f, err := hetero.New(c)
	require.NoError(t, err)
	return f
}

func policy(t require.TestingT, f *hetero.Fleet, o hetero.Options) *hetero.Group {
	return groupOf(t, scaling.New[asksState](asks{}), f, o)
}

func groupOf(t require.TestingT, total scaling.Policy, f *hetero.Fleet, o hetero.Options) *hetero.Group {
	g, err := hetero.NewGroup(total, f, o)
	require.NoError(t, err)
	return g
}

// see returns the observation of a fleet whose types have the given replicas, all ready, in the order of the
// configuration.
func see(f *hetero.Fleet, spec []int32, readings ...scaling.Reading) scaling.GroupObservation {
	obs := scaling.GroupObservation{Readings: readings}
	for i, kind := range f.Types()[:len(spec)] {
		obs.Targets = append(obs.Targets, scaling.TargetObservation{Name: kind.Name, SpecReplicas: spec[i], ReadyReplicas: spec[i]})
	}
	return obs
}

// wants is what a fleet looks like when that total is asked for; below 0 nothing is known.
func wants(f *hetero.Fleet, total float64, spec ...int32) scaling.GroupObservation {
	if total < 0 {
		return see(f, spec)
	}
	return see(f, spec, scaling.Exactly("want", total))
}

// counts returns what a decision asks every target to have.
func counts(d *scaling.GroupDecision) (counts []int32) {
	for i := range d.Targets {
		counts = append(counts, d.Targets[i].Replicas)
	}
	return counts
}

// TestStory tells how a fleet of three types follows a total up and down, as a transcript: cheap batches first, the
// dear card only at the peak, and the way down is the way up.
func TestStory(t *testing.T) {
	f := fleet(t, 2,
		hetero.Type{Name: "h100", Cost: 100, Min: 1, Max: 5},
		hetero.Type{Name: "a100", Cost: 60, Min: 2, Max: 8},
		hetero.Type{Name: "l40s", Cost: 30, Max: 16},
	)
	p := policy(t, f, hetero.Options{Exchanges: 1})
	spec := []int32{1, 2, 0}
	var story strings.Builder
	for i, total := range []float64{4, 9, 12, -1, 12, 5, 2} {
		now := start.Add(time.Duration(i) * 15 * time.Second)
		obs := wants(f, total, spec...)
		d := p.Decide(now, obs)
		fmt.Fprintf(&story, "%s  %v -> %v\n%s", now.Format(time.TimeOnly), spec, counts(&d), d.Explain())
		for _, c := range f.Plan(nil, spec, counts(&d)) {
			fmt.Fprintf(&story, "plan %s: start %d, stop %d\n", c.Name, c.Starts(), c.Stops())
		}
		story.WriteByte('\n')
		p.Applied(now, spec, counts(&d))
		spec = counts(&d)
	}
	scalingtest.Golden(t, "story.txt", story.String())
}

// TestPolicySteps goes through single decisions. The fleet is a (cost 10, 0..20) and b (cost 20, 0..20) at rate 2, in
// which a total of 30 is 20 and 10.
func TestPolicySteps(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 10, Max: 20}, hetero.Type{Name: "b", Cost: 20, Max: 20})
	starting := wants(f, 30, 18, 12)
	starting.Targets[1].ReadyReplicas = 11
	exchanging := wants(f, 30, 19, 11) // the replica of b still runs, that of a is not ready
	exchanging.Targets[0].ReadyReplicas, exchanging.Targets[1].ReadyReplicas = 18, 12
	changed := func(target int, name string, missing bool) scaling.GroupObservation {
		obs := wants(f, 30, 18, 12)
		if target == len(obs.Targets) {
			obs.Targets = append(obs.Targets, scaling.TargetObservation{})
		}
		obs.Targets[target].Name, obs.Targets[target].Missing = name, missing
		return obs
	}
	none, one, unlimited := hetero.Options{}, hetero.Options{Exchanges: 1}, hetero.Options{Exchanges: hetero.Unlimited}
	patient := hetero.Options{Exchanges: 5, WhenReady: true}
	for _, s := range []struct {
		about   string
		options hetero.Options
		obs     scaling.GroupObservation
		want    []int32
		codes   []string
		total   string
	}{
		{"the seed rewrites a fleet that only stays", unlimited, wants(f, 30, 18, 12), []int32{20, 10}, []string{"Up Within", "Down Beyond"}, "Hold Asked"},
		{"without exchanges it stays", none, wants(f, 30, 18, 12), []int32{18, 12}, []string{"Hold Sticky", "Hold Sticky"}, "Hold Asked"},
		{"one at a time", one, wants(f, 30, 18, 12), []int32{19, 11}, []string{"Up Sticky", "Down Sticky"}, "Hold Asked"},
		{"growing stops nothing", none, wants(f, 31, 18, 12), []int32{19, 12}, []string{"Up Sticky", "Hold Sticky"}, "Up Asked"},
		{"shrinking starts nothing", none, wants(f, 29, 18, 12), []int32{18, 11}, []string{"Hold Sticky", "Down Sticky"}, "Down Asked"},
		{"what is in place stays", unlimited, wants(f, 30, 20, 10), []int32{20, 10}, []string{"Hold Placed", "Hold Placed"}, "Hold Asked"},
		{"no data: nothing moves", unlimited, wants(f, -1, 18, 12), []int32{18, 12}, []string{"Unknown Sticky", "Unknown Sticky"}, "Unknown Asked"},
		{"no data, but a bound is broken: the total stays", unlimited, wants(f, -1, 24, 4), []int32{20, 8}, []string{"Down Placed", "Up Within"}, "Unknown Asked"},
		{"beyond all bounds", none, wants(f, 99, 18, 12), []int32{20, 20}, []string{"Up Within", "Up Within"}, "Up AboveMax"},
		{"not ready yet: no exchange", patient, starting, []int32{18, 12}, []string{"Hold Sticky", "Hold Sticky"}, "Hold Asked"},
		{"the last exchange is not complete: no other", patient, exchanging, []int32{19, 11}, []string{"Hold Sticky", "Hold Sticky"}, "Hold Asked"},
		{"ready: exchange", patient, wants(f, 30, 18, 12), []int32{20, 10}, []string{"Up Within", "Down Beyond"}, "Hold Asked"},
		{"counts of another fleet", unlimited, wants(f, 30, 18), []int32{18}, []string{"Unknown Mismatched"}, "Unknown Mismatched"},
		{"a type that is missing", unlimited, changed(1, "b", true), []int32{18, 12}, []string{"Unknown Mismatched", "Unknown Mismatched"}, "Unknown Mismatched"},
		{"a type that the fleet does not have", unlimited, changed(1, "c", false), []int32{18, 12}, []string{"Unknown Mismatched", "Unknown Mismatched"}, "Unknown Mismatched"},
		{"a type twice", unlimited, changed(1, "a", false), []int32{18, 12}, []string{"Unknown Mismatched", "Unknown Mismatched"}, "Unknown Mismatched"},
		{"a target too many", unlimited, changed(2, "c", false), []int32{18, 12, 0}, []string{"Unknown Mismatched", "Unknown Mismatched", "Unknown Mismatched"}, "Unknown Mismatched"},
	} {
		t.Run(s.about, func(t *testing.T) {
			d := policy(t, f, s.options).Decide(start, s.obs)
			require.Equal(t, s.want, counts(&d), d.Explain())
			var codes []string
			for i := range d.Targets {
				codes = append(codes, d.Targets[i].Verdict.String()+" "+d.Targets[i].Code().String())
				require.NoError(t, scalingtest.Explained(&d.Targets[i]), d.Explain())
			}
			require.Equal(t, s.codes, codes, d.Explain())
			require.Equal(t, s.total, d.Total.Verdict.String()+" "+d.Total.Code().String(), d.Explain())
		})
	}
}

// TestClockBackExchangesNothing: a clock that steps back causes no exchange either, however many are allowed.
func TestClockBackExchangesNothing(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 10, Max: 20}, hetero.Type{Name: "b", Cost: 20, Max: 20})
	p := policy(t, f, hetero.Options{Exchanges: hetero.Unlimited})
	d := p.Decide(start, wants(f, 30, 18, 12))
	require.True(t, d.Acts())
	d = p.Decide(start.Add(-time.Second), wants(f, 30, 18, 12))
	require.Equal(t, scaling.ClockBack, d.Total.Code())
	require.False(t, d.Acts(), d.Explain())
	require.Equal(t, []int32{18, 12}, counts(&d))
}

// TestPolicyEpisodes drives a Policy through random lives: totals, gaps in the data, steps back of the clock, counts
// changed by others, refused writes, restarts.
func TestPolicyEpisodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawTypes(t, 4, 12)
		f := fleetFrom(t, configOf(types, drawRate(t), drawUnit(t)))
		if f.Bounds().Max == 0 {
			_, err := hetero.NewGroup(scaling.New[asksState](asks{}), f, hetero.Options{})
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
			case 1: // a restart
				data, err := p.MarshalJSON()
				require.NoError(t, err)
				require.Less(t, len(data), 2000, "the state is small")
				p = policy(t, f, o)
				require.NoError(t, p.UnmarshalJSON(data))
			}
			total := rapid.OneOf(
				rapid.Map(rapid.IntRange(-1, 50), func(n int) float64 { return float64(n) }),
				rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), 1e300, -1}),
			).Draw(t, "total")
			obs := wants(f, 0, spec...)
			obs.Readings[0].Lower, obs.Readings[0].Upper = total, total
			if rapid.Bool().Draw(t, "ready known") {
				obs.Targets[0].ReadyReplicas -= rapid.Int32Range(0, 1).Draw(t, "not ready")
				obs.Targets[len(spec)-1].ReadyReplicas += rapid.Int32Range(0, 1).Draw(t, "still ready")
			}
			before := slices.Clone(obs.Targets)
			state, err := p.MarshalJSON()
			require.NoError(t, err)
			d := p.Decide(now, obs)
			require.Equal(t, before, obs.Targets, "the input is left alone")
			checkDecision(t, f, types, o, obs, &d)

			again := policy(t, f, o)
			require.NoError(t, again.UnmarshalJSON(state))
			same := again.Decide(now, obs)
			require.Equal(t, d.Explain(), same.Explain(), "the same state and input give the same decision")

			target := counts(&d)
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
func checkDecision(t *rapid.T, f *hetero.Fleet, types []wholeType, o hetero.Options, obs scaling.GroupObservation, d *scaling.GroupDecision) {
	require.NoError(t, scalingtest.Explained(&d.Total), "its numbers reproduce it\n%s", d.Explain())
	within := make([]int32, len(types))
	repaired := false
	acts, ready := false, true
	target, spec := counts(d), make([]int32, len(types))
	for i := range d.Targets {
		spec[i] = obs.Targets[i].SpecReplicas
		ready = ready && obs.Targets[i].ReadyReplicas >= spec[i]
		require.NoError(t, scalingtest.Explained(&d.Targets[i]), "its numbers reproduce it\n%s", d.Explain())
		require.Equal(t, spec[i], d.Targets[i].From)
		require.True(t, types[i].min <= target[i] && target[i] <= types[i].max, "within the bounds")
		require.True(t, d.Total.Next.Equal(d.Targets[i].Next))
		within[i] = max(types[i].min, min(spec[i], types[i].max))
		repaired = repaired || within[i] != spec[i]
		acts = acts || d.Targets[i].Acts()
	}
	require.Equal(t, acts, d.Acts())
	require.EqualValues(t, d.Total.Replicas, hetero.Sum(target), "the types add up to the total\n%s", d.Explain())

	limit := int64(o.Exchanges)
	if d.Total.Verdict == scaling.Unknown || d.Total.Code() == scaling.ClockBack || o.WhenReady && !ready {
		limit = 0
	}
	require.LessOrEqual(t, exchanges(within, target), limit, "%s", d.Explain())
	if limit == hetero.Unlimited {
		require.Equal(t, f.Allocate(nil, int64(d.Total.Replicas)), target, "the seed's counts")
	}
	if !d.Total.Acts() && limit == 0 && !repaired {
		require.Equal(t, spec, target, "without data nothing moves\n%s", d.Explain())
		require.False(t, d.Acts())
	}
}

// TestPolicyReportsOnlyChangesOfTheTotal: exchanges start no cooldown, and neither do repairs of the bounds.
func TestPolicyReportsOnlyChangesOfTheTotal(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 10, Max: 20}, hetero.Type{Name: "b", Cost: 20, Max: 20})
	applied := func(p *hetero.Group) (state asksState) {
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
	d := p.Decide(start, wants(f, 30, 18, 12))
	p.Applied(start, []int32{18, 12}, counts(&d))
	require.Empty(t, applied(p).Applied, "an exchange")
	p.Applied(start, []int32{18, 12}, []int32{20, 12})
	require.Equal(t, []int32{30, 32}, applied(p).Applied, "a write that was refused in part")

	p = policy(t, f, hetero.Options{})
	d = p.Decide(start, wants(f, -1, 20, 25))
	require.Equal(t, []int32{20, 20}, counts(&d))
	p.Applied(start, []int32{20, 25}, counts(&d))
	require.Empty(t, applied(p).Applied, "a repair of the bounds")
}

func TestPolicyKeepsAStateThatItCannotUse(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 10, Max: 20})
	p := policy(t, f, hetero.Options{})
	newer := []byte(`{"kind":"bounded","version":2,"state":{}}`)
	require.ErrorIs(t, p.UnmarshalJSON(newer), scaling.ErrNewerState)
	d := p.Decide(start, wants(f, 9, 3))
	require.Equal(t, scaling.Unknown, d.Total.Verdict)
	require.Equal(t, scaling.Unknown, d.Targets[0].Verdict)
	require.Equal(t, []int32{3}, counts(&d))
	require.False(t, d.Acts())
	data, err := p.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, newer, data)
}

func TestNewPolicyErrors(t *testing.T) {
	_, err := hetero.NewGroup(nil, nil, hetero.Options{Exchanges: -1})
	require.Equal(t, []string{"total", "fleet", "options.exchanges"}, fieldsOf(err))
	var types []hetero.Type
	for i := range 2148 {
		types = append(types, hetero.Type{Name: fmt.Sprint(i), Cost: 1, Max: hetero.MaxReplicas})
	}
	f := fleet(t, 2, types...)
	require.Equal(t, scaling.Bounds{Min: 0, Max: math.MaxInt32}, f.Bounds(), "what does not fit saturates")
	_, err = hetero.NewGroup(scaling.New[asksState](asks{}), f, hetero.Options{})
	require.Equal(t, []string{"fleet"}, fieldsOf(err))
	_, err = hetero.NewGroup(scaling.New[asksState](asks{}), new(hetero.Fleet), hetero.Options{})
	require.EqualError(t, err, "fleet: <nil>: must be set")
}

// TestOrderOfTypesChangesNoDecision: the same fleet declared in another order answers the same for each type, reasons
// included.
func TestOrderOfTypesChangesNoDecision(t *testing.T) {
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
		a := fleetFrom(t, configOf(types, rate, unit))
		b := fleetFrom(t, configOf(permuted, rate, unit))
		total := float64(rapid.IntRange(-1, 60).Draw(t, "total"))
		first := policy(t, a, o).Decide(start, wants(a, total, spec...))
		second := policy(t, b, o).Decide(start, wants(b, total, turned...))
		require.Equal(t, first.Total, second.Total)
		for i, from := range order {
			require.Equal(t, first.Targets[from], second.Targets[i])
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
	p := groupOf(t, scaling.New(scaler), f, hetero.Options{})
	spec := []int32{0, 1}
	var answers []string
	for i := range 82 { // 20 minutes, with a cooldown of 10
		now := start.Add(time.Duration(i) * 15 * time.Second)
		d := p.Decide(now, see(f, spec, scaling.Exactly("queue", 14)))
		if d.Acts() {
			answers = append(answers, fmt.Sprintf("%s %v %s", now.Format(time.TimeOnly), counts(&d), d.Total.Code()))
			p.Applied(now, spec, counts(&d))
			spec = counts(&d)
		}
	}
	require.Equal(t, []string{
		"08:00:15 [0 2] AboveHigh",
		"08:10:15 [1 2] AboveHigh",
		"08:20:15 [2 2] AboveHigh",
	}, answers)
}

// sees is asks that notes the count that it is given.
type sees struct {
	asks

	spec *int32
}

func (s sees) Decide(state asksState, now time.Time, obs scaling.Observation) (asksState, scaling.Decision) {
	*s.spec = obs.SpecReplicas
	return s.asks.Decide(state, now, obs)
}

// TestTheTotalOfWhatIsThere: the policy of the total is given the sum of the counts, of a fleet that does not match too.
func TestTheTotalOfWhatIsThere(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 1, Max: 9}, hetero.Type{Name: "b", Cost: 2, Max: 9})
	var spec int32
	g := groupOf(t, scaling.New(sees{spec: &spec}), f, hetero.Options{})
	obs := wants(f, 5, 3, 4)
	g.Decide(start, obs)
	require.EqualValues(t, 7, spec)
	obs.Targets[1].Name = "c"
	obs.Targets[1].SpecReplicas = 5
	d := g.Decide(start, obs)
	require.Equal(t, hetero.Mismatched, d.Targets[0].Code())
	require.EqualValues(t, 8, spec)
}

// TestAsManyReplicasAsAPolicyCanAskFor: and one more.
func TestAsManyReplicasAsAPolicyCanAskFor(t *testing.T) {
	for last, want := range map[int32]string{483647: "", 483648: "fleet: 2147483648: must not have more than 2147483647 replicas for a policy"} {
		var types []hetero.Type
		for i := range 2148 {
			types = append(types, hetero.Type{Name: fmt.Sprint(i), Cost: 1, Max: hetero.MaxReplicas})
		}
		types[0].Max = last
		_, err := hetero.NewGroup(scaling.New(asks{}), fleet(t, 2, types...), hetero.Options{})
		if want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
}

// TestAMemberNamedVolatileIsStored: of a group the name was cut out of what is stored.
func TestAMemberNamedVolatileIsStored(t *testing.T) {
	f := fleetFrom(t, hetero.Kthena(hetero.Type{Name: "a", Cost: 1, Max: 5}))
	steps, err := realtime.New(realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: "q", High: 5, Low: 1}))
	require.NoError(t, err)
	h, err := scaling.Highest(scaling.Member{Name: "volatile", Policy: scaling.New(steps)})
	require.NoError(t, err)
	g := groupOf(t, h, f, hetero.Options{})
	g.Decide(time.Unix(1_700_000_000, 0), scaling.GroupObservation{
		Readings: []scaling.Reading{scaling.Exactly("q", 9)}, Targets: []scaling.TargetObservation{{Name: "a", SpecReplicas: 2, ReadyReplicas: 2}},
	})
	whole, err := g.MarshalJSON()
	require.NoError(t, err)
	stored, err := scaling.Durable(g)
	require.NoError(t, err)
	require.JSONEq(t, string(whole), string(stored))
}

// TestRegressionAClockThatStepsBackExchangesNothing: the total may be a composition, or a policy whose last step is not ClockBack. Then
// replicas were exchanged by a clock that had stepped back.
func TestRegressionAClockThatStepsBackExchangesNothing(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 10, Max: 20}, hetero.Type{Name: "b", Cost: 20, Max: 20})
	rt := func(metric string) scaling.Policy {
		s, err := realtime.New(realtime.Kaito(f.Bounds(), realtime.Metric{Name: metric, High: 10, Low: 2}))
		require.NoError(t, err)
		return scaling.New(s)
	}
	high, err := scaling.Highest(scaling.Member{Name: "one", Policy: rt("queue")}, scaling.Member{Name: "two", Policy: rt("kv")})
	require.NoError(t, err)
	single, err := saturation.NewSingle(saturation.SingleConfig{Config: saturation.Defaults(), Bounds: f.Bounds(), KV: "kv", Queue: "queue"})
	require.NoError(t, err)
	for name, total := range map[string]scaling.Policy{"highest": high, "single": single} {
		t.Run(name, func(t *testing.T) {
			g := groupOf(t, total, f, hetero.Options{Exchanges: 2})
			now := time.Unix(1_800_000_000, 0)
			obs := func(a, b, ready int32) scaling.GroupObservation {
				return scaling.GroupObservation{
					Targets: []scaling.TargetObservation{
						{Name: "a", SpecReplicas: a, ReadyReplicas: a}, {Name: "b", SpecReplicas: b, ReadyReplicas: ready},
					},
					Readings: []scaling.Reading{
						{Metric: "queue", Lower: 1, Upper: 1, Values: 1}, {Metric: "kv", Lower: .6, Upper: .6, Values: 1},
					},
				}
			}
			g.Decide(now, obs(20, 10, 10))
			d := g.Decide(now.Add(-time.Minute), obs(18, 12, 11))
			_, back := d.Total.Find(scaling.ClockBack)
			require.True(t, back)
			require.False(t, d.Acts(), "%s", d.Explain())
		})
	}
}

// TestRegressionAMissingTargetIsNoPanic: in a round in which a type was missing, the total's policy was told of the others alone, and that
// none of their replicas was ready. It took the load that it remembered for a burst, and a fleet that could have shrunk was kept for a minute.
func TestRegressionAMissingTargetIsNoPanic(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 10, Min: 1, Max: 20}, hetero.Type{Name: "b", Cost: 20, Min: 1, Max: 20})
	for name, change := range map[string]func(*scaling.TargetObservation){
		"nothing": func(*scaling.TargetObservation) {},
		"missing": func(o *scaling.TargetObservation) { *o = scaling.TargetObservation{Name: o.Name, Missing: true} },
		"renamed": func(o *scaling.TargetObservation) { o.Name = "c" },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := proportional.New(proportional.KPA(f.Bounds(), proportional.Metric{Name: "queue", Target: 10}))
			require.NoError(t, err)
			g := groupOf(t, scaling.New(s), f, hetero.Options{})
			now := start
			round := func(load float64, change func(*scaling.TargetObservation)) scaling.GroupDecision {
				now = now.Add(2 * time.Second)
				obs := scaling.GroupObservation{
					Targets:  []scaling.TargetObservation{{Name: "a", SpecReplicas: 10, ReadyReplicas: 10}, {Name: "b", SpecReplicas: 4, ReadyReplicas: 4}},
					Readings: []scaling.Reading{{Metric: "queue", Lower: load, Upper: load, Values: 14, At: now}},
				}
				change(&obs.Targets[0])
				return g.Decide(now, obs)
			}
			for range 60 {
				require.Equal(t, scaling.Hold, round(9.9, func(*scaling.TargetObservation) {}).Total.Verdict)
			}
			round(9.9, change)
			for range 10 {
				d := round(7, func(*scaling.TargetObservation) {})
				_, panics := d.Total.Find(proportional.NoFewer)
				require.False(t, panics, "%s", d.Explain())
			}
			require.Equal(t, scaling.Down, round(7, func(*scaling.TargetObservation) {}).Total.Verdict)
		})
	}
}

// TestAMissingTargetCountsAsItStood: as it was last seen, and not as in a round that was only asked for.
func TestAMissingTargetCountsAsItStood(t *testing.T) {
	f := fleet(t, 2, hetero.Type{Name: "a", Cost: 1, Max: 9}, hetero.Type{Name: "b", Cost: 2, Max: 9})
	var spec int32
	g := groupOf(t, scaling.New(sees{spec: &spec}), f, hetero.Options{})
	g.Decide(start, wants(f, 5, 3, 4))
	back, err := g.Snapshot()
	require.NoError(t, err)
	g.Decide(start, wants(f, 5, 1, 1))
	require.NoError(t, back())
	obs := wants(f, 5, 2, 0)
	obs.Targets[1].Missing, obs.Targets[1].SpecReplicas = true, 9 // which means nothing
	g.Decide(start, obs)
	require.EqualValues(t, 6, spec)
}
