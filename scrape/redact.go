package scrape

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	// excerptLength is how much of an answer an error shows.
	excerptLength = 64
	// errorLength is how long the words of an error may be that repeat some of an answer.
	errorLength = 300
	// telling is how many bytes in a row must agree with the token to be taken for a part of it.
	telling  = 8
	redacted = "[redacted]"
)

// excerpt quotes the beginning of what a pod sent, without the token: servers echo headers in their error pages.
func (f *fetcher) excerpt(b []byte) string {
	return strconv.Quote(string(redact(b, f.forms, excerptLength)))
}

// clean returns a failure with its words redacted and cut: a page may repeat the token as well as an error page may.
func (f *fetcher) clean(e *Error) *Error {
	return &Error{Reason: e.Reason, Err: f.safe(e.Err, nil)}
}

// safe returns an error with the words of err, redacted and cut, that unwraps to cause.
func (f *fetcher) safe(err, cause error) error {
	return &safeError{text: string(redact([]byte(err.Error()), f.forms, errorLength)), cause: cause}
}

// A safeError has words that were redacted.
type safeError struct {
	text  string
	cause error
}

func (e *safeError) Error() string { return e.text }
func (e *safeError) Unwrap() error { return e.cause }

// forms are a token as answers may repeat it: as it is, in base64 at any offset, in hexadecimal, escaped for URLs, HTML or
// JSON, each of these backwards, and all of that quoted up to three times, as errors quote.
func forms(token string) []string {
	if token == "" {
		return nil
	}
	all := append(encodings(token), encodings(backwards(token))...)
	for _, form := range encodings(token) {
		all = append(all, backwards(form))
	}
	for range 3 {
		slices.Sort(all)
		all = slices.Compact(all)
		for _, form := range all {
			quoted := strconv.Quote(form)
			all = append(all, quoted[1:len(quoted)-1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func encodings(token string) []string {
	all := []string{token, html.EscapeString(token), url.PathEscape(token), url.QueryEscape(token), strings.ToLower(url.QueryEscape(token))}
	for offset, lost := range [...]int{0, 2, 3} {
		shifted := append(make([]byte, offset), token...)
		for _, e := range [...]*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, e.EncodeToString(shifted)[lost:])
		}
	}
	digits := hex.EncodeToString([]byte(token))
	var percent []byte
	for i := 0; i < len(digits); i += 2 {
		percent = append(percent, '%', digits[i], digits[i+1])
	}
	all = append(all, digits, strings.ToUpper(digits), string(percent), strings.ToUpper(string(percent)))
	inJSON, _ := json.Marshal(token) //nolint:errchkjson // a string
	return append(all, string(inJSON[1:len(inJSON)-1]))
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// redact returns at most limit bytes of b, and at most one replacement more, with every run of bytes that is part of a
// form of the token replaced. It replaces first and cuts then, so that no cut can leave half a token.
func redact(b []byte, forms []string, limit int) []byte {
	out := make([]byte, 0, limit+len(redacted))
	for i := 0; i < len(b) && len(out) < limit; {
		best := 0
		for _, form := range forms {
			if least := min(telling, len(form)); len(b)-i >= least && strings.Contains(form, string(b[i:i+least])) {
				best = max(best, longest(b[i:], form))
			}
		}
		if best > 0 {
			out = append(out, redacted...)
			i += best
			continue
		}
		out = append(out, b[i])
		i++
	}
	return out
}

// longest returns how many bytes at the beginning of b are a part of the token.
func longest(b []byte, token string) int {
	best := 0
	for j := range len(token) {
		n := 0
		for n < len(b) && j+n < len(token) && b[n] == token[j+n] {
			n++
		}
		best = max(best, n)
	}
	return best
}
