package scrape

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Sweep is the result of one round over the pods.
type Sweep struct {
	// At is the time at which the sweep began; the readings carry it too.
	At time.Time
	// Readings has one reading per metric, in the order of Config.Metrics. An unknown metric has a reading too, with Values
	// 0: it is never a silent zero. Values, NotReady and Failed add up to the pods that count. A pod that has answered and
	// observed nothing is one of Values, or of Failed if no pod has observed anything. See [Config] for reuse and [Metric] for
	// Fill; the interval is
	//
	//	Lower = S / (C+M)    Upper = (S + Fill*M) / (C+M)    M = C * missing/present
	//
	// with S and C the sums of numerators and denominators over the pods with a value (C is their number unless the
	// metric is a ratio or a mean), and for quantiles the same on the merged observations.
	Readings []scaling.Reading
	// Histograms has one histogram for each metric that is read as Counts, in their order after the readings: what the pods
	// have counted since the first sweep. What a pod had counted before that is not included, unless the pod became ready
	// later and its page shows that its process started later (process_start_time_seconds, _created). Failed counts ready
	// pods of which the counts, or those of one of their engines, are missing. Their next page brings what they count
	// meanwhile; if the pod goes, it is lost. If a counter fell, or a process restarted, everything that it shows is new. If
	// pods differ in their buckets, counts go to the bucket of their lower end. When no pod has the first buckets any more,
	// the histogram restarts with those of the first pod by name. After a count or a sum above 2^53 all histograms restart in
	// the next sweep. If no pod has answered, it is unknown.
	Histograms []scaling.Histogram
	// Errors has one entry per metric: why its reading has no value, else nil. A metric that is absent from every page that
	// was read is an error even if old values are reused.
	Errors []error
	// Credentials says why changed credential files could not be used and the last good ones were. Otherwise it is nil.
	Credentials error
	// Pods has the results of each pod that counts, ready or not, sorted by name.
	Pods []PodResult
}

// Err joins Errors and Credentials. It is nil when every metric has a value.
func (s *Sweep) Err() error {
	return errors.Join(append(slices.Clone(s.Errors), s.Credentials)...)
}

// A PodResult is the result of one pod.
type PodResult struct {
	Name  string
	UID   string
	State PodState
	// Fetches has one entry for each page that was requested: normally one, none if the pod is not ready.
	Fetches []Fetch
	// Values has one entry per metric, in the order of Config.Metrics. The pods of a sweep that are not ready share one
	// slice of zero values.
	Values []PodValue
}

// A Fetch is one request.
type Fetch struct {
	// At is when it was sent: its samples are not older.
	At       time.Time
	Duration time.Duration
	Bytes    int // of the page, decompressed
	// Err is nil if the page was read; otherwise its Reason says what went wrong.
	Err *Error
}

// A PodValue is one metric of one pod.
type PodValue struct {
	// OK reports whether the pod has a value, even an old one.
	OK bool
	// Value is the result of the Metric's formula for the pod.
	Value float64
	// Min and Max are the lowest and the highest value of a data-parallel engine of the pod. For KV usage, Value is the mean
	// of the engines, and Max shows how near one of them is to saturation. For a Mean or Quantile they equal Value.
	Min, Max float64
	// Engines and Series are the numbers of data-parallel groups and of series that were read.
	Engines, Series int
	// Weight is the denominator: 1 for a plain gauge, the number of observations for a Mean or Quantile.
	Weight float64
	// At is when the value was taken.
	At time.Time
	// Reused reports that the value is the pod's last one, as its page could not be fetched. Err says why.
	Reused bool
	// Err says why there is no new value; it is nil for a pod that is not ready. With NoObservations the pod has answered
	// and counts among Values, with weight 0: it does not widen the interval.
	Err *Error
}

// roster returns the pods that count, each once, by name. It does not depend on the order of the pods.
func roster(pods []Pod) []Pod {
	live := make([]Pod, 0, len(pods))
	for _, p := range pods {
		if p.State.Counts() {
			live = append(live, p)
		}
	}
	// If a pod has two entries, the ready one is kept.
	slices.SortFunc(live, func(a, b Pod) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.State, b.State),
			strings.Compare(a.UID, b.UID), strings.Compare(a.Host, b.Host), strings.Compare(a.URL, b.URL))
	})
	names, uids := make(map[string]bool, len(live)), make(map[string]bool, len(live))
	return slices.DeleteFunc(live, func(p Pod) bool {
		if names[p.Name] || p.UID != "" && uids[p.UID] {
			return true
		}
		names[p.Name], uids[p.UID] = true, true
		return false
	})
}
