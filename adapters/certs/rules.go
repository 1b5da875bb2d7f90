package certs

import (
	"cmp"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/inferscale/inferscale/scaling"
)

const (
	day             = 24 * time.Hour
	defaultCALife   = 2 * 365 * day
	defaultLeafLife = 90 * day
	defaultOverlap  = day
	mostSlack       = 5 * time.Minute
	mostLife        = 100 * 365 * day
)

// Rules has the names and the lifetimes of the certificates. DNSNames or IPs must be set; every other zero field means its
// default.
type Rules struct {
	// DNSNames are the names of the server for clients; for KEDA the host of scalerAddress must be among them. See
	// ServiceNames.
	DNSNames []string
	// IPs are the addresses of the server for clients.
	IPs []net.IP
	// CALife is how long a CA is valid, 2 years (of 365 days) by default. A new one is made when a third of it is left.
	CALife time.Duration
	// LeafLife is how long the certificates of client and server are valid, 90 days by default. They are made anew when
	// a third of it is left.
	LeafLife time.Duration
	// Overlap is the time within which every reader reads ca.crt again, 24 h by default. See the rotation in the package
	// comment.
	Overlap time.Duration
	// DropAfter is how long the old CA is trusted after the new CA began to sign. 0, the default, means until the last
	// certificate that the old CA signed has expired. Any other value must be at least Overlap.
	DropAfter time.Duration
}

func (r Rules) orDefault() Rules {
	r.CALife = cmp.Or(r.CALife, defaultCALife)
	r.LeafLife = cmp.Or(r.LeafLife, defaultLeafLife)
	r.Overlap = cmp.Or(r.Overlap, defaultOverlap)
	return r
}

// slack is the allowance for differences between clocks and for slow writes: 5 min, or a twentieth of LeafLife if that is
// less.
func (r Rules) slack() time.Duration {
	return min(mostSlack, r.LeafLife/20)
}

// Validate returns an error with every rule that r breaks, each a *scaling.FieldError, or nil.
func (r Rules) Validate() error {
	r = r.orDefault()
	var e scaling.FieldErrors
	e.Check(len(r.DNSNames)+len(r.IPs) > 0, "dnsNames", r.DNSNames, "must have a name, or ips an address")
	e.Check(!slices.Contains(r.DNSNames, ""), "dnsNames", r.DNSNames, "must not have an empty name")
	for _, name := range r.DNSNames {
		plain := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "*.")), "_", "x") // DNS has no _, but names in use do
		e.Check(name == "" || net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(plain)) == 0, "dnsNames", name, "must be a name in DNS, without a scheme or a port; addresses are ips")
	}
	for _, ip := range r.IPs {
		e.Check(ip.To16() != nil, "ips", r.IPs, "must have addresses of 4 or 16 bytes")
	}
	var times scaling.FieldErrors
	second := func(name string, d time.Duration) {
		times.Check(d >= time.Second, name, d, "must be at least 1s, the grain of certificates")
		times.Check(d <= mostLife, name, d, "must be at most "+mostLife.String()+", 100 years")
	}
	second("overlap", r.Overlap)
	second("leafLife", r.LeafLife)
	second("caLife", r.CALife)
	if err := times.Err(); err != nil { // sums of these times may overflow
		e.Add(err)
		return e.Err()
	}
	room := r.Overlap + 2*r.slack()
	e.Check(room <= r.LeafLife/3, "overlap", r.Overlap, "must be, with "+(2*r.slack()).String()+" for clocks and writes, at most a third of leafLife "+r.LeafLife.String())
	e.Check(r.LeafLife+room <= r.CALife/3, "leafLife", r.LeafLife, "must be, with overlap and "+(2*r.slack()).String()+" for clocks and writes, at most a third of caLife "+r.CALife.String())
	e.Check(r.DropAfter == 0 || r.DropAfter >= r.Overlap, "dropAfter", r.DropAfter, "must be at least overlap "+r.Overlap.String()+", or 0 for the expiry of what the old CA signed")
	return e.Err()
}

// ServiceNames returns the names that a Service has in its cluster: service, service.namespace, service.namespace.svc and
// service.namespace.svc.clusterDomain. An empty clusterDomain means cluster.local. The first name works only within the
// namespace, but a client there may use it.
func ServiceNames(service, namespace, clusterDomain string) []string {
	full := service + "." + namespace
	return []string{service, full, full + ".svc", full + ".svc." + cmp.Or(clusterDomain, "cluster.local")}
}
