package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/suite"
)

// A row with two seeds: the table, its files, and the baseline that they are.
func TestSuite(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"-suite", "-rows", "docs/ramp/30s/a100", "-policy", "recommended,aibrix/apa", "-seeds", "2"}
	if long.Race { // two seeds, and all again on one core, are two minutes
		args[len(args)-1] = "1"
	}
	code, out, errs := start(t, append(args, "-resume", file("runs"), "-json", file("s.json"), "-scores", file("scores.md"), "-baseline", file("base.csv"), "-update")...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "* recommended: "+recommendedName)
	data, err := os.ReadFile(file("s.json"))
	require.NoError(t, err)
	var b board
	require.NoError(t, json.Unmarshal(data, &b))
	require.Len(t, b.Entries, 4+4+2, "four limits, four margins and two policies")
	recommended := 0
	for _, e := range b.Entries {
		require.Len(t, e.Cells, 1)
		if e.Recommended {
			recommended++
			require.Equal(t, recommendedName, e.Name)
		}
		if e.Sort == ofLimit {
			require.True(t, e.Cells[0].Attains, e.Name)
			require.GreaterOrEqual(t, e.Cells[0].OverOracle.Mean, 1.0, "%s: nothing is better than the best that is known", e.Name)
		}
	}
	require.Equal(t, 1, recommended)
	for name, has := range map[string]string{"scores.md": "| docs/ramp/30s/a100 |", "scores.csv": "aibrix/apa,docs/ramp/30s/a100,", "scores.svg": "</svg>"} {
		data, err := os.ReadFile(file(name))
		require.NoError(t, err)
		require.Contains(t, string(data), has)
	}

	if long.Race {
		return
	}

	// Ended while a run was written: that one is made again, and the others are not.
	runs, err := os.ReadFile(file("runs"))
	require.NoError(t, err)
	require.Equal(t, 2*(1+4+4+2), strings.Count(string(runs), "\n"))
	known := strings.ReplaceAll(string(runs), `"attainment":0.`, `"attainment":0.0`)
	last := strings.LastIndex(known[:len(known)-1], "\n") + 1
	require.NoError(t, os.WriteFile(file("runs"), []byte(known[:len(known)-10]), 0o600))
	code, _, errs = start(t, append(args, "-resume", file("runs"), "-json", file("again.json"))...)
	require.Equal(t, exitOK, code, errs)
	again, err := os.ReadFile(file("runs"))
	require.NoError(t, err)
	require.Equal(t, known[:last]+string(runs)[strings.LastIndex(string(runs[:len(runs)-1]), "\n")+1:], string(again))
	data, err = os.ReadFile(file("again.json"))
	require.NoError(t, err)
	var believed board
	require.NoError(t, json.Unmarshal(data, &believed))
	require.Less(t, believed.Entries[0].Score.Worst, 0.1, "what the file has was not believed")
	require.NoError(t, os.WriteFile(file("runs"), []byte("{}\n"), 0o600))
	code, _, errs = start(t, append(args, "-resume", file("runs"))...)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "line 1: must have a policy")
	require.NoError(t, os.WriteFile(file("runs"), []byte("another file"), 0o600))
	code, _, errs = start(t, append(args, "-resume", file("runs"))...)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "line 1: is no run")
	kept, err := os.ReadFile(file("runs"))
	require.NoError(t, err)
	require.Equal(t, "another file", string(kept))

	// The same again is no worse, on one core too; what was better before is.
	code, out, errs = start(t, append(args, "-parallel", "1", "-baseline", file("base.csv"))...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "No score is below")
	base, err := os.ReadFile(file("base.csv"))
	require.NoError(t, err)
	before, err := readBaseline(strings.NewReader(string(base)))
	require.NoError(t, err)
	require.Len(t, before, 10*2)

	// Had it been better before, it is worse now.
	for i := range b.Entries {
		b.Rows[0].Oracle = []float64{1, 1}
		for seed := range uint64(2) {
			b.Entries[i].Cells[0].results = append(b.Entries[i].Cells[0].results, sim.Result{Seed: seed + 1, Attainment: 0.05, ReplicaHours: 1})
		}
	}
	err = b.compareBaseline(before, io.Discard)
	require.ErrorContains(t, err, recommendedName+": attained 0.")
	require.ErrorContains(t, err, limitName(0)+": attains ")
}

