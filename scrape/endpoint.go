package scrape

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/inferscale/inferscale/internal/enum"
	"github.com/inferscale/inferscale/scaling"
)

// The defaults of an Endpoint's fields.
const (
	DefaultScheme = "http"
	DefaultPort   = 5000
	DefaultPath   = "/metrics"
)

// An Endpoint is the address at which every pod of a fleet serves a page. The zero value is http, port 5000, path /metrics.
type Endpoint struct {
	// Scheme is "http" (the default) or "https".
	Scheme string
	// Port is between 1 and 65535; 0 means 5000.
	Port int
	// Path begins with one '/' and may end in a query, as in "/metrics?name[]=vllm:num_requests_waiting"; empty means
	// /metrics. A fragment, a control byte and a second '/' at its beginning are refused: "//host/x" would be read as
	// another host.
	Path string
}

// String returns the endpoint as a URL without a host, with its defaults: "http://:5000/metrics".
func (e Endpoint) String() string {
	e = e.orDefault()
	return e.Scheme + "://:" + strconv.Itoa(e.Port) + e.Path
}

func (e Endpoint) orDefault() Endpoint {
	e.Scheme = cmp.Or(e.Scheme, DefaultScheme)
	e.Port = cmp.Or(e.Port, DefaultPort)
	e.Path = cmp.Or(e.Path, DefaultPath)
	return e
}

func (e Endpoint) check(errs *scaling.FieldErrors, path string) {
	e = e.orDefault()
	errs.Check(e.Scheme == "http" || e.Scheme == "https", path+"scheme", e.Scheme, "must be http or https")
	errs.Check(e.Port > 0 && e.Port <= 65535, path+"port", e.Port, "must be between 1 and 65535")
	errs.Check(validPath(e.Path), path+"path", e.Path, "must begin with a single '/' and have no fragment, space or control byte")
}

func validPath(p string) bool {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") {
		return false
	}
	// Some servers and proxies treat backslashes as '/'.
	if strings.ContainsFunc(p, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '#' || c == '\\' }) {
		return false
	}
	_, err := url.PathUnescape(strings.SplitN(p, "?", 2)[0])
	return err == nil
}

// A Pod is one target of a sweep.
type Pod struct {
	// Name is unique in a sweep; results are sorted by it. A second pod of the same name counts once.
	Name string
	// UID distinguishes a pod from an earlier one of the same name. The last values and counters of a pod are remembered by
	// its UID, or by its name if the UID is empty. A second pod of the same UID counts once.
	UID string
	// Host is an IP address or a host name. IPv6 addresses are written without brackets.
	Host string
	// State says whether the pod is scraped, and how it counts. The zero value is Ready.
	State PodState
	// Stuck is set for a pod that is not ready, never was, and is not expected to become ready any more
	// (scaling.StartDeadline). It has no load and counts 0 in a reading's Upper. An Unschedulable pod is always stuck.
	Stuck bool
	// URL replaces Host and the metrics' Endpoint for a static target: "http://127.0.0.1:8100", with the endpoint's path, or
	// "http://127.0.0.1:8100/metrics", with its own. It has no user and no fragment, and only http or https.
	URL string
}

// PodState says how a pod counts.
type PodState uint8

// The states of a pod.
const (
	Ready       PodState = iota // scraped
	NotReady                    // pending or starting: not scraped, counts as a missing pod
	Terminating                 // left out, like the two below: its load is moving elsewhere
	Failed
	Completed
	Unschedulable // not ready: no node has room for it
	Crashing      // not ready: it starts and fails
)

// Counts reports whether such a pod belongs to the fleet: it is ready, or will become ready.
func (s PodState) Counts() bool { return s == Ready || s.waits() }

// waits reports whether such a pod is not scraped and counts as a missing one.
func (s PodState) waits() bool { return s == NotReady || s == Unschedulable || s == Crashing }

// stuck reports whether the pod counts 0 in a reading's Upper.
func (p *Pod) stuck() bool { return p.State == Unschedulable || p.Stuck && p.State.waits() }

// String returns the name of the constant.
func (s PodState) String() string {
	return enum.Name(uint8(s), "PodState", "Ready", "NotReady", "Terminating", "Failed", "Completed", "Unschedulable", "Crashing")
}

// identity is the key of what is remembered of a pod. A UID and a name that happen to be equal have different keys.
func (p *Pod) identity() string {
	if p.UID != "" {
		return "uid/" + p.UID
	}
	return "name/" + p.Name
}

// target returns the address of a pod's page. own reports that the pod's URL has a path of its own, which then replaces that
// of every endpoint.
func target(p *Pod, e Endpoint) (u *url.URL, own bool, err error) {
	if p.URL != "" {
		return static(p.URL, e)
	}
	host := p.Host
	if !validHost(host) {
		return nil, false, badTarget("host", host, "must be an IP address or a host name")
	}
	u = &url.URL{Scheme: e.Scheme, Host: net.JoinHostPort(host, strconv.Itoa(e.Port))}
	setPath(u, e.Path)
	return u, false, nil
}

func static(raw string, e Endpoint) (u *url.URL, own bool, err error) {
	u, err = url.Parse(raw)
	switch {
	case err != nil:
		// url.Parse repeats its input in the error, which may contain a password.
		return nil, false, badTarget("url", "", "must be a URL")
	case u.User != nil:
		return nil, false, badTarget("url", "", "must not hold a user: give a token or a client certificate")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, false, badTarget("url", raw, "must be http or https")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return nil, false, badTarget("url", raw, "must not have a fragment")
	case u.Path == "" && (u.RawQuery != "" || u.ForceQuery):
		return nil, false, badTarget("url", raw, "must have a path if it has a query")
	case !validHost(u.Hostname()) || !validPort(u.Port()):
		return nil, false, badTarget("url", raw, "must have a host, and a port from 1 to 65535 if any")
	}
	full := u.RequestURI()
	own = u.Path != ""
	if !own {
		full = e.Path
	}
	if !validPath(full) {
		return nil, false, badTarget("url", raw, "must have a path that begins with a single '/' and no control byte")
	}
	u = &url.URL{Scheme: u.Scheme, Host: u.Host}
	setPath(u, full)
	return u, own, nil
}

// setPath separates the query, so that a '?' is not escaped into the path.
func setPath(u *url.URL, p string) {
	p, query, _ := strings.Cut(p, "?")
	u.RawQuery = query
	// validPath has parsed the path already. RawPath keeps an encoding such as %2F as it was given.
	u.Path, _ = url.PathUnescape(p)
	if u.Path != p {
		u.RawPath = p
	}
}

func validPort(p string) bool {
	if p == "" {
		return true
	}
	n, err := strconv.ParseUint(p, 10, 16)
	return err == nil && n > 0
}

func validHost(h string) bool {
	if h == "" || len(h) > 255 {
		return false
	}
	if strings.Contains(h, ":") {
		_, err := netip.ParseAddr(h)
		return err == nil
	}
	return !strings.ContainsFunc(h, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_'
	})
}

func badTarget(field, value, rule string) error {
	return &scaling.FieldError{Field: field, Value: value, Rule: rule}
}
