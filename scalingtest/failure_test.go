package scalingtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestRun: a policy without a fault has every property. The tests below start it in a process of its own, with a fault.
func TestRun(t *testing.T) {
	opts := everything()
	opts.Ticks = 16 // which is soon made smaller
	scalingtest.Run(t, newPolicy, opts)
}

// again runs tests of this package in a process of its own, with a fault, and returns what they print.
func again(t *testing.T, fault, tests string) (output string, passed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run="+tests, "-test.count=1", "-rapid.seed=1", "-rapid.checks=100", "-rapid.shrinktime=1m", "-rapid.nofailfile")
	cmd.Env = append(os.Environ(), "SCALINGTEST_FAULT="+fault)
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return string(out), err == nil
}

// printed returns the part of an output from one text to before another, without the indentation that testing gives.
func printed(t *testing.T, output, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(output, from)
	require.True(t, ok, output)
	part, _, ok := strings.Cut(rest, to)
	require.True(t, ok, output)
	lines := strings.Split(part, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "            ")
	}
	return strings.TrimRight(from+strings.Join(lines, "\n"), " \n") + "\n"
}

// TestFailureIsPrinted: a policy that acts when the clock steps back fails the subtest ClockBack, with a table and a test. The
// same text is in the documentation.
func TestFailureIsPrinted(t *testing.T) {
	output, passed := again(t, "acts when the clock steps back", "^TestRun$/^ClockBack$")
	require.False(t, passed)
	require.Contains(t, output, "--- FAIL: TestRun/ClockBack")
	require.Contains(t, output, "ClockBack does not hold")
	text := printed(t, output, "ClockBack: at ", "        failure_test.go:")
	scalingtest.Golden(t, "failure.txt", text)
	page, err := os.ReadFile("../docs/scalingtest.md")
	require.NoError(t, err)
	for line := range strings.Lines(text) {
		require.Contains(t, string(page), strings.TrimSpace(line))
	}
}

// TestPrintedTestIsOneThatCompiles: the test that is printed for a fault is in regress_test.go, to the letter. There it
// passes, as the policy has no fault, and here it fails, as it has one.
func TestPrintedTestIsOneThatCompiles(t *testing.T) {
	source, err := os.ReadFile("regress_test.go")
	require.NoError(t, err)
	for property, fault := range map[string]string{
		"NeverPanics": "panics on infinity",
		"Restart":     "forgets a field",
		"ClockBack":   "acts when the clock steps back",
		"NoData":      "acts on NaN",
		"Monotone":    "not monotone",
		"Convergence": "flaps",
		"Order":       "the first in the order given", // of a group
	} {
		t.Run(property, func(t *testing.T) {
			test := "^TestRun$/^"
			if property == "Order" {
				test = "^TestRunGroup$/^"
			}
			output, passed := again(t, fault, test+property+"$")
			require.False(t, passed)
			text := printed(t, output, "func TestRegression"+property+"(t *testing.T) {", "\n            }\n") + "}\n"
			require.Contains(t, string(source), text)

			output, passed = again(t, fault, "^TestRegression"+property+"$")
			require.False(t, passed)
			require.Contains(t, output, "--- FAIL: TestRegression"+property)
			require.Contains(t, output, property+": ")
			require.Contains(t, output, "regress_test.go:")
			_, passed = again(t, "", "^TestRegression"+property+"$")
			require.True(t, passed)
		})
	}
}

// TestRegressionWrongOptionsFailAtOnce: every property failed with an error of the options, as if the policy lacked it. It runs itself in
// a process of its own with wrong options.
func TestRegressionWrongOptionsFailAtOnce(t *testing.T) {
	wrong := scalingtest.Options{Metrics: []scalingtest.Metric{{Name: "queue", High: 1}}, Ticks: -1}
	switch os.Getenv("SCALINGTEST_FAULT") {
	case "options of Run":
		scalingtest.Run(t, newPolicy, wrong)
	case "options of RunGroup":
		scalingtest.RunGroup(t, func() scaling.Group { return scaling.GroupOf(newPolicy()) }, wrong)
	case "options of Twin":
		scalingtest.Twin(t, newPolicy, newTwin, wrong)
	default:
		for _, of := range []string{"Run", "RunGroup", "Twin"} {
			output, passed := again(t, "options of "+of, "^TestRegressionWrongOptionsFailAtOnce$")
			require.False(t, passed)
			require.Contains(t, output, "ticks: -1: must not be negative")
			require.NotContains(t, output, "[rapid]")
			require.NotContains(t, output, "FAIL: TestRegressionWrongOptionsFailAtOnce/")
		}
	}
}
