package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// TestGatewayEqualsTheNaiveTwin: with one replica that is ready at some time, a list that is looked through at each arrival
// rejects as many, lets as many go, and gives the others, in order, to a fleet that takes each step by itself.
func TestGatewayEqualsTheNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests, server := drawRequests(t, 40), drawServer(t)
		gateway := Gateway{Queue: rapid.Int32Range(0, 12).Draw(t, "queue"), Timeout: time.Duration(rapid.IntRange(0, 4000).Draw(t, "timeout")) * time.Millisecond}
		start := time.Duration(rapid.IntRange(0, 10_000).Draw(t, "start")) * time.Millisecond
		s := plain(Trace{Requests: requests}, server, 0)
		s.Gateway, s.Types[0].Startup, s.Control.Interval = gateway, ColdStart(start), time.Second
		var got []string
		r, err := Run(context.Background(), &s, func() (scaling.Group, error) { return Static(1), nil }, Options{Request: func(o Outcome) {
			got = append(got, fmt.Sprint(o.Arrived, o.Input, o.Output, o.TTFT, o.Total))
		}})
		require.NoError(t, err)

		ready := time.Second + start
		var held, given []Request
		rejected, expired := 0, 0
		forget := func(now time.Duration) {
			for gateway.Timeout > 0 && len(held) > 0 && held[0].At+gateway.Timeout < now {
				held = held[1:]
				expired++
			}
		}
		for _, q := range requests {
			if q.At > ready || q.At == ready && start > 0 {
				given = append(given, q)
				continue
			}
			forget(q.At)
			if gateway.Queue > 0 && len(held) == int(gateway.Queue) {
				rejected++
				continue
			}
			held = append(held, q)
		}
		forget(ready)
		if start == 0 {
			forget(ready + 1) // a decision comes after what ends and what arrives at its time
		}
		late := slices.Clone(held)
		for i := range late {
			late[i].At = ready
		}
		came := append(slices.Clone(held), given...)
		jobs, _ := naiveRun(append(late, given...), 1, server, LeastLoaded)
		var want []string
		for i, j := range jobs {
			at := int64(came[i].At) * 1000
			want = append(want, fmt.Sprint(elapsed(at), j.input, j.output, elapsed(j.first-at), elapsed(j.ended-at)))
		}
		slices.Sort(got)
		slices.Sort(want)
		require.Equal(t, want, got)
		require.EqualValues(t, rejected, r.Rejected)
		require.EqualValues(t, expired, r.Expired)
		require.Equal(t, r.Requests, r.Finished+r.Rejected+r.Expired)
	})
}

// TestGatewayWithoutLimitsIsNone: one whose limits nothing reaches changes nothing, in worlds where everything goes wrong.
func TestGatewayWithoutLimitsIsNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWorld(t)
		none := observe(t, &s, 2)
		s.Gateway = Gateway{Queue: math.MaxInt32, Timeout: 24 * time.Hour}
		require.Equal(t, encode(t, none), encode(t, observe(t, &s, 2)))
		s.Gateway = Gateway{Queue: rapid.Int32Range(1, 5).Draw(t, "queue"), Timeout: time.Duration(rapid.IntRange(1, 100).Draw(t, "timeout")) * time.Second}
		r := observe(t, &s, 2).Result // its books balance
		require.Equal(t, r.Requests, r.Finished+r.Unfinished+r.Refused+r.Rejected+r.Expired)
	})
}

// TestWhatIsHeldIsSeen: the signal Held is what a fleet of none knows of its work, exactly; held requests that were let go
// count with the time that they had waited, and as missed.
func TestWhatIsHeldIsSeen(t *testing.T) {
	trace := steady(time.Second, 60)
	s := plain(trace, slow(), 0)
	s.Gateway = Gateway{Queue: 20, Timeout: 30 * time.Second}
	s.Metrics = []Metric{{Name: "in flight", Signal: InFlight}, {Name: "held", Signal: Held}}
	seen := map[time.Duration]float64{}
	r := watched(t, s, []int32{0}, time.Minute, func(at time.Duration, v *scaling.GroupObservation) {
		require.Zero(t, v.Readings[0].Values, "there is nobody to ask")
		held := v.Readings[1]
		require.True(t, held.Known() && held.Lower == held.Upper)
		seen[at] = held.Lower
	})
	require.Equal(t, 15.0+1, seen[15*time.Second])
	require.Equal(t, 19.0, seen[30*time.Second], "20 until this second, from 20 s on nothing else; now the first one is gone")
	require.Equal(t, 19.0, seen[45*time.Second], "each second one more and one less")
	require.EqualValues(t, 20, r.Rejected, "from 20 s to 30 s, and from 51 s on")
	require.Zero(t, r.Finished)
	require.Zero(t, r.Attainment)
	require.Equal(t, int64(60), r.Rejected+r.Expired+r.Unfinished)
	require.Equal(t, 30.0, r.TTFT.Max)
}

// TestGatewayValidate names every wrong field at once.
func TestGatewayValidate(t *testing.T) {
	s := Ramp()
	s.Gateway = Gateway{Queue: -1, Timeout: -1}
	err := s.Validate()
	require.ErrorContains(t, err, "gateway.queue: -1: must not be negative")
	require.ErrorContains(t, err, "gateway.timeout: -1ns: must be within 0 and 24h")
}
