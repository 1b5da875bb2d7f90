package scaling

import (
	"encoding/json"
	"errors"
	"math"
	"time"
)

// A Reading is what is known of one metric over a fleet: an interval that contains its true value.
//
// A fleet's average is rarely known exactly: pods boot, scrapes fail. Missing pods count 0 in Lower and a fill (by
// default the threshold for scaling up) in Upper:
//
//	Lower = sum of the values / pods
//	Upper = (sum of the values + fill * (missing - stuck)) / pods
//
// A pod that was never ready serves nothing. It counts the fill while it may still become ready, since it may serve before the
// next reading. Once it is stuck (see [StartDeadline]) it counts 0 in Upper too and cannot hold back a scale-down.
//
// An algorithm scales up on Lower alone and down on Upper alone. So a scale-up is right whatever the values of the missing pods,
// and a scale-down is right for any values up to the fill. [FromPods] makes a Reading from the values of pods.
//
// The zero value is a reading without a sample: nothing is known.
type Reading struct {
	Metric   string    `json:"metric"`
	Lower    float64   `json:"lower"`
	Upper    float64   `json:"upper"`    // +Inf when no fill limits it
	Values   int32     `json:"values"`   // pods that gave a value; 0 means that there is no sample
	NotReady int32     `json:"notReady"` // pods that are not ready, so without a value: booting, and the kinds below
	Failed   int32     `json:"failed"`   // ready pods whose value could not be read
	Reused   int32     `json:"reused"`   // of Values, those that repeat the pod's last value after a failed scrape
	At       time.Time `json:"at"`       // when the values were taken; the zero time means the time of the decision

	Unschedulable int32 `json:"unschedulable,omitempty"` // of NotReady, those that fit on no node
	Crashing      int32 `json:"crashing,omitempty"`      // of NotReady, those that start and fail: their image, their containers
	Stuck         int32 `json:"stuck,omitempty"`         // of NotReady, those that count 0 in Upper: never ready, and past StartDeadline
}

// MarshalJSON writes an end that is no number in JSON as Prometheus does: "+Inf".
func (r Reading) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Metric string `json:"metric"`
		Lower  any    `json:"lower"`
		Upper  any    `json:"upper"`
		plainReading
	}{r.Metric, jsonNumber(r.Lower), jsonNumber(r.Upper), plainReading(r)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Reading) UnmarshalJSON(data []byte) error {
	read := struct {
		Lower any `json:"lower"`
		Upper any `json:"upper"`
		*plainReading
	}{r.Lower, r.Upper, (*plainReading)(r)}
	err := json.Unmarshal(data, &read)
	return errors.Join(err, readNumber(read.Lower, "lower", &r.Lower), readNumber(read.Upper, "upper", &r.Upper))
}

// plainReading has no methods.
type plainReading Reading

// Exactly returns the reading of a metric that is known exactly, as from a query that has averaged it already. It counts one
// pod, so that where loads are added up (packages proportional and loop/shadow) the metric must be declared as an average or
// as a total of the fleet: otherwise the value is taken for the load of one pod of a fleet of one.
func Exactly(metric string, value float64) Reading {
	return Reading{Metric: metric, Lower: value, Upper: value, Values: 1}
}

// Known reports whether the reading has a sample and is an interval of numbers that are not negative. Anything else (NaN, a
// negative gauge, Lower above Upper, an infinite Lower) is treated as no sample.
func (r Reading) Known() bool {
	return r.Values > 0 && r.Lower >= 0 && r.Lower <= r.Upper && !math.IsInf(r.Lower, 1)
}

// An Observation is what an algorithm decides on.
type Observation struct {
	// SpecReplicas is the count that was asked for (spec.replicas of the scale), not the number that runs: a decision on a
	// lagging status would undo a scale-up in progress.
	SpecReplicas int32 `json:"specReplicas"`
	// ReadyReplicas is how many of them are ready to serve.
	ReadyReplicas int32 `json:"readyReplicas"`
	// Served is the number of ready replicas that the readings and histograms come from, if that is not ReadyReplicas: a
	// shadow (package loop/shadow) has its own count, but the data come from the real fleet. 0 means ReadyReplicas.
	Served int32 `json:"served,omitempty"`
	// Readings has one reading per metric, in any order.
	Readings []Reading `json:"readings"`
	// Histograms are for algorithms that use distributions, one per metric, in any order; most observations have none.
	Histograms []Histogram `json:"histograms,omitempty"`
}

// Reading returns the reading of a metric, or one without a sample if there is none. Several readings of one metric contradict
// each other: the result is then the interval that contains them all, known only if each of them is, and as old as the oldest.
func (o *Observation) Reading(metric string) Reading {
	var found *Reading
	for i := range o.Readings {
		switch r := &o.Readings[i]; {
		case r.Metric != metric:
		case found == nil:
			found = r
		default:
			return o.mergeAll(metric)
		}
	}
	if found == nil {
		return Reading{Metric: metric}
	}
	return *found
}

func (o *Observation) mergeAll(metric string) Reading {
	var found Reading
	n := 0
	for _, r := range o.Readings {
		if r.Metric != metric {
			continue
		}
		if !r.Known() {
			return Reading{Metric: metric}
		}
		if n++; n == 1 {
			found = r
		} else {
			found = merge(found, r)
		}
	}
	return found
}

func merge(a, b Reading) Reading {
	a.Lower = min(a.Lower, b.Lower)
	a.Upper = max(a.Upper, b.Upper)
	a.Values = min(a.Values, b.Values)
	a.NotReady = max(a.NotReady, b.NotReady)
	a.Failed = max(a.Failed, b.Failed)
	a.Reused = max(a.Reused, b.Reused)
	a.Unschedulable = max(a.Unschedulable, b.Unschedulable)
	a.Crashing = max(a.Crashing, b.Crashing)
	a.Stuck = max(a.Stuck, b.Stuck)
	// The zero time stands for the time of the decision, which no sample is newer than.
	if a.At.IsZero() || !b.At.IsZero() && b.At.Before(a.At) {
		a.At = b.At
	}
	return a
}
