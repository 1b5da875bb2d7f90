package loop_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// FuzzRestore restores arbitrary bytes. They are refused, and then nothing is written and nothing stored, or the state can be decided on,
// stored and restored. What CarryOver makes of it for another policy is a state of that policy.
func FuzzRestore(f *testing.F) {
	const group = `{"kind":"stepper","version":1,"state":{"last":1768464000000}}`
	f.Add([]byte{})
	f.Add([]byte(group))
	f.Add([]byte(`[` + group + `]`))
	for _, own := range []string{
		``, `"targets":[{"key":"a","id":"1"}],`, `"open":[{"key":"a","from":3,"to":4,"at":1768464000000,"version":"7"},{"key":"b","from":2,"to":1,"at":1768464000000,"answered":true}],`,
		`"open":[{"key":"a","from":3,"to":4,"at":1768464000000,"delegated":true}],"last":{"from":2,"to":3,"at":1768463000000},`,
		`"contests":[{"key":"a","times":[1768464000000,1768464001000],"until":1768465000000,"level":2}],`,
	} {
		f.Add([]byte(`{"kind":"loop","version":1,"state":{` + own + `"group":` + group + `}}`))
	}
	f.Add([]byte(`{"kind":"loop","version":1,"state":{"group":{"kind":"highest","version":1,"state":{"a":` + group + `,"b":{"kind":"bounded","version":1,"state":{"base":` + group + `}}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		policy, err := scaling.Bounded(scaling.New(stepper{}), scaling.Bounds{Min: 1, Max: 8})
		require.NoError(t, err)
		if carried, err := loop.CarryOver(data, policy); err == nil {
			require.NoError(t, loopOf(t, scaling.GroupOf(policy), loop.Config{}).Restore(carried), "%s", carried)
		}

		l := newLoop(t, loop.Config{Conflicts: 1})
		now := start()
		targets := []loop.Target{{Key: "a", ID: "1", Version: "7", Replicas: 3}}
		if err := l.Restore(data); err != nil {
			var refused *scaling.StateError
			require.ErrorAs(t, err, &refused)
			l.Read(now, targets...)
			step := l.Decide(now, loaded(50))
			require.Equal(t, scaling.StateRefused, step.Total.Code())
			require.Nil(t, step.Store)
			require.Zero(t, write(l, loop.Applied))
			return
		}
		for i := range 4 {
			stored, err := l.State()
			require.NoError(t, err)
			require.LessOrEqual(t, len(stored), 4096+16*len(data))
			again := newLoop(t, loop.Config{})
			require.NoError(t, again.Restore(stored), "%s", stored)
			twice, err := again.State()
			require.NoError(t, err)
			require.Equal(t, string(stored), string(twice))
			require.True(t, json.Valid(stored))

			l.Read(now, targets...)
			step := l.Decide(now, loaded(50))
			require.NoError(t, step.Err)
			if step.Store != nil {
				var bad error
				if i == 2 {
					bad = errors.New("the store did not answer")
				}
				if l.Saved(bad); bad != nil {
					require.NoError(t, l.Restore(l.Stored()))
				}
			}
			for w := range l.Writes() {
				require.Equal(t, targets[w.Index].Replicas, w.From)
				targets[w.Index].Replicas = w.To
				l.Wrote(w, []loop.Result{loop.Applied, loop.Uncertain}[i%2])
			}
			l.Advance(now)
			now = now.Add([]time.Duration{15 * time.Second, 3 * time.Minute, -time.Minute, time.Hour}[i])
		}
	})
}
