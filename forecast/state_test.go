package forecast_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/scaling"
)

// TestWhatIsRememberedIsOfOneDemand: of another metric nothing is kept but how long starts take.
func TestWhatIsRememberedIsOfOneDemand(t *testing.T) {
	c := configOf(nil)
	c.Demand = "requests"
	one := policyOf(t, c, history(day(0), day(2), everyDay)...)
	one.Decide(day(2), scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(metric, 30)}})
	one.Applied(day(2), 3, 4)
	state, err := one.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(state), `"demand":"requests"`)

	same := policyOf(t, c)
	require.NoError(t, same.UnmarshalJSON(state))
	kept, err := same.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, string(state), string(kept))

	c.Demand = "tokens"
	other := policyOf(t, c)
	require.NoError(t, other.UnmarshalJSON(state))
	kept, err = other.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(kept), `"memory":{"demand":"tokens","zone":"UTC","now":{},"scores":`)
	require.Contains(t, string(kept), `"count":4`)
	require.NotContains(t, string(kept), `"days"`)

	c.Demand = strings.Repeat("x", 513)
	require.ErrorContains(t, c.Validate(), "demand")
}

// TestRegressionTheStateOfBaseAloneIsRead: where a policy document has a floor that it was stored without, as capacity since it has one by
// default, the state under the same key was refused, and the fleet was not scaled.
func TestRegressionTheStateOfBaseAloneIsRead(t *testing.T) {
	base := scaling.New(follower(10))
	state, err := base.MarshalJSON()
	require.NoError(t, err)
	past := history(day(0), day(2), everyDay)
	fresh, err := policyOf(t, configOf(nil), past...).MarshalJSON()
	require.NoError(t, err)

	p := policyOf(t, configOf(nil), past...)
	for range 2 {
		require.NoError(t, p.UnmarshalJSON(state))
		now, err := p.MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, string(fresh), string(now))
		d := p.Decide(day(2), scaling.Observation{SpecReplicas: 2, ReadyReplicas: 2, Readings: []scaling.Reading{scaling.Exactly(metric, 20)}})
		require.Equal(t, int32(2), d.Replicas)
		require.ErrorIs(t, p.UnmarshalJSON([]byte(`{"kind":"realtime","version":1,"state":{}}`)), scaling.ErrOtherState)
		d = p.Decide(day(2), scaling.Observation{SpecReplicas: 2})
		require.Equal(t, scaling.StateRefused, d.Code())
	}
}

// TestRegressionARefusedStateOfBaseSaysWhy: of a state of base alone that is newer, or damaged, it was said that it is of another kind of
// policy.
func TestRegressionARefusedStateOfBaseSaysWhy(t *testing.T) {
	p := policyOf(t, configOf(nil))
	for state, want := range map[string]string{
		`{"kind":"follower","version":2,"state":{}}`:      "state of follower version 2 refused by policy follower version 1: state was written by a newer version",
		`{"kind":"follower","version":1,"state":{"a":1}}`: `state of follower version 1 refused by policy follower version 1: json: unknown field "a"`,
		`{"kind":"realtime","version":1,"state":{}}`:      "state of realtime version 1 refused by policy forecast version 1: state is of another kind of policy",
	} {
		require.EqualError(t, p.UnmarshalJSON([]byte(state)), want)
		d := p.Decide(day(2), scaling.Observation{SpecReplicas: 2})
		require.Equal(t, scaling.StateRefused, d.Code())
		kept, err := p.MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, state, string(kept))
	}
}

// TestMethodsHaveNames: a number that is no method has a name, too, as those of all other packages.
func TestMethodsHaveNames(t *testing.T) {
	for m, want := range map[forecast.Method]string{forecast.Daily: "Daily", forecast.Weekly: "Weekly", 9: "Method(9)", -1: "Method(-1)"} {
		require.Equal(t, want, m.String())
	}
}
