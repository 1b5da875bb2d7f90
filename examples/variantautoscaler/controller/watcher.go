package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/policy"
)

// Reasons of events about the configuration.
const (
	ReasonConfigRefused  = "ConfigRefused"
	ReasonConfigAccepted = "ConfigAccepted"
)

// maxMessage is what the API server accepts as the message of an event.
const maxMessage = 1024

// A Watcher follows the ConfigMap with the configuration and keeps the last good one. It is a prometheus.Collector:
//
//	inferscale_configuration_refused              1 while what the ConfigMap says is refused and the last good one in force
//	inferscale_configuration_loads_total{result}  configurations that were accepted and refused
//	inferscale_configuration_models               models of the configuration in force
//
// It is safe for concurrent use.
type Watcher struct {
	lister    corelisters.ConfigMapLister
	namespace string
	name      string
	recorder  record.EventRecorder
	logger    *slog.Logger

	refused prometheus.Gauge
	loads   *prometheus.CounterVec
	models  prometheus.Gauge

	touched chan struct{} // has something if the ConfigMap may have changed
	changed chan struct{} // has something if another configuration is in force

	mu      sync.Mutex
	inForce []policy.Model // the last good one; nil before the first
	judged  *content       // what was judged last; nil for none
	missing bool           // the ConfigMap was not there
	speak   bool           // events are made
	said    func()         // makes the last event, if there was one
}

// A content is what a ConfigMap has for a configuration.
type content struct {
	text  string
	there bool
}

// NewWatcher returns the Watcher of a ConfigMap. Informer is that of ConfigMaps in the namespace, and Run follows it.
func NewWatcher(informer cache.SharedIndexInformer, namespace, name string, recorder record.EventRecorder, logger *slog.Logger) (*Watcher, error) {
	w := &Watcher{
		lister: corelisters.NewConfigMapLister(informer.GetIndexer()), namespace: namespace, name: name, recorder: recorder, logger: logger,
		refused: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "inferscale", Name: "configuration_refused", Help: "1 while the configuration is refused and the last good one in force.",
		}),
		loads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "inferscale", Name: "configuration_loads_total", Help: "Configurations that were accepted and refused.",
		}, []string{"result"}),
		models: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "inferscale", Name: "configuration_models", Help: "Models of the configuration in force.",
		}),
		touched: make(chan struct{}, 1), changed: make(chan struct{}, 1),
	}
	touch := func(any) { signal(w.touched) }
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: touch, UpdateFunc: func(_, o any) { touch(o) }, DeleteFunc: touch,
	})
	signal(w.touched)
	return w, err
}

// signal leaves a note, unless there is one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Describe sends the descriptions of the metrics.
func (w *Watcher) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, ch) }

// Collect sends the metrics.
func (w *Watcher) Collect(ch chan<- prometheus.Metric) {
	w.refused.Collect(ch)
	w.loads.Collect(ch)
	w.models.Collect(ch)
}

// Run judges the ConfigMap whenever it changes, until the context ends. The informer must have synced.
func (w *Watcher) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.touched:
			w.look()
		}
	}
}

// Current returns the configuration in force, or nil if there was none yet.
func (w *Watcher) Current() []policy.Model {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inForce
}

// Changed delivers when another configuration has come into force.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Ready returns an error until there was a good configuration.
func (w *Watcher) Ready() error {
	if w.Current() == nil {
		return errors.New("no good configuration yet")
	}
	return nil
}

// Speak lets events be made, beginning with the last: of several copies of the program one tells.
func (w *Watcher) Speak() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.speak = true; w.said != nil {
		w.said()
	}
}

func (w *Watcher) look() {
	m, err := w.lister.ConfigMaps(w.namespace).Get(w.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if !w.missing {
			w.refuse(&corev1.ConfigMap{}, errors.New("it is not there"))
		}
		w.judged, w.missing = nil, true
		return
	}
	text, ok := m.Data[Key]
	now := content{text: text, there: ok}
	if w.judged != nil && *w.judged == now {
		return // another ConfigMap changed, or something else in this one, which may be all the time
	}
	w.judged, w.missing = &now, false
	if !ok {
		w.refuse(m, fmt.Errorf("it has no key %s", Key))
		return
	}
	models, err := Parse([]byte(text))
	if err == nil {
		err = check(&Env{ConfigMaps: w.lister, Namespace: w.namespace}, models)
	}
	if err != nil {
		w.refuse(m, err)
		return
	}
	w.inForce = models
	w.refused.Set(0)
	w.loads.WithLabelValues("accepted").Inc()
	w.models.Set(float64(len(models)))
	w.logger.Info("configuration accepted", "configMap", w.where(), "resourceVersion", m.ResourceVersion, "models", len(models))
	w.say(m, corev1.EventTypeNormal, ReasonConfigAccepted, fmt.Sprintf("%d models", len(models)))
	signal(w.changed)
}

func (w *Watcher) where() string { return w.namespace + "/" + w.name }

func (w *Watcher) refuse(m *corev1.ConfigMap, err error) {
	w.refused.Set(1)
	w.loads.WithLabelValues("refused").Inc()
	what := "nothing is scaled"
	if w.inForce != nil {
		what = "the last good configuration stays in force"
	}
	w.logger.Error("configuration refused: "+what, "configMap", w.where(), "resourceVersion", m.ResourceVersion, "error", err.Error())
	w.say(m, corev1.EventTypeWarning, ReasonConfigRefused, what+": "+err.Error())
}

func (w *Watcher) say(m *corev1.ConfigMap, kind, reason, message string) {
	if w.recorder == nil {
		return
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-3], "") + "..." // not half a letter
	}
	about := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: w.name, UID: m.UID, ResourceVersion: m.ResourceVersion,
	}
	w.said = func() { w.recorder.Event(about, kind, reason, message) }
	if w.speak {
		w.said()
	}
}
