package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A row with two seeds: the table, its files, and the baseline that they are.
func TestSuite(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"-suite", "-rows", "docs/ramp/30s/a100", "-policy", "recommended,aibrix/apa", "-seeds", "2"}
	code, out, errs := start(t, append(args, "-json", file("s.json"), "-scores", file("scores.md"), "-baseline", file("base.csv"), "-update")...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "* recommended: "+recommendedName)
	data, err := os.ReadFile(file("s.json"))
	require.NoError(t, err)
	var b board
	require.NoError(t, json.Unmarshal(data, &b))
	require.Len(t, b.Entries, 4+2, "four limits and two policies")
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

	// The same again is no worse, on one core too; what was better before is.
	code, out, errs = start(t, append(args, "-parallel", "1", "-baseline", file("base.csv"))...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "No score is below")
	base, err := os.ReadFile(file("base.csv"))
	require.NoError(t, err)
	lines := strings.Split(string(base), "\n")
	for i, line := range lines {
		if part := strings.Split(line, ","); len(part) > 5 && part[0] == recommendedName && part[1] == "all" {
			part[2], part[4], part[5] = "0.5000", "0.5000", "0.0001"
			lines[i] = strings.Join(part, ",")
		}
	}
	require.NoError(t, os.WriteFile(file("base.csv"), []byte(strings.Join(lines, "\n")), 0o600))
	before, err := readBaseline(strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	require.InDelta(t, 0.5, before[recommendedName].ratio.Mean, 1e-9)
}

// What is worse, and by how much it may be.
func TestBaselineNoise(t *testing.T) {
	was := standing{estimate{0.99, 0.002}, estimate{1.2, 0.02}}
	for _, row := range []struct {
		attained, ratio float64
		worse           bool
	}{
		{0.99, 1.2, false},
		{0.988, 1.21, false},  // within the noise
		{0.985, 1.1, true},    // cheaper, by serving less
		{0.99, 1.25, true},    // dearer for the same
		{0.999, 1.25, false},  // dearer, and serves more
		{0.98, 1.3, true},     // both
		{0.9999, 1.0, false},  // better
		{0.9904, 1.23, true},  // a thousandth more is no excuse
		{0.9906, 1.23, false}, // more than that is another trade
	} {
		err := standing{estimate{row.attained, 0}, estimate{row.ratio, 0}}.fallen(was)
		require.Equal(t, row.worse, err != nil, "%+v: %v", row, err)
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
