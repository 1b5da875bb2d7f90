package stored

import (
	"io"
	"mime"
	"net/http"
)

// MaxDepth is how deep the lists and objects of an answer may be nested, see Shallow. No object of Kubernetes comes near.
const MaxDepth = 1000

// Shallow returns a RoundTripper that empties what is nested MaxDepth deep in the answers of another that are JSON. It is for
// rest.Config.Wrap, in a client that lists LLMAutoScalers.
//
// An API server stores objects that are nested up to 10,000 deep, where a definition does not say which fields there are, as in
// spec.shadow. In a list such an object is two deeper, and no package reads JSON that is more than 10,000 deep: it would end every
// list that contains it. No type can prevent this, because the depth is checked before a type is asked.
func Shallow(next http.RoundTripper) http.RoundTripper { return shallow{next} }

type shallow struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (s shallow) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(request)
	if err != nil || answer.Body == nil {
		return answer, err
	}
	if media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); media == "application/json" {
		answer.Body = &pruned{ReadCloser: answer.Body, most: MaxDepth}
		answer.ContentLength = -1 // it may be shorter
		answer.Header.Del("Content-Length")
	}
	return answer, nil
}

// WrappedRoundTripper returns the other RoundTripper, for client-go.
func (s shallow) WrappedRoundTripper() http.RoundTripper { return s.next }

// pruned reads values in JSON, one after the other, without what is within the lists and objects at the depth most.
type pruned struct {
	io.ReadCloser

	most, depth   int
	text, escaped bool // whether the next byte is in a text, and after a backslash
}

// Read reads what remains of the next bytes.
func (p *pruned) Read(b []byte) (int, error) {
	for {
		n, err := p.ReadCloser.Read(b)
		kept := p.prune(b[:n])
		if kept > 0 || err != nil || len(b) == 0 {
			return kept, err
		}
	}
}

// prune moves the bytes that remain to the beginning, and returns how many there are.
func (p *pruned) prune(b []byte) (kept int) {
	for _, c := range b {
		keep := p.depth < p.most
		switch {
		case p.escaped:
			p.escaped = false
		case p.text:
			p.text, p.escaped = c != '"', c == '\\'
		case c == '"':
			p.text = true
		case c == '[' || c == '{':
			p.depth++
		case c == ']' || c == '}':
			keep = p.depth <= p.most
			p.depth--
		}
		if keep {
			b[kept] = c
			kept++
		}
	}
	return kept
}
