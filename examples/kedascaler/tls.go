package main

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/inferscale/inferscale/adapters/certs"
)

// filesTLS returns how to serve with the certificates of a directory, which are made if they are not there; nil without
// a directory.
func (o *options) filesTLS() (*tls.Config, error) {
	if o.certDir == "" {
		return nil, nil //nolint:nilnil // plaintext
	}
	_, err := os.Stat(filepath.Join(o.certDir, "server.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		err = makeFiles(o.certDir)
	}
	if err != nil {
		return nil, err
	}
	return certs.TLS(&certs.Files{Dir: o.certDir}), nil
}

// makeFiles writes certificates for the loopback.
func makeFiles(dir string) error {
	rules := certs.Rules{DNSNames: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}}
	step, err := certs.Next(rules, certs.State{}, "", time.Now(), rand.Reader)
	if err != nil {
		return err
	}
	return certs.WriteFiles(dir, step.State.Material)
}

// clientTLS returns KEDA's side of the certificates of a directory.
func (o *options) clientTLS() (*tls.Config, error) {
	m, err := certs.ReadFiles(o.certDir)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(o.query)
	if err != nil {
		return nil, fmt.Errorf("-query: %w", err)
	}
	return certs.ClientTLS(m, host)
}
