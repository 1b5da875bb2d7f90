package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-nonsense"}, exitUsage, "nonsense"},
		// Port 0 was 9443, any other wrong one failed late, and a negative grace was without end.
		{[]string{"-webhook-port", "0"}, exitUsage, "-webhook-port 0: must be within 1 and 65535"},
		{[]string{"-webhook-port", "70000"}, exitUsage, "-webhook-port 70000: must be within 1 and 65535"},
		{[]string{"-grace", "-1s"}, exitUsage, "-grace -1s: must not be negative"},
		{[]string{"serve"}, exitUsage, `unexpected argument "serve"`},
		{[]string{"-kubeconfig", "/does/not/exist"}, exitFail, "/does/not/exist"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, c.code, run(t.Context(), c.args, &stdout, &stderr), c.args)
		assert.Contains(t, stderr.String(), c.says)
		assert.Empty(t, stdout.String())
	}
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitOK, run(t.Context(), []string{"-help"}, &stdout, &stderr))
	assert.Contains(t, stdout.String(), "-webhook-cert-dir")
	assert.Empty(t, stderr.String())
}

func TestInstanceTypesThatCannotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "types.yaml")
	require.ErrorContains(t, serve(t.Context(), &rest.Config{}, options{instances: file}), "-instance-types")
	require.NoError(t, os.WriteFile(file, []byte("a: {gpus: 0}"), 0o600))
	require.ErrorContains(t, serve(t.Context(), &rest.Config{}, options{instances: file}), "a.gpus: 0")
}

// TestRegressionWrongAddressesAreOfTheCommandLine: they ended the program with the code of a failure.
func TestRegressionWrongAddressesAreOfTheCommandLine(t *testing.T) {
	for flag, want := range map[string]string{
		"-metrics-address=8443":              `-metrics-address "8443": must be host:port, or 0 for none`,
		"-probe-address=localhost":           `-probe-address "localhost": must be host:port, or 0 for none`,
		"-leader-elect-namespace=Workspaces": `-leader-elect-namespace "Workspaces": must be at most 63 of a-z`,
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitUsage, run(t.Context(), []string{flag, "-kubeconfig", "/does/not/exist"}, &stdout, &stderr), flag)
		assert.Contains(t, stderr.String(), want)
	}
}
