package hetero_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/scaling"
)

// counter asks for as many replicas as were counted.
type counter struct{}

func (counter) Kind() scaling.Kind { return scaling.Kind{Name: "counter", Version: 1} }

func (counter) Decide(s struct{}, _ time.Time, obs scaling.Observation) (struct{}, scaling.Decision) {
	h := obs.Histogram("requests")
	if h == nil {
		return s, scaling.UnknownAt(obs.SpecReplicas, "NoSample", "requests")
	}
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(int32(h.Total()), "Counted", "")
	return s, d
}

func (counter) Applied(s struct{}, _ time.Time, _, _ int32) struct{} { return s }

// TestTheTotalSeesHistograms: they are of all targets together, as the readings are.
func TestTheTotalSeesHistograms(t *testing.T) {
	f := fleet(t, 1, hetero.Type{Name: "a", Cost: 10, Min: 1, Max: 20}, hetero.Type{Name: "b", Cost: 25, Max: 20})
	g := groupOf(t, scaling.New(counter{}), f, hetero.Options{})
	d := g.Decide(time.Unix(1e9, 0), scaling.GroupObservation{
		Targets: []scaling.TargetObservation{
			{Name: "a", SpecReplicas: 1, ReadyReplicas: 1}, {Name: "b", SpecReplicas: 1, ReadyReplicas: 1},
		},
		Histograms: []scaling.Histogram{{Metric: "requests", Counts: []float64{7}, Sum: 7}},
	})
	require.EqualValues(t, 7, d.Total.Replicas, d.Explain())
}
