package k8s

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/inferscale/inferscale/scaling"
)

// Metrics exports outcomes as Prometheus metrics. Each has the labels namespace, name and kind of the target, and the label
// autoscaler with the name of Settings.Object, which is empty without one:
//
//	inferscale_decisions_total{verdict,code}           decisions
//	inferscale_writes_total{result}                    write results of decisions that act
//	inferscale_write_conflicts_total                   decisions made again because the target had changed
//	inferscale_readings{metric,bound="lower|upper"}    interval of a metric's reading; absent if it is unknown
//	inferscale_scrape_failures_total{reason}           pages and values that could not be read
//	inferscale_current_replicas                        spec.replicas on which the decision was made
//	inferscale_desired_replicas                        count that the last decision asks for
//	inferscale_ready_replicas                          replicas that are ready
//	inferscale_min_replicas, inferscale_max_replicas   the bounds, if they are configured
//	inferscale_last_decision_timestamp_seconds         time of the last decision; time() minus this is its age
//	inferscale_config_refused                          1 while a configuration is refused and the last good one is in force
//	inferscale_state_refused                           1 while the stored state cannot be used
//	inferscale_dry_run                                 1 in a dry run
//	inferscale_paused                                  1 while paused
//	inferscale_round_errors_total{step}                rounds in which a step failed
//	inferscale_loop_duration_seconds                   how long rounds take
//
// It is a Collector, which the caller must register, and safe for concurrent use.
type Metrics struct {
	mu   sync.Mutex // keeps the updates of several series together
	all  []vector
	seen map[series]map[string]bool // metrics that have series of their readings
	held map[series]int             // number of loops that show a target

	decisions, writes, conflicts, failures, errors *prometheus.CounterVec

	readings, current, desired, ready, least, most, last, config, state, dryRun, paused *prometheus.GaugeVec

	duration *prometheus.HistogramVec
}

// A series identifies the series of a loop: the target, and the name of the autoscaler.
type series struct{ namespace, name, kind, autoscaler string }

func (t Target) series(autoscaler string) series {
	return series{t.Namespace, t.Name, t.Kind, autoscaler}
}

// labels returns the label values of a series, followed by more.
func (s series) labels(more ...string) []string {
	return append([]string{s.namespace, s.name, s.kind, s.autoscaler}, more...)
}

// A vector is the common interface of the Prometheus vector types.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}

// NewMetrics returns Metrics without a target.
func NewMetrics() *Metrics {
	m := &Metrics{seen: make(map[series]map[string]bool), held: make(map[series]int)}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "inferscale", Name: name, Help: help}, targetLabels(labels))
		m.all = append(m.all, v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "inferscale", Name: name, Help: help}, targetLabels(labels))
		m.all = append(m.all, v)
		return v
	}
	m.decisions = counter("decisions_total", "Decisions by verdict and by the code of the rule that had the last word.", "verdict", "code")
	m.writes = counter("writes_total", "Decisions that ask for a write, by what became of it.", "result")
	m.conflicts = counter("write_conflicts_total", "Decisions that were made again because the target had changed.")
	m.failures = counter("scrape_failures_total", "Pages and values of pods that were not had, by reason.", "reason")
	m.errors = counter("round_errors_total", "Rounds in which a step failed, by step.", "step")
	m.readings = gauge("readings", "What is known of a metric over the fleet: the bounds of an interval that holds its value.", "metric", "bound")
	m.current = gauge("current_replicas", "The count asked for (spec.replicas) that was decided on.")
	m.desired = gauge("desired_replicas", "The count that the last decision asks for.")
	m.ready = gauge("ready_replicas", "Replicas that are ready.")
	m.least = gauge("min_replicas", "The lower bound.")
	m.most = gauge("max_replicas", "The upper bound.")
	m.last = gauge("last_decision_timestamp_seconds", "When it was last decided.")
	m.config = gauge("config_refused", "Whether a configuration is refused and the last good one in force.")
	m.state = gauge("state_refused", "Whether the stored state cannot be used, so that nothing is decided.")
	m.dryRun = gauge("dry_run", "Whether decisions are made and not written.")
	m.paused = gauge("paused", "Whether decisions are made and not written until the pause ends.")
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "inferscale", Name: "loop_duration_seconds", Help: "How long a round takes, from reading the target to storing the state.",
		Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15},
	}, targetLabels(nil))
	m.all = append(m.all, m.duration)
	return m
}

