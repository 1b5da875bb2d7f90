package scaling_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

var epoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// totals returns a policy that wants a replica for each ten of a total.
func totals(metric string) scaling.Policy {
	return scaling.New(must(proportional.New(proportional.Config{Bounds: fleetBounds, Metrics: []proportional.Metric{{Name: metric, Target: 10, Measure: proportional.Total}}})))
}

// observed returns an observation of three replicas.
func observed(readings ...scaling.Reading) scaling.Observation {
	return scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: readings}
}

// TestRegressionCopiesOfADecisionShareNoSteps: the ninth step of one copy was written into the other.
func TestRegressionCopiesOfADecisionShareNoSteps(t *testing.T) {
	d := scaling.HoldAt(3)
	for i := range 20 {
		a, b := d, d
		a.To(5, "Mine", "a")
		b.To(1, "Yours", "b")
		require.Equal(t, "Up 3 -> 5: Mine a", a.Reason())
		d.To(3, "Step", fmt.Sprint(i))
	}
}

// TestRegressionLimitsAreNotTheCallers: limits that were changed after RateLimited had checked them were in force.
func TestRegressionLimitsAreNotTheCallers(t *testing.T) {
	limits := scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 1, Period: time.Minute}}}}
	p := must(scaling.RateLimited(totals("m"), limits))
	limits.Up.Limits[0].Replicas = 100
	d := p.Decide(epoch, observed(scaling.Exactly("m", 100)))
	require.Equal(t, int32(4), d.Replicas)
}

// TestRegressionARefusedMemberIsFreshAgain: a member that had refused its state kept that, after a state which lacks it too.
func TestRegressionARefusedMemberIsFreshAgain(t *testing.T) {
	build := func() scaling.Policy {
		return must(scaling.Highest(scaling.Member{Name: "a", Policy: totals("a")}, scaling.Member{Name: "b", Policy: totals("b")}))
	}
	a := string(must(totals("a").MarshalJSON()))
	p := build()
	require.ErrorContains(t, p.UnmarshalJSON([]byte(`{"kind":"highest","version":1,"state":{"a":`+a+`,"b":`+strings.Replace(a, `"version":1`, `"version":2`, 1)+`}}`)), "member b")
	require.NoError(t, p.UnmarshalJSON([]byte(`{"kind":"highest","version":1,"state":{"a":`+a+`}}`)))
	d := p.Decide(epoch, observed(scaling.Exactly("a", 1), scaling.Exactly("b", 90)))
	require.Equal(t, int32(9), d.Replicas)
	require.NoError(t, build().UnmarshalJSON(must(p.MarshalJSON())))
}

// counter asks for one replica more each time.
type counter struct{}

func (counter) Kind() scaling.Kind { return scaling.Kind{Name: "counter", Version: 1} }

func (counter) Decide(n int32, _ time.Time, obs scaling.Observation) (int32, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(n+1, "Counted", "")
	return n + 1, d
}

func (counter) Applied(n int32, _ time.Time, _, _ int32) int32 { return n }

// TestRegressionASnapshotKnowsWhoRefused: a member that was taken back to before it refused a state lost the state that it had, once a
// stored state lacked it.
func TestRegressionASnapshotKnowsWhoRefused(t *testing.T) {
	of := func() scaling.Policy { return scaling.New[int32](counter{}) }
	p := must(scaling.Highest(scaling.Member{Name: "a", Policy: of()}, scaling.Member{Name: "b", Policy: of()}))
	restore := must(scaling.Snapshot(p))
	const a = `{"kind":"highest","version":1,"state":{"a":{"kind":"counter","version":1,"state":0}`
	require.Error(t, p.UnmarshalJSON([]byte(a+`,"b":{"kind":"counter","version":2,"state":0}}}`)))
	require.NoError(t, restore())
	for range 2 {
		p.Decide(epoch, observed())
	}
	require.NoError(t, p.UnmarshalJSON([]byte(a+`}}`)))
	d := p.Decide(epoch, observed())
	require.Equal(t, int32(3), d.Replicas, "that of b")
}

// unmarshallable is a policy whose state can be neither taken nor given.
type unmarshallable struct{ scaling.Policy }

func (unmarshallable) MarshalJSON() ([]byte, error) { return nil, errors.New("no state") }

