package main

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// TestServersThatBecomeSlowerByHalf: the servers of a fleet become slower by half in the middle of a run, each asked over HTTP. Ten
// minutes later requests are served in time as before.
func TestServersThatBecomeSlowerByHalf(t *testing.T) {
	long.Skip(t)
	what, err := (&options{}).configured(demoDocument, scaling.Bounds{}, nil, io.Discard)
	require.NoError(t, err)
	group := scaling.GroupOf(what.policy)
	control, err := loop.New(group, loop.Config{Volatile: true})
	require.NoError(t, err)
	begin := time.Date(2026, 3, 9, 8, 0, 0, 0, time.UTC)
	now := begin
	scraper, err := scrape.New(scrape.Config{Metrics: what.metrics, Interval: period, AllowLocal: true, Now: func() time.Time { return now }})
	require.NoError(t, err)
	defer scraper.Close()
	f := &fleet{page: what.page()}
	defer f.close()
	require.NoError(t, f.scale(now.Add(-coldStart), 4))
	learned := func() (slowness, capacity float64) {
		type tuned struct {
			Tuning struct{ Slowness, Capacity, AnswerToken float64 }
		}
		type floor[T any] struct{ Base struct{ State T } }
		var state struct{ State floor[floor[tuned]] } // by timetable, by forecast
		data, err := group.MarshalJSON()
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &state))
		tuning := state.State.Base.State.Base.State.Tuning
		return tuning.Slowness, tuning.Capacity / max(tuning.AnswerToken, 1e-9) // tokens a second of a replica
	}
	span := func(minutes int) (attained float64) {
		served, inTime := f.served, f.inTime
		for second := range minutes * 60 {
			now = now.Add(time.Second)
			a := arrivals{requests: 3 + second%2, input: (3 + second%2) * 400, output: (3 + second%2) * (100 + second*37%100)}
			f.step(now, a)
			if second%15 != 14 {
				continue
			}
			_, err := f.round(t.Context(), now, control, scraper)
			require.NoError(t, err)
		}
		return float64(f.inTime-inTime) / float64(f.served-served)
	}
	span(10)
	before := span(15)
	slowness, tokens := learned()
	t.Logf("before: %.4f in time, %.2f times as slow as said, %.0f tokens/s, %d servers", before, slowness, tokens, f.spec())
	require.GreaterOrEqual(t, before, 0.99)
	require.InDelta(t, 1, slowness, 0.1)

	f.slow = 2
	shock := span(10)
	slowness, half := learned()
	t.Logf("in the ten minutes after it: %.4f in time, %.2f times as slow as said, %.0f tokens/s, %d servers", shock, slowness, half, f.spec())
	after := span(15)
	slowness, half = learned()
	t.Logf("after: %.4f in time, %.2f times as slow as said, %.0f tokens/s, %d servers", after, slowness, half, f.spec())
	require.InDelta(t, tokens/2, half, tokens/5, "of tokens a second that a replica is given")
	require.GreaterOrEqual(t, after, 0.99)
}
