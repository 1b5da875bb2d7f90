package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	trimming "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/examples/variantautoscaler/controller"
	"github.com/inferscale/inferscale/policy"
)

// component is the name of the program in events and of its lease.
const component = "variantautoscaler"

// A world is a cluster and what is kept of it.
type world struct {
	client     kubernetes.Interface
	informers  informers.SharedInformerFactory
	configMaps cache.SharedIndexInformer
	env        controller.Env
}

// newWorld connects. To know the ConfigMaps of the namespace is a matter of follow.
func newWorld(cluster *rest.Config, namespace string, o options, logger *slog.Logger) (*world, error) {
	found, err := k8s.For(cluster)
	if err != nil {
		return nil, err
	}
	client := found.Client
	store, err := k8s.NewConfigMapStore(k8s.ConfigMapStoreConfig{Client: client.CoreV1(), Namespace: namespace, Name: o.state, Parts: o.parts})
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTransform(trimming.TransformStripManagedFields()), informers.WithTweakListOptions(func(list *metav1.ListOptions) {
			var others []fields.Selector
			for _, name := range o.states() {
				if name != o.configMap { // states may be a megabyte, of which each write would come back, and nobody reads them there
					others = append(others, fields.OneTermNotEqualSelector(metav1.ObjectNameField, name))
				}
			}
			list.FieldSelector = fields.AndSelectors(others...).String()
		}))
	maps := factory.Core().V1().ConfigMaps()
	return &world{client: client, informers: factory, configMaps: maps.Informer(), env: controller.Env{
		Scales: found.Scales, Pods: controller.NewPodCache(client), ConfigMaps: maps.Lister(), Store: store, Namespace: namespace,
		Budget: found.Budget, Tunings: new(capacity.Shared), DryRun: o.dryRun, AllowLocal: o.allowLocal, Logger: logger,
	}}, nil
}

// follow begins to follow the ConfigMaps of the namespace, until the context ends.
func (w *world) follow(ctx context.Context) { w.informers.Start(ctx.Done()) }

// once does one round with the models of a file, or else of the ConfigMap, and prints it.
func (w *world) once(ctx context.Context, o options, models []policy.Model, stdout io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait, stop := context.WithTimeout(ctx, o.timeout)
	defer stop()
	if o.file == "" {
		if models, err = w.configuration(wait, o.configMap); err != nil {
			return err
		}
	}
	if thresholds(models) { // nothing else is read of the ConfigMaps, and not everybody may list them
		w.follow(ctx)
		if !cache.WaitForCacheSync(wait.Done(), w.configMaps.HasSynced) {
			return fmt.Errorf("ConfigMaps of namespace %s, for thresholdsFrom, are not known after %s", w.env.Namespace, o.timeout)
		}
	}
	return controller.Once(ctx, w.env, models, stdout, o.explain, o.timeout)
}

// thresholds reports whether a model has its thresholds in a ConfigMap.
func thresholds(models []policy.Model) bool {
	return slices.ContainsFunc(models, func(m policy.Model) bool { return m.Saturation != nil && m.Saturation.ThresholdsFrom != nil })
}

// fromFile reads the configuration from a file, or from the standard input if its name is -.
func fromFile(name string) ([]policy.Model, error) {
	var text []byte
	var err error
	if name == "-" {
		name = "standard input"
		text, err = cli.Read(os.Stdin, name, cli.Document)
	} else {
		text, err = cli.ReadFile(name, cli.Document)
	}
	if err != nil {
		return nil, err
	}
	return policy.ReadModels(text, name)
}

// configuration reads it from the ConfigMap.
func (w *world) configuration(ctx context.Context, name string) ([]policy.Model, error) {
	m, err := w.client.CoreV1().ConfigMaps(w.env.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return controller.Parse([]byte(m.Data[controller.Key]))
}

// serve follows the configuration and, while this copy leads, scales, until the context ends.
func (w *world) serve(ctx context.Context, o options) error {
	// What is below outlives the signal, so that rounds end and the lease is given up after them.
	after, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	w.follow(after)
	events := record.NewBroadcaster()
	defer events.Shutdown()
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: w.client.CoreV1().Events("")})
	w.env.Recorder = events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
	w.env.Metrics = k8s.NewMetrics()
	watcher, err := controller.NewWatcher(w.configMaps, w.env.Namespace, o.configMap, w.env.Recorder, w.env.Logger)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.env.Metrics, watcher, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	adaptor := leaderelection.NewLeaderHealthzAdaptor(2 * o.lease.duration)
	pages, err := openPages(o, registry, adaptor.Check, watcher.Ready)
	if err != nil {
		return err
	}
	defer pages.close()

	var works sync.WaitGroup
	defer works.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	works.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), w.configMaps.HasSynced) {
			watcher.Run(ctx)
		}
	})
	runner := controller.NewRunner(w.env, watcher)
	if !o.elect {
		runner.Run(ctx)
		return nil
	}
	return w.lead(ctx, o, adaptor, runner)
}

// lead runs the runner while this copy leads. It returns when the context has ended, or the leadership is lost; in both cases
// after the rounds have ended and, if it still led, the lease was given up.
func (w *world) lead(ctx context.Context, o options, adaptor *leaderelection.HealthzAdaptor, runner *controller.Runner) error {
	identity := o.identity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		identity = fmt.Sprintf("%s_%d_%d", host, os.Getpid(), time.Now().UnixNano())
	}
	elect, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var leads sync.Mutex // held while rounds are made
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: w.env.Namespace, Name: component}, Client: w.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: o.lease.duration, RenewDeadline: o.lease.renew, RetryPeriod: o.lease.retry,
		ReleaseOnCancel: true, Name: component, WatchDog: adaptor,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				leads.Lock()
				defer leads.Unlock()
				w.env.Logger.Info("leading", "identity", identity)
				both, cancel := context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(leading, cancel)()
				runner.Run(both)
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(leader string) {
				w.env.Logger.Info("leader", "identity", leader, "self", leader == identity)
			},
		},
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		leads.Lock() // the rounds have ended, if any had begun
		defer leads.Unlock()
		giveUp()
	})()
	elector.Run(elect)
	leads.Lock()
	defer leads.Unlock()
	if ctx.Err() == nil {
		return errors.New("leadership lost") // another copy leads now, or nobody can say
	}
	return nil
}
