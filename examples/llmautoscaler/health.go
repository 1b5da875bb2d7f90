package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
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

	mu      sync.Mutex
	failing spell            // lists and watches that ended
	refused map[string]spell // watches that could not begin, each until it can
}

// A spell is of failures that follow each other.
type spell struct {
	first, last time.Time
	err         error // the last
}

func (s spell) with(now time.Time, err error) spell {
	if now.Sub(s.last) > retries {
		s.first = now
	}
	s.last, s.err = now, err
	return s
}

// failed is the caches' handler of lists and watches that end with an error.
func (h *hearing) failed(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // a watch ends so in the normal way
	}
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failing = h.failing.with(now, err)
}

// note notes that a watch was refused, or has begun if there is no error.
func (h *hearing) note(watch *url.URL, err error) {
	query := watch.Query()
	key := watch.Path + "?" + query.Get("fieldSelector") + "&" + query.Get("labelSelector")
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.refused, key)
		return
	}
	if h.refused == nil {
		h.refused = make(map[string]spell)
	}
	h.refused[key] = h.refused[key].with(now, err)
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
			w.hears.note(request.URL, err)
		case err == nil && answer.StatusCode == http.StatusTooManyRequests:
			w.hears.note(request.URL, errors.New(answer.Status))
		case err == nil && answer.StatusCode == http.StatusOK:
			w.hears.note(request.URL, nil)
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
	for _, s := range append(slices.Collect(maps.Values(h.refused)), h.failing) {
		if s.err != nil && now.Sub(s.last) <= retries && now.Sub(s.first) >= deafAfter {
			return fmt.Errorf("lists and watches fail since %s: %w", s.first.UTC().Format(time.RFC3339), s.err)
		}
	}
	return nil
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
