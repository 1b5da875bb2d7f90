package loop_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// other is a stepper of another kind.
type other struct{ stepper }

func (other) Kind() scaling.Kind { return scaling.Kind{Name: "other", Version: 1} }

// compositions are of a stepper, and most of another one beside it.
func compositions(t *testing.T) map[string]scaling.Policy {
	t.Helper()
	bounds := scaling.Bounds{Min: 1, Max: 8}
	timetable, err := cronscale.New(cronscale.Config{Bounds: bounds, Policies: []cronscale.Policy{{Name: "day", Schedule: "@daily", TargetReplicas: 1}}})
	require.NoError(t, err)
	two := func() scaling.Policy {
		p, err := scaling.Highest(scaling.Member{Name: "a", Policy: scaling.New(stepper{})}, scaling.Member{Name: "b", Policy: scaling.New(other{})})
		require.NoError(t, err)
		return p
	}
	floor, err := scaling.Floor(two(), timetable, bounds)
	require.NoError(t, err)
	bounded, err := scaling.Bounded(floor, bounds)
	require.NoError(t, err)
	return map[string]scaling.Policy{"alone": scaling.New(stepper{}), "highest": two(), "floor": floor, "bounded": bounded}
}

// memories returns the states of the steppers in that of a composition, by kind.
func memories(t *testing.T, data json.RawMessage) map[string]string {
	t.Helper()
	var m struct {
		Kind  string
		State map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(data, &m))
	found := map[string]string{}
	switch m.Kind {
	case "stepper", "other":
		found[m.Kind] = string(m.State["last"])
	case "highest":
		for _, member := range m.State {
			maps.Copy(found, memories(t, member))
		}
	default:
		return memories(t, m.State["base"])
	}
	return found
}

// TestCarryOver goes from each composition to each: what is in both keeps its memory, what is new knows of the last change,
// and what is open stays so.
func TestCarryOver(t *testing.T) {
	const rest = `"targets":[{"key":"chat","id":"1"}],"open":[{"key":"chat","from":3,"to":4,"at":1768464000000}],"last":{"from":2,"to":3,"at":1768463990000}`
	steppers := map[string]string{
		"alone":   `{"kind":"stepper","version":1,"state":{"last":1768463000000}}`,
		"highest": `{"kind":"highest","version":1,"state":{"x":{"kind":"stepper","version":1,"state":{"last":1768463000000}}}}`,
		"floor":   `{"kind":"floor","version":1,"state":{"base":{"kind":"stepper","version":1,"state":{"last":1768463000000}},"lifted":{"kind":"other","version":1,"state":{"last":5}}}}`,
		"bounded": `{"kind":"bounded","version":1,"state":{"base":{"kind":"stepper","version":1,"state":{"last":1768463000000}}}}`,
	}
	for from, group := range steppers {
		for to, p := range compositions(t) {
			fresh, err := p.MarshalJSON()
			require.NoError(t, err)
			state, err := loop.CarryOver([]byte(`{"kind":"loop","version":1,"state":{`+rest+`,"group":`+group+`}}`), p)
			require.NoError(t, err, "%s to %s", from, to)
			after, err := p.MarshalJSON()
			require.NoError(t, err)
			require.JSONEq(t, string(fresh), string(after), "the policy is fresh as it was")
			require.Contains(t, string(state), rest)
			var stored struct {
				State struct{ Group json.RawMessage }
			}
			require.NoError(t, json.Unmarshal(state, &stored))
			want := map[string]string{"stepper": "1768463000000"}
			if to != "alone" {
				want["other"] = "1768463990000"
			}
			require.Equal(t, want, memories(t, stored.State.Group), "%s to %s: %s", from, to, state)
			l := loopOf(t, scaling.GroupOf(p), loop.Config{})
			require.NoError(t, l.Restore(state))
		}
	}
}

// TestCarryOverOfWhatNeverChanged: what is new begins afresh.
func TestCarryOverOfWhatNeverChanged(t *testing.T) {
	p := compositions(t)["highest"]
	fresh, err := p.MarshalJSON()
	require.NoError(t, err)
	state, err := loop.CarryOver([]byte(`{"kind":"stepper","version":1,"state":{}}`), p)
	require.NoError(t, err)
	var stored struct {
		State struct{ Group json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(state, &stored))
	require.JSONEq(t, string(fresh), string(stored.State.Group))
}

// TestCarryOverOfWhatCannotBeRead: the error says so, and the policy stays as it was.
func TestCarryOverOfWhatCannotBeRead(t *testing.T) {
	for _, stored := range []string{
		"", "{", `{"kind":"loop","version":2,"state":{}}`, `{"kind":"highest","version":1,"state":[]}`,
		`{"kind":"highest","version":1,"state":{"a":[]}}`, `{"kind":"floor","version":1,"state":{"base":[]}}`,
		`{"kind":"stepper","version":9,"state":{}}`,
	} {
		for to, p := range compositions(t) {
			fresh, err := p.MarshalJSON()
			require.NoError(t, err)
			_, err = loop.CarryOver([]byte(stored), p)
			require.Error(t, err, "%s to %s", stored, to)
			after, err := p.MarshalJSON()
			require.NoError(t, err)
			require.JSONEq(t, string(fresh), string(after))
		}
	}
}
