package scrape

import (
	"math"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// startFamily tells when the process of a page started.
const startFamily = "process_start_time_seconds"

// createdFamily is the family that tells when a counter or histogram began: Python's client drops _total first.
func createdFamily(name string, read Read) string {
	if read == Rate {
		name = strings.TrimSuffix(name, "_total")
	}
	return name + "_created"
}

// A baseline is what one Series of a Metric counted on a pod's last good page.
type baseline struct {
	at     time.Time
	family string  // which of the aliases; empty while the page had none
	start  float64 // process_start_time_seconds; 0 if unknown
	series map[string]counted
}

// counted is one counter (value) or histogram (distribution) with the time it began; 0 if unknown.
type counted struct {
	value   float64
	dist    *distribution
	created float64
}

// known reports whether there ever was a page.
func (b *baseline) known() bool { return !b.at.IsZero() }

// absent notes a page without the family. The first such page is a baseline too, as servers may show a counter only
// after its first event: it then counts from 0. Later ones leave the baseline that there is, so that a family which
// flickers is not counted from 0 again.
func (b *baseline) absent(at time.Time) {
	if !b.known() || b.family == "" {
		*b = baseline{at: at}
	}
}

// elapsed returns the seconds from the baseline to now, or a failure if no increase can be told.
func (b *baseline) elapsed(now *baseline, limit time.Duration) (float64, *Error) {
	switch age := now.at.Sub(b.at); {
	case !b.known():
		return 0, failf(NoBaseline, "first scrape")
	case age <= 0:
		return 0, failf(NoBaseline, "the clock stood still or went back")
	case age > limit:
		return 0, failf(NoBaseline, "the last scrape is %v old, more than %v", age, limit)
	case b.family != "" && b.family != now.family:
		return 0, failf(NoBaseline, "the family was %s before", b.family)
	default:
		return age.Seconds(), nil
	}
}

// restarted reports whether another process serves the page now. A process cannot come back within a second, while
// its start time may wobble by one: Linux derives it from a boot time that follows clock corrections.
func (b *baseline) restarted(now *baseline) bool {
	return b.start != 0 && now.start != 0 && math.Abs(now.start-b.start) > 1
}

// before returns what a series had counted, or nothing if it began after that: it is new, or its process or it alone
// has restarted.
func (b *baseline) before(key string, now *baseline) (counted, bool) {
	was, ok := b.series[key]
	if !ok || b.restarted(now) {
		return counted{}, false
	}
	if is := now.series[key]; was.created != 0 && is.created != 0 && was.created != is.created {
		return counted{}, false
	}
	return was, true
}

// increase returns by how much a counter rose. It is never negative: a value below the last one began again from 0.
func (b *baseline) increase(key string, now *baseline) float64 {
	is := now.series[key].value
	if was, ok := b.before(key, now); ok && is >= was.value {
		return is - was.value
	}
	return is
}

// observed returns what a histogram counted since the baseline.
func (b *baseline) observed(key string, now *baseline) (*distribution, *Error) {
	is := now.series[key].dist
	was, ok := b.before(key, now)
	if !ok {
		return is, nil
	}
	d, ok := is.since(was.dist)
	if !ok {
		return nil, failf(Buckets, "the bounds of the buckets have changed")
	}
	return d, nil
}

// startTime returns process_start_time_seconds of a page, or 0 if it is absent, ambiguous or no number.
func startTime(families map[string]*dto.MetricFamily) float64 {
	if m := families[startFamily].GetMetric(); len(m) == 1 {
		if v, fail := scalarOf(m[0]); fail == nil {
			return v
		}
	}
	return 0
}

// scalarOf returns the value of a gauge, counter or untyped series.
func scalarOf(m *dto.Metric) (float64, *Error) {
	var v float64
	switch {
	case m.Gauge != nil:
		v = m.Gauge.GetValue()
	case m.Counter != nil:
		v = m.Counter.GetValue()
	case m.Untyped != nil:
		v = m.Untyped.GetValue()
	default:
		return 0, failf(Type, "is no single number")
	}
	if fail := checkNumber(v); fail != nil {
		return 0, fail
	}
	return v + 0, nil // -0 becomes 0
}
