package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"time"
)

const (
	certBlock = "CERTIFICATE"
	keyBlock  = "PRIVATE KEY"
)

// An identity is a parsed Pair. It always has a certificate; the key may be missing.
type identity struct {
	pair Pair
	cert *x509.Certificate
	key  crypto.Signer
}

// An issuer makes certificates.
type issuer struct {
	rules   Rules
	now     time.Time
	entropy io.Reader
}

func (m issuer) ca() (*identity, error) {
	serial, err := m.serial()
	if err != nil {
		return nil, err
	}
	return m.make(&x509.Certificate{
		SerialNumber: serial,
		// The serial number makes the names of two CAs differ.
		Subject:               pkix.Name{CommonName: fmt.Sprintf("external scaler CA %.8x", serial)},
		NotAfter:              m.now.Add(m.rules.CALife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}, nil)
}

func (m issuer) client(ca *identity) (*identity, error) {
	return m.leaf(ca, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "external scaler client"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (m issuer) server(ca *identity) (*identity, error) {
	return m.leaf(ca, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "external scaler"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    m.rules.DNSNames,
		IPAddresses: m.rules.IPs,
	})
}

// leaf makes a leaf certificate, which does not outlive its CA.
func (m issuer) leaf(ca *identity, t *x509.Certificate) (*identity, error) {
	var err error
	if t.SerialNumber, err = m.serial(); err != nil {
		return nil, err
	}
	t.NotAfter = earlier(m.now.Add(m.rules.LeafLife), ca.cert.NotAfter)
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.BasicConstraintsValid = true
	return m.make(t, ca)
}

// make makes a key pair and a certificate from the template t, signed by ca, or by itself if ca is nil.
func (m issuer) make(t *x509.Certificate, ca *identity) (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), m.entropy)
	if err != nil {
		return nil, fmt.Errorf("cannot make a private key: %w", err)
	}
	t.NotBefore = m.now.Add(-m.rules.slack())
	parent, signer := t, crypto.Signer(key)
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(m.entropy, t, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("cannot sign a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &identity{
		pair: Pair{
			Cert: pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: der}),
			Key:  pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: secret}),
		},
		cert: cert,
		key:  key,
	}, nil
}

// serial returns a random number of 127 bits, never zero.
func (m issuer) serial() (*big.Int, error) {
	b := make([]byte, 16)
	if _, err := io.ReadFull(m.entropy, b); err != nil {
		return nil, fmt.Errorf("cannot make a serial number: %w", err)
	}
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b), nil
}

func encodeCert(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: c.Raw})
}
