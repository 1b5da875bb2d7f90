package scrape

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnswersThatAreFine(t *testing.T) {
	page := waitingPage(7)
	for _, row := range []struct {
		name string
		base string
	}{
		{"version 1.0.0, as Python says today", serve(t, answer("text/plain; version=1.0.0; charset=utf-8", page))},
		{"capitals", serve(t, answer("Text/Plain;x", page))},
		{"no content type", serveRaw(t, raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(page), page)))},
		{"close-delimited and complete", serveRaw(t, raw("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"+page))},
		{"no final newline, known length", serve(t, answer(textVersion, strings.TrimSpace(page)))},
		{"chunked, no final newline", serveRaw(t, raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(page)-1, page[:len(page)-1])))},
		{"gzip that was not asked for", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(textVersion, string(zipped(t, 0, page)))(w, nil)
		})},
		{"a redirect to the path with a slash", serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				http.Redirect(w, r, "/metrics/", http.StatusTemporaryRedirect)
				return
			}
			answer(textVersion, page)(w, r)
		})},
		{"a redirect to its own origin in full", serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				http.Redirect(w, r, "http://"+r.Host+"/metrics/", http.StatusPermanentRedirect)
				return
			}
			answer(textVersion, page)(w, r)
		})},
		{"exactly at the limit", serve(t, answer(textVersion, page+"#"+strings.Repeat("x", 4096-len(page)-2)+"\n"))},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newScraper(t, Config{MaxBody: 4096})
			sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: row.base + "/metrics"}})
			require.NoError(t, sweep.Err())
			require.InDelta(t, 7, sweep.Pods[0].Values[0].Value, 0)
			require.Positive(t, sweep.Pods[0].Fetches[0].Bytes)
		})
	}
}

func TestTheRequestThatIsSent(t *testing.T) {
	var got atomic.Pointer[http.Request]
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(r)
		answer(textVersion, waitingPage(1))(w, r)
	})
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	host, port := hostPort(t, base)
	m := Named("vllm:num_requests_waiting")
	m.Endpoint = Endpoint{Port: port, Path: "/a%2Fb/metrics?name[]=x&y=1"}
	s := newScraper(t, Config{Metrics: []Metric{m}, Timeout: 2500 * time.Millisecond, Token: secret, AllowTokenOverHTTP: true})
	sweep := s.Scrape(t.Context(), []Pod{{Name: "p", Host: host}})
	require.NoError(t, sweep.Err())
	r := got.Load()
	require.Equal(t, http.MethodGet, r.Method)
	require.Equal(t, "/a%2Fb/metrics?name[]=x&y=1", r.RequestURI)
	require.Equal(t, "text/plain;version=0.0.4;q=1,*/*;q=0.1", r.Header.Get("Accept"))
	require.Equal(t, "identity", r.Header.Get("Accept-Encoding"))
	require.Equal(t, "2.5", r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"))
	require.Equal(t, "Bearer "+secret, r.Header.Get("Authorization"))
	require.True(t, r.Close, "above 4 s no connection is kept")
}

