package defaulting

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Bounded returns a handler of admission reviews that may send no more than those to ServeHTTP: what next gets is a whole body,
// read within 2 s and within its client's part of a MaxPending that Bounded has for all of next. That is taken until next
// has answered.
func Bounded(next http.Handler) http.Handler {
	pending := &budget{}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// Where there is no connection, as in tests, there is nothing to bound.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) //nolint:forbidigo // the connection's clock
		body, release, err := pending.read(clientOf(req.RemoteAddr), http.MaxBytesReader(w, req.Body, MaxBody))
		defer release()
		var tooLarge *http.MaxBytesError
		switch {
		case errors.Is(err, errFull):
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		case errors.As(err, &tooLarge):
			http.Error(w, fmt.Sprintf("the body must be at most %d bytes", MaxBody), http.StatusRequestEntityTooLarge)
		case err != nil:
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
		case bytes.Count(body, []byte(","))+bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) > MaxValues:
			http.Error(w, fmt.Sprintf("the body must have at most %d values", MaxValues), http.StatusRequestEntityTooLarge)
		default:
			req.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, req)
		}
	})
}
