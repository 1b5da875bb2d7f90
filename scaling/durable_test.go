package scaling_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/scaling"
)

// A hoarder counts its decisions, and gathers what cannot even be marshalled.
type hoarder struct{}

type hoarded struct {
	Heap  *heap `json:"volatile,omitempty"`
	Count int   `json:"count"`
}

type heap struct{}

func (*heap) MarshalJSON() ([]byte, error) { return nil, errors.New("marshalled") }

func (s hoarded) Durable() hoarded { return hoarded{Count: s.Count} }

func (s hoarded) Clone() hoarded { return s }

func (hoarder) Kind() scaling.Kind { return scaling.Kind{Name: "hoarder", Version: 1} }

func (hoarder) Decide(s hoarded, _ time.Time, obs scaling.Observation) (hoarded, scaling.Decision) {
	return hoarded{&heap{}, s.Count + 1}, scaling.HoldAt(obs.SpecReplicas)
}

func (hoarder) Applied(s hoarded, _ time.Time, _, _ int32) hoarded { return s }

// TestWhatIsVolatileIsNotMarshalled: not to be stored, nor to take a decision back, however the policy is composed.
func TestWhatIsVolatileIsNotMarshalled(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: 9}
	table, err := cronscale.New(cronscale.Config{Bounds: bounds, Policies: []cronscale.Policy{{Name: "a", Schedule: "@hourly", TargetReplicas: 2}}})
	require.NoError(t, err)
	compositions := map[string]func(scaling.Policy) (scaling.Policy, error){
		"alone": func(p scaling.Policy) (scaling.Policy, error) { return p, nil },
		"highest": func(p scaling.Policy) (scaling.Policy, error) {
			return scaling.Highest(scaling.Member{Name: "a", Policy: p})
		},
		"floor":   func(p scaling.Policy) (scaling.Policy, error) { return scaling.Floor(p, table, bounds) },
		"bounded": func(p scaling.Policy) (scaling.Policy, error) { return scaling.Bounded(p, bounds) },
		"stabilized": func(p scaling.Policy) (scaling.Policy, error) {
			return scaling.Stabilized(p, scaling.Stabilization{Down: time.Minute})
		},
		"limited": func(p scaling.Policy) (scaling.Policy, error) { return scaling.RateLimited(p, scaling.RateLimits{}) },
	}
	for name, compose := range compositions {
		for kind, groupOf := range map[string]func(scaling.Policy) scaling.Group{
			"one": scaling.GroupOf, "each": func(p scaling.Policy) scaling.Group { return scaling.Each(p) },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				fresh := func() scaling.Group {
					policy, err := compose(scaling.New(hoarder{}))
					require.NoError(t, err)
					return groupOf(policy)
				}
				group := fresh()
				now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
				decide := func() { group.Decide(now, scaling.OneTarget(3)) }
				decide()
				_, err = group.MarshalJSON()
				require.ErrorContains(t, err, "marshalled")
				stored, err := scaling.Durable(group)
				require.NoError(t, err)
				require.Contains(t, string(stored), `"count":1`)
				restore, err := scaling.Snapshot(group)
				require.NoError(t, err)
				for range 2 {
					decide()
					require.NoError(t, restore())
					is, err := scaling.Durable(group)
					require.NoError(t, err)
					require.Equal(t, string(stored), string(is))
				}
				again := fresh()
				require.NoError(t, again.UnmarshalJSON(stored))
				_, err = again.MarshalJSON()
				require.NoError(t, err, "what was gathered is gone")
			})
		}
	}
}

// TestARefusedStateIsTakenBackTo: a snapshot of a policy that refuses its state is one of that.
func TestARefusedStateIsTakenBackTo(t *testing.T) {
	for _, group := range []scaling.Group{scaling.GroupOf(scaling.New(hoarder{})), scaling.Each(scaling.New(hoarder{}))} {
		good, err := scaling.Durable(group)
		require.NoError(t, err)
		const bad = `{"kind":"hoarder","version":2,"state":{}}`
		require.Error(t, group.UnmarshalJSON([]byte(bad)))
		restore, err := scaling.Snapshot(group)
		require.NoError(t, err)
		require.NoError(t, group.UnmarshalJSON(good))
		require.NoError(t, restore())
		is, err := scaling.Durable(group)
		require.NoError(t, err)
		require.Equal(t, bad, string(is))
	}
}

// TestAMemberNamedVolatileIsStored: what a document calls a member is no word of a state.
func TestAMemberNamedVolatileIsStored(t *testing.T) {
	policy, err := scaling.Highest(scaling.Member{Name: "volatile", Policy: scaling.New(hoarder{})}, scaling.Member{Name: "other", Policy: scaling.New(hoarder{})})
	require.NoError(t, err)
	policy.Decide(time.Unix(1e9, 0), scaling.Observation{SpecReplicas: 2})
	state, err := scaling.Durable(policy)
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"highest","version":1,"state":{"volatile":{"kind":"hoarder","version":1,"state":{"count":1}},"other":{"kind":"hoarder","version":1,"state":{"count":1}}}}`, string(state))
}