func (unmarshallable) UnmarshalJSON([]byte) error { return errors.New("not taken") }

// TestAMemberWithoutAStateIsNamed: it cannot be as it was at first.
func TestAMemberWithoutAStateIsNamed(t *testing.T) {
	p := must(scaling.Highest(scaling.Member{Name: "a", Policy: scaling.New[int32](counter{})}, scaling.Member{Name: "b", Policy: unmarshallable{}}))
	const a = `{"kind":"highest","version":1,"state":{"a":{"kind":"counter","version":1,"state":0}`
	require.ErrorContains(t, p.UnmarshalJSON([]byte(a+`,"b":0}}`)), "member b: not taken")
	require.ErrorContains(t, p.UnmarshalJSON([]byte(a+`}}`)), "member b: no state")
}

// TestRegressionADeepCompositionIsMadeQuickly: each level wrote the states of all below it as JSON. At a depth of 160 it took over a
// second and 158 MB.
func TestRegressionADeepCompositionIsMadeQuickly(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := scaling.New[int32](counter{})
	for range 160 {
		p = must(scaling.Highest(scaling.Member{Name: "deep", Policy: p}, scaling.Member{Name: "leaf", Policy: scaling.New[int32](counter{})}))
	}
	d := p.Decide(epoch, observed())
	runtime.ReadMemStats(&after)
	require.Equal(t, int32(1), d.Replicas)
	require.Len(t, d.Steps(), 321)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(20<<20))
}

// TestRegressionPartsOfAMillisecond: windows were compared without their part of a millisecond and shown with it.
func TestRegressionPartsOfAMillisecond(t *testing.T) {
	const window = 1999 * time.Microsecond
	hold := func(t *testing.T, p scaling.Policy, obs scaling.Observation, code scaling.Code) {
		t.Helper()
		for at := range 2 {
			d := p.Decide(epoch.Add(time.Duration(at)*time.Millisecond), obs)
			_, ok := d.Find(code)
			require.Equal(t, at == 0 || code == saturation.Settling, ok, d.Explain())
			for _, s := range d.Steps() {
				require.True(t, s.Holds(), s.Because())
			}
		}
	}
	c := realtime.Kaito(fleetBounds, realtime.Metric{Name: "m", High: 10, Low: 1})
	c.Period, c.Up.Window = time.Millisecond, window
	hold(t, scaling.New(must(realtime.New(c))), observed(scaling.Exactly("m", 20)), realtime.UpWindow)
	s := saturation.SingleConfig{Config: saturation.Defaults(), Bounds: fleetBounds, KV: "kv", Queue: "queue"}
	s.DownStabilization = window
	hold(t, must(saturation.NewSingle(s)), observed(scaling.Exactly("kv", 0), scaling.Exactly("queue", 0)), saturation.Settling)
}

// TestRegressionStoredTimesThatAreNone: a start of a window in the future stopped scale-downs for ever, and a streak that began before
// all times was one that its own policy refused an hour later.
func TestRegressionStoredTimesThatAreNone(t *testing.T) {
	ms := epoch.UnixMilli()
	future := scaling.New(must(proportional.New(proportional.LLM(fleetBounds, proportional.Metric{Name: "m", Target: 10, Measure: proportional.Total}))))
	require.ErrorContains(t, future.UnmarshalJSON(fmt.Appendf(nil, `{"kind":"proportional","version":1,"state":{"seen":%d,"loads":[{"metric":"m","measure":1,"since":9007199254740992,"last":%d,`+
		`"window":{"samples":0,"buckets":[]}}],"recommendations":{"lows":{"newest":0,"samples":[]},"highs":{"newest":0,"samples":[]}},"changes":{}}}`, ms, ms)), "loads[0].since: must be a time up to last")

	build := func() scaling.Policy {
		return scaling.New(must(realtime.New(realtime.Kaito(fleetBounds, realtime.Metric{Name: "m", High: 10, Low: 1}))))
	}
	p, obs := build(), observed(scaling.Exactly("m", 50))
	p.Decide(epoch, obs)
	stored := string(must(p.MarshalJSON()))
	since := fmt.Sprintf(`"since":%d`, ms)
	require.Contains(t, stored, since)
	require.NoError(t, p.UnmarshalJSON([]byte(strings.Replace(stored, since, fmt.Sprintf(`"since":%d`, int64(math.MinInt64/256)), 1))))
	p.Decide(epoch.Add(-time.Hour), obs)
	require.NoError(t, build().UnmarshalJSON(must(p.MarshalJSON())))
}

