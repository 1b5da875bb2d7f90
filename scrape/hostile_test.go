package scrape

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const secret = "s3cr3t-t0ken-that-must-not-leak.0123456789"

func answer(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		_, _ = io.WriteString(w, body)
	}
}

func zipped(tb testing.TB, size int64, start string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, start)
	require.NoError(tb, err)
	_, err = io.CopyN(z, zeros{}, size)
	require.NoError(tb, err)
	require.NoError(tb, z.Close())
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// raw answers a request with bytes and closes the connection.
func raw(answer string) func(net.Conn) {
	return func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, answer)
	}
}

// TestHostilePodsBesideHealthyOnes is one sweep over every kind of bad pod that is known, and three good ones. The bad
// ones may cost neither the others' values, nor time, nor memory, nor the token.
func TestHostilePodsBesideHealthyOnes(t *testing.T) {
	page := waitingPage(7)
	var elsewhere atomic.Int32
	target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		answer(textVersion, waitingPage(1e6))(w, nil)
	})
	var looped atomic.Int32
	// Members of a gzip stream follow each other: a quarter of a GiB in 264 KB.
	bomb := bytes.Repeat(zipped(t, 1<<20, page), 256)
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	rows := []struct {
		name   string
		base   string
		reason Reason
		text   string // part of the error
	}{
		{"redirect to another host", serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target+"/latest/meta-data", http.StatusFound)
		}), Redirect, "another origin"},
		{"redirect that echoes the token", serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target+"/?"+r.Header.Get("Authorization"), http.StatusFound)
		}), Redirect, "another origin"},
		{"redirect to a path of slashes", serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://"+r.Host+"//"+target[len("http://"):])
			w.WriteHeader(http.StatusTemporaryRedirect)
		}), Redirect, "path that is refused"},
		{"redirect without an address", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusFound)
		}), Redirect, "no address"},
		{"redirect loop", serve(t, func(w http.ResponseWriter, r *http.Request) {
			looped.Add(1)
			http.Redirect(w, r, "/metrics?again", http.StatusTemporaryRedirect)
		}), Redirect, "twice"},
		{"endless body", serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", textVersion)
			chunk := bytes.Repeat([]byte("x 1\n"), 1<<14)
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}), TooLarge, "more than 1048576 bytes"},
		{"a length above the limit", serveRaw(t, raw(head+"Content-Length: 99999999999\r\n\r\nx 1\n")), TooLarge, "99999999999 bytes"},
		{"a long length and few bytes", serveRaw(t, raw(head+"Content-Length: 1000000\r\n\r\nx 1\n")), Truncated, "unexpected EOF"},
		{"slow drip", serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", textVersion)
			drip := time.NewTicker(20 * time.Millisecond)
			defer drip.Stop()
			for {
				select {
				case <-r.Context().Done():
					return
				case <-drip.C:
					_, _ = io.WriteString(w, "x 1\n")
					w.(http.Flusher).Flush()
				}
			}
		}), Timeout, "deadline exceeded"},
		{"header of a megabyte", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Fill", strings.Repeat("x", 1<<20))
			answer(textVersion, page)(w, nil)
		}), Header, "exceeded 65536 bytes"},
		{"close-delimited and cut", serveRaw(t, raw("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"+page[:len(page)-2])), Truncated, "inside of a line"},
		{"close-delimited and empty", serveRaw(t, raw("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n")), Truncated, "inside of a line"},
		{"shorter than its length", serveRaw(t, raw(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(page)+1, page))), Truncated, "unexpected EOF"},
		{"chunks without an end", serveRaw(t, raw(fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", head, len(page), page))), Truncated, "unexpected EOF"},
		{"closed without an answer", serveRaw(t, raw("")), Truncated, "EOF"},
		{"HTML", serve(t, answer("text/html; charset=utf-8", "<html>"+page)), ContentType, `"text/html; charset=utf-8" is not text/plain; it begins "<html># TYPE`},
		{"JSON", serve(t, answer("application/json", `{"x": 1}`)), ContentType, `{\"x\": 1}`},
		{"octets", serve(t, answer("application/octet-stream", "\x00\x01")), ContentType, `"\x00\x01"`},
		{"OpenMetrics", serve(t, answer("application/openmetrics-text; version=1.0.0; charset=utf-8", string(loadPage(t, "constructed-vllm-v1-dp1.openmetrics.txt")))), ContentType, "application/openmetrics-text"},
		{"protobuf", serve(t, answer("application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily", "\n\x01")), ContentType, "protobuf"},
		{"HTML said to be text", serve(t, answer(textVersion, "<html>busy</html>")), NotFound, "no family"},
		{"gzip bomb", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(textVersion, string(bomb))(w, nil)
		}), TooLarge, "more than 1048576 bytes"},
		{"broken gzip", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(textVersion, page)(w, nil)
		}), Encoding, "invalid header"},
		{"cut gzip", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(textVersion, string(bomb[:40]))(w, nil)
		}), Truncated, "unexpected EOF"},
		{"brotli", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			answer(textVersion, page)(w, nil)
		}), Encoding, `"br" was not asked for`},
		{"500", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", textVersion)
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, page)
		}), Status, "500 Internal Server Error"},
		{"204", serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), Status, "204 No Content"},
		{"empty body", serve(t, answer(textVersion, "")), NotFound, "no family vllm:num_requests_waiting"},
		{"the token in an HTML page", serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer("text/html", "<p>"+r.Header.Get("Authorization")+" "+r.Header.Get("Authorization")+"</p>")(w, nil)
		}), ContentType, "[redacted]"},
		{"the token's end at the cut", serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer("text/html", strings.Repeat("x", 50)+r.Header.Get("Authorization"))(w, nil)
		}), ContentType, "[redacted]"},
		{"a part of the token", serve(t, answer("text/html", "<p>"+secret[:20]+"</p>")), ContentType, "[redacted]"},
		{"the token in the content type", serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer("x/"+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "")(w, nil)
		}), ContentType, "[redacted]"},
		{"the token as a value", serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer(textVersion, "vllm:num_requests_waiting "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+"\n")(w, nil)
		}), Parse, "[redacted]"},
		{"the token as a label, twice", serve(t, func(w http.ResponseWriter, r *http.Request) {
			line := "vllm:num_requests_waiting{a=\"" + r.Header.Get("Authorization") + "\"} 1\n"
			answer(textVersion, line+line)(w, nil)
		}), Duplicate, "[redacted]"},
		{"the token in braces", serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer(textVersion, "{"+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+" vllm:num_requests_waiting\n")(w, nil)
		}), Parse, "[redacted]"},
		{"the token instead of HTTP", serveRaw(t, func(c net.Conn) {
			_, _ = io.WriteString(c, strings.Split(readRequest(c), "Bearer ")[1])
		}), Header, "[redacted]"},
		{"silence after accepting", serveRaw(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), Timeout, "deadline exceeded"},
		{"a backlog that nobody accepts from", unaccepted(t), Timeout, "deadline exceeded"},
		{"nothing listens", closedPort(t), Refused, "connection refused"},
		{"http spoken to a TLS port", "https" + strings.TrimPrefix(serve(t, answer(textVersion, page)), "http"), TLS, "first record does not look like a TLS handshake"},
	}
	var pods []Pod
	for i, row := range rows {
		pods = append(pods, Pod{Name: fmt.Sprintf("hostile-%02d", i), URL: row.base + "/metrics"})
	}
	for i, v := range []float64{1, 2, 6} {
		pods = append(pods, newFakePod(t, fmt.Sprintf("well-%d", i), waitingPage(v)).pod)
	}
	const timeout = 800 * time.Millisecond
	s := newScraper(t, Config{
		Timeout: timeout, MaxBody: 1 << 20, Token: secret, AllowTokenOverHTTP: true, Concurrency: 64,
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	sweep := s.Scrape(t.Context(), pods)
	took := time.Since(begun)
	runtime.ReadMemStats(&after)

	t.Logf("%d pods in %v, %d MB allotted", len(pods), took, (after.TotalAlloc-before.TotalAlloc)>>20)
	require.Less(t, took, 5*timeout)
	// 256 MiB of zeros, and bodies without an end: what is allotted stays in the order of limit times pods, servers
	// included.
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(40<<20))
	require.Len(t, sweep.Pods, len(pods))
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			value := sweep.Pods[i].Values[0]
			require.False(t, value.OK)
			require.NotNil(t, value.Err)
			require.Equal(t, row.reason, value.Err.Reason, "%v", value.Err)
			require.ErrorContains(t, value.Err, row.text)
			require.Equal(t, row.reason.Fetch(), sweep.Pods[i].Fetches[0].Err != nil)
			if row.reason.Fetch() {
				require.Zero(t, sweep.Pods[i].Fetches[0].Bytes, "of a page that was not had")
			}
			for k := range len(secret) - telling + 1 {
				require.NotContains(t, value.Err.Error(), secret[k:k+telling])
			}
		})
	}
	for _, p := range sweep.Pods[len(rows):] {
		require.True(t, p.Values[0].OK, "%v", p.Values[0].Err)
	}
	r := sweep.Readings[0]
	require.Equal(t, int32(3), r.Values)
	require.Equal(t, count(len(rows)), r.Failed)
	require.InDelta(t, 9/float64(len(pods)), r.Lower, 1e-12)
	require.Zero(t, elsewhere.Load(), "a redirect was followed to another origin")
	require.Equal(t, int32(2), looped.Load(), "one redirect is followed, and no second")
	require.NoError(t, sweep.Err())
}

