package scaling_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

var start = time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)

// script is a Stepper that asks for what the reading "want" says, and counts what it is told.
type script struct{}

type scriptState struct {
	Decided int     `json:"decided"`
	Applied []int32 `json:"applied"`
}

const asked scaling.Code = "Asked want"

func (script) Kind() scaling.Kind { return scaling.Kind{Name: "script", Version: 2} }

func (script) Decide(s scriptState, now time.Time, obs scaling.Observation) (scriptState, scaling.Decision) {
	s.Decided++
	r := obs.Reading("want")
	if !r.Known() {
		return s, scaling.UnknownAt(obs.SpecReplicas, asked, "")
	}
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(int32(r.Lower), asked, "", r.Lower)
	d.NextBy(now.Add(time.Hour))
	return s, d
}

func (script) Applied(s scriptState, _ time.Time, from, to int32) scriptState {
	s.Applied = append(s.Applied, from, to)
	return s
}

func (s scriptState) Validate() error {
	if s.Decided < 0 {
		return errors.New("decided: must not be negative")
	}
	return nil
}

// want is the observation at which the script asks for n; unknown for a negative n.
func want(spec, n int32) scaling.Observation {
	obs := scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec}
	if n >= 0 {
		obs.Readings = []scaling.Reading{scaling.Exactly("want", float64(n))}
	}
	return obs
}

func save(t require.TestingT, p scaling.Policy) string {
	data, err := json.Marshal(p)
	require.NoError(t, err)
	return string(data)
}

func TestPolicyKeepsItsState(t *testing.T) {
	p := scaling.New(script{})
	d := p.Decide(start, want(3, 5))
	require.Equal(t, scaling.Up, d.Verdict)
	p.Applied(start, 3, 5)
	stored := save(t, p)
	require.Equal(t, `{"kind":"script","version":2,"state":{"decided":1,"applied":[3,5]}}`, stored)

	q := scaling.New(script{})
	require.NoError(t, json.Unmarshal([]byte(stored), q))
	q.Decide(start, want(5, 5))
	require.Equal(t, `{"kind":"script","version":2,"state":{"decided":2,"applied":[3,5]}}`, save(t, q))

	require.NoError(t, json.Unmarshal([]byte(`{"kind":"script","version":1,"state":{"decided":7,"applied":null}}`), q), "an older version is read")
}

// TestRefusedStateHoldsAndIsKept: another kind, a newer version or damage: the error says so, every decision is
// Unknown, nothing is overwritten, and a good state mends it.
func TestRefusedStateHoldsAndIsKept(t *testing.T) {
	for _, row := range []struct {
		state string
		cause error
		says  string
	}{
		{`{"kind":"script","version":3,"state":{"decided":1,"new":true}}`, scaling.ErrNewerState, "state of script version 3 refused by policy script version 2: state was written by a newer version"},
		{`{"kind":"realtime","version":1,"state":{}}`, scaling.ErrOtherState, "state of realtime version 1 refused by policy script version 2: state is of another kind of policy"},
		{`{"kind":"script","version":0,"state":{}}`, nil, "version 0 does not exist"},
		{`{"kind":"script","version":2}`, nil, "the field state is missing"},
		{`{"kind":"script","version":2,"state":null}`, nil, "the field state is missing"},
		{`{"kind":"script","version":2,"state":{"decided":"x"}}`, nil, "cannot unmarshal"},
		{`{"kind":"script","version":2,"state":{"decided":-1}}`, nil, "decided: must not be negative"},
		{`{"kind":"script","version":2,"state":{"unheard of":1}}`, nil, "unknown field"},
		{`[]`, nil, "cannot unmarshal"},
	} {
		p := scaling.New(script{})
		p.Decide(start, want(3, 5))
		err := json.Unmarshal([]byte(row.state), p)
		var stateErr *scaling.StateError
		require.ErrorAs(t, err, &stateErr, row.state)
		require.ErrorContains(t, err, row.says)
		if row.cause != nil {
			require.ErrorIs(t, err, row.cause)
		}
		d := p.Decide(start, want(3, 5))
		require.Equal(t, "Unknown at 3: StateRefused script", d.Reason())
		require.NoError(t, scalingtest.Explained(&d))
		p.Applied(start, 3, 5)
		require.JSONEq(t, row.state, save(t, p), "kept as it is")

		require.NoError(t, json.Unmarshal([]byte(`{"kind":"script","version":2,"state":{"decided":4,"applied":[]}}`), p))
		d = p.Decide(start, want(3, 5))
		require.Equal(t, scaling.Up, d.Verdict)
	}
	p := scaling.New(script{})
	require.Error(t, p.UnmarshalJSON([]byte(`{"kind"`)))
	_, err := p.MarshalJSON()
	require.ErrorContains(t, err, "the refused state is not JSON")
}

