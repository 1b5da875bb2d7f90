package certs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/certs"
)

// TestFiles writes, serves, reads and replaces a folder.
func TestFiles(t *testing.T) {
	c := newClock()
	dir := filepath.Join(t.TempDir(), "certs")
	first := next(t, rules(), certs.State{}, "", start).State.Material
	files := &certs.Files{Dir: dir}
	r := certs.NewReader(certs.ReaderConfig{Source: files, Now: c.now})
	require.EqualError(t, r.Err(), "folder "+dir+": ca.crt: must exist: there is no certificate yet")
	require.ErrorIs(t, r.Err(), certs.ErrMissing)
	_, err := certs.ReadFiles(dir)
	require.ErrorIs(t, err, certs.ErrMissing)

	require.NoError(t, certs.WriteFiles(dir, first))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, names, 5)
	for _, name := range names {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	hidden, err := filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(t, err)
	require.Empty(t, hidden)

	read, err := certs.ReadFiles(dir)
	require.NoError(t, err)
	read.Since = first.Since
	require.Equal(t, first, read)
	_, byServer, byClient := shake(t, r.TLS(), clientTLS(t, read, c.now))
	require.NoError(t, byServer)
	require.NoError(t, byClient)

	// Replaced: with the modification time put where a coarse clock cannot hide it.
	other := next(t, rules(), certs.State{}, "", start.Add(day)).State.Material
	require.NoError(t, certs.WriteFiles(dir, other))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "server.key"), start, start))
	require.NoError(t, r.Err())
	require.Equal(t, start.Add(91*day), r.Expires())
	c.set(start.Add(day))

	// Half replaced: what was in force stays.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "server.key"), first.Server.Key, 0o600))
	require.ErrorContains(t, r.Err(), "folder "+dir+": server.key: must be the private key in PEM of server.crt")
	_, byServer, byClient = shake(t, r.TLS(), clientTLS(t, other, c.now))
	require.NoError(t, byServer)
	require.NoError(t, byClient)
}

// TestFileModes has keys that others can read refused, with the mode.
func TestFileModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	m := next(t, rules(), certs.State{}, "", start).State.Material
	require.NoError(t, certs.WriteFiles(dir, m))
	r := certs.NewReader(certs.ReaderConfig{Source: &certs.Files{Dir: dir}})
	require.NoError(t, r.Err())
	key := filepath.Join(dir, "server.key")
	for _, mode := range []os.FileMode{0o640, 0o604, 0o610} {
		require.NoError(t, os.Chmod(key, mode))
		require.EqualError(t, r.Err(), fmt.Sprintf("folder %s: server.key: has mode %04o, must have 0600 or stricter", dir, mode))
		_, err := certs.ReadFiles(dir)
		require.ErrorContains(t, err, "server.key: has mode")
	}
	for _, mode := range []os.FileMode{0o600, 0o400} {
		require.NoError(t, os.Chmod(key, mode))
		require.NoError(t, r.Err())
	}
	require.NoError(t, os.Chmod(dir, 0o750))
	require.EqualError(t, certs.WriteFiles(dir, m), "folder "+dir+": has mode 0750, must have 0700 or stricter")
	require.ErrorIs(t, certs.WriteFiles(dir, certs.Material{}), certs.ErrMissing)
	m.Client.Key = nil
	require.ErrorContains(t, certs.WriteFiles(dir, m), "material: tls.key: must not be empty")
}

// TestMountedSecret has a folder as a kubelet mounts it: links to files in a folder that a link is moved to.
func TestMountedSecret(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	mount := func(name string, m certs.Material) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		for file, data := range map[string][]byte{"ca.crt": m.Bundle, "tls.crt": m.Server.Cert, "tls.key": m.Server.Key} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name, file), data, 0o400))
			if name == "..1" {
				require.NoError(t, os.Symlink(filepath.Join("..data", file), filepath.Join(dir, file)))
			}
		}
		require.NoError(t, os.Symlink(name, filepath.Join(dir, "..new")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	}
	first := next(t, rules(), certs.State{}, "", start).State.Material
	mount("..1", first)
	files := &certs.Files{Dir: dir, Keys: certs.Keys{Cert: "tls.crt", Key: "tls.key"}}
	r := certs.NewReader(certs.ReaderConfig{Source: files, Now: c.now})
	require.NoError(t, r.Err())
	other := next(t, rules(), certs.State{}, "", start.Add(day)).State.Material
	mount("..2", other)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "..2", "tls.key"), start, start.Add(time.Hour)))
	require.Equal(t, start.Add(91*day), r.Expires())
}
