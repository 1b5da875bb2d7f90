package main

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
)

// TestRetriesAfterALongOutage: an object whose rounds cannot begin while the API server is away, as after a change of the
// spec, is tried again within 15 s, however often it failed.
func TestRetriesAfterALongOutage(t *testing.T) {
	l, request := limiter(), ctrl.Request{}
	require.LessOrEqual(t, l.When(request), time.Second)
	for range 1000 {
		require.LessOrEqual(t, l.When(request), 15*time.Second)
	}
	require.Equal(t, 15*time.Second, l.When(request))
}

// TestReadiness: caches that have not everything, or hear of nothing any more, are not ready. A watch that ends now and
// then is no matter.
func TestReadiness(t *testing.T) {
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	h := &hearing{now: func() time.Time { return now }}
	synced := false
	caches := &informertest.FakeInformers{Synced: &synced}
	check := ready(caches, h, func() error { return errors.New("stalled") })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
	require.NoError(t, err)
	require.ErrorContains(t, check(request), "the caches do not have everything yet")
	synced = true
	require.EqualError(t, check(request), "stalled")
	require.NoError(t, h.lost())

	r := toolscache.NewReflector(&toolscache.ListWatch{}, nil, nil, 0)
	fail := func(err error, times int, every time.Duration) {
		for range times {
			h.failed(t.Context(), r, err)
			now = now.Add(every)
		}
	}
	deaf := errors.New("json: cannot unmarshal")
	fail(deaf, 3, 30*time.Second)
	require.NoError(t, h.lost(), "not yet")
	fail(deaf, 3, 30*time.Second)
	require.ErrorContains(t, h.lost(), "lists and watches fail since 2026-01-15T08:00:00Z: json: cannot unmarshal")
	now = now.Add(2 * time.Minute)
	require.NoError(t, h.lost(), "they do not any more")
	fail(io.EOF, 20, 30*time.Second)
	fail(apierrors.NewResourceExpired("too old"), 20, 30*time.Second)
	fail(deaf, 20, 2*time.Minute)
	require.NoError(t, h.lost())
}
