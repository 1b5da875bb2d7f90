package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"unicode/utf8"
)

// Plain returns a writer of text that has in it what others wrote, as errors that show what a file or a server said: what a terminal
// takes for more than text is escaped, as Go does it. Lines and tabs stay. No letter may be divided between two writes.
func Plain(w io.Writer) io.Writer { return plain{w} }

type plain struct{ w io.Writer }

// Write writes the text.
func (p plain) Write(text []byte) (int, error) {
	out := make([]byte, 0, len(text))
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, rest[0])
		case r == '\n' || r == '\t' || strconv.IsPrint(r):
			out = append(out, rest[:size]...)
		default:
			quoted := strconv.QuoteRune(r)
			out = append(out, quoted[1:len(quoted)-1]...)
		}
		rest = rest[size:]
	}
	if _, err := p.w.Write(out); err != nil {
		return 0, err
	}
	return len(text), nil
}

// File returns the file that a writer writes to, if it is one.
func File(w io.Writer) (*os.File, bool) {
	if p, ok := w.(plain); ok {
		w = p.w
	}
	f, ok := w.(*os.File)
	return f, ok
}
