package scrape

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/inferscale/inferscale/scrape/internal/page"
)

const (
	// headerLimit is small, as no budget covers headers and a map of them takes 20 times their size. Engines send a few
	// hundred bytes.
	headerLimit   = 4 << 10
	drainLimit    = 4 << 10
	keepAliveUpTo = 4 * time.Second
	// idleLimit is just under the 5 s after which uvicorn, and so vLLM, closes an idle connection.
	idleLimit = 4500 * time.Millisecond
	// A sweep reads at most sweepBytes of pages, plus podBytes for each pod.
	sweepBytes = 64 << 20
	podBytes   = 1 << 20
)

// errSweep is the error of a page that is beyond the limit of a sweep.
var errSweep = errors.New("the pages of this sweep are longer than 64 MiB and 1 MiB for each pod")

// A fetcher gets pages. It has its own transports: the default one uses a proxy from the environment and keeps at most 100
// connections.
type fetcher struct {
	config        Config
	credentials   *credentials
	plain, secure *http.Transport
	headers       map[string]http.Header // by scheme
	filter        *page.Filter
	tokens        []string // the present one and those before it, which must not appear in errors
}

func newFetcher(c Config, filter *page.Filter) (*fetcher, error) {
	f := &fetcher{config: c, credentials: newCredentials(c), filter: filter}
	f.plain = f.transport(nil, c.Interval <= keepAliveUpTo, idleLimit)
	if err := f.refresh(); err != nil {
		return nil, err
	}
	return f, nil
}

// refresh reads the credential files again. After an error the last good ones stay in use.
func (f *fetcher) refresh() error {
	changed, err := f.credentials.reload()
	if err != nil {
		return err
	}
	if changed {
		if f.secure != nil {
			f.secure.CloseIdleConnections()
		}
		// A handshake costs more than the page: https connections are kept for the next sweep at any interval.
		f.secure = f.transport(f.credentials.tls, true, max(idleLimit, 2*f.config.Interval))
	}
	if token := f.credentials.token; token != "" && !slices.Contains(f.tokens, token) {
		f.tokens = append([]string{token}, f.tokens[:min(len(f.tokens), oldTokens)]...)
	}
	f.headers = map[string]http.Header{"http": f.header("http"), "https": f.header("https")}
	return nil
}

func (f *fetcher) close() {
	f.plain.CloseIdleConnections()
	f.secure.CloseIdleConnections()
}

func (f *fetcher) transport(t *tls.Config, keepAlive bool, idle time.Duration) *http.Transport {
	dialer := &net.Dialer{
		Timeout: f.config.DialTimeout,
		// No keep-alive probes: a connection is for one request, or is used again within seconds.
		KeepAliveConfig: net.KeepAliveConfig{Enable: false},
		KeepAlive:       -1,
	}
	if !f.config.AllowLocal {
		dialer.ControlContext = refuseLocal
	}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        t,
		TLSHandshakeTimeout:    f.config.Timeout,
		DisableKeepAlives:      !keepAlive,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        idle,
		MaxResponseHeaderBytes: headerLimit,
		WriteBufferSize:        1 << 10, // a request is shorter
	}
}

func (f *fetcher) header(scheme string) http.Header {
	h := http.Header{
		"Accept":          {"text/plain;version=0.0.4;q=1,*/*;q=0.1"},
		"Accept-Encoding": {"identity"},
		"User-Agent":      {"inferscale-scrape"},
		"X-Prometheus-Scrape-Timeout-Seconds": {
			strconv.FormatFloat(f.config.Timeout.Seconds(), 'g', -1, 64),
		},
	}
	if token := f.credentials.tokenFor(scheme); token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h
}

// get reads the page at u and returns its length.
func (f *fetcher) get(ctx context.Context, u *url.URL, into *lease) (int64, *Error) {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	for redirected := false; ; redirected = true {
		resp, err := f.send(ctx, u)
		if err != nil {
			return 0, f.classify(ctx, err)
		}
		next, fail := f.follow(u, resp, redirected)
		if next != nil {
			discard(resp)
			u = next
			continue
		}
		var n int64
		if fail == nil {
			n, fail = f.receive(ctx, u, resp, into)
		}
		if fail == nil {
			discard(resp)
		}
		_ = resp.Body.Close()
		return n, fail
	}
}

func (f *fetcher) send(ctx context.Context, u *url.URL) (*http.Response, error) {
	req := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: f.headers[u.Scheme]}
	transport := f.plain
	if u.Scheme == "https" {
		transport = f.secure
	}
	// A client instead of the transport would follow redirects and send the token along.
	return transport.RoundTrip(req.WithContext(ctx))
}

// discard reads a little of the rest, so that the connection can be used again, and closes the body.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, drainLimit)
	_ = resp.Body.Close()
}

// follow returns the target of a redirect if it may be followed: once, and only if scheme, host and port stay the same, as
// when a mounted application adds the '/' at the end of its path. Otherwise a pod could direct the scraper, and its token,
// to any service that this machine can reach.
func (f *fetcher) follow(u *url.URL, resp *http.Response, redirected bool) (*url.URL, *Error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := resp.Header.Get("Location")
	next, err := u.Parse(location)
	switch {
	case redirected:
		return nil, failf(Redirect, "redirected twice, to %s", f.excerpt([]byte(location)))
	case err != nil || location == "":
		return nil, failf(Redirect, "redirected to no address: %s", f.excerpt([]byte(location)))
	case next.Scheme != u.Scheme || !sameHost(next, u) || next.User != nil:
		return nil, failf(Redirect, "redirected to another origin: %s", f.excerpt([]byte(location)))
	case !validPath(next.RequestURI()):
		return nil, failf(Redirect, "redirected to a path that is refused: %s", f.excerpt([]byte(location)))
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: next.Path, RawPath: next.RawPath, RawQuery: next.RawQuery}, nil
}

