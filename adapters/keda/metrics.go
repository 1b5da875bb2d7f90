package keda

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A trigger is left out of the metrics when its last call is longer than replaced before the last call for another trigger
// with the same metric name: then its metadata were edited, and the other trigger answers. KEDA makes the calls for all
// triggers of a ScaledObject in one go.
const replaced = time.Minute

// Metrics exports the results of triggers as Prometheus metrics:
//
//	inferscale_keda_triggers                                running triggers
//	inferscale_keda_rounds_total{result}                    rounds: value, unknown, or error
//	inferscale_keda_round_duration_seconds                  how long rounds take
//	inferscale_keda_value{namespace,name,metric,trigger}    the value in answers; absent while there is none
//	inferscale_keda_target{namespace,name,metric,trigger}   the target for this value
//	inferscale_keda_snapshot_timestamp_seconds{...}         time of its round; time() minus this is its age
//	inferscale_keda_shadow_replicas{...,shadow}             the count that a shadow would ask for
//	inferscale_keda_shadow_replica_seconds_total{...}       and the sum of it over time
//	inferscale_keda_shadow_left_out{...}                    1 while a shadow is wrong, has failed, or was shown nothing
//	inferscale_keda_shadow_attained{...,of}                 the share of requests that met the SLO: of="shadow" and of="real" by
//	                                                        simulation, with its counts and the real ones; of="measured" in reality
//
// namespace and name are those of the ScaledObject. trigger distinguishes its triggers, of which several may have the same
// metric: it identifies the metadata, is the same in every replica of the scaler, and is in the log. After an edit of a
// trigger's metadata, the series of the old metadata disappear after a minute. Metrics is a Collector, which the caller must
// register, and safe for concurrent use.
type Metrics struct {
	triggers            prometheus.Gauge
	rounds              *prometheus.CounterVec
	took                prometheus.Histogram
	value, target, time *prometheus.Desc

	wish, wished, leftOut, attained *prometheus.Desc

	mu      sync.Mutex
	engines []*Engine
}

// NewMetrics returns Metrics without triggers.
func NewMetrics() *Metrics {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"namespace", "name", "metric", "trigger"}, more...), nil)
	}
	return &Metrics{
		wish:    desc("inferscale_keda_shadow_replicas", "What a policy that watches would ask for.", "shadow"),
		wished:  desc("inferscale_keda_shadow_replica_seconds_total", "What a policy that watches has asked for since it began.", "shadow"),
		leftOut: desc("inferscale_keda_shadow_left_out", "1 while a policy that watches is wrong, has failed, or was shown nothing.", "shadow"),
		attained: desc("inferscale_keda_shadow_attained",
			"The share of requests that met the SLO: by the simulator with the counts of a policy that watches and with the real ones, and in truth.",
			"shadow", "of"),
		triggers: prometheus.NewGauge(prometheus.GaugeOpts{Name: "inferscale_keda_triggers", Help: "Triggers that are run."}),
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "inferscale_keda_rounds_total", Help: "Rounds of triggers by what they came to: value, unknown or error.",
		}, []string{"result"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "inferscale_keda_round_duration_seconds", Help: "How long rounds of triggers take.", Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 11),
		}),
		value:  desc("inferscale_keda_value", "What the HorizontalPodAutoscaler is answered. Absent while there is no value."),
		target: desc("inferscale_keda_target", "The target that goes with the value."),
		time:   desc("inferscale_keda_snapshot_timestamp_seconds", "When what is answered was found."),
	}
}

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range []prometheus.Collector{m.triggers, m.rounds, m.took} {
		c.Describe(ch)
	}
	for _, d := range []*prometheus.Desc{m.value, m.target, m.time, m.wish, m.wished, m.leftOut, m.attained} {
		ch <- d
	}
}

// Collect sends all series. Those of triggers have the answers of this moment.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{m.triggers, m.rounds, m.took} {
		c.Collect(ch)
	}
	m.mu.Lock()
	engines := slices.Clone(m.engines)
	m.mu.Unlock()
	for _, e := range engines {
		for _, t := range e.shown() {
			m.watching(ch, t)
			s, _ := t.last()
			if s == nil {
				continue
			}
			send := func(d *prometheus.Desc, v float64) {
				ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, t.ref.Namespace, t.ref.Name, t.plan.Spec.Metric, t.id)
			}
			send(m.target, s.Spec.Target)
			send(m.time, float64(s.At.UnixMilli())/1e3)
			if now, err := e.answer(t); err == nil && now.Unknown == nil {
				send(m.value, now.Value)
			}
		}
	}
}

// watching sends the series of a trigger's shadows.
func (m *Metrics) watching(ch chan<- prometheus.Metric, t *entry) {
	trigger, ok := t.plan.Trigger.(*podTrigger)
	if !ok {
		return
	}
	for _, w := range trigger.watching() {
		of := []string{t.ref.Namespace, t.ref.Name, t.plan.Spec.Metric, t.id, w.Name}
		out := 0.0
		if w.leftOut {
			out = 1
		}
		ch <- prometheus.MustNewConstMetric(m.leftOut, prometheus.GaugeValue, out, of...)
		if !w.At.IsZero() {
			ch <- prometheus.MustNewConstMetric(m.wish, prometheus.GaugeValue, float64(w.Replicas), of...)
			ch <- prometheus.MustNewConstMetric(m.wished, prometheus.CounterValue, w.ReplicaSeconds, of...)
		}
		if w.Attained != nil {
			for whose, share := range map[string]float64{"shadow": w.Attained.Attained, "real": w.Actual.Attained, "measured": w.Actual.Measured} {
				ch <- prometheus.MustNewConstMetric(m.attained, prometheus.GaugeValue, share, append(slices.Clone(of), whose)...)
			}
		}
	}
}

// shown returns the triggers that have series.
func (e *Engine) shown() []*entry {
	e.mu.RLock()
	defer e.mu.RUnlock()
	shown := make([]*entry, 0, len(e.triggers))
	for _, o := range e.objects {
		newest := newestOf(o.entries, func(t *entry) string { return t.plan.Spec.Metric })
		for _, t := range o.entries {
			if t.streams.Load() > 0 || newest[t.plan.Spec.Metric].Sub(t.lastAsked()) <= replaced {
				shown = append(shown, t)
			}
		}
	}
	return shown
}

// of adds the triggers of an engine.
func (m *Metrics) of(e *Engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engines = append(m.engines, e)
}

// without removes the triggers of an engine.
func (m *Metrics) without(e *Engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engines = slices.DeleteFunc(m.engines, func(other *Engine) bool { return other == e })
}

// round records the result of a round.
func (m *Metrics) round(s Snapshot, err error, took time.Duration) {
	m.took.Observe(took.Seconds())
	result := "value"
	switch {
	case err != nil:
		result = "error"
	case s.Unknown != nil:
		result = "unknown"
	}
	m.rounds.WithLabelValues(result).Inc()
}