// unaccepted is a listener that never accepts: the kernel completes the connection and nothing more happens.
func unaccepted(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// closedPort is an address at which nothing listens any more.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "http://" + l.Addr().String()
}

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

func TestRedact(t *testing.T) {
	require.Equal(t, "a [redacted] b", string(redact([]byte("a "+secret+" b"), forms(secret), 64)))
	require.Equal(t, "xx[redacted]", string(redact([]byte("xx"+secret), forms(secret), 3)), "the cut cannot leave a part")
	require.Equal(t, "[redacted]", string(redact([]byte("abc"), forms("abc"), 64)), "a short token")
	require.Equal(t, "[redacted]", string(redact([]byte("~"), forms("~"), 64)), "a token of one byte")
	require.Equal(t, "[redacted]", string(redact([]byte(secret[3:20]), forms(secret), 64)), "a part at the end")
	require.Equal(t, "[redacted]!", string(redact([]byte(secret[:8]+"!"), forms(secret), 64)), "eight bytes in a row are a part")
	require.Equal(t, secret[:7]+"!", string(redact([]byte(secret[:7]+"!"), forms(secret), 64)))
	require.Equal(t, "text", string(redact([]byte("text"), forms(""), 64)))
	require.Equal(t, "tex", string(redact([]byte("text"), forms(""), 3)))
}