// TestStateErrorLeavesOutWhatHasNoName: of bytes that are no JSON, and of a policy that nobody configured, there is no kind to name.
func TestStateErrorLeavesOutWhatHasNoName(t *testing.T) {
	require.EqualError(t, scaling.New(script{}).UnmarshalJSON(nil), "state refused by policy script version 2: unexpected end of JSON input")
	_, err := scaling.New[int](nil).MarshalJSON()
	require.EqualError(t, err, "state refused: the policy was not configured")
}

func TestHighest(t *testing.T) {
	build := func(t require.TestingT, names ...string) (scaling.Policy, map[string]scaling.Policy) {
		members := make([]scaling.Member, 0, len(names))
		inner := map[string]scaling.Policy{}
		for _, n := range names {
			p := scaling.New(renamed{n})
			inner[n] = p
			members = append(members, scaling.Member{Name: n, Policy: p})
		}
		p, err := scaling.Highest(members...)
		require.NoError(t, err)
		return p, inner
	}
	observe := func(spec int32, a, b int32) scaling.Observation {
		obs := scaling.Observation{SpecReplicas: spec}
		for name, n := range map[string]int32{"a": a, "b": b} {
			if n >= 0 {
				obs.Readings = append(obs.Readings, scaling.Exactly(name, float64(n)))
			}
		}
		return obs
	}
	for _, row := range []struct {
		a, b int32 // what they ask for at 4; -1: unknown
		want string
	}{
		{6, 5, "Up 4 -> 6: Asked want=6; Chosen a members=2"},
		{2, 5, "Up 4 -> 5: Asked want=5; Chosen b members=2"},
		{5, 5, "Up 4 -> 5: Asked want=5; Chosen a members=2"},
		{2, 3, "Down 4 -> 3: Asked want=3; Chosen b members=2"},
		{2, 4, "Hold at 4: Chosen b members=2"},
		{-1, 2, "Unknown at 4: Chosen a members=2"}, // unknown blocks a scale-down
		{-1, 6, "Up 4 -> 6: Asked want=6; Chosen b members=2"},
		{-1, 4, "Hold at 4: Chosen b members=2"},
		{-1, -1, "Unknown at 4: Chosen a members=2"},
	} {
		p, _ := build(t, "b", "a")
		d := p.Decide(start, observe(4, row.a, row.b))
		require.Equal(t, row.want, d.Reason(), "a=%d b=%d", row.a, row.b)
		require.NoError(t, scalingtest.Explained(&d))
		require.Len(t, d.Steps(), 3, "the loser's line stays visible")
		q, _ := build(t, "a", "b")
		require.Equal(t, d, q.Decide(start, observe(4, row.a, row.b)), "the order of members does not matter")
	}

	p, inner := build(t, "a", "b")
	p.Decide(start, observe(4, 5, 6))
	p.Applied(start, 4, 6)
	stored := save(t, p)
	require.Contains(t, save(t, inner["a"]), "[4,6]")
	q, _ := build(t, "b", "a", "c") // a member was added
	require.NoError(t, json.Unmarshal([]byte(stored), q))
	require.Contains(t, save(t, q), `"c":{"kind":"script","version":2,"state":{"decided":0,"applied":null}}`)
	r, _ := build(t, "b") // one was removed
	require.NoError(t, json.Unmarshal([]byte(stored), r))
	require.NotContains(t, save(t, r), `"a"`)
	require.Error(t, json.Unmarshal([]byte(`{"kind":"highest","version":1,"state":{"b":{"kind":"x","version":1,"state":{}}}}`), r))
	d := r.Decide(start, observe(4, 5, 6))
	require.Equal(t, scaling.StateRefused, d.Code())

	_, err := scaling.Highest()
	require.EqualError(t, err, "members: 0: must be at least one")
	_, err = scaling.Highest(scaling.Member{}, scaling.Member{Name: "a", Policy: p}, scaling.Member{Name: "a", Policy: p})
	require.EqualError(t, err, "members[0].name: \"\": must not be empty\nmembers[0].policy: <nil>: must be set\nmembers[2].name: \"a\": must be unique")
}

