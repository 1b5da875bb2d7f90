package keda

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// replaced is how much longer than the last one of a metric a trigger is not asked for when its numbers are left out:
// its metadata were edited, and the answers are the other's. KEDA asks for all triggers of a ScaledObject in one go.
const replaced = time.Minute

// Metrics shows what triggers do as Prometheus metrics:
//
//	inferscale_keda_triggers                                triggers that are run
//	inferscale_keda_rounds_total{result}                    rounds: value, unknown, or error
//	inferscale_keda_round_duration_seconds                  how long rounds take
//	inferscale_keda_value{namespace,name,metric,trigger}    what is answered; absent while there is no value
//	inferscale_keda_target{namespace,name,metric,trigger}   the target that goes with it
//	inferscale_keda_snapshot_timestamp_seconds{...}         when it was found; time() less this is its age
//	inferscale_keda_shadow_replicas{...,shadow}             what a policy that watches would ask for
//	inferscale_keda_shadow_replica_seconds_total{...}       and what that has come to
//	inferscale_keda_shadow_left_out{...}                    1 while one is wrong, has failed, or was shown nothing
//	inferscale_keda_shadow_attained{...,of}                 the share of requests that met the SLO: of="shadow" and of="real" by
//	                                                        the simulator, with its counts and the real ones, of="measured" in truth
//
// namespace and name are those of the ScaledObject. trigger tells its triggers apart, of which several may have one
// metric: it stands for the metadata, is the same at every replica of the scaler, and is in the log. Of a trigger whose
// metadata were edited only the new ones are shown after a minute. It is a Collector, to be registered by the caller, and
// safe for concurrent use.
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
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"namespace", "name", "metric", "trigger"}, nil)
	}
	watched := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"namespace", "name", "metric", "trigger", "shadow"}, nil)
	}
	return &Metrics{
		wish:    watched("inferscale_keda_shadow_replicas", "What a policy that watches would ask for."),
		wished:  watched("inferscale_keda_shadow_replica_seconds_total", "What a policy that watches has asked for since it began."),
		leftOut: watched("inferscale_keda_shadow_left_out", "1 while a policy that watches is wrong, has failed, or was shown nothing."),
		attained: prometheus.NewDesc("inferscale_keda_shadow_attained",
			"The share of requests that met the SLO: by the simulator with the counts of a policy that watches and with the real ones, and in truth.",
			[]string{"namespace", "name", "metric", "trigger", "shadow", "of"}, nil),
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

// Collect sends all series. Those of triggers are what they answer at this moment.
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

// watching sends the series of the policies that watch.
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

// shown returns the triggers whose answers count.
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

// of has the triggers of an engine shown.
func (m *Metrics) of(e *Engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engines = append(m.engines, e)
}

// round takes in what a round came to.
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
