package keda

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

// FuzzRecord reads any bytes as the stored state of a trigger. They are refused, and then stay in the store as they are and say why there is
// no value, or rounds go on from them, and what these store is read back the same.
func FuzzRecord(f *testing.F) {
	const policy = `{"kind":"realtime","version":1,"state":{"seen":1768464000000,"streaks":[{"metric":"1906c4506bc693b8","side":1,"since":1768464000000,"last":1768464000000}]}}`
	for _, text := range []string{
		``, `{}`, `{"kind":"keda.trigger","version":3,"at":1768464000000,"loop":{}}`, `{"kind":"other","version":2,"at":1768464000000,"loop":{}}`,
		`{"kind":"keda.trigger","version":1,"config":"8234817564922707","at":1768464000000,"from":4,"to":5,"because":"Up","policy":` + policy + `}`,
		`{"kind":"keda.trigger","version":1,"at":1768464000000,"from":4,"to":4,"unknown":"u","policy":` + policy + `}`,
		`{"kind":"keda.trigger","version":2,"config":"8234817564922707","at":1768464000000,"from":4,"to":5,"because":"Up","loop":` + policy + `}`,
		`{"kind":"keda.trigger","version":2,"at":1768464000000,"from":4,"to":5,"loop":{"kind":"loop","version":1,"state":{"targets":[{"key":"Deployment.apps models/chat"}],"open":[{"key":"Deployment.apps models/chat","from":4,"to":5,"at":1768464000000,"delegated":true}],"group":` + policy + `}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(t)
		w.load(15)
		trigger, ok := w.trigger(replicasMode()).(*podTrigger)
		require.True(t, ok)
		require.NoError(t, trigger.build())
		if len(data) > 0 {
			w.store.data[trigger.key] = data
		}
		r, err := parseRecord(data, trigger.target.String())
		if err != nil {
			var refused *scaling.StateError
			require.ErrorAs(t, err, &refused)
			require.Zero(t, r)
		} else if len(data) > 0 {
			r.Kind = recordKind() // as the next round stores it
			again, err := json.Marshal(r)
			require.NoError(t, err)
			same, err := parseRecord(again, trigger.target.String())
			require.NoError(t, err)
			loop, err := json.Marshal(r.Loop) // compared as text: numbers may be beyond float64
			require.NoError(t, err)
			require.Equal(t, string(loop), string(same.Loop))
			r.Loop, same.Loop = nil, nil
			require.Equal(t, r, same)
		}
		for range 4 {
			s := w.next(trigger)
			require.False(t, s.Value < 0)
			if err != nil {
				require.Error(t, s.Unknown)
				require.Equal(t, string(data), string(w.store.data[trigger.key]))
				require.Zero(t, w.store.saves)
				continue
			}
			if s.Unknown != nil { // the record was read, and its loop refused
				continue
			}
			stored := w.store.data[trigger.key]
			require.LessOrEqual(t, len(stored), 8192+16*len(data))
			r, err := parseRecord(stored, trigger.target.String())
			require.NoError(t, err)
			again, err := json.Marshal(r)
			require.NoError(t, err)
			if w.store.saves > 0 {
				require.Equal(t, string(stored), string(again))
			}
			w.replicas(max(1, r.To%50))
		}
	})
}
