package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// unchecked is a workload of somebody's own, which looks at nothing.
type unchecked struct {
	sim.Trace
}

func (unchecked) Validate(string) error { return nil }

// asIs returns the group that keeps what there is.
func asIs() (scaling.Group, error) { return sim.Static(3), nil }

// TestRegressRequestsThatBreakTheRulesAreErrors: of a workload that does not check itself, requests out of order once came when
// the one before them did, those beyond the end never, and those without tokens never ended; nothing said so.
func TestRegressRequestsThatBreakTheRulesAreErrors(t *testing.T) {
	for says, requests := range map[string][]sim.Request{
		"workload.requests[0].at: -1s: must not be before the one before it, 0s": {{At: -time.Second, Input: 1, Output: 1}},
		"workload.requests[1].at: 1s: must not be before the one before it, 30s": {{At: 30 * time.Second, Input: 1, Output: 1}, {At: time.Second, Input: 1, Output: 1}},
		"workload.requests[0].at: 1h0m0s: must be before the end, 1m0s":          {{At: time.Hour, Input: 1, Output: 1}},
		"workload.requests[1].input: 0: must be at least 1":                      {{Input: 1, Output: 1}, {Output: 1}},
		"workload.requests[0].output: -1: must be at least 1":                    {{Input: 1, Output: -1}},
	} {
		s := sim.Ramp()
		s.Horizon, s.Workload = 0, unchecked{sim.Trace{Requests: requests, Length: time.Minute}}
		_, err := sim.Run(t.Context(), &s, asIs, sim.Options{})
		require.ErrorContains(t, err, says)
		var field *scaling.FieldError
		require.ErrorAs(t, err, &field)
		var last error
		for _, err := range sim.Requests(s.Workload, 1) {
			last = err
		}
		require.EqualError(t, last, says)
	}
}

// TestRegressAWorkloadOfNothingIsAnError: it once was a nil pointer that was used.
func TestRegressAWorkloadOfNothingIsAnError(t *testing.T) {
	for says, w := range map[string]sim.Workload{
		"workload: <nil>: must be set":       sim.Scaled(nil, 2),
		"workload.first: <nil>: must be set": sim.Sessions{},
	} {
		s := sim.Ramp()
		s.Workload = w
		require.ErrorContains(t, s.Validate(), says)
	}
}

// TestRegressCopiesOfOneInstantAreNotQuadratic: 128,000 copies of requests at one instant once took the better part of a minute.
func TestRegressCopiesOfOneInstantAreNotQuadratic(t *testing.T) {
	requests := make([]sim.Request, 32_000)
	for i := range requests {
		requests[i] = sim.Request{At: time.Second, Input: 1 + int32(i), Output: 1}
	}
	w := sim.Scaled(sim.Trace{Requests: requests, Length: time.Minute}, 4)
	begun, n := time.Now(), 0
	for r, err := range sim.Requests(w, 1) {
		require.NoError(t, err) // in order of time
		if n < len(requests) {
			require.Equal(t, requests[n], r) // those at one instant as they came
		}
		n++
	}
	require.Equal(t, 4*len(requests), n)
	require.Less(t, time.Since(begun), 10*time.Second)
}
