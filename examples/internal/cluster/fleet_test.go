package cluster

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestFleetFollowsItsEquation compares the fleet with many small steps of the equation in its documentation.
func TestFleetFollowsItsEquation(t *testing.T) {
	now := time.Unix(0, 0)
	f := NewFleet(FleetOptions{Slots: 4, Service: 2 * time.Second, Now: func() time.Time { return now }})
	naive := 0.0
	for _, step := range []struct {
		rate    float64
		pods    int
		seconds int
	}{
		{0, 0, 5},   // nothing
		{3, 0, 10},  // no pods: it grows
		{3, 2, 60},  // two pods run 4 a second: it drains, through the point where slots fall free
		{3, 2, 60},  // steady
		{5, 2, 30},  // overload: all slots are taken after a while
		{5, 3, 10},  // relief
		{4, 2, 40},  // as many as two pods run
		{0, 2, 100}, // the end of the traffic
	} {
		f.SetRate(step.rate)
		f.setPods(step.pods)
		for range step.seconds {
			now = now.Add(time.Second)
			const steps = 10_000
			for range steps {
				naive += (step.rate - math.Min(naive, float64(4*step.pods))/2) / steps
			}
			assert.InDelta(t, naive, f.InFlight(), 0.01, "%+v", step)
		}
	}
	assert.InDelta(t, 0, f.InFlight(), 1e-9)
}

func TestFleetSharesOverReadyPods(t *testing.T) {
	now := time.Unix(0, 0)
	f := NewFleet(FleetOptions{Slots: 4, Service: time.Second, Now: func() time.Time { return now }})
	ready := Pod{Ready: true}
	f.SetRate(20)
	now = now.Add(time.Second)
	assert.Equal(t, Page(0, 0, 0), f.Metrics(ready), "no pods")
	f.setPods(2)
	assert.Equal(t, Page(6, 4, 0.95), f.Metrics(ready))
	f.setPods(4)
	assert.Equal(t, Page(1, 4, 0.95), f.Metrics(ready))
	f.setPods(10)
	assert.Equal(t, Page(0, 2, 0.475), f.Metrics(ready))
	assert.Equal(t, Page(0, 0, 0), f.Metrics(Pod{Ready: true, Leaving: true}))
	now = now.Add(-time.Hour)
	assert.InDelta(t, 20, f.InFlight(), 1e-9, "a clock that goes back is a clock that stands")
}

func TestPage(t *testing.T) {
	assert.Equal(t, `# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m\"x"} 0.5
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m\"x"} 2
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m\"x"} 1
`, string(render(Page(1, 2, 0.5), `m"x`)))
}
