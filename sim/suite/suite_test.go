package suite_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/suite"
)

func TestRowsCoverEveryPart(t *testing.T) {
	for name, rows := range map[string][]suite.Row{"full": suite.Full(), "quick": suite.Quick()} {
		shapes, patterns, servers, cold := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[time.Duration]bool{}
		seen := map[suite.Row]bool{}
		for _, r := range rows {
			require.False(t, seen[r], "%s: %s is there twice", name, r)
			seen[r] = true
			shapes[r.Shape], patterns[r.Pattern], servers[r.Server], cold[r.ColdStart] = true, true, true, true
			again, err := suite.Parse(r.String())
			require.NoError(t, err)
			require.Equal(t, r, again)
		}
		for _, shape := range suite.Shapes() {
			require.True(t, shapes[shape], "%s: %s", name, shape)
		}
		for _, pattern := range suite.Patterns() {
			require.True(t, patterns[pattern], "%s: %s", name, pattern)
		}
		require.Len(t, servers, len(suite.Servers()), name)
		require.Len(t, cold, len(suite.ColdStarts()), name)
	}
}

// Cold starts and servers take turns: each meets every shape, every pattern and each other.
func TestFullIsPairwise(t *testing.T) {
	pairs := map[[2]string]bool{}
	for _, r := range suite.Full() {
		for _, a := range []string{r.Shape, r.Pattern, r.ColdStart.String(), r.Server} {
			for _, b := range []string{r.Shape, r.Pattern, r.ColdStart.String(), r.Server} {
				pairs[[2]string{a, b}] = true
			}
		}
	}
	for _, cold := range suite.ColdStarts() {
		for _, other := range slices.Concat(suite.Shapes(), suite.Patterns(), suite.Servers()) {
			require.True(t, pairs[[2]string{cold.String(), other}], "%s with %s", cold, other)
		}
	}
	for _, server := range suite.Servers() {
		for _, other := range slices.Concat(suite.Shapes(), suite.Patterns()) {
			require.True(t, pairs[[2]string{server, other}], "%s with %s", server, other)
		}
	}
}

func TestParseSaysEverythingThatIsWrong(t *testing.T) {
	_, err := suite.Parse("chatt/rampp/100s/h100")
	for _, part := range []string{"shape", "pattern", "server"} {
		require.ErrorContains(t, err, part)
	}
	for _, text := range []string{"", "chat/ramp/100s", "chat/ramp/x/qwen", "chat/recorded/100s/qwen", "azure/ramp/100s/qwen", "chat/ramp/0s/qwen"} {
		_, err := suite.Parse(text)
		require.Error(t, err, text)
	}
}

// The highest load of a row needs about as many replicas as it says, whatever its shape, and its requests come in order.
func TestScenario(t *testing.T) {
	for _, name := range []string{"docs/day/600s/a100", "docs/weekdays/600s/a100", "agents/steady/100s/a100", "drift/walk/30s/a100", "code/flash/300s/a100", "azure/recorded/100s/a100"} {
		row, err := suite.Parse(name)
		require.NoError(t, err)
		s, c, err := row.Scenario(context.Background())
		require.NoError(t, err, name)
		require.NoError(t, s.Validate())
		work, busiest, span := map[int]float64{}, 0.0, 5*time.Minute
		last := time.Duration(0)
		requests := arrivals(&s, 1)
		for _, r := range requests {
			require.GreaterOrEqual(t, r.At, last)
			require.Less(t, r.At, s.Workload.Duration())
			last = r.At
			work[int(r.At/span)] += c.Work(r) / c.PerSecond / span.Seconds()
			busiest = max(busiest, work[int(r.At/span)])
		}
		t.Logf("%s: %d requests, at most %.1f replicas, %d at the beginning", name, len(requests), busiest, s.Types[0].Initial)
		if row.Pattern != "steady" && row.Pattern != "flash" && row.Pattern != "walk" {
			require.InDelta(t, suite.Replicas, busiest, 2.5, name)
		}
		require.Equal(t, requests, arrivals(&s, 1), "the same seed is the same traffic")
		if row.Pattern != "recorded" {
			require.NotEqual(t, requests, arrivals(&s, 2), "another is not")
		}
	}
}

// Weekdays are alike: in the hours from ten to twelve each day has as many requests, and many more than at night.
func TestWeekdaysAreAlike(t *testing.T) {
	row := suite.Row{Shape: "docs", Pattern: "weekdays", ColdStart: 10 * time.Minute, Server: "a100"}
	require.Contains(t, suite.Full(), row)
	s, _, err := row.Scenario(context.Background())
	require.NoError(t, err)
	require.Equal(t, 96*time.Hour, s.Workload.Duration())
	var hours [96]float64
	for _, r := range arrivals(&s, 1) {
		hours[int(r.At/time.Hour)]++
	}
	for day := range 4 {
		of := hours[24*day : 24*day+24]
		require.InEpsilon(t, hours[10]+hours[11], of[10]+of[11], 0.15, "day %d", day)
		require.Greater(t, of[10], 5*of[3], "day %d", day)
	}
}

func arrivals(s *sim.Scenario, seed uint64) (all []sim.Request) {
	next := s.Workload.Arrivals(seed)
	for r, more := next(); more; r, more = next() {
		all = append(all, r)
	}
	return all
}

// TestRegressionARowOfAnyColdStartIsReadBack: a cold start below 100 us was written with an exponent, which Parse refused.
func TestRegressionARowOfAnyColdStartIsReadBack(t *testing.T) {
	for _, cold := range []time.Duration{1, 10 * time.Microsecond, 12345678 * time.Microsecond, 100 * time.Second, time.Hour} {
		r := suite.Row{Shape: "chat", Pattern: "ramp", ColdStart: cold, Server: "qwen"}
		again, err := suite.Parse(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)
	}
	require.Equal(t, "chat/ramp/100s/qwen", suite.Row{Shape: "chat", Pattern: "ramp", ColdStart: 100 * time.Second, Server: "qwen"}.String())
}
