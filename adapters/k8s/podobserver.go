package k8s

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// maxAbsent is the maximum number of replicas without a pod that a sweep counts. More would hardly change a reading, and with
// a replica count of two thousand million the process would run out of memory.
const maxAbsent = 4096

// A PodObserver is an Observer that finds a target's pods and scrapes them. It is not safe for concurrent use.
type PodObserver struct {
	pods    *Pods
	scraper *scrape.Scraper
	port    Port
}

// NewPodObserver returns the Observer that scrapes, at port, the replicas that pods finds.
//
// A scraper remembers only the pods of its last sweep, so each PodObserver needs its own scraper. The interval in the
// scraper's configuration should be that of the loop.
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

// Observe finds the replicas of every target and scrapes those that are ready, all in one sweep. A replica that was requested
// and has no pod yet counts as not ready.
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
		of := s.Target.Name
		if slices.ContainsFunc(scales, func(x Scale) bool {
			return x.Target.Name == of && x.Target.Namespace == s.Target.Namespace && x.Target != s.Target
		}) {
			of = s.Target.key() // as there is one of another kind
		}
		for n := range min(view.Absent, maxAbsent) {
			absent := name(scales, s.Target, fmt.Sprintf("(absent %d of %s)", n+1, of))
			owner[absent] = i
			targets = append(targets, scrape.Pod{Name: absent, State: scrape.NotReady, Stuck: n < stuck})
		}
	}
	limited, cancel := early(ctx)
	defer cancel()
	sweep := o.scraper.Scrape(limited, targets)
	if err := ctx.Err(); err != nil {
		return Observed{}, err // the sweep was cut short: pods without an answer are not at fault
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

// early returns a context that ends when nine tenths of the time that another has left have passed. Pods that have not answered by then
// are missing, and there is time to decide on the others and to write.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-time.Until(end)/10)) //nolint:forbidigo // the clock of the context
}

// Snapshot returns the counters and histograms that the scraper remembers, for the Restore of the scraper that replaces it:
// see scrape.Scraper.Snapshot.
func (o *PodObserver) Snapshot(limit int) (data []byte, left int) { return o.scraper.Snapshot(limit) }

// Close closes the scraper's connections.
func (o *PodObserver) Close() { o.scraper.Close() }

// name returns a pod's name, with its namespace if the targets are in different namespaces.
func name(scales []Scale, t Target, pod string) string {
	if slices.ContainsFunc(scales, func(s Scale) bool { return s.Target.Namespace != t.Namespace }) {
		return t.Namespace + "/" + pod
	}
	return pod
}

// count adds a failure for each page that could not be read and for each value that a page lacks.
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
		// A page that could not be read is counted once, not for every value on it.
		if v.Err != nil && (len(p.Fetches) == 0 || !v.Err.Reason.Fetch()) {
			failures[v.Err.Reason]++
		}
	}
}
