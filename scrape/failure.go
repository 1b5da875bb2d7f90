package scrape

import (
	"errors"
	"fmt"
	"strings"

	"github.com/inferscale/inferscale/internal/enum"
)

// ErrNoPods is the error of every metric of a sweep without pods: nothing to read is not the same as no load.
var ErrNoPods = errors.New("no pods")

// A Reason says why a pod gave no value. Its names are stable and can be used as a label of a metric.
type Reason uint8

// The reasons. For those up to Encoding there is no page, and the pod's last value replaces it while it is young enough.
// From TooMany on there is a page without a usable value, and an old value would contradict it.
const (
	None Reason = iota // the pod gave a value

	Canceled    // the caller's context ended first
	Deadline    // the sweep's deadline came first
	Timeout     // the pod did not answer in time
	Refused     // nothing listens at the address
	Dial        // the name is unknown or the address unreachable
	Forbidden   // an address of this machine, its link or its cloud, without AllowLocal
	Target      // the pod's Host or URL cannot be used
	TLS         // no trust, no handshake, or no TLS at all
	Redirect    // redirected elsewhere, or twice
	Status      // a status other than 200
	Header      // not HTTP, or headers above the limit
	ContentType // not text/plain
	TooLarge    // a body above MaxBody, or more than a sweep may read
	Memory      // the Budget had no room for the page
	Truncated   // the body, or the connection, ended early
	Encoding    // a content encoding that was not asked for and is not gzip, or broken gzip

	TooMany        // more than MaxSeries samples of a family, or 256 buckets of a histogram
	Parse          // a line of a wanted family is malformed
	NotFound       // no family of that name, or no matching series
	Type           // the family's type does not fit what is read
	Ambiguous      // several series and no rule to combine them
	Duplicate      // the same series twice
	NonFinite      // NaN or infinite
	Negative       // below zero, such as the sentinel -1
	Stale          // the page's own timestamp is too old
	Buckets        // buckets that differ, decrease or are missing
	NoBaseline     // the first scrape of a counter or histogram
	NoObservations // nothing was observed between the two scrapes: 0/0
	NoPods         // of a metric of the fleet: there is no pod, or none is ready
)

// String returns the name of the constant.
func (r Reason) String() string {
	return enum.Name(uint8(r), "Reason",
		"None", "Canceled", "Deadline", "Timeout", "Refused", "Dial", "Forbidden", "Target", "TLS", "Redirect", "Status",
		"Header", "ContentType", "TooLarge", "Memory", "Truncated", "Encoding", "TooMany", "Parse", "NotFound", "Type", "Ambiguous",
		"Duplicate", "NonFinite", "Negative", "Stale", "Buckets", "NoBaseline", "NoObservations",
		"NoPods",
	)
}

// Fetch reports whether the reason is that there is no page, as opposed to its content.
func (r Reason) Fetch() bool { return r > None && r < TooMany }

// An Error says why there is no value: of one pod for one metric, of one pod for all metrics (Metric is empty), or of a
// metric of the fleet (Pod is empty).
//
// Its text never contains the token, even if a pod repeats it, and at most 300 bytes of a pod's answer, quoted, since
// answers are not trusted input for a log.
type Error struct {
	Pod    string
	Metric string
	Reason Reason
	Err    error // what happened, in words
}

// Error returns "pod p: metric m: Reason: what happened", without the parts that are empty.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Pod != "" {
		fmt.Fprintf(&b, "pod %s: ", e.Pod)
	}
	if e.Metric != "" {
		fmt.Fprintf(&b, "metric %s: ", e.Metric)
	}
	b.WriteString(e.Reason.String())
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns what happened: for example, errors.Is finds context.DeadlineExceeded.
func (e *Error) Unwrap() error { return e.Err }

func failf(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Err: fmt.Errorf(format, args...)}
}

// of returns a copy of e with the pod and the metric set.
func (e *Error) of(pod, metric string) *Error {
	return &Error{Pod: pod, Metric: metric, Reason: e.Reason, Err: e.Err}
}
