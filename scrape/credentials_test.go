package scrape

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(tb, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(tb, err)
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue returns a certificate for a name, as of a pod: without an IP address.
func (a *authority) issue(tb testing.TB, name string) (certPEM, keyPEM []byte) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(tb, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(tb, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// A securePod serves a page over TLS and notes who asked.
type securePod struct {
	pod    Pod
	auth   atomic.Pointer[string] // the last Authorization header
	client atomic.Pointer[string] // the last client certificate's name
}

func newSecurePod(tb testing.TB, a *authority, clients *authority) *securePod {
	tb.Helper()
	p := &securePod{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth, client := r.Header.Get("Authorization"), ""
		if len(r.TLS.PeerCertificates) > 0 {
			client = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		p.auth.Store(&auth)
		p.client.Store(&client)
		answer(textVersion, waitingPage(3))(w, r)
	}))
	certPEM, keyPEM := a.issue(tb, "pod.test")
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(tb, err)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		s.TLS.ClientCAs = x509.NewCertPool()
		s.TLS.ClientCAs.AddCert(clients.cert)
		s.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	tb.Cleanup(s.Close)
	p.pod = Pod{Name: "p", URL: s.URL + "/metrics"}
	return p
}

func writeFile(tb testing.TB, path string, data []byte) {
	tb.Helper()
	require.NoError(tb, os.WriteFile(path, data, 0o600))
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	trusted, other := newAuthority(t), newAuthority(t)
	ca, otherCA := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "other.pem")
	writeFile(t, ca, trusted.pem)
	writeFile(t, otherCA, other.pem)
	cert, key := filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key")
	certPEM, keyPEM := trusted.issue(t, "scraper.test")
	writeFile(t, cert, certPEM)
	writeFile(t, key, keyPEM)
	open, closed := newSecurePod(t, trusted, nil), newSecurePod(t, trusted, trusted)
	for _, row := range []struct {
		name   string
		pod    *securePod
		config TLSConfig
		reason Reason
		client string
	}{
		{"trusted", open, TLSConfig{CAFile: ca, ServerName: "pod.test"}, None, ""},
		{"the authorities of the system", open, TLSConfig{ServerName: "pod.test"}, TLS, ""},
		{"another authority", open, TLSConfig{CAFile: otherCA, ServerName: "pod.test"}, TLS, ""},
		{"another name", open, TLSConfig{CAFile: ca, ServerName: "elsewhere.test"}, TLS, ""},
		{"no name: the certificate has no IP address", open, TLSConfig{CAFile: ca}, TLS, ""},
		{"any certificate, when asked for", open, TLSConfig{InsecureSkipVerify: true}, None, ""},
		{"client certificate", closed, TLSConfig{CAFile: ca, ServerName: "pod.test", CertFile: cert, KeyFile: key}, None, "scraper.test"},
		{"client certificate missing", closed, TLSConfig{CAFile: ca, ServerName: "pod.test"}, TLS, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newScraper(t, Config{TLS: row.config})
			sweep := s.Scrape(t.Context(), []Pod{row.pod.pod})
			require.Equal(t, row.reason, reasonOf(sweep.Pods[0].Values[0].Err), "%v", sweep.Pods[0].Values[0].Err)
			if row.reason == None {
				require.InDelta(t, 3, sweep.Pods[0].Values[0].Value, 0)
				require.Equal(t, row.client, *row.pod.client.Load())
			}
		})
	}
}

func TestTokenGoesToHTTPSOnly(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t)
	ca, tokenFile := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	writeFile(t, ca, a.pem)
	writeFile(t, tokenFile, []byte(secret+"\n"))
	secure := newSecurePod(t, a, nil)
	var plain atomic.Pointer[string]
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		plain.Store(&auth)
		if auth == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer(textVersion, waitingPage(3))(w, r)
	})
	open := Pod{Name: "q", URL: base + "/metrics"}
	s := newScraper(t, Config{TLS: TLSConfig{CAFile: ca, ServerName: "pod.test"}, TokenFile: tokenFile})
	sweep := s.Scrape(t.Context(), []Pod{secure.pod, open})
	require.True(t, sweep.Pods[0].Values[0].OK, "%v", sweep.Pods[0].Values[0].Err)
	require.Equal(t, "Bearer "+secret, *secure.auth.Load())
	require.Empty(t, *plain.Load())
	require.ErrorContains(t, sweep.Pods[1].Values[0].Err, "Status: 401 Unauthorized: the token was withheld, as the target is not https")

	s = newScraper(t, Config{TokenFile: tokenFile, AllowTokenOverHTTP: true})
	sweep = s.Scrape(t.Context(), []Pod{open})
	require.NoError(t, sweep.Err())
	require.Equal(t, "Bearer "+secret, *plain.Load())
}

func TestCredentialFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	first, second := newAuthority(t), newAuthority(t)
	ca, tokenFile := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	cert, key := filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key")
	certPEM, keyPEM := first.issue(t, "one.test")
	writeFile(t, ca, first.pem)
	writeFile(t, tokenFile, []byte("token-number-one"))
	writeFile(t, cert, certPEM)
	writeFile(t, key, keyPEM)
	old, renewed := newSecurePod(t, first, first), newSecurePod(t, second, first)
	renewed.pod.Name = "renewed"
	s := newScraper(t, Config{
		TLS: TLSConfig{CAFile: ca, ServerName: "pod.test", CertFile: cert, KeyFile: key}, TokenFile: tokenFile,
	})
	pods := []Pod{old.pod, renewed.pod}
	sweep := s.Scrape(t.Context(), pods)
	require.True(t, sweep.Pods[0].Values[0].OK, "%v", sweep.Pods[0].Values[0].Err)
	require.Equal(t, TLS, sweep.Pods[1].Values[0].Err.Reason)
	require.Equal(t, "one.test", *old.client.Load())

	// Rotated within one tick of the file system's clock and to the same length: the content decides.
	info, err := os.Stat(tokenFile)
	require.NoError(t, err)
	writeFile(t, tokenFile, []byte("token-number-two"))
	require.NoError(t, os.Chtimes(tokenFile, info.ModTime(), info.ModTime()))
	writeFile(t, ca, append(first.pem, second.pem...))
	certPEM, keyPEM = first.issue(t, "two.test")
	writeFile(t, cert, certPEM)
	writeFile(t, key, keyPEM)
	sweep = s.Scrape(t.Context(), pods)
	require.NoError(t, sweep.Err())
	for i, p := range []*securePod{old, renewed} {
		require.True(t, sweep.Pods[i].Values[0].OK, "%v", sweep.Pods[i].Values[0].Err)
		require.Equal(t, "Bearer token-number-two", *p.auth.Load())
		require.Equal(t, "two.test", *p.client.Load())
	}

	// Files that cannot be used are reported, and the last good ones stay.
	for _, damage := range []struct {
		path string
		data string
		want string
	}{
		{ca, "", "has no certificate"},
		{key, "half", "client certificate"},
		{tokenFile, "two words", "printable ASCII without spaces"},
		{tokenFile, "", "printable ASCII without spaces"},
		{tokenFile, strings.Repeat("x", 1<<20+1), "is larger than 1048576 bytes"},
	} {
		good, err := os.ReadFile(damage.path)
		require.NoError(t, err)
		writeFile(t, damage.path, []byte(damage.data))
		sweep = s.Scrape(t.Context(), pods)
		require.ErrorContains(t, sweep.Credentials, damage.want)
		require.ErrorContains(t, sweep.Err(), damage.want)
		require.True(t, sweep.Pods[1].Values[0].OK)
		require.Equal(t, "Bearer token-number-two", *renewed.auth.Load())
		writeFile(t, damage.path, good)
	}
	require.NoError(t, os.Remove(ca))
	sweep = s.Scrape(t.Context(), pods)
	require.ErrorIs(t, sweep.Credentials, os.ErrNotExist)
	require.True(t, sweep.Pods[0].Values[0].OK)
}

// TestALongCredentialFile: a file may have 1 MiB.
func TestALongCredentialFile(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	certificate := newAuthority(t).pem
	writeFile(t, ca, append(certificate, strings.Repeat("\n", 1<<20-len(certificate))...))
	newScraper(t, Config{TLS: TLSConfig{CAFile: ca}})
}

func TestNewFailsForFilesThatCannotBeUsed(t *testing.T) {
	_, err := New(Config{TLS: TLSConfig{CAFile: filepath.Join(t.TempDir(), "none.pem")}})
	require.ErrorIs(t, err, os.ErrNotExist)
	empty := filepath.Join(t.TempDir(), "token")
	writeFile(t, empty, nil)
	_, err = New(Config{TokenFile: empty})
	require.ErrorContains(t, err, "token file")
}

// TestOldVersionsOfTLSAreRefused: a pod that speaks nothing newer than TLS 1.1 is told nothing.
func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	dir, trusted := t.TempDir(), newAuthority(t)
	ca := filepath.Join(dir, "ca.pem")
	writeFile(t, ca, trusted.pem)
	certPEM, keyPEM := trusted.issue(t, "pod.test")
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	for version, reason := range map[uint16]Reason{tls.VersionTLS10: TLS, tls.VersionTLS11: TLS, tls.VersionTLS12: None, tls.VersionTLS13: None} {
		for _, config := range []TLSConfig{{CAFile: ca, ServerName: "pod.test"}, {InsecureSkipVerify: true}} {
			server := httptest.NewUnstartedServer(answer(textVersion, waitingPage(3)))
			server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: version, MaxVersion: version} //nolint:gosec // what is refused
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			s := newScraper(t, Config{TLS: config, Token: secret})
			sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: server.URL + "/metrics"}})
			require.Equal(t, reason, reasonOf(sweep.Pods[0].Values[0].Err), "%s: %v", tls.VersionName(version), sweep.Pods[0].Values[0].Err)
			server.Close()
		}
	}
}
