package k8s

import (
	"context"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// An Observer makes the observations for decisions. PodObserver is the one that scrapes pods.
type Observer interface {
	// Observe observes the targets of one decision; a Loop has one target. An error means that there is no observation: then
	// nothing is decided or written. Metrics without a value are not an error but unknown readings.
	Observe(ctx context.Context, scales []Scale) (Observed, error)
}

// Observed is the result of an Observer.
type Observed struct {
	// Readings are those of all targets together, one for each metric.
	Readings []scaling.Reading
	// Histograms are those of all targets together, one for each metric that is a histogram.
	Histograms []scaling.Histogram
	// Fleets has the replicas of each target, in the order in which the targets were given.
	Fleets []FleetView
	// Failures counts the pages and values that could not be read, by reason.
	Failures map[scrape.Reason]int
	// Err says why metrics have no value; nil if all have one.
	Err error
}

// A FleetView has the replicas of one target.
type FleetView struct {
	// Ready, NotReady and Absent are the numbers of replicas that count. Absent replicas were requested and have no pod yet.
	Ready, NotReady, Absent int32
	// Leaving is the number of replicas that do not count: terminating, failed or completed.
	Leaving int32
	// Restarted is the number of replicas with a container restart since the last observation.
	Restarted int32
	// Pods has the scrape results of the replicas that count. The values are in the order of Observed.Readings, then of
	// Observed.Histograms.
	Pods []scrape.PodResult
}
