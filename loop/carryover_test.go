package loop_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// member returns what is under a path of names in a state.
func member(t *testing.T, state []byte, path ...string) string {
	t.Helper()
	for _, name := range path {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(state, &m))
		require.Contains(t, m, name)
		state = m[name]
	}
	return string(state)
}

// TestCarryOverKeepsWhatStandsAround: a stabilization and a forecast remember what they did when an algorithm comes to stand
// beside the one that they are around, and when they come and go themselves the algorithm does.
func TestCarryOverKeepsWhatStandsAround(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: 50}
	must := func(p scaling.Policy, err error) scaling.Policy {
		t.Helper()
		require.NoError(t, err)
		return p
	}
	load := func() scaling.Policy {
		p, err := proportional.New(proportional.LLM(bounds, proportional.Metric{Name: "load", Target: 10}))
		return must(scaling.New(p), err)
	}
	foreseen := func(p scaling.Policy) scaling.Policy {
		return must(forecast.New(p, proportional.Metric{Name: "load", Target: 10}.Demand, forecast.For(bounds, nil)))
	}
	window := func(p scaling.Policy) scaling.Policy {
		return must(scaling.Stabilized(p, scaling.Stabilization{Down: 10 * time.Minute}))
	}
	beside := func(p scaling.Policy) scaling.Policy {
		steps, err := realtime.New(realtime.Kaito(bounds, realtime.Metric{Name: "queue", High: 10, Low: 2}))
		require.NoError(t, err)
		return must(scaling.Highest(scaling.Member{Name: "realtime", Policy: scaling.New(steps)}, scaling.Member{Name: "proportional", Policy: p}))
	}
	l := loopOf(t, scaling.GroupOf(window(foreseen(load()))), loop.Config{Period: period})
	require.NoError(t, l.Restore(nil))
	now, replicas := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), int32(3)
	for i := range 400 {
		now = now.Add(period)
		l.Read(now, loop.Target{Key: "a", Replicas: replicas})
		step := l.Decide(now, scaling.OneTarget(replicas, scaling.Exactly("load", float64(8+i%9))))
		require.NoError(t, step.Err)
		l.Saved(nil)
		for w := range l.Writes() {
			replicas = w.To
			l.Wrote(w, loop.Applied)
		}
		l.Advance(now)
		l.Saved(nil)
	}
	before, err := l.State()
	require.NoError(t, err)
	days, highs := member(t, before, "state", "group", "state", "base", "state", "memory"), member(t, before, "state", "group", "state")
	require.Contains(t, days, `"days":[`)

	after, err := loop.CarryOver(before, window(beside(foreseen(load()))))
	require.NoError(t, err)
	inner := []string{"state", "group", "state", "base", "state", "proportional", "state"}
	require.JSONEq(t, days, member(t, after, append(inner, "memory")...))
	require.JSONEq(t, member(t, before, "state", "group", "state", "base", "state", "base"), member(t, after, append(inner, "base")...))
	var was, is map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(highs), &was))
	require.NoError(t, json.Unmarshal([]byte(member(t, after, "state", "group", "state")), &is))
	delete(was, "base")
	delete(is, "base")
	require.NotEmpty(t, was)
	require.Equal(t, was, is)

	alone, err := loop.CarryOver(after, load())
	require.NoError(t, err)
	require.JSONEq(t, member(t, after, append(inner, "base")...), member(t, alone, "state", "group"))
	again, err := loop.CarryOver(alone, foreseen(load()))
	require.NoError(t, err)
	require.JSONEq(t, member(t, alone, "state", "group"), member(t, again, "state", "group", "state", "base"))

	other, err := loop.CarryOver(after, beside(foreseen(window(load()))))
	require.NoError(t, err)
	require.NotContains(t, string(other), `"days"`, "the days are those of the demand on something else")
}

// TestWhatAForecastLearnsIsStored: at rest, where what is learned of a day does not show in any answer, too.
func TestWhatAForecastLearnsIsStored(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: 50}
	base, err := proportional.New(proportional.LLM(bounds, proportional.Metric{Name: "load", Target: 10}))
	require.NoError(t, err)
	policy, err := forecast.New(scaling.New(base), proportional.Metric{Name: "load", Target: 10}.Demand, forecast.For(bounds, nil))
	require.NoError(t, err)
	group := scaling.GroupOf(policy)
	l := loopOf(t, group, loop.Config{Period: period})
	require.NoError(t, l.Restore(nil))
	begin, saves := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), 0
	for now := begin; now.Before(begin.Add(6 * time.Hour)); now = now.Add(period) {
		l.Read(now, loop.Target{Key: "a", Replicas: 1})
		step := l.Decide(now, scaling.OneTarget(1, scaling.Exactly("load", 5)))
		require.NoError(t, step.Err)
		if step.Store != nil {
			saves++
			require.NotContains(t, string(step.Store), "volatile")
			require.Less(t, len(step.Store), 16<<10)
			l.Saved(nil)
		}
		l.Advance(now)
	}
	require.InDelta(t, 6*12, saves, 3, "every five minutes")
	live, err := group.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, member(t, live, "state", "memory", "days"), member(t, l.Stored(), "state", "group", "state", "memory", "days"))
}

