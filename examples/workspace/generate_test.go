package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is generated from the types is what is there. go generate ./workspace/... in examples brings it up to date.
func TestGeneratedFilesAreUpToDate(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs controller-gen")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to run generate.sh with")
	}
	out := t.TempDir()
	command := exec.CommandContext(t.Context(), bash, "generate.sh")
	command.Env = append(os.Environ(), "OUT="+out)
	text, err := command.CombinedOutput()
	require.NoError(t, err, string(text))
	for _, file := range []string{
		"api/v1alpha1/zz_generated.deepcopy.go", "deploy/crd/workspace.inferscale.io_workspaces.yaml",
	} {
		want, err := os.ReadFile(filepath.Join(out, file))
		require.NoError(t, err)
		have, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(have), "%s: go generate ./workspace/...", file)
	}
}
