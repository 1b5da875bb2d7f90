package main

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/examples/internal/command"
	"github.com/inferscale/inferscale/scaling"
)

// options are what the command line says.
type options struct {
	command.Flags

	namespaces string
	selector   string

	workers       int
	share         int
	statusRefresh time.Duration

	elect      bool
	electionNS string
	pprof      string

	webhook        bool
	webhookCerts   string
	webhookService string
	webhookSecret  string
	webhookConfig  string

	credentials string
}

const usage = `llmautoscaler carries out LLMAutoScaler objects: it reads the metrics of inference pods, decides, and scales
Deployments and whatever else has the scale subresource.

    llmautoscaler                          in a cluster, with the roles of its manifests
    llmautoscaler -kubeconfig FILE -leader-elect=false -metrics-insecure
                                           from a machine of your own, to try it

Exit codes: 0 asked to end, 1 failed, 2 the command line is wrong.

Flags:
`

// mostWorkers is how many goroutines there may be for rounds.
const mostWorkers = 10_000

// parse reads the command line. What is wrong with it was said on stderr, help that was asked for on stdout.
func parse(args []string, stdout, stderr io.Writer) (options, error) {
	var o options
	f := cli.Flags("llmautoscaler", usage)
	o.Define(f, command.Words{Name: name, Requests: "an object takes 2 to 4 per round", Work: "rounds", Loses: "exits"})
	f.StringVar(&o.namespaces, "namespaces", "", "comma-separated `namespaces` to work in; empty means all")
	f.StringVar(&o.selector, "pod-selector", "", "label `selector` of the pods to cache; empty means all. Other pods are ignored")
	f.IntVar(&o.workers, "workers", 64, "concurrent `rounds`. A round takes as long as its slowest pod, at most 3 s")
	f.IntVar(&o.share, "workers-per-namespace", 16, "concurrent `rounds` of one namespace, so that a namespace with slow pods does not delay others; 0 for no limit. Namespaces take turns in any case")
	f.DurationVar(&o.statusRefresh, "status-refresh", 5*time.Minute, "maximum age of a status of which only numbers have changed")

	f.BoolVar(&o.elect, "leader-elect", true, "elect a leader among the replicas; without it there must be only one replica")
	f.StringVar(&o.electionNS, "leader-elect-namespace", "", "`namespace` of the lease; empty means that of the pod")
	f.StringVar(&o.pprof, "pprof-address", "0", "`address` of /debug/pprof, over http without authorization; 0 for none")

	f.BoolVar(&o.webhook, "webhook", false, "serve the validating webhook")
	f.StringVar(&o.webhookCerts, "webhook-cert-dir", "", "`directory` with tls.crt and tls.key; empty means that the controller makes them, stores them in -webhook-secret and writes the CA into -webhook-configuration")
	f.StringVar(&o.webhookService, "webhook-service", "llmautoscaler-webhook", "`name` of the webhook's Service")
	f.StringVar(&o.webhookSecret, "webhook-secret", "llmautoscaler-webhook", "`name` of the Secret that keeps the certificate")
	f.StringVar(&o.webhookConfig, "webhook-configuration", "llmautoscaler", "`name` of the ValidatingWebhookConfiguration")

	f.StringVar(&o.credentials, "credentials-dir", "", "`directory` of this process alone, preferably in memory, for tokens and CAs from Secrets that LLMAutoScalers refer to; empty means a temporary one")
	if err := cli.Parse(f, args, stdout, stderr); err != nil {
		return options{}, err
	}
	err := o.check(f.Args())
	if err != nil {
		fmt.Fprintf(stderr, "%v\nllmautoscaler -help lists the flags\n", err)
	}
	return o, err
}

func (o *options) check(rest []string) error {
	var errs scaling.FieldErrors
	must := func(ok bool, flag string, value any, rule string) { errs.Check(ok, "-"+flag, value, rule) }
	if len(rest) > 0 {
		errs.Add(fmt.Errorf("%q: is not a flag", rest[0]))
	}
	_, err := labels.Parse(o.selector)
	must(err == nil, "pod-selector", o.selector, fmt.Sprint(err))
	for _, namespace := range o.watched() {
		must(command.IsLabel(namespace), "namespaces", namespace, command.LabelRule)
	}
	must(o.workers >= 1 && o.workers <= mostWorkers, "workers", o.workers, "must be between 1 and 10000")
	must(o.share >= 0, "workers-per-namespace", o.share, "must not be negative")
	must(o.statusRefresh >= time.Second, "status-refresh", o.statusRefresh, "must be at least 1s")
	must(o.electionNS == "" || command.IsLabel(o.electionNS), "leader-elect-namespace", o.electionNS, command.LabelRule)
	must(command.IsLabel(o.webhookService), "webhook-service", o.webhookService, command.LabelRule)
	must(command.IsName(o.webhookSecret), "webhook-secret", o.webhookSecret, command.NameRule)
	must(command.IsName(o.webhookConfig), "webhook-configuration", o.webhookConfig, command.NameRule)
	must(command.IsAddress(o.pprof), "pprof-address", o.pprof, command.AddressRule)
	o.Check(must)
	return errs.Err()
}

// watched returns the namespaces to work in, or nil for all.
func (o *options) watched() []string { return command.List(o.namespaces) }
