package command

import (
	"flag"
	"log/slog"
	"net"
	"time"
)

// Flags are the flags that controllers have in common.
type Flags struct {
	Kubeconfig   string
	QPS          float64
	Burst        int
	ScrapeMemory int64 // MiB
	AllowLocal   bool
	Shutdown     time.Duration

	ElectionName string
	Lease        time.Duration
	Renew        time.Duration
	Retry        time.Duration

	Health      string
	Metrics     string
	MetricsOpen bool
	WebhookHost string
	WebhookPort int

	LogLevel string
	Version  bool
}

// Words are what controllers say of the flags in words of their own.
type Words struct {
	Name     string // of the controller, and of the lease by default
	Requests string // how many there are of what
	Work     string // what is waited for at the end
	Loses    string // what a leader does that cannot renew the lease
}

// Define makes the flags known.
func (o *Flags) Define(f *flag.FlagSet, w Words) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig `file`; empty means $KUBECONFIG or the pod's service account")
	f.Float64Var(&o.QPS, "kube-api-qps", 300, "requests per second to the API server; "+w.Requests)
	f.IntVar(&o.Burst, "kube-api-burst", 600, "burst of requests to the API server")
	f.Int64Var(&o.ScrapeMemory, "scrape-memory", 96, "`MiB` of memory for the pods' metrics pages, shared by all namespaces; at least 32")
	f.BoolVar(&o.AllowLocal, "allow-local-targets", false, "scrape pods at loopback and link-local addresses too, for tests")
	f.DurationVar(&o.Shutdown, "shutdown-timeout", 20*time.Second, "how long to wait for running "+w.Work+" at shutdown")

	f.StringVar(&o.ElectionName, "leader-elect-name", w.Name, "`name` of the lease")
	f.DurationVar(&o.Lease, "leader-elect-lease", 15*time.Second, "how long other replicas wait before they take over the lease")
	f.DurationVar(&o.Renew, "leader-elect-renew", 10*time.Second, "how long the leader tries to renew the lease before it "+w.Loses)
	f.DurationVar(&o.Retry, "leader-elect-retry", 2*time.Second, "time between two attempts")

	f.StringVar(&o.Health, "health-address", ":8081", "`address` of /healthz and /readyz; 0 for none")
	f.StringVar(&o.Metrics, "metrics-address", ":8443", "`address` of /metrics, over https for clients that RBAC allows to get /metrics; 0 for none")
	f.BoolVar(&o.MetricsOpen, "metrics-insecure", false, "serve /metrics over http without authorization")
	f.StringVar(&o.WebhookHost, "webhook-host", "", "`address` of the webhook; empty means all")
	f.IntVar(&o.WebhookPort, "webhook-port", 9443, "`port` of the webhook")

	f.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&o.Version, "version", false, "print the version and exit")
}

// mostQPS is more than any API server answers.
const mostQPS = 1_000_000

// Check tells must of each flag whether it is right, and else what it must be.
func (o *Flags) Check(must func(ok bool, flag string, value any, rule string)) {
	must(o.QPS >= 1 && o.QPS <= mostQPS, "kube-api-qps", o.QPS, "must be between 1 and 1000000")
	must(o.Burst >= 1, "kube-api-burst", o.Burst, "must be at least 1")
	must(o.ScrapeMemory >= 32 && o.ScrapeMemory < 1<<20, "scrape-memory", o.ScrapeMemory, "must be at least 32 and less than 1048576")
	must(o.Shutdown >= 0, "shutdown-timeout", o.Shutdown, "must not be negative")
	must(IsName(o.ElectionName), "leader-elect-name", o.ElectionName, NameRule)
	must(o.Lease > o.Renew && o.Renew > o.Retry && o.Retry > 0, "leader-elect-lease", o.Lease, "lease must be above renew, renew above retry, and retry above 0")
	must(o.Lease <= o.Renew || o.Lease.Truncate(time.Second) >= o.Renew, "leader-elect-lease", o.Lease, "its whole seconds, which other replicas see, must be at least renew")
	must(o.Renew <= o.Retry || o.Renew > o.Retry*6/5, "leader-elect-renew", o.Renew, "must be above 1.2 times retry")
	for _, f := range [][2]string{{"health-address", o.Health}, {"metrics-address", o.Metrics}} {
		must(IsAddress(f[1]), f[0], f[1], AddressRule)
	}
	must(o.WebhookPort >= 1 && o.WebhookPort <= 65535, "webhook-port", o.WebhookPort, "must be between 1 and 65535")
	must(new(slog.Level).UnmarshalText([]byte(o.LogLevel)) == nil, "log-level", o.LogLevel, "must be debug, info, warn or error")
}

// AddressRule is what an address to serve at must be.
const AddressRule = "must be host:port, or 0 for none"

// IsAddress reports whether something can be served at an address, or nothing is to be.
func IsAddress(address string) bool {
	_, _, err := net.SplitHostPort(address)
	return err == nil || address == "0"
}

// Level is the log level, after Check.
func (o *Flags) Level() (level slog.Level) {
	_ = level.UnmarshalText([]byte(o.LogLevel))
	return level
}
