package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// dayLine is a line with these days, of one seed.
func dayLine(name string, s sort, days ...tally) *line {
	return &line{contender: contender{name: name, sort: s}, days: [][]tally{days}}
}

// TestDaysDrawnAgain: days that are all alike leave nothing open, one bad day of five does, what is beside a yardstick meets its
// draws, and the same draws come each time.
func TestDaysDrawnAgain(t *testing.T) {
	good, bad := tally{100, 100, 10}, tally{100, 90, 30}
	sure := func() []*line {
		r := &runner{comparison: &comparison{alpha: 0.99, seeds: 1, arrivals: make([]float64, 5), lines: []*line{
			dayLine("steady", ofPolicy, good, good, good, good, good),
			dayLine("shaky", ofPolicy, tally{100, 100, 9}, tally{100, 100, 9}, tally{100, 90, 9}, tally{100, 100, 9}, tally{100, 100, 9}),
			dayLine(incumbentName, ofIncumbent, good, bad, good, good, good),
		}}}
		r.resample()
		return r.lines
	}
	lines := sure()
	steady, shaky, was := lines[0].certainty, lines[1].certainty, lines[2].certainty
	require.Equal(t, bounded{1, 1}, steady.Attained)
	require.Equal(t, bounded{50, 50}, steady.ReplicaHours)
	require.Equal(t, &bounded{1, 1}, was.Incumbent)
	require.Nil(t, was.Oracle)
	require.Equal(t, bounded{0.94, 1}, shaky.Attained)
	require.InDelta(t, math.Pow(0.8, 5), shaky.First, 0.05, "first where the bad day is not drawn")
	require.InDelta(t, 1, shaky.First+steady.First, 1e-9)
	require.Equal(t, bounded{50, 110}, was.ReplicaHours)
	require.InDelta(t, 50.0/110, steady.Incumbent.Lower, 1e-9)
	for i, l := range sure() {
		require.Equal(t, lines[i].certainty, l.certainty)
	}

	few := &runner{comparison: &comparison{alpha: 0.99, seeds: 1, lines: []*line{dayLine("a", ofPolicy, good, good)}, world: &world{fleet: &history.Fleet{}}}}
	few.resample()
	require.Nil(t, few.lines[0].certainty)
	require.Equal(t, "How sure this is cannot be told from fewer than 3 days.", few.certaintyWords())
	require.Equal(t, []int{0, 1, 1, 2, 3}, []int{daysIn(11 * time.Hour), daysIn(12 * time.Hour), daysIn(35 * time.Hour), daysIn(36 * time.Hour), daysIn(71 * time.Hour)})
}

// TestHowSureAndWhatWouldChangeIt is of four days, and of three hours.
func TestHowSureAndWhatWouldChangeIt(t *testing.T) {
	long.Skip(t)
	w := sim.Series{
		Step: 30 * time.Minute, Rates: sim.Diurnal(0.03, 0.5, 96*time.Hour, 30*time.Minute),
		Input:  sim.Length{Mean: 3000, Deviation: 2500, Min: 1, Max: 16000, LogNormal: true},
		Output: sim.Length{Mean: 700, Deviation: 500, Min: 1, Max: 4000, LogNormal: true},
	}
	for i := range w.Rates {
		w.Rates[i].Input, w.Rates[i].Output = 2000+1500*float64(i%7)/6, 500+400*float64(i%5)/4
	}
	s := simhistory.Production(sim.Llama70BA100(), w)
	r, err := simhistory.Record(t.Context(), s, func() (scaling.Group, error) {
		return sim.Schedule(s.Begin(), 6*time.Hour, []int32{2, 3, 4, 3, 2, 3, 4, 3, 2, 3, 4, 3, 2, 3, 4, 3}), nil
	}, 1)
	require.NoError(t, err)
	dir := t.TempDir()
	data, report := filepath.Join(dir, "all.json"), filepath.Join(dir, "report.html")
	code, out, errs := start(t, "-history", dumpOf(t, r, func(*history.Dump) {}), "-policy", "proportional/llm,proportional/hpa", "-seeds", "1", "-json", data, "-report", report)
	require.Equal(t, exitOK, code, errs)
	t.Log(out)
	require.Contains(t, out, "4 days like these, drawn again 1000 times")
	require.Regexp(t, `(?m)^POLICY +ATTAINED % +REPLICA-H +X INCUMBENT +X ORACLE +CHEAPEST %$`, out)
	require.Regexp(t, `(?m)^as it is +\d`, out)
	require.Regexp(t, `(?m)^cold starts x 2, \d+ s +\d`, out)
	require.Regexp(t, `(?m)^SLO 20 % tighter, 2\.4 s and 80 ms +\d`, out)
	require.Regexp(t, `-max \d+ was (never )?reached`, out)
	text, err := os.ReadFile(data)
	require.NoError(t, err)
	var d struct {
		Days     int
		Changes  changes
		Policies []struct {
			Name      string
			Sort      sort
			Certainty *certainty
			Results   []struct{ Attainment, ReplicaHours float64 }
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
	require.Equal(t, 4, d.Days)
	require.GreaterOrEqual(t, len(d.Changes.Runs), 5)
	share := 0.0
	for _, p := range d.Policies {
		require.NotNil(t, p.Certainty, p.Name)
		require.GreaterOrEqual(t, p.Results[0].ReplicaHours, p.Certainty.ReplicaHours.Lower-1e-6, p.Name)
		require.LessOrEqual(t, p.Results[0].ReplicaHours, p.Certainty.ReplicaHours.Upper+1e-6, p.Name)
		require.GreaterOrEqual(t, p.Results[0].Attainment, p.Certainty.Attained.Lower-1e-9, p.Name)
		require.LessOrEqual(t, p.Results[0].Attainment, p.Certainty.Attained.Upper+1e-9, p.Name)
		share += p.Certainty.First
		if p.Name == d.Changes.Policy {
			require.InDelta(t, p.Results[0].ReplicaHours, d.Changes.Runs[0].ReplicaHours, 1e-9, "as it is")
		}
	}
	require.LessOrEqual(t, share, 1+1e-9)
	page, err := os.ReadFile(report)
	require.NoError(t, err)
	require.Contains(t, string(page), "How sure this is")
	require.Contains(t, string(page), "What would change it")
	if keep := os.Getenv("INFERSCALE_KEEP_REPORT"); keep != "" {
		require.NoError(t, os.WriteFile(keep, page, 0o600))
	}

	short := recordDay(t, sim.Qwen32B(), simhistory.Conversations(2, 9, 3*time.Hour))
	code, out, errs = start(t, "-history", dumpOf(t, short, func(*history.Dump) {}), "-policy", "proportional/llm", "-seeds", "1", "-report", "")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "How sure this is cannot be told from fewer than 3 days.")
	require.Regexp(t, `(?m)^cold starts x 0.5, `, out)
}
