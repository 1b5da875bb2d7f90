package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

const (
	// deafAfter is how long lists and watches may fail.
	deafAfter = 2 * time.Minute
	// retries are at most this far apart.
	retries = 90 * time.Second
)

// A hearing knows whether the caches still hear of changes: what is in them may be old else, and nothing says so.
type hearing struct {
	now func() time.Time

	mu          sync.Mutex
	first, last time.Time // failure of those that follow each other
	err         error
}

// failed is the caches' handler of lists and watches that end with an error.
func (h *hearing) failed(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // a watch ends so in the normal way
	}
	h.note(err)
}

func (h *hearing) note(err error) {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.last) > retries {
		h.first = now
	}
	h.last, h.err = now, err
}

// through returns a RoundTripper that notes which watches another cannot begin as the API server does not listen, or has no time:
// client-go begins them again and again, and tells no handler.
func (h *hearing) through(next http.RoundTripper) http.RoundTripper { return watched{next, h} }

type watched struct {
	next  http.RoundTripper
	hears *hearing
}

// RoundTrip sends a request.
func (w watched) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(request)
	if request.URL.Query().Get("watch") == "true" {
		switch {
		case utilnet.IsConnectionRefused(err):
			w.hears.note(err)
		case err == nil && answer.StatusCode == http.StatusTooManyRequests:
			w.hears.note(errors.New(answer.Status))
		}
	}
	return answer, err
}

// WrappedRoundTripper returns the other RoundTripper, for client-go.
func (w watched) WrappedRoundTripper() http.RoundTripper { return w.next }

// lost is an error while lists or watches fail again and again.
func (h *hearing) lost() error {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil || now.Sub(h.last) > retries || now.Sub(h.first) < deafAfter {
		return nil
	}
	return fmt.Errorf("lists and watches fail since %s: %w", h.first.UTC().Format(time.RFC3339), h.err)
}

// ready is /readyz: the caches have everything and hear of changes, and rounds are made.
func ready(c cache.Cache, h *hearing, stalled func() error) func(*http.Request) error {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the caches do not have everything yet")
		}
		return errors.Join(h.lost(), stalled())
	}
}
