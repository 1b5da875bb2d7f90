package keda

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// externally returns a ScaledObject of these triggers, each in JSON beside its type, and of what else its spec has.
func externally(t *testing.T, more string, triggers ...string) Object {
	t.Helper()
	for i := range triggers {
		triggers[i] = `{type: external, ` + triggers[i] + `}`
	}
	o, err := ObjectOf(manifest(t, "spec: {scaleTargetRef: {name: chat}, minReplicaCount: 1, maxReplicaCount: 20, "+more+"triggers: ["+strings.Join(triggers, ", ")+"]}"))
	require.NoError(t, err)
	return o
}

// of writes metadata into a trigger.
func of(metadata map[string]string) string {
	data, err := json.Marshal(metadata)
	if err != nil {
		panic(err)
	}
	return "metadata: " + string(data)
}

// TestValueDoesNotRunAway: without the webhook, which writes metricType into the metadata, a trigger with the metricType
// Value got the total, which a HorizontalPodAutoscaler then multiplied by the pods: 36 waiting at a threshold of 10 made
// 3 pods 20 within three looks, where 4 are right.
func TestValueDoesNotRunAway(t *testing.T) {
	w := newWorld(t)
	w.object = externally(t, "", "metricType: Value, "+of(metricMode()))
	trigger := w.trigger(metricMode())
	count := int32(3)
	for range 10 {
		w.replicas(count)
		w.load(36 / float64(count))
		s := w.next(trigger)
		require.NoError(t, s.Unknown)
		if usage := s.Value / 10; math.Abs(usage-1) > 0.1 { // as the HorizontalPodAutoscaler counts, with its tolerance
			count = min(int32(math.Ceil(usage*float64(count))), w.object.Max)
		}
		require.EqualValues(t, 4, count)
	}
}

// TestMetricTypeIsTheScaledObjects: what it says counts, and what contradicts it is refused, which a HorizontalPodAutoscaler
// holds on.
func TestMetricTypeIsTheScaledObjects(t *testing.T) {
	said := func(kind string) map[string]string { return metricMode("metricType", kind) }
	edited := metricMode("threshold", "11")
	environment := metricMode("metricPortFromEnv", "8000")
	const ambiguous = `metricType: "AverageValue": must tell this trigger from others of the ScaledObject, whose own metricType is another`
	for name, tt := range map[string]struct {
		metadata map[string]string
		object   Object
		want     MetricType
		err      string
	}{
		"none":               {metricMode(), externally(t, "", of(metricMode())), AverageValue, ""},
		"AverageValue":       {metricMode(), externally(t, "", "metricType: AverageValue, "+of(metricMode())), AverageValue, ""},
		"Value":              {metricMode(), externally(t, "", "metricType: Value, "+of(metricMode())), Value, ""},
		"both say it":        {said("Value"), externally(t, "", "metricType: Value, "+of(said("Value"))), Value, ""},
		"contradiction":      {said("AverageValue"), externally(t, "", "metricType: Value, "+of(said("AverageValue"))), "", `metricType: "AverageValue": must be the trigger's own metricType, Value, or not be given`},
		"the other way":      {said("Value"), externally(t, "", of(said("Value"))), "", `metricType: "Value": must be the trigger's own metricType, AverageValue, or not be given`},
		"another is Value":   {metricMode(), externally(t, "", of(metricMode()), "metricType: Value, "+of(edited)), AverageValue, ""},
		"twins":              {metricMode(), externally(t, "", of(metricMode()), "metricType: Value, "+of(metricMode())), "", ambiguous},
		"twins that say it":  {said("Value"), externally(t, "", of(said("Value")), "metricType: Value, "+of(said("Value"))), "", strings.Replace(ambiguous, "AverageValue", "Value", 1)},
		"an edit, one type":  {metricMode(), externally(t, "", "metricType: Value, "+of(edited)), Value, ""},
		"an edit, two types": {metricMode(), externally(t, "", of(edited), "metricType: Value, "+of(metricMode("threshold", "12"))), "", ambiguous},
		"an edit, said":      {said("Value"), externally(t, "", of(edited), "metricType: Value, "+of(metricMode("threshold", "12"))), Value, ""},
		"of others":          {metricMode(), externally(t, "", "metricType: Value, "+of(metricMode("scalerName", "other"))), AverageValue, ""},
		"from environment":   {environment, externally(t, "", of(metricMode("threshold", "11")), "metricType: Value, "+of(metricMode("metricPortFromEnv", "PORT"))), Value, ""},
		"no ScaledObject":    {said("Value"), Object{Target: chatTarget, Min: 1, Max: 20}, Value, ""},
		"a formula":          {metricMode(), externally(t, "advanced: {scalingModifiers: {formula: a, target: '1', metricType: Value}}, ", of(metricMode())), Value, ""},
		"a formula, average": {metricMode(), externally(t, "advanced: {scalingModifiers: {formula: a, target: '1'}}, ", "metricType: Value, "+of(metricMode())), AverageValue, ""},
		"replicas":           {replicasMode(), externally(t, "", "metricType: AverageValue, "+of(replicasMode())), AverageValue, ""},
		"replicas, Value":    {replicasMode(), externally(t, "", "metricType: Value, "+of(replicasMode())), "", `metricType: "Value": must be AverageValue in mode replicas: the trigger's own is multiplied by the ready pods`},
	} {
		m := parsed(t, tt.metadata)
		kind, err := m.metricTypeIn(tt.object)
		require.Equal(t, tt.want, kind, name)
		if tt.err == "" {
			require.NoError(t, err, name)
			continue
		}
		require.EqualError(t, err, tt.err, name)
		w := newWorld(t)
		w.load(36)
		w.object = tt.object
		require.EqualError(t, w.round(w.trigger(tt.metadata)).Unknown, tt.err, name)
	}
}