// TestRegressionALostRowIsFoundWithMoreSeeds: with a seed that the baseline did not have, a row could fall as far as the noise over all
// rows let it.
func TestRegressionALostRowIsFoundWithMoreSeeds(t *testing.T) {
	b, before := &board{}, map[judged]standing{}
	e := &entry{Name: "p"}
	for i := range 20 {
		row := fmt.Sprintf("row %d", i)
		attained := 0.99
		if i == 7 {
			attained = 0.5
		}
		c := &cell{Row: row}
		for seed := range uint64(2) {
			c.results = append(c.results, sim.Result{Seed: seed + 1, Attainment: attained, ReplicaHours: 1})
		}
		b.Rows = append(b.Rows, boarded{Oracle: []float64{1, 1}})
		e.Cells = append(e.Cells, c)
		before[judged{"p", row, 1}] = standing{0.99, 1}
	}
	b.Entries = []*entry{e}
	require.ErrorContains(t, b.compareBaseline(before, io.Discard), "of row 7, more than 0.02 less than before")
	before[judged{"p", "row 7", 1}] = standing{0.5, 1}
	require.NoError(t, b.compareBaseline(before, io.Discard))
	before[judged{"p", "row 7", 2}] = standing{0.99, 1} // not with every seed
	require.NoError(t, b.compareBaseline(before, io.Discard))
}

// What is worse, and by how much it may be.
func TestBaselineNoise(t *testing.T) {
	pairs := func(attained, ratio, spread float64) (all [][2]standing) {
		for i := range 12 {
			d := spread * float64(i%2*2-1)
			all = append(all, [2]standing{{0.98, 1.2}, {0.98 + attained + d, 1.2 + ratio + d}})
		}
		return all
	}
	for _, row := range []struct {
		attained, ratio, spread float64
		worse                   bool
	}{
		{0, 0, 0, false},
		{0, 0, 0.01, false},
		{-0.0003, 0.003, 0, false}, // rounding
		{-0.002, 0, 0, true},       // everywhere a little less
		{-0.002, 0, 0.01, false},   // within the noise
		{-0.01, -0.3, 0.005, true}, // cheaper, by serving less
		{0, 0.05, 0.01, true},      // dearer for the same
		{0.01, 0.05, 0.001, false}, // dearer, and serves more
		{0.01, -0.1, 0.01, false},  // better
	} {
		err := fallen(pairs(row.attained, row.ratio, row.spread))
		require.Equal(t, row.worse, err != nil, "%+v: %v", row, err)
	}
	require.NoError(t, fallen(nil))
	_, err := readBaseline(strings.NewReader("policy,row,seed,attained,x_oracle\na,b,c,d,e\n"))
	require.ErrorContains(t, err, "line 2")
}

// TestRegressionARowWithoutAnOracleIsNoneOfTheMean: where no schedule attains the goal, a ratio of 0 went into the means.
func TestRegressionARowWithoutAnOracleIsNoneOfTheMean(t *testing.T) {
	b := &board{Goal: 0.99}
	e := &entry{Name: "p"}
	for _, oracle := range [][]float64{{2, 2}, {0, 0}, {2, 0}} {
		b.Rows = append(b.Rows, boarded{Oracle: oracle, Present: []float64{0, 0}})
		e.Cells = append(e.Cells, &cell{results: []sim.Result{{Seed: 1, Attainment: 1, ReplicaHours: 3}, {Seed: 2, Attainment: 1, ReplicaHours: 3}}})
	}
	b.Entries = []*entry{e}
	b.sum()
	require.Equal(t, []estimate{{Mean: 1.5}, {}, {Mean: 1.5}}, each(e.Cells, func(c *cell) estimate { return c.OverOracle }))
	require.Equal(t, estimate{Mean: 1.5}, e.Score.OverOracle)
	require.Equal(t, 1.5, e.Score.MedianOracle)
	require.Equal(t, estimate{Mean: 1}, e.Score.Attainment)
}

