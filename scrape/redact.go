package scrape

import "strconv"

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
	return strconv.Quote(string(redact(b, f.credentials.token, excerptLength)))
}

// clean returns a failure with its words redacted and cut: a page may repeat the token as well as an error page may.
func (f *fetcher) clean(e *Error) *Error {
	return &Error{Reason: e.Reason, Err: f.safe(e.Err, nil)}
}

// safe returns an error with the words of err, redacted and cut, that unwraps to cause.
func (f *fetcher) safe(err, cause error) error {
	return &safeError{text: string(redact([]byte(err.Error()), f.credentials.token, errorLength)), cause: cause}
}

// A safeError has words that were redacted.
type safeError struct {
	text  string
	cause error
}

func (e *safeError) Error() string { return e.text }
func (e *safeError) Unwrap() error { return e.cause }

// redact returns at most limit bytes of b, and at most one replacement more, with every run of bytes that is part of
// the token replaced. It replaces first and cuts then, so that no cut can leave half a token.
func redact(b []byte, token string, limit int) []byte {
	least := min(telling, len(token))
	out := make([]byte, 0, limit+len(redacted))
	for i := 0; i < len(b) && len(out) < limit; {
		if n := longest(b[i:], token); least > 0 && n >= least {
			out = append(out, redacted...)
			i += n
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
