package proportional

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// KPA returns the configuration of a Knative pod autoscaler: stable window 60 s, panic window a tenth of it, panic at 200 % of
// the ready replicas, one decision up to 1000 times and down to half of the ready replicas, no tolerance, no scale-down delay,
// buckets of one second. Knative records totals every second and decides every two seconds.
//
// Knative's own targets are 70 % of the capacity of a replica: 70 for its default concurrency of 100.
func KPA(bounds scaling.Bounds, metrics ...Metric) Config {
	return Config{
		Bounds:       bounds,
		Metrics:      metrics,
		Up:           Rule{MaxRate: 1000},
		Down:         Rule{MaxRate: 2},
		StableWindow: time.Minute,
		Panic:        Panic{Window: PanicWindow(time.Minute, 10), Threshold: 2},
		Resolution:   time.Second,
	}
}

// HPA returns the configuration of a Kubernetes HorizontalPodAutoscaler with the default behavior: no windows,
// tolerance 10 % both ways; up at once by 4 replicas or 100 % in 15 s, whichever is more; down by up to 100 % in 15 s,
// but not below the highest recommendation of the last 300 s. Kubernetes decides every 15 s.
func HPA(bounds scaling.Bounds, metrics ...Metric) Config {
	return Config{
		Bounds:        bounds,
		Metrics:       metrics,
		Up:            Rule{Tolerance: 0.1},
		Down:          Rule{Tolerance: 0.1},
		Stabilization: scaling.Stabilization{Down: 300 * time.Second},
		RateLimits: scaling.RateLimits{
			Up:   scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 4, Period: 15 * time.Second}, {Percent: 100, Period: 15 * time.Second}}},
			Down: scaling.RateLimit{Limits: []scaling.Limit{{Percent: 100, Period: 15 * time.Second}}},
		},
	}
}

// Kthena returns the configuration that the autoscaler of Kthena 1.0.0 has if only metrics are given, and a panic, which it then does
// not have: tolerance 10 % both ways, panic at 200 % of the ready replicas, held for 60 s; up by 4 replicas or 100 % in 60 s,
// whichever is more; down by up to 100 % in 60 s, but not below the highest recommendation of the last 300 s. Kthena 1.0.0 panics only
// where a panicPolicy is given, at 200 % of the replicas that were asked for, and in panic that policy limits scale-ups instead. It
// decides every 15 s. Its averages are instantaneous, while loads here are averaged over 60 s, and over 15 s for the panic.
func Kthena(bounds scaling.Bounds, metrics ...Metric) Config {
	return Config{
		Bounds:        bounds,
		Metrics:       metrics,
		Up:            Rule{Tolerance: 0.1},
		Down:          Rule{Tolerance: 0.1},
		StableWindow:  time.Minute,
		Panic:         Panic{Window: 15 * time.Second, Threshold: 2},
		Resolution:    time.Second,
		Stabilization: scaling.Stabilization{Down: 300 * time.Second},
		RateLimits: scaling.RateLimits{
			Up:   scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 4, Period: time.Minute}, {Percent: 100, Period: time.Minute}}},
			Down: scaling.RateLimit{Limits: []scaling.Limit{{Percent: 100, Period: time.Minute}}},
		},
	}
}

// InFlightTarget is the target that LLM is tuned with: requests in flight (waiting and running) per replica of a 32B model on two
// H100, with answers from 30 to 1,000 tokens.
const InFlightTarget = 35

// LLM returns the configuration that suits LLM servers, whose replicas are expensive and take minutes to start. Its metric
// should be the requests in flight (waiting + running) with a target near InFlightTarget.
//
//	stable window 30 s                   two scrapes of 15 s: longer windows see a burst too late, and no panic is needed
//	tolerance 10 % up, 30 % down         fewer replicas make answers slower, so that more requests are in flight: a
//	                                     replica that looks superfluous may not be
//	scale-down delay 300 s               a removed replica costs a cold start when the load returns
//	down by 1 or 10 %, in 60 s           whichever is more; the effect shows before the next removal
//
// The table has the share of the requests with at most 3 s to the first token and 100 ms per token, and the average number of
// replicas, in the simulator with cold starts of 100 s:
//
//	                                   LLM             HPA             Kthena          KPA
//	llm-d's ramp, 3 to 8               0.999 at 5.74   0.999 at 5.69   0.997 at 5.60   0.957 at 5.32
//	Azure 2023 conversations x 8       0.998 at 11.2   0.999 at 11.7   0.997 at 10.9   0.939 at 12.8
//	ServeGen m-large x 0.25, 4 hours   0.996 at 6.64   0.882 at 10.9   0.825 at 12.9   0.577 at 12.8
//
// All of them use InFlightTarget. The others oscillate where answers are short, since the requests in flight then fall by more
// than half when the replicas double.
//
// See docs/simulator.md for the scenarios, and for how far each is from the best schedule.
func LLM(bounds scaling.Bounds, metrics ...Metric) Config {
	down := scaling.RateLimit{Limits: []scaling.Limit{
		{Replicas: 1, Period: time.Minute}, {Percent: 10, Period: time.Minute},
	}}
	return Config{
		Bounds:        bounds,
		Metrics:       metrics,
		Up:            Rule{Tolerance: 0.1},
		Down:          Rule{Tolerance: 0.3},
		StableWindow:  30 * time.Second,
		Resolution:    time.Second,
		Stabilization: scaling.Stabilization{Down: 300 * time.Second},
		RateLimits:    scaling.RateLimits{Down: down},
	}
}

// PanicWindow returns the panic window that is a percentage of a stable window, as in Knative: rounded to whole seconds, at
// least one.
func PanicWindow(stable time.Duration, percent float64) time.Duration {
	return time.Duration(math.Max(1, math.Round(stable.Seconds()*percent/100))) * time.Second
}
