//go:build linux

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgramHasTheGivenEnvironmentOnly(t *testing.T) {
	c := &Cluster{dir: t.TempDir()}
	for _, environment := range [][]string{{"ONE=1", "TWO=2"}, nil} {
		require.NoError(t, os.RemoveAll(c.path("env.log")))
		p, err := c.StartProgram("env", "/usr/bin/env", environment)
		require.NoError(t, err)
		select {
		case <-p.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("env does not end")
		}
		text, err := os.ReadFile(c.path("env.log"))
		require.NoError(t, err)
		want := ""
		for _, variable := range environment {
			want += variable + "\n"
		}
		assert.Equal(t, want, string(text))
		assert.Equal(t, Process{Name: "env", PID: p.cmd.Process.Pid, Log: c.path("env.log")}, p.Process())
		p.Stop()
		p.Stop()
	}
}

func TestWrittenCertificatesAreForServersAndClients(t *testing.T) {
	a, err := newAuthority("test")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, (&Cluster{clients: a}).WriteCertificates(dir))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authority))
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		for _, name := range []string{"localhost", "127.0.0.1"} {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
			assert.NoError(t, err, name)
		}
	}
}