// renamed is the script under the reading of another name.
type renamed struct{ name string }

func (renamed) Kind() scaling.Kind { return script{}.Kind() }

func (r renamed) Decide(s scriptState, now time.Time, obs scaling.Observation) (scriptState, scaling.Decision) {
	own := obs.Reading(r.name)
	own.Metric = "want"
	obs.Readings = []scaling.Reading{own}
	return script{}.Decide(s, now, obs)
}

func (renamed) Applied(s scriptState, now time.Time, from, to int32) scriptState {
	return script{}.Applied(s, now, from, to)
}

// timetable asks for a count from start on; nothing for a negative one.
type timetable int32

const scheduled scaling.Code = "Scheduled target"

func (n timetable) At(now time.Time) scaling.Slot {
	if n < 0 {
		return scaling.Slot{}
	}
	return scaling.Slot{
		Replicas: int32(n), InForce: true, Next: now.Add(time.Minute),
		Because: scaling.Step{Code: scheduled, Subject: "office", Numbers: [4]float64{float64(n)}},
	}
}

func TestFloor(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: 8}
	for _, row := range []struct {
		spec, base, floor int32
		want              string
		reported          bool // whether the change is reported to the base
	}{
		{3, 3, 5, "Up 3 -> 5: Lifted office from=3 < floor=5", false},
		{3, 2, 5, "Up 3 -> 5: Asked want=2; Lifted office from=2 < floor=5", false},
		{3, 4, 5, "Up 3 -> 5: Asked want=4; Lifted office from=4 < floor=5", true},
		{3, -1, 5, "Up 3 -> 5: Lifted office from=3 < floor=5", false},
		{5, 4, 5, "Hold at 5: Asked want=4; Lifted office from=4 < floor=5", false},
		{6, 3, 5, "Down 6 -> 5: Asked want=3; Lifted office from=3 < floor=5", true},
		{5, 7, 5, "Up 5 -> 7: Asked want=7", true},
		{5, -1, 5, "Unknown at 5: Asked want=0", false},
		{3, 3, 99, "Up 3 -> 8: Lifted office from=3 < floor=8", false},
		{3, 3, 0, "Hold at 3: Asked want=3", false},
		{3, 2, -1, "Down 3 -> 2: Asked want=2", true},
		{9, 9, -1, "Down 9 -> 8: AboveMax from=9 > max=8", false},
		{0, -1, -1, "Up 0 -> 1: BelowMin from=0 < min=1", false},
		{4, 99, -1, "Up 4 -> 8: Asked want=99; AboveMax from=99 > max=8", true},
	} {
		base := scaling.New(script{})
		p, err := scaling.Floor(base, timetable(row.floor), bounds)
		require.NoError(t, err)
		d := p.Decide(start, want(row.spec, row.base))
		name := fmt.Sprintf("spec=%d base=%d floor=%d", row.spec, row.base, row.floor)
		require.Contains(t, d.Reason(), row.want, name)
		require.NoError(t, scalingtest.Explained(&d), name)
		if row.floor >= 0 {
			require.Equal(t, start.Add(time.Minute), d.Next)
			require.Contains(t, d.Explain(), "Scheduled")
		}
		if !d.Acts() {
			continue
		}
		// A restart between the decision and the change forgets nothing.
		stored := save(t, p)
		base = scaling.New(script{})
		p, err = scaling.Floor(base, timetable(row.floor), bounds)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(stored), p))
		p.Applied(start, d.From, d.Replicas)
		require.Equal(t, row.reported, save(t, base) != `{"kind":"script","version":2,"state":{"decided":1,"applied":null}}`, name)
		p.Applied(start, 7, 6)
		require.Contains(t, save(t, base), "7,6", "another change is reported")
	}
	_, err := scaling.Floor(nil, nil, scaling.Bounds{})
	require.EqualError(t, err, "base: <nil>: must be set\ntimetable: <nil>: must be set\nbounds.max: 0: must be at least 1")
}

