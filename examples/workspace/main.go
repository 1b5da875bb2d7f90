// Workspace is a controller with admission webhooks for Workspaces: models that are served on GPU nodes and scale
// through the /scale subresource.
//
//	workspace -webhook-cert-dir /certs
//
// The README beside this file says how to install it.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/examples/internal/command"
	"github.com/inferscale/inferscale/examples/internal/webhooks"
	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/controller"
	"github.com/inferscale/inferscale/examples/workspace/estimate"
	"github.com/inferscale/inferscale/examples/workspace/webhook"
)

// Exit codes.
const (
	exitOK    = 0
	exitFail  = 1 // it could not start, or lost the leadership
	exitUsage = 2 // the command line is wrong
)

func main() { cli.Main(run) }

// options is the command line.
type options struct {
	kubeconfig     string
	metrics        string
	metricsCertDir string
	probes         string
	webhookHost    string
	webhookPort    int
	certDir        string
	elect          bool
	electNamespace string
	instances      string
	presetImage    string
	verbose        bool
	grace          time.Duration
}

const usage = `workspace is a controller with admission webhooks for Workspaces: models that are served on GPU nodes and scale
through the /scale subresource.

    workspace                              in a cluster, with the roles of its manifests
    workspace -leader-elect=false -webhook-cert-dir DIR
                                           from your own machine, to try it

Exit codes: 0 asked to end, 1 failed, 2 the command line is wrong.

Flags:
`

func parse(args []string, stdout, stderr io.Writer) (options, error) {
	var o options
	flags := cli.Flags("workspace", usage)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; empty: $KUBECONFIG, or the cluster that this runs in")
	flags.StringVar(&o.metrics, "metrics-address", ":8443", "address of /metrics, over https for clients that RBAC allows to get /metrics; 0 for none")
	flags.StringVar(&o.metricsCertDir, "metrics-cert-dir", "", "directory with tls.crt and tls.key for /metrics; empty: self-signed")
	flags.StringVar(&o.probes, "probe-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flags.StringVar(&o.webhookHost, "webhook-host", "", "address to serve the webhooks on; empty: all")
	flags.IntVar(&o.webhookPort, "webhook-port", 9443, "port to serve the webhooks on")
	flags.StringVar(&o.certDir, "webhook-cert-dir", "/certs", "directory with tls.crt and tls.key of the webhooks; reloaded when they change")
	flags.BoolVar(&o.elect, "leader-elect", true, "elect a leader, so that only one of several replicas works; all of them serve webhooks")
	flags.StringVar(&o.electNamespace, "leader-elect-namespace", "", "namespace of the lease; empty: that of this pod")
	flags.StringVar(&o.instances, "instance-types", "", "YAML file with instance types that replace the built-in ones: NAME: {gpus: 8, gpuMemoryGiB: 80}")
	flags.StringVar(&o.presetImage, "preset-image", "vllm/vllm-openai:v0.10.2", "container image that serves presets")
	flags.BoolVar(&o.verbose, "v", false, "log more")
	flags.DurationVar(&o.grace, "grace", 20*time.Second, "how long to wait for running work at shutdown")
	if err := cli.Parse(flags, args, stdout, stderr); err != nil {
		return options{}, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.webhookPort < 1 || o.webhookPort > 65535:
		err = fmt.Errorf("-webhook-port %d: must be within 1 and 65535", o.webhookPort)
	case !command.IsAddress(o.metrics):
		err = fmt.Errorf("-metrics-address %q: %s", o.metrics, command.AddressRule)
	case !command.IsAddress(o.probes):
		err = fmt.Errorf("-probe-address %q: %s", o.probes, command.AddressRule)
	case o.electNamespace != "" && !command.IsLabel(o.electNamespace):
		err = fmt.Errorf("-leader-elect-namespace %q: %s", o.electNamespace, command.LabelRule)
	case o.grace < 0:
		err = fmt.Errorf("-grace %s: must not be negative", o.grace)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s\n", err)
	}
	return o, err
}

// run is main with its surroundings as arguments. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout, stderr)
	if err != nil {
		return cli.Code(err)
	}
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	handler := command.Calm(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	command.Log(handler)
	// A guard against mistakes of this program; the API server has its own.
	config, err := command.Config("workspace", o.kubeconfig, 100, 200)
	if err == nil {
		err = serve(ctx, config, o)
	}
	if err != nil {
		slog.New(handler).Error("stopped", "error", err.Error())
		return exitFail
	}
	return exitOK
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// serve runs controller and webhooks until the context ends.
func serve(ctx context.Context, config *rest.Config, o options) error {
	estimator := estimate.NewMemory()
	if o.instances != "" {
		text, err := cli.ReadFile(o.instances, cli.Document)
		if err != nil {
			return fmt.Errorf("-instance-types: %w", err)
		}
		estimator.Instances, err = estimate.ReadInstances(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("-instance-types: %s: %w", o.instances, err)
		}
	}
	managerOptions, err := o.manager()
	if err != nil {
		return err
	}
	m, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return command.Starting(ctx, err)
	}
	reconciler := &controller.Reconciler{
		Client:   m.GetClient(),
		Servers:  controller.Servers{Instances: estimator.Instances, Presets: estimator.Presets, PresetImage: o.presetImage},
		Recorder: m.GetEventRecorderFor("workspace-controller"), //nolint:staticcheck // those of events.k8s.io need other rights
	}
	if err := reconciler.SetupWithManager(m); err != nil {
		return command.Starting(ctx, err)
	}
	webhook.Register(m, estimator)
	if err := errors.Join(
		m.AddHealthzCheck("ping", healthz.Ping),
		m.AddReadyzCheck("webhooks", m.GetWebhookServer().StartedChecker()),
	); err != nil {
		return err
	}
	return m.Start(ctx)
}

func (o options) manager() (ctrl.Options, error) {
	scheme, err := newScheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	ours, err := labels.NewRequirement(v1alpha1.NameLabel, selection.Exists, nil)
	if err != nil {
		return ctrl.Options{}, err
	}
	return ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{DefaultTransform: trim, ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Label: labels.NewSelector().Add(*ours)}, // not those of the whole cluster
		}},
		Metrics: metricsserver.Options{
			BindAddress: o.metrics, SecureServing: true, CertDir: o.metricsCertDir,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		HealthProbeBindAddress: o.probes,
		WebhookServer: webhooks.NewServer(webhooks.Config{
			Host: o.webhookHost, Port: o.webhookPort, CertDir: o.certDir, Grace: o.grace,
		}),
		LeaderElection:                o.elect,
		LeaderElectionID:              "workspace.inferscale.io",
		LeaderElectionNamespace:       o.electNamespace,
		LeaderElectionReleaseOnCancel: true, // main ends right after Start returns
		GracefulShutdownTimeout:       &o.grace,
	}, nil
}
