package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/examples/internal/command"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/scaling"
)

// options are what the command line says.
type options struct {
	command.Flags

	// on a laptop
	static string
	fake   int
	count  int
	query  string
	object string
	watch  time.Duration
	keys   map[string]string // what follows the flags of -query

	// everywhere
	address string
	certDir string

	// in a cluster
	namespace      string
	scaler         string
	crossNamespace bool
	scrapeCA       string

	service       string
	domain        string
	names         string
	secret        string
	caSecret      string
	secretsIn     string
	creds         string
	unmanaged     bool
	plaintext     bool
	overlap       time.Duration
	leafLife      time.Duration
	dropAfter     time.Duration
	idle          time.Duration
	maxTriggers   int
	elect         bool
	webhook       bool
	webhookConfig string
}

const usage = `kedascaler is an external scaler for KEDA: it reads the metrics of inference pods and tells KEDA what they say
(mode metric), or how many replicas a policy wants (mode replicas).

    kedascaler                        in a cluster, with the roles of its manifests
    kedascaler -static URL,URL        on a laptop: over plaintext on 127.0.0.1, with the pages of static targets
    kedascaler -fake 3                likewise, with three pages that it makes up itself
    kedascaler -query ADDRESS threshold=10 ...
                                      asks a scaler as KEDA does, with the metadata that follow

Exit codes: 0 asked to end, 1 failed, 2 the command line is wrong.

Flags:
`

// someObject is the ScaledObject of -query that says none.
const someObject = "default/chat"

// parse reads the command line. What is wrong with it was said on stderr, help that was asked for on stdout.
func parse(args []string, stdout, stderr io.Writer) (options, error) {
	var o options
	f := cli.Flags("kedascaler", usage)
	o.Define(f, command.Words{
		Name: "kedascaler", Requests: "a trigger takes 1 per round in mode metric and 3 in mode replicas", Work: "calls", Loses: "steps down",
	})
	f.StringVar(&o.static, "static", "", "comma-separated `URLs` of pages that stand for the pods of every target; no cluster is needed")
	f.IntVar(&o.fake, "fake", 0, "`number` of synthetic pages instead: a queue that grows and shrinks within two minutes")
	f.IntVar(&o.count, "replicas", 0, "with -static or -fake, the `replicas` of the target; 0 means as many as pages")
	f.StringVar(&o.query, "query", "", "`address` of a scaler to ask; key=value after the flags are the trigger's metadata")
	f.StringVar(&o.object, "scaled-object", someObject, "with -query, `namespace/name` of the ScaledObject")
	f.DurationVar(&o.watch, "watch", 0, "with -query, ask again every second for so `long`, and print what changes")

	f.StringVar(&o.address, "address", "", "`address` to serve gRPC at; empty means :10450 in a cluster and 127.0.0.1:10450 on a laptop")
	f.StringVar(&o.certDir, "cert-dir", "", "`directory` of certificates for mTLS, created if it does not exist. With -query, KEDA's pair is read from it; in a cluster it replaces the Secret")

	f.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "`namespace` of this scaler, for its state and its lease; $POD_NAMESPACE by default")
	f.StringVar(&o.scaler, "scaler-name", keda.DefaultScalerName, "scalerName that the triggers of this scaler have")
	f.BoolVar(&o.crossNamespace, "cross-namespace", false, "let triggers name a workspaceNamespace other than the ScaledObject's; whoever may write a ScaledObject can then learn the load of pods in any namespace")
	f.StringVar(&o.scrapeCA, "scrape-ca", "", "`file` with the authorities to trust where pods are asked over https; empty means those of the image")
	f.DurationVar(&o.idle, "idle", keda.DefaultIdle, "time after which a trigger that KEDA no longer asks for is dropped")
	f.IntVar(&o.maxTriggers, "max-triggers", 3000, "maximum number of triggers, shared by the namespaces of their ScaledObjects; each needs 100 KB of memory")

	f.StringVar(&o.service, "service", keda.DefaultScalerName, "`name` of the Service, for the certificates")
	f.StringVar(&o.domain, "cluster-domain", "cluster.local", "`domain` of the cluster, for the certificates")
	f.StringVar(&o.names, "server-names", "", "comma-separated further `names` and addresses of the server's certificate")
	f.StringVar(&o.secret, "certs-secret", "keda-kaito-scaler-certs", "`name` of the Secret with the certificates of server and KEDA")
	f.StringVar(&o.caSecret, "ca-secret", "keda-kaito-scaler-ca", "`name` of the Secret with the key of the CA")
	f.StringVar(&o.secretsIn, "certs-namespace", "", "`namespace` of -certs-secret: KEDA's own, where ClusterTriggerAuthentications read; empty means -namespace")
	f.StringVar(&o.creds, "authentication", "keda-kaito-creds", "`name` of the ClusterTriggerAuthentication to keep in place")
	f.BoolVar(&o.unmanaged, "unmanaged-certs", false, "only read the certificates: tls.crt, tls.key and ca.crt of the Secret are what cert-manager writes for the server")
	f.BoolVar(&o.plaintext, "plaintext", false, "serve without TLS, on a loopback address only")
	f.DurationVar(&o.overlap, "ca-overlap", 0, "how long a new CA is trusted beside the old one before it signs; 0 means 24h")
	f.DurationVar(&o.leafLife, "certificate-life", 0, "how long certificates live; 0 means 90 days")
	f.DurationVar(&o.dropAfter, "ca-drop-after", 0, "how long after that the old CA is dropped; 0 means when all certificates it signed have expired")

	f.BoolVar(&o.elect, "leader-elect", true, "elect a leader among the replicas, which writes the certificates; all of them serve")

	f.BoolVar(&o.webhook, "webhook", false, "serve the webhook that fills in what ScaledObjects leave out")
	f.StringVar(&o.webhookConfig, "webhook-configuration", "kedascaler", "`name` of the MutatingWebhookConfiguration, into which the CA is put")
	if err := cli.Parse(f, args, stdout, stderr); err != nil {
		return options{}, err
	}
	err := o.check(f.Args())
	if err != nil {
		fmt.Fprintf(stderr, "%v\nkedascaler -help lists the flags\n", err)
	}
	return o, err
}

