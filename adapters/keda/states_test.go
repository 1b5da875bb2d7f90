package keda

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
)

var _ k8s.Pruner = (*k8s.ConfigMapStore)(nil) // otherwise nothing is dropped

// TestStatesOfEditsAreDropped: each edit of a metric, an algorithm or a name begins a state of its own. All were kept, until after
// some 56 the ConfigMap was full and the HorizontalPodAutoscaler held for ever. What others have written stays.
func TestStatesOfEditsAreDropped(t *testing.T) {
	w := newWorld(t)
	others := map[string]string{
		"note":                                           "by hand",
		"realtime-0123456789ab":                          "what is no record",
		"realtime-00000000000a":                          `{"kind":"keda.trigger","version":3,"at":1577836800000,"loop":{}}`,
		"realtime-00000000000b":                          `{"kind":"keda.trigger","version":2,"loop":{}}`,
		"realtime-00000000000c":                          `{"kind":"another","version":2,"at":1577836800000,"loop":{}}`,
		"realtime-0000000000000":                         `{"kind":"keda.trigger","version":2,"at":1577836800000,"loop":{}}`,
		"realtime-somebody-0123456789ab":                 `{"kind":"keda.trigger","version":2,"at":1577836800000,"loop":{}}`,
		"0123456789ab":                                   `{"kind":"keda.trigger","version":2,"at":1577836800000,"loop":{}}`,
		"realtime-0123456789AB":                          `{"kind":"keda.trigger","version":2,"at":1577836800000,"loop":{}}`,
		identityIn(replicasMode("stateName", "present")): `{"kind":"keda.trigger","version":2,"at":1577836800000,"loop":{}}`,
		identityIn(replicasMode("scalerName", "another", "stateName", "present too")): `{"kind":"keda.trigger","version":2,"at":1577836800000,"loop":{}}`,
	}
	for key, state := range others {
		w.store.data[key] = []byte(state)
	}
	w.store.data["proportional-forecast-0123456789ab"] = []byte(`{"kind":"keda.trigger","version":1,"at":1577836800000,"policy":{}}`)
	keys := func() []string {
		own := maps.Clone(w.store.data)
		for key, state := range others {
			require.Equal(t, state, string(own[key]), key)
			delete(own, key)
		}
		return slices.Sorted(maps.Keys(own))
	}
	w.load(3)
	var before string
	for edit := range 60 {
		metadata := replicasMode("metricName", fmt.Sprint("m", edit))
		w.object = externally(t, "", of(metadata), of(replicasMode("stateName", "present")), of(replicasMode("scalerName", "another", "stateName", "present too")), of(map[string]string{"of": "another kind"}))
		trigger := w.trigger(metadata)
		require.NoError(t, w.round(trigger).Unknown)
		if edit > 0 {
			require.Equal(t, slices.Sorted(slices.Values([]string{before, identityIn(metadata)})), keys(), "the one before may be in use")
		}
		before = identityIn(metadata)
		w.now = w.now.Add(DefaultIdle)
		require.NoError(t, w.round(trigger).Unknown)
		if edit > 0 {
			require.Len(t, keys(), 2, "just as long")
		}
		w.now = w.now.Add(time.Minute)
		require.NoError(t, w.round(trigger).Unknown)
		require.Equal(t, []string{before}, keys())
	}
}

// TestStatesStayWhereTriggersAreNotKnown: a key may be of one that is not understood here.
func TestStatesStayWhereTriggersAreNotKnown(t *testing.T) {
	own := replicasMode()
	for name, object := range map[string]Object{
		"none":                {Target: chatTarget, Min: 1, Max: 20},
		"wrong":               externally(t, "", of(own), of(map[string]string{"scalerName": "keda-kaito-scaler", "mode": "of tomorrow"})),
		"from environment":    externally(t, "", of(own), of(replicasMode("metricNameFromEnv", "METRIC"))),
		"a name of the later": externally(t, "", of(own), of(map[string]string{"scalerNameFromEnv": "NAME"})),
	} {
		w := newWorld(t)
		w.load(3)
		w.object = object
		w.store.data["realtime-0123456789ab"] = []byte(`{"kind":"keda.trigger","version":2,"at":1577836800000,"loop":{}}`)
		require.NoError(t, w.round(w.trigger(own)).Unknown, name)
		require.Len(t, w.store.data, 2, name)
		w.object = externally(t, "", of(own))
		w.now = w.now.Add(time.Minute)
		require.NoError(t, w.round(w.trigger(own)).Unknown, name)
		require.Len(t, w.store.data, 1, name)
	}
}
