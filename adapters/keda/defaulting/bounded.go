package defaulting

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Bounded puts the limits of Defaulter.ServeHTTP in front of another handler of admission reviews. next gets a complete body,
// which was read within 2 s and within the client's part of MaxPending. This handler has a MaxPending of its own; a body
// counts until next has answered.
func Bounded(next http.Handler) http.Handler {
	pending := &budget{}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, release, problem, status := pending.body(w, req)
		defer release()
		if status != http.StatusOK {
			http.Error(w, problem, status)
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, req)
	})
}

// body reads a request's body within 2 s and within the client's part of the budget, or returns the problem. release returns
// the bytes to the budget.
func (b *budget) body(w http.ResponseWriter, req *http.Request) (body []byte, release func(), problem string, status int) {
	// Without a connection, as in tests, there is no read to limit.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) //nolint:forbidigo // the connection's clock
	body, release, err := b.read(clientOf(req.RemoteAddr), http.MaxBytesReader(w, req.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errFull):
		return nil, release, err.Error(), http.StatusTooManyRequests
	case errors.As(err, &tooLarge):
		return nil, release, fmt.Sprintf("the body must be at most %d bytes", MaxBody), http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, release, "the body cannot be read", http.StatusBadRequest
	case bytes.Count(body, []byte(","))+bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) > MaxValues:
		return nil, release, fmt.Sprintf("the body must have at most %d values", MaxValues), http.StatusRequestEntityTooLarge
	}
	return body, release, "", http.StatusOK
}
