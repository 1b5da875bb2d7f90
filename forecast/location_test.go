package forecast_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/scaling"
)

// TestRegressAPlaceHasItsOwnName: a stored state knows its days by the name of their place. Local is another one on every
// machine, and zones without a name were all one: the days of a state were taken for those of the new place.
func TestRegressAPlaceHasItsOwnName(t *testing.T) {
	for _, wrong := range []*time.Location{time.Local, time.FixedZone("", 3600), {}} {
		c := forecast.For(scaling.Bounds{Min: 1, Max: 8}, wrong)
		require.ErrorContains(t, c.Validate(), "location: ")
	}
	for _, right := range []*time.Location{nil, time.UTC, time.FixedZone("UTC+1", 3600)} {
		c := forecast.For(scaling.Bounds{Min: 1, Max: 8}, right)
		require.NoError(t, c.Validate())
	}
}