// TestRedactLeavesNothing: of a token in a form that an answer may have, no byte is shown.
func TestRedactLeavesNothing(t *testing.T) {
	for _, token := range []string{secret, `q"w<e>r&t'y\u/i+o=p%41~`} {
		inJSON, err := json.Marshal(token)
		require.NoError(t, err)
		percent := regexp.MustCompile("..").ReplaceAllString(hex.EncodeToString([]byte(token)), "%$0")
		for _, form := range []string{
			token, string(inJSON[1 : len(inJSON)-1]), html.EscapeString(token), url.PathEscape(token), url.QueryEscape(token),
			strings.ToLower(url.QueryEscape(token)), hex.EncodeToString([]byte(token)), strings.ToUpper(hex.EncodeToString([]byte(token))),
			percent, strings.ToUpper(percent), base64.RawStdEncoding.EncodeToString([]byte(token)), base64.RawURLEncoding.EncodeToString([]byte(token)),
		} {
			reverse := []byte(form)
			slices.Reverse(reverse)
			for _, sent := range []string{form, string(reverse)} {
				for range 4 { // as it is, and quoted up to three times
					require.Equal(t, "[redacted]", string(redact([]byte(sent), forms(token), 64)), sent)
					sent = strings.TrimSuffix(strings.TrimPrefix(strconv.Quote(sent), `"`), `"`)
				}
			}
		}
	}
}

