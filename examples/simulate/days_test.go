package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/sim"
)

func TestWhatWasMissedIsDrawn(t *testing.T) {
	long.Skip(t)
	r := recordDay(t, sim.Qwen32B(), simhistory.Conversations(2, 9, 4*time.Hour))
	name := filepath.Join(t.TempDir(), "report.html")
	code, _, errs := start(t, "-history", dumpOf(t, r, func(*history.Dump) {}), "-policy", "proportional/llm", "-seeds", "1", "-report", name)
	require.Equal(t, exitOK, code, errs)
	page, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Contains(t, string(page), "What was missed, and what it cost")
	require.Contains(t, string(page), "Thu 2026-01-01")
	require.Contains(t, string(page), `aria-labelledby="missed-t missed-d"`)
}

func TestDays(t *testing.T) {
	at := time.Date(2026, 1, 5, 23, 30, 0, 0, time.UTC)
	hour := history.Hour{From: at, Length: time.Hour, Requests: 100, Late: [2]float64{1, 1}, Slow: [2]float64{0, 5}, Firsts: 100, Answers: 50, ReplicaHours: 3}
	gap := history.Hour{From: at, Length: time.Hour, Requests: math.NaN(), ReplicaHours: math.NaN()}
	d := day{date: at.Truncate(24 * time.Hour), hours: []history.Hour{hour, hour}}
	require.Equal(t, []string{"Mon 2026-01-05", "200", "1.0", "0.0 to 10.0", "6.0", "3.0"}, d.cells())
	d.hours = []history.Hour{gap}
	require.Equal(t, []string{"Mon 2026-01-05", "–", "–", "–", "–", "–"}, d.cells(), "what is not known is no zero")
	require.InDelta(t, 0.01, missed(hour), 1e-12)
	require.True(t, math.IsNaN(missed(gap)))
	require.Equal(t, pale(), heat(missed(gap)))
	require.NotEqual(t, heat(0), heat(math.NaN()))
}

// TestMinutesAfterMidnightAreNoDay: a history that ends just after midnight had a row of a day in which nothing was asked.
func TestMinutesAfterMidnightAreNoDay(t *testing.T) {
	quiet := history.Hour{Length: 10 * time.Minute}
	require.True(t, (&day{hours: []history.Hour{quiet}}).empty())
	asked, late, unknown := quiet, quiet, quiet
	asked.Requests, late.Firsts, unknown.Requests = 1, 1, math.NaN()
	for _, hours := range [][]history.Hour{{asked}, {late}, {unknown}, {quiet, asked}, {{Length: time.Hour}}} {
		require.False(t, (&day{hours: hours}).empty())
	}
}
