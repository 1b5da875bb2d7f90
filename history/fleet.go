package history

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// A Fleet is the recorded past of a fleet, by step. Interval i is the time from Start + i*Step to the next step. Unknown
// values are NaN.
type Fleet struct {
	Model  string
	Engine Engine
	Start  time.Time
	Step   time.Duration
	Target Target
	// Arrivals are the requests that arrived within each interval.
	Arrivals []float64
	// Spec are the requested replicas, and Ready the ready ones, at the end of each interval.
	Spec, Ready []float64
	// Spans has distributions for periods of at most an hour, in order: Prompts and Answers are the lengths of finished
	// requests, and TTFT and TPOT the seconds to the first token and per token after it.
	Spans []Span
	Pods  []Pod
	// Starts are the pods with a known time of creation and of readiness, in order of creation.
	Starts  []Start
	Notes   []Note
	Repairs Repairs

	sizes  []LengthsOf // by the time between two values of a bucket
	every  int         // intervals between two scrapes
	spread int         // intervals within long gaps: the number of arrivals in the gap is known, but not their times
	// prompted are the prompt tokens, and cached those of them found in prefix caches; NaN if a pod does not report them.
	prompted, cached float64
}

// A Target is the Deployment or StatefulSet to which the replicas belong; unknown fields are empty.
type Target struct{ Kind, Namespace, Name string }

// A Pod is one replica, from its creation to its end. A pod that comes back under the same name, as in a StatefulSet, is
// another, later Pod with that name. Its columns have the intervals from First on.
type Pod struct {
	Name  string
	First int
	// KVTokens is the size of the KV cache, NaN if unknown.
	KVTokens float64
	// Waiting and Running are requests, and KV the share of the cache in use, at the end of each interval.
	Waiting, Running, KV []float32
	// Prompted are the prompt tokens computed within the interval, without those found in a cache. Generated are answer
	// tokens. Firsts are first tokens.
	Prompted, Generated, Firsts []float32
	// TTFT is the sum of the seconds to first tokens, and ITL that of the seconds between tokens, of which there were
	// Tokens.
	TTFT, ITL, Tokens []float32
	// Span is the number of intervals that the counts of this one cover: more than one after a missing scrape, and 0 if the
	// process restarted in it.
	Span []uint16
}

// A Span has the distributions of a period.
type Span struct {
	From, To   int // intervals
	Prompts    Mixture
	Answers    Mixture
	TTFT, TPOT Mixture
}

// Counted is a histogram.
type Counted struct {
	Bounds []float64 // upper ends of the buckets, ascending
	Counts []float64 // one more than Bounds
	Sum    float64   // sum of the values; 0 if unknown
	Means  []float64 // means within the buckets, computed from the sums of many histograms; empty if they were not computed
}

// Total returns the number of values.
func (c *Counted) Total() float64 {
	total := 0.0
	for _, n := range c.Counts {
		total += n
	}
	return total
}

// A Mixture is several histograms of one quantity: one for each set of bounds that pods had.
type Mixture []Counted

// Total returns the number of values.
func (m Mixture) Total() float64 {
	total := 0.0
	for i := range m {
		total += m[i].Total()
	}
	return total
}

// Mean returns the mean, NaN if there are no values or their sum is unknown.
func (m Mixture) Mean() float64 {
	sum, total := 0.0, 0.0
	for i := range m {
		if m[i].Sum == 0 && m[i].Total() > 0 {
			return math.NaN()
		}
		sum += m[i].Sum
		total += m[i].Total()
	}
	if total == 0 {
		return math.NaN()
	}
	return sum / total
}

// Quantile returns the value below which a share q of the values is, interpolated linearly within its bucket as in
// histogram_quantile. It returns the last bound for values above it, and NaN if there are no values. If bounds differ, the
// interpolation uses all of them.
func (m Mixture) Quantile(q float64) float64 {
	total := m.Total()
	if total == 0 {
		return math.NaN()
	}
	low, high := 0.0, 0.0
	for i := range m {
		if b := m[i].Bounds; len(b) > 0 {
			high = max(high, b[len(b)-1])
		}
	}
	for range 60 {
		middle := (low + high) / 2
		if m.below(middle) < q*total {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// below returns the number of values of at most x.
func (m Mixture) below(x float64) float64 {
	n := 0.0
	for i := range m {
		c := &m[i]
		from := 0.0
		for k, b := range c.Bounds {
			switch {
			case b <= x:
				n += c.Counts[k]
			case from < x:
				n += c.Counts[k] * (x - from) / (b - from)
			}
			from = b
		}
	}
	return n
}

// A Start is the start of one replica.
type Start struct {
	Pod            string
	Created, Ready time.Time
}

// Took returns the time from creation to readiness.
func (s Start) Took() time.Duration { return s.Ready.Sub(s.Created) }

// A Note says what is unknown of a fleet, and the consequence.
type Note struct {
	Signal Signal
	Text   string
}

// String returns signal and text.
func (n Note) String() string { return fmt.Sprintf("%s: %s", n.Signal, n.Text) }

// Repairs count the defects of a history that were repaired.
type Repairs struct {
	Pods       int // number of pods, including those that came back under their names
	Restarts   int // restarts of pods: their counters began again
	Gaps       int // periods without a value between values of a pod
	GapSteps   int // their length, in steps
	Relabelled int // times that a pod's series continued under other labels
	Duplicated int // pods with a duplicate series
	Rebucketed int // times that a histogram had other bounds than before, or than those of other pods
	Spread     int // requests that arrived within gaps: their number is known, but not their times
}

// String lists the counts that are not zero.
func (r Repairs) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d pods", r.Pods)
	for _, c := range []struct {
		n    int
		what string
	}{
		{r.Restarts, "restarts"},
		{r.Gaps, "gaps"},
		{r.GapSteps, "steps in gaps"},
		{r.Relabelled, "changes of labels"},
		{r.Duplicated, "pods with series that are there twice"},
		{r.Rebucketed, "changes of buckets"},
		{r.Spread, "requests within gaps"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&text, ", %d %s", c.n, c.what)
		}
	}
	return text.String()
}

// A RefusedError says why a history cannot be made into a fleet.
type RefusedError struct {
	Signal Signal
	Why    string
}

// Error returns the signal and why.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Signal, e.Why) }

// ReplicaHours returns the integral of the requested replicas over the intervals in which they are known, and the share of
// these intervals.
func (f *Fleet) ReplicaHours() (hours, known float64) {
	return total(f.Spec, f.Step.Hours())
}

// Requests returns the number of requests that arrived, and the share of the intervals in which it is known.
func (f *Fleet) Requests() (requests, known float64) {
	return total(f.Arrivals, 1)
}

// total adds up the known values, each so many times, and returns their share too.
func total(values []float64, times float64) (sum, known float64) {
	for _, x := range values {
		if !math.IsNaN(x) {
			sum += x * times
		}
	}
	return sum, float64(len(values)-count(values)) / float64(max(1, len(values)))
}

// at returns the time at which an interval begins.
func (f *Fleet) at(i int) time.Time { return f.Start.Add(time.Duration(i) * f.Step) }
