package defaulting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPaths(t *testing.T) {
	for _, row := range []struct {
		at            path
		pointer, text string
	}{
		{path{}, "", ""},
		{path{"spec", "triggers", 0, "type"}, "/spec/triggers/0/type", "spec.triggers[0].type"},
		{path{"a/b", "~1", ""}, "/a~1b/~01/", `"a/b"."~1".""`},
		{path{"é", 12}, "/é/12", `"\u00e9"[12]`},
		{path{strings.Repeat("x", 65)}, "/" + strings.Repeat("x", 65), strings.Repeat("x", 64) + "..."},
	} {
		require.Equal(t, row.pointer, row.at.pointer())
		require.Equal(t, row.text, row.at.String())
	}
}

// TestSiblings: two paths below one must not share memory.
func TestSiblings(t *testing.T) {
	parent := append(make(path, 0, 8), "a")
	b, c := parent.child("b"), parent.child("c")
	require.Equal(t, "a.b a.c", b.String()+" "+c.String())
}
