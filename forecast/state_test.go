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

// TestMethodsHaveNames: a number that is no method has a name, too, as those of all other packages.
func TestMethodsHaveNames(t *testing.T) {
	for m, want := range map[forecast.Method]string{forecast.Daily: "Daily", forecast.Weekly: "Weekly", 9: "Method(9)", -1: "Method(-1)"} {
		require.Equal(t, want, m.String())
	}
}
