package keda

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics shows what triggers do as Prometheus metrics:
//
//	inferscale_keda_triggers                               triggers that are run
//	inferscale_keda_rounds_total{result}                   rounds: value, unknown, or error
//	inferscale_keda_round_duration_seconds                 how long rounds take
//	inferscale_keda_value{namespace,name,metric}           what is answered; absent while there is no value
//	inferscale_keda_target{namespace,name,metric}          the target that goes with it
//	inferscale_keda_snapshot_timestamp_seconds{...}        when it was found; time() less this is its age
//
// namespace and name are those of the ScaledObject. It is a Collector, to be registered by the caller, and safe for
// concurrent use. A nil Metrics shows nothing.
type Metrics struct {
	triggers            prometheus.Gauge
	rounds              *prometheus.CounterVec
	took                prometheus.Histogram
	value, target, time *prometheus.GaugeVec
}

// NewMetrics returns Metrics without triggers.
func NewMetrics() *Metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"namespace", "name", "metric"})
	}
	return &Metrics{
		triggers: prometheus.NewGauge(prometheus.GaugeOpts{Name: "inferscale_keda_triggers", Help: "Triggers that are run."}),
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "inferscale_keda_rounds_total", Help: "Rounds of triggers by what they came to: value, unknown or error.",
		}, []string{"result"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "inferscale_keda_round_duration_seconds", Help: "How long rounds of triggers take.", Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 11),
		}),
		value:  gauge("inferscale_keda_value", "What the HorizontalPodAutoscaler is answered. Absent while there is no value."),
		target: gauge("inferscale_keda_target", "The target that goes with the value."),
		time:   gauge("inferscale_keda_snapshot_timestamp_seconds", "When what is answered was found."),
	}
}

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.each(func(c prometheus.Collector) { c.Describe(ch) })
}

// Collect sends all series.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.each(func(c prometheus.Collector) { c.Collect(ch) })
}

func (m *Metrics) each(do func(prometheus.Collector)) {
	for _, c := range []prometheus.Collector{m.triggers, m.rounds, m.took, m.value, m.target, m.time} {
		do(c)
	}
}

func (m *Metrics) began() {
	if m != nil {
		m.triggers.Inc()
	}
}

func (m *Metrics) ended(ref Ref, metric string) {
	if m == nil {
		return
	}
	m.triggers.Dec()
	for _, g := range []*prometheus.GaugeVec{m.value, m.target, m.time} {
		g.DeleteLabelValues(ref.Namespace, ref.Name, metric)
	}
}

// round takes in what a round came to.
func (m *Metrics) round(t *entry, s Snapshot, err error, took time.Duration) {
	if m == nil {
		return
	}
	m.took.Observe(took.Seconds())
	labels := []string{t.ref.Namespace, t.ref.Name, t.plan.Spec.Metric}
	switch {
	case err != nil:
		m.rounds.WithLabelValues("error").Inc()
		return
	case s.Unknown != nil:
		m.rounds.WithLabelValues("unknown").Inc()
		m.value.DeleteLabelValues(labels...)
	default:
		m.rounds.WithLabelValues("value").Inc()
		m.value.WithLabelValues(labels...).Set(s.Value)
	}
	m.target.WithLabelValues(labels...).Set(s.Spec.Target)
	m.time.WithLabelValues(labels...).Set(float64(s.At.UnixMilli()) / 1e3)
}
