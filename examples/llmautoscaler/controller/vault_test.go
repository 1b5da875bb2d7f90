package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRegressionManyNamespacesDoNotFillTheDirectory: 16 namespaces with 4 MiB of Secrets each, or 10,000 objects with tokens of a few
// bytes, filled the directory of 64 MiB: the pod was evicted, and no namespace was scaled meanwhile.
func TestRegressionManyNamespacesDoNotFillTheDirectory(t *testing.T) {
	require.Equal(t, []int{0, page, page, 2 * page}, []int{pages(0), pages(1), pages(page), pages(page + 1)})
	require.Less(t, full+2*1<<20, 64<<20, "a file that is replaced is there twice, and is at most 1 MiB")

	// Each object has 64 KiB, and asks each minute. The first ones ask for all that there is.
	const object, hostile, others = 64 << 10, 40, 20
	v, held := vault{of: map[string]int{}}, map[string]int{}
	ask := func(namespace string, objects int) (refused int) {
		for i := range objects {
			name := fmt.Sprintf("%s/%d", namespace, i)
			if err := v.hold(namespace, held[name], object); err == nil {
				held[name] = object
				continue
			}
			refused++
			require.NoError(t, v.hold(namespace, held[name], 0))
			delete(held, name)
		}
		require.LessOrEqual(t, v.all, full)
		require.Equal(t, len(held)*object, v.all)
		return refused
	}
	round := func(to int) (refused int) {
		for n := range hostile {
			ask(fmt.Sprintf("hostile%d", n), 100)
		}
		for n := range to {
			refused += ask(fmt.Sprintf("other%d", n), 5)
		}
		return refused
	}
	round(0)
	require.Greater(t, v.all, crowded-4<<20)
	for range 3 {
		round(others)
	}
	for range 3 {
		require.Zero(t, round(others), "who has less than an equal part gets it within some minutes")
		require.LessOrEqual(t, v.all, crowded)
	}
	for name := range held {
		namespace, _, _ := strings.Cut(name, "/")
		require.NoError(t, v.hold(namespace, object, 0))
	}
	require.Zero(t, v.all)
	require.Empty(t, v.of)
}
