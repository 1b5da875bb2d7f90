package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// listsOnly is an API server that answers lists and no watch: it refuses the connection, or has no time.
type listsOnly struct {
	busy bool
	seen func() // that a watch was asked for
}

func (l listsOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	answer := func(code int, text string) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Request: request,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)),
		}, nil
	}
	switch query := request.URL.Query(); {
	case query.Get("sendInitialEvents") == "true":
		return answer(http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case query.Get("watch") != "true":
		return answer(http.StatusOK, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`)
	}
	l.seen()
	if l.busy {
		return answer(http.StatusTooManyRequests, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`)
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// TestRegressionWatchesThatAreRefusedAreNotHeard: of watches whose connection is refused, and of those for which the API server has no
// time, client-go tells no handler. A replica with old caches stayed ready, and its webhook judged by them.
func TestRegressionWatchesThatAreRefusedAreNotHeard(t *testing.T) {
	for _, busy := range []bool{false, true} {
		var mu sync.Mutex
		now, watches := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC), 0
		h := &hearing{now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}}
		enough := make(chan struct{})
		config := &rest.Config{Host: "http://127.0.0.1:1", Transport: listsOnly{busy, func() {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(80 * time.Second)
			if watches++; watches == 3 { // two have failed
				close(enough)
			}
		}}}
		config.Wrap(h.through)
		o := new(options).cache(h)
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
		o.Scheme, o.Mapper = clientgoscheme.Scheme, mapper
		caches, err := cache.New(config, o)
		require.NoError(t, err)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- caches.Start(ctx) }()
		_, err = caches.GetInformer(ctx, &corev1.Pod{})
		require.NoError(t, err)
		<-enough
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil)
		require.NoError(t, err)
		require.ErrorContains(t, ready(caches, h, func() error { return nil })(request), "lists and watches fail since 2026-01-15T08:01:20Z")
		end()
		require.NoError(t, <-ended)
	}
}

// everyOther refuses every other request.
type everyOther struct{ n int }

func (e *everyOther) RoundTrip(*http.Request) (*http.Response, error) {
	e.n++
	return &http.Response{StatusCode: []int{http.StatusOK, http.StatusTooManyRequests}[e.n%2], Body: http.NoBody}, nil
}

// TestRegressionAWatchThatBeginsAtTheSecondAttemptIsHeard: of many watches one begins anew each minute, and where an API server is busy it
// may be refused at first. They counted as watches that fail since the first of them, though each began a moment later.
func TestRegressionAWatchThatBeginsAtTheSecondAttemptIsHeard(t *testing.T) {
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	h := &hearing{now: func() time.Time { return now }}
	server := h.through(&everyOther{})
	watch := func(namespace string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1/api/v1/namespaces/"+namespace+"/pods?watch=true", nil)
		require.NoError(t, err)
		answer, err := server.RoundTrip(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	}
	for i := range 20 {
		watch(string(rune('a' + i)))
		now = now.Add(time.Second)
		watch(string(rune('a' + i)))
		now = now.Add(time.Minute)
		require.NoError(t, h.lost(), "minute %d", i)
	}
	for range 4 { // only every other is of z, and is refused
		watch("z")
		watch("a")
		now = now.Add(time.Minute)
	}
	require.ErrorContains(t, h.lost(), "lists and watches fail since 2026-01-15T08:20:20Z")
}
