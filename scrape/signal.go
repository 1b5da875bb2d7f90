package scrape

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inferscale/inferscale/internal/enum"
	"github.com/inferscale/inferscale/scaling"
)

// A Metric is one number of a pod, and how to read it from the pod's page.
//
//	value of a pod = sum of Terms                  without Over
//	value of a pod = sum of Terms / sum of Over    with Over: a ratio of sums, never a mean of ratios
//
// Over the fleet both sums are added before the division; see [Sweep] for the resulting interval.
type Metric struct {
	// Name is the name of the reading: scaling.Reading.Metric. It must be unique in a Config.
	Name string
	// Endpoint is where the pods serve it. The zero value is http, port 5000, path /metrics.
	Endpoint Endpoint
	// Terms are added. There must be at least one; a Mean or a Quantile must be the only one.
	Terms []Series
	// Over divides the Terms if it is not empty.
	Over []Series
	// Sum and Less are for Counts. They are counters: the increase of Sum minus that of Less replaces the histogram's own
	// sum, for example prompt tokens minus those found in a cache. The buckets are then left out. A page may lack Less.
	Sum, Less []Series
	// Fill is the value of a missing pod in the reading's Upper, in the metric's unit. Normally it is the threshold for
	// scaling up, so that no missing pod can hide a need to scale up. 0 means that nothing is known of a missing pod: Upper
	// is +Inf as soon as one is missing. A fill of exactly 0 is not possible: a pod without an answer would look idle.
	Fill float64
}

// A Series says which series of a page to take and how to reduce them to one number.
//
// It takes the series of the first family that the page has, and of these the ones that match every Match. Series with equal
// GroupBy labels are one data-parallel group. Inside a group the series that match Prefer are kept if there are any. Within
// reduces the group to one number, and Across reduces the groups to one. Histograms are added up instead, bucket by bucket,
// over all series that are left, since quantiles cannot be combined.
type Series struct {
	// Families are the names of one signal, newest first. The first one that the page has is read; the others are ignored.
	Families []string
	// Match keeps only the series that satisfy all matchers.
	Match []Matcher
	// Read says what to take from a series: its value, its rate, or the mean or a quantile of a histogram.
	Read Read
	// Quantile is the q of Read Quantile, between 0 and 1, both exclusive. It must be 0 otherwise.
	Quantile float64
	// Scale multiplies the value: 0.001 turns milliseconds into seconds. 0 means 1. It must not be negative.
	Scale float64
	// GroupBy are the labels that distinguish the data-parallel engines of a pod. Without them every series is a group of
	// its own.
	GroupBy []string
	// Prefer drops the series of a group that do not match it, if any series of the group does: beside its total queue,
	// which has an empty priority, SGLang reports the queue of every priority. The zero value prefers nothing.
	Prefer Matcher
	// Within reduces the series of a group: Max for tensor-parallel ranks that repeat one queue.
	Within Aggregate
	// Across reduces the groups: Sum for quantities that add up, Average for utilisations.
	Across Aggregate
}

// Read says what to take from each series.
type Read uint8

// The ways to read a series.
const (
	// Value takes the value of a gauge or an untyped series. A counter is an error: its total since the start of the process
	// says nothing about load. Read it as Rate.
	Value Read = iota
	// Rate takes the increase of a counter (or untyped series) per second between two scrapes.
	Rate
	// Mean takes sum over count of what a histogram (or summary) observed between two scrapes.
	Mean
	// Quantile takes a quantile of what a histogram observed between two scrapes, as Prometheus' histogram_quantile does:
	// linear inside the bucket, the first of which begins at 0. A quantile in the last, unlimited bucket is reported as that
	// bucket's lower end, the most that is known.
	Quantile
	// Counts takes the counts of a histogram, into one histogram of the fleet: see [Sweep.Histograms]. Such metrics come
	// after all others, and have no reading.
	Counts
)

// String returns the name of the constant.
func (r Read) String() string {
	return enum.Name(uint8(r), "Read", "Value", "Rate", "Mean", "Quantile", "Counts")
}

// Aggregate reduces several numbers to one.
type Aggregate uint8

// The aggregates. The zero value is Only, because a name does not tell which of the others is right, and a wrong guess would
// not be noticed.
const (
	Only Aggregate = iota // exactly one number, else the error "ambiguous: N series"
	Sum
	Average // the mean of the numbers
	Max
	Min
)

// String returns the name of the constant.
func (a Aggregate) String() string {
	return enum.Name(uint8(a), "Aggregate", "Only", "Sum", "Average", "Max", "Min")
}

