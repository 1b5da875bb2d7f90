package loop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

// A gatherer learns something every ten minutes of what it has gathered, which is large.
type gatherer struct{}

type gathered struct {
	Seen    []int `json:"volatile,omitempty"`
	Learned int   `json:"learned"`
}

func (gatherer) Kind() scaling.Kind { return scaling.Kind{Name: "gatherer", Version: 1} }

func (gatherer) Decide(s gathered, _ time.Time, obs scaling.Observation) (gathered, scaling.Decision) {
	if s.Seen = append(s.Seen, len(s.Seen)); len(s.Seen)%40 == 0 {
		s.Learned++
	}
	return s, scaling.HoldAt(obs.SpecReplicas)
}

func (gatherer) Applied(s gathered, _ time.Time, _, _ int32) gathered { return s }

// TestWhatIsVolatileIsNotStored: of a state, alone or in a composition, only the rest is stored, and when that has changed;
// the loop itself forgets nothing, be it that it looks ahead.
func TestWhatIsVolatileIsNotStored(t *testing.T) {
	highest, err := scaling.Highest(scaling.Member{Name: "a", Policy: scaling.New(gatherer{})}, scaling.Member{Name: "b", Policy: scaling.New(gatherer{})})
	require.NoError(t, err)
	for name, policy := range map[string]scaling.Policy{"alone": scaling.New(gatherer{}), "composed": highest} {
		t.Run(name, func(t *testing.T) {
			group := scaling.GroupOf(policy)
			l := loopOf(t, group, loop.Config{Period: period})
			require.NoError(t, l.Restore(nil))
			now, saves := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0
			for range 400 {
				now = now.Add(period)
				l.Read(now, loop.Target{Key: "a", Replicas: 3})
				step := l.Decide(now, scaling.OneTarget(3, scaling.Exactly("load", 1)))
				require.NoError(t, step.Err)
				if step.Store != nil {
					saves++
					require.NotContains(t, string(step.Store), "volatile")
					require.Less(t, len(step.Store), 400)
					l.Saved(nil)
				}
				l.Advance(now)
			}
			require.Contains(t, string(l.Stored()), `"learned":10`)
			require.LessOrEqual(t, saves, 12)
			live, err := group.MarshalJSON()
			require.NoError(t, err)
			require.Contains(t, string(live), ",398,399]", "what was gathered")

			again := loopOf(t, scaling.GroupOf(policy), loop.Config{Period: period})
			require.NoError(t, again.Restore(l.Stored()))
			state, err := again.State()
			require.NoError(t, err)
			require.JSONEq(t, string(l.Stored()), string(state), fmt.Sprint(name))
		})
	}
}
