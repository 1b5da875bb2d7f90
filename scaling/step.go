package scaling

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Code names the rule behind a Step and states the inequality that raises it, in one constant:
//
//	const AboveHigh Code = "AboveHigh lower > high, held:s >= window:s"
//
// The first word is the code's name, which is stable. Clauses follow, separated by commas. A clause is either two names with
// one of > >= < <= == between them, or a single name, which is a number without a claim. The names are those of the step's
// numbers, in order. A number whose name ends in ":s" is a duration in seconds and is printed as one.
//
// Algorithms outside this module define their own codes in the same way.
type Code string

// String returns the code's name, its first word.
func (c Code) String() string {
	name, _, _ := strings.Cut(string(c), " ")
	return name
}

// MarshalText returns the code's name.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// clauses calls f with every clause of the code: one name, or a left name, an operator and a right name.
func (c Code) clauses(f func(left, op, right string)) {
	_, rest, _ := strings.Cut(string(c), " ")
	for rest != "" {
		var clause string
		clause, rest, _ = strings.Cut(rest, ",")
		words := strings.Fields(clause)
		switch len(words) {
		case 0:
		case 3:
			f(words[0], words[1], words[2])
		default:
			for _, w := range words {
				f(w, "", "")
			}
		}
	}
}

// Codes of this package. Each is documented by the inequality that it states.
const (
	// BelowMin raises a count below the bounds to the lower bound.
	BelowMin Code = "BelowMin from < min"
	// AboveMax lowers a count above the bounds to the upper bound.
	AboveMax Code = "AboveMax from > max"
	// ClockBack holds: the clock went back since the last decision.
	ClockBack Code = "ClockBack back:s"
	// StateRefused decides Unknown: the stored state is damaged, of another kind or of a newer version. It is kept unchanged.
	StateRefused Code = "StateRefused"
	// Lifted raises a decision to the count that a timetable asks for.
	Lifted Code = "Lifted from < floor"
	// Chosen ends the line of the member of Highest that asked for the highest count.
	Chosen Code = "Chosen members"
	// UpStabilized lowers a scale-up to the lowest recommendation within the window.
	UpStabilized Code = "UpStabilized from > lowest, window:s"
	// DownStabilized raises a scale-down to the highest recommendation within the window.
	DownStabilized Code = "DownStabilized from < highest, window:s"
	// UpLimited lowers a scale-up to what the rate limits allow in their periods.
	UpLimited Code = "UpLimited from > limit"
	// DownLimited raises a scale-down to what the rate limits allow in their periods.
	DownLimited Code = "DownLimited from < limit"
)

// maxNumbers is how many numbers a step can carry.
const maxNumbers = 4

// A Step is one link of the chain that led to a decision: a rule, the count before and after it, and the numbers
// that made it hold.
type Step struct {
	Code    Code
	From    int32  // the count before the step
	To      int32  // the count after it
	Subject string // the metric, policy, pod or variant that the step is about; may be empty
	// Branch is 0 on the line that led to the result. Every other number is a line that was considered and lost, such as
	// another metric's.
	Branch uint16
	// Warning marks a step that changes nothing but that a user should know about, as added by [Decision.Warn].
	Warning bool
	Numbers [maxNumbers]float64 // in the order in which Code names them; the rest is 0
}

// Because returns the step's reason: its subject, then its clauses with their numbers, as in
//
//	vllm:num_requests_waiting lower=12 > high=10, held=30s >= window=30s
//
// Numbers have six significant digits, whole ones all of theirs, and durations milliseconds. If that would make two different
// numbers of an inequality look equal, or the larger one smaller, they have twelve digits, and durations nanoseconds.
func (s Step) Because() string {
	var b strings.Builder
	b.WriteString(s.Subject)
	next := 0
	first := true
	s.Code.clauses(func(left, op, right string) {
		switch {
		case !first:
			b.WriteString(", ")
		case s.Subject != "":
			b.WriteByte(' ')
		}
		first = false
		lv := s.at(&next)
		if op == "" {
			writeNumber(&b, left, formatAs(left, lv, false))
			return
		}
		rv := s.at(&next)
		l, r := formatAs(left, lv, false), formatAs(right, rv, false)
		if lv != rv && (l == r || misread(l, r, lv < rv)) {
			l, r = formatAs(left, lv, true), formatAs(right, rv, true)
		}
		writeNumber(&b, left, l)
		b.WriteByte(' ')
		b.WriteString(op)
		b.WriteByte(' ')
		writeNumber(&b, right, r)
	})
	return b.String()
}

