package controller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/inferscale/inferscale/adapters/k8s/watch"
)

// Numbers are the controller's own metrics, beside those of the rounds.
type Numbers struct {
	mu      sync.Mutex
	reasons map[types.NamespacedName]string // with which objects are shown

	lateness *prometheus.HistogramVec
	statuses prometheus.Counter
	readies  *prometheus.GaugeVec

	shown   map[types.NamespacedName]map[string]float64 // replica-seconds of shadows that are counted
	wished  *prometheus.GaugeVec
	outs    *prometheus.GaugeVec
	attains *prometheus.GaugeVec
	seconds *prometheus.CounterVec
}

// NewNumbers returns Numbers, to be registered by the caller:
//
//	inferscale_round_lateness_seconds{namespace}
//	                                    how long after it was due a round began
//	inferscale_status_writes_total      how often a status was written
//	inferscale_ready{namespace,name,reason}
//	                                    1 if the LLMAutoScaler is ready, else 0, with the reason of its condition Ready: one
//	                                    series for each, also for one that has no rounds as its spec is refused
//	inferscale_shadow_replicas{namespace,name,shadow}
//	                                    the count that a shadow asks for
//	inferscale_shadow_replica_seconds_total{namespace,name,shadow}
//	                                    those that it has asked for since this process began
//	inferscale_shadow_left_out{namespace,name,shadow}
//	                                    1 while it is left out
//	inferscale_shadow_attained{namespace,name,shadow,of="shadow|real|measured"}
//	                                    the share of requests that met the SLO: by the simulator with its counts and with the
//	                                    real ones, and in truth, in the same time
func NewNumbers() *Numbers {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "inferscale", Name: name, Help: help}, labels)
	}
	return &Numbers{
		reasons: make(map[types.NamespacedName]string),
		lateness: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "inferscale", Name: "round_lateness_seconds", Help: "How long after it was due a round began.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, []string{"namespace"}),
		statuses: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "inferscale", Name: "status_writes_total", Help: "How often the status of an LLMAutoScaler was written.",
		}),
		shown:  make(map[types.NamespacedName]map[string]float64),
		wished: gauge("shadow_replicas", "The count that a shadow of an LLMAutoScaler asks for.", "namespace", "name", "shadow"),
		outs:   gauge("shadow_left_out", "Whether a shadow is left out, as it is wrong, has failed or has not decided in time.", "namespace", "name", "shadow"),
		attains: gauge("shadow_attained", "The share of requests that met the SLO: by the simulator with a shadow's counts and with the real ones, and in truth.",
			"namespace", "name", "shadow", "of"),
		seconds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "inferscale", Name: "shadow_replica_seconds_total", Help: "Replica-seconds that a shadow has asked for.",
		}, []string{"namespace", "name", "shadow"}),
		readies: gauge("ready", "Whether an LLMAutoScaler is ready, with the reason of its condition Ready.", "namespace", "name", "reason"),
	}
}

// Describe sends the descriptions of the metrics.
func (n *Numbers) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range n.all() {
		c.Describe(ch)
	}
}

// Collect sends the metrics.
func (n *Numbers) Collect(ch chan<- prometheus.Metric) {
	for _, c := range n.all() {
		c.Collect(ch)
	}
}

func (n *Numbers) all() []prometheus.Collector {
	return []prometheus.Collector{n.lateness, n.statuses, n.readies, n.wished, n.outs, n.attains, n.seconds}
}

// late notes how late a round is.
func (n *Numbers) late(namespace string, by time.Duration) {
	n.lateness.WithLabelValues(namespace).Observe(by.Seconds())
}

// ready shows whether an object is ready. Where the reason changes, there are for a moment two series.
func (n *Numbers) ready(key types.NamespacedName, reason string, ready bool) {
	value := 0.0
	if ready {
		value = 1
	}
	n.readies.WithLabelValues(key.Namespace, key.Name, reason).Set(value)
	n.mu.Lock()
	before := n.reasons[key]
	n.reasons[key] = reason
	n.mu.Unlock()
	if before != "" && before != reason {
		n.readies.DeleteLabelValues(key.Namespace, key.Name, before)
	}
}

func (n *Numbers) forget(key types.NamespacedName) {
	n.mu.Lock()
	delete(n.reasons, key)
	last := true
	for other := range n.reasons {
		last = last && other.Namespace != key.Namespace
	}
	n.mu.Unlock()
	if last {
		n.lateness.DeleteLabelValues(key.Namespace)
	}
	n.readies.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "name": key.Name})
	n.shadows(key, nil)
}

// shadows shows what shadows ask for; those that are none any more are forgotten.
func (n *Numbers) shadows(key types.NamespacedName, all []watch.State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, now := n.shown[key], make(map[string]float64, len(all))
	for i := range all {
		one := &all[i]
		now[one.Name] = one.ReplicaSeconds
		left := 0.0
		if out, _ := leftOut(one); out != "" {
			left = 1
		}
		n.outs.WithLabelValues(key.Namespace, key.Name, one.Name).Set(left)
		if one.Attained == nil {
			n.attains.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "name": key.Name, "shadow": one.Name})
		} else {
			for of, x := range map[string]float64{"shadow": one.Attained.Attained, "real": one.Actual.Attained, "measured": one.Actual.Measured} {
				n.attains.WithLabelValues(key.Namespace, key.Name, one.Name, of).Set(x)
			}
		}
		if one.At.IsZero() {
			continue // it was shown nothing yet
		}
		n.wished.WithLabelValues(key.Namespace, key.Name, one.Name).Set(float64(one.Replicas))
		seconds := n.seconds.WithLabelValues(key.Namespace, key.Name, one.Name)
		if was, ok := before[one.Name]; ok && one.ReplicaSeconds > was {
			seconds.Add(one.ReplicaSeconds - was)
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			n.wished.DeleteLabelValues(key.Namespace, key.Name, name)
			n.outs.DeleteLabelValues(key.Namespace, key.Name, name)
			n.seconds.DeleteLabelValues(key.Namespace, key.Name, name)
			n.attains.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "name": key.Name, "shadow": name})
		}
	}
	if n.shown[key] = now; len(now) == 0 {
		delete(n.shown, key)
	}
}

func (n *Numbers) statusWritten() { n.statuses.Inc() }
