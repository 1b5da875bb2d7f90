package certs

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
)

// The rules for content. They are fixed texts, so that no value gets into an error.
const (
	mustNotBeEmpty = "must not be empty"
	mustBeCert     = "must be one certificate in PEM"
	mustBeCerts    = "must be certificates of CAs in PEM, and nothing else in PEM"
	mustBeCA       = "must be the certificate of a CA"
	mustBeKeyOf    = "must be the private key in PEM of "
	mustBeMissing  = "must not be there in this phase"
)

var errRule = errors.New("does not parse")

// parseCerts returns all certificates of a text in PEM. Text around the blocks is ignored.
func parseCerts(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != certBlock {
			return nil, errRule
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errRule
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errRule
	}
	return certs, nil
}

// parseCAs is parseCerts for certificates of CAs only.
func parseCAs(data []byte) ([]*x509.Certificate, error) {
	certs, err := parseCerts(data)
	if err != nil || slices.ContainsFunc(certs, func(c *x509.Certificate) bool { return !c.IsCA }) {
		return nil, errRule
	}
	return certs, nil
}

// A parser parses the parts of one Secret. It keeps the first error.
type parser struct {
	where string
	err   *SecretError
}

func (p *parser) fault(key, rule string) {
	if p.err == nil {
		p.err = &SecretError{Secret: p.where, Key: key, Rule: rule, Err: ErrDamaged}
	}
}

func (p *parser) fail() error {
	if p.err == nil {
		return nil
	}
	return p.err
}

func (p *parser) cert(key string, data []byte) *x509.Certificate {
	if len(data) == 0 {
		p.fault(key, mustNotBeEmpty)
		return nil
	}
	certs, err := parseCerts(data)
	if err != nil || len(certs) != 1 {
		p.fault(key, mustBeCert)
		return nil
	}
	return certs[0]
}

func (p *parser) ca(key string, data []byte) *x509.Certificate {
	cert := p.cert(key, data)
	if cert != nil && (!cert.BasicConstraintsValid || !cert.IsCA) {
		p.fault(key, mustBeCA)
	}
	return cert
}

func (p *parser) bundle(key string, data []byte) []*x509.Certificate {
	if len(data) == 0 {
		p.fault(key, mustNotBeEmpty)
		return nil
	}
	cas, err := parseCAs(data)
	if err != nil {
		p.fault(key, mustBeCerts)
	}
	return cas
}

func (p *parser) key(keyName, certName string, pair Pair) crypto.Signer {
	if len(pair.Key) == 0 {
		p.fault(keyName, mustNotBeEmpty)
		return nil
	}
	both, err := tls.X509KeyPair(pair.Cert, pair.Key)
	signer, ok := both.PrivateKey.(crypto.Signer)
	if err != nil || !ok {
		p.fault(keyName, mustBeKeyOf+certName)
	}
	return signer
}

func (p *parser) absent(key string, data []byte) {
	if len(data) != 0 {
		p.fault(key, mustBeMissing)
	}
}

// An authority is a parsed Authority. Its ca is nil if there is none.
type authority struct {
	Authority
	ca, next *identity
	old      *x509.Certificate
}

func parseAuthority(where string, a Authority) (authority, error) {
	if a.empty() {
		return authority{}, nil
	}
	p := parser{where: where}
	out := authority{Authority: a, ca: &identity{pair: a.CA, cert: p.ca(keyTLSCert, a.CA.Cert)}}
	if a.Phase != PhasePublish || len(a.CA.Key) != 0 {
		out.ca.key = p.key(keyTLSKey, keyTLSCert, a.CA)
	}
	if a.Phase == PhasePublish {
		out.next = &identity{pair: a.Next, cert: p.ca(keyNextCert, a.Next.Cert), key: p.key(keyNextKey, keyNextCert, a.Next)}
	} else {
		p.absent(keyNextCert, a.Next.Cert)
		p.absent(keyNextKey, a.Next.Key)
	}
	if a.Phase == PhaseSwitch {
		out.old = p.ca(keyOldCert, a.Old)
	} else {
		p.absent(keyOldCert, a.Old)
	}
	switch a.Phase {
	case PhaseSteady, PhasePublish, PhaseSwitch:
	default:
		p.fault(keyState, "phase must be Steady, Publish or Switch")
	}
	return out, p.fail()
}

// A material is a parsed Material. Its pairs are nil if there is none.
type material struct {
	Material
	bundle         []*x509.Certificate
	client, server *identity
}

func parseMaterial(where string, m Material) (material, error) {
	if m.empty() {
		return material{}, nil
	}
	p := parser{where: where}
	out := material{
		Material: m,
		bundle:   p.bundle(keyCA, m.Bundle),
		client:   &identity{pair: m.Client, cert: p.cert(keyTLSCert, m.Client.Cert), key: p.key(keyTLSKey, keyTLSCert, m.Client)},
		server:   &identity{pair: m.Server, cert: p.cert(keyServerCert, m.Server.Cert), key: p.key(keyServerKey, keyServerCert, m.Server)},
	}
	return out, p.fail()
}
