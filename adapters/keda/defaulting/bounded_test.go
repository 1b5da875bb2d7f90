package defaulting_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
)

// TestBounded: what is within the bounds arrives whole, and nothing else does.
func TestBounded(t *testing.T) {
	var got []string
	h := defaulting.Bounded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		got = append(got, string(body))
	}))
	whole := strings.Repeat("x", defaulting.MaxBody)
	for body, status := range map[string]int{
		"":          http.StatusOK,
		whole:       http.StatusOK,
		whole + "x": http.StatusRequestEntityTooLarge,
		strings.Repeat(",", defaulting.MaxValues):   http.StatusOK,
		strings.Repeat("[", defaulting.MaxValues+1): http.StatusRequestEntityTooLarge,
	} {
		got = nil
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		require.Equal(t, status, w.Code, "%.20s", body)
		if status == http.StatusOK {
			require.Equal(t, []string{body}, got)
		} else {
			require.Empty(t, got)
		}
	}
}
