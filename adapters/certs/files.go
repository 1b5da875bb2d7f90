package certs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

const (
	keyMode    = 0o600
	folderMode = 0o700
)

// Files is a Source that reads a folder with the files that Keys names, for example those of WriteFiles or of a mounted
// Secret. It checks the files at every handshake, and reads them again when a modification time, a size or a mode has
// changed. Only Dir must be set. Do not copy a Files after use.
//
// Only the owner may be able to read the private key: it must have mode 0600 or stricter. A mounted Secret needs defaultMode
// 0400 and no fsGroup, which would let the group read it. Its files then belong to root, so that other users cannot read them:
// for those, an init container has to copy them, or the Secret is read with a SecretSource.
type Files struct {
	Dir  string
	Keys Keys

	mu   sync.Mutex
	last Served
}

// Load returns the content of the folder. A missing file is an ErrMissing. Files that change while they are read may not fit
// together: then the next Load reads them again.
func (f *Files) Load() (Served, error) {
	keys := f.Keys.orDefault()
	version, err := f.look(keys)
	if err != nil {
		return Served{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last.Version == version {
		return f.last, nil
	}
	s := Served{Where: f.where(), Version: version, Keys: keys}
	for _, one := range []file{{keys.CA, &s.CA}, {keys.Cert, &s.Pair.Cert}, {keys.Key, &s.Pair.Key}} {
		if *one.part, err = os.ReadFile(filepath.Join(f.Dir, one.name)); err != nil {
			return Served{}, fileFault(f.where(), one.name, err)
		}
	}
	f.last = s
	return s, nil
}

// String returns the name of the folder, and nothing of its content.
func (f *Files) String() string { return f.where() }

// GoString returns String, for %#v.
func (f *Files) GoString() string { return f.where() }

func (f *Files) where() string { return "folder " + f.Dir }

func fileFault(where, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &SecretError{Secret: where, Key: name, Rule: "must exist", Err: ErrMissing}
	}
	return &SecretError{Secret: where, Key: name, Rule: "must be readable", Err: err}
}

// look returns a text that changes whenever the files change.
func (f *Files) look(keys Keys) (string, error) {
	var b strings.Builder
	for _, name := range []string{keys.CA, keys.Cert, keys.Key} {
		i, err := os.Stat(filepath.Join(f.Dir, name))
		if err != nil {
			return "", fileFault(f.where(), name, err)
		}
		if name == keys.Key {
			if err := checkMode(f.where(), name, i); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(&b, "%d.%d.%o ", i.ModTime().UnixNano(), i.Size(), i.Mode())
	}
	return b.String(), nil
}

func checkMode(where, name string, i fs.FileInfo) error {
	if i.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return &SecretError{Secret: where, Key: name, Rule: fmt.Sprintf("has mode %04o, must have 0600 or stricter", i.Mode().Perm())}
}

// A file is a part of the material, with the name of its file.
type file struct {
	name string
	part *[]byte
}

func filesOf(m *Material) []file {
	return []file{
		{keyCA, &m.Bundle}, {keyTLSCert, &m.Client.Cert}, {keyServerCert, &m.Server.Cert}, {keyTLSKey, &m.Client.Key}, {keyServerKey, &m.Server.Key},
	}
}

// WriteFiles writes m as ca.crt, tls.crt, tls.key, server.crt and server.key into a folder. Only the owner can access the
// folder (mode 0700) and the files (0600). WriteFiles creates the folder, and refuses an existing one that others can access.
// It replaces each file as a whole; a server that reads between two of them keeps what it has and reads again.
//
// It is meant for programs on a laptop. It does not write the CA's key: Next with an empty state makes everything anew.
func WriteFiles(dir string, m Material) error {
	if _, err := parseMaterial("material", m); err != nil {
		return err
	}
	if m.empty() {
		return &SecretError{Secret: "material", Rule: mustNotBeEmpty, Err: ErrMissing}
	}
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return err
	}
	i, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if i.Mode().Perm()&0o077 != 0 {
		return &SecretError{Secret: "folder " + dir, Rule: fmt.Sprintf("has mode %04o, must have 0700 or stricter", i.Mode().Perm())}
	}
	for _, f := range filesOf(&m) {
		if err := replaceFile(filepath.Join(dir, f.name), *f.part); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a temporary file with mode 0600 in the same folder, and renames it.
func replaceFile(path string, data []byte) (err error) {
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(t.Name()))
		}
	}()
	_, err = t.Write(data)
	if err == nil {
		err = t.Chmod(keyMode)
	}
	if err == nil {
		err = t.Sync()
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return err
	}
	return os.Rename(t.Name(), path)
}

// ReadFiles reads the files of WriteFiles, for a client. Private keys must have mode 0600 or stricter.
func ReadFiles(dir string) (Material, error) {
	var m Material
	where := "folder " + dir
	for _, f := range filesOf(&m) {
		path := filepath.Join(dir, f.name)
		i, err := os.Stat(path)
		if err != nil {
			return Material{}, fileFault(where, f.name, err)
		}
		if strings.HasSuffix(f.name, ".key") {
			if err := checkMode(where, f.name, i); err != nil {
				return Material{}, err
			}
		}
		if *f.part, err = os.ReadFile(path); err != nil {
			return Material{}, fileFault(where, f.name, err)
		}
	}
	_, err := parseMaterial(where, m)
	return m, err
}
