package proportional_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// TestDemandIsTheLoadByItsMeasure: pods that did not answer are in the load's ends as Decide takes them.
func TestDemandIsTheLoadByItsMeasure(t *testing.T) {
	obs := scaling.Observation{ReadyReplicas: 4, Readings: []scaling.Reading{{Metric: "load", Lower: 6, Upper: 9, Values: 2, Failed: 1, NotReady: 1}}}
	for measure, want := range map[proportional.Measure][2]float64{
		proportional.PerPod: {24, 36}, proportional.Total: {6, 9}, proportional.Average: {24, 36},
	} {
		load, each := proportional.Metric{Name: "load", Target: 35, Measure: measure}.Demand(&obs, nil)
		assert.True(t, load.Known())
		assert.InDelta(t, want[0], load.Lower, 0, "%s", measure)
		assert.InDelta(t, want[1], load.Upper, 0, "%s", measure)
		assert.Equal(t, int32(1), load.Failed)
		assert.InDelta(t, 35, each, 0)
	}
	load, _ := proportional.Metric{Name: "other", Target: 35}.Demand(&obs, nil)
	assert.False(t, load.Known())
}