// laptop reports whether static targets stand for a cluster.
func (o *options) laptop() bool { return o.static != "" || o.fake > 0 }

func (o *options) check(rest []string) error {
	var errs scaling.FieldErrors
	must := func(ok bool, flag string, value any, rule string) { errs.Check(ok, "-"+flag, value, rule) }
	const alone = "must be alone of -static, -fake and -query"
	must(o.fake == 0 || o.static == "", "fake", o.fake, alone)
	must(o.query == "" || (o.static == "" && o.fake == 0), "query", o.query, alone)
	if o.query == "" && len(rest) > 0 {
		errs.Add(fmt.Errorf("%q: is not a flag", rest[0]))
	}
	if o.query != "" {
		errs.Add(o.metadata(rest))
		_, _, err := net.SplitHostPort(o.query)
		must(err == nil, "query", o.query, "must be host:port")
		namespace, name, ok := strings.Cut(o.object, "/")
		must(ok && namespace != "" && name != "", "scaled-object", o.object, "must be namespace/name")
	}
	if o.address == "" {
		o.address = ":10450"
		if o.laptop() || o.plaintext {
			o.address = "127.0.0.1:10450"
		}
	}
	_, _, err := net.SplitHostPort(o.address)
	must(err == nil, "address", o.address, "must be host:port")
	if (o.laptop() && o.certDir == "") || o.plaintext {
		must(loopback(o.address), "address", o.address, "must be a loopback address, as there is no TLS")
	}
	must(o.static == "" || len(o.urls()) > 0, "static", o.static, "must have a URL")
	for _, u := range o.urls() {
		parsed, err := url.Parse(u)
		must(err == nil && parsed.Host != "" && (parsed.Scheme == "http" || parsed.Scheme == "https"), "static", u, "must be an http or https URL")
	}
	must(o.fake >= 0 && o.fake <= 1000, "fake", o.fake, "must be between 0 and 1000")
	must(o.count >= 0 && o.count <= 1_000_000, "replicas", o.count, "must be between 0 and 1000000")
	must(o.watch >= 0, "watch", o.watch, "must not be negative")
	must(o.count <= 0 || o.laptop(), "replicas", o.count, "goes with -static or -fake")
	must(o.watch <= 0 || o.query != "", "watch", o.watch, "goes with -query")
	must(o.object == someObject || o.query != "", "scaled-object", o.object, "goes with -query")
	must(o.idle >= time.Minute, "idle", o.idle, "must be at least 1m")
	must(o.maxTriggers >= 1, "max-triggers", o.maxTriggers, "must be at least 1")
	must(!o.webhook || !o.plaintext, "webhook", o.webhook, "must not be given with -plaintext, as API servers speak TLS only")
	must(!o.webhook || port(o.address) != ":0", "address", o.address, "must have a port of 1 to 65535 with -webhook, which tells KEDA of it")
	if !o.laptop() && o.query == "" && !o.Version {
		must(o.namespace != "", "namespace", o.namespace, "must be given, or POD_NAMESPACE be set")
		must(o.namespace == "" || command.IsLabel(o.namespace), "namespace", o.namespace, command.LabelRule)
	}
	for _, f := range [][2]string{
		{"certs-secret", o.secret}, {"ca-secret", o.caSecret}, {"authentication", o.creds}, {"webhook-configuration", o.webhookConfig},
	} {
		must(command.IsName(f[1]), f[0], f[1], command.NameRule)
	}
	must(o.secretsIn == "" || command.IsLabel(o.secretsIn), "certs-namespace", o.secretsIn, command.LabelRule)
	must(command.IsLabel(o.service), "service", o.service, command.LabelRule)
	must(strings.TrimSpace(o.scaler) != "", "scaler-name", o.scaler, "must not be empty")
	must(o.caSecret != o.secret || o.secretNamespace() != o.namespace, "ca-secret", o.caSecret, "must not be -certs-secret, which KEDA reads")
	errs.Add(inFlags(o.rules().Validate()))
	o.Check(must)
	return errs.Err()
}

// inFlags says of each wrong field of the certificates' rules by which flag it is set.
func inFlags(err error) error {
	flags := map[string]string{"overlap": "ca-overlap", "leafLife": "certificate-life", "dropAfter": "ca-drop-after", "dnsNames": "server-names"}
	var all []error
	for _, e := range typed.Split(err) {
		if field, ok := errors.AsType[*scaling.FieldError](e); ok && flags[field.Field] != "" {
			e = &scaling.FieldError{Field: "-" + flags[field.Field], Value: field.Value, Rule: field.Rule}
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}

// metadata reads key=value.
func (o *options) metadata(rest []string) error {
	o.keys = map[string]string{"scalerName": o.scaler}
	given := make(map[string]bool)
	for _, pair := range rest {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return fmt.Errorf("%q: must be key=value, metadata of the trigger, after all flags", pair)
		}
		if given[key] {
			return fmt.Errorf("%s: must be given once", key)
		}
		given[key], o.keys[key] = true, value
	}
	return nil
}

func (o *options) urls() []string { return command.List(o.static) }

// loopback reports whether an address can only be reached from this machine.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
