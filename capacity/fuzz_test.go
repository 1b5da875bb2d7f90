package capacity

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// FuzzState restores arbitrary bytes: a state is refused, as a *scaling.StateError, and kept byte for byte, or it is stored as it was
// read, and can be decided on and stored.
func FuzzState(f *testing.F) {
	c := config()
	scaler := build(f, c, found(someTrial()))
	p := scaling.New(scaler)
	served := 0.0
	for i := range 40 {
		served += 10 * float64(i%7)
		now := start().Add(time.Duration(i) * 15 * time.Second)
		p.Decide(now, observation(4, float64(i%3), 20, served, 1500, 200))
		if i == 20 {
			p.Applied(now, 4, 6)
		}
	}
	for _, form := range []func(scaling.Policy) ([]byte, error){scaling.Policy.MarshalJSON, func(p scaling.Policy) ([]byte, error) { return scaling.Durable(p) }} {
		whole, err := form(p)
		require.NoError(f, err)
		var sealed struct {
			State json.RawMessage `json:"state"`
		}
		require.NoError(f, json.Unmarshal(whole, &sealed))
		f.Add([]byte(sealed.State))
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"tuning":{"capacity":0.5,"fleet":100,"promptToken":1e-4,"answerToken":2e-4,"hold":300},"guard":1.5}`))
	f.Add([]byte(`{"volatile":{"since":1772366400,"asked":1772366415,"samples":[{"at":1772366400},{"at":1772366415,"firsts":9}],"needs":[{"at":1772366400,"value":2}]},"rises":[{"at":1772366400,"count":5}],"starts":[60]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		envelope := append(append([]byte(`{"kind":"capacity","version":1,"state":`), data...), '}')
		policy := scaling.New(scaler)
		if err := policy.UnmarshalJSON(envelope); err != nil {
			var refused *scaling.StateError
			require.ErrorAs(t, err, &refused)
			d := policy.Decide(start(), observation(4, 0, 20, 0, 1500, 200))
			require.Equal(t, scaling.StateRefused, d.Code())
			if json.Valid(envelope) {
				kept, err := policy.MarshalJSON()
				require.NoError(t, err)
				require.Equal(t, string(envelope), string(kept))
			}
			return
		}
		stored := storedAgain(t, scaler, policy)
		require.LessOrEqual(t, len(stored), 1000+100*len(data))
		for i := range 5 {
			now := start().Add(time.Duration(i) * 15 * time.Second)
			d := policy.Decide(now, observation(4, float64(3*i), 20, 60*float64(i), 1500, 200))
			require.NoError(t, scalingtest.Explained(&d), d.Explain())
			require.True(t, d.Verdict == scaling.Unknown || c.Bounds.Contains(d.Replicas), d.Explain())
			if d.Acts() {
				policy.Applied(now, 4, d.Replicas)
			}
			storedAgain(t, scaler, policy)
		}
	})
}

// storedAgain returns the state of a policy, which another takes and stores as it is.
func storedAgain(t *testing.T, s Scaler, p scaling.Policy) []byte {
	t.Helper()
	stored, err := p.MarshalJSON()
	require.NoError(t, err)
	again := scaling.New(s)
	require.NoError(t, again.UnmarshalJSON(stored), "%s", stored)
	twice, err := again.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, string(stored), string(twice))
	return stored
}