// misread reports whether the texts of two different numbers show equal ones, or the larger one as the smaller: a rounded number
// beside a whole one, which has all its digits, can. Durations round alike.
func misread(left, right string, less bool) bool {
	l, errLeft := strconv.ParseFloat(left, 64)
	r, errRight := strconv.ParseFloat(right, 64)
	return errLeft == nil && errRight == nil && (l == r || (l < r) != less)
}

func writeNumber(b *strings.Builder, name, number string) {
	b.WriteString(strings.TrimSuffix(name, ":s"))
	b.WriteByte('=')
	b.WriteString(number)
}

// formatAs writes a number as its name says: as a duration or as a plain number, precisely or as one reads it.
func formatAs(name string, v float64, precise bool) string {
	seconds := strings.HasSuffix(name, ":s")
	switch {
	case seconds && precise:
		return formatSeconds(v, time.Nanosecond)
	case seconds:
		return formatSeconds(v, time.Millisecond)
	case precise:
		return formatNumber(v, 12)
	}
	return formatNumber(v, 6)
}

func (s Step) at(next *int) float64 {
	if *next >= maxNumbers {
		return 0
	}
	*next++
	return s.Numbers[*next-1]
}

// Holds reports whether every inequality that the step's code states is true for the step's numbers: up to Noise, or exactly if
// both are whole numbers, as counts are. A step for which it is false explains nothing.
func (s Step) Holds() bool {
	next := 0
	ok := true
	s.Code.clauses(func(_, op, _ string) {
		left := s.at(&next)
		if op == "" {
			return
		}
		right := s.at(&next)
		switch op {
		case ">":
			ok = ok && (Exceeds(left, right) || whole(left) && whole(right) && left > right)
		case ">=":
			ok = ok && !Exceeds(right, left)
		case "<":
			ok = ok && (Exceeds(right, left) || whole(left) && whole(right) && right > left)
		case "<=":
			ok = ok && !Exceeds(left, right)
		case "==":
			ok = ok && !Exceeds(left, right) && !Exceeds(right, left)
		default:
			ok = false
		}
	})
	return ok
}

// whole reports whether v is a whole number that a float64 holds exactly, as every count does.
func whole(v float64) bool { return v == math.Trunc(v) && math.Abs(v) < 1<<53 }

// MarshalJSON writes the step with its numbers by name; durations are in seconds, under their name without ":s".
func (s Step) MarshalJSON() ([]byte, error) {
	numbers := map[string]any{}
	next := 0
	put := func(name string) {
		name, _ = strings.CutSuffix(name, ":s")
		numbers[name] = jsonNumber(s.at(&next))
	}
	s.Code.clauses(func(left, op, right string) {
		put(left)
		if op != "" {
			put(right)
		}
	})
	return json.Marshal(struct {
		Code    string         `json:"code"`
		From    int32          `json:"from"`
		To      int32          `json:"to"`
		Subject string         `json:"subject,omitempty"`
		Branch  uint16         `json:"branch,omitempty"`
		Warning bool           `json:"warning,omitempty"`
		Numbers map[string]any `json:"numbers,omitempty"`
		Because string         `json:"because,omitempty"`
	}{s.Code.String(), s.From, s.To, s.Subject, s.Branch, s.Warning, numbers, s.Because()})
}

// readNumber reads what jsonNumber returned from JSON.
func readNumber(v any, field string, to *float64) error {
	switch v := v.(type) {
	case nil:
		return nil
	case float64:
		*to = v
		return nil
	case string:
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			*to = n
			return nil
		}
	}
	return fmt.Errorf("%s: %v: must be a number, \"+Inf\", \"-Inf\" or \"NaN\"", field, v)
}

// jsonNumber returns numbers that JSON does not have as Prometheus writes them: "+Inf", "-Inf", "NaN".
func jsonNumber(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return formatNumber(v, 6)
	}
	return v
}

func formatNumber(v float64, digits int) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', digits, 64)
}

func formatSeconds(v float64, to time.Duration) string {
	if math.Abs(v) >= 9e9 || math.IsNaN(v) {
		return formatNumber(v, 12) + "s"
	}
	d := time.Duration(math.Round(v * float64(time.Second))).Round(to)
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
