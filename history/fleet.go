package history

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// A Fleet is what a fleet did, by step. Interval i is the time from Start + i*Step to the next one; what is not known of it
// is NaN.
type Fleet struct {
	Model  string
	Engine Engine
	Start  time.Time
	Step   time.Duration
	Target Target
	// Arrivals are the requests that came within each interval.
	Arrivals []float64
	// Spec are the replicas that were asked for, and Ready those that were ready, at the end of each interval.
	Spec, Ready []float64
	// Prompts and Answers are the lengths of requests that finished, and TTFT and TPOT the seconds to the first token and per
	// token after it, by spans of at most an hour, in order.
	Spans []Span
	Pods  []Pod
	// Starts are the pods whose creation and readiness are both known, in order of creation.
	Starts  []Start
	Notes   []Note
	Repairs Repairs

	sizes  []LengthsOf // by time between two values of a bucket
	every  int         // intervals between two scrapes
	spread int         // intervals within long gaps: how many came is known, but not when
	// prompted are the tokens of all prompts, and cached those of them that prefix caches had; NaN where a pod does not say.
	prompted, cached float64
}

// A Target is the Deployment or StatefulSet whose replicas a fleet is; what is not known is empty.
type Target struct{ Kind, Namespace, Name string }

// A Pod is one replica, from its creation to its end. One that comes back under its name, as a StatefulSet's does, is another Pod of that
// name, later. Its columns have the intervals from First on.
type Pod struct {
	Name  string
	First int
	// KVTokens is what the KV cache has room for, NaN if that is not known.
	KVTokens float64
	// Waiting and Running are requests, and KV the share of the cache that is in use, at the end of each interval.
	Waiting, Running, KV []float32
	// Prompted are the tokens of prompts that were computed within the interval, without those that a cache had. Generated
	// are tokens of answers. Firsts are first tokens.
	Prompted, Generated, Firsts []float32
	// TTFT are the seconds that first tokens took together, ITL those between tokens, of which there were Tokens.
	TTFT, ITL, Tokens []float32
	// Span is how many intervals what was counted in this one comes from: more than one where a scrape was missing, and 0 where its process began anew.
	Span []uint16
}

// A Span has the distributions of a time.
type Span struct {
	From, To   int // intervals
	Prompts    Mixture
	Answers    Mixture
	TTFT, TPOT Mixture
}

// Counted is a histogram.
type Counted struct {
	Bounds []float64 // upper ends of the buckets, rising
	Counts []float64 // one more than Bounds
	Sum    float64   // of what was counted; 0 if it is not known
	Means  []float64 // within each bucket, as the sums of many histograms tell it; empty if they have not been asked
}

// Total returns how many were counted.
func (c *Counted) Total() float64 {
	total := 0.0
	for _, n := range c.Counts {
		total += n
	}
	return total
}

// A Mixture is several histograms of one thing: one for each set of bounds that pods had.
type Mixture []Counted //nolint:recvcheck // add changes it

// Total returns how many were counted.
func (m Mixture) Total() float64 {
	total := 0.0
	for i := range m {
		total += m[i].Total()
	}
	return total
}

// Mean returns the mean, NaN if nothing was counted or its sum is not known.
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

// Quantile returns the value below which a share q of what was counted is, on a straight line within its bucket as
// histogram_quantile has it; the last bound for what is above it, and NaN if nothing was counted. Where bounds differ the
// line goes through all of them.
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

// below returns how many are at most x.
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

// A Start is how long a replica took.
type Start struct {
	Pod            string
	Created, Ready time.Time
}

// Took returns the time from creation to readiness.
func (s Start) Took() time.Duration { return s.Ready.Sub(s.Created) }

// A Note says what is not known of a fleet, and what that costs.
type Note struct {
	Signal Signal
	Text   string
}

// String returns signal and text.
func (n Note) String() string { return fmt.Sprintf("%s: %s", n.Signal, n.Text) }

// Repairs count what was wrong with a history and was dealt with.
type Repairs struct {
	Pods       int // that there were, those that came back under their names included
	Restarts   int // of pods: their counters began anew
	Gaps       int // times without a value, between values of a pod
	GapSteps   int // their length, in steps
	Relabelled int // times that a pod's series went on under other labels
	Duplicated int // pods of which a series was there twice at a time
	Rebucketed int // times that a histogram had other bounds than before, or than those of other pods
	Spread     int // requests that came within gaps: how many is known, but not when
}

// String names those that there were.
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

// A RefusedError says why no fleet can be made of a history.
type RefusedError struct {
	Signal Signal
	Why    string
}

// Error returns the signal and why.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Signal, e.Why) }

// ReplicaHours returns the integral of the replicas that were asked for over the intervals in which that is known, and the
// share of all intervals that those are.
func (f *Fleet) ReplicaHours() (hours, known float64) {
	n := 0
	for _, x := range f.Spec {
		if !math.IsNaN(x) {
			hours += x * f.Step.Hours()
			n++
		}
	}
	return hours, float64(n) / float64(max(1, len(f.Spec)))
}

// Requests returns how many requests came, and the share of the intervals of which that is known.
func (f *Fleet) Requests() (requests, known float64) {
	n := 0
	for _, x := range f.Arrivals {
		if !math.IsNaN(x) {
			requests += x
			n++
		}
	}
	return requests, float64(n) / float64(max(1, len(f.Arrivals)))
}

// at returns the time at which an interval begins.
func (f *Fleet) at(i int) time.Time { return f.Start.Add(time.Duration(i) * f.Step) }
