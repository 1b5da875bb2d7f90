// Package golden compares what a test prints with a file that was read and found right.
package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Compare checks that got is what testdata/name holds. With UPDATE_GOLDEN=1 in the environment it writes the file
// instead: read the difference before committing it.
func Compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with UPDATE_GOLDEN=1 to write it")
	require.Equal(t, string(want), got, "%s differs; UPDATE_GOLDEN=1 rewrites it", path)
}
