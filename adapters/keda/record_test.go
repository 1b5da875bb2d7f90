package keda

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
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
		require.Zero(t, w.observes.Load())
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

func TestParseRecord(t *testing.T) {
	const fine = `"at":1768464000000,"loop":{}}`
	for text, want := range map[string]string{
		``: "",
		`{"kind":"keda.trigger","version":2,` + fine:                                    "",
		`{"kind":"keda.trigger","version":2,"from":0,"to":0,` + fine:                    "",
		`{"kind":"keda.trigger","version":2,"from":1,"to":1,` + fine:                    "",
		`{"kind":"keda.trigger","version":2,"from":-1,"to":3,` + fine:                   "from -1 and to 3: must be at least 0",
		`{"kind":"keda.trigger","version":2,"from":3,"to":-1,` + fine:                   "from 3 and to -1: must be at least 0",
		`{"kind":"keda.trigger","version":3,` + fine:                                    scaling.ErrNewerState.Error(),
		`{"kind":"keda.trigger","version":0,` + fine:                                    "version 0 does not exist",
		`{"kind":"other","version":2,` + fine:                                           scaling.ErrOtherState.Error(),
		`{"kind":"other","version":1,"at":1768464000000,"policy":{}}`:                   scaling.ErrOtherState.Error(),
		`{"kind":"keda.trigger","version":2,"at":1768464000000,"policy":{}}`:            "the fields loop (version 1: policy) and at must be there",
		`{"kind":"keda.trigger","version":1,"at":1768464000000,"loop":{}}`:              "",
		`{"kind":"keda.trigger","version":1,"from":"4","at":1768464000000,"policy":{}}`: "json: cannot unmarshal string into Go struct field .record.from of type int32",
	} {
		_, err := parseRecord([]byte(text), "k")
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		var e *scaling.StateError
		require.ErrorAs(t, err, &e, text)
		require.EqualError(t, e.Err, want, text)
	}
	_, err := parseRecord([]byte(`{"kind":"keda.trigger","version":3,`+fine), "k")
	require.ErrorIs(t, err, scaling.ErrNewerState)
}

// TestWhichRecordIsAnswered: one of this configuration that is younger than nine tenths of an interval, by whichever clock it
// was made, as long as that is no interval ahead.
func TestWhichRecordIsAnswered(t *testing.T) {
	at, interval := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC), 10*time.Second
	r := record{Config: "c", At: scaling.StampOf(at)}
	for age, want := range map[time.Duration]bool{
		0: true, 9*time.Second - 1: true, 9 * time.Second: false, -10 * time.Second: true, -10*time.Second - 1: false,
	} {
		require.Equal(t, want, r.fresh("c", at.Add(age), interval), age)
	}
	require.False(t, r.fresh("other", at, interval))
	require.False(t, (&record{Config: "c"}).fresh("c", at, interval), "nothing is stored")
}

// TestWhatARecordSays: a target that is to have replicas is active, and where nothing is known one that has them.
func TestWhatARecordSays(t *testing.T) {
	at := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		r       record
		value   float64
		active  bool
		unknown string
	}{
		{record{From: 3, To: 0}, 0, false, ""},
		{record{From: 0, To: 1}, 1, true, ""},
		{record{From: 0, To: 0, Unknown: "u"}, 0, false, "u"},
		{record{From: 1, To: 1, Unknown: "u"}, 1, true, "u"},
	} {
		row.r.At = scaling.StampOf(at)
		s := row.r.snapshot(Spec{"q", 1}, 20*time.Second, row.r.At.Time())
		require.Equal(t, row.active, s.Active)
		require.InDelta(t, row.value, s.Value, 0)
		require.Equal(t, at.Add(21*time.Second), s.Next.UTC())
		if row.unknown == "" {
			require.NoError(t, s.Unknown)
		} else {
			require.EqualError(t, s.Unknown, row.unknown)
		}
	}
}

// TestWhatIsOpenInARecordOfVersionOne: a change that was asked for, and nothing else.
func TestWhatIsOpenInARecordOfVersionOne(t *testing.T) {
	for text, open := range map[string]bool{
		`"from":4,"to":5,`: true, `"from":4,"to":4,`: false, `"from":4,"to":5,"unknown":"u",`: false, `"from":4,"to":4,"unknown":"u",`: false,
	} {
		r, err := parseRecord([]byte(`{"kind":"keda.trigger","version":1,"at":1768464000000,`+text+`"policy":{}}`), "k")
		require.NoError(t, err)
		require.Equal(t, open, strings.Contains(string(r.Loop), `"open"`), text)
	}
}

// TestASnapshotKeepsItsAge: what another replica has stored is as old after the clock was set back, or else it would hold, and never
// be stale, for as long as the clock was set back.
func TestASnapshotKeepsItsAge(t *testing.T) {
	now := time.Now()
	r := record{At: scaling.StampOf(now.Add(-time.Second)), To: 3}
	s := r.snapshot(Spec{"q", 1}, 20*time.Second, now)
	later := wallAhead(now.Add(2*time.Second), -time.Hour)
	require.InDelta(t, 3, later.Sub(s.At).Seconds(), 0.01)
	require.InDelta(t, 18, s.Next.Sub(later).Seconds(), 0.01)
}
