package scrape

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Sweep is what one round over the pods has found.
type Sweep struct {
	// At is when the sweep began; the readings carry it too.
	At time.Time
	// Readings has one reading a metric, in the order of Config.Metrics. A metric that is not known has a reading too,
	// with Values 0: it is never a silent zero. Values, NotReady and Failed add up to the pods that count. See
	// [Config] for reuse and [Metric] for Fill; the interval is
	//
	//	Lower = S / (C+M)    Upper = (S + Fill*M) / (C+M)    M = C * missing/present
	//
	// with S and C the sums of numerators and denominators over the pods with a value (C is their number unless the
	// metric is a ratio or a mean), and for quantiles the same on the merged observations.
	Readings []scaling.Reading
	// Histograms has one histogram for each metric that is read as Counts, in their order behind the readings: what the pods
	// have counted since the first sweep. What a pod had counted before it is not part of it, unless the pod was ready only later
	// and its page says that its process came later (process_start_time_seconds, _created). Failed are ready pods whose counts, or those
	// of one of their engines, could not be had; what they count meanwhile comes with their next page, while a pod that goes
	// takes it with it. A counter that fell, or a process that began anew, has counted all that it shows. Where pods differ in
	// their buckets, counts are put where their lower end is; when no pod has the first buckets any more, the histogram begins
	// anew with those of the first pod by name. Without a pod that answered it is not known.
	Histograms []scaling.Histogram
	// Errors has one entry a metric: why its reading has no value, else nil. A metric that is absent from every page
	// that was had is an error even while old values stand in.
	Errors []error
	// Credentials is why changed credential files could not be used; the last good ones were. Else it is nil.
	Credentials error
	// Pods has what was found on each pod that counts, ready or not, sorted by name.
	Pods []PodResult
}

// Err joins Errors and Credentials. It is nil when every metric has a value.
func (s *Sweep) Err() error {
	return errors.Join(append(slices.Clone(s.Errors), s.Credentials)...)
}

// A PodResult is what one pod said.
type PodResult struct {
	Name  string
	UID   string
	State PodState
	// Fetches has one entry for each page that was asked for: normally one, none if the pod is not ready.
	Fetches []Fetch
	// Values has one entry a metric, in the order of Config.Metrics. The pods of a sweep that are not ready have one slice, of
	// zero values, in common.
	Values []PodValue
}

// A Fetch is one request.
type Fetch struct {
	// At is when it was sent: its samples are not older.
	At       time.Time
	Duration time.Duration
	Bytes    int // of the page, decompressed
	// Err is nil if the page was had, else its Reason says what went wrong.
	Err *Error
}

// A PodValue is one metric of one pod.
type PodValue struct {
	// OK reports whether the pod has a value, be it an old one.
	OK bool
	// Value is what the Metric's formula gives for the pod.
	Value float64
	// Min and Max are the least and the greatest value of one data-parallel engine of the pod: with KV usage, Value is
	// the mean of the engines and Max says how near one of them is to saturation. Of a Mean or Quantile they are Value.
	Min, Max float64
	// Engines and Series are how many data-parallel groups and how many series were read.
	Engines, Series int
	// Weight is the denominator: 1 for a plain gauge, the number of observations for a Mean or Quantile.
	Weight float64
	// At is when the value was taken.
	At time.Time
	// Reused reports that the value is the pod's last, as its page could not be fetched. Err says why.
	Reused bool
	// Err is why there is no new value; a pod that is not ready has none. With NoObservations the pod has answered and counts among Values, with weight
	// 0: it does not widen the interval.
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
	// Of two entries for one pod, the ready one is kept.
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
