package realtime_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// TestNextIsWhenAWindowCanBeFull: with windows of 30 s and 300 s and a period of 15 s, the sample that fills a window may
// come 15 s, or 285 s, after the first; between the thresholds nothing comes of time.
func TestNextIsWhenAWindowCanBeFull(t *testing.T) {
	s := kaitoScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2})
	next := func(value float64, age time.Duration) time.Time {
		r := scaling.Exactly(queue, value)
		r.At = start.Add(-age)
		_, d := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{r}})
		require.Equal(t, scaling.Hold, d.Verdict)
		return d.Next
	}
	require.Equal(t, start.Add(15*time.Second), next(11, 0).UTC())
	require.Equal(t, start.Add(285*time.Second), next(1, 0).UTC())
	require.Equal(t, start.Add(time.Millisecond), next(11, 15*time.Second-time.Millisecond).UTC())
	require.Zero(t, next(11, 15*time.Second), "the sample that fills the window can be there now: asking again tells nothing")
	require.Zero(t, next(5, 0))
}

// TestNextIsTheEndOfACooldown: in the direction that is asked for.
func TestNextIsTheEndOfACooldown(t *testing.T) {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: queue, High: 10, Low: 2})
	c.Up.Window, c.Down.Window = 0, 0
	s := scaler(t, c)
	state := s.Applied(realtime.State{}, start, 3, 4)
	for value, cooldown := range map[float64]time.Duration{11: 600 * time.Second, 1: 1800 * time.Second} {
		_, d := s.Decide(state, start.Add(time.Minute), scaling.Observation{SpecReplicas: 4, ReadyReplicas: 4, Readings: []scaling.Reading{scaling.Exactly(queue, value)}})
		require.Equal(t, start.Add(cooldown), d.Next.UTC(), d.Explain())
	}
}

// TestALateSampleFromBeforeAChangeAsksForNothing: also where there is no window, and a newer sample was seen already.
func TestALateSampleFromBeforeAChangeAsksForNothing(t *testing.T) {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: queue, High: 10, Low: 2})
	c.Up, c.Down = realtime.Rule{Step: 1}, realtime.Rule{Step: 1}
	s := scaler(t, c)
	look := func(state realtime.State, at int, value float64, sampled int) (realtime.State, scaling.Decision) {
		r := scaling.Exactly(queue, value)
		r.At = start.Add(time.Duration(sampled) * time.Second)
		return s.Decide(state, start.Add(time.Duration(at)*time.Second), scaling.Observation{SpecReplicas: 4, ReadyReplicas: 4, Readings: []scaling.Reading{r}})
	}
	state := s.Applied(realtime.State{}, start.Add(5*time.Second), 3, 4)
	state, _ = look(state, 10, 5, 10)
	_, d := look(state, 12, 11, 4)
	require.Equal(t, "Hold at 4: BeforeChange vllm:num_requests_waiting age=8s >= elapsed=7s", d.Reason())
	_, d = look(state, 12, 11, 6)
	require.False(t, d.Acts(), "a newer sample contradicts it: %s", d.Explain())
	_, d = look(s.Applied(realtime.State{}, start.Add(5*time.Second), 3, 4), 12, 11, 6)
	require.Equal(t, scaling.Up, d.Verdict, d.Explain())
}

// TestFourPeriodsWithoutASampleEndAWindow: to the millisecond, where each decision came within two periods of the last.
func TestFourPeriodsWithoutASampleEndAWindow(t *testing.T) {
	s := kaitoScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2})
	obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(queue, 11)}}
	for after, want := range map[time.Duration]scaling.Verdict{time.Minute - time.Millisecond: scaling.Up, time.Minute: scaling.Hold} {
		state, _ := s.Decide(realtime.State{}, start, obs)
		state, _ = s.Decide(state, start.Add(30*time.Second), scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3})
		_, d := s.Decide(state, start.Add(after), obs)
		require.Equal(t, want, d.Verdict, "%s: %s", after, d.Explain())
	}
}

// TestASampleThatCameLateCountsFromItsTime: seen at four periods after the one before, it was taken a millisecond earlier.
func TestASampleThatCameLateCountsFromItsTime(t *testing.T) {
	s := kaitoScaler(t, realtime.Metric{Name: queue, High: 10, Low: 2})
	r := scaling.Exactly(queue, 11)
	none := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3}
	state, _ := s.Decide(realtime.State{}, start, scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{r}})
	r.At = start.Add(time.Minute - time.Millisecond)
	state, _ = s.Decide(state, start.Add(30*time.Second), none)
	state, _ = s.Decide(state, r.At, none)
	_, d := s.Decide(state, start.Add(time.Minute), scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{r}})
	require.Equal(t, scaling.Up, d.Verdict, d.Explain())
}

// TestAnyOtherThresholdRestartsAStreak: however small, and however small the difference; -0 is no other than 0.
func TestAnyOtherThresholdRestartsAStreak(t *testing.T) {
	for _, row := range []struct {
		before, after realtime.Metric
		same          bool
	}{
		{realtime.Metric{High: 1e-20}, realtime.Metric{High: 2e-20}, false},
		{realtime.Metric{High: 10, Low: 1e-20}, realtime.Metric{High: 10, Low: 2e-20}, false},
		{realtime.Metric{High: 10}, realtime.Metric{High: 10, Low: math.Copysign(0, -1)}, true},
	} {
		row.before.Name, row.after.Name = queue, queue
		obs := scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{scaling.Exactly(queue, 11)}}
		state, _ := kaitoScaler(t, row.before).Decide(realtime.State{}, start, obs)
		_, d := kaitoScaler(t, row.after).Decide(state, start.Add(15*time.Second), obs)
		require.Equal(t, row.same, d.Acts(), "%+v: %s", row, d.Explain())
	}
}

// TestAnOutdatedSampleAsksForNothing: without a window a sample that is older than one that contradicts it was acted on.
func TestAnOutdatedSampleAsksForNothing(t *testing.T) {
	for _, window := range []time.Duration{0, time.Millisecond, 15 * time.Second} {
		for _, stale := range []float64{50, 0} {
			c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: "q", High: 10, Low: 2})
			c.Up, c.Down = realtime.Rule{Step: 1, Window: window}, realtime.Rule{Step: 1, Window: window}
			s := scaler(t, c)
			p := scaling.New(s)
			read := func(v float64, at, now time.Duration) scaling.Decision {
				r := scaling.Exactly("q", v)
				r.At = start.Add(at)
				return p.Decide(start.Add(now), scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3, Readings: []scaling.Reading{r}})
			}
			read(5, 0, 0) // between the thresholds
			d := read(stale, -5*time.Second, 5*time.Second)
			require.False(t, d.Acts(), "window %s: %s", window, d.Explain())
			d = read(stale, 10*time.Second, 10*time.Second)
			require.True(t, d.Acts(), "it is the newest: %s", d.Explain())
		}
	}
}
