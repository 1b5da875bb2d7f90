package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Stage is a span of time with one rate.
type Stage struct {
	Rate     float64       `json:"rate"` // requests per second
	Duration time.Duration `json:"duration"`
}

// Stages is synthetic traffic: one rate after the other, as a load generator sends it.
type Stages struct {
	Stages []Stage `json:"stages"`
	Input  Length  `json:"input"`
	Output Length  `json:"output"`
	// CV is the coefficient of variation of the gaps between requests, which are gamma distributed: 1 is a Poisson process,
	// above 1 there are bursts, 0 has equal gaps. A gap in which a stage ends goes on in the next one, at its rate.
	CV float64 `json:"cv"`
	// Exact scales the gaps of each stage so that it has exactly Rate * Duration requests, rounded down, as the load
	// generator inference-perf does in its constant mode.
	Exact bool `json:"exact"`
}

// Duration returns the sum of the stages.
func (s Stages) Duration() (sum time.Duration) {
	for _, stage := range s.Stages {
		sum += stage.Duration
	}
	return sum
}

// Validate reports every wrong field at once, under field.
func (s Stages) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(len(s.Stages) > 0, field+".stages", len(s.Stages), "must have at least one stage")
	for i, stage := range s.Stages {
		name := fmt.Sprintf("%s.stages[%d]", field, i)
		e.Check(stage.Rate >= 0 && stage.Rate <= 1e6, name+".rate", stage.Rate, "must be within 0 and 1000000")
		e.Check(stage.Duration > 0 && stage.Duration <= MaxDuration, name+".duration", stage.Duration, "must be above 0 and at most 90 days")
	}
	e.Check(s.CV >= 0 && s.CV <= 100, field+".cv", s.CV, "must be within 0 and 100")
	e.Add(s.Input.Validate(field + ".input"))
	e.Add(s.Output.Validate(field + ".output"))
	return e.Err()
}

// Arrivals returns the requests of one run.
func (s Stages) Arrivals(seed uint64) Arrivals {
	lengths := newStream(seed, streamLengths)
	i, k := 0, 0
	begin := time.Duration(0)
	gaps := s.gaps(seed, 0)
	t := 0.0     // seconds since the start of the stage
	rest := -1.0 // of the gap in which the stage before ended, in mean gaps; -1 for none
	return func() (Request, bool) {
		for ; i < len(s.Stages); i, k, t = i+1, 0, 0 {
			stage := s.Stages[i]
			if k == 0 {
				gaps = s.gaps(seed, i)
			}
			if s.Exact && k == stage.count() || stage.Rate == 0 {
				begin += stage.Duration
				continue
			}
			if k == 0 && rest >= 0 && s.CV != 1 { // what is left of an exponential gap is as long as a new one
				t = rest / stage.Rate
			} else {
				t += gaps()
			}
			k++
			if t < stage.Duration.Seconds() || s.Exact {
				at := min(t, stage.Duration.Seconds()) // which may be too large for a Duration before the minimum is taken
				return Request{At: begin + min(time.Duration(at*float64(time.Second)), stage.Duration-1), Input: s.Input.draw(lengths), Output: s.Output.draw(lengths)}, true
			}
			begin += stage.Duration
			if rest = (t - stage.Duration.Seconds()) * stage.Rate; math.IsInf(rest, 1) {
				rest = -1 // the rate is so small that nothing of the gap has passed
			}
		}
		return Request{}, false
	}
}

// count returns Rate * Duration, rounded down. The rounding error of the product does not cost a request: 0.29 per second
// for 100 s are 29.
func (s Stage) count() int {
	n := s.Rate * s.Duration.Seconds()
	if near := math.Round(n); math.Abs(n-near) <= 1e-9*near {
		return int(near)
	}
	return int(n)
}

// gaps returns the gaps of a stage in seconds, one after the other.
func (s Stages) gaps(seed uint64, i int) func() float64 {
	stage := s.Stages[i]
	draws := func() func() float64 {
		random := draw(seed, streamArrivals, uint64(i))
		return func() float64 {
			if s.CV < 1e-15 { // or so little above 0 that all are rounded to 1
				return 1
			}
			return random.gamma(s.CV)
		}
	}
	next, unit := draws(), 1/stage.Rate
	if s.Exact {
		sum := 0.0
		first := draws()
		for range stage.count() {
			sum += first()
		}
		if unit = stage.Duration.Seconds() / sum; math.IsInf(unit, 1) { // every gap is 0, or almost: all come at once
			unit = 0
		}
	}
	return func() float64 { return unit * next() }
}

