package shadow_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/scaling"
)

func begin() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

const period = 15 * time.Second

// A script is a policy that does what it is told to.
type script struct {
	decide func(now time.Time, obs scaling.Observation) scaling.Decision
	told   *[][2]int32
}

func (s script) Decide(now time.Time, obs scaling.Observation) scaling.Decision {
	return s.decide(now, obs)
}

func (s script) Applied(_ time.Time, from, to int32) {
	if s.told != nil {
		*s.told = append(*s.told, [2]int32{from, to})
	}
}
func (script) MarshalJSON() ([]byte, error) { panic("nobody stores a shadow") }
func (script) UnmarshalJSON([]byte) error   { panic("nobody stores a shadow") }

const asked scaling.Code = "Asked wanted"

func to(n int32, obs scaling.Observation) scaling.Decision {
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(n, asked, "", float64(n))
	return d
}

// always asks for one count.
func always(n int32) script {
	return script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision { return to(n, obs) }}
}

func atOnce(f func()) { f() }

func watch(t *testing.T, c shadow.Config) *shadow.Shadows {
	t.Helper()
	s, err := shadow.New(c)
	require.NoError(t, err)
	return s
}

func alone(t *testing.T, p scaling.Policy) *shadow.Shadows {
	t.Helper()
	return watch(t, shadow.Config{Policies: []shadow.Policy{{Name: "a", Policy: p}}, Go: atOnce})
}

func seen(spec, ready int32, load float64) scaling.Observation {
	values := make([]float64, ready)
	for i := range values {
		values[i] = load
	}
	return scaling.Observation{
		SpecReplicas: spec, ReadyReplicas: ready,
		Readings: []scaling.Reading{scaling.FromPods("load", values, scaling.Missing{NotReady: spec - ready}, 10)},
	}
}

func TestEveryWrongField(t *testing.T) {
	_, err := shadow.New(shadow.Config{})
	require.ErrorContains(t, err, "policies: 0: must be one at least and 8 at most")
	nine := make([]shadow.Policy, 9)
	nine[1].Metrics = []shadow.Metric{{Kind: 7, Fill: -1}, {Name: "a"}, {Name: "a"}}
	_, err = shadow.New(shadow.Config{Policies: nine, ColdStart: -1})
	for _, field := range []string{
		"policies: 9", "policies[0].name", "policies[0].policy", "policies[1].name", "policies[1].metrics[0].name", "policies[1].metrics[0].kind", "policies[1].metrics[0].fill",
		`policies[1].metrics[2].name: "a": must be unique`, "coldStart",
	} {
		require.ErrorContains(t, err, field)
	}
	var wrong *scaling.FieldError
	require.True(t, errors.As(err, &wrong))
}

// TestBeginsWithTheRealCount, and goes on with its own.
func TestBeginsWithTheRealCount(t *testing.T) {
	var told [][2]int32
	p := always(6)
	p.told = &told
	s, now := alone(t, p), begin()
	s.Look(now, seen(4, 4, 1))
	w := s.Wishes()[0]
	require.Equal(t, shadow.Wish{
		Name: "a", Replicas: 6, Ready: 4, Verdict: scaling.Up, Reason: w.Reason, At: now, Since: now, Changed: now, Remembers: now,
	}, w)
	require.Contains(t, w.Reason, "Up 4 -> 6: Asked wanted=6")
	s.Look(now.Add(period), seen(4, 4, 1))
	w = s.Wishes()[0]
	require.Equal(t, scaling.Hold, w.Verdict)
	require.Equal(t, now.Add(period), w.Apart, "as of the look at which the real fleet had not followed")
	require.InDelta(t, 6*15, w.ReplicaSeconds, 0, "it had asked at once")
	require.InDelta(t, 4*15, w.RealReplicaSeconds, 0)
	require.Equal(t, [][2]int32{{4, 6}}, told, "it is told that its wish was carried out, once")
}