// TestRedactOfWhatIsWithinBase64: of base64 that has more than the token, what depends on the token alone is not shown.
func TestRedactOfWhatIsWithinBase64(t *testing.T) {
	for before, shown := range map[string]int{"a": 2, "ab": 3} {
		token := "0123456789-token-of-27-bytes"[:29-len(before)-1]
		whole := base64.StdEncoding.EncodeToString([]byte(before + token))
		for strings.HasSuffix(whole, "=") {
			token = token[:len(token)-1]
			whole = base64.StdEncoding.EncodeToString([]byte(before + token))
		}
		require.Equal(t, whole[:shown]+"[redacted]", string(redact([]byte(whole), forms(token), 64)))
	}
}

// TestTokensInDisguise: a pod that sends the token back in another form finds it in no message, of a page nor of an error
// page.
func TestTokensInDisguise(t *testing.T) {
	reverse := func(s string) string { b := []byte(s); slices.Reverse(b); return string(b) }
	disguises := map[string]func(string) string{
		"as it is": func(s string) string { return s }, "backwards": reverse, "quoted": strconv.Quote,
		"quoted twice":         func(s string) string { return strconv.Quote(strconv.Quote(s)) },
		"base64":               func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 of the header": func(s string) string { return base64.URLEncoding.EncodeToString([]byte("Bearer " + s)) },
		"base64 with a colon":  func(s string) string { return base64.StdEncoding.EncodeToString([]byte("ab" + s + ":x")) },
		"base64 backwards":     func(s string) string { return reverse(base64.StdEncoding.EncodeToString([]byte(s))) },
		"hexadecimal":          func(s string) string { return hex.EncodeToString([]byte(s)) },
		"a query":              url.QueryEscape, "a path": url.PathEscape, "HTML": html.EscapeString,
		"percent": func(s string) string {
			return strings.ToUpper(regexp.MustCompile("..").ReplaceAllString(hex.EncodeToString([]byte(s)), "%$0"))
		},
	}
	for _, token := range []string{secret, `a"b"c"d"e"f"g"h"i"j"k`, `q\w\e\r\t\y\u\i\o\p`, `<&">/+=%41%42\"'.~abcdef`, "short1"} {
		for name, disguise := range disguises {
			sent := disguise(token)
			for _, body := range []struct{ contentType, text string }{
				{"text/html", "<p>" + sent + "</p>"},
				{"x/" + sent, ""},
				{textVersion, "vllm:num_requests_waiting " + sent + "\n"},
				{textVersion, "vllm:num_requests_waiting{a=" + strconv.Quote(sent) + "} 1\nvllm:num_requests_waiting{a=" + strconv.Quote(sent) + "} 1\n"},
			} {
				base := serve(t, answer(body.contentType, body.text))
				s := newScraper(t, Config{Token: token, AllowTokenOverHTTP: true})
				sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
				require.NotNil(t, sweep.Pods[0].Values[0].Err)
				said := sweep.Pods[0].Values[0].Err.Error()
				for _, shown := range []string{sent, strings.Trim(strconv.Quote(sent), `"`)} {
					for k := range len(shown) - 2*telling {
						require.NotContains(t, said, shown[k:k+2*telling], "%s of %s in %s", name, token, body.text)
					}
				}
			}
		}
	}
}

