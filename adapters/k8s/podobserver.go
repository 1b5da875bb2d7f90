package k8s

import (
	"context"
	"fmt"
	"slices"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// maxAbsent is how many replicas without a pod take part in a sweep; beyond it they no longer change a reading much,
// and a count of two thousand million is no reason to run out of memory.
const maxAbsent = 4096

// A PodObserver is the Observer that finds a target's pods and scrapes them. It is not safe for concurrent use.
type PodObserver struct {
	pods    *Pods
	scraper *scrape.Scraper
	port    Port
}

// NewPodObserver returns the Observer that scrapes the replicas that pods finds, where port says.
//
// A scraper remembers the pods of its last sweep and no others, so each PodObserver needs one of its own. The interval
// in its configuration should be that of the loop.
func NewPodObserver(pods *Pods, scraper *scrape.Scraper, port Port) (*PodObserver, error) {
	var e scaling.FieldErrors
	e.Check(pods != nil, "pods", nil, "must be set")
	e.Check(scraper != nil, "scraper", nil, "must be set")
	e.Add(port.Validate("port"))
	if err := e.Err(); err != nil {
		return nil, err
	}
	return &PodObserver{pods: pods, scraper: scraper, port: port}, nil
}

// Observe finds the replicas of every target and asks those that are ready, all in one sweep. A replica that was asked
// for and has no pod yet counts as one that is not ready.
func (o *PodObserver) Observe(ctx context.Context, scales []Scale) (Observed, error) {
	seen := Observed{Fleets: make([]FleetView, len(scales))}
	var targets []scrape.Pod
	owner := make(map[string]int)
	for i, s := range scales {
		replicas, err := o.pods.Find(s)
		if err != nil {
			return Observed{}, err
		}
		view := &seen.Fleets[i]
		for n := range replicas {
			r := &replicas[n]
			if r.Restarted {
				view.Restarted++
			}
			if !r.Counts() {
				view.Leaving++
				continue
			}
			target := o.port.ScrapeTarget(r)
			target.Name = name(scales, s.Target, target.Name)
			if other, taken := owner[target.Name]; taken {
				return Observed{}, &TargetError{
					Target: s.Target, Doing: "tell apart the pods of",
					Err: fmt.Errorf("the selector of %s selects pod %s too", scales[other].Target, r.Name),
				}
			}
			owner[target.Name] = i
			targets = append(targets, target)
			if r.State == scrape.Ready {
				view.Ready++
			} else {
				view.NotReady++
			}
		}
		view.Absent = max(0, s.Replicas-view.Ready-view.NotReady)
		stuck := o.pods.Absent(s.Target, view.Absent)
		for n := range min(view.Absent, maxAbsent) {
			absent := name(scales, s.Target, fmt.Sprintf("(absent %d of %s)", n+1, s.Target.Name))
			owner[absent] = i
			targets = append(targets, scrape.Pod{Name: absent, State: scrape.NotReady, Stuck: n < stuck})
		}
	}
	sweep := o.scraper.Scrape(ctx, targets)
	if err := ctx.Err(); err != nil {
		return Observed{}, err // cut short: what it says of the pods is not their fault
	}
	seen.Readings, seen.Histograms, seen.Err = sweep.Readings, sweep.Histograms, sweep.Err()
	seen.Failures = make(map[scrape.Reason]int)
	for _, p := range sweep.Pods {
		count(seen.Failures, p)
		view := &seen.Fleets[owner[p.Name]]
		view.Pods = append(view.Pods, p)
	}
	return seen, nil
}

// Snapshot returns what the scraper remembers of counters and histograms, for the Restore of the one that takes its place:
// see scrape.Scraper.Snapshot.
func (o *PodObserver) Snapshot(limit int) (data []byte, left int) { return o.scraper.Snapshot(limit) }

// Close closes the scraper's connections.
func (o *PodObserver) Close() { o.scraper.Close() }

// name is a pod's name, with its namespace where the targets are in several.
func name(scales []Scale, t Target, pod string) string {
	if slices.ContainsFunc(scales, func(s Scale) bool { return s.Target.Namespace != t.Namespace }) {
		return t.Namespace + "/" + pod
	}
	return pod
}

// count adds a failure for each page that was not had and for each value that a page did not give.
func count(failures map[scrape.Reason]int, p scrape.PodResult) {
	if p.State != scrape.Ready {
		return
	}
	for _, f := range p.Fetches {
		if f.Err != nil {
			failures[f.Err.Reason]++
		}
	}
	for _, v := range p.Values {
		// A page that was not had is counted once, and not for every value on it.
		if v.Err != nil && (len(p.Fetches) == 0 || !v.Err.Reason.Fetch()) {
			failures[v.Err.Reason]++
		}
	}
}
