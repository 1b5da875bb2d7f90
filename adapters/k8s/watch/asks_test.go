package watch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAsksAreBounded: of a namespace, and of all together.
func TestAsksAreBounded(t *testing.T) {
	var a Asks
	for n := range 5 {
		for i := range mostAsksOf + 1 {
			require.Equal(t, n < mostAsks/mostAsksOf && i < mostAsksOf, a.begin(fmt.Sprint(n)))
		}
	}
	a.end("0")
	require.True(t, a.begin("4"), "its place is free")
	a.end("4")
	for i := range mostAsks - 1 {
		a.end(fmt.Sprint((i + 1) / mostAsksOf))
	}
	require.Zero(t, a.all)
	require.Empty(t, a.of)
}