func TestBounded(t *testing.T) {
	p, err := scaling.Bounded(scaling.New(script{}), scaling.Bounds{Min: 2, Max: 4})
	require.NoError(t, err)
	for _, row := range []struct {
		spec, base int32
		want       string
	}{
		{3, 9, "Up 3 -> 4: Asked want=9; AboveMax from=9 > max=4"},
		{9, -1, "Down 9 -> 4: AboveMax from=9 > max=4"},
		{3, 0, "Down 3 -> 2: Asked want=0; BelowMin from=0 < min=2"},
		{4, 9, "Hold at 4: Asked want=9; AboveMax from=9 > max=4"},
		{3, -1, "Unknown at 3"},
	} {
		d := p.Decide(start, want(row.spec, row.base))
		require.Contains(t, d.Reason(), row.want)
		require.NoError(t, scalingtest.Explained(&d))
	}
	require.Contains(t, save(t, p), `"kind":"bounded"`)
	_, err = scaling.Bounded(nil, scaling.Bounds{Max: 1})
	require.EqualError(t, err, "base: <nil>: must be set")
}

// asks is the event at which the script asks for n; unknown for a negative n.
func asks(at int, n int32, says string) scalingtest.Event {
	return scalingtest.At(time.Duration(at)*time.Second, says, want(0, n).Readings...)
}

func TestStabilizedSteps(t *testing.T) {
	p, err := scaling.Stabilized(scaling.New(script{}), scaling.Stabilization{Up: 30 * time.Second, Down: time.Minute})
	require.NoError(t, err)
	scalingtest.Steps(t, p, 4,
		asks(0, 4, "Hold Asked 4"),
		asks(15, 9, "Hold UpStabilized 4 from=9 > lowest=4, window=30s"),
		asks(29, 8, "Hold UpStabilized 4 from=8 > lowest=4, window=30s"),
		asks(30, 8, "Up Asked 8"), // the 4 of second 0 is 30 s old
		asks(31, -1, "Unknown Asked 8"),
		asks(45, 5, "Hold DownStabilized 8 from=5 < highest=9, window=1m"),
		asks(74, 5, "Hold DownStabilized 8 from=5 < highest=9, window=1m"),
		asks(75, 5, "Hold DownStabilized 8 from=5 < highest=8, window=1m"), // the 9 of second 15 is gone; the 8 of second 30 holds
		asks(91, 5, "Down Asked 5"),
	)
	_, err = scaling.Stabilized(nil, scaling.Stabilization{Up: -1, Down: -1})
	require.EqualError(t, err, "base: <nil>: must be set\nstabilization.up: -1ns: must not be negative\nstabilization.down: -1ns: must not be negative")
}

// TestStabilizationKeepsRecommendations: what enters the history is what was asked for, not what came out; feeding
// the outcome back would hold a peak for ever.
func TestStabilizationKeepsRecommendations(t *testing.T) {
	p, err := scaling.Stabilized(scaling.New(script{}), scaling.Stabilization{Down: time.Minute})
	require.NoError(t, err)
	p.Decide(start, want(9, 9))
	var d scaling.Decision
	for at := 15; at <= 60; at += 15 {
		d = p.Decide(start.Add(time.Duration(at)*time.Second), want(9, 3))
	}
	require.Equal(t, "Down 9 -> 3: Asked want=3", d.Reason())
}