// TestRegressionARunWithoutAnOracleHasNoCostToCompare: a ratio of 0, which is none, counted as a cost. Runs whose oracle was found since
// failed, and one that lost it hid that all others had become dearer.
func TestRegressionARunWithoutAnOracleHasNoCostToCompare(t *testing.T) {
	var pairs [][2]standing
	for range 12 {
		pairs = append(pairs, [2]standing{{0.98, 1.2}, {0.98, 1.2}})
	}
	found := append(slices.Clone(pairs), [2]standing{{0.98, 0}, {0.98, 1.2}}, [2]standing{{0.98, 0}, {0.98, 1.2}}, [2]standing{{0.98, 0}, {0.98, 1.2}}, [2]standing{{0.98, 0}, {0.98, 1.2}})
	require.NoError(t, fallen(found))
	require.NoError(t, fallen(found[12:]))
	for i := range pairs {
		pairs[i][1].ratio += 0.1
	}
	require.ErrorContains(t, fallen(append(pairs, [2]standing{{0.98, 1.2}, {0.98, 0}})), "costs 0.1000 ±0.0000 x the oracle more than before")
}

// TestBaselineHasSomethingToCompareWith: a gate with nothing behind it passed.
func TestBaselineHasSomethingToCompareWith(t *testing.T) {
	const header = "policy,row,seed,attained,x_oracle\n"
	for text, says := range map[string]string{
		"":                                      "line 1: must be policy,row,seed,attained,x_oracle",
		"p,r,1,0.99,1.1\n":                      "line 1: must be policy,row,seed,attained,x_oracle",
		header:                                  "must have a run, or there is nothing to compare with",
		header + "p,r,1,NaN,1.1\n":              "line 2: attained: NaN: must be within 0 and 1",
		header + "p,r,1,0.99,1\np,r,2,-Inf,1\n": "line 3: attained: -Inf: must be within 0 and 1",
		header + "p,r,1,0.99,NaN\n":             "line 2: x_oracle: NaN: must be a number that is not negative",
		header + "p,r,1,0.99,Inf\n":             "line 2: x_oracle: +Inf: must be a number that is not negative",
		header + "p,r,1,0.99,1\np,r,1,0.05,9\n": "line 3: seed: 1: must be a run of p in r once",
		header + "p,r,1,0.99\n":                 "wrong number of fields",
	} {
		_, err := readBaseline(strings.NewReader(text))
		require.ErrorContains(t, err, says, text)
	}
	all, err := readBaseline(strings.NewReader(header + "p,r,1,0.99,1.1\n"))
	require.NoError(t, err)
	require.Equal(t, map[judged]standing{{"p", "r", 1}: {0.99, 1.1}}, all)
}

