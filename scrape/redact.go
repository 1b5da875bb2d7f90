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
	"unicode"
	"unicode/utf8"
)

const (
	// excerptLength is how many bytes of a response an error shows.
	excerptLength = 64
	// errorLength limits the text of an error that may repeat a response.
	errorLength = 300
	// telling is how many consecutive bytes must match the token to count as a part of it.
	telling  = 8
	redacted = "[redacted]"
	// oldTokens is how many tokens before the present one are redacted, too.
	oldTokens = 3
	// longToken is the length of a token from which nothing of a response is shown: the effort to find a part of the token
	// grows with its length, and whoever runs a pod may have chosen the token too.
	longToken = 4 << 10
)

// excerpt quotes the beginning of a response, without the token: servers echo headers in their error pages.
func (f *fetcher) excerpt(b []byte) string {
	return strconv.Quote(string(f.redact(b, excerptLength)))
}

// clean returns a failure with its text redacted and cut: a page may repeat the token, as an error page may.
func (f *fetcher) clean(e *Error) *Error {
	return &Error{Reason: e.Reason, Err: f.safe(e.Err, nil)}
}

// safe returns an error with the text of err, redacted and cut, that unwraps to cause.
func (f *fetcher) safe(err, cause error) error {
	return &safeError{text: visible(string(f.redact([]byte(err.Error()), errorLength))), cause: cause}
}

// visible returns a text with everything escaped that does not show as itself, such as line breaks and codes for a terminal: a
// certificate may have them.
func visible(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if unicode.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			out.WriteString(text[:n])
		} else {
			quoted := strconv.Quote(text[:n])
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return out.String()
}

// A safeError has a redacted text.
type safeError struct {
	text  string
	cause error
}

func (e *safeError) Error() string { return e.text }
func (e *safeError) Unwrap() error { return e.cause }

// encodings are the forms in which responses may repeat a token: plain, in base64 at any offset, in hexadecimal, and escaped
// for URLs, HTML or JSON.
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

// redact returns at most limit bytes of a response, without the token and those before it: a pod may have kept one, and it may still be
// valid. With a long token it returns nothing of the response.
func (f *fetcher) redact(b []byte, limit int) []byte {
	if slices.ContainsFunc(f.tokens, func(token string) bool { return len(token) >= longToken }) {
		return []byte(redacted)
	}
	return redact(b, limit, f.tokens...)
}

// redact returns at most limit bytes of b, and at most one replacement more. It replaces every run of bytes that is part of
// an encoding of the token, forwards or backwards. It replaces first and cuts afterwards, so that no cut can leave half a
// token. If there is a token, no backslash is shown: errors are quoted, and each quoting adds backslashes.
func redact(b []byte, limit int, tokens ...string) []byte {
	if len(tokens) == 0 {
		return slices.Clone(b[:min(len(b), limit)])
	}
	b = bytes.ReplaceAll(b, []byte{'\\'}, nil)
	b = b[:min(len(b), limit+telling-1)] // later bytes do not affect what is shown
	hide := make([]bool, len(b))
	for _, token := range tokens {
		for i, hidden := range parts(b, token) {
			hide[i] = hide[i] || hidden
		}
	}
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

// parts reports which bytes of b are in a run of telling bytes (or in a whole encoding, if that is shorter) that also occurs
// in an encoding of the token. Its time is that of reading each encoding once, whatever is in them and in b.
func parts(b []byte, token string) []bool {
	hide := make([]bool, len(b))
	mark := func(at, n int) {
		for i := range n {
			hide[at+i] = true
		}
	}
	runs := make(map[uint64][]int, 2*len(b)) // positions in b of each run of telling bytes, forwards and backwards
	var some [1 << 12]bool                   // false if no run has this hash, which is true of most hashes
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
