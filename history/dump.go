package history

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/inferscale/inferscale/internal/enginemetrics"
	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/scaling"
)

// Version is the version of the format of a dump.
const Version = 1

// The limits of a dump.
const (
	MaxSeries = 200_000
	MaxValues = 64 << 20 // over all series: 512 MB of memory
	MaxSteps  = 1 << 21  // a year of 15 s steps
	maxLabels = 16
	maxText   = 1024
)

// A Dump has the answers of Prometheus to [Queries], but neither its address nor who asked, so that it can be sent to a
// colleague. It contains names and uids of pods, but not their addresses, see [Filler].
type Dump struct {
	Version   int    `json:"version"`
	Model     string `json:"model"`
	Engine    Engine `json:"engine"`
	Namespace string `json:"namespace,omitempty"`
	Workload  string `json:"workload,omitempty"`
	// Start is the time of the first value, End that of the last one, and Step the time between two values.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Step  Seconds   `json:"step"`
	// Series have the values.
	Series []Series `json:"series"`
}

// Seconds is a duration that is written as a whole number of seconds.
type Seconds time.Duration

// MarshalText writes the number.
func (s Seconds) MarshalText() ([]byte, error) {
	return strconv.AppendInt(nil, int64(time.Duration(s)/time.Second), 10), nil
}

// UnmarshalText reads the number.
func (s *Seconds) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || n < 1 {
		return &scaling.FieldError{Field: "seconds", Value: string(text), Rule: "must be a whole number, at least 1 and less than 2147483648"}
	}
	*s = Seconds(time.Duration(n) * time.Second)
	return nil
}

// A Series is one series of an answer.
type Series struct {
	Signal Signal `json:"signal"`
	Part   Part   `json:"part,omitempty"`
	Router bool   `json:"router,omitempty"`
	// Family is the name of the metric in Prometheus.
	Family string `json:"family"`
	// Pod is the name of the pod. It is empty for a metric of the fleet.
	Pod string `json:"pod,omitempty"`
	// Labels are the labels that distinguish parts of a number, such as the engine within a pod or le, and the uid in what
	// Kubernetes says of a pod. Series of the same pod with the same labels are duplicates.
	Labels map[string]string `json:"labels,omitempty"`
	// Every is the number of steps between two values; 0 means one. The first value is at step From, counted from Start.
	Every  int    `json:"every,omitempty"`
	From   int    `json:"from,omitempty"`
	Values Values `json:"values"`
}

// Values are numbers, NaN for a missing one, which is null in JSON.
type Values []float64

// MarshalJSON writes the numbers, and null for NaN.
func (v Values) MarshalJSON() ([]byte, error) {
	to := []byte{'['}
	for i, x := range v {
		if i > 0 {
			to = append(to, ',')
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			to = append(to, "null"...)
		} else {
			to = strconv.AppendFloat(to, x, 'g', -1, 64)
		}
	}
	return append(to, ']'), nil
}

// UnmarshalJSON reads numbers and nulls.
func (v *Values) UnmarshalJSON(text []byte) error {
	*v = (*v)[:0]
	wrong := func(rule string) error {
		return &scaling.FieldError{Field: fmt.Sprintf("values[%d]", len(*v)), Value: clipped(text), Rule: rule}
	}
	const list = "must be a list of numbers and nulls"
	if len(text) < 2 || text[0] != '[' {
		return wrong(list)
	}
	begin := 1
	for i := 1; i < len(text); i++ {
		c := text[i]
		if c != ',' && c != ']' {
			continue
		}
		one := bytes.Trim(text[begin:i], " \t\n\r")
		begin = i + 1
		switch {
		case len(one) == 0 && c == ']' && len(*v) == 0:
			return nil
		case string(one) == "null":
			*v = append(*v, math.NaN())
		default:
			if len(one) == 0 || one[0] != '-' && (one[0] < '0' || one[0] > '9') {
				text = one
				return wrong(list)
			}
			x, err := strconv.ParseFloat(string(one), 64)
			if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
				text = one
				return wrong("must be a finite number or null")
			}
			*v = append(*v, x)
		}
		if len(*v) > MaxSteps {
			return wrong(fmt.Sprintf("must be at most %d values", MaxSteps))
		}
		if c == ']' {
			return nil
		}
	}
	return wrong(list)
}

// clipped returns a text for an error, cut if it is long.
func clipped[text string | []byte](t text) string { return printable.Cut(string(t), 40) }

// Steps returns how many values a series with a value at every step has; 0 if Step is not set.
func (d *Dump) Steps() int {
	if d.Step <= 0 {
		return 0
	}
	return int(d.End.Sub(d.Start)/time.Duration(d.Step)) + 1
}

// at returns the time of a step.
func (d *Dump) at(i int) time.Time { return d.Start.Add(time.Duration(i) * time.Duration(d.Step)) }

