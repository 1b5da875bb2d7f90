package capacity

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/starts"
	"github.com/inferscale/inferscale/scaling"
)

// timesOf returns the times of a state, by path: the numbers that are called At, and those of the state itself.
func timesOf(v reflect.Value, path string, all map[string]*float64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch f.Name {
			case "At", "Began", "Since", "Asked", "Tuned", "Settled":
				all[path+"."+f.Name] = v.Field(i).Addr().Interface().(*float64)
			default:
				if f.IsExported() {
					timesOf(v.Field(i), path+"."+f.Name, all)
				}
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			timesOf(v.Index(i), path, all)
		}
	default: // has no times
	}
}

// TestAClockThatGoesBackTakesEveryTimeBack: no time of a state is forgotten but those of counters as they were read, which nothing reads.
func TestAClockThatGoesBackTakesEveryTimeBack(t *testing.T) {
	peaks := func() Peaks { return Peaks{{Value: 1}} }
	s := State{
		Seen:    Seen{Samples: make([]Sample, 2), Needs: peaks(), Means: peaks(), Counts: peaks(), Lengths: make([]Sizes, 1), Short: starts.Rise{Count: 1}},
		Learned: starts.Learned{Rises: []starts.Rise{{Count: 2}}},
	}
	all := map[string]*float64{}
	timesOf(reflect.ValueOf(&s).Elem(), "", all)
	for _, unread := range []string{".Seen.Raw.At", ".Seen.Before.At", ".Seen.Sizes.At"} {
		require.Contains(t, all, unread)
		delete(all, unread)
	}
	require.Len(t, all, 14)
	delete(all, ".Seen.Asked") // is now
	s.Asked = 1000
	for _, at := range all {
		*at = 1000
	}
	require.InDelta(t, 40, s.turnBack(960, 15), 0)
	for path, at := range all {
		require.InDelta(t, 945, *at, 0, path)
	}
}

// ahead tunes with the last sample of a past whose clock was ahead of the present one.
type ahead struct{ found }

func (f ahead) Tune(c *Config, past func() Past) (Tuning, bool) {
	t, ok := f.found.Tune(c, past)
	t.At += 3600
	return t, ok
}

// TestATuningIsNotOfTheFuture: the clock went back while a tuning was made, which was of the clock before. Its age was negative.
func TestATuningIsNotOfTheFuture(t *testing.T) {
	p := scaling.New(build(t, config(), ahead{found(someTrial())}))
	for i := range 20 {
		d := p.Decide(start().Add(time.Duration(i)*15*time.Second), observation(4, 0, 10, float64(40*i), 1500, 200))
		if step, ok := d.Find(Replayed); ok {
			require.GreaterOrEqual(t, step.Numbers[3], 0.0, d.Explain())
			return
		}
	}
	t.Fatal("nothing was tuned")
}

// TestUnattainableNeedsAMiss: where nothing misses the SLO the server is faster than the simulated one that cannot attain it.
func TestUnattainableNeedsAMiss(t *testing.T) {
	for missed, want := range map[float64]bool{0: false, 1: true} {
		scaler := build(t, config(), quiet{})
		s := State{Tuning: Tuning{trial: someTrial(), Requests: 100, Hopeless: 0.5, Missed: missed, Served: 100}}
		s, _ = scaler.Decide(s, start(), observation(4, 0, 10, 100, 1500, 200))
		_, d := scaler.Decide(s, start().Add(15*time.Second), observation(4, 0, 10, 140, 1500, 200))
		_, found := d.Find(Unattainable)
		require.Equal(t, want, found, d.Explain())
	}
}

// TestAShortageIsOfTheLeastThatWasAskedFor: once as many are ready as were asked for least, what is lacking then is another shortage. And
// what is missed is excused until the queue of a shortage is gone.
func TestAShortageIsOfTheLeastThatWasAskedFor(t *testing.T) {
	s := State{}
	at := func(seconds, queue float64, wanted, ready int32) {
		s.Samples = append(s.Samples, Sample{At: seconds, Ready: ready, Waiting: queue, Queue: queue})
		s.excuse(wanted, ready, 100)
	}
	at(0, 0, 6, 3)
	require.Equal(t, starts.Rise{At: 0, Count: 6}, s.Short)
	at(15, 0, 4, 3)
	require.Equal(t, starts.Rise{At: 0, Count: 4}, s.Short)
	at(30, 0, 6, 4)
	require.Equal(t, starts.Rise{At: 30, Count: 6}, s.Short, "four were ready")
	at(131, 50, 6, 4)
	require.True(t, s.Excusing)
	at(146, 50, 6, 6)
	require.Zero(t, s.Short)
	require.True(t, s.Excusing, "its queue is still there")
	at(161, 0, 6, 6)
	require.False(t, s.Excusing)
}

// calibrated tunes to a larger capacity, with the slowness of the present server.
type calibrated struct {
	found

	n *int
}

