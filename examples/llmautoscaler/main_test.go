package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandLine(t *testing.T) {
	try := func(args ...string) (code int, out, said string) {
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), args, &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	code, out, _ := try("-version")
	require.Equal(t, 0, code)
	require.True(t, strings.HasPrefix(out, "llmautoscaler "))

	code, out, said := try("-help")
	require.Equal(t, 0, code)
	require.Contains(t, out, "-leader-elect")
	require.Empty(t, said)

	for _, tt := range []struct{ args, want string }{
		{"-nonsense", "flag provided but not defined: -nonsense"},
		{"rest", `"rest": is not a flag`},
		{"-workers=0", "-workers: 0: must be between 1 and 10000"},
		{"-workers=1000000000", "-workers: 1000000000: must be between 1 and 10000"},
		{"-kube-api-qps=1e-50", "-kube-api-qps: 1e-50: must be between 1 and 1000000"},
		{"-kube-api-qps=0", "-kube-api-qps: 0: must be between 1 and 1000000"},
		{"-kube-api-burst=0", "-kube-api-burst: 0: must be at least 1"},
		{"-status-refresh=0s", "-status-refresh: 0s: must be at least 1s"},
		{"-shutdown-timeout=-1s", "-shutdown-timeout: -1s: must not be negative"},
		{"-leader-elect-lease=5s", "-leader-elect-lease: 5s: lease must be above renew, renew above retry, and retry above 0"},
		{"-leader-elect-renew=2300ms", "-leader-elect-renew: 2.3s: must be above 1.2 times retry"},
		{"-namespaces=a,B c", `-namespaces: "B c": must be at most 63 of a-z, 0-9 and -`},
		{"-metrics-address=8443", `-metrics-address: "8443": must be host:port, or 0 for none`},
		{"-health-address=", `-health-address: "": must be host:port, or 0 for none`},
		{"-webhook-port=0", "-webhook-port: 0: must be between 1 and 65535"},
		{"-log-level=loud", `-log-level: "loud": must be debug, info, warn or error`},
		{"-pod-selector=a=b=c", `-pod-selector: "a=b=c": `},
	} {
		code, _, said := try(tt.args)
		require.Equal(t, 2, code, tt.args)
		require.Contains(t, said, tt.want)
	}

	code, _, said = try("-kubeconfig=/nowhere", "-leader-elect=false")
	require.Equal(t, 1, code)
	require.Contains(t, said, `"msg":"ended","error":"how to reach the API server`)
}

func TestWatched(t *testing.T) {
	o := options{namespaces: " a, b,,"}
	require.Equal(t, []string{"a", "b"}, o.watched())
	require.Empty(t, (&options{}).watched())
}

// TestRegressionWrongNamesAreOfTheCommandLine: they were found out late, or, as a namespace for the lease, tried for ever.
func TestRegressionWrongNamesAreOfTheCommandLine(t *testing.T) {
	for flag, want := range map[string]string{
		"-leader-elect-namespace=Models": `-leader-elect-namespace: "Models": must be at most 63 of a-z`,
		"-webhook-service=a.b":           `-webhook-service: "a.b": must be at most 63 of a-z`,
		"-webhook-secret=A":              `-webhook-secret: "A": must be at most 253 of a-z`,
		"-webhook-configuration=a/b":     `-webhook-configuration: "a/b": must be at most 253 of a-z`,
		"-pprof-address=6060":            `-pprof-address: "6060": must be host:port, or 0 for none`,
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), []string{flag, "-kubeconfig=/nowhere"}, &stdout, &stderr), flag)
		require.Contains(t, stderr.String(), want)
	}
}

// TestRegressionCredentialsOfAKilledProcess: what it had read of Secrets stayed in the volume, where nobody counted it: with as much
// again the pod was evicted.
func TestRegressionCredentialsOfAKilledProcess(t *testing.T) {
	parent := t.TempDir()
	other := filepath.Join(parent, "somebody-elses")
	require.NoError(t, os.Mkdir(other, 0o700))
	killed, err := credentialsIn(parent)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(killed, "uid"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(killed, "uid", "token"), []byte("secret"), 0o600))
	next, err := credentialsIn(parent)
	require.NoError(t, err)
	require.NoDirExists(t, killed)
	require.DirExists(t, other)
	info, err := os.Stat(next)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	_, err = credentialsIn(filepath.Join(parent, "new"))
	require.NoError(t, err)
	temporary, err := credentialsIn("")
	require.NoError(t, err)
	require.NoError(t, os.Remove(temporary))
}