// Validate reports what is wrong with a dump: every wrong field of its head, and of the first wrong series.
func (d *Dump) Validate() error {
	if err := d.validateHead(); err != nil {
		return err
	}
	values := 0
	for i := range d.Series {
		values += len(d.Series[i].Values)
		if err := d.validateSeries(i, values); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dump) validateHead() error {
	var e scaling.FieldErrors
	e.Check(d.Version == Version, "version", d.Version, fmt.Sprintf("must be %d", Version))
	e.Check(slices.Contains(Engines(), d.Engine), "engine", string(d.Engine), engineRule)
	for _, text := range []struct{ field, value string }{{"model", d.Model}, {"namespace", d.Namespace}, {"workload", d.Workload}} {
		e.Check(len(text.value) <= maxText, text.field, clipped(text.value), fmt.Sprintf("must be of at most %d bytes", maxText))
		e.Check(printable.Is(text.value), text.field, clipped(text.value), printable.Rule)
	}
	step := time.Duration(d.Step)
	e.Check(step >= time.Second && step <= time.Hour && step%time.Second == 0, "step", step, "must be whole seconds, at least 1s and at most 1h")
	year := d.Start.Year()
	e.Check(year >= 1970 && year < 2200, "start", d.Start, "must be within 1970 and 2200")
	if err := e.Err(); err != nil {
		return err
	}
	e.Check(d.End.After(d.Start) && d.End.Sub(d.Start) <= MaxSteps*step, "end", d.End, fmt.Sprintf("must be after start, by at most %d steps", MaxSteps))
	if err := e.Err(); err != nil {
		return err
	}
	e.Check(d.End.Sub(d.Start)%step == 0, "end", d.End, "must be whole steps after start")
	e.Check(len(d.Series) <= MaxSeries, "series", len(d.Series), fmt.Sprintf("must be at most %d", MaxSeries))
	return e.Err()
}

func (d *Dump) validateSeries(i, values int) error {
	var e scaling.FieldErrors
	s := &d.Series[i]
	field := fmt.Sprintf("series[%d].", i)
	from := d.Engine
	if s.Router {
		from = EPP
	}
	found, ok := from.source(s.Signal)
	e.Check(ok, field+"signal", string(s.Signal), fmt.Sprintf("must be one that %s has", from))
	histogram := enginemetrics.KindOf(string(s.Signal)) == enginemetrics.Histogram
	if histogram {
		e.Check(s.Part == Sum || s.Part == Count || s.Part == Bucket, field+"part", string(s.Part), "must be sum, count or bucket")
	} else {
		e.Check(s.Part == Whole, field+"part", string(s.Part), "must be empty for what is no histogram")
	}
	e.Check(!ok || slices.ContainsFunc(found.Families, func(f string) bool { return f+s.Part.suffix() == s.Family }), field+"family", clipped(s.Family), "must be a name of the signal")
	e.Check(len(s.Pod) <= maxText, field+"pod", clipped(s.Pod), fmt.Sprintf("must be of at most %d bytes", maxText))
	e.Check(printable.Is(s.Pod), field+"pod", clipped(s.Pod), printable.Rule)
	e.Check(s.Pod != "" || s.Signal.fleetwide(), field+"pod", s.Pod, "must not be empty")
	e.Check(len(s.Labels) <= maxLabels, field+"labels", len(s.Labels), fmt.Sprintf("must be at most %d", maxLabels))
	known := append(from.labels(s.Signal), "le")
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		e.Check(slices.Contains(known, name) && (name != "le" || s.Part == Bucket), field+"labels."+clipped(name), clipped(s.Labels[name]), "must be a label that tells parts of the signal apart")
		e.Check(len(s.Labels[name]) <= maxText, field+"labels."+clipped(name), clipped(s.Labels[name]), fmt.Sprintf("must be of at most %d bytes", maxText))
		e.Check(printable.Is(s.Labels[name]), field+"labels."+clipped(name), clipped(s.Labels[name]), printable.Rule)
	}
	if s.Part == Bucket {
		_, ok := boundOf(s.Labels["le"])
		e.Check(ok, field+"labels.le", s.Labels["le"], "must be a number or +Inf")
	}
	e.Check(s.Every >= 0 && s.Every <= 10_000, field+"every", s.Every, "must be within 0 and 10000")
	e.Check(s.From >= 0 && s.From < d.Steps(), field+"from", s.From, fmt.Sprintf("must be within 0 and %d", d.Steps()-1))
	e.Check(s.From%s.every() == 0, field+"from", s.From, fmt.Sprintf("must be a multiple of every, %d", s.every()))
	if e.Err() == nil {
		e.Check(len(s.Values) == 0 || s.From+(len(s.Values)-1)*s.every() < d.Steps(), field+"values", len(s.Values), "must end with the dump")
		e.Check(values <= MaxValues, field+"values", values, fmt.Sprintf("must be at most %d over all series", MaxValues))
	}
	return e.Err()
}

func (s *Series) every() int { return max(1, s.Every) }

// boundOf reads the upper end of a bucket.
func boundOf(le string) (float64, bool) {
	if le == "+Inf" {
		return math.Inf(1), true
	}
	x, err := strconv.ParseFloat(le, 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}
