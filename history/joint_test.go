package history_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/sim"
)

// goingTogether is an hour and a half of traffic whose lengths have correlated logarithms.
func goingTogether(correlation float64) sim.Trace {
	t := sim.Trace{Length: 90 * time.Minute}
	random := splitmix.Stream{State: 5}
	normal := func() float64 {
		return math.Sqrt(2*random.Exponential()) * math.Cos(2*math.Pi*random.Uniform())
	}
	at := 0.0
	for {
		at += random.Exponential() / 5
		q := sim.Request{At: time.Duration(at * float64(time.Second))}
		if q.At >= t.Length {
			return t
		}
		u := normal()
		v := correlation*u + math.Sqrt(1-correlation*correlation)*normal()
		q.Input = int32(min(16000, max(1, 900*math.Exp(0.9*u))))
		q.Output = int32(min(6000, max(1, 300*math.Exp(0.8*v))))
		t.Requests = append(t.Requests, q)
	}
}

// TestAnswersGoWithPrompts: no histogram has lengths jointly, but the tokens in the cache say how they go together. Drawn apart, a
// policy by the cache cost a tenth less by an imported history than in truth.
func TestAnswersGoWithPrompts(t *testing.T) {
	long.Skip(t)
	for _, want := range []float64{-0.8, 0, 0.8} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			r := record(t, scenario(sim.Qwen32B(), goingTogether(want), 0.02))
			d := dumped(t, r)
			w, _, err := reduced(t, d).Workload()
			require.NoError(t, err)
			require.InDelta(t, want, w.Correlation, 0.08)
			n, x, y, xy := 0.0, 0.0, 0.0, 0.0
			next := w.Arrivals(3)
			for q, more := next(); more; q, more = next() {
				n++
				x += float64(q.Input)
				y += float64(q.Output)
				xy += float64(q.Input) * float64(q.Output)
			}
			realN, realX, realY, realXY := 0.0, 0.0, 0.0, 0.0
			for _, o := range r.Done {
				realN++
				realX += float64(o.Input)
				realY += float64(o.Output)
				realXY += float64(o.Input) * float64(o.Output)
			}
			require.InEpsilon(t, realXY/realN/(realX/realN*realY/realN), xy/n/(x/n*y/n), 0.1)

			// Sequences that share blocks of prompts say nothing, nor does a cache of which nothing is known.
			d.Series = slices.DeleteFunc(d.Series, func(s history.Series) bool {
				return s.Signal == history.PrefixCacheHits || s.Signal == history.PrefixCacheQueries
			})
			w, _, err = reduced(t, d).Workload()
			require.NoError(t, err)
			require.Zero(t, w.Correlation)
		})
	}
}
