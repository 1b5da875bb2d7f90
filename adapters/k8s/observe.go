package k8s

import (
	"context"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// An Observer finds out what there is to decide on. PodObserver is the one that asks pods.
type Observer interface {
	// Observe looks at targets that are decided on together; a Loop has one. An error means that nothing can be said,
	// and nothing is written; metrics without a value are no error but readings that are not known.
	Observe(ctx context.Context, scales []Scale) (Observed, error)
}

// Observed is what an Observer saw.
type Observed struct {
	// Readings are of all targets together, one a metric.
	Readings []scaling.Reading
	// Histograms are of all targets together, one for each metric that is counted.
	Histograms []scaling.Histogram
	// Fleets has what there is of each target, in the order in which they were given.
	Fleets []FleetView
	// Failures counts why pods gave no value, by reason.
	Failures map[scrape.Reason]int
	// Err is why metrics have no value, or nil.
	Err error
}

// A FleetView is what there is of one target.
type FleetView struct {
	// Ready, NotReady and Absent are replicas that count: Absent ones were asked for and have no pod yet.
	Ready, NotReady, Absent int32
	// Leaving are replicas that do not count: terminating, failed, completed.
	Leaving int32
	// Restarted are replicas of which a container restarted since the last look.
	Restarted int32
	// Pods has what each replica that counts said, values in the order of Observed.Readings, then of
	// Observed.Histograms.
	Pods []scrape.PodResult
}
