package scalingtest_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

func loads(cache, queue float64) []scaling.Reading {
	return []scaling.Reading{scaling.Exactly("cache", cache), scaling.Exactly("queue", queue)}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func TestSteps(t *testing.T) {
	scalingtest.Steps(t, newPolicy(), 3,
		scalingtest.At(seconds(0), "Hold Enough 3", loads(0.5, 7)...),
		scalingtest.At(seconds(15), "Up TooMuch 4 cache lower=0.8 > high=0.75", loads(0.8, 7)...).Refused(),
		scalingtest.At(seconds(30), "Up", loads(0.8, 7)...),
		scalingtest.At(seconds(45), "Hold Waits 4 elapsed=15s < wait=1m", loads(0.8, 7)...).WithReady(3),
		scalingtest.At(seconds(90), "Up TooMuch 5", loads(0.8, 7)...),
		scalingtest.At(seconds(91), "Down AboveMax 8").On(20),
		scalingtest.At(seconds(92), "Unknown NoSample 8"),
	)
}

// TestStepsSayWhatIsOtherwise: a wrong verdict, code, count or reason is reported with its time, and the rest goes on.
func TestStepsSayWhatIsOtherwise(t *testing.T) {
	for _, want := range []string{"Up", "Hold TooMuch", "Hold Enough 4", "Hold Enough 3 nothing", "Hold Enough 3 cach"} {
		failed, log := record(t, func(r *recorder) {
			scalingtest.Steps(r, newPolicy(), 3,
				scalingtest.At(seconds(15), want, loads(0.5, 7)...), scalingtest.At(seconds(30), "Down", loads(0.5, 7)...))
		})
		require.True(t, failed, want)
		require.Contains(t, log, "at 15s: want \""+want+"\", got \"Hold Enough 3 cache lower=0.5 <= high=0.75, upper=0.5 >= low=0.25\"")
		require.Contains(t, log, "at 30s: ")
	}
	failed, log := record(t, func(r *recorder) {
		scalingtest.Steps(r, newStepper("unexplained"), 3, scalingtest.At(0, "Up", loads(0.9, 7)...))
	})
	require.True(t, failed)
	require.Contains(t, log, "the deciding line ends at 4, the decision at 5")
	failed, _ = record(t, func(r *recorder) {
		scalingtest.Steps(r, newStepper("cannot be stored"), 3, scalingtest.At(0, "Up", loads(0.9, 7)...))
	})
	require.True(t, failed)
}

// story is an episode of a rise and a fall.
func story() scalingtest.Episode {
	return scalingtest.Episode{
		Spec: 3, Startup: 40 * time.Second,
		Ticks: []scalingtest.Tick{
			{Readings: loads(0.5, 7)},
			{After: seconds(15), Times: 3, Readings: loads(0.5, 7)},
			{After: seconds(15), Times: 6, Readings: loads(0.9, 7)},
			{After: seconds(15), Times: 10, Readings: loads(0.1, 1)},
			{After: -seconds(15), Readings: loads(0.1, 1)},
		},
	}
}

func TestTranscript(t *testing.T) {
	scalingtest.Transcript(t, "transcript.txt", newPolicy(), story())
	t.Setenv("UPDATE_GOLDEN", "")
	failed, log := record(t, func(r *recorder) {
		scalingtest.Transcript(r, "transcript.txt", newStepper("two steps at once"), story())
	})
	require.True(t, failed)
	require.Contains(t, log, "transcript.txt differs")
	failed, log = record(t, func(r *recorder) {
		scalingtest.Transcript(r, "transcript.txt", newStepper("unexplained"), story())
	})
	require.True(t, failed)
	require.Contains(t, log, "the deciding line ends at")
}

func TestGolden(t *testing.T) {
	t.Chdir(t.TempDir())
	failed, log := record(t, func(r *recorder) { scalingtest.Golden(r, "a/text.txt", "one\n") })
	require.True(t, failed)
	require.Contains(t, log, "UPDATE_GOLDEN=1")
	t.Setenv("UPDATE_GOLDEN", "1")
	scalingtest.Golden(t, "a/text.txt", "one\n")
	t.Setenv("UPDATE_GOLDEN", "")
	scalingtest.Golden(t, "a/text.txt", "one\n")
	failed, _ = record(t, func(r *recorder) { scalingtest.Golden(r, "a/text.txt", "two\n") })
	require.True(t, failed)
	kept, err := os.ReadFile(filepath.Join("testdata", "a", "text.txt"))
	require.NoError(t, err)
	require.Equal(t, "one\n", string(kept))
}

func TestTwin(t *testing.T) {
	opts := everything()
	scalingtest.Twin(t, newPolicy, newTwin, opts)
}

// TestReadyFollowsStartup: replicas that were added are ready after Startup, and a fleet never has fewer than none.
func TestReadyFollowsStartup(t *testing.T) {
	w := &watcher{stepper: newStepper("")}
	e := story()
	e.Ticks = append(e.Ticks, scalingtest.Tick{After: seconds(15), NotReady: 99}, scalingtest.Tick{After: seconds(15), NotReady: -2})
	scalingtest.Replay(t, func() scaling.Policy { return w }, scalingtest.Options{}, "Explained", e)
	require.Equal(t, []int32{3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 4, 4, 4, 4, 0, 6}, w.ready)
}

// A watcher is a stepper that notes how many replicas it sees ready.
type watcher struct {
	*stepper

	ready []int32
}

func (w *watcher) Decide(now time.Time, obs scaling.Observation) scaling.Decision {
	w.ready = append(w.ready, obs.ReadyReplicas)
	return w.stepper.Decide(now, obs)
}

// TestOptionsAreChecked: what is wrong with the options is said before anything is drawn.
func TestOptionsAreChecked(t *testing.T) {
	for _, row := range []struct {
		opts scalingtest.Options
		says string
	}{
		{scalingtest.Options{}, "metrics: 0: must name at least one that the policy reads"},
		{scalingtest.Options{Metrics: []scalingtest.Metric{{}}}, `metrics[0].name: "": must not be empty`},
		{scalingtest.Options{Metrics: []scalingtest.Metric{{Name: "a", Low: 2, High: 1}}}, "metrics[0].low: 2: must be in [0, high 1]"},
		{scalingtest.Options{Metrics: []scalingtest.Metric{{Name: "a", High: math.Inf(1)}}}, "metrics[0].low: 0: must be in [0, high +Inf]"},
		{scalingtest.Options{Bounds: scaling.Bounds{Min: 3, Max: 1}}, "bounds.max: 1: must not be below min 3"},
		{scalingtest.Options{Period: -1, Memory: -1, Shift: -1}, "period: -1ns: must not be negative\nmemory: -1ns: must not be negative\nshift: -1ns: must not be negative"},
		{scalingtest.Options{Ticks: -1, Replicas: -1}, "replicas: -1: must not be negative\nticks: -1: must not be negative"},
		{scalingtest.Options{MaxState: -1}, "maxState: -1: must not be negative"},
		{scalingtest.Options{Skip: []string{"TimeShift", "Nonsense"}}, `skip[1]: "Nonsense": must name a property`},
		{scalingtest.Options{Cooldown: &scalingtest.Cooldown{Up: -1, Down: -1}}, "cooldown.down: -1ns: must not be negative"},
		{scalingtest.Options{Convergence: &scalingtest.Convergence{}}, "convergence.within: 0: must be above 0"},
		{scalingtest.Options{Metrics: []scalingtest.Metric{{Name: "a"}, {Name: "a"}}}, `metrics[1].name: "a": must be unique`},
		{scalingtest.Options{Metrics: []scalingtest.Metric{{Name: "a"}}, DeadZone: []scalingtest.Metric{{Name: "b"}}}, `deadZone[0].name: "b": must be one of the metrics`},
		{scalingtest.Options{Cooldown: &scalingtest.Cooldown{Down: 2 * time.Hour}}, "memory: 1h0m0s: must not be below the longest cooldown, 2h0m0s"},
	} {
		failed, log := record(t, func(r *recorder) { scalingtest.Try(r, "WithinBounds", newPolicy, row.opts) })
		require.True(t, failed)
		require.Contains(t, unindented(log), row.says)
	}
	for _, property := range []string{"Nonsense", "Cooldown", "Convergence", "Twin"} {
		failed, _ := record(t, func(r *recorder) {
			scalingtest.Replay(r, newPolicy, scalingtest.Options{}, property, scalingtest.Episode{})
		})
		require.True(t, failed, property)
	}
}

// unindented returns a text without the margin that testify gives it.
func unindented(text string) string {
	var lines []byte
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			lines = append(lines, '\n')
			for i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
				i++
			}
			continue
		}
		lines = append(lines, text[i])
	}
	return string(lines)
}

