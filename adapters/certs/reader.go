package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ReaderConfig is the configuration of a Reader. Source must be set.
type ReaderConfig struct {
	Source Source
	// OnError is called once for each version of the material that cannot be used, and for every handshake that failed because
	// there is no usable material; nil means no call. It must not block.
	OnError func(error)
	// Now is the clock for checking clients' certificates; nil means time.Now.
	Now func() time.Time
}

// A Reader is the server's side of TLS: at every handshake it uses the current certificates of its source. It reports
// material that cannot be used, and continues with the last good version. It is safe for concurrent use.
type Reader struct {
	ReaderConfig
	last atomic.Pointer[loaded]
	mu   sync.Mutex // held while parsing
}

// A loaded is the result of loading a version. Its configuration is that of the version or, if the version is not good, of
// the last good one; nil if there never was a good one.
type loaded struct {
	where, version string
	config         *tls.Config
	expires        time.Time
	err            error // why this version is not used
}

// NewReader returns a Reader. It reads nothing yet.
func NewReader(c ReaderConfig) *Reader {
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return &Reader{ReaderConfig: c}
}

// TLS returns the configuration of a server that reads source at every handshake. It is NewReader(...).TLS() without OnError.
func TLS(source Source) *tls.Config {
	return NewReader(ReaderConfig{Source: source}).TLS()
}

// TLS returns the configuration of a server, for credentials.NewTLS or tls.NewListener:
//
//   - the server's certificate and the CAs of clients are the current ones, both of the same version;
//   - a client must have a client certificate of such a CA;
//   - TLS 1.3, or 1.2 with ECDHE and an AEAD;
//   - HTTP/2, as gRPC requires;
//   - sessions are not resumed: they would outlive a CA that is no longer trusted.
//
// Existing connections are not affected; a server can limit their age so that certificates are checked again.
//
// If there is no usable certificate yet, the handshake fails: the server sees the reason, the client an internal error.
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

// strict returns the settings that hold for all material. A configuration that GetConfigForClient returns replaces the outer
// one and inherits nothing from it, so both have all of these settings.
func (r *Reader) strict() *tls.Config {
	return &tls.Config{
		Time:                   r.Now,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true,
		CipherSuites: []uint16{ // for TLS 1.2; those of 1.3 cannot be chosen
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
			tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
}

// Err reads the source and returns why its current material is not used, or nil. A server can serve nevertheless, with the last
// good material, unless Expires is zero: a readiness check should ask for both.
func (r *Reader) Err() error {
	return r.load().err
}

// Expires returns when the certificate in force expires, or zero if there is none.
func (r *Reader) Expires() time.Time {
	return r.load().expires
}

// load reads the source, and parses a version only once.
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

// failed handles an error of the source: the last good configuration stays in use. It reports the error only if it is new.
func (r *Reader) failed(err error) *loaded {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.last.Load()
	fresh := &loaded{err: err} // without a version, so that the next one is parsed
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
	cas, err := parseCAs(s.CA)
	if err != nil {
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

// serves reports whether clients could accept c as a server's certificate.
func serves(c *x509.Certificate) bool {
	if len(c.DNSNames)+len(c.IPAddresses) == 0 {
		return false
	}
	return slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny) ||
		len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) == 0
}

// ClientTLS returns the configuration of a client for the server serverName, with the certificates of m. It plays KEDA's
// side, for programs on a laptop and for tests.
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
