package scrape

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"html"
	"math/bits"
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
	// longToken is the length of a token from which nothing of an answer is shown: what it takes to find a part of the token
	// in an error grows with it, and who runs a pod may have chosen the token too.
	longToken = 4 << 10
)

// excerpt quotes the beginning of what a pod sent, without the token: servers echo headers in their error pages.
func (f *fetcher) excerpt(b []byte) string {
	return strconv.Quote(string(f.redact(b, excerptLength)))
}

// clean returns a failure with its words redacted and cut: a page may repeat the token as well as an error page may.
func (f *fetcher) clean(e *Error) *Error {
	return &Error{Reason: e.Reason, Err: f.safe(e.Err, nil)}
}

// safe returns an error with the words of err, redacted and cut, that unwraps to cause.
func (f *fetcher) safe(err, cause error) error {
	return &safeError{text: string(f.redact([]byte(err.Error()), errorLength)), cause: cause}
}

// A safeError has words that were redacted.
type safeError struct {
	text  string
	cause error
}

func (e *safeError) Error() string { return e.text }
func (e *safeError) Unwrap() error { return e.cause }

// encodings are a token as answers may repeat it: as it is, in base64 at any offset, in hexadecimal, escaped for URLs, HTML or
// JSON.
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

// redact returns at most limit bytes of what a pod sent, without the token, and nothing of it beside one that is long.
func (f *fetcher) redact(b []byte, limit int) []byte {
	if len(f.token) >= longToken {
		return []byte(redacted)
	}
	return redact(b, f.token, limit)
}

// redact returns at most limit bytes of b, and at most one replacement more, with every run of bytes that is part of an
// encoding of the token, forwards or backwards, replaced. It replaces first and cuts then, so that no cut can leave half a
// token. Beside a token no backslash is shown: errors quote what they show, and each time there are more of them.
func redact(b []byte, token string, limit int) []byte {
	if token == "" {
		return slices.Clone(b[:min(len(b), limit)])
	}
	b = bytes.ReplaceAll(b, []byte{'\\'}, nil)
	b = b[:min(len(b), limit+telling-1)] // what follows says nothing of what is shown
	hide := parts(b, token)
	out := make([]byte, 0, limit+len(redacted))
	for i := 0; i < len(b) && len(out) < limit; i++ {
		switch {
		case !hide[i]:
			out = append(out, b[i])
		case i == 0 || !hide[i-1]:
			out = append(out, redacted...)
		}
	}
	return out
}

// parts reports which bytes of b are in a run of telling bytes, or in a whole encoding if that is shorter, that an encoding of
// the token has too. The time it takes is that of reading each encoding once, whatever is in them and in b.
func parts(b []byte, token string) []bool {
	hide := make([]bool, len(b))
	mark := func(at, n int) {
		for i := range n {
			hide[at+i] = true
		}
	}
	runs := make(map[uint64][]int, 2*len(b)) // where in b which telling bytes are, forwards and backwards
	var some [1 << 12]bool                   // false where no run has this hash, which most have not
	hash := func(run uint64) uint64 { return run * 0x9e3779b97f4a7c15 >> 52 }
	for i := range max(0, len(b)-telling+1) {
		run := binary.BigEndian.Uint64(b[i:])
		for _, run := range [...]uint64{run, bits.ReverseBytes64(run)} {
			runs[run] = append(runs[run], i)
			some[hash(run)] = true
		}
	}
	for _, form := range append(encodings(token), encodings(backwards(token))...) {
		form = strings.ReplaceAll(form, `\`, "")
		for i := 0; 0 < len(form) && len(form) < telling && i+len(form) <= len(b); i++ {
			if part := string(b[i : i+len(form)]); part == form || part == backwards(form) {
				mark(i, len(form))
			}
		}
		var run uint64
		for k := range len(form) {
			if run = run<<8 | uint64(form[k]); k < telling-1 || !some[hash(run)] {
				continue
			}
			for _, i := range runs[run] {
				mark(i, telling)
			}
			delete(runs, run)
		}
	}
	return hide
}