// TestFirstScaleUpIsNotHeldWithoutAWindow: the count that is found at the start holds windows that look back; one that
// does not has nothing to hold with.
func TestFirstScaleUpIsNotHeldWithoutAWindow(t *testing.T) {
	p, err := scaling.Stabilized(scaling.New(script{}), scaling.Stabilization{Down: time.Minute})
	require.NoError(t, err)
	d := p.Decide(start, want(2, 9))
	require.Equal(t, "Up 2 -> 9: Asked want=9", d.Reason())
	p, err = scaling.Stabilized(scaling.New(script{}), scaling.Stabilization{Up: time.Minute})
	require.NoError(t, err)
	d = p.Decide(start, want(9, 2))
	require.Equal(t, "Down 9 -> 2: Asked want=2", d.Reason())
}

// TestNoWindowHoldsNothingOfTheSameInstant: two decisions at one time differ in what they were asked for; without a
// window the first says nothing about the second.
func TestNoWindowHoldsNothingOfTheSameInstant(t *testing.T) {
	p, err := scaling.Stabilized(scaling.New(script{}), scaling.Stabilization{Down: time.Minute})
	require.NoError(t, err)
	p.Decide(start, want(2, 2))
	d := p.Decide(start, want(2, 9))
	require.Equal(t, "Up 2 -> 9: Asked want=9", d.Reason())
	p, err = scaling.Stabilized(scaling.New(script{}), scaling.Stabilization{Up: time.Minute})
	require.NoError(t, err)
	p.Decide(start, want(9, 9))
	d = p.Decide(start, want(9, 2))
	require.Equal(t, "Down 9 -> 2: Asked want=2", d.Reason())
}

// TestStabilizationIsMinMax checks the formula against a history that is kept whole.
func TestStabilizationIsMinMax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scaling.Stabilization{
			Up:   time.Duration(rapid.IntRange(0, 60).Draw(t, "up")) * time.Second,
			Down: time.Duration(rapid.IntRange(0, 60).Draw(t, "down")) * time.Second,
		}
		p, err := scaling.Stabilized(scaling.New(script{}), s)
		require.NoError(t, err)
		type recommendation struct {
			at time.Time
			n  int32
		}
		var history []recommendation
		now, spec := start, rapid.Int32Range(1, 9).Draw(t, "spec")
		for range rapid.IntRange(1, 30).Draw(t, "ticks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "step")) * time.Second)
			n := rapid.Int32Range(0, 12).Draw(t, "recommendation")
			if len(history) == 0 {
				history = append(history, recommendation{now, spec})
			}
			history = append(history, recommendation{now, n})
			lowest, highest := n, n
			for _, r := range history {
				if now.Sub(r.at) < s.Up {
					lowest = min(lowest, r.n)
				}
				if now.Sub(r.at) < s.Down {
					highest = max(highest, r.n)
				}
			}
			d := p.Decide(now, want(spec, n))
			require.Equal(t, min(max(spec, lowest), highest), d.Replicas)
			if d.Replicas != n { // held: the answer can change when the one that holds is out of the window, not before
				require.True(t, d.Next.After(now))
				require.False(t, d.Next.After(now.Add(max(s.Up, s.Down, time.Millisecond))))
			}
			require.NoError(t, scalingtest.Explained(&d))
			if rapid.Bool().Draw(t, "applied") {
				spec = d.Replicas
			}
		}
	})
}