// TestJournalOfWhatCannotBe: what a line has that no run can have, or that no run has, is not believed.
func TestJournalOfWhatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs")
	for result, says := range map[string]string{
		`{"seed": 1, "requests": 5, "attainmnt": 0.99}`: "line 1: json: unknown field",
		`{"seed": "1"}`: "line 1: result.seed: string: must be a whole number",
		`{"seed": 1, "requests": 5, "attainment": 7}`:                          "line 1: result.attainment: 7: must be within 0 and 1",
		`{"seed": 1, "requests": 5, "attainedTPOT": -1}`:                       "line 1: result.attainedTPOT: -1: must be within 0 and 1",
		`{"seed": 1, "requests": 5, "attainment": 0.9, "replicaHours": -3}`:    "line 1: result.replicaHours: -3: must be above 0",
		`{"seed": 1, "requests": 5, "attainment": 0.9, "replicaHours": 0}`:     "line 1: result.replicaHours: 0: must be above 0",
		`{"seed": 1, "requests": 5, "attainment": 0.9, "replicaHours": 1e308}`: "line 1: result.replicaHours: 1e+308: must be above 0 and at most 1e12",
		`{"seed": 1, "requests": 5, "replicaHours": 3}`:                        "line 1: result.attainment: must be there",
		`{"seed": 1, "attainment": 0.9, "replicaHours": 3}`:                    "line 1: result.requests: 0: must be at least 1",
		`{"seed": 1, "requests": 5, "attainment": 0.9}, "more": 1`:             "line 1: json: unknown field",
		`{"seed": 1, "requests": 5, "attainment": 0.9}} {"policy": "p", "a":1`: "line 1: must be one run",
	} {
		require.NoError(t, os.WriteFile(file, []byte(`{"policy":"p","row":"r","result":`+result+"}\n"), 0o600))
		_, err := openJournal(file)
		require.ErrorContains(t, err, says, result)
	}
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	_, err := openJournal(file)
	require.ErrorContains(t, err, "line 1: is no run")
}

// TestJournalOfARowWithoutAnOracle: a suite with a row in which no schedule attains the goal could not go on.
func TestJournalOfARowWithoutAnOracle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs")
	of := judged{oracleName, "r", 1}
	runs := 0
	for range 2 {
		j, err := openJournal(file)
		require.NoError(t, err)
		_, err = j.made(of, func() (sim.Result, error) { runs++; return sim.Result{}, nil })
		require.NoError(t, err)
		require.NoError(t, j.close())
	}
	require.Equal(t, 1, runs)
}

// TestSuiteFilesAreTriedFirst: a baseline that was not there, and scores that could not be written, were found out after an hour.
func TestSuiteFilesAreTriedFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		args, says string
		code       int
	}{
		{"-baseline nowhere.csv", "-baseline: open nowhere.csv", exitUsage},
		{"-baseline testdata/tiny.txt", "-baseline testdata/tiny.txt: ", exitUsage},
		{"-baseline no/where.csv -update", "-baseline: open no/where.csv", exitFail},
		{"-scores no/where.md", "-scores: open no/where.md", exitFail},
		{"-json no/where.json", "-json: open no/where.json", exitFail},
	} {
		var out, errs bytes.Buffer
		code := run(ctx, append([]string{"-suite", "-quick"}, strings.Fields(row.args)...), &out, &errs)
		require.Equal(t, row.code, code, row.args)
		require.Contains(t, errs.String(), row.says)
	}
}

func TestSuiteFlags(t *testing.T) {
	for args, says := range map[string]string{
		"-quick":                                "-quick goes with -suite",
		"-suite -trace x":                       "-trace does not go with -suite",
		"-suite -update":                        "-update goes with -baseline",
		"-suite -quick -rows chat/ramp/1s/qwen": "-rows does not go with -quick",
		"-suite -rows chat/ramp":                "must be shape/pattern/cold start/server",
		"-suite -rows chatt/ramp/100s/qwen":     "must be one of chat, code",
	} {
		code, _, errs := start(t, strings.Fields(args)...)
		require.Equal(t, exitUsage, code, args)
		require.Contains(t, errs, says, args)
	}
}