// A Matcher compares one label of a series with a value, as in {label="value"} or {label!="value"}. A missing label is the
// same as an empty one. The zero value matches everything.
type Matcher struct {
	Label string
	Value string
	Not   bool // label != value
}

// String renders the matcher as Prometheus does: label="value".
func (m Matcher) String() string {
	op := "="
	if m.Not {
		op = "!="
	}
	return fmt.Sprintf("%s%s%q", m.Label, op, m.Value)
}

// Validate reports every wrong field of the metric, each as a *scaling.FieldError with a path like "terms[0].quantile".
func (m Metric) Validate() error {
	var e scaling.FieldErrors
	m.check(&e, "")
	return e.Err()
}

func (m Metric) check(e *scaling.FieldErrors, path string) {
	e.Check(m.Name != "", path+"name", m.Name, "must not be empty")
	e.Check(m.Fill >= 0 && !math.IsInf(m.Fill, 1), path+"fill", m.Fill, "must be a finite number of at least 0")
	m.Endpoint.check(e, path+"endpoint.")
	e.Check(len(m.Terms) > 0, path+"terms", len(m.Terms), "must have at least one series")
	distribution := slices.ContainsFunc(m.all(), func(s Series) bool { return s.Read.distribution() })
	e.Check(!distribution || len(m.Terms) == 1 && len(m.Over) == 0, path+"terms", len(m.Terms)+len(m.Over),
		"a Mean, Quantile or Counts must be the only series")
	e.Check(m.counts() || len(m.Sum)+len(m.Less) == 0, path+"sum", len(m.Sum)+len(m.Less), "must be given only with Counts, and less only with sum")
	e.Check(len(m.Less) == 0 || len(m.Sum) > 0, path+"less", len(m.Less), "must be given only with Counts, and less only with sum")
	for i, s := range m.Sum {
		e.Check(s.Read == Rate, fmt.Sprintf("%ssum[%d].read", path, i), s.Read, "must be Rate")
	}
	for i, s := range m.Less {
		e.Check(s.Read == Rate, fmt.Sprintf("%sless[%d].read", path, i), s.Read, "must be Rate")
	}
	for _, part := range []struct {
		name string
		list []Series
	}{{"terms", m.Terms}, {"over", m.Over}, {"sum", m.Sum}, {"less", m.Less}} {
		for i := range part.list {
			part.list[i].check(e, fmt.Sprintf("%s%s[%d].", path, part.name, i))
		}
	}
}

// counts reports whether the metric is a histogram of the fleet instead of a reading.
func (m Metric) counts() bool { return len(m.Terms) > 0 && m.Terms[0].Read == Counts }

// all returns the terms and then the divisors.
func (m Metric) all() []Series {
	return append(slices.Clip(m.Terms), m.Over...)
}

func (r Read) distribution() bool { return r == Mean || r.buckets() }

func (r Read) buckets() bool { return r == Quantile || r == Counts }

func (s *Series) check(e *scaling.FieldErrors, path string) {
	e.Check(len(s.Families) > 0, path+"families", len(s.Families), "must have at least one name")
	for i, f := range s.Families {
		e.Check(f != "" && utf8.ValidString(f) && !strings.ContainsRune(f, '\n'), fmt.Sprintf("%sfamilies[%d]", path, i), f,
			"must be a metric name: not empty, UTF-8, one line")
	}
	for i, m := range s.Match {
		e.Check(m.Label != "", fmt.Sprintf("%smatch[%d].label", path, i), m.Label, "must not be empty")
	}
	e.Check(s.Prefer.Label != "" || s.Prefer == Matcher{}, path+"prefer.label", s.Prefer.Label, "must not be empty")
	for i, l := range s.GroupBy {
		e.Check(l != "", fmt.Sprintf("%sgroupBy[%d]", path, i), l, "must not be empty")
	}
	e.Check(s.Read <= Counts, path+"read", s.Read, "must be Value, Rate, Mean, Quantile or Counts")
	if s.Read == Quantile {
		e.Check(s.Quantile > 0 && s.Quantile < 1, path+"quantile", s.Quantile, "must be above 0 and below 1")
	} else {
		e.Check(s.Quantile == 0, path+"quantile", s.Quantile, "must be 0 unless Read is Quantile")
	}
	e.Check(s.Scale >= 0 && !math.IsInf(s.Scale, 1), path+"scale", s.Scale, "must be a finite number of at least 0")
	e.Check(s.Within <= Min, path+"within", s.Within, "must be Only, Sum, Average, Max or Min")
	e.Check(s.Across <= Min, path+"across", s.Across, "must be Only, Sum, Average, Max or Min")
}

// scale returns the Scale, 1 if it is not set.
func (s *Series) scale() float64 { return cmp.Or(s.Scale, 1) }
