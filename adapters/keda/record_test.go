package keda

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRecordOfVersionOne: what versions before the loop stored goes on, and so does the change that was asked for then.
func TestRecordOfVersionOne(t *testing.T) {
	const key = "realtime-3f0359a361e9" // the same triggers have the same place
	state := func(asked string) []byte {
		return []byte(`{"kind":"keda.trigger","version":1,"config":"8234817564922707","at":1768464000000,` + asked +
			`"policy":{"kind":"realtime","version":1,"state":{"seen":1768464000000,"streaks":[{"metric":"1906c4506bc693b8","side":1,"since":1768464000000,"last":1768464000000}]}}}`)
	}
	t.Run("carried out", func(t *testing.T) {
		w := newWorld(t)
		w.store.data[key] = state(`"from":4,"to":5,"because":"Up 4 -\u003e 5: AboveHigh",`)
		w.replicas(5)
		w.load(15)
		trigger := w.trigger(replicasMode())
		requireCooling(t, w.next(trigger))
		require.Contains(t, string(w.store.data[key]), `{"kind":"keda.trigger","version":2,`)
		for range 3 {
			requireCooling(t, w.next(trigger))
		}
		require.InDelta(t, 6, w.next(trigger).Value, 0)
	})
	t.Run("not yet", func(t *testing.T) {
		w := newWorld(t)
		w.store.data[key] = state(`"from":4,"to":5,"because":"Up 4 -\u003e 5: AboveHigh",`)
		w.load(15)
		trigger := w.trigger(replicasMode())
		require.InDelta(t, 5, w.next(trigger).Value, 0)
		w.replicas(5)
		w.load(15)
		requireCooling(t, w.next(trigger))
	})
	t.Run("nothing was known", func(t *testing.T) {
		w := newWorld(t)
		w.store.data[key] = state(`"from":4,"to":4,"unknown":"Unknown at 4",`)
		w.replicas(5)
		w.load(15)
		require.InDelta(t, 6, w.next(w.trigger(replicasMode())).Value, 0, "somebody else's change starts no cooldown")
	})
	t.Run("another replica's answer", func(t *testing.T) {
		w := newWorld(t)
		w.store.data[key] = state(`"from":4,"to":5,"because":"Up 4 -\u003e 5: AboveHigh",`)
		trigger, ok := w.trigger(replicasMode()).(*podTrigger)
		require.True(t, ok)
		require.NoError(t, trigger.build())
		trigger.config = "8234817564922707"
		w.now = w.now.Add(5 * time.Second)
		require.InDelta(t, 5, w.round(trigger).Value, 0)
		require.Zero(t, w.observes)
	})
}

// TestOtherCompositionsHaveOtherStates: a trigger to which something is added does not find a state that it cannot use.
func TestOtherCompositionsHaveOtherStates(t *testing.T) {
	const realtime = "realtime: {metrics: [{threshold: {high: 10, low: 5}}]}"
	const saturation = "saturation: {kvCacheSource: {name: a}, queueSource: {name: b}}"
	w := newWorld(t)
	w.load(15)
	scalers := []string{
		realtime, realtime + "\nstabilization: {downSeconds: 60}", realtime + "\nrateLimits: {up: {limits: [{replicas: 2, periodSeconds: 30}]}}",
		realtime + "\nstatic: {replicas: 6}", "static: {replicas: 6}", saturation, "saturation: {queueSource: {name: b}}", saturation + "\nstatic: {replicas: 6}",
	}
	for _, scaler := range scalers {
		s := w.next(w.trigger(map[string]string{"scalerName": "keda-kaito-scaler", "mode": "replicas", "scaler": scaler}))
		if !strings.Contains(scaler, "saturation") { // of which one reading alone says nothing
			require.NoError(t, s.Unknown, scaler)
		}
	}
	require.Len(t, w.store.data, len(scalers))
}

// TestAnotherTarget: what was decided for a target is not held against one that was made anew under its name.
func TestAnotherTarget(t *testing.T) {
	w := newWorld(t)
	w.scale.UID = "one"
	trigger := w.trigger(replicasMode())
	w.load(15)
	w.round(trigger)
	w.replicas(5)
	w.load(15)
	requireCooling(t, w.next(trigger))
	w.scale.UID = "two"
	s := w.next(trigger)
	require.InDelta(t, 6, s.Value, 0, s.Because)
	w.replicas(6)
	w.load(15)
	requireCooling(t, w.next(trigger))
	w.scale.UID = ""
	w.object.Target.Name = "other"
	require.InDelta(t, 7, w.next(trigger).Value, 0)
}
