package traces_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/traces"
)

// TestData checks the files against the sums that their README has.
func TestData(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("data", "README.md"))
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join("data", "*.gz"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		compressed, err := os.ReadFile(file)
		require.NoError(t, err)
		unzipped, err := gzip.NewReader(bytes.NewReader(compressed))
		require.NoError(t, err)
		require.True(t, unzipped.ModTime.IsZero() && unzipped.Name == "", "%s: compressed without -n", file)
		hash := sha256.New()
		_, err = io.Copy(hash, unzipped)
		require.NoError(t, err)
		row := "| " + strings.TrimSuffix(filepath.Base(file), ".gz") + " | `" + hex.EncodeToString(hash.Sum(nil)) + "` |"
		require.Contains(t, string(readme), row)
	}
}

// TestList opens everything that is listed and checks what the list says of it.
func TestList(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("data", "README.md"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, info := range traces.List() {
		require.False(t, seen[info.Name])
		seen[info.Name] = true
		w, err := traces.Open(info.Name)
		require.NoError(t, err)
		require.NoError(t, w.Validate("workload"))
		require.Equal(t, info.Length, w.Duration())
		switch w := w.(type) {
		case sim.Trace:
			require.Len(t, w.Requests, info.Requests)
			require.Zero(t, info.Windows)
		case sim.Series:
			require.Len(t, w.Rates, info.Windows)
			require.Zero(t, info.Requests)
		}
		require.Contains(t, string(readme), info.Licence)
		require.Contains(t, strings.ReplaceAll(string(readme), "\n", " "), info.Citation)
		require.NotEmpty(t, info.Title)
		require.NotEmpty(t, info.Source)
	}
	require.Len(t, seen, 4)

	w, err := traces.Open("azure")
	require.EqualError(t, err, `trace "azure": must be one of azure2023-conversation, mooncake-synthetic, servegen-m-large, servegen-m-small`)
	require.Nil(t, w)
}

func TestAzure2023Conversation(t *testing.T) {
	trace, err := traces.Azure2023Conversation()
	require.NoError(t, err)
	require.Equal(t, sim.Request{At: 0, Input: 374, Output: 44}, trace.Requests[0])
	require.Equal(t, sim.Request{At: 4315 * time.Millisecond, Input: 396, Output: 109}, trace.Requests[1])
	require.Equal(t, sim.Request{At: 3501722 * time.Millisecond, Input: 197, Output: 183}, trace.Requests[19365])
}

// TestServeGen checks the means over all requests, which the tokens of each window are drawn around.
func TestServeGen(t *testing.T) {
	large, err := traces.ServeGenLarge()
	require.NoError(t, err)
	require.Equal(t, 10*time.Minute, large.Step)
	require.Equal(t, sim.Rate{PerSecond: 212.78, Input: 355.4, Output: 292.5}, large.Rates[0])
	small, err := traces.ServeGenSmall()
	require.NoError(t, err)
	require.Equal(t, sim.Rate{PerSecond: 809.76167, Input: 137.9, Output: 19.8}, small.Rates[0])
	for _, l := range []sim.Length{large.Input, large.Output, small.Input, small.Output} {
		require.Equal(t, l.Mean, l.Deviation)
		require.True(t, l.LogNormal)
	}
	for _, r := range small.Rates {
		require.Positive(t, r.PerSecond)
		require.Positive(t, r.Input)
		require.Positive(t, r.Output)
	}
	_, again := traces.FillGaps(small)
	require.Zero(t, again)

	// The first gap is one window, at 619,200 s, and is filled with the mean of its neighbours.
	i := 619200 / 600
	before, gap, after := small.Rates[i-1], small.Rates[i], small.Rates[i+1]
	require.InDelta(t, (before.PerSecond+after.PerSecond)/2, gap.PerSecond, 1e-9)
	require.InDelta(t, (before.Input+after.Input)/2, gap.Input, 1e-9)
	require.InDelta(t, (before.Output+after.Output)/2, gap.Output, 1e-9)
}

func TestFillGaps(t *testing.T) {
	series := func(rates ...float64) sim.Series {
		s := sim.Series{Step: time.Minute}
		for _, r := range rates {
			mean := 0.0
			if r > 0 {
				mean = 10 * r
			}
			s.Rates = append(s.Rates, sim.Rate{PerSecond: r, Input: mean, Output: 1})
		}
		return s
	}
	for name, tt := range map[string]struct {
		given, want sim.Series
		filled      int
	}{
		"none":       {series(1, 2, 3), series(1, 2, 3), 0},
		"one":        {series(1, 0, 3), series(1, 2, 3), 1},
		"three":      {series(1, 0, 0, 0, 5), series(1, 2, 3, 4, 5), 3},
		"two gaps":   {series(1, 0, 3, 0, 1), series(1, 2, 3, 2, 1), 2},
		"at the end": {series(1, 2, 0, 0), series(1, 2, 2, 2), 2},
		"at first":   {series(0, 0, 2, 1), series(2, 2, 2, 1), 2},
		"nothing":    {series(0, 0), series(0, 0), 0},
		"empty":      {series(), series(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			given := append([]sim.Rate(nil), tt.given.Rates...)
			got, filled := traces.FillGaps(tt.given)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.filled, filled)
			require.Equal(t, given, tt.given.Rates, "the series given was changed")
		})
	}
	unknown := sim.Series{Rates: []sim.Rate{{PerSecond: 1, Input: 5}, {}, {PerSecond: 3, Output: 7}}}
	got, _ := traces.FillGaps(unknown)
	require.Equal(t, sim.Rate{PerSecond: 2}, got.Rates[1], "a mean between an unknown one and another is not known")
}

func TestSlice(t *testing.T) {
	const day = 24 * time.Hour
	large, err := traces.ServeGenLarge()
	require.NoError(t, err)
	for n := range 14 {
		from := time.Duration(n) * day
		s, err := traces.Slice(large, from, from+day)
		require.NoError(t, err)
		require.NoError(t, s.Validate("workload"))
		require.Equal(t, day, s.Duration())
		require.Equal(t, large.Rates[n*144:(n+1)*144], s.Rates)
		require.Equal(t, large.Input, s.Input)
	}
	for _, tt := range []struct {
		from, to time.Duration
		want     string
	}{
		{time.Minute, day, "from: 1m0s: must be a multiple of the step 10m0s within 0 and 336h0m0s"},
		{-day, day, "from: -24h0m0s: must be a multiple of the step 10m0s within 0 and 336h0m0s"},
		{13 * day, 15 * day, "to: 360h0m0s: must be a multiple of the step 10m0s within 0 and 336h0m0s"},
		{day, day, "to: 24h0m0s: must be after from, 24h0m0s"},
		{2 * day, day, "to: 24h0m0s: must be after from, 48h0m0s"},
	} {
		s, err := traces.Slice(large, tt.from, tt.to)
		require.EqualError(t, err, tt.want)
		require.Empty(t, s)
	}
	_, err = traces.Slice(sim.Series{}, 0, day)
	require.EqualError(t, err, "step: 0s: must be above 0")
}