// TestRegressionADecisionAfterTheYear9999: the error did not say what of the decision has no place in JSON.
func TestRegressionADecisionAfterTheYear9999(t *testing.T) {
	d := scaling.HoldAt(3)
	d.Next = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	_, err := json.Marshal(d)
	require.NoError(t, err)
	d.Next = d.Next.Add(time.Second)
	_, err = json.Marshal(d)
	var wrong *scaling.FieldError
	require.ErrorAs(t, err, &wrong)
	require.EqualError(t, wrong, "next: 10000-01-01 00:00:00 +0000 UTC: must be a time that JSON can have, of the years 0 to 9999")
	d.Next = time.Time{}
	_, err = json.Marshal(d)
	require.NoError(t, err)
}

// TestRegressionHighestGrowsItsChainOnce: the chain was copied for each step of each member. A round of 1,000 members took half a second
// and 240 MB.
func TestRegressionHighestGrowsItsChainOnce(t *testing.T) {
	members := make([]scaling.Member, 300)
	for i := range members {
		members[i] = scaling.Member{Name: fmt.Sprintf("%03d", i), Policy: totals("m")}
	}
	h := must(scaling.Highest(members...))
	obs := observed(scaling.Exactly("m", 100))
	d := h.Decide(epoch, obs)
	require.Len(t, d.Steps(), 301)
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { h.Decide(epoch, obs) }), 5.0)
}

// TestRegressionADecisionWithManyLines: the line after the 65,535th was taken for the deciding one, with exactly 65,535 of them Steps did
// not end, and with fewer its time was that of their square.
func TestRegressionADecisionWithManyLines(t *testing.T) {
	d := scaling.HoldAt(3)
	d.To(5, "Mine", "a")
	for range 17 {
		more := d
		d.ConsiderAll(&more)
	}
	steps := d.Steps()
	require.Len(t, steps, 1<<17)
	require.EqualValues(t, 0, steps[0].Branch)
	require.EqualValues(t, 1, steps[1].Branch)
	require.EqualValues(t, math.MaxUint16, steps[1<<17-1].Branch)
	require.Equal(t, "Up 3 -> 5: Mine a", d.Reason())
}

// TestRegressionVerdictsAreReadBack: they could be written as text, and not read.
func TestRegressionVerdictsAreReadBack(t *testing.T) {
	for _, v := range []scaling.Verdict{scaling.Unknown, scaling.Hold, scaling.Up, scaling.Down} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		var again scaling.Verdict
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, v, again)
	}
	var v scaling.Verdict
	require.EqualError(t, v.UnmarshalText([]byte("up")), `verdict: "up": must be Unknown, Hold, Up or Down`)
}

// keeps is a policy with any state, which holds.
type keeps[S any] struct{}

func (keeps[S]) Kind() scaling.Kind { return scaling.Kind{Name: "keeps", Version: 1} }

func (keeps[S]) Decide(s S, _ time.Time, obs scaling.Observation) (S, scaling.Decision) {
	return s, scaling.HoldAt(obs.SpecReplicas)
}

func (keeps[S]) Applied(s S, _ time.Time, _, _ int32) S { return s }

// TestRegressionAStateThatIsNull: a state that is a map, a slice or a pointer is null in JSON while it is fresh. The policy refused it, so
// that after its first restart it was Unknown for ever, and package loop did not even start with it.
func TestRegressionAStateThatIsNull(t *testing.T) {
	for name, fresh := range map[string]func() scaling.Policy{
		"map":     func() scaling.Policy { return scaling.New[map[string]int](keeps[map[string]int]{}) },
		"slice":   func() scaling.Policy { return scaling.New[[]int](keeps[[]int]{}) },
		"pointer": func() scaling.Policy { return scaling.New[*scaling.Bounds](keeps[*scaling.Bounds]{}) },
	} {
		p := fresh()
		stored, err := p.MarshalJSON()
		require.NoError(t, err, name)
		require.JSONEq(t, `{"kind":"keeps","version":1,"state":null}`, string(stored), name)
		again := fresh()
		require.NoError(t, again.UnmarshalJSON(stored), name)
		d := again.Decide(epoch, observed())
		require.Equal(t, scaling.Hold, d.Verdict, name)
		restore, err := scaling.Snapshot(again)
		require.NoError(t, err, name)
		require.NoError(t, restore(), name)
		require.Error(t, again.UnmarshalJSON([]byte(`{"kind":"keeps","version":1}`)), name)
	}
}

