package scrape

import (
	"cmp"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Config says what to read, and its limits. The zero value is valid: it reads vllm:num_requests_waiting from http, port
// 5000, path /metrics.
type Config struct {
	// Metrics are the metrics to read, at most MaxMetrics. None means Named("vllm:num_requests_waiting").
	Metrics []Metric

	// Interval is the time between two sweeps, 15 s by default. The Scraper does not wait for it. It sets the defaults below
	// and decides which connections are kept open between sweeps: all up to 4 s, only those of https above. vLLM closes idle
	// connections after 5 s.
	Interval time.Duration
	// Timeout is for one request, from dialling to the last byte. The default is 3 s, or half the interval if that is
	// less. It must be below Interval.
	Timeout time.Duration
	// DialTimeout is for the connection only, 1 s by default.
	DialTimeout time.Duration
	// SweepTimeout is for a whole sweep, 9/10 of Interval by default. The rest is left for deciding, so that a rack that
	// does not answer cannot delay the next decision. Pages that are not read by then are missing.
	SweepTimeout time.Duration
	// Spread is the time over which the requests of a sweep begin. Each pod has a fixed offset in it, which follows from its
	// identity. With the default of 0 they begin at once, Concurrency at a time. It must be below SweepTimeout.
	Spread time.Duration
	// Staleness is how long the last value of a pod replaces one that could not be fetched, and the highest age of a sample
	// with its own timestamp. The default is two intervals. Counters and histograms need a previous scrape that is at most
	// twice as old.
	Staleness time.Duration

	// Concurrency is the number of simultaneous requests, 64 by default. It needs to be pods * latency / interval; pods
	// without an answer use a slot for the whole Timeout.
	Concurrency int
	// MaxBody is the limit on the bytes of a page, after decompression, 16 MiB by default. Real pages reach 1 MB.
	MaxBody int64
	// MaxSeries is the limit on the samples of one family on a page, 10,000 by default; each bucket of a histogram is a
	// sample. Real families have hundreds. A pod with more fails with TooMany.
	MaxSeries int
	// Budget bounds the memory for pages. Tenant is their owner, for example a namespace: the unit between which the budget
	// is shared. The Scrapers of a process should share one budget. nil means 64 MiB for this Scraper alone.
	Budget *Budget
	Tenant string

	// TLS is for https.
	TLS TLSConfig
	// Token is sent as "Authorization: Bearer", to https targets only unless AllowTokenOverHTTP is set. TokenFile is a file
	// with the token, read again at every sweep; white space around it is ignored. At most one of the two is set.
	Token     string
	TokenFile string
	// AllowTokenOverHTTP allows sending the token unencrypted.
	AllowTokenOverHTTP bool
	// AllowLocal permits targets at loopback, link-local, multicast, unspecified and reserved addresses. Without it a pod
	// cannot direct the scraper to services that only this machine can reach, nor to the metadata service of a cloud.
	AllowLocal bool

	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// TLSConfig has the trusted authorities and the client certificate. The files are read again at every sweep; if one has
// changed, new connections use it.
type TLSConfig struct {
	// CAFile has the certificates of the trusted authorities, in PEM. Empty means those of the system.
	CAFile string
	// CertFile and KeyFile are the client certificate and its key, in PEM. Both or neither are set.
	CertFile string
	KeyFile  string
	// ServerName is the name that certificates are checked for, instead of the target's host: the certificate of a pod
	// seldom contains its IP address.
	ServerName string
	// InsecureSkipVerify accepts any certificate. Anyone who can redirect traffic can then answer in place of a pod.
	InsecureSkipVerify bool
}

// MaxMetrics is the most metrics of a Config: each costs memory for each pod and time for each line of a page.
const MaxMetrics = 256

const (
	defaultInterval    = 15 * time.Second
	defaultTimeout     = 3 * time.Second
	defaultDialTimeout = time.Second
	defaultConcurrency = 64
	defaultMaxBody     = 16 << 20
	defaultMaxSeries   = 10_000

	maxToken = 16 << 10
)

func (c Config) orDefault() Config {
	if len(c.Metrics) == 0 {
		c.Metrics = []Metric{Named("vllm:num_requests_waiting")}
	}
	c.Interval = cmp.Or(c.Interval, defaultInterval)
	c.Timeout = cmp.Or(c.Timeout, min(defaultTimeout, c.Interval/2))
	c.DialTimeout = cmp.Or(c.DialTimeout, min(defaultDialTimeout, c.Timeout))
	c.SweepTimeout = cmp.Or(c.SweepTimeout, c.Interval/10*9)
	c.Staleness = cmp.Or(c.Staleness, 2*c.Interval)
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	c.MaxSeries = cmp.Or(c.MaxSeries, defaultMaxSeries)
	if c.Budget == nil {
		c.Budget = newBudget(defaultBudget)
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the only clock of this package: the documented default of Config.Now
	}
	return c
}

// Validate reports every wrong field at once, each as a *scaling.FieldError with a path such as
// "metrics[1].terms[0].quantile". It does not read files.
func (c Config) Validate() error {
	c = c.orDefault()
	var e scaling.FieldErrors
	names := make(map[string]bool, len(c.Metrics))
	e.Check(len(c.Metrics) <= MaxMetrics, "metrics", len(c.Metrics), fmt.Sprintf("must be at most %d metrics", MaxMetrics))
	for i, m := range c.Metrics {
		path := fmt.Sprintf("metrics[%d].", i)
		m.check(&e, path)
		e.Check(!names[m.Name], path+"name", m.Name, "must be unique")
		names[m.Name] = true
		e.Check(m.counts() || i == 0 || !c.Metrics[i-1].counts(), path+"name", m.Name, "must stand before those that are read as Counts")
	}
	e.Check(c.Interval > 0, "interval", c.Interval, "must be positive")
	e.Check(c.Timeout > 0 && c.Timeout < c.Interval, "timeout", c.Timeout, "must be positive and below interval")
	e.Check(c.DialTimeout > 0, "dialTimeout", c.DialTimeout, "must be positive")
	e.Check(c.SweepTimeout > 0, "sweepTimeout", c.SweepTimeout, "must be positive")
	e.Check(c.Spread >= 0 && c.Spread < c.SweepTimeout, "spread", c.Spread, "must be at least 0 and below sweepTimeout")
	e.Check(c.Staleness > 0, "staleness", c.Staleness, "must be positive")
	e.Check(c.Concurrency > 0, "concurrency", c.Concurrency, "must be positive")
	e.Check(c.MaxBody > 0 && c.MaxBody < 1<<40, "maxBody", c.MaxBody, "must be positive and below 1 TiB")
	e.Check(c.MaxSeries > 0, "maxSeries", c.MaxSeries, "must be positive")
	e.Check((c.TLS.CertFile == "") == (c.TLS.KeyFile == ""), "tls.keyFile", c.TLS.KeyFile, "must be set if and only if tls.certFile is")
	// The token itself is never shown.
	e.Check(c.Token == "" || c.TokenFile == "", "tokenFile", c.TokenFile, "must be empty if token is set")
	e.Check(c.Token == "" || validToken(c.Token), "token", "(hidden)", tokenRule)
	return e.Err()
}

const tokenRule = "must be at most 16 KiB of printable ASCII without spaces"

// validToken refuses a token that could end a header or could not be recognised in an answer.
func validToken(t string) bool {
	if t == "" || len(t) > maxToken {
		return false
	}
	for i := range len(t) {
		if t[i] <= ' ' || t[i] > '~' {
			return false
		}
	}
	return true
}