// TestStartsTakeAsLongAsTheRealOnes: five minutes until one was seen, then the median.
func TestStartsTakeAsLongAsTheRealOnes(t *testing.T) {
	n := int32(6)
	var ready []int32
	s := alone(t, script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision {
		ready = append(ready, obs.ReadyReplicas)
		return to(n, obs)
	}})
	now := begin()
	for range 21 {
		s.Look(now, seen(4, 4, 1))
		now = now.Add(period)
	}
	require.Equal(t, int32(4), ready[19])
	require.Equal(t, int32(6), ready[20], "after five minutes")

	ready = nil
	s.Look(now, seen(5, 4, 1)) // a real start
	now = now.Add(4 * period)
	n = 8
	s.Look(now, seen(5, 5, 1)) // which took a minute
	for range 5 {
		s.Look(now, seen(5, 5, 1))
		now = now.Add(period)
	}
	require.Equal(t, []int32{6, 6, 6, 6, 6, 6, 8}, ready)
	n = 7
	s.Look(now, seen(5, 5, 1))
	n = 9
	s.Look(now, seen(5, 5, 1))
	n = 8
	s.Look(now, seen(5, 5, 1))
	require.Equal(t, int32(7), s.Wishes()[0].Ready, "what starts goes first")
}

// TestOverdueShadowIsLeftOut until it is done, the others go on, and nobody waits.
func TestOverdueShadowIsLeftOut(t *testing.T) {
	release, calls := make(chan struct{}), 0
	slow := script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision {
		<-release
		return to(7, obs)
	}}
	quick := script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision { calls++; return to(5, obs) }}
	s := watch(t, shadow.Config{Policies: []shadow.Policy{{Name: "slow", Policy: slow}, {Name: "quick", Policy: quick}}})
	over := make(chan struct{})
	close(over)
	now := begin()
	s.Look(now, seen(4, 4, 1))
	s.Wait(over)
	require.Equal(t, shadow.None, s.Wishes()[0].Out, "it has until the next look")
	for i := range 3 {
		runtime.Gosched()
		now = now.Add(period)
		s.Look(now, seen(4, 4, 1))
		w := s.Wishes()[0]
		require.Equal(t, shadow.Overdue, w.Out)
		require.Equal(t, "the decision on what was seen at 2026-03-01T12:00:00Z is not made yet", w.Why)
		require.Equal(t, int32(4), w.Replicas)
		require.InDelta(t, float64(4*15*(i+1)), w.ReplicaSeconds, 0)
	}
	release <- struct{}{}
	s.Wait(nil)
	w := s.Wishes()
	require.Equal(t, shadow.None, w[0].Out)
	require.Equal(t, int32(7), w[0].Replicas, "its late answer counts from now on")
	require.Equal(t, int32(5), w[1].Replicas)
	require.Positive(t, calls)
	close(release)
	s.Look(now.Add(period), seen(4, 4, 1))
	s.Wait(nil)
	require.Equal(t, scaling.Hold, s.Wishes()[0].Verdict)
}

// TestRegressionALateAnswerCountsFromWhenItCame: the sums counted it from then on, but the trail, by which the share that would have met the
// SLO is computed, from when it was asked for, and its replicas had started meanwhile.
func TestRegressionALateAnswerCountsFromWhenItCame(t *testing.T) {
	release := make(chan struct{})
	slow := script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision {
		<-release
		return to(7, obs)
	}}
	s := watch(t, shadow.Config{Policies: []shadow.Policy{{Name: "slow", Policy: slow}}})
	now := begin()
	for range 41 {
		s.Look(now, seen(4, 4, 1))
		now = now.Add(period)
	}
	close(release)
	s.Wait(nil)
	_, trails, _ := s.Trails()
	came := begin().Add(10 * time.Minute)
	require.Equal(t, []shadow.Count{{At: begin(), Replicas: 4}, {At: came, Replicas: 7}}, trails[0])

	s.Look(now, seen(4, 4, 1))
	w := s.Wishes()[0]
	require.InDelta(t, 4*600+7*15, w.ReplicaSeconds, 0)
	require.Equal(t, int32(7), w.Replicas)
	require.Equal(t, int32(4), w.Ready, "its starts have just begun")
}