func TestLocalAddressesAreRefused(t *testing.T) {
	base := serve(t, answer(textVersion, waitingPage(1)))
	_, port := hostPort(t, base)
	m := Named("vllm:num_requests_waiting")
	m.Endpoint.Port = port
	s, err := New(Config{Metrics: []Metric{m}})
	require.NoError(t, err)
	defer s.Close()
	// localhost shows that it is the address that counts, not the name.
	hosts := []string{"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "localhost", "169.254.169.254", "fe80::1", "224.0.0.1", "ff02::1", "0.0.0.0", "::"}
	var pods []Pod
	for _, h := range hosts {
		pods = append(pods, Pod{Name: h, Host: h})
	}
	pods = append(pods, Pod{Name: "url", URL: base + "/metrics"})
	sweep := s.Scrape(t.Context(), pods)
	for _, p := range sweep.Pods {
		require.Equal(t, Forbidden, p.Fetches[0].Err.Reason, "%s: %v", p.Name, p.Fetches[0].Err)
	}
	require.ErrorContains(t, sweep.Err(), "12 Forbidden")
}

// TestAddressesThatNoPodHas: whatever the form, what is of this machine, its link or its cloud is refused.
func TestAddressesThatNoPodHas(t *testing.T) {
	forbidden := []string{"169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "127.0.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "240.0.0.0", "255.255.255.255", "169.254.170.2", "0.255.255.255", "192.0.0.255"}
	allowed := []string{"10.0.0.1", "172.16.3.4", "192.168.1.1", "100.64.0.1", "100.100.100.201", "168.63.129.17", "8.8.8.8", "192.0.1.192", "1.0.0.0"}
	refused := func(address string) bool {
		err := refuseLocal(t.Context(), "tcp", address, nil)
		require.True(t, err == nil || errors.Is(err, errForbidden))
		return err != nil
	}
	for i, list := range [][]string{forbidden, allowed} {
		for _, a := range list {
			b := netip.MustParseAddr(a).As4()
			hexed := fmt.Sprintf("%x:%x", uint16(b[0])<<8|uint16(b[1]), uint16(b[2])<<8|uint16(b[3]))
			inverted := fmt.Sprintf("%x:%x", ^(uint16(b[0])<<8 | uint16(b[1])), ^(uint16(b[2])<<8 | uint16(b[3])))
			require.Equal(t, i == 0, refused(a+":80"), a)
			for _, form := range []string{
				"::ffff:" + a, "::ffff:0:" + hexed, "64:ff9b::" + hexed, "2002:" + hexed + "::1", "2001:0:4136:e378:8000:63bf:" + inverted,
				"2001:db8::5efe:" + hexed, "2001:db8::200:5efe:" + hexed, "::ffff:" + hexed,
			} {
				require.Equal(t, i == 0, refused("["+form+"]:80"), form)
			}
			if a != "0.0.0.0" {
				require.Equal(t, i == 0, refused("[::"+hexed+"]:80"), a)
			}
		}
	}
	for _, a := range []string{
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::",
		"fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff", "fd20:ce::ffff:ffff:ffff:ffff", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "feff:ffff::",
		"fe80::1", "fe80::1%lo", "febf::1", "fec0::1", "ff02::1", "::", "::1",
	} {
		require.True(t, refused("["+a+"]:80"), a)
	}
	for _, a := range []string{
		"fd00::1", "fd00:ec1::254", "fd00:ec3::254", "2001:db8::1", "2a00:1450::1", "fd20:cf::254", "fd20:ce:0:1::254", "fd00:c1::a9fe:a9ff",
		"64:ff9b:2::7f00:1", "2001:1::1", "2001:db8::100:5efe:7f00:1", "2001:db8::1:5efe:7f00:1", "2001:db8::5eff:7f00:1", "2001:db8::5ffe:7f00:1",
	} {
		require.False(t, refused("["+a+"]:80"), a)
	}
	require.True(t, refused("no address"))
}

// TestWhyAPageWasNotHad has the errors of the network that are not made elsewhere.
func TestWhyAPageWasNotHad(t *testing.T) {
	for _, row := range []struct {
		err    error
		reason Reason
		is     error
	}{
		{&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}, Dial, nil},
		{&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, Dial, nil},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, Refused, syscall.ECONNREFUSED},
		{&net.OpError{Op: "dial", Err: errForbidden}, Forbidden, errForbidden},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, Truncated, nil},
		{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, Timeout, context.DeadlineExceeded},
		{io.ErrUnexpectedEOF, Truncated, io.ErrUnexpectedEOF},
		{gzip.ErrChecksum, Encoding, nil},
		{gzip.ErrHeader, Encoding, nil},
		{flate.CorruptInputError(7), Encoding, nil},
		{tls.AlertError(42), TLS, nil},
		{tls.RecordHeaderError{Msg: "no"}, TLS, nil},
		{&tls.CertificateVerificationError{Err: errors.New("no")}, TLS, nil},
		{http.ErrSchemeMismatch, TLS, nil},
		{errors.New("tls: no"), TLS, nil},
		{errors.New("net/http: server response headers exceeded 1 bytes"), Header, nil},
		{errors.New("malformed HTTP response"), Header, nil},
		{errors.New("bad Content-Length"), Header, nil},
		{errors.New("too many 1xx informational responses"), Header, nil},
	} {
		got := (&fetcher{}).classify(t.Context(), row.err)
		require.Equal(t, row.reason, got.Reason, "%v", row.err)
		if row.is != nil {
			require.ErrorIs(t, got, row.is)
		} else {
			require.NoError(t, errors.Unwrap(got.Err), "nothing of what a pod sent is kept: %v", row.err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, Timeout, (&fetcher{}).classify(ended, io.ErrUnexpectedEOF).Reason, "what comes of the end of the request is that")
}

// TestSameHost: a port that is not given is that of the scheme.
func TestSameHost(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"http://h/a", "http://h:80/b", true},
		{"https://h/a", "https://H:443/b", true},
		{"http://h/a", "http://h:443/b", false},
		{"https://h/a", "https://h:80/b", false},
		{"http://h:81/a", "http://h:81/b", true},
		{"http://h:81/a", "http://h:82/b", false},
		{"http://h/a", "http://g/a", false},
	} {
		a, err := url.Parse(row.a)
		require.NoError(t, err)
		b, err := url.Parse(row.b)
		require.NoError(t, err)
		require.Equal(t, row.same, sameHost(a, b), "%s %s", row.a, row.b)
	}
}

// TestGzipAtTheLimit: a page that gzip makes no shorter may be as long as another.
func TestGzipAtTheLimit(t *testing.T) {
	const limit = 4096
	page := waitingPage(7)
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	require.NoError(t, err)
	_, err = io.WriteString(z, page+"#"+strings.Repeat("x", limit-len(page)-40)+"\n")
	require.NoError(t, err)
	require.NoError(t, z.Close())
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		answer(textVersion, b.String()[:100])(w, nil)
		w.(http.Flusher).Flush() // no length is told
		_, _ = io.WriteString(w, b.String()[100:])
	})
	s := newScraper(t, Config{MaxBody: int64(b.Len()) - 1})
	sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
	require.NoError(t, sweep.Err())
}

func TestHeadersAreBounded(t *testing.T) {
	for size, reason := range map[int]Reason{3 << 10: None, 5 << 10: Header, 70 << 10: Header} {
		base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Fill", strings.Repeat("x", size))
			answer(textVersion, waitingPage(1))(w, nil)
		})
		s := newScraper(t, Config{})
		sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
		require.Equal(t, reason, reasonOf(sweep.Pods[0].Values[0].Err), "%v", sweep.Pods[0].Values[0].Err)
	}
}
