package realtime

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// InFlightHigh and InFlightLow are the thresholds that Responsive is tuned with: requests in flight (waiting and running) per
// replica. They suit a 32B model on two H100 and answers from 30 to 1,000 tokens.
const (
	InFlightHigh = 40
	InFlightLow  = 20
)

// Responsive returns the configuration of this algorithm that scores best for LLM servers in the simulator. Its metric should be
// the requests in flight with InFlightHigh and InFlightLow: a queue, the proposal's metric, shows a need only when it is too late
// by a cold start.
//
//	up    step 2, window 15 s, cooldown 30 s    one sample is enough, and then one more while the first replicas start
//	down  step 1, window 300 s, cooldown 60 s   five minutes without need, then one a minute
//
// with a cooldown for each direction and a period of 15 s. The table has the share of the requests with at most 3 s to the first
// token and 100 ms per token, and the average number of replicas, with cold starts of 100 s:
//
//	                                   Responsive      step 1          Kaito           Kaito, waiting 5 and 1
//	llm-d's ramp, 3 to 8               0.999 at 5.79   0.997 at 5.72   0.309 at 4.88   0.203 at 4.51
//	Azure 2023 conversations x 8       0.999 at 12.2   0.996 at 11.1   0.770 at 7.13   0.659 at 6.24
//	ServeGen m-large x 0.25, 4 hours   0.998 at 6.86   0.998 at 6.54   0.997 at 6.40   0.742 at 4.92
//
// See docs/simulator.md for the scenarios, and for how far each is from the best schedule.
func Responsive(bounds scaling.Bounds, metrics ...Metric) Config {
	c := Kaito(bounds, metrics...)
	c.Up = Rule{Step: 2, Cooldown: 30 * time.Second, Window: 15 * time.Second}
	c.Down = Rule{Step: 1, Cooldown: 60 * time.Second, Window: 300 * time.Second}
	c.CooldownScope = PerDirection
	return c
}