// TestPanickingShadowIsLeftOut for good, whatever it panics with, and also one that ends its goroutine.
func TestPanickingShadowIsLeftOut(t *testing.T) {
	for name, p := range map[string]struct {
		policy scaling.Policy
		why    string
	}{
		"panic":         {script{decide: func(time.Time, scaling.Observation) scaling.Decision { panic("no such pod") }}, "panic: no such pod"},
		"bad panic":     {script{decide: func(time.Time, scaling.Observation) scaling.Decision { panic(bomb{}) }}, "panic"},
		"nil panic":     {script{decide: func(time.Time, scaling.Observation) scaling.Decision { panic(nil) }}, "panic"},
		"nil policy":    {script{}, "nil pointer"},
		"long panic":    {script{decide: func(time.Time, scaling.Observation) scaling.Decision { panic(strings.Repeat("x", 1<<20)) }}, "..."},
		"ends its own":  {script{decide: func(time.Time, scaling.Observation) scaling.Decision { runtime.Goexit(); panic("never") }}, "did not return"},
		"panic in told": {deaf{always(9)}, "deaf"},
	} {
		t.Run(name, func(t *testing.T) {
			s := watch(t, shadow.Config{Policies: []shadow.Policy{{Name: "bad", Policy: p.policy}, {Name: "good", Policy: always(5)}}})
			now := begin()
			for range 3 {
				s.Look(now, seen(4, 4, 1))
				s.Wait(nil)
				now = now.Add(period)
			}
			w := s.Wishes()
			require.Equal(t, shadow.Failed, w[0].Out)
			require.Contains(t, w[0].Why, p.why)
			require.LessOrEqual(t, len(w[0].Why), 1024)
			require.Equal(t, int32(4), w[0].Replicas)
			require.Equal(t, int32(5), w[1].Replicas)
			require.Equal(t, shadow.None, w[1].Out)
		})
	}
}

// A bomb panics when it is printed.
type bomb struct{}

func (bomb) Error() string { panic("again") }

// A deaf policy panics when it is told something.
type deaf struct{ script }

func (deaf) Applied(time.Time, int32, int32) { panic("deaf") }

// TestNonsenseIsBounded: no wish is below 0, and none overflows.
func TestNonsenseIsBounded(t *testing.T) {
	for _, n := range []int32{-1 << 31, -5, 1<<31 - 1} {
		s, now := alone(t, always(n)), begin()
		for range 3 {
			s.Look(now, seen(4, 4, 1))
			now = now.Add(period)
		}
		w := s.Wishes()[0]
		require.Equal(t, max(n, 0), w.Replicas)
		require.GreaterOrEqual(t, w.Ready, int32(0))
		require.LessOrEqual(t, w.Ready, w.Replicas)
		require.GreaterOrEqual(t, w.ReplicaSeconds, 0.0)
	}
}

// TestStateOfAShadowIsNeverAskedFor: script panics if it is, and one that grows without bound grows alone.
func TestStateOfAShadowIsNeverAskedFor(t *testing.T) {
	var kept [][]byte
	s, now := alone(t, script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision {
		kept = append(kept, make([]byte, 1<<16))
		return to(int32(len(kept)), obs)
	}}), begin()
	for range 100 {
		s.Look(now, seen(4, 4, 1))
		now = now.Add(period)
	}
	require.Equal(t, shadow.None, s.Wishes()[0].Out)
	require.Equal(t, int32(100), s.Wishes()[0].Replicas)
}

// TestResume goes on with the count and the sums, and says that the policy has forgotten.
func TestResume(t *testing.T) {
	s, now := alone(t, always(6)), begin()
	s.Look(now, seen(4, 4, 1))
	s.Look(now.Add(period), seen(4, 4, 1))
	w := s.Wishes()
	require.Equal(t, int32(4), w[0].Ready)

	var told [][2]int32
	p := always(6)
	p.told = &told
	again := alone(t, p)
	again.Resume(w)
	now = now.Add(time.Minute)
	again.Look(now, seen(4, 4, 1))
	r := again.Wishes()[0]
	require.Equal(t, int32(6), r.Replicas)
	require.Equal(t, int32(4), r.Ready)
	require.Equal(t, now, r.Remembers)
	require.Equal(t, w[0].Since, r.Since)
	require.Equal(t, w[0].Changed, r.Changed)
	require.Equal(t, w[0].Apart, r.Apart)
	require.InDelta(t, 6*60, r.ReplicaSeconds, 0)
	require.InDelta(t, 4*60, r.RealReplicaSeconds, 0)
	require.Equal(t, [][2]int32{{6, 7}, {6, 5}}, told, "cooldowns of both directions go on")

	bad := alone(t, always(6))
	bad.Resume([]shadow.Wish{
		{Name: "a"},
		{Name: "a", Replicas: -1, At: now, Since: now},
		{Name: "b", Replicas: 9, At: now, Since: now},
		{Name: "a", Replicas: 9, At: now, Since: now.Add(1)},
		{Name: "a", Replicas: 9, At: now, Since: now, Changed: now.Add(1)},
	})
	bad.Look(now, seen(4, 4, 1))
	require.Equal(t, now, bad.Wishes()[0].Since)
	require.InDelta(t, 0, bad.Wishes()[0].ReplicaSeconds, 0)

	failing := alone(t, deaf{always(6)})
	failing.Resume(w)
	failing.Look(now, seen(4, 4, 1))
	require.Equal(t, shadow.Failed, failing.Wishes()[0].Out)
}