func targetLabels(more []string) []string {
	return append([]string{"namespace", "name", "kind", "autoscaler"}, more...)
}

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range m.all {
		v.Describe(ch)
	}
}

// Collect sends all series.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.all {
		v.Collect(ch)
	}
}

// Observe records an outcome, and how long its round took.
func (m *Metrics) Observe(o *Outcome, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	with := o.Target.series(o.Autoscaler).labels
	m.duration.WithLabelValues(with()...).Observe(took.Seconds())
	m.dryRun.WithLabelValues(with()...).Set(truth(o.DryRun))
	m.paused.WithLabelValues(with()...).Set(truth(o.Paused))
	m.config.WithLabelValues(with()...).Set(truth(o.ConfigErr != nil))
	m.state.WithLabelValues(with()...).Set(truth(o.StateErr != nil && stateReason(o.StateErr) == ReasonStateRefused))
	if o.Bounds != (scaling.Bounds{}) {
		m.least.WithLabelValues(with()...).Set(float64(o.Bounds.Min))
		m.most.WithLabelValues(with()...).Set(float64(o.Bounds.Max))
	}
	for step, err := range map[string]error{
		"state": o.StateErr, "read": o.ScaleErr, "observe": o.ObserveErr, "config": o.ConfigErr, "write": o.WriteErr,
	} {
		if err != nil {
			m.errors.WithLabelValues(with(step)...).Inc()
		}
	}
	if o.ScaleErr == nil && o.Scale.ResourceVersion != "" {
		m.current.WithLabelValues(with()...).Set(float64(o.Scale.Replicas))
	}
	m.observed(o)
	if !o.Decided {
		return
	}
	m.decisions.WithLabelValues(with(o.Decision.Verdict.String(), o.Decision.Code().String())...).Inc()
	m.desired.WithLabelValues(with()...).Set(float64(o.Decision.Replicas))
	m.last.WithLabelValues(with()...).Set(float64(o.At.UnixMilli()) / 1000)
	if o.Write != NoWrite {
		m.writes.WithLabelValues(with(o.Write.String())...).Inc()
	}
	if o.Conflicts > 0 {
		m.conflicts.WithLabelValues(with()...).Add(float64(o.Conflicts))
	}
}

// observed records the observation; a metric whose reading is unknown has no series.
func (m *Metrics) observed(o *Outcome) {
	with := o.Target.series(o.Autoscaler).labels
	if o.Observed.Fleets != nil {
		m.ready.WithLabelValues(with()...).Set(float64(o.View().Ready))
	}
	if o.Fleet == 0 { // once for all targets that were observed together
		for reason, n := range o.Observed.Failures {
			m.failures.WithLabelValues(with(reason.String())...).Add(float64(n))
		}
	}
	before, now := m.seen[o.Target.series(o.Autoscaler)], make(map[string]bool, len(o.Observed.Readings))
	for _, r := range o.Observed.Readings {
		if r.Known() {
			now[r.Metric] = true
			m.readings.WithLabelValues(with(r.Metric, "lower")...).Set(r.Lower)
			m.readings.WithLabelValues(with(r.Metric, "upper")...).Set(r.Upper)
		}
	}
	for metric := range before {
		if !now[metric] {
			m.readings.DeleteLabelValues(with(metric, "lower")...)
			m.readings.DeleteLabelValues(with(metric, "upper")...)
		}
	}
	m.seen[o.Target.series(o.Autoscaler)] = now
}

// Forget removes every series of a target, for all autoscalers.
func (m *Metrics) Forget(t Target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(prometheus.Labels{"namespace": t.Namespace, "name": t.Name, "kind": t.Kind})
	for s := range m.seen {
		if s == t.series(s.autoscaler) {
			delete(m.seen, s)
		}
	}
}

func (m *Metrics) forget(of prometheus.Labels) {
	for _, v := range m.all {
		v.DeletePartialMatch(of)
	}
}

// hold records that a loop shows a target.
func (m *Metrics) hold(s series) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[s]++
}

// release ends a hold, and removes the series if no other loop shows the target.
func (m *Metrics) release(s series) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[s]--; m.held[s] <= 0 {
		delete(m.held, s)
		delete(m.seen, s)
		m.forget(prometheus.Labels{"namespace": s.namespace, "name": s.name, "kind": s.kind, "autoscaler": s.autoscaler})
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