func TestRateLimitedSteps(t *testing.T) {
	minute := time.Minute
	for name, row := range map[string]struct {
		limits scaling.RateLimits
		spec   int32
		events []scalingtest.Event
	}{
		"no limits": {scaling.RateLimits{}, 2, []scalingtest.Event{asks(0, 90, "Up Asked 90"), asks(1, 1, "Down Asked 1")}},
		"replicas a period, sliding": {
			scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 4, Period: minute}}}},
			2,
			[]scalingtest.Event{
				asks(0, 5, "Up Asked 5"),
				asks(30, 9, "Up UpLimited 6 from=9 > limit=6"),
				asks(59, 9, "Hold UpLimited 6 from=9 > limit=6"),
				asks(60, 20, "Up UpLimited 9 from=20 > limit=9"),
			},
		},
		"removals widen the room for additions": {
			scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 1, Period: minute}}}},
			10,
			[]scalingtest.Event{asks(0, 4, "Down Asked 4"), asks(10, 20, "Up UpLimited 11")},
		},
		"percent of the period's start": {
			scaling.RateLimits{Down: scaling.RateLimit{Limits: []scaling.Limit{{Percent: 10, Period: minute}}}},
			25,
			[]scalingtest.Event{asks(0, 1, "Down DownLimited 22 from=1 < limit=22"), asks(10, 1, "Hold DownLimited 22"), asks(60, 1, "Down DownLimited 19")},
		},
		"a percent policy can always move by one": {
			scaling.RateLimits{
				Up:   scaling.RateLimit{Limits: []scaling.Limit{{Percent: 1, Period: minute}}},
				Down: scaling.RateLimit{Limits: []scaling.Limit{{Percent: 1, Period: minute}}},
			},
			3,
			[]scalingtest.Event{asks(0, 9, "Up UpLimited 4"), asks(61, 0, "Down DownLimited 3"), asks(122, 0, "Down DownLimited 2")},
		},
		"a percentage of nothing still moves": {
			scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Percent: 50, Period: minute}}}},
			0,
			[]scalingtest.Event{asks(0, 9, "Up UpLimited 1")},
		},
		"ten percent of ten is one": { // 10 * 1.1 is 11.000000000000002
			scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Percent: 10, Period: minute}}}},
			10,
			[]scalingtest.Event{asks(0, 90, "Up UpLimited 11")},
		},
		"the largest change counts by default": {
			scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 4, Period: minute}, {Percent: 100, Period: minute}}}},
			10,
			[]scalingtest.Event{asks(0, 90, "Up UpLimited 20")},
		},
		"or the smallest": {
			scaling.RateLimits{Up: scaling.RateLimit{Select: scaling.SelectMin, Limits: []scaling.Limit{{Replicas: 4, Period: minute}, {Percent: 100, Period: minute}}}},
			10,
			[]scalingtest.Event{asks(0, 90, "Up UpLimited 14")},
		},
		"or none": {
			scaling.RateLimits{Down: scaling.RateLimit{Select: scaling.SelectDisabled}},
			10,
			[]scalingtest.Event{asks(0, 1, "Hold DownLimited 10 from=1 < limit=10"), asks(0, 11, "Up Asked 11")},
		},
		"counts at the edge do not wrap": {
			scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Percent: 1<<31 - 1, Period: minute}}}},
			1<<31 - 2,
			[]scalingtest.Event{asks(0, 1<<31-1, "Up Asked 2147483647")},
		},
		"unknown stays unknown": {scaling.RateLimits{}, 2, []scalingtest.Event{asks(0, -1, "Unknown Asked 2")}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := scaling.RateLimited(scaling.New(script{}), row.limits)
			require.NoError(t, err)
			scalingtest.Steps(t, p, row.spec, row.events...)
		})
	}
	_, err := scaling.RateLimited(nil, scaling.RateLimits{
		Up:   scaling.RateLimit{Select: 9, Limits: []scaling.Limit{{}}},
		Down: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: -1, Percent: 5, Period: time.Second}, {Replicas: 1, Percent: -5, Period: time.Second}}},
	})
	require.EqualError(t, err, `base: <nil>: must be set
limits.up.select: Select(9): must be Max, Min or Disabled
limits.up.limits[0].replicas: 0: must be set, or percent
limits.up.limits[0].period: 0s: must be at least one second
limits.down.limits[0].replicas: -1: must not be negative
limits.down.limits[0].percent: 5: must not be set beside replicas
limits.down.limits[1].percent: -5: must not be negative
limits.down.limits[1].percent: -5: must not be set beside replicas`)
}

