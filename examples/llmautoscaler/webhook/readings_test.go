package webhook

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlacesOfReadingsAreGivenBack: by those who had one, and by those whose context ended while they waited for the
// namespace's or for one of all.
func TestPlacesOfReadingsAreGivenBack(t *testing.T) {
	var r readings
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var gives []func()
	for i := range readAtOnce {
		give, err := r.take(t.Context(), fmt.Sprint(i))
		require.NoError(t, err)
		gives = append(gives, give)
	}
	for _, namespace := range []string{"0", "another"} {
		_, err := r.take(ended, namespace)
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Len(t, r.of, readAtOnce)
	for _, give := range gives {
		give()
	}
	require.Empty(t, r.of)
	require.Empty(t, r.all)
}
