package printable_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/printable"
)

// TestIs: a name is of letters that can be seen, and spaces.
func TestIs(t *testing.T) {
	for _, name := range []string{"", "a b", "é…漢"} {
		require.True(t, printable.Is(name), "%q", name)
	}
	for _, name := range []string{"a\nb", "\x1b[2J", "\u202eb", "\u200b", "\u00a0"} {
		require.False(t, printable.Is(name), "%q", name)
	}
}

// TestCut: what is just as long as it may be stays, and no letter is cut in two.
func TestCut(t *testing.T) {
	require.Equal(t, "abc", printable.Cut("abc", 3))
	require.Equal(t, "ab...", printable.Cut("abc", 2))
	require.Equal(t, "a...", printable.Cut("aéé", 2))
	require.Len(t, printable.Cut(strings.Repeat("x", 1000), 300), 300+len("..."))
}