// TestManyTriggersOfOneScaledObject: each is compared with all others, which is bounded.
func TestManyTriggersOfOneScaledObject(t *testing.T) {
	triggers := make([]string, 0, mostExternal+1)
	for i := range mostExternal + 1 {
		triggers = append(triggers, "{type: external, "+of(replicasMode("stateName", fmt.Sprint(i)))+"}")
	}
	text := "spec: {scaleTargetRef: {name: chat}, triggers: [%s]}"
	o, err := ObjectOf(manifest(t, fmt.Sprintf(text, strings.Join(triggers[:mostExternal], ", "))))
	require.NoError(t, err)
	require.Len(t, o.externals(), mostExternal)
	o, err = ObjectOf(manifest(t, fmt.Sprintf(text, strings.Join(triggers, ", "))))
	require.EqualError(t, err, "spec.triggers: 101: must be at most 100 that ask external scalers")
	require.Empty(t, o.externals())
}

// TestMetadataOfAScaledObjectAreBounded: what its external triggers have together, by webhook and rounds.
func TestMetadataOfAScaledObjectAreBounded(t *testing.T) {
	of := func(last int) Object {
		var all []any
		for i := range 8 {
			size := 32 << 10
			if i == 7 {
				size += last
			}
			name := fmt.Sprintf("scalerName%q", DefaultScalerName)
			all = append(all, map[string]any{"type": "external", "metadata": map[string]any{
				"scalerName": DefaultScalerName, "x": strings.Repeat("x", size-len(name)+1),
			}})
		}
		u := manifest(t, "spec: {scaleTargetRef: {name: chat}}")
		u.Object["spec"].(map[string]any)["triggers"] = all
		triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless})
		require.NoError(t, err)
		o, err := ObjectOf(u)
		checked := triggers.Check(u.Object)
		if last == 0 {
			require.NoError(t, err)
			require.NotContains(t, fmt.Sprint(checked), "bytes of metadata of those")
			return o
		}
		const refused = "spec.triggers: 262145: must be at most 262144 bytes of metadata of those that ask external scalers"
		require.EqualError(t, err, refused)
		require.EqualError(t, checked, refused)
		return o
	}
	o := of(0)
	require.Len(t, o.externals(), 8)
	o = of(1)
	require.Empty(t, o.externals())
}

// TestTriggersOfAScaledObjectAreReadOnce, for all that ask who keeps which state, and are kept once.
func TestTriggersOfAScaledObjectAreReadOnce(t *testing.T) {
	var all []external
	for i := range mostExternal {
		all = append(all, external{Metadata: replicasMode("stateName", fmt.Sprint(i))})
	}
	o := Object{}.with(all)
	reads, of := 0, o.owners.of
	o.owners.of = func() []external { reads++; return of() }
	for i := range all {
		m := parsed(t, all[i].Metadata)
		require.False(t, m.shares(o))
	}
	require.Equal(t, 1, reads)
	again := Object{}.with(all)
	require.True(t, o.same(again))
	require.Equal(t, o.triggers, again.triggers)
	require.False(t, o.same(Object{}.with(all[1:])))
}