func sameHost(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		switch {
		case u.Port() != "":
			return u.Port()
		case u.Scheme == "https":
			return "443"
		}
		return "80"
	}
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// receive checks a response and reads its body.
func (f *fetcher) receive(ctx context.Context, u *url.URL, resp *http.Response, into *lease) (int64, *Error) {
	if resp.StatusCode != http.StatusOK {
		hint := ""
		if resp.StatusCode == http.StatusUnauthorized && f.credentials.token != "" && f.credentials.tokenFor(u.Scheme) == "" {
			hint = ": the token was withheld, as the target is not https"
		}
		return 0, failf(Status, "%d %s%s", resp.StatusCode, http.StatusText(resp.StatusCode), hint)
	}
	if typ := resp.Header.Get("Content-Type"); !isText(typ) {
		// With the bytes after the 64 shown, the redaction sees which of the 64 are part of a token.
		start, _ := io.ReadAll(io.LimitReader(resp.Body, 4*excerptLength))
		return 0, failf(ContentType, "%s is not text/plain; it begins %s", f.excerpt([]byte(typ)), f.excerpt(start))
	}
	if resp.ContentLength > f.config.MaxBody {
		return 0, failf(TooLarge, "%d bytes, the limit is %d", resp.ContentLength, f.config.MaxBody)
	}
	encoding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	resp.Header = nil // the headers need not be held while the page is read
	if fail := into.begin(ctx); fail != nil {
		return 0, fail
	}
	into.page.Reset(f.filter, f.config.MaxSeries, into.more)
	body := into.reader(ctx, resp.Body)
	defer body.rest()
	delimited := resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0
	switch encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		unzipped, err := gzip.NewReader(compressed{io.LimitReader(resp.Body, f.config.MaxBody+1), body})
		if err != nil {
			return 0, f.classify(ctx, err)
		}
		// gzip ends in its own length and checksum
		body.Reader, body.zipped, delimited = unzipped, true, true
	default:
		return 0, failf(Encoding, "%s was not asked for", f.excerpt([]byte(encoding)))
	}
	n, err := into.page.Read(ctx, body, f.config.MaxBody)
	switch {
	case errors.Is(err, page.ErrLong):
		return n, failf(TooLarge, "more than %d bytes", f.config.MaxBody)
	case errors.Is(err, errSweep):
		return n, &Error{Reason: TooLarge, Err: err}
	case errors.Is(err, page.ErrSeries):
		return n, &Error{Reason: TooMany, Err: err}
	case errors.Is(err, page.ErrMemory):
		return n, failf(Memory, "the budget has no more room for the series of this page")
	case err != nil:
		return n, f.classify(ctx, err)
	case !delimited && (n == 0 || into.page.Open()):
		// Only the end of the connection marks the end of the body, so a last line without a newline may be incomplete: 14
		// of 147.
		return n, failf(Truncated, "the body ends inside of a line, and neither a length nor chunks say that it is complete")
	}
	return n, nil
}

// isText checks the media type only: its version says nothing that a parser of text could use, and servers send
// version=1.0.0 today.
func isText(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "" || media == "text/plain"
}

// classify turns an error of a request into a failure. Its text is cut and redacted, as net/http repeats malformed responses
// in it.
func (f *fetcher) classify(ctx context.Context, err error) *Error {
	var (
		dns         *net.DNSError
		op          *net.OpError
		alert       tls.AlertError
		record      tls.RecordHeaderError
		certificate *tls.CertificateVerificationError
		corrupt     flate.CorruptInputError
		network     net.Error
	)
	reason := Truncated
	text := err.Error()
	switch {
	case errors.Is(err, errForbidden):
		reason = Forbidden
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		reason = Timeout
	case errors.As(err, &alert), errors.As(err, &record), errors.As(err, &certificate), errors.Is(err, http.ErrSchemeMismatch),
		strings.Contains(text, "tls: "):
		reason = TLS
	case errors.Is(err, syscall.ECONNREFUSED):
		reason = Refused
	case errors.As(err, &dns), errors.As(err, &op) && op.Op == "dial":
		reason = Dial
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		reason = Encoding
	case strings.Contains(text, "response headers exceeded"), strings.Contains(text, "malformed"),
		strings.Contains(text, "bad Content-Length"), strings.Contains(text, "Transfer-Encoding"),
		strings.Contains(text, "transfer encoding"), strings.Contains(text, "1xx"):
		reason = Header
	}
	return &Error{Reason: reason, Err: f.safe(err, known(err))}
}

// known returns the sentinel behind err that callers may test for, as err itself repeats what a pod has sent.
func known(err error) error {
	for _, sentinel := range []error{
		context.DeadlineExceeded, context.Canceled, io.ErrUnexpectedEOF, syscall.ECONNREFUSED, errForbidden,
	} {
		if errors.Is(err, sentinel) {
			return sentinel
		}
	}
	return nil
}
