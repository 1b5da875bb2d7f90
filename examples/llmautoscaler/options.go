package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/inferscale/inferscale/examples/internal/command"
)

// options are what the command line says.
type options struct {
	kubeconfig string
	namespaces string
	selector   string

	workers       int
	share         int
	scrapeMemory  int64
	qps           float64
	burst         int
	statusRefresh time.Duration
	shutdown      time.Duration

	elect        bool
	electionNS   string
	electionName string
	lease        time.Duration
	renew        time.Duration
	retry        time.Duration

	health      string
	metrics     string
	metricsOpen bool
	pprof       string

	webhook        bool
	webhookHost    string
	webhookPort    int
	webhookCerts   string
	webhookService string
	webhookSecret  string
	webhookConfig  string

	credentials string
	allowLocal  bool

	level   string
	version bool
}

const usage = `llmautoscaler carries out LLMAutoScaler objects: it reads the metrics of inference pods, decides, and scales
Deployments and whatever else has the scale subresource.

    llmautoscaler                          in a cluster, with the roles of its manifests
    llmautoscaler -kubeconfig FILE -leader-elect=false -metrics-insecure
                                           from a machine of your own, to try it

Exit codes: 0 asked to end, 1 failed, 2 the command line is wrong.

Flags:
`

// parse reads the command line. What is wrong with it was said on w.
func parse(args []string, w io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("llmautoscaler", flag.ContinueOnError)
	f.SetOutput(w)
	f.Usage = func() {
		fmt.Fprint(w, usage)
		f.PrintDefaults()
	}
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server; empty means as a pod, or $KUBECONFIG")
	f.StringVar(&o.namespaces, "namespaces", "", "comma-separated `namespaces` to work in; empty means all")
	f.StringVar(&o.selector, "pod-selector", "", "label `selector` of the pods to keep in memory; empty means all. Pods that it leaves out are as if they were not there")
	f.IntVar(&o.workers, "workers", 64, "rounds at a `time`. A round takes as long as the slowest pod answers, at most 3 s")
	f.IntVar(&o.share, "workers-per-namespace", 16, "rounds at a `time` of one namespace, so that one with slow pods keeps no other from its rounds; 0 for no limit. Namespaces take turns in any case")
	f.Int64Var(&o.scrapeMemory, "scrape-memory", 96, "`MiB` of memory for the pages of pods and what is remembered of them, of all namespaces together, which share it; at least 32")
	f.Float64Var(&o.qps, "kube-api-qps", 300, "requests to the API server a second, on average; an object takes 2 to 4 a round")
	f.IntVar(&o.burst, "kube-api-burst", 600, "requests to the API server at once")
	f.DurationVar(&o.statusRefresh, "status-refresh", 5*time.Minute, "how old a status may be of which only numbers have changed")
	f.DurationVar(&o.shutdown, "shutdown-timeout", 20*time.Second, "how long to wait for rounds that are under way at the end")

	f.BoolVar(&o.elect, "leader-elect", true, "let one of several replicas work; without it there must be only one")
	f.StringVar(&o.electionNS, "leader-elect-namespace", "", "`namespace` of the lease; empty means that of the pod")
	f.StringVar(&o.electionName, "leader-elect-name", "llmautoscaler", "`name` of the lease")
	f.DurationVar(&o.lease, "leader-elect-lease", 15*time.Second, "how long others wait before they take the lease over")
	f.DurationVar(&o.renew, "leader-elect-renew", 10*time.Second, "how long the leader tries to renew the lease before it ends")
	f.DurationVar(&o.retry, "leader-elect-retry", 2*time.Second, "time between two tries")

	f.StringVar(&o.health, "health-address", ":8081", "`address` of /healthz and /readyz; 0 for none")
	f.StringVar(&o.metrics, "metrics-address", ":8443", "`address` of /metrics, over https to who may get /metrics; 0 for none")
	f.BoolVar(&o.metricsOpen, "metrics-insecure", false, "serve /metrics over http to everybody")
	f.StringVar(&o.pprof, "pprof-address", "0", "`address` of /debug/pprof, over http to everybody who reaches it; 0 for none")

	f.BoolVar(&o.webhook, "webhook", false, "serve the validating webhook")
	f.StringVar(&o.webhookHost, "webhook-host", "", "`address` of the webhook; empty means all")
	f.IntVar(&o.webhookPort, "webhook-port", 9443, "`port` of the webhook")
	f.StringVar(&o.webhookCerts, "webhook-cert-dir", "", "`directory` with tls.crt and tls.key; empty means to make them, keep them in the Secret below and put the authority into the configuration below")
	f.StringVar(&o.webhookService, "webhook-service", "llmautoscaler-webhook", "`name` of the webhook's Service")
	f.StringVar(&o.webhookSecret, "webhook-secret", "llmautoscaler-webhook", "`name` of the Secret that keeps the certificate")
	f.StringVar(&o.webhookConfig, "webhook-configuration", "llmautoscaler", "`name` of the ValidatingWebhookConfiguration")

	f.StringVar(&o.credentials, "credentials-dir", "", "`directory`, best in memory, for what is read of Secrets that LLMAutoScalers refer to; empty means a temporary one")
	f.BoolVar(&o.allowLocal, "allow-local-targets", false, "ask pods at loopback and link-local addresses too, as tests need it")

	f.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&o.version, "version", false, "print the version and end")
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	err := o.check(f.Args())
	if err != nil {
		fmt.Fprintf(w, "%v\nllmautoscaler -help lists the flags\n", err)
	}
	return o, err
}

func (o *options) check(rest []string) error {
	var errs []error
	must := func(ok bool, flag string, value any, rule string) {
		if !ok {
			errs = append(errs, fmt.Errorf("-%s: %v: %s", flag, value, rule))
		}
	}
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("%q: is not a flag", rest[0]))
	}
	_, err := labels.Parse(o.selector)
	must(err == nil, "pod-selector", o.selector, fmt.Sprint(err))
	must(o.workers >= 1, "workers", o.workers, "must be at least 1")
	must(o.share >= 0, "workers-per-namespace", o.share, "must not be negative")
	must(o.scrapeMemory >= 32 && o.scrapeMemory < 1<<20, "scrape-memory", o.scrapeMemory, "must be at least 32 and less than 1048576")
	must(o.qps > 0, "kube-api-qps", o.qps, "must be above 0")
	must(o.burst >= 1, "kube-api-burst", o.burst, "must be at least 1")
	must(o.statusRefresh >= time.Second, "status-refresh", o.statusRefresh, "must be at least 1s")
	must(o.shutdown >= 0, "shutdown-timeout", o.shutdown, "must not be negative")
	must(o.lease > o.renew && o.renew > o.retry && o.retry > 0, "leader-elect-lease", o.lease, "lease must be above renew, renew above retry, and retry above 0")
	must(o.webhookPort >= 1 && o.webhookPort <= 65535, "webhook-port", o.webhookPort, "must be between 1 and 65535")
	_, err = o.slogLevel()
	must(err == nil, "log-level", o.level, "must be debug, info, warn or error")
	return errors.Join(errs...)
}

func (o *options) slogLevel() (slog.Level, error) {
	var level slog.Level
	err := level.UnmarshalText([]byte(o.level))
	return level, err
}

// watched returns the namespaces to work in, or nil for all.
func (o *options) watched() []string { return command.List(o.namespaces) }
