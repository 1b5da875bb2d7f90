package scalingtest_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestMain keeps the failures that are meant to be out of testdata/rapid, and makes them smaller only for a moment.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "100ms"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// A recorder takes the place of a testing.TB that is to fail.
type recorder struct {
	testing.TB

	failed bool
	log    strings.Builder
}

type stopped struct{}

func (r *recorder) Helper()                           {}
func (r *recorder) Name() string                      { return "recorded" }
func (r *recorder) Failed() bool                      { return r.failed }
func (r *recorder) Fail()                             { r.failed = true }
func (r *recorder) FailNow()                          { r.failed = true; panic(stopped{}) }
func (r *recorder) Log(args ...any)                   { fmt.Fprintln(&r.log, args...) }
func (r *recorder) Logf(format string, args ...any)   { fmt.Fprintf(&r.log, format+"\n", args...) }
func (r *recorder) Error(args ...any)                 { r.Log(args...); r.Fail() }
func (r *recorder) Errorf(format string, args ...any) { r.Logf(format, args...); r.Fail() }
func (r *recorder) Fatal(args ...any)                 { r.Log(args...); r.FailNow() }
func (r *recorder) Fatalf(format string, args ...any) { r.Logf(format, args...); r.FailNow() }

// record runs what may fail and returns whether it did, and what it printed.
func record(tb testing.TB, f func(r *recorder)) (failed bool, log string) {
	tb.Helper()
	r := &recorder{TB: tb}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(stopped{}) {
				panic(p)
			}
		}()
		f(r)
	}()
	return r.failed, r.log.String()
}

// setChecks sets how many cases are drawn, of which rapid takes a fifth with -short.
func setChecks(t *testing.T, n int) {
	t.Helper()
	if testing.Short() {
		n *= 5
	}
	setFlag(t, "rapid.checks", strconv.Itoa(n))
}

// setFlag sets a flag of rapid for one test.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	before := flag.Lookup(name).Value.String()
	require.NoError(t, flag.Set(name, value))
	t.Cleanup(func() { require.NoError(t, flag.Set(name, before)) })
}

// TestFaults: each fault is found by the property that it breaks, which says what is wrong.
func TestFaults(t *testing.T) {
	setChecks(t, 500)             // enough to find any of them, whatever is asked for
	setFlag(t, "rapid.seed", "1") // and the same episodes each time
	for _, row := range []struct {
		fault    string
		property string
		says     string
	}{
		{"scales up on Upper", "MissingNeverActs", "became Up"},
		{"scales down on Lower", "MissingNeverActs", "became Down"},
		{"scales on the middle", "MissingNeverActs", "with less known"},
		{"missing is full", "MissingNeverActs", "became Up"},
		{"missing is the low threshold", "MissingNeverActs", "became Down"},
		{"missing has no say", "MissingNeverActs", "became Down"},
		{"those that answer are all", "MissingNeverActs", "became Up"},
		{"acts without data", "MissingNeverActs", "became Down"},
		{"a gap keeps the count", "MissingNeverActs", "became Up"},
		{"out of bounds", "WithinBounds", "it says "},
		{"panics on infinity", "NeverPanics", "it panics when it is asked: runtime error: index out of range"},
		{"cannot be stored", "NeverPanics", "the state cannot be stored"},
		{"reads the clock", "TimeShift", "with all times later by"},
		{"order of the readings", "Order", "with the readings in another order"},
		{"forgets a field", "Restart", "Restart: at "},
		{"forgets what it asked for", "Restart", "with a restart before and after every decision"},
		{"stores whole seconds", "Restart", "with a restart before and after every decision"},
		{"takes its state back wrong", "Restart", "the state is another one once it was restored"},
		{"takes its state back on top of its own", "Restart", "once it was restored to a policy that had gone on"},
		{"keeps the bytes of its state", "Restart", "the state cannot be stored"},
		{"stores into one buffer", "Restart", "what MarshalJSON returned before is overwritten"},
		{"is taken back but for a field", "Undo", "the state is another one once a decision was taken back"},
		{"counts what it stores", "Undo", "of a state that was stored and restored another one is stored"},
		{"keeps its input", "Repeatable", "the states of two policies that were given the same"},
		{"local time", "Repeatable", "with the clock of another zone"},
		{"order of a map", "Repeatable", "Repeatable"},
		{"sorts its input", "Repeatable", "the readings that it was given were changed"},
		{"appends to its input", "Repeatable", "the readings that it was given were changed"},
		{"state that grows", "BoundedState", "bytes"},
		{"acts when the clock steps back", "ClockBack", "although the clock went back"},
		{"acts without data", "NoData", "although there has never been any data"},
		{"acts on NaN", "NoData", "although there has never been any data"},
		{"unexplained", "Explained", "the deciding line ends at"},
		{"not monotone", "Monotone", "with readings raised"},
		{"counts overflow", "Monotone", "with readings raised"},
		{"takes much for an error", "Monotone", "with readings raised"},
		{"flaps", "NoFlap", "under the same load"},
		{"acts in the dead zone", "DeadZone", "although all readings have been within the dead zone"},
		{"a tick too early", "Cooldown", "it is to wait for"},
		{"a tick too early", "CooldownEnds", "it is to wait for"},
		{"a tick too late", "CooldownEnds", "is over"},
		{"counts from the clock", "CooldownEnds", "is over"},
		{"waits for the time before the clock went back", "ClockBackEnds", "since the clock went back by"},
		{"refused write starts the wait", "Refused", "although the write that it asked for before was refused"},
		{"a missing sample starts anew", "Lapse", "still does not two ticks later"},
		{"flaps", "Convergence", "ticks of the same load"},
		{"a tick too late", "Twin", "the twin says"},
		{"two steps at once", "Twin", "the twin says"},
	} {
		t.Run(row.property+" "+row.fault, func(t *testing.T) {
			opts := everything()
			opts.Lapses = row.property == "Lapse"
			opts.NewPolicy = fmt.Sprintf("func() scaling.Policy { return newStepper(%q) }", row.fault)
			failed, log := record(t, func(r *recorder) {
				scalingtest.Try(r, row.property, func() scaling.Policy { return newStepper(row.fault) }, opts)
			})
			require.True(t, failed, "it was not found")
			if row.fault == "order of a map" && strings.Contains(log, "flaky") {
				require.Contains(t, log, "Repeatable does not hold") // found, and then not again: the order is drawn anew each time
				return
			}
			require.Contains(t, log, row.property+": ")
			require.Contains(t, log, row.says)
			require.NotContains(t, log, "flaky")
			require.Contains(t, log, "func TestRegression"+row.property+"(t *testing.T) {")
		})
	}
}

// TestSettledCountsAreDemanded: what Convergence.Want says is compared with the end.
func TestSettledCountsAreDemanded(t *testing.T) {
	setChecks(t, 100)
	setFlag(t, "rapid.seed", "1")
	opts := everything()
	opts.Convergence = &scalingtest.Convergence{Within: 100, Want: func([]scalingtest.Load) (int32, int32) { return 3, 3 }}
	failed, log := record(t, func(r *recorder) { scalingtest.Try(r, "Convergence", newPolicy, opts) })
	require.True(t, failed)
	require.Contains(t, log, "right are 3 to 3")
	require.Contains(t, log, "Want: func([]scalingtest.Load) (least, most int32) { return 3, 3 }")
}
