package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Numbers are the controller's own metrics, beside those of the rounds. A nil Numbers counts nothing.
type Numbers struct {
	lateness prometheus.Histogram
	statuses prometheus.Counter
}

// NewNumbers returns Numbers, to be registered by the caller:
//
//	inferscale_round_lateness_seconds   how long after it was due a round began
//	inferscale_status_writes_total      how often a status was written
func NewNumbers() *Numbers {
	return &Numbers{
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "inferscale", Name: "round_lateness_seconds", Help: "How long after it was due a round began.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}),
		statuses: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "inferscale", Name: "status_writes_total", Help: "How often the status of an LLMAutoScaler was written.",
		}),
	}
}

// Describe sends the descriptions of the metrics.
func (n *Numbers) Describe(ch chan<- *prometheus.Desc) {
	n.lateness.Describe(ch)
	n.statuses.Describe(ch)
}

// Collect sends the metrics.
func (n *Numbers) Collect(ch chan<- prometheus.Metric) {
	n.lateness.Collect(ch)
	n.statuses.Collect(ch)
}

// late notes how late a round is. What was due at no time, as the first round after an edit, is not late.
func (n *Numbers) late(by time.Duration, due time.Time) {
	if n != nil && !due.IsZero() {
		n.lateness.Observe(by.Seconds())
	}
}

func (n *Numbers) statusWritten() {
	if n != nil {
		n.statuses.Inc()
	}
}