// A Rate is the traffic of one span of a Series.
type Rate struct {
	PerSecond float64 `json:"perSecond"` // requests per second
	Input     float64 `json:"input"`     // mean tokens of a prompt; 0 means that of the Series
	Output    float64 `json:"output"`    // mean tokens of an answer; 0 means that of the Series
}

// A Series is traffic of which only rates are known, such as rates that a provider has published. It is a Poisson process
// whose rate is interpolated linearly from the middle of one span to that of the next, drawn by thinning the process of the
// highest rate (Lewis and Shedler, 1979).
type Series struct {
	Step  time.Duration `json:"step"` // length of a span
	Rates []Rate        `json:"rates"`
	// Input and Output are the distributions of the lengths. A span with its own means scales them.
	Input  Length `json:"input"`
	Output Length `json:"output"`
}

// Duration returns the sum of the spans.
func (s Series) Duration() time.Duration { return s.Step * time.Duration(len(s.Rates)) }

// Validate reports every wrong field at once, under field.
func (s Series) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(s.Step > 0 && s.Step <= MaxDuration, field+".step", s.Step, "must be above 0 and at most 90 days")
	e.Check(len(s.Rates) > 0, field+".rates", len(s.Rates), "must have at least one rate")
	for i, r := range s.Rates {
		name := fmt.Sprintf("%s.rates[%d]", field, i)
		e.Check(r.PerSecond >= 0 && r.PerSecond <= 1e6, name+".perSecond", r.PerSecond, "must be within 0 and 1000000")
		e.Check(r.Input == 0 || r.Input >= 1 && r.Input <= 1e9, name+".input", r.Input, "must be 0 or at least 1")
		e.Check(r.Output == 0 || r.Output >= 1 && r.Output <= 1e9, name+".output", r.Output, "must be 0 or at least 1")
		if e.Err() != nil {
			break
		}
	}
	e.Add(s.Input.Validate(field + ".input"))
	e.Add(s.Output.Validate(field + ".output"))
	return e.Err()
}

// rate returns the rate at a time, in requests per second.
func (s Series) rate(at time.Duration) float64 {
	place := float64(at)/float64(s.Step) - 0.5
	i := int(math.Floor(place))
	last := len(s.Rates) - 1
	switch {
	case i < 0:
		return s.Rates[0].PerSecond
	case i >= last:
		return s.Rates[last].PerSecond
	}
	share := place - float64(i)
	return s.Rates[i].PerSecond*(1-share) + s.Rates[i+1].PerSecond*share
}

// Arrivals returns the requests of one run.
func (s Series) Arrivals(seed uint64) Arrivals {
	random, lengths := newStream(seed, streamArrivals), newStream(seed, streamLengths)
	highest := 0.0
	for _, r := range s.Rates {
		highest = max(highest, r.PerSecond)
	}
	t, end := 0.0, s.Duration()
	return func() (Request, bool) {
		for highest > 0 {
			t += random.Exponential() / highest
			if t >= end.Seconds() {
				break
			}
			at := min(time.Duration(t*float64(time.Second)), end-1)
			if random.Uniform()*highest >= s.rate(at) {
				continue
			}
			span := s.Rates[at/s.Step]
			return Request{At: at, Input: s.Input.around(span.Input).draw(lengths), Output: s.Output.around(span.Output).draw(lengths)}, true
		}
		return Request{}, false
	}
}

// around returns the distribution with another mean and a deviation in proportion; 0 leaves it as it is.
func (l Length) around(mean float64) Length {
	if mean != 0 {
		l.Deviation *= mean / l.Mean
		l.Mean = min(max(mean, float64(l.Min)), float64(l.Max))
	}
	return l
}

// A Burst multiplies the rate for a while.
type Burst struct {
	At       time.Duration `json:"at"`
	Duration time.Duration `json:"duration"`
	Factor   float64       `json:"factor"`
}

// Diurnal returns the rates of days that go from low, at midnight, to high, at noon, and back along a cosine, times the
// bursts. With lengths they are traffic, as a Series. There are none without a length or a step, or if there were more of them
// than seconds in MaxDuration.
func Diurnal(low, high float64, length, step time.Duration, bursts ...Burst) []Rate {
	if length <= 0 || step <= 0 || length/step > MaxDuration/time.Second {
		return nil
	}
	rates := make([]Rate, length/step)
	for i := range rates {
		at := time.Duration(i) * step
		phase := 2 * math.Pi * float64(at+step/2) / float64(24*time.Hour)
		r := low + (high-low)*(1-math.Cos(phase))/2
		for _, b := range bursts {
			if at >= b.At && at-b.At < b.Duration {
				r *= b.Factor
			}
		}
		rates[i] = Rate{PerSecond: r}
	}
	return rates
}
