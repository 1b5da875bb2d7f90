package scaling_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

func TestWarningsComeLast(t *testing.T) {
	d := scaling.HoldAt(3)
	d.Warn(scaling.DecidedTooRarely, "queue", 60, 30)
	d.Consider(3, "Calm", "cache")
	d.To(5, "Demand", "queue")
	require.Equal(t, "Up 3 -> 5: Demand queue; DecidedTooRarely queue gap=1m > most=30s", d.Reason())
	require.Equal(t, `Up 3 -> 5
  Demand            3 -> 5    queue
considered
  Calm              3 -> 3    cache
warnings
  DecidedTooRarely    3 -> 3    queue gap=1m > most=30s
`, d.Explain())
	require.Equal(t, scaling.Code("Demand"), d.Code())
	data, err := json.Marshal(d)
	require.NoError(t, err)
	require.Contains(t, string(data), `"branch":1,"warning":true,"numbers":{"gap":60,"most":30}`)
}

// TestUnknownMemberDoesNotWarn: in Highest a member that knows nothing lets another decide, and its warning about names
// is then only considered; that a member is decided too rarely stays a warning.
func TestUnknownMemberDoesNotWarn(t *testing.T) {
	member := func(name string) scaling.Member {
		s, err := realtime.New(realtime.Kaito(fleetBounds, realtime.Metric{Name: name, High: 10, Low: 2}))
		require.NoError(t, err)
		return scaling.Member{Name: name, Policy: scaling.New(s)}
	}
	p, err := scaling.Highest(member("cache"), member("queue"))
	require.NoError(t, err)
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly("queue", 5)}}
	d := p.Decide(start, obs)
	require.Equal(t, "Hold at 3: Chosen queue members=2", d.Reason())
	require.Contains(t, d.Explain(), "Unmatched")
	obs.Readings = []scaling.Reading{scaling.Exactly("queue", 5), scaling.Exactly("cache", 1)}
	p.Decide(start, obs)
	d = p.Decide(start.Add(time.Minute), obs)
	require.Equal(t, "Hold at 3: Chosen cache members=2; DecidedTooRarely cache gap=1m > most=30s", d.Reason())
}

// TestUnmatchedNamesDoNotDependOnTheOrder: at most eight are named, by name and once each.
func TestUnmatchedNamesDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var obs scaling.Observation
		for range rapid.IntRange(0, 20).Draw(t, "readings") {
			name := fmt.Sprintf("m%02d", rapid.IntRange(0, 15).Draw(t, "name"))
			obs.Readings = append(obs.Readings, scaling.Exactly(name, 1))
		}
		wanted := fmt.Sprintf("m%02d", rapid.IntRange(0, 30).Draw(t, "wanted"))
		warned := func() scaling.Decision {
			d := scaling.HoldAt(3)
			d.WarnUnmatched(&obs, func(name string) bool { return name == wanted })
			return d
		}
		d := warned()
		obs.Readings = rapid.Permutation(obs.Readings).Draw(t, "readings")
		require.Equal(t, d, warned())
		steps := d.Steps()
		require.LessOrEqual(t, len(steps), 8)
		for i := 1; i < len(steps); i++ {
			require.Less(t, steps[i-1].Subject, steps[i].Subject)
		}
		if obs.Reading(wanted).Known() {
			require.Empty(t, steps)
		}
	})
}
