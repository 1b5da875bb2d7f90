package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhoAsks sends token, tenant and certificate, and to nobody else.
func TestWhoAsks(t *testing.T) {
	var seen http.Header
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the token went elsewhere") }))
	defer elsewhere.Close()
	redirect := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen = req.Header
		if redirect {
			http.Redirect(w, req, elsewhere.URL, http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	require.NoError(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	with := []string{"-prometheus", server.URL, "-model", "m", "-bearer-token-file", token, "-tenant", "team", "-report", ""}

	code, _, errs := start(t, append(with, "-tls-ca", ca)...)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "no engine has any value")
	require.Equal(t, "Bearer s3cret", seen.Get("Authorization"))
	require.Equal(t, "team", seen.Get("X-Scope-OrgID"))

	// Without a model it said: -model : no engine has any value of it.
	code, _, errs = start(t, "-prometheus", server.URL, "-tls-ca", ca, "-report", "")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "simulate: -prometheus: has no value of any engine in this range.")

	redirect = true
	code, _, errs = start(t, append(with, "-tls-ca", ca)...)
	require.Equal(t, exitFail, code)
	require.Contains(t, errs, "redirected")
	require.NotContains(t, errs, "s3cret")

	code, _, errs = start(t, with...)
	require.Equal(t, exitFail, code)
	require.Contains(t, errs, "certificate")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, says bytes.Buffer
	require.Equal(t, exitFail, run(ctx, append(with, "-tls-ca", ca), &out, &says))
	require.Contains(t, says.String(), "stopped")
	require.True(t, errors.Is(ctx.Err(), context.Canceled))
	require.False(t, strings.Contains(says.String(), "s3cret"))
}

// TestRegressionWhoAsksByAFile: behind a proxy that wants a user and a password, as Grafana Cloud, or further headers, nothing could be
// asked. They go to nobody else, and what is said has no secret, however the server sends it back.
func TestRegressionWhoAsksByAFile(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the password went elsewhere") }))
	defer elsewhere.Close()
	const password = `s3cret"<&>pass`
	var seen http.Header
	redirect := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen = req.Header
		user, given, _ := req.BasicAuth()
		switch {
		case redirect:
			http.Redirect(w, req, elsewhere.URL, http.StatusTemporaryRedirect)
		case user != "me" || given != password:
			says, err := json.Marshal(map[string]string{"status": "error", "errorType": "bad_data", "error": given + " " + req.Header.Get("Authorization") + req.Header.Get("X-Key")})
			assert.NoError(t, err)
			status := http.StatusUnauthorized
			if user == "json" {
				status = http.StatusBadRequest // which the client reads
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, "%s", says)
		default:
			fmt.Fprint(w, `{"status":"success","warnings":["asked by s3cret-key"],"data":{"resultType":"matrix","result":[]}}`)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write("password", password+"\n")
	write("key", "s3cret-key\n")
	ask := func(text string, more ...string) (int, string) {
		t.Helper()
		code, out, errs := start(t, append(more, "-prometheus", server.URL, "-model", "m", "-engine", "VLLM", "-http-config", write("http.yml", text), "-report", "")...)
		require.NotContains(t, out+errs, "s3cret")
		require.NotContains(t, out+errs, base64.StdEncoding.EncodeToString([]byte("me:" + password))[:12])
		return code, errs
	}
	const rest = "tls_config: {ca_file: ca.pem}\nhttp_headers:\n  X-Scope-OrgID: {values: [team]}\n  X-Key: {files: [key]}\n"
	code, errs := ask("basic_auth: {username: me, password_file: password}\n" + rest)
	require.Equal(t, exitRefused, code, errs)
	require.Contains(t, errs, "Prometheus says: asked by ***")
	require.Equal(t, "team", seen.Get("X-Scope-OrgID"))
	require.Equal(t, "s3cret-key", seen.Get("X-Key"))
	_, errs = ask("authorization: {credentials_file: key}\n" + rest)
	require.Equal(t, "Bearer s3cret-key", seen.Get("Authorization"), errs)
	for user, says := range map[string]string{
		"refused": "answered 401 Unauthorized: {\"error\":\"*** Basic ******\"", "json": "*** Basic ******",
	} {
		code, errs = ask("basic_auth: {username: " + user + ", password_file: password}\n" + rest)
		require.Equal(t, exitFail, code)
		require.Contains(t, errs, says)
	}
	redirect = true
	code, errs = ask("basic_auth: {username: me, password_file: password}\n" + rest)
	require.Equal(t, exitFail, code)
	require.Contains(t, errs, "redirected")
	redirect = false

	for text, says := range map[string]string{
		"basic_auth: s3cret":                                                             "http.yml: line 1: must be as promtool's --http.config.file",
		"basic_auth: {username: me, password: a,s3cret}":                                 "http.yml: line 1: must be",
		"basic_auth: {username: me, password: *s3cret}":                                  "http.yml: YAML: must be",
		"proxy_url: 'http://me:s3cret@%zz'":                                              "http.yml: proxy_url: must be a URL",
		"basic_auth: {password: s3cret, password_file: f}":                               "at most one of basic_auth password,",
		"basic_auth: {username: me, password_file: none}":                                "basic_auth.password_file: open " + filepath.Join(dir, "none"),
		"basic_auth: {username: me, password_ref: s3cret}":                               "basic_auth.password_ref: is not supported",
		"tls_config: {ca_file: password}":                                                "http.yml: tls_config: unable to use specified CA cert",
		"oauth2: {client_id: me, client_secret: s3cret, token_url: 'https://x.invalid'}": "oauth2: is not supported",
	} {
		code, errs = ask(text)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errs, says, text)
	}
	code, errs = ask("", "-tenant", "team")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "-tenant does not go with -http-config")
}

