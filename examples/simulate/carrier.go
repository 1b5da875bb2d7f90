package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"

	"github.com/inferscale/inferscale/internal/printable"
)

const (
	// mostAgain is how often a question is asked again for which there was no room. The first one is not: nobody waits for a wrong address.
	mostAgain = 5
	// mostExplained is how long an error in an answer of status 200 may be, in bytes.
	mostExplained = 64 << 10
	// tenantHeader is what Mimir, Cortex and Loki tell tenants by.
	tenantHeader = "X-Scope-OrgID"
)

// A carrier adds what tells who asks, and counts what is answered.
type carrier struct {
	base       http.RoundTripper
	to         *url.URL
	header     http.Header // of each request
	secrets    []string    // which nothing says
	left, most int64
	answered   bool // whether it has answered before
	stderr     io.Writer
	pause      func(ctx context.Context, d time.Duration) error
}

// RoundTrip sends a request.
func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != c.to.Host || req.URL.Scheme != c.to.Scheme {
		return nil, fmt.Errorf("asked to go to %s", req.URL.Host)
	}
	req = req.Clone(req.Context())
	// While a storage node is away VictoriaMetrics answers what the others have, and says so where a client of Prometheus does not look.
	params := req.URL.Query()
	params.Set("deny_partial_response", "1")
	req.URL.RawQuery = params.Encode()
	maps.Copy(req.Header, c.header)
	res, err := c.base.RoundTrip(req)
	for n := 0; err == nil && c.answered && n < mostAgain && isBusy(res); n++ {
		if err = c.wait(req, res, n); err == nil {
			res, err = c.base.RoundTrip(req)
		}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return nil, fmt.Errorf("%w; -tls-ca, or tls_config of -http-config, says whom to trust", err)
	}
	if err != nil {
		return nil, err
	}
	c.answered = c.answered || res.StatusCode == http.StatusOK
	res.Body = &counted{res.Body, c}
	switch res.StatusCode {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return res, nil // the client knows what these mean
	case http.StatusForbidden:
		if req.Method == http.MethodPost { // who may only read may still GET, which the client tries next
			return res, nil
		}
	}
	if res.StatusCode >= 400 {
		return nil, c.refused(res)
	}
	return res, nil
}

// isBusy reports whether a server, or what is before it, has no room for a question now.
func isBusy(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// wait waits before a question is asked again, for the n-th time: 1 s, and twice as long each time, or as long as the answer says.
func (c *carrier) wait(req *http.Request, res *http.Response, n int) error {
	d := time.Second << n
	if says, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 32); err == nil {
		d = min(max(d, time.Duration(says)*time.Second), time.Minute)
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "simulate: Prometheus answered %d %s: asking again in %s\n", res.StatusCode, http.StatusText(res.StatusCode), d)
	if err := c.pause(req.Context(), d); err != nil {
		return err
	}
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	req.Body = body
	return err
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// A censor takes secrets out of what the server answers in place of data, before the client makes an error of it.
type censor struct {
	api.Client

	of *carrier
}

// Do sends a request.
func (c *censor) Do(ctx context.Context, req *http.Request) (*http.Response, []byte, error) {
	res, body, err := c.Client.Do(ctx, req)
	if err != nil {
		return res, body, err
	}
	if begin := bytes.TrimSpace(body[:min(len(body), 4096)]); (res.StatusCode < 300 || res.StatusCode == http.StatusBadRequest) && !bytes.HasPrefix(begin, []byte("{")) {
		says := printable.Cut(strings.Join(strings.Fields(c.of.without(string(begin))), " "), 200)
		return res, body, fmt.Errorf("%s answered what no Prometheus does: %q; for a login, -http-config, -bearer-token-file or -tls-cert say who asks; or does -prometheus lack a path before /api/v1?", req.URL.Redacted(), says)
	}
	var says struct {
		Status string `json:"status"`
	}
	if refused := res.StatusCode >= 400; refused || len(body) <= mostExplained && (json.Unmarshal(body, &says) != nil || says.Status != "success") {
		body = []byte(c.of.without(string(body)))
	}
	return res, body, nil
}

// without is a text of the server without the secrets, which it may send back.
func (c *carrier) without(text string) string {
	for _, s := range slices.SortedFunc(slices.Values(c.secrets), func(a, b string) int { return len(b) - len(a) }) {
		text = strings.ReplaceAll(text, s, "***") // one may contain another
	}
	return text
}

// refused is the error for an answer that is none, with the beginning of what the server says.
func (c *carrier) refused(res *http.Response) error {
	defer res.Body.Close() //nolint:errcheck // it was only read
	body, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	text := fmt.Sprintf("answered %d %s", res.StatusCode, http.StatusText(res.StatusCode)) // the server's own words may have secrets
	if says := strings.Join(strings.Fields(c.without(string(body))), " "); says != "" {
		text += ": " + printable.Cut(says, 200)
	}
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		text += "; -http-config, -bearer-token-file, -tls-cert and -tenant say who asks"
	case http.StatusNotFound:
		text += "; -prometheus must have the path before /api/v1, as http://mimir/prometheus"
	}
	return errors.New(text)
}

// read returns how many bytes were answered.
func (c *carrier) read() int64 { return c.most - c.left }

type counted struct {
	io.ReadCloser

	by *carrier
}

// Read counts what it reads, and fails where that is too much.
func (b *counted) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.by.left -= int64(n); b.by.left < 0 {
		return n, fmt.Errorf("the answers are of more than %d MB: raise -max-mb, or ask for a shorter -range or a longer -step", b.by.most>>20)
	}
	return n, err
}
