// Variantautoscaler scales models that are served by several workloads each: the same weights on cheaper and on dearer
// accelerators. What to scale and how is in one ConfigMap, which it follows.
//
//	variantautoscaler                                    in a cluster
//	variantautoscaler -once -explain -f variants.yaml    on a laptop: one round, shown as a table, nothing written
//
// The README beside this file says how to install it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"
	_ "time/tzdata" // timetables name time zones, and the image has none

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/examples/internal/command"
	"github.com/inferscale/inferscale/policy"
)

// Exit codes.
const (
	exitOK    = 0
	exitFail  = 1 // it could not start, lost the leadership, or a round of -once had errors
	exitUsage = 2 // the command line is wrong, or the file of -f
)

func main() {
	command.Log(slog.NewJSONHandler(os.Stderr, nil).WithAttrs([]slog.Attr{slog.String("from", "client-go")}))
	cli.Main(run)
}

// options is the command line.
type options struct {
	kubeconfig string
	namespace  string
	configMap  string
	state      string
	parts      int
	file       string
	dryRun     bool
	once       bool
	explain    bool
	timeout    time.Duration
	metrics    string
	probes     string
	elect      bool
	identity   string
	lease      leaseTimes
	allowLocal bool
	verbose    bool
}

// states returns the names of the ConfigMaps with the state.
func (o *options) states() []string {
	return k8s.ConfigMapStoreConfig{Name: o.state, Parts: o.parts}.Names()
}

// onceTimeout is how long a model may take with -once, if -timeout does not say.
const onceTimeout = 30 * time.Second

// leaseTimes are those of leader election.
type leaseTimes struct{ duration, renew, retry time.Duration }

const usage = `variantautoscaler scales the Deployments that serve a model in several variants, by llm-d's saturation analysis
or by a policy for their total.

    variantautoscaler                      in a cluster, with the roles of its manifests
    variantautoscaler -once -explain -f variants.yaml
                                           one round from your own machine, as a table; nothing is written

Exit codes: 0 fine, 1 it could not start, lost the leadership, or a round of -once had errors, 2 the command line is wrong,
or the file that -f names.

Flags:
`

