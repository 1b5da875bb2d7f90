package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/certs"
)

// TestRegressionADamagedSecretLeavesReplicasReady: all of them serve with the last good one, but none was ready.
func TestRegressionADamagedSecretLeavesReplicasReady(t *testing.T) {
	require.NoError(t, certified(nil), "plaintext")
	dir := filepath.Join(t.TempDir(), "certs")
	reader := certs.NewReader(certs.ReaderConfig{Source: &certs.Files{Dir: dir}})
	require.ErrorIs(t, certified(reader), certs.ErrMissing, "there was none yet")
	require.NoError(t, makeFiles(dir))
	require.NoError(t, certified(reader))

	for _, damage := range []func(string) error{func(key string) error { return os.WriteFile(key, []byte("no key"), 0o600) }, os.Remove} {
		require.NoError(t, damage(filepath.Join(dir, "server.key")))
		require.Error(t, reader.Err())
		require.NoError(t, certified(reader))
		_, err := reader.TLS().GetConfigForClient(nil)
		require.NoError(t, err, "it serves")
		require.Error(t, certified(certs.NewReader(certs.ReaderConfig{Source: &certs.Files{Dir: dir}})), "one that begins has nothing to serve with")
	}
}