// TestClockBack counts nothing, and starts go on.
func TestClockBack(t *testing.T) {
	s, now := alone(t, always(6)), begin()
	s.Look(now, seen(4, 4, 1))
	s.Look(now.Add(-time.Hour), seen(4, 4, 1))
	require.InDelta(t, 0, s.Wishes()[0].ReplicaSeconds, 0)
	s.Look(now.Add(-time.Hour+5*time.Minute), seen(4, 4, 1))
	require.Equal(t, int32(6), s.Wishes()[0].Ready)
	require.InDelta(t, 6*300, s.Wishes()[0].ReplicaSeconds, 0)
}

// TestRegressionAWishSurvivesAClockThatGoesBack: the time of the last change lay after the present, so that Resume took the wish for one
// that Wishes cannot have returned, and the count and the sums were lost. A start from before a restart went on for an hour more.
func TestRegressionAWishSurvivesAClockThatGoesBack(t *testing.T) {
	s, now := alone(t, always(6)), begin()
	s.Look(now, seen(4, 4, 1))
	now = now.Add(-time.Hour)
	s.Look(now, seen(4, 4, 1))
	w := s.Wishes()
	require.Equal(t, now, w[0].Since)
	require.Equal(t, now, w[0].Changed)

	again := alone(t, always(6))
	again.Resume(w)
	now = now.Add(-time.Hour) // once more, while nobody looked
	again.Look(now, seen(4, 4, 1))
	again.Look(now.Add(5*time.Minute), seen(4, 4, 1))
	r := again.Wishes()[0]
	require.Equal(t, now, r.Since)
	require.Equal(t, int32(6), r.Ready)
	require.InDelta(t, 6*300, r.ReplicaSeconds, 0)
}

// TestTrails have the counts of an hour, and of no more changes than is bounded.
func TestTrails(t *testing.T) {
	n := int32(6)
	s, now := alone(t, script{decide: func(_ time.Time, obs scaling.Observation) scaling.Decision { return to(n, obs) }}), begin()
	s.Look(now, seen(4, 4, 1))
	n = 7
	s.Look(now.Add(period), seen(5, 5, 1))
	actual, shadows, start := s.Trails()
	require.Equal(t, []shadow.Count{{At: now, Replicas: 4}, {At: now.Add(period), Replicas: 5}}, actual)
	require.Equal(t, [][]shadow.Count{{{At: now, Replicas: 4}, {At: now, Replicas: 6}, {At: now.Add(period), Replicas: 7}}}, shadows)
	require.Zero(t, start, "the real fleet was ready at once")
	s.Look(now.Add(2*time.Hour), seen(5, 5, 1))
	actual, shadows, _ = s.Trails()
	require.Equal(t, []shadow.Count{{At: now.Add(period), Replicas: 5}}, actual)
	require.Equal(t, []shadow.Count{{At: now.Add(period), Replicas: 7}}, shadows[0])
	for i := range 1000 {
		n = int32(i)
		s.Look(now.Add(2*time.Hour+time.Duration(i)*time.Second), seen(int32(i%3), 1, 1))
	}
	actual, shadows, _ = s.Trails()
	require.LessOrEqual(t, len(actual), 256)
	require.LessOrEqual(t, len(shadows[0]), 256)
}

// TestRegressionWishesAreReadBack from JSON, as a program needs for Resume after a restart: the names of the verdict and of the reason
// could be written, and not read.
func TestRegressionWishesAreReadBack(t *testing.T) {
	s, now := alone(t, always(6)), begin()
	s.Look(now, seen(4, 4, 1))
	s.Look(now.Add(period), seen(4, 4, 1))
	wishes := s.Wishes()
	wishes[0].Out, wishes[0].Why = shadow.Overdue, "late"
	text, err := json.Marshal(wishes)
	require.NoError(t, err)
	var again []shadow.Wish
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, wishes, again)

	var wrong *scaling.FieldError
	require.ErrorAs(t, json.Unmarshal([]byte(`{"verdict":"Sideways"}`), &again[0]), &wrong)
	require.ErrorAs(t, json.Unmarshal([]byte(`{"out":"Out(?)"}`), &again[0]), &wrong)
}
