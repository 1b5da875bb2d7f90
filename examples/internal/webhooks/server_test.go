package webhooks_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/inferscale/inferscale/examples/internal/webhooks"
)

// certificate makes one, and the folder that has it.
func certificate(tb testing.TB) (tls.Certificate, string) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	require.NoError(tb, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(tb, err)
	dir := tb.TempDir()
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: secret}} {
		require.NoError(tb, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, dir
}

// serving serves a webhook that allows everything, until the test ends.
func serving(tb testing.TB, c webhooks.Config) (address string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	address = l.Addr().String()
	c.Host, c.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	require.NoError(tb, l.Close())
	server := webhooks.NewServer(c)
	require.Error(tb, server.StartedChecker()(httpRequest(tb)))
	server.Register("/allow", &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("")
	})})
	var _ webhook.Server = server
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	tb.Cleanup(func() {
		stop()
		require.NoError(tb, <-ended)
	})
	require.Eventually(tb, func() bool { return server.StartedChecker()(httpRequest(tb)) == nil }, 10*time.Second, 10*time.Millisecond)
	return address
}

func httpRequest(tb testing.TB) *http.Request {
	tb.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "/readyz", nil)
	require.NoError(tb, err)
	return r
}

// review asks for a review, from an address of this machine.
func review(tb testing.TB, from, server string) (status int, answer string) {
	tb.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: dialer.DialContext, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // its own
	}}
	reply, err := c.Post("https://"+server+"/allow", "application/json", strings.NewReader(
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a","operation":"CREATE","object":{"metadata":{"name":"x"}}}}`))
	require.NoError(tb, err)
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(reply.Body)
	require.NoError(tb, err)
	return reply.StatusCode, string(body)
}

// TestServer serves reviews, with a certificate from a folder or from whoever has it.
func TestServer(t *testing.T) {
	pair, dir := certificate(t)
	for _, c := range []webhooks.Config{{CertDir: dir}, {Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }}} {
		status, answer := review(t, "127.0.0.1", serving(t, c))
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, answer, `"allowed":true`)
	}
	require.Error(t, webhooks.NewServer(webhooks.Config{Host: "127.0.0.1", CertDir: t.TempDir()}).Start(t.Context()))
}

// TestBodiesThatStopAreEnded: a client that sends most of many bodies holds its part of the memory only, and that for two
// seconds, while another one is served.
func TestBodiesThatStopAreEnded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have no second address for another client")
	}
	_, dir := certificate(t)
	address := serving(t, webhooks.Config{CertDir: dir})
	const connections = 60
	part := make([]byte, 2<<20)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	sent, ended := make(chan int, connections), make(chan error, connections)
	for range connections {
		go func() {
			c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // its own
			if err != nil {
				// On a busy machine its handshake took too long.
				sent <- 0
				ended <- nil
				return
			}
			defer func() { _ = c.Close() }()
			_, _ = fmt.Fprintf(c, "POST /allow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", 3<<20)
			_, _ = c.Write(part) // it may be refused meanwhile
			sent <- 1
			_ = c.SetReadDeadline(time.Now().Add(8 * time.Second))
			_, err = io.Copy(io.Discard, c)
			if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
				err = nil // however it ended
			}
			ended <- err
		}()
	}
	all := 0
	for range connections {
		all += <-sent
	}
	require.Greater(t, all, connections/2, "bodies that were begun")
	held := int64(heap()) - int64(before)
	status, answer := review(t, "127.0.0.2", address)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, answer, `"allowed":true`)
	for range connections {
		require.NoError(t, <-ended)
	}
	t.Logf("%d connections with 2 MiB each: %d MiB held", connections, held>>20)
	require.Less(t, held, int64(48<<20))
	status, _ = review(t, "127.0.0.1", address)
	require.Equal(t, http.StatusOK, status, "its part is given back")
}
