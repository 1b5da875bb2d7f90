package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ReaderConfig says what a server reads. Source must be set.
type ReaderConfig struct {
	Source Source
	// OnError is told of material that cannot be used, once a version, and of every handshake that failed for want of
	// any; nil means nobody. It must not block.
	OnError func(error)
	// Now is the clock by which clients' certificates are judged; nil means time.Now.
	Now func() time.Time
}

// A Reader has the server's side of TLS: at every handshake it takes the certificates that its source has then. Material
// that cannot be used is reported, and what was in force before stays. It is safe for concurrent use.
type Reader struct {
	ReaderConfig
	last atomic.Pointer[loaded]
	mu   sync.Mutex // held while parsing
}

// A loaded is what came of a version. The configuration, of that version or the last good one before, is nil if there
// never was a good one.
type loaded struct {
	where, version string
	config         *tls.Config
	expires        time.Time
	err            error // why this version is not in force
}

// NewReader returns a Reader. It reads nothing yet.
func NewReader(c ReaderConfig) *Reader {
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return &Reader{ReaderConfig: c}
}

// TLS returns the configuration of a server that reads source at every handshake: NewReader(...).TLS() without the
// reports.
func TLS(source Source) *tls.Config {
	return NewReader(ReaderConfig{Source: source}).TLS()
}

// TLS returns the configuration of a server, for credentials.NewTLS or tls.NewListener:
//
//   - the server's certificate and the CAs of clients are those of the moment, both of the same version;
//   - a client has to have a certificate, for clients, of such a CA;
//   - TLS 1.3, or 1.2 with ECDHE and an AEAD;
//   - HTTP/2, as gRPC wants it;
//   - no session is resumed: it would outlive a CA that is trusted no more.
//
// Connections that stand are not touched; a server that wants them judged again limits their age.
//
// Where there is no certificate yet, or none that can be used, the handshake fails: the server sees why, the client an
// internal error.
func (r *Reader) TLS() *tls.Config {
	c := r.strict()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		l := r.load()
		if l.config == nil {
			r.OnError(l.err)
			return nil, l.err
		}
		return l.config, nil
	}
	return c
}

// strict is what holds for all material. A configuration that GetConfigForClient returns replaces the outer one, and
// inherits nothing: both have all of it.
func (r *Reader) strict() *tls.Config {
	return &tls.Config{
		Time:                   r.Now,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true,
		CipherSuites: []uint16{ // of TLS 1.2; those of 1.3 are not a matter of choice
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
			tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
}

// Err reads the source and returns why what it has now is not in force, or nil. A readiness check may ask it.
func (r *Reader) Err() error {
	return r.load().err
}

// Expires returns when the certificate in force expires, or zero if there is none.
func (r *Reader) Expires() time.Time {
	return r.load().expires
}

// load reads the source; it parses only what it has not seen.
func (r *Reader) load() *loaded {
	s, err := r.Source.Load()
	if err != nil {
		return r.failed(err)
	}
	if l := r.last.Load(); l.is(s) {
		return l
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.last.Load()
	if l.is(s) {
		return l
	}
	fresh := &loaded{where: s.Where, version: s.Version}
	if fresh.config, fresh.expires, fresh.err = r.parse(s); fresh.err != nil {
		if l != nil {
			fresh.config, fresh.expires = l.config, l.expires
		}
		r.OnError(fresh.err)
	}
	r.last.Store(fresh)
	return fresh
}

func (l *loaded) is(s Served) bool {
	return l != nil && l.version != "" && l.version == s.Version && l.where == s.Where
}

// failed is for a source that gives nothing: what was in force stays. The error is reported when it is new.
func (r *Reader) failed(err error) *loaded {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.last.Load()
	fresh := &loaded{err: err} // of no version: the next that comes is parsed
	if l != nil {
		if l.err != nil && l.err.Error() == err.Error() {
			return l
		}
		fresh.config, fresh.expires = l.config, l.expires
	}
	r.OnError(err)
	r.last.Store(fresh)
	return fresh
}

func (r *Reader) parse(s Served) (*tls.Config, time.Time, error) {
	pool, pair, err := s.parse()
	if err != nil {
		return nil, time.Time{}, err
	}
	c := r.strict()
	c.ClientCAs = pool
	c.Certificates = []tls.Certificate{pair}
	return c, pair.Leaf.NotAfter, nil
}

func (s Served) parse() (*x509.CertPool, tls.Certificate, error) {
	fault := func(key, rule string) (*x509.CertPool, tls.Certificate, error) {
		return nil, tls.Certificate{}, &SecretError{Secret: s.Where, Key: key, Rule: rule, Err: ErrDamaged}
	}
	for _, f := range []file{{s.Keys.CA, &s.CA}, {s.Keys.Cert, &s.Pair.Cert}, {s.Keys.Key, &s.Pair.Key}} {
		if len(*f.part) == 0 {
			return nil, tls.Certificate{}, &SecretError{Secret: s.Where, Key: f.name, Rule: mustNotBeEmpty, Err: ErrMissing}
		}
	}
	cas, err := parseCerts(s.CA)
	if err != nil {
		return fault(s.Keys.CA, mustBeCerts)
	}
	if slices.ContainsFunc(cas, func(ca *x509.Certificate) bool { return !ca.IsCA }) {
		return fault(s.Keys.CA, mustBeCerts)
	}
	chain, err := parseCerts(s.Pair.Cert)
	if err != nil {
		return fault(s.Keys.Cert, "must be certificates in PEM, the server's own first")
	}
	if !serves(chain[0]) {
		return fault(s.Keys.Cert, "must be allowed as the certificate of a server, with names")
	}
	pair, err := tls.X509KeyPair(s.Pair.Cert, s.Pair.Key)
	if err != nil {
		return fault(s.Keys.Key, mustBeKeyOf+s.Keys.Cert)
	}
	pair.Leaf = chain[0]
	return poolOf(cas), pair, nil
}

func poolOf(cas []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, ca := range cas {
		pool.AddCert(ca)
	}
	return pool
}

// serves says whether clients could take c for a server's certificate.
func serves(c *x509.Certificate) bool {
	if len(c.DNSNames)+len(c.IPAddresses) == 0 {
		return false
	}
	return slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny) ||
		len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) == 0
}

// ClientTLS returns the configuration of a client of a server called serverName, of what there is now: KEDA's side, for
// programs on a laptop and for tests.
func ClientTLS(m Material, serverName string) (*tls.Config, error) {
	parsed, err := parseMaterial("material", m)
	if err != nil {
		return nil, err
	}
	if parsed.client == nil {
		return nil, &SecretError{Secret: "material", Rule: mustNotBeEmpty, Err: ErrMissing}
	}
	return &tls.Config{
		ServerName: serverName,
		RootCAs:    poolOf(parsed.bundle),
		Certificates: []tls.Certificate{{
			Certificate: [][]byte{parsed.client.cert.Raw},
			PrivateKey:  parsed.client.key,
			Leaf:        parsed.client.cert,
		}},
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2"},
	}, nil
}
