package scrape

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// TestFromPodsEqualsWhatIsScraped: a reading that a program makes of values of its own is the one that a sweep makes of
// pods with these values.
func TestFromPodsEqualsWhatIsScraped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fill := rapid.SampledFrom([]float64{0, 1, 10, 1e6}).Draw(t, "fill")
		shares := drawGauges(t, rapid.SampledFrom([]float64{1, 20, 1e9}).Draw(t, "limit"))
		notReady, failed := rapid.Int32Range(0, 5).Draw(t, "not ready"), rapid.Int32Range(0, 5).Draw(t, "failed")
		plan := gaugeMetric(fill)
		visits := make([]*visit, 0, len(shares)+int(notReady+failed))
		values := make([]float64, 0, len(shares))
		add := func(state PodState, s *share, err *Error) {
			v := &visit{shares: []*share{s}, result: PodResult{Values: []PodValue{{OK: s != nil, Err: err}}}}
			v.pod.State = state
			visits = append(visits, v)
		}
		for _, s := range shares {
			add(Ready, s, nil)
			values = append(values, s.num)
		}
		missing := scaling.Missing{NotReady: notReady, Failed: failed}
		for range notReady {
			state := rapid.SampledFrom([]PodState{NotReady, Unschedulable, Crashing}).Draw(t, "state")
			add(state, nil, nil)
			stuck := &visits[len(visits)-1].pod.Stuck
			*stuck = rapid.Bool().Draw(t, "stuck")
			switch state {
			case Unschedulable:
				missing.Unschedulable++
			case Crashing:
				missing.Crashing++
			case Ready, NotReady, Terminating, Failed, Completed:
			}
			if *stuck || state == Unschedulable {
				missing.Stuck++
			}
		}
		for range failed {
			add(Ready, nil, failf(Timeout, "late"))
		}
		want, err := plan.reading(0, visits, time.Time{})
		require.NoError(t, err)
		got := scaling.FromPods("q", values, missing, fill)
		same := func(a, b float64) bool { return !scaling.Exceeds(a, b) && !scaling.Exceeds(b, a) }
		require.True(t, same(want.Lower, got.Lower) && same(want.Upper, got.Upper), "%+v\n%+v", want, got)
		want.Lower, want.Upper = got.Lower, got.Upper
		require.Equal(t, want, got)
	})
}
