package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// An authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte // of cert
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name, NotBefore: time.Now().Add(-time.Hour)}, key)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	return &authority{key: key, cert: cert, pem: encode("CERTIFICATE", cert.Raw)}, nil
}

// server signs a certificate for servers on this machine.
func (a *authority) server() (cert, key []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// peer signs a certificate for who is server and client on this machine.
func (a *authority) peer() (cert, key []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// client signs a certificate for a user; Kubernetes reads the name and the groups from its subject.
func (a *authority) client(user string, groups ...string) (cert, key []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// sign signs a template with a key of its own, for one day around now.
func (a *authority) sign(template *x509.Certificate) (cert, key []byte, err error) {
	name := template.Subject.CommonName
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key) // with a serial number of its own
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return encode("CERTIFICATE", der), key, err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
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
	if files["tokens.key"], err = keyutil.MarshalPrivateKeyToPEM(tokens); err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(tokens.Public())
	if err != nil {
		return nil, err
	}
	files["tokens.pub"] = encode("PUBLIC KEY", public)
	return clients, writeFiles(dir, files)
}

// writeFiles writes files, by name, into a folder.
func writeFiles(dir string, files map[string][]byte) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
