package forecast_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// FuzzState restores arbitrary bytes: a state is refused and kept byte for byte, or it can be decided on, and stored and restored.
func FuzzState(f *testing.F) {
	for _, past := range [][]forecast.Sample{nil, history(day(0), day(2), officeHours)} {
		p := policyOf(f, minuteConfig(nil), past...)
		for n, at := 0, day(2); n < 30; n, at = n+1, at.Add(time.Minute) {
			p.Decide(at, scaling.Observation{SpecReplicas: 2, ReadyReplicas: 2, Readings: []scaling.Reading{scaling.Exactly(metric, officeHours(at))}})
		}
		p.Applied(day(2).Add(time.Hour), 2, 3)
		whole, err := p.MarshalJSON()
		require.NoError(f, err)
		f.Add(strings.TrimSuffix(strings.TrimPrefix(string(whole), `{"kind":"forecast","version":1,"state":`), "}"))
	}
	f.Add(`{"base":{"kind":"follower","version":1,"state":{}},"memory":{"now":{},"scores":[]}}`)
	f.Add(`{"base":{"kind":"follower","version":1,"state":{}},"lift":{"from":1,"to":2},"memory":{"demand":"x","zone":"UTC","set":true,"at":1772409600,"unit":1e15,"now":{"n":5908032,"l":1,"u":2,"s":3},"scores":[]}}`)
	f.Fuzz(func(t *testing.T, data string) {
		envelope := []byte(`{"kind":"forecast","version":1,"state":` + data + `}`)
		policy := policyOf(t, minuteConfig(nil))
		if err := policy.UnmarshalJSON(envelope); err != nil {
			var refused *scaling.StateError
			require.ErrorAs(t, err, &refused)
			d := policy.Decide(day(2), scaling.Observation{SpecReplicas: 3})
			require.Equal(t, scaling.StateRefused, d.Code())
			if json.Valid(envelope) {
				kept, err := policy.MarshalJSON()
				require.NoError(t, err)
				require.Equal(t, string(envelope), string(kept))
			}
			return
		}
		at := day(2)
		for i := range 6 {
			stored, err := policy.MarshalJSON()
			require.NoError(t, err)
			require.LessOrEqual(t, len(stored), 4096+16*len(data))
			again := policyOf(t, minuteConfig(nil))
			require.NoError(t, again.UnmarshalJSON(stored), "%s", stored)
			twice, err := again.MarshalJSON()
			require.NoError(t, err)
			require.Equal(t, string(stored), string(twice))

			obs := scaling.Observation{SpecReplicas: 5, ReadyReplicas: int32(i), Readings: []scaling.Reading{scaling.Exactly(metric, 40*float64(i))}}
			d := policy.Decide(at, obs)
			require.NoError(t, scalingtest.Explained(&d), d.Explain())
			require.True(t, d.Verdict == scaling.Unknown || bounds().Contains(d.Replicas), d.Explain())
			if d.Acts() {
				policy.Applied(at, 5, d.Replicas)
			}
			at = at.Add([]time.Duration{time.Minute, 5 * time.Minute, -time.Hour, 25 * time.Hour, time.Minute, time.Minute}[i])
		}
	})
}