// TestAServerThatRefusesIsQuoted: the error has what the server says, and the flags that help, but not the token that it sends back.
func TestAServerThatRefusesIsQuoted(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	for _, row := range []struct {
		status     int
		body, says string
	}{
		{http.StatusUnauthorized, "no user of\nBearer s3cret", "answered 401 Unauthorized: no user of Bearer ***; -http-config, -bearer-token-file, -tls-cert and -tenant say who asks"},
		{http.StatusForbidden, "", "answered 403 Forbidden; -http-config, -bearer-token-file, -tls-cert and -tenant say who asks"},
		{http.StatusNotFound, "404 page not found", "answered 404 Not Found: 404 page not found; -prometheus must have the path before /api/v1"},
		{http.StatusServiceUnavailable, `{"status":"error","errorType":"timeout","error":"query timed out"}`, `answered 503 Service Unavailable: {"status":"error","errorType":"timeout","error":"query timed out"}`},
		{http.StatusUnprocessableEntity, `{"status":"error","errorType":"execution","error":"too many samples"}`, "too many samples"},
		{http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"no tenant of Bearer s3cret"}`, "no tenant of Bearer ***"},
		{http.StatusUnprocessableEntity, `{"status":"error","errorType":"s3cret","error":"s3cret"}`, "***: ***"},
		{http.StatusOK, `{"status":"error","errorType":"execution","error":"no tenant of Bearer s3cret"}`, "execution: no tenant of Bearer ***"},
		{http.StatusBadGateway, strings.Repeat("x", 5000), strings.Repeat("x", 200) + "..."},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(row.status)
			fmt.Fprint(w, row.body)
		}))
		code, _, errs := start(t, "-prometheus", server.URL, "-model", "m", "-bearer-token-file", token, "-report", "")
		server.Close()
		require.Equal(t, exitFail, code)
		require.Contains(t, errs, row.says)
		require.NotContains(t, errs, "s3cret")
	}
}

// TestALoginInPlaceOfPrometheus: a page is named with its address, not "bad_response: invalid character '<'".
func TestALoginInPlaceOfPrometheus(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "\n<html>who are you,\ns3cret?")
	}))
	defer server.Close()
	for _, more := range [][]string{nil, {"-engine", "VLLM"}} {
		code, _, errs := start(t, append(more, "-prometheus", server.URL, "-model", "m", "-bearer-token-file", token, "-report", "")...)
		require.Equal(t, exitFail, code)
		require.Regexp(t, server.URL+`/api/v1/query(_range)? answered what no Prometheus does: "<html>who are you, \*\*\*\?"; for a login, -http-config, -bearer-token-file or -tls-cert`, errs)
	}
}

// TestRegressionWhatIsWrongWithTheConnection: of http in place of https it said: client_error: client error: 400. Of a certificate nobody
// knew which flag makes it trusted.
func TestRegressionWhatIsWrongWithTheConnection(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, _, errs := start(t, "-prometheus", strings.Replace(server.URL, "https", "http", 1), "-report", "")
	require.Contains(t, errs, `answered what no Prometheus does: "Client sent an HTTP request to an HTTPS server."`)
	_, _, errs = start(t, "-prometheus", server.URL, "-report", "")
	require.Contains(t, errs, "; -tls-ca, or tls_config of -http-config, says whom to trust")
}

// TestAskedForWholeAnswers: VictoriaMetrics leaves out what is on a node that is away, which no client sees, unless it is asked not to.
// Who may only GET is asked so after the 403 to a POST, as behind the proxy of a Kubernetes API server.
func TestAskedForWholeAnswers(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method != method {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			asked++
			assert.Equal(t, "1", req.FormValue("deny_partial_response"))
			assert.NotEmpty(t, req.FormValue("query"))
			fmt.Fprint(w, `{"status":"success","warnings":["a store is away"],"data":{"resultType":"matrix","result":[]}}`)
		}))
		var says bytes.Buffer
		p := &remote{
			url: server.URL, engine: "VLLM", maxSeries: 1, maxBytes: 1 << 20, stderr: &says,
			end: time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC), length: time.Hour,
		}
		_, err := p.fetch(t.Context())
		server.Close()
		require.NoError(t, err)
		require.Greater(t, asked, 10)
		require.Equal(t, 1, strings.Count(says.String(), "warning: Prometheus says: a store is away"), says.String())
	}
}

// TestAServerThatIsBusyIsAskedAgain: one 503 of a proxy ended an import of minutes. The first question is not asked again, and none for ever.
func TestAServerThatIsBusyIsAskedAgain(t *testing.T) {
	for _, row := range []struct {
		busy   func(n int) bool // whether the n-th question, from 0, finds no room
		after  string
		pauses []time.Duration
		fails  bool
	}{
		{busy: func(n int) bool { return n >= 2 && n < 5 }, pauses: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{busy: func(n int) bool { return n == 2 }, after: "7", pauses: []time.Duration{7 * time.Second}},
		{busy: func(n int) bool { return n == 2 }, after: "86400", pauses: []time.Duration{time.Minute}},
		{busy: func(n int) bool { return n == 0 }, fails: true},
		{busy: func(n int) bool { return n >= 2 }, fails: true, pauses: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}},
	} {
		n := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			assert.NotEmpty(t, req.FormValue("query"), "a question has its body each time")
			if n++; row.busy(n - 1) {
				w.Header().Set("Retry-After", row.after)
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
		}))
		var says bytes.Buffer
		p := &remote{url: server.URL, maxBytes: 1 << 20, stderr: &says}
		ask, c, err := p.client()
		require.NoError(t, err)
		var pauses []time.Duration
		c.pause = func(_ context.Context, d time.Duration) error {
			pauses = append(pauses, d)
			return nil
		}
		end := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
		for range 4 {
			if _, _, _, err = ask.QueryRange(t.Context(), "up", prometheus.Range{Start: end.Add(-time.Hour), End: end, Step: time.Minute}); err != nil {
				break
			}
		}
		server.Close()
		require.Equal(t, row.fails, err != nil, "%v", err)
		require.Equal(t, row.pauses, pauses)
		require.Equal(t, len(pauses), strings.Count(says.String(), "simulate: Prometheus answered 503 Service Unavailable: asking again in "))
		if row.fails {
			require.ErrorContains(t, err, "answered 503 Service Unavailable")
		}
	}
}
