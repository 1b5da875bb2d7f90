package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/examples/internal/command"
	"github.com/inferscale/inferscale/examples/internal/pods"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
	"github.com/inferscale/inferscale/scrape"
)

// name is that of the controller, in events, leases and logs.
const name = "llmautoscaler"

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 15 * time.Second
)

// manager assembles what runs in this process. What end ends is to be ended after it.
func (o *options) manager(ctx context.Context, config *rest.Config, logger *slog.Logger) (mgr manager.Manager, end func(), err error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), stored.AddToScheme(scheme)); err != nil {
		return nil, nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(stored.Shallow)
	hears := &hearing{now: time.Now}
	config.Wrap(hears.through)
	options := manager.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(logger.Handler()),
		Cache:          o.cache(hears),
		Client:         client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		LeaderElection: o.elect, LeaderElectionID: o.ElectionName, LeaderElectionNamespace: o.electionNS,
		LeaderElectionReleaseOnCancel: true, LeaseDuration: &o.Lease, RenewDeadline: &o.Renew, RetryPeriod: &o.Retry,
		HealthProbeBindAddress:  o.Health,
		PprofBindAddress:        o.pprof,
		GracefulShutdownTimeout: &o.Shutdown,
		Metrics:                 metricsserver.Options{BindAddress: o.Metrics},
	}
	if !o.MetricsOpen {
		options.Metrics.SecureServing = true
		options.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	served := healthz.Ping
	if o.webhook {
		server, err := o.webhookServer(ctx, config, scheme, logger)
		if err != nil {
			return nil, nil, err
		}
		options.WebhookServer = server
		served = server.StartedChecker()
	}
	if mgr, err = ctrl.NewManager(config, options); err != nil {
		return nil, nil, err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index); err != nil {
		return nil, nil, err
	}
	if o.webhook {
		if err := o.webhooks(mgr); err != nil {
			return nil, nil, err
		}
	}
	c, err := o.controllers(ctx, mgr, logger)
	if err != nil {
		return nil, nil, err
	}
	return mgr, c.Close, errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("webhook", served),
		mgr.AddReadyzCheck("rounds", ready(mgr.GetCache(), hears, c.Stalled)),
	)
}

// mostStates is of how many states the names are kept of an LLMAutoScaler: of one algorithm it has two at most.
const mostStates = 16

// trim keeps of an LLMAutoScaler what a round looks at: of its annotations the names of states, which are read from the API server.
// It is the cache's default: a kind that is named there has to be defined when the program starts.
func trim(o any) (any, error) {
	las, ok := o.(*stored.LLMAutoScaler)
	if !ok {
		return cache.TransformStripManagedFields()(o)
	}
	states := slices.DeleteFunc(slices.Sorted(maps.Keys(las.Annotations)), func(key string) bool { return !strings.HasPrefix(key, k8s.AnnotationPrefix+"/") })
	las.Annotations, las.Labels, las.OwnerReferences, las.Finalizers, las.ManagedFields = nil, nil, nil, nil, nil
	for _, key := range states[:min(len(states), mostStates)] {
		metav1.SetMetaDataAnnotation(&las.ObjectMeta, key, "")
	}
	return las, nil
}

// cache says what is kept in memory: LLMAutoScalers, and of pods what a round looks at.
func (o *options) cache(hears *hearing) cache.Options {
	trimmed := cache.ByObject{Transform: pods.Trim}
	if o.selector != "" {
		trimmed.Label, _ = labels.Parse(o.selector) // it was parsed before
	}
	c := cache.Options{
		DefaultTransform:         trim,
		DefaultWatchErrorHandler: hears.failed,
		ByObject:                 map[client.Object]cache.ByObject{&corev1.Pod{}: trimmed},
	}
	if names := o.watched(); len(names) > 0 {
		c.DefaultNamespaces = make(map[string]cache.Config, len(names))
		for _, n := range names {
			c.DefaultNamespaces[n] = cache.Config{}
		}
	}
	return c
}

// queue is that of the rounds: namespaces take turns, and none has more than its share of the workers.
func (o *options) queue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	fair := k8s.NewFairQueue(func(r ctrl.Request) string { return r.Namespace }, o.share).Workers(o.workers)
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{
		Name:          name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[ctrl.Request]{Name: name, Queue: fair}),
	})
}

// limiter says when a round that could not begin is tried again: the API server may be back at any moment, however long it
// was away.
func limiter() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)
}

// controllers adds the controller of LLMAutoScalers.
func (o *options) controllers(ctx context.Context, mgr manager.Manager, logger *slog.Logger) (*controller.Controller, error) {
	config, httpClient := mgr.GetConfig(), mgr.GetHTTPClient()
	scales, mapper, err := command.Scales(config, httpClient, mgr.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	// Asked for before the start, so that rounds wait until it has all pods.
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.Pod{}); err != nil {
		return nil, err
	}
	metrics, numbers := k8s.NewMetrics(), controller.NewNumbers()
	for _, c := range []prometheus.Collector{metrics, numbers} {
		if err := ctrlmetrics.Registry.Register(c); err != nil {
			return nil, err
		}
	}
	budget, err := scrape.NewBudget(o.ScrapeMemory << 20)
	if err != nil {
		return nil, err
	}
	c, err := controller.New(controller.Config{
		Client: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Scales: scales,
		Metadata: metadataClient, Mapper: mapper, Pods: pods.Lister(mgr.GetCache()),
		Recorder: mgr.GetEventRecorderFor(name), //nolint:staticcheck // those of events.k8s.io need other rights
		Metrics:  metrics, Numbers: numbers, Logger: logger,
		Credentials: o.credentials, Budget: budget, AllowLocal: o.AllowLocal, StatusRefresh: o.statusRefresh,
	})
	if err != nil {
		return nil, err
	}
	err = builder.ControllerManagedBy(mgr).
		Named(name).
		For(&stored.LLMAutoScaler{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(ctrlcontroller.Options{MaxConcurrentReconciles: o.workers, NewQueue: o.queue, RateLimiter: limiter()}).
		Complete(c)
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	return c, nil
}
