package scrape

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxCredential limits the size of a credential file, so that a path to a device or a log cannot fill the memory.
const maxCredential = 1 << 20

// credentials are the files of a configuration as they were last read. Their contents are compared, not their times: two
// changes within the time resolution of the file system would be missed, and the files are small.
type credentials struct {
	config                 TLSConfig
	tokenFile              string
	caPEM, certPEM, keyPEM []byte
	tokenText              []byte
	tls                    *tls.Config
	token                  string
	loaded                 bool
	readFile               func(path string) ([]byte, error)
	fixedToken             string
	tokenOverHTTP          bool
}

func newCredentials(c Config) *credentials {
	return &credentials{config: c.TLS, tokenFile: c.TokenFile, readFile: readCredential, fixedToken: c.Token, tokenOverHTTP: c.AllowTokenOverHTTP}
}

func readCredential(path string) (data []byte, err error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, maxCredential+1))
	if err == nil && len(data) > maxCredential {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxCredential)
	}
	return data, err
}

// reload reads the files again. tlsChanged reports that new connections must be made. If a file cannot be used, for example
// because it is being written, everything stays as it was and reload returns an error.
func (c *credentials) reload() (tlsChanged bool, err error) {
	var (
		next = *c
		errs []error
	)
	for _, f := range []struct {
		path string
		into *[]byte
	}{
		{c.config.CAFile, &next.caPEM},
		{c.config.CertFile, &next.certPEM},
		{c.config.KeyFile, &next.keyPEM},
		{c.tokenFile, &next.tokenText},
	} {
		data, err := c.readFile(f.path)
		if err != nil {
			errs = append(errs, err)
		}
		*f.into = data
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	next.token = c.fixedToken
	if c.tokenFile != "" {
		next.token = strings.TrimSpace(string(next.tokenText))
		if !validToken(next.token) {
			return false, fmt.Errorf("token file %s: %s", c.tokenFile, tokenRule)
		}
	}
	tlsChanged = !c.loaded || !bytes.Equal(c.caPEM, next.caPEM) || !bytes.Equal(c.certPEM, next.certPEM) ||
		!bytes.Equal(c.keyPEM, next.keyPEM)
	if tlsChanged {
		if next.tls, err = next.build(); err != nil {
			return false, err
		}
	}
	next.loaded = true
	*c = next
	return tlsChanged, nil
}

func (c *credentials) build() (*tls.Config, error) {
	t := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         c.config.ServerName,
		InsecureSkipVerify: c.config.InsecureSkipVerify,
	}
	if c.config.CAFile != "" {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(c.caPEM) {
			return nil, fmt.Errorf("ca file %s has no certificate", c.config.CAFile)
		}
	}
	if c.config.CertFile != "" {
		pair, err := tls.X509KeyPair(c.certPEM, c.keyPEM)
		if err != nil {
			return nil, fmt.Errorf("client certificate %s: %w", c.config.CertFile, err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// tokenFor returns the token to send with a scheme, or none.
func (c *credentials) tokenFor(scheme string) string {
	if scheme == "https" || c.tokenOverHTTP {
		return c.token
	}
	return ""
}
