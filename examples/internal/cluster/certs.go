package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// An authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte // of cert
}

// newAuthority makes an authority that signs for one day.
func newAuthority(name string) (*authority, error) {
	template := newTemplate(name)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	return &authority{key: key, cert: cert, pem: encode("CERTIFICATE", der)}, nil
}

// server signs a certificate for servers on this machine.
func (a *authority) server() (cert, key []byte, err error) {
	template := newTemplate("localhost")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return a.sign(template)
}

// peer signs a certificate for who is server and client on this machine.
func (a *authority) peer() (cert, key []byte, err error) {
	template := newTemplate("localhost")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return a.sign(template)
}

// client signs a certificate for a user; Kubernetes reads the name and the groups from its subject.
func (a *authority) client(user string, groups ...string) (cert, key []byte, err error) {
	template := newTemplate(user)
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// sign signs a template with a key of its own.
func (a *authority) sign(template *x509.Certificate) (cert, key []byte, err error) {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	name := template.Subject.CommonName
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	key, err = encodePrivate(private)
	return encode("CERTIFICATE", der), key, err
}

// newTemplate is what all certificates have in common: a name, and a validity of one day around now.
func newTemplate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
	}
}

// encode writes a block as PEM.
func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// encodePrivate writes a private key as PEM.
func encodePrivate(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encode("EC PRIVATE KEY", der), nil
}

// writeCertificates fills the folder with what the flags of the API server name. It returns the authority of clients
// and servers.
func writeCertificates(dir string) (*authority, error) {
	files := map[string][]byte{}
	clients, err := newAuthority("inferscale-test-cluster")
	if err != nil {
		return nil, err
	}
	files["ca.crt"] = clients.pem
	if files["server.crt"], files["server.key"], err = clients.server(); err != nil {
		return nil, err
	}
	proxy, err := newAuthority("inferscale-test-front-proxy") // signs for the API server as a client of aggregated APIs
	if err != nil {
		return nil, err
	}
	files["front-proxy-ca.crt"] = proxy.pem
	if files["front-proxy.crt"], files["front-proxy.key"], err = proxy.client("front-proxy-client"); err != nil {
		return nil, err
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // of service accounts
	if err != nil {
		return nil, err
	}
	if files["tokens.key"], err = encodePrivate(tokens); err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(tokens.Public())
	if err != nil {
		return nil, err
	}
	files["tokens.pub"] = encode("PUBLIC KEY", public)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return clients, nil
}