// TestRateLimitsNeverExceedThePeriod: over any window of one period, no more replicas are added (or removed) than the
// limit allows, whatever was asked for; and the memory stays bounded.
func TestRateLimitsNeverExceedThePeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := time.Duration(rapid.IntRange(1, 60).Draw(t, "period")) * time.Second
		most := rapid.Int32Range(1, 5).Draw(t, "replicas")
		limit := scaling.RateLimit{Limits: []scaling.Limit{{Replicas: most, Period: period}}}
		p, err := scaling.RateLimited(scaling.New(script{}), scaling.RateLimits{Up: limit})
		require.NoError(t, err)
		type change struct {
			at    time.Time
			delta int32
		}
		var changes []change
		now, spec := start, int32(5)
		for range rapid.IntRange(1, 80).Draw(t, "ticks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "step")) * time.Second)
			d := p.Decide(now, want(spec, spec+rapid.Int32Range(0, 9).Draw(t, "more")))
			if !d.Acts() {
				if rapid.Bool().Draw(t, "wait") && !d.Next.IsZero() {
					require.True(t, d.Next.After(now.Add(-time.Second)))
				}
				continue
			}
			p.Applied(now, spec, d.Replicas)
			changes = append(changes, change{now, d.Replicas - spec})
			spec = d.Replicas
			added := int32(0)
			for _, c := range changes {
				if now.Sub(c.at) < period {
					added += c.delta
				}
			}
			require.LessOrEqual(t, added, most)
			require.LessOrEqual(t, strings.Count(save(t, p), `"at":`), int(period/time.Second)+1, "one entry a second of the period")
		}
	})
}

// TestRateLimitsSurviveAClockThatStepsBack: changes that then lie in the future count as recent, none is freed early.
func TestRateLimitsSurviveAClockThatStepsBack(t *testing.T) {
	limits := scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 2, Period: time.Minute}}}}
	p, err := scaling.RateLimited(scaling.New(script{}), limits)
	require.NoError(t, err)
	p.Applied(start, 2, 4)
	d := p.Decide(start.Add(-time.Hour), want(4, 9))
	require.Equal(t, scaling.Hold, d.Verdict, d.Explain())
	d = p.Decide(start.Add(-time.Hour+59*time.Second), want(4, 9))
	require.Equal(t, scaling.Hold, d.Verdict, d.Explain())
	d = p.Decide(start.Add(-time.Hour+time.Minute), want(4, 9))
	require.Equal(t, scaling.Up, d.Verdict, d.Explain())
}

// TestRateLimitsBefore1970: times around and below 0 are times like any other: Next says when a change leaves its
// period.
func TestRateLimitsBefore1970(t *testing.T) {
	limits := scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 1, Period: 2 * time.Second}, {Replicas: 1, Period: time.Minute}}}}
	for _, at := range []int64{-1e9, -61, -60, -2, -1, 0, 1} {
		p, err := scaling.RateLimited(scaling.New(script{}), limits)
		require.NoError(t, err)
		now := time.Unix(at, 0)
		p.Applied(now, 2, 3)
		d := p.Decide(now.Add(time.Second), want(3, 9))
		require.Equal(t, scaling.UpLimited, d.Code())
		require.True(t, d.Next.Equal(now.Add(2*time.Second)), "at %d: %s", at, d.Next)
	}
}

func TestSelectNames(t *testing.T) {
	for s, name := range map[scaling.Select]string{scaling.SelectMax: "Max", scaling.SelectMin: "Min", scaling.SelectDisabled: "Disabled", 7: "Select(7)"} {
		require.Equal(t, name, s.String())
	}
}

// TestRegressionAPolicyIsNoTwoMembers: one policy under two names had two decisions in each round.
func TestRegressionAPolicyIsNoTwoMembers(t *testing.T) {
	p := scaling.New(Tracker{})
	_, err := scaling.Highest(scaling.Member{Name: "a", Policy: p}, scaling.Member{Name: "b", Policy: p})
	require.ErrorContains(t, err, `members[1].policy: "b": must not be that of another member`)
}