// A row is in budget by the oracle or by the limit; where neither is known, it is not.
func TestInBudget(t *testing.T) {
	for _, row := range []struct {
		oracle, limit float64
		is            bool
	}{
		{1.25, 1.5, true},
		{1.26, 1.10, true},
		{1.26, 1.11, false},
		{0, 1.10, true},
		{1.25, 0, true},
		{1.26, 0, false},
		{0, 0, false},
	} {
		c := cell{OverOracle: estimate{Mean: row.oracle}}
		if row.limit > 0 {
			c.OverLimit = &estimate{Mean: row.limit}
		}
		require.Equal(t, row.is, c.inBudget(), "%+v", row)
	}
}

// FuzzJournal opens any bytes as a journal. What is refused stays as it is, and has a line; what is taken keeps every whole line, and a run
// that is noted in it is known when it is opened again.
func FuzzJournal(f *testing.F) {
	good := `{"policy":"p","row":"r","result":{"policy":"p","seed":1,"requests":5,"attainment":0.9,"replicaHours":3}}` + "\n"
	for _, text := range []string{"", "\n", "{", good, good + good, good + `{"policy":"q","row`, good + "x", strings.TrimSpace(good), `{"policy":"replay oracle","row":"r","result":{"seed":1,"attainment":0}}` + "\n", strings.ToUpper(good)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "runs")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		j, err := openJournal(file)
		if err != nil {
			require.ErrorContains(t, err, "line ")
			kept, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(data), string(kept))
			return
		}
		of := judged{"new", "row", 7}
		_, had := j.runs[of]
		result := sim.Result{Policy: "new", Seed: 7, Requests: 5, Attainment: 0.5, ReplicaHours: 2}
		_, err = j.made(of, func() (sim.Result, error) { return result, nil })
		require.NoError(t, err)
		require.NoError(t, j.close())
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		whole := data[:bytes.LastIndexByte(data, '\n')+1]
		require.True(t, bytes.HasPrefix(kept, whole))
		again, err := openJournal(file)
		require.NoError(t, err)
		if !had {
			require.Len(t, again.runs, len(j.runs)+1)
			require.Equal(t, result, again.runs[of])
		}
		for of, r := range j.runs {
			require.Equal(t, r, again.runs[of])
		}
		require.NoError(t, again.close())
	})
}

// FuzzBaseline reads any bytes as the baseline of a suite: what is refused has a line, and what is taken are shares and costs.
func FuzzBaseline(f *testing.F) {
	const header = "policy,row,seed,attained,x_oracle\n"
	for _, text := range []string{"", header, header + "p,r,1,0.99,1.2\n", header + "p,r,1,0.99,1.2\np,r,1,0.99,1.2\n", header + "p,r,-1,NaN,Inf\n", header + "\"p\n", header + "p,r,1,0x1p-1,1_0\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := readBaseline(bytes.NewReader(data))
		if err != nil {
			require.Nil(t, all)
			require.Regexp(t, "line|must have a run", err.Error())
			return
		}
		require.NotEmpty(t, all)
		for _, s := range all {
			require.True(t, s.attained >= 0 && s.attained <= 1 && s.ratio >= 0 && !math.IsInf(s.ratio, 1))
		}
	})
}

// FuzzRows reads any text as -rows: each row is one once, and as text it is read back the same; what is refused names the flag.
func FuzzRows(f *testing.F) {
	for _, r := range suite.Quick() {
		f.Add(r.String())
	}
	for _, text := range []string{"", ",", "chat/ramp/100s", "chat/ramp/1m40s/qwen, chat/ramp/100s/qwen", "chat/ramp/1e3s/qwen", "chat/ramp/-1s/qwen", "chat/recorded/0/none", "agents/weekdays/0.5s/a100,docs/steps/1h/small"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, list string) {
		rows, err := parseRows(list)
		if err != nil {
			require.Nil(t, rows)
			require.ErrorContains(t, err, "-rows")
			return
		}
		require.NotEmpty(t, rows)
		for i, r := range rows {
			require.NotContains(t, rows[:i], r)
			again, err := suite.Parse(r.String())
			require.NoError(t, err)
			require.Equal(t, r, again)
		}
	})
}
