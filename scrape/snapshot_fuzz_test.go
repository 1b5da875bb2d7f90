package scrape

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzRestore restores arbitrary bytes: they are refused, or those baselines are taken that a Scraper can have remembered. These are
// stored and read back the same, and with them every metric is a number that is finite and not negative, or has a reason.
func FuzzRestore(f *testing.F) {
	clock := newTestClock()
	metrics := append(countingMetrics(0.5, 1), Metric{Name: "lately", Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: 0.99, Across: Max}}})
	p := newFakePod(f, "p", countingPage(100))
	before := newScraper(f, Config{Metrics: metrics, Now: clock.now})
	before.Scrape(f.Context(), []Pod{p.pod})
	data, left := before.Snapshot(1 << 20)
	require.Zero(f, left)
	f.Add(data)
	clock.advance(10 * time.Second)
	p.say(countingPage(150))
	f.Add([]byte(`{"version":1,"pods":{}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"pods":{"uid/uid-p":[{"of":"x","at":1,"rows":[1e308,-1]}],"uid/uid-q":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newScraper(t, Config{Metrics: metrics, Now: clock.now})
		if err := s.Restore(data); err != nil {
			require.ErrorContains(t, err, "snapshot")
			require.Empty(t, s.memory)
			return
		}
		const limit = 1 << 20
		stored, left := s.Snapshot(limit)
		require.Zero(t, left)
		require.LessOrEqual(t, len(stored), 1024+64*len(data))
		again := newScraper(t, Config{Metrics: metrics, Now: clock.now})
		require.NoError(t, again.Restore(stored))
		twice, _ := again.Snapshot(limit)
		require.Equal(t, string(stored), string(twice))
		require.True(t, json.Valid(stored))

		sweep := s.Scrape(t.Context(), []Pod{p.pod})
		for _, r := range sweep.Readings {
			require.False(t, r.Lower < 0 || math.IsNaN(r.Lower) && r.Values > 0 || math.IsInf(r.Lower, 0), "%+v", r)
		}
		after, _ := s.Snapshot(limit)
		require.True(t, json.Valid(after))
	})
}
