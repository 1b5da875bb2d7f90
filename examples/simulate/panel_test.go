package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/sim"
)

// TestTicksHaveTheDigitsOfTheirStep: three times 0.05 is no 0.15 to a computer, and its label is one all the same.
func TestTicksHaveTheDigitsOfTheirStep(t *testing.T) {
	words := func(ticks []tick) (all []string) {
		for _, t := range ticks {
			all = append(all, t.label)
		}
		return all
	}
	require.Equal(t, []string{"0.05", "0.10", "0.15", "0.20"}, words(ticksWithin(0.04, 0.21, 0.05)))
	require.Equal(t, []string{"0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"}, words(ticksWithin(0, 0.71, niceStep(0.7, 10))))
	require.Equal(t, []string{"0", "500000", "1000000"}, words(countTicks(1e6, 2)))
	require.Len(t, ticksWithin(3, 3, niceStep(0, 10)), 1, "policies that all cost the same")
	_, _, ticks := timeTicks(2 * time.Minute)
	require.Equal(t, []string{"0.0", "0.5", "1.0", "1.5", "2.0"}, words(ticks))
}

// TestLoadBeginsWithARate: the rate of the load is not 0 at the beginning because nothing was counted before.
func TestLoadBeginsWithARate(t *testing.T) {
	f := frame{perUnit: float64(time.Minute), end: 1}
	r := sim.Result{Timeline: []sim.Moment{{}, {At: 15 * time.Second, Rate: 4}, {At: 30 * time.Second, Rate: 5}}}
	require.Equal(t, []point{{0, 4}, {0.25, 4}, {0.5, 5}}, f.offered(&r))
	r.Timeline = r.Timeline[:1]
	require.Equal(t, []point{{0, 0}}, f.offered(&r))
}

// TestTheSLOIsOnItsAxis: the line of an SLO that is longer than any time is in the picture.
func TestTheSLOIsOnItsAxis(t *testing.T) {
	long.Skip(t)
	name := filepath.Join(t.TempDir(), "report.html")
	code, _, errs := start(t, tiny("-slo-ttft", "1h", "-report", name)...)
	require.Equal(t, exitOK, code, errs)
	page, err := os.ReadFile(name)
	require.NoError(t, err)
	place := regexp.MustCompile(`<text x="([0-9.]+)"[^>]*>SLO 3600 s<`).FindSubmatch(page)
	require.Len(t, place, 2)
	x, err := strconv.ParseFloat(string(place[1]), 64)
	require.NoError(t, err)
	require.Less(t, x, 990.0, "the right end of the axis")
}

// TestRegressionLongNamesAreCutOff: in the picture of the times, a name that was longer than the place for it began outside.
func TestRegressionLongNamesAreCutOff(t *testing.T) {
	long.Skip(t)
	dir := t.TempDir()
	name, own := filepath.Join(dir, "report.html"), filepath.Join(dir, "own.yaml")
	const long = "a-policy-of-the-team-with-the-longest-name-of-all-the-teams"
	require.NoError(t, os.WriteFile(own, []byte("policies: [{name: "+long+", proportional: {profile: llm}}]"), 0o600))
	code, _, errs := start(t, tiny("-config", own, "-report", name)...)
	require.Equal(t, exitOK, code, errs)
	page, err := os.ReadFile(name)
	require.NoError(t, err)
	_, times, _ := strings.Cut(string(page), `<title id="ttft-t">`)
	times, _, _ = strings.Cut(times, "</svg>")
	require.NotContains(t, times, long)
	require.Contains(t, times, "a-policy-of-the-team-with")
	require.Contains(t, string(page), long)
}
