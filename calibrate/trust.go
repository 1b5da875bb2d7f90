package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Distribution is a distribution of times in seconds: a [Histogram], or that of another package.
type Distribution interface {
	Total() float64             // number of values
	Quantile(q float64) float64 // NaN if there are no values
}

// A Histogram is a distribution in buckets. Without Counts nothing was counted yet.
type Histogram struct {
	Bounds []float64 // upper ends, ascending
	Counts []float64 // one more than Bounds
}

// NewHistogram returns an empty Histogram.
func NewHistogram(bounds []float64) *Histogram {
	return &Histogram{Bounds: bounds, Counts: make([]float64, len(bounds)+1)}
}

// Add counts x in the first bucket whose upper end is at least x.
func (h *Histogram) Add(x float64) {
	for len(h.Counts) <= len(h.Bounds) {
		h.Counts = append(h.Counts, 0)
	}
	i, _ := slices.BinarySearch(h.Bounds, x)
	h.Counts[i]++
}

// Total returns the number of values.
func (h *Histogram) Total() (n float64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns what Prometheus's histogram_quantile does: linear interpolation within the bucket, the last bound for
// values above it, and NaN if nothing was counted.
func (h *Histogram) Quantile(q float64) float64 {
	total := h.Total()
	if total == 0 || len(h.Bounds) == 0 {
		return math.NaN()
	}
	below, from := 0.0, 0.0
	for i, end := range h.Bounds {
		if n := h.Counts[i]; n > 0 && below+n >= q*total {
			return from + (end-from)*(q*total-below)/n
		}
		below += h.Counts[i]
		from = end
	}
	return from
}

// Times has the latencies of requests within a period, usually an hour. A time to the first token counts in the period in
// which the first token came, and a time per token after it in the period in which the last token came.
type Times struct {
	From       time.Time
	TTFT, TPOT Distribution
}

// Check has the limits of a comparison. The zero value means the defaults.
type Check struct {
	// Limit is the error above which the simulator is not trusted: 0 means 0.2.
	Limit float64
	// Least is the number of requests that a period must have to count: 0 means 100.
	Least float64
	// TTFT and TPOT are the times, in seconds, below which an error is relative to them and not to the recorded time:
	// usually a tenth of the SLO. Times far below the SLO do not matter, and are caused by what no simulator models
	// (networks, tokenizers).
	TTFT, TPOT float64
}

// The four compared quantities.
const (
	TTFTP50 = "TTFT p50"
	TTFTP90 = "TTFT p90"
	TPOTP50 = "TPOT p50"
	TPOTP90 = "TPOT p90"
)

// Quantities returns the names of the compared quantities, in order.
func Quantities() [4]string { return [4]string{TTFTP50, TTFTP90, TPOTP50, TPOTP90} }

// A Comparison is the comparison of one period: the recorded and the simulated times, in seconds, in the order of
// [Quantities]; NaN if there were none.
type Comparison struct {
	From                time.Time
	Requests            float64 // recorded
	Recorded, Simulated [4]float64
	Error               [4]float64 // |simulated - recorded| / max(recorded, TTFT or TPOT of the Check); 1 if only one of them is known
	Counts              bool       // whether there were enough requests
}

// Trust says how well a simulation of the past reproduced the recorded latencies.
type Trust struct {
	Limit   float64
	Hours   []Comparison
	Counted int // number of periods with enough requests
	// Error is the mean over the requests of the periods that count, in the order of [Quantities]; NaN if none does. Bias is the
	// same with its sign: above zero the simulator is slower.
	Error, Bias [4]float64
	// Recorded and Simulated are replica-hours: they must be equal.
	Recorded, Simulated float64
	// Reasons say why the simulator is not trusted; there are none if it is.
	Reasons []string
}

// Trusted reports whether rankings by the simulator can be trusted.
func (t *Trust) Trusted() bool { return len(t.Reasons) == 0 }

// Compare compares recorded latencies with those of a simulation of the same traffic on the same replicas, period by period,
// in order of time. Periods match if they begin at the same time. Errors are *scaling.FieldError.
func Compare(recorded, simulated []Times, recordedHours, simulatedHours float64, c Check) (Trust, error) {
	var e scaling.FieldErrors
	e.Add(c.validate())
	for k, times := range [][]Times{recorded, simulated} {
		name := []string{"recorded", "simulated"}[k]
		i := slices.IndexFunc(times, func(t Times) bool { return t.TTFT == nil || t.TPOT == nil })
		e.Check(i < 0, fmt.Sprintf("%s[%d]", name, max(i, 0)), "no distribution", "must have TTFT and TPOT, of no requests an empty Histogram")
	}
	if err := e.Err(); err != nil {
		return Trust{}, err
	}
	limit, least := cmp.Or(c.Limit, 0.2), cmp.Or(c.Least, 100)
	t := Trust{Limit: limit, Recorded: recordedHours, Simulated: simulatedHours}
	bySecond := map[int64]*Times{}
	for i := range simulated {
		bySecond[simulated[i].From.UnixNano()] = &simulated[i]
	}
	weight := 0.0
	for i := range recorded {
		h := compare(&recorded[i], bySecond[recorded[i].From.UnixNano()], &c, least)
		t.Hours = append(t.Hours, h)
		if !h.Counts {
			continue
		}
		t.Counted++
		weight += h.Requests
		for k := range h.Error {
			t.Error[k] += h.Requests * h.Error[k]
			t.Bias[k] += h.Requests * math.Copysign(h.Error[k], h.Simulated[k]-h.Recorded[k])
		}
	}
	for k := range t.Error {
		t.Error[k] /= weight
		t.Bias[k] /= weight
	}
	slices.SortStableFunc(t.Hours, func(a, b Comparison) int { return a.From.Compare(b.From) })
	t.judge(least)
	return t, nil
}

func (c *Check) validate() error {
	var e scaling.FieldErrors
	e.Check(c.Limit >= 0 && c.Limit <= 10, "limit", c.Limit, "must be within 0 and 10")
	e.Check(c.Least >= 0 && !math.IsInf(c.Least, 1), "least", c.Least, "must be a number that is not negative")
	e.Check(c.TTFT >= 0 && !math.IsInf(c.TTFT, 1), "ttft", c.TTFT, "must be seconds, not negative")
	e.Check(c.TPOT >= 0 && !math.IsInf(c.TPOT, 1), "tpot", c.TPOT, "must be seconds, not negative")
	return e.Err()
}

func compare(recorded, simulated *Times, c *Check, least float64) Comparison {
	h := Comparison{From: recorded.From, Requests: recorded.TTFT.Total(), Counts: min(recorded.TTFT.Total(), recorded.TPOT.Total()) >= least}
	take := func(t *Times) [4]float64 {
		if t == nil {
			return [4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
		}
		return [4]float64{t.TTFT.Quantile(0.5), t.TTFT.Quantile(0.9), t.TPOT.Quantile(0.5), t.TPOT.Quantile(0.9)}
	}
	h.Recorded, h.Simulated = take(recorded), take(simulated)
	for k := range h.Error {
		floor := c.TTFT
		if k >= 2 {
			floor = c.TPOT
		}
		switch r, s := h.Recorded[k], h.Simulated[k]; {
		case math.IsNaN(r) != math.IsNaN(s):
			h.Error[k] = 1
		case r != s && !math.IsNaN(r):
			h.Error[k] = math.Abs(s-r) / max(r, floor)
		}
	}
	return h
}

// judge sets the reasons.
func (t *Trust) judge(least float64) {
	refuse := func(format string, args ...any) { t.Reasons = append(t.Reasons, fmt.Sprintf(format, args...)) }
	if !(math.Abs(t.Recorded-t.Simulated) <= 1e-6*max(t.Recorded, 1)) {
		refuse("replica-hours: %.4f were recorded and %.4f simulated: the same replicas were not replayed", t.Recorded, t.Simulated)
	}
	if t.Counted == 0 {
		refuse("no hour has as many as %g requests with times to first token and per token", least)
		return
	}
	for k, name := range Quantities() {
		if t.Error[k] <= t.Limit {
			continue
		}
		which := ""
		switch {
		case t.Bias[k] > 0.8*t.Error[k]:
			which = "; the simulator is the slower one throughout"
		case t.Bias[k] < -0.8*t.Error[k]:
			which = "; the simulator is the faster one throughout"
		}
		worst := t.worst(k)
		simulated := fmt.Sprintf("%.3g s simulated", worst.Simulated[k])
		if math.IsNaN(worst.Simulated[k]) {
			which, simulated = "", "none simulated"
		}
		refuse("%s is off by %.0f %%, and %.0f %% are allowed%s; most at %s, %.3g s recorded and %s", name, 100*t.Error[k], 100*t.Limit,
			which, worst.From.UTC().Format("2006-01-02 15:04"), worst.Recorded[k], simulated)
	}
}

func (t *Trust) worst(k int) (worst Comparison) {
	most := -1.0
	for _, h := range t.Hours {
		if h.Counts && h.Error[k] > most {
			worst, most = h, h.Error[k]
		}
	}
	return worst
}

// String returns the verdict in a few lines.
func (t *Trust) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "replica-hours %.2f recorded, %.2f simulated; %d of %d hours compared", t.Recorded, t.Simulated, t.Counted, len(t.Hours))
	if t.Counted > 0 {
		for k, name := range Quantities() {
			fmt.Fprintf(&b, "; %s off by %.1f %%", name, 100*t.Error[k])
		}
	}
	for _, reason := range t.Reasons {
		fmt.Fprintf(&b, "\nnot believed: %s", reason)
	}
	return b.String()
}

// SplitAt returns the time at which a share of a history is over, and the points before it and from it on: fit a server to
// the first part and check it on the rest.
func SplitAt(points []Point, share float64) (at time.Time, before, after []Point) {
	var first, last time.Time
	for i := range points {
		if t := points[i].At; first.IsZero() || t.Before(first) {
			first = t
		}
		if t := points[i].At; t.After(last) {
			last = t
		}
	}
	at = first.Add(time.Duration(share * float64(last.Sub(first))))
	for _, p := range points {
		if p.At.Before(at) {
			before = append(before, p)
		} else {
			after = append(after, p)
		}
	}
	return at, before, after
}
