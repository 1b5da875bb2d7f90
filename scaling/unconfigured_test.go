package scaling_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// drawAnything draws observations of any kind, also those that no cluster could give.
func drawAnything(t *rapid.T) scaling.Observation {
	obs := scaling.Observation{SpecReplicas: rapid.Int32().Draw(t, "spec"), ReadyReplicas: rapid.Int32().Draw(t, "ready")}
	for range rapid.IntRange(0, 3).Draw(t, "readings") {
		obs.Readings = append(obs.Readings, scaling.Reading{
			Metric: rapid.SampledFrom([]string{"", "queue", "cache"}).Draw(t, "metric"),
			Lower:  rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN())).Draw(t, "lower"),
			Upper:  rapid.OneOf(rapid.Float64(), rapid.Just(math.Inf(1))).Draw(t, "upper"),
			Values: rapid.Int32Range(-1, 3).Draw(t, "values"),
		})
	}
	return obs
}

// refused is what a program has that did not look at an error.
func refused[T any](v T, err error) T {
	if err == nil {
		panic("must have been refused")
	}
	return v
}

// TestWhatWasNotConfiguredDecidesUnknown: the zero value of every algorithm, and what constructors return beside an
// error, never acts, whatever it is shown and told.
func TestWhatWasNotConfiguredDecidesUnknown(t *testing.T) {
	never := refused(scaling.Highest())
	for name, build := range map[string]func() scaling.Policy{
		"realtime, zero":         func() scaling.Policy { return scaling.New(realtime.Scaler{}) },
		"realtime, refused":      func() scaling.Policy { return scaling.New(refused(realtime.New(realtime.Config{}))) },
		"proportional, zero":     func() scaling.Policy { return scaling.New(proportional.Scaler{}) },
		"proportional, refused":  func() scaling.Policy { return scaling.New(refused(proportional.New(proportional.Config{}))) },
		"cronscale, zero":        func() scaling.Policy { return scaling.New(cronscale.Scaler{}) },
		"cronscale, refused":     func() scaling.Policy { return scaling.New(refused(cronscale.New(cronscale.Config{}))) },
		"New of nil":             func() scaling.Policy { return scaling.New[realtime.State](nil) },
		"Highest of none":        func() scaling.Policy { return refused(scaling.Highest()) },
		"Highest of nil":         func() scaling.Policy { return refused(scaling.Highest(scaling.Member{Name: "a"})) },
		"Highest of refused":     func() scaling.Policy { p, _ := scaling.Highest(scaling.Member{Name: "a", Policy: never}); return p },
		"Floor of nil":           func() scaling.Policy { return refused(scaling.Floor(nil, nil, fleetBounds)) },
		"Floor without bounds":   func() scaling.Policy { return refused(scaling.Floor(drawn{}, cronscale.Scaler{}, scaling.Bounds{})) },
		"Floor, zero timetable":  func() scaling.Policy { p, _ := scaling.Floor(drawn{}, cronscale.Scaler{}, fleetBounds); return p },
		"Bounded of nil":         func() scaling.Policy { return refused(scaling.Bounded(nil, fleetBounds)) },
		"Bounded without bounds": func() scaling.Policy { return refused(scaling.Bounded(drawn{}, scaling.Bounds{})) },
		"Stabilized of nil":      func() scaling.Policy { return refused(scaling.Stabilized(nil, scaling.Stabilization{})) },
		"RateLimited of nil":     func() scaling.Policy { return refused(scaling.RateLimited(nil, scaling.RateLimits{})) },
		"Stabilized of refused": func() scaling.Policy {
			p, _ := scaling.Stabilized(never, scaling.Stabilization{Up: 1, Down: 1})
			return p
		},
		"RateLimited of refused": func() scaling.Policy { p, _ := scaling.RateLimited(never, scaling.RateLimits{}); return p },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := build()
				for range rapid.IntRange(1, 4).Draw(t, "decisions") {
					now := time.UnixMilli(rapid.Int64Range(-1e14, 1e14).Draw(t, "now"))
					obs := drawAnything(t)
					d := p.Decide(now, obs)
					require.Equal(t, scaling.Unknown, d.Verdict, "%s", d.Explain())
					require.Equal(t, obs.SpecReplicas, d.Replicas)
					require.Contains(t, d.Explain(), "NotConfigured")
					require.NoError(t, scalingtest.Explained(&d))
					p.Applied(now, obs.SpecReplicas, rapid.Int32().Draw(t, "to"))
				}
			})
		})
	}
}

// drawn is a Policy that always asks for one more.
type drawn struct{}

func (drawn) Decide(_ time.Time, obs scaling.Observation) scaling.Decision {
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(scaling.Plus(obs.SpecReplicas, 1), "More", "")
	return d
}
func (drawn) Applied(time.Time, int32, int32) {}
func (drawn) MarshalJSON() ([]byte, error)    { return []byte(`{}`), nil }
func (drawn) UnmarshalJSON([]byte) error      { return nil }

// TestWhatWasNotConfiguredKeepsTheStoredState: a program that goes on without its policy overwrites nothing.
func TestWhatWasNotConfiguredKeepsTheStoredState(t *testing.T) {
	const stored = `{"kind":"realtime","version":1,"state":{"streaks":[]}}`
	for name, p := range map[string]scaling.Policy{
		"realtime":   scaling.New(realtime.Scaler{}),
		"New of nil": scaling.New[realtime.State](nil),
	} {
		var e *scaling.StateError
		if err := p.UnmarshalJSON([]byte(stored)); err != nil {
			require.ErrorAs(t, err, &e, name)
		}
		require.JSONEq(t, stored, save(t, p), name)
	}
	_, err := scaling.New[realtime.State](nil).MarshalJSON()
	require.ErrorContains(t, err, "not configured")
}

// TestRefusedPartDoesNotStopTheOthers: in Highest a member that was not configured blocks a scale-down and no scale-up.
func TestRefusedPartDoesNotStopTheOthers(t *testing.T) {
	p, err := scaling.Highest(scaling.Member{Name: "a", Policy: scaling.New(realtime.Scaler{})}, scaling.Member{Name: "b", Policy: drawn{}})
	require.NoError(t, err)
	d := p.Decide(start, scaling.Observation{SpecReplicas: 3})
	require.Equal(t, scaling.Up, d.Verdict)
	require.Contains(t, d.Explain(), "NotConfigured")
}