// TestErrorsAreShort: an error shows 64 bytes of an answer, and has at most 300 bytes that a pod may have chosen.
func TestErrorsAreShort(t *testing.T) {
	f := &fetcher{}
	require.Equal(t, strconv.Quote(strings.Repeat("x", 64)), f.excerpt(bytes.Repeat([]byte("x"), 1000)))
	long := f.clean(failf(Parse, "%s", strings.Repeat("x", 1000)))
	require.Equal(t, "Parse: "+strings.Repeat("x", 300), long.Error())
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

// TestHeadersAreBounded: 60 KiB of headers are read, and 70 KiB are not.
func TestHeadersAreBounded(t *testing.T) {
	for size, reason := range map[int]Reason{60 << 10: None, 70 << 10: Header} {
		base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Fill", strings.Repeat("x", size))
			answer(textVersion, waitingPage(1))(w, nil)
		})
		s := newScraper(t, Config{})
		sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
		require.Equal(t, reason, reasonOf(sweep.Pods[0].Values[0].Err), "%v", sweep.Pods[0].Values[0].Err)
	}
}

// TestALongLengthTakesNoMemory: memory is taken for what came, not for what is said to come.
func TestALongLengthTakesNoMemory(t *testing.T) {
	length := 16 << 20
	base := serveRaw(t, raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\nx 1\n", length)))
	s := newScraper(t, Config{Concurrency: 1})
	var pods []Pod
	for i := range 20 {
		pods = append(pods, Pod{Name: fmt.Sprint(i), URL: base + "/metrics"})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sweep := s.Scrape(t.Context(), pods)
	runtime.ReadMemStats(&after)
	require.Equal(t, Truncated, sweep.Pods[0].Values[0].Err.Reason)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

// TestReadingEndsWithItsTimeout: a page that never ends, of lines that are wanted, of comments, or of what gzip makes of
// nothing, costs its timeout and no more, as a sweep does.
func TestReadingEndsWithItsTimeout(t *testing.T) {
	endless := func(chunk []byte, header ...string) string {
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", textVersion)
			for _, h := range header {
				w.Header().Set("Content-Encoding", h)
			}
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})
	}
	bases := []string{
		endless(bytes.Repeat([]byte("# TYPE vllm:num_requests_waiting gauge\n"), 1000)),
		endless(bytes.Repeat([]byte("# HELP vllm:num_requests_waiting_sum x\n\ufeff\n"), 1000)),
		endless(zipped(t, 64<<20, "x 1\n"), "gzip"),
	}
	const timeout = 300 * time.Millisecond
	for _, config := range []Config{
		{Timeout: timeout, MaxBody: 1 << 39},
		{Timeout: 10 * time.Second, SweepTimeout: timeout, MaxBody: 1 << 39},
	} {
		for i, base := range bases {
			s := newScraper(t, config)
			begun := time.Now()
			sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
			require.Less(t, time.Since(begun), 4*timeout, "page %d", i)
			require.Contains(t, []Reason{Timeout, Deadline, TooLarge}, sweep.Pods[0].Values[0].Err.Reason, "%v", sweep.Pods[0].Values[0].Err)
		}
	}
}

// TestASweepReadsSoMuch: however long the pages may be, a sweep reads 64 MiB and 1 MiB for each pod.
func TestASweepReadsSoMuch(t *testing.T) {
	var sent atomic.Int64
	chunk := bytes.Repeat([]byte("x 1\n"), 1<<16)
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", textVersion)
		for range 15 * 4 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	var pods []Pod
	for i := range 20 {
		pods = append(pods, Pod{Name: fmt.Sprint(i), URL: base + "/metrics"})
	}
	s := newScraper(t, Config{Concurrency: 2, Interval: time.Minute, Timeout: 30 * time.Second})
	sweep := s.Scrape(t.Context(), pods)
	require.Equal(t, [2]int64{64 << 20, 1 << 20}, [2]int64{sweepBytes, podBytes}, "as the error says")
	large := 0
	for _, p := range sweep.Pods {
		if p.Values[0].Err.Reason == TooLarge {
			require.ErrorContains(t, p.Values[0].Err, "the pages of this sweep are longer than")
			large++
		}
	}
	require.InDelta(t, 20-(64+20)/15, large, 1)
	require.Less(t, sent.Load(), int64((64+20+20*8)<<20))
}