func (f calibrated) Tune(c *Config, past func() Past) (Tuning, bool) {
	*f.n++
	t, ok := f.found.Tune(c, past)
	t.Capacity, t.Slowness, t.Law = 2*t.Capacity, 1.5, times(&c.Server)
	return t, ok
}

// TestARefusedTuningLeavesTheSlowness: while a queue stands a larger capacity is refused, but not what is known of a new server. Else each
// decision would tune.
func TestARefusedTuningLeavesTheSlowness(t *testing.T) {
	n := 0
	c := config()
	scaler := build(t, c, calibrated{found(someTrial()), &n})
	law := times(&c.Server)
	law[0] *= 2
	s := State{Tuning: Tuning{trial: someTrial(), Requests: 100, Slowness: 3, Law: law}}
	for i := range 3 {
		s, _ = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), observation(4, 100, 20, float64(40*(i+1)), 1500, 200))
		require.InDelta(t, someTrial().Capacity, s.Tuning.Capacity, 0)
		require.InDelta(t, 1.5, s.Tuning.Slowness, 0)
		require.Equal(t, 1, n)
	}
}

// TestRegressionAfterAClockThatGoesBackTheLoadIsAsBefore: what came in two intervals counted as that of one, and a fleet of 3 went to 5.
func TestRegressionAfterAClockThatGoesBackTheLoadIsAsBefore(t *testing.T) {
	scaler := build(t, config(), found(someTrial()))
	for _, back := range []time.Duration{20 * time.Second, time.Minute, time.Hour} {
		for _, once := range []bool{false, true} { // behind from then on, or ahead for one round
			p := scaling.New(scaler)
			works := map[bool]float64{}
			for i := range 120 {
				now := start().Add(time.Duration(i) * 15 * time.Second)
				if !once && i >= 100 || once && i != 100 {
					now = now.Add(-back)
				}
				obs := observation(8, 0, 20, float64(180*i), 1500, 200)
				d := p.Decide(now, obs)
				require.LessOrEqual(t, d.Replicas, int32(8), "%s, %v, round %d: %s", back, once, i, d.Explain())
				if work, _ := Demand(&obs, &d); work.Known() {
					works[i > 100] = max(works[i > 100], work.Lower)
				}
			}
			require.LessOrEqual(t, works[true], 1.05*works[false], "%s, %v", back, once)
		}
	}
}

// TestRegressionOneSampleHasNoRate: after each restart the work was known to be 0, and forecasts remembered that.
func TestRegressionOneSampleHasNoRate(t *testing.T) {
	scaler := build(t, config(), found(someTrial()))
	var s State
	var d scaling.Decision
	for i := range 40 {
		s, _ = scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second), observation(4, 0, 20, float64(40*i), 1500, 200))
	}
	obs := observation(4, 0, 20, 1600, 1500, 200)
	s, d = scaler.Decide(s.Durable(), start().Add(10*time.Minute), obs)
	require.Equal(t, Resumed, d.Code(), d.Explain())
	work, _ := Demand(&obs, &d)
	require.False(t, work.Known())
	_, d = scaler.Decide(s, start().Add(10*time.Minute+15*time.Second), observation(4, 0, 20, 1640, 1500, 200))
	work, _ = Demand(&obs, &d)
	require.Positive(t, work.Lower, d.Explain())
}

// TestATunerThatPointsToNothingIsRefused: it was accepted, and the first tuning panicked.
func TestATunerThatPointsToNothingIsRefused(t *testing.T) {
	var background *Background
	_, err := New(config(), background)
	require.EqualError(t, err, "tuner: \"(*Background)(nil)\": must not point to nothing")
}

// TestRegressionAStoredTuningIsNotOfTheFuture: where the clock went back across a restart, Replayed had a negative age, and what was missed
// until the clock had caught up was not remembered.
func TestRegressionAStoredTuningIsNotOfTheFuture(t *testing.T) {
	scaler := build(t, config(), quiet{})
	s := State{Began: seconds(start()), Tuning: Tuning{trial: trial{Capacity: 0.5, Fleet: 1, PromptToken: 1e-4, AnswerToken: 2e-4, Hold: 300}, Requests: 100, At: seconds(start())}}
	for i := range 3 {
		next, d := scaler.Decide(s, start().Add(time.Duration(i)*15*time.Second-time.Hour), observation(4, 0, 20, 300*float64(i), 1500, 200))
		if s = next; i == 0 {
			continue
		}
		step, ok := d.Find(Replayed)
		require.True(t, ok, d.Explain())
		require.InDelta(t, 15*i, step.Numbers[3], 1e-3, d.Explain())
	}
	p := s.past(100)
	p.Samples[len(p.Samples)-1].Late = 7
	missed, _ := p.blamed(p.Last.At)
	require.InDelta(t, 7, missed, 0)
}