// parse reads the command line.
func parse(args []string, stdout, stderr io.Writer) (options, error) {
	var o options
	flags := cli.Flags("variantautoscaler", usage)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; empty: $KUBECONFIG, or the cluster that this runs in")
	flags.StringVar(&o.namespace, "namespace", "", "namespace of the ConfigMaps and the lease; empty: that of this pod, or of the kubeconfig")
	flags.StringVar(&o.configMap, "config-map", "variantautoscaler", "name of the ConfigMap with the configuration, under the key variants.yaml")
	flags.StringVar(&o.state, "state-config-map", "variantautoscaler-state", "name of the ConfigMap with the state; created if it does not exist")
	flags.IntVar(&o.parts, "state-config-maps", 1, "number of ConfigMaps with the state: that of -state-config-map, and those with -1, -2 and so on added to its name; one has room for some 70 models with a forecast; with fewer than before, models begin anew")
	flags.StringVar(&o.file, "f", "", "with -once: read the configuration from this file, - for the standard input, instead of the ConfigMap")
	flags.BoolVar(&o.dryRun, "dry-run", false, "write no replicas for any model, whatever the configuration says")
	flags.BoolVar(&o.once, "once", false, "do one round, print it as a table and exit, without writing anything")
	flags.BoolVar(&o.explain, "explain", false, "with -once: print the chain of reasons behind every count")
	flags.DurationVar(&o.timeout, "timeout", onceTimeout, "with -once: time limit for one model")
	flags.StringVar(&o.metrics, "metrics-address", ":8080", "address of /metrics; 0 for none")
	flags.StringVar(&o.probes, "probe-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flags.BoolVar(&o.elect, "leader-elect", true, "elect a leader, so that only one of several replicas works")
	flags.StringVar(&o.identity, "identity", "", "name of this replica in the leader election; empty: the host name")
	flags.DurationVar(&o.lease.duration, "lease-duration", 15*time.Second, "how long other replicas wait before they take over the lease")
	flags.DurationVar(&o.lease.renew, "renew-deadline", 10*time.Second, "how long the leader tries to renew the lease before it steps down")
	flags.DurationVar(&o.lease.retry, "retry-period", 2*time.Second, "time between two attempts to renew or take the lease")
	flags.BoolVar(&o.allowLocal, "allow-local", false, "scrape pods at loopback addresses too, for test clusters")
	flags.BoolVar(&o.verbose, "v", false, "log every decision, including holds")
	if err := cli.Parse(flags, args, stdout, stderr); err != nil {
		return options{}, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.file != "" && !o.once:
		err = errors.New("-f needs -once: in a cluster the configuration is a ConfigMap")
	case o.explain && !o.once:
		err = errors.New("-explain needs -once; -v logs every decision")
	case o.timeout != onceTimeout && !o.once:
		err = errors.New("-timeout needs -once")
	case o.timeout <= 0:
		err = fmt.Errorf("-timeout %s: must be above 0", o.timeout)
	case !command.IsAddress(o.metrics):
		err = fmt.Errorf("-metrics-address %q: %s", o.metrics, command.AddressRule)
	case !command.IsAddress(o.probes):
		err = fmt.Errorf("-probe-address %q: %s", o.probes, command.AddressRule)
	case o.namespace != "" && !command.IsLabel(o.namespace):
		err = fmt.Errorf("-namespace %q: %s", o.namespace, command.LabelRule)
	case !command.IsName(o.configMap):
		err = fmt.Errorf("-config-map %q: %s", o.configMap, command.NameRule)
	case !command.IsName(o.state):
		err = fmt.Errorf("-state-config-map %q: %s", o.state, command.NameRule)
	case o.parts < 1 || o.parts > 100:
		err = fmt.Errorf("-state-config-maps %d: must be within 1 and 100", o.parts)
	case !command.IsName(o.states()[o.parts-1]):
		err = fmt.Errorf("-state-config-map %q, with -state-config-maps %d: the last of them must have at most 253 characters", o.state, o.parts)
	case slices.Contains(o.states()[1:], o.configMap):
		err = fmt.Errorf("-config-map %q: must be none of those with the state, as -state-config-maps %d has it", o.configMap, o.parts)
	case o.lease.retry <= 0 || o.lease.renew <= o.lease.retry*6/5 || o.lease.duration <= o.lease.renew:
		err = fmt.Errorf("-lease-duration %s must be above -renew-deadline %s, and that above 1.2 times -retry-period %s", o.lease.duration, o.lease.renew, o.lease.retry)
	case o.lease.duration.Truncate(time.Second) < o.lease.renew:
		err = fmt.Errorf("-lease-duration %s: its whole seconds, which other replicas see, must be at least -renew-deadline %s", o.lease.duration, o.lease.renew)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%v\n", err)
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
	switch {
	case o.verbose:
		level = slog.LevelDebug
	case o.once:
		level = slog.LevelError // the table says it all
	}
	var models []policy.Model
	if o.file != "" {
		if models, err = fromFile(o.file); err != nil {
			fmt.Fprintf(cli.Plain(stderr), "%v\n", err)
			return exitUsage
		}
	}
	logger := slog.New(command.Calm(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level})))
	w, err := connect(o, logger)
	switch {
	case err != nil:
	case o.once:
		err = w.once(ctx, o, models, cli.Plain(stdout))
	default:
		err = w.serve(ctx, o)
	}
	if err != nil && o.once {
		fmt.Fprintf(cli.Plain(stderr), "%v\n", err)
		return exitFail
	}
	if err != nil {
		logger.Error("stopped", "error", err.Error())
		return exitFail
	}
	return exitOK
}

// connect finds the cluster and the namespace.
func connect(o options, logger *slog.Logger) (*world, error) {
	config, err := command.Config("variantautoscaler", o.kubeconfig, 300, 600) // as by default in llmautoscaler
	namespace := o.namespace
	if err == nil && namespace == "" {
		namespace, err = command.Namespace(o.kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	return newWorld(config, namespace, o, logger)
}