// TestCarryOverNeedsAPolicy: as a Loop needs a group.
func TestCarryOverNeedsAPolicy(t *testing.T) {
	_, err := loop.CarryOver([]byte("{}"), nil)
	require.EqualError(t, err, "policy: <nil>: must be set")
}

// TestCarryOverOfADeepState: each level is read and copied again, so that 176 KB of an annotation took half a minute and 900 MB.
func TestCarryOverOfADeepState(t *testing.T) {
	const levels = 4900
	state := strings.Repeat(`{"kind":"bounded","state":{"base":`, levels) + `{"kind":"x"}` + strings.Repeat(`}}`, levels)
	s, err := realtime.New(realtime.Kaito(scaling.Bounds{Min: 1, Max: 50}, realtime.Metric{Name: "queue", High: 10, Low: 2}))
	require.NoError(t, err)
	_, err = loop.CarryOver([]byte(state), scaling.New(s))
	require.ErrorContains(t, err, "compositions are nested more than 32 deep")
}

// TestRegressionMembersOfOneKindKeepTheirOwnMemory: the memory of one of two members of a kind went to both, of which one was left to chance.
func TestRegressionMembersOfOneKindKeepTheirOwnMemory(t *testing.T) {
	observed := func(a, b float64) scaling.Observation {
		return scaling.Observation{SpecReplicas: 10, ReadyReplicas: 10, Readings: []scaling.Reading{scaling.Exactly("a", a), scaling.Exactly("b", b)}}
	}
	old := highestOf(t, "a", "b")
	for i := range 40 {
		old.Decide(start().Add(time.Duration(i)*period), observed(100, 20))
	}
	group, err := old.MarshalJSON()
	require.NoError(t, err)
	stored := []byte(`{"kind":"loop","version":1,"state":{"group":` + string(group) + `}}`)
	path := []string{"state", "group", "state"}
	for range 20 {
		state, err := loop.CarryOver(stored, highestOf(t, "a", "b"))
		require.NoError(t, err)
		require.JSONEq(t, string(group), member(t, state, path[:2]...))
	}

	state, err := loop.CarryOver(stored, highestOf(t, "b", "c"))
	require.NoError(t, err)
	require.JSONEq(t, member(t, group, "state", "b"), member(t, state, append(path, "b")...))
	none, err := byMetric(t, "c").MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, string(none), member(t, state, append(path, "c")...), "it is new, and whose memory it should have is open")

	single := byMetric(t, "a")
	for i := range 40 {
		single.Decide(start().Add(time.Duration(i)*period), observed(100, 20))
	}
	alone, err := single.MarshalJSON()
	require.NoError(t, err)
	state, err = loop.CarryOver([]byte(`{"kind":"loop","version":1,"state":{"group":`+string(alone)+`}}`), highestOf(t, "x", "y"))
	require.NoError(t, err)
	require.JSONEq(t, string(alone), member(t, state, append(path, "x")...), "the only one of its kind")
}

// TestRegressionAMemberOfANewNameStartsFresh: beside the only member of its kind it was given the memory of that one, on another metric.
func TestRegressionAMemberOfANewNameStartsFresh(t *testing.T) {
	old := highestOf(t, "a")
	for i := range 40 {
		old.Decide(start().Add(time.Duration(i)*period), scaling.Observation{SpecReplicas: 10, ReadyReplicas: 10, Readings: []scaling.Reading{scaling.Exactly("a", 100)}})
	}
	group, err := old.MarshalJSON()
	require.NoError(t, err)
	state, err := loop.CarryOver([]byte(`{"kind":"loop","version":1,"state":{"group":`+string(group)+`}}`), highestOf(t, "a", "b"))
	require.NoError(t, err)
	path := []string{"state", "group", "state"}
	require.JSONEq(t, member(t, group, "state", "a"), member(t, state, append(path, "a")...))
	fresh, err := highestOf(t, "b").MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, member(t, fresh, "state", "b"), member(t, state, append(path, "b")...), "b is new")
}

// highestOf is a Highest of proportional policies, each by the metric of its name.
func highestOf(t *testing.T, names ...string) scaling.Policy {
	t.Helper()
	var members []scaling.Member
	for _, name := range names {
		members = append(members, scaling.Member{Name: name, Policy: byMetric(t, name)})
	}
	p, err := scaling.Highest(members...)
	require.NoError(t, err)
	return p
}

func byMetric(t *testing.T, name string) scaling.Policy {
	t.Helper()
	s, err := proportional.New(proportional.HPA(scaling.Bounds{Min: 1, Max: 20}, proportional.Metric{Name: name, Target: 10, Measure: proportional.Total}))
	require.NoError(t, err)
	return scaling.New(s)
}