// nameless is a policy whose author has forgotten its kind.
type nameless struct{ keeps[struct{}] }

func (nameless) Kind() scaling.Kind { return scaling.Kind{} }

// TestRegressionAKindThatIsForgotten is found out when the state is stored, not after the restart that refuses it.
func TestRegressionAKindThatIsForgotten(t *testing.T) {
	_, err := scaling.New[struct{}](nameless{}).MarshalJSON()
	require.EqualError(t, err, "kind: \"\": must not be empty\nversion: 0: must be at least 1")
}

// others is a policy of somebody else, with its state in itself.
type others struct{ state int }

func (*others) Decide(_ time.Time, obs scaling.Observation) scaling.Decision {
	return scaling.HoldAt(obs.SpecReplicas)
}

func (*others) Applied(time.Time, int32, int32) {}

func (o *others) MarshalJSON() ([]byte, error) { return json.Marshal(o.state) }

func (o *others) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &o.state) }

// stateless is a policy of somebody else with nothing in itself.
type stateless struct{}

func (*stateless) Decide(_ time.Time, obs scaling.Observation) scaling.Decision {
	return scaling.HoldAt(obs.SpecReplicas)
}

func (*stateless) Applied(time.Time, int32, int32) {}

func (*stateless) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

func (*stateless) UnmarshalJSON([]byte) error { return nil }

// TestRegressionOnePolicyTwice: only a policy of package scaling was found as two members, or of two targets. One without a state may be.
func TestRegressionOnePolicyTwice(t *testing.T) {
	single, err := saturation.NewSingle(saturation.SingleConfig{Config: saturation.Defaults(), Bounds: fleetBounds, KV: "kv", Queue: "queue"})
	require.NoError(t, err)
	for name, p := range map[string]scaling.Policy{"*scaling_test.others": &others{}, "*saturation.Single": single} {
		_, err := scaling.Highest(scaling.Member{Name: "a", Policy: p}, scaling.Member{Name: "b", Policy: p})
		require.EqualError(t, err, `members[1].policy: "b": must not be that of another member, as it would decide twice in a round`)
		_, err = scaling.Each(p, p).MarshalJSON()
		require.ErrorContains(t, err, fmt.Sprintf("policies[1]: %q: must not be that of an earlier target, as it would decide twice in a round", name))
	}
	for _, two := range [][2]scaling.Policy{{&others{}, &others{}}, {&stateless{}, &stateless{}}} {
		_, err := scaling.Highest(scaling.Member{Name: "a", Policy: two[0]}, scaling.Member{Name: "b", Policy: two[1]})
		require.NoError(t, err)
		_, err = scaling.Each(two[0], two[1]).MarshalJSON()
		require.NoError(t, err)
	}
}

// TestRegressionARefusedStateIsNotLent: a caller that overwrote what MarshalJSON had returned, as one that encrypts it in place
// does, changed the refused state itself, which is to be kept unchanged.
func TestRegressionARefusedStateIsNotLent(t *testing.T) {
	for kept, m := range map[string]scaling.Stateful{
		`{"kind":"proportional","version":99,"state":{}}`: totals("queue"),
		`{"kind":"highest","version":99,"state":{}}`:      must(scaling.Highest(scaling.Member{Name: "a", Policy: totals("queue")})),
		`{"kind":"realtime","version":1,"state":{}}`:      scaling.GroupOf(totals("queue")),
		`[{"kind":"realtime","version":1,"state":{}}]`:    scaling.Each(totals("queue"), totals("queue")),
	} {
		require.Error(t, m.UnmarshalJSON([]byte(kept)))
		for _, marshal := range []func() ([]byte, error){m.MarshalJSON, func() ([]byte, error) { return scaling.Durable(m) }} {
			data, err := marshal()
			require.NoError(t, err)
			clear(data)
			data, err = marshal()
			require.NoError(t, err)
			require.Equal(t, kept, string(data))
		}
	}
}
