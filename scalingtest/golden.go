package scalingtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Golden compares the output of a test, got, with the file testdata/name, which somebody has read and found right. With
// UPDATE_GOLDEN=1 in the environment it writes the file instead: read the difference before committing it.
func Golden(tb testing.TB, name, got string) {
	tb.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(tb, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(tb, err, "run the test with UPDATE_GOLDEN=1 to write it")
	require.Equal(tb, string(want), got, "%s differs; UPDATE_GOLDEN=1 rewrites it", path)
}