// TestZeroOptionsDoForATimetable: a policy that time alone moves needs no metric.
func TestZeroOptionsDoForATimetable(t *testing.T) {
	scalingtest.Run(t, func() scaling.Policy { return newStepper("") }, scalingtest.Options{ActsWithoutData: true, Bounds: scaling.Bounds{Min: 1, Max: 8}})
}

// TestRunDrawn: the configuration and what is known of it are drawn together.
func TestRunDrawn(t *testing.T) {
	scalingtest.RunDrawn(t, func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
		opts := everything()
		opts.Cooldown = &scalingtest.Cooldown{
			Up:   time.Duration(rapid.IntRange(0, 90).Draw(t, "up")) * time.Second,
			Down: time.Duration(rapid.IntRange(0, 90).Draw(t, "down")) * time.Second,
		}
		opts.Twin, opts.Convergence, opts.NoFlap = nil, nil, rapid.Bool().Draw(t, "no flap")
		return func() scaling.Policy {
			p := newStepper("")
			p.up, p.down = opts.Cooldown.Up, opts.Cooldown.Down
			return p
		}, opts
	})
}

// TestRegressionWhatIsNotGiven: an event that wants nothing was never met, and an episode without ticks divided by zero.
func TestRegressionWhatIsNotGiven(t *testing.T) {
	scalingtest.Steps(t, newPolicy(), 3, scalingtest.At(0, "", loads(0.9, 7)...))
	scalingtest.Replay(t, newPolicy, scalingtest.Options{Bounds: scaling.Bounds{Min: 1, Max: 8}}, "Repeatable", scalingtest.Episode{})
}
