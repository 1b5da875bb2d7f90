package proportional

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// KPA returns the configuration of a Knative pod autoscaler: stable window 60 s, panic window a tenth of it, panic at
// 200 % of what is ready, up to 1000 times and down to half of what is ready at one decision, no tolerance, no
// scale-down delay, buckets of a second. Knative records totals each second and decides every two.
//
// Knative's own targets are 70 % of what a replica can take: 70 for its default concurrency of 100.
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
// but to no less than the most that was recommended in 300 s. Kubernetes decides every 15 s.
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

// InFlightTarget is the requests in flight, waiting and running, that LLM's documentation starts from: per replica of
// a 32B model on two H100.
const InFlightTarget = 50

// LLM returns the configuration that suits LLM servers, whose replicas are dear and take minutes to start. Its metric
// should be the requests in flight (waiting + running) with a target near InFlightTarget.
//
//	stable window 120 s, panic window 30 s   requests run for tens of seconds and scrapes come every 15 s: a
//	                                         shorter window sees one batch, or one scrape
//	panic at 200 % of what was asked for     start-up credit: replicas on their way count, or each decision of a
//	                                         cold start would find the same burst and extend the panic
//	scale-down delay 300 s                   a replica that is let go costs a cold start when the load is back
//	tolerance 10 % both ways                 a replica more or less is a tenth of a fleet of ten
//	down to half at one decision             a lull is not an end
func LLM(bounds scaling.Bounds, metrics ...Metric) Config {
	return Config{
		Bounds:        bounds,
		Metrics:       metrics,
		Up:            Rule{Tolerance: 0.1},
		Down:          Rule{Tolerance: 0.1, MaxRate: 2},
		StableWindow:  2 * time.Minute,
		Panic:         Panic{Window: 30 * time.Second, Threshold: 2},
		Resolution:    time.Second,
		Stabilization: scaling.Stabilization{Down: 300 * time.Second},
		StartupCredit: true,
	}
}

// PanicWindow returns the panic window that is a percentage of a stable window, as Knative has it: rounded to whole
// seconds, at least one.
func PanicWindow(stable time.Duration, percent float64) time.Duration {
	return time.Duration(math.Max(1, math.Round(stable.Seconds()*percent/100))) * time.Second
}
