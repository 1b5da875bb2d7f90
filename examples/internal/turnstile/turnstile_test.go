package turnstile

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestPlacesAreGivenBack: by those who had one, and by those whose context ended while they waited for their tenant's or
// for one of all.
func TestPlacesAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 4
		r := New(places, 1)
		defer r.Close()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		var leaves []func()
		for i := range places {
			leave := r.Enter(t.Context(), fmt.Sprint(i))
			require.NotNil(t, leave)
			leaves = append(leaves, leave)
		}
		for _, tenant := range []string{"0", "another"} {
			require.Nil(t, r.Enter(ended, tenant))
		}
		require.Len(t, r.places, places)
		for _, leave := range leaves {
			leave()
		}
		synctest.Wait()
		require.Len(t, r.places, 1) // that of the next
		require.Zero(t, r.queue.Len())
	})
}
