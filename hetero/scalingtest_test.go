package hetero_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// placed is a hetero.Group seen from outside as a scaling.Policy of the total. What the policy places stays where it
// is; another total comes about as the sequence has it, and what is out of bounds is so in the first type.
type placed struct {
	policy *hetero.Group
	fleet  *hetero.Fleet
	spec   []int32
	target []int32
}

func (p *placed) Decide(now time.Time, obs scaling.Observation) scaling.Decision {
	if p.spec == nil || hetero.Sum(p.spec) != int64(obs.SpecReplicas) {
		p.spec = p.fleet.Allocate(nil, int64(obs.SpecReplicas))
		p.spec[0] += int32(int64(obs.SpecReplicas) - hetero.Sum(p.spec))
	}
	d := p.policy.Decide(now, see(p.fleet, p.spec, obs.Readings...))
	p.target = counts(&d)
	return d.Total
}

func (p *placed) Applied(now time.Time, _, _ int32) {
	p.policy.Applied(now, p.spec, p.target)
	p.spec = p.target
}

type storedPlaced struct {
	Policy json.RawMessage `json:"policy"`
	Spec   []int32         `json:"spec"`
	Target []int32         `json:"target"`
}

func (p *placed) MarshalJSON() ([]byte, error) {
	data, err := p.policy.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return json.Marshal(storedPlaced{data, p.spec, p.target})
}

func (p *placed) UnmarshalJSON(data []byte) error {
	var s storedPlaced
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	p.spec, p.target = s.Spec, s.Target
	return p.policy.UnmarshalJSON(s.Policy)
}

// TestTotalHasTheCommonProperties: placing a total on types leaves it the properties that it has by itself.
func TestTotalHasTheCommonProperties(t *testing.T) {
	scalingtest.RunDrawn(t, func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
		f := fleet(t, float64(rapid.IntRange(1, 3).Draw(t, "rate")),
			hetero.Type{Name: "a", Cost: 10, Min: 1, Max: 20}, hetero.Type{Name: "b", Cost: 25, Max: 20})
		c := realtime.Kaito(f.Bounds(), realtime.Metric{Name: "queue", High: 10, Low: 3})
		c.Up.Cooldown, c.Down.Cooldown, c.Down.Window = time.Minute, 2*time.Minute, time.Minute
		c.Up.Step = rapid.Int32Range(1, 3).Draw(t, "step")
		options := hetero.Options{Exchanges: rapid.Int32Range(0, 2).Draw(t, "exchanges")}
		newPolicy := func() scaling.Policy {
			s, err := realtime.New(c)
			require.NoError(t, err)
			p, err := hetero.NewGroup(scaling.New(s), f, options)
			require.NoError(t, err)
			return &placed{policy: p, fleet: f}
		}
		return newPolicy, scalingtest.Options{
			Metrics: []scalingtest.Metric{{Name: "queue", Low: 3, High: 10}},
			Bounds:  f.Bounds(), Memory: 5 * time.Minute,
			Monotone: true, Refused: true, Cooldown: &scalingtest.Cooldown{Up: time.Minute, Down: 2 * time.Minute},
		}
	})
}
