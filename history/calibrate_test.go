package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/sim"
)

// TestCalibrated calibrates servers from what was scraped of them.
func TestCalibrated(t *testing.T) {
	for _, row := range []struct {
		server sim.Server
		low    float64
		high   float64
	}{
		{sim.Qwen32B(), 1.5, 10}, {sim.Llama70BA100(), 1, 8}, {sim.Llama70BH100x4(), 1, 9},
	} {
		t.Run(row.server.Name, func(t *testing.T) {
			w := sim.Series{
				Step: 15 * time.Minute, Rates: sim.Diurnal(row.low, row.high, 12*time.Hour, 15*time.Minute),
				Input:  sim.Length{Mean: 1500, Deviation: 2000, Min: 1, Max: 16000, LogNormal: true},
				Output: sim.Length{Mean: 350, Deviation: 400, Min: 1, Max: 4000, LogNormal: true},
			}
			for i := range w.Rates { // what requests are like changes over a day
				w.Rates[i].Input = 800 + 1400*float64(i%7)/6
				w.Rates[i].Output = 200 + 300*float64(i%5)/4
			}
			f := reduced(t, dumped(t, record(t, scenario(row.server, w, 0.01))))
			r, err := calibrate.Fit(f.Points(), calibrate.Options{})
			require.NoError(t, err)
			for _, c := range []struct {
				name string
				got  calibrate.Estimate
				want float64
			}{
				{"base", r.Base, row.server.Base},
				{"prefill", r.PrefillToken, row.server.PrefillToken},
				{"sequence", r.Sequence, row.server.Sequence},
				{"kv", r.KVToken, row.server.KVToken},
				{"kvTokens", r.KVTokens, float64(row.server.KVTokens)},
			} {
				require.LessOrEqual(t, c.got.Lower, c.want*1.0001, c.name)
				require.GreaterOrEqual(t, c.got.Upper, c.want*0.9999, c.name)
				if c.got.Known() {
					require.InDelta(t, c.want, c.got.Value, 0.05*c.want, c.name)
				}
			}
			require.True(t, r.Base.Known() && r.PrefillToken.Known() && r.KVTokens.Known())
		})
	}
}
