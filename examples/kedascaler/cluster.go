package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/inferscale/inferscale/adapters/certs"
	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/adapters/keda/defaulting"
	"github.com/inferscale/inferscale/examples/internal/command"
	"github.com/inferscale/inferscale/examples/internal/pods"
	"github.com/inferscale/inferscale/examples/internal/webhooks"
	"github.com/inferscale/inferscale/scrape"
)

// webhookPath is where the API server sends ScaledObjects to.
const webhookPath = "/default-scaledobject"

// A process is what runs in a cluster.
type process struct {
	*options

	logger   *slog.Logger
	manager  manager.Manager
	kube     kubernetes.Interface
	dynamic  dynamic.Interface
	reader   *certs.Reader // nil in plaintext
	keeper   *certs.Keeper // nil if somebody else sees to the certificates
	stores   stores
	objects  objects
	triggers *keda.Triggers
	watches  sync.WaitGroup // of the Secret
	busy     sync.Mutex     // held while duties of the leader are done: who comes back must not do them twice at once
}

// cluster serves the targets of a cluster until ctx ends.
func (o *options) cluster(ctx context.Context, logger *slog.Logger) error {
	logger.Info("starting", "version", command.Version())
	config, err := command.Config("kedascaler", o.Kubeconfig, o.QPS, o.Burst)
	if err != nil {
		return err
	}
	p := &process{options: o, logger: logger}
	if p.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if p.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer p.watches.Wait()
	defer end()
	if err := p.credentials(ctx); err != nil {
		return command.Starting(ctx, err)
	}
	if err := p.assemble(ctx, config); err != nil {
		return command.Starting(ctx, err)
	}
	return p.manager.Start(ctx)
}

// assemble puts together what runs.
func (p *process) assemble(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	options := manager.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(p.logger.Handler()),
		Cache: cache.Options{
			DefaultTransform: trim,
			ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: pods.Trim}},
		},
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
		HealthProbeBindAddress:  p.Health,
		GracefulShutdownTimeout: &p.Shutdown,
		Metrics:                 metricsserver.Options{BindAddress: p.Metrics},
	}
	if !p.MetricsOpen {
		options.Metrics.SecureServing = true
		options.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	var err error
	if p.manager, err = ctrl.NewManager(config, options); err != nil {
		return err
	}
	engine, err := p.engine(ctx)
	if err != nil {
		return err
	}
	if err := p.serving(engine); err != nil {
		return err
	}
	if p.webhook {
		if err := p.defaults(); err != nil {
			return err
		}
	}
	if err := p.newKeeper(); err != nil {
		return err
	}
	return errors.Join(
		p.manager.Add(everywhere(p.stand)),
		p.manager.AddHealthzCheck("ping", healthz.Ping),
		p.manager.AddReadyzCheck("ready", p.ready),
	)
}

// engine makes what decides.
func (p *process) engine(ctx context.Context) (*keda.Engine, error) {
	scales, _, err := command.Scales(p.manager.GetConfig(), p.manager.GetHTTPClient(), p.manager.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	// Asked for before the start, so that rounds wait until all are there.
	for object, removed := range map[client.Object]func(any){&corev1.Pod{}: nil, scaledObject(): p.objects.removed} {
		informer, err := p.manager.GetCache().GetInformer(ctx, object)
		if err == nil && removed != nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: removed})
		}
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
	}
	metrics := keda.NewMetrics()
	if err := ctrlmetrics.Registry.Register(metrics); err != nil {
		return nil, err
	}
	budget, err := scrape.NewBudget(p.ScrapeMemory << 20)
	if err != nil {
		return nil, err
	}
	p.triggers, err = keda.NewTriggers(keda.TriggersConfig{
		ScalerName: p.scaler, Scales: scales, Observe: p.observe, Budget: budget, CrossNamespace: p.crossNamespace, Logger: p.logger,
		Objects: func(ref keda.Ref) (keda.Object, error) { return p.object(ctx, ref) },
		Store:   p.store,
	})
	if err != nil {
		return nil, err
	}
	return keda.NewEngine(context.WithoutCancel(ctx), keda.EngineConfig{Build: p.triggers.Build, Idle: p.idle, MaxTriggers: p.maxTriggers, Metrics: metrics, Logger: p.logger})
}

// observe makes what asks the pods of one trigger.
func (p *process) observe(plan *build.Plan) (keda.Observer, error) {
	c := plan.Scrape
	c.AllowLocal, c.TLS.CAFile = p.AllowLocal, p.scrapeCA
	if c.TLS.InsecureSkipVerify {
		c.TLS.CAFile = ""
	}
	scraper, err := scrape.New(c)
	if err != nil {
		return nil, err
	}
	found, err := k8s.NewPods(pods.Lister(p.manager.GetCache()), plan.Grouping)
	if err != nil {
		return nil, err
	}
	return k8s.NewPodObserver(found, scraper, plan.Port)
}

// scaledObject returns an empty ScaledObject.
func scaledObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("keda.sh/v1alpha1")
	u.SetKind("ScaledObject")
	return u
}

// trim keeps of a ScaledObject what is read of it: of what is cached it alone has no type.
func trim(o any) (any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return keda.TrimObject(u), nil
	}
	return cache.TransformStripManagedFields()(o)
}

// object returns what a ScaledObject says, from the informer's cache.
func (p *process) object(ctx context.Context, ref keda.Ref) (keda.Object, error) {
	u := scaledObject()
	if err := p.manager.GetCache().Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, u, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			p.objects.drop(ref)
			return keda.Object{}, fmt.Errorf("ScaledObject %s: not found", ref)
		}
		return keda.Object{}, err
	}
	return p.objects.read(ref, u)
}

// serving adds the gRPC server.
func (p *process) serving(engine *keda.Engine) error {
	var config *tls.Config
	if p.reader != nil {
		config = p.reader.TLS()
	}
	server, healthy, err := keda.NewGRPC(keda.GRPCConfig{Engine: engine, TLS: config, Registerer: ctrlmetrics.Registry, Logger: p.logger})
	if err != nil {
		return err
	}
	return p.manager.Add(everywhere(func(ctx context.Context) error {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
		if err != nil {
			return err
		}
		p.logger.Info("serving", "address", listener.Addr().String(), "tls", !p.plaintext)
		return serve(ctx, p.Shutdown, server, healthy, listener, engine)
	}))
}

// defaults adds the webhook.
func (p *process) defaults() error {
	c := defaulting.Default()
	c.ScalerName, c.Plaintext, c.Known, c.Check = p.scaler, p.plaintext, keda.Known, p.triggers.Check
	c.Address = fmt.Sprintf("%s.%s.svc.%s%s", p.service, p.namespace, p.domain, port(p.address))
	c.Auth.Name = p.creds
	defaulter, err := defaulting.New(c)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(webhookPath, defaulter)
	server := defaulting.NewServer(mux, p.webhookTLS())
	return p.manager.Add(everywhere(func(ctx context.Context) error {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(p.WebhookHost, strconv.Itoa(p.WebhookPort)))
		if err != nil {
			return err
		}
		return webhooks.Serve(ctx, listener, server, p.Shutdown)
	}))
}
