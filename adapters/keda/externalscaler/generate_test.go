package externalscaler_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGenerated makes what is generated anew, and compares.
func TestGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("runs protoc-gen-go")
	}
	out := t.TempDir()
	c := exec.CommandContext(t.Context(), "./generate.sh")
	c.Env = append(os.Environ(), "OUT="+out)
	said, err := c.CombinedOutput()
	if strings.Contains(string(said), "requires go >=") {
		t.Skipf("the plugins need a newer Go than this one, which may not fetch it: %s", said)
	}
	require.NoError(t, err, "%s", said)
	want, err := filepath.Glob(filepath.Join(out, "*"))
	require.NoError(t, err)
	require.Len(t, want, 2)
	for _, file := range want {
		a, err := os.ReadFile(file)
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Base(file))
		require.NoError(t, err)
		require.True(t, string(a) == string(b), "%s is not up to date: run go generate in adapters/keda/externalscaler", filepath.Base(file))
	}
}
