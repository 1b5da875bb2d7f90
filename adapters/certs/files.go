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

// Files is a Source: a folder with the files that Keys names, as WriteFiles writes them or as a mounted Secret has them.
// They are looked at at every handshake, and read again when a modification time, a size or a mode has changed. The zero
// value but for Dir is ready; do not copy it after use.
//
// The private key must not be readable for others than its owner: mode 0600 or stricter. A mounted Secret needs
// defaultMode 0400, and no fsGroup, which would let the group read.
type Files struct {
	Dir  string
	Keys Keys

	mu   sync.Mutex
	last Served
}

// Load returns what is in the folder. A file that is not there is an ErrMissing. Files that change while they are read
// may not fit together: then the next Load reads them again.
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
	for _, part := range []struct {
		name string
		to   *[]byte
	}{{keys.CA, &s.CA}, {keys.Cert, &s.Pair.Cert}, {keys.Key, &s.Pair.Key}} {
		if *part.to, err = os.ReadFile(filepath.Join(f.Dir, part.name)); err != nil {
			return Served{}, f.fault(part.name, err)
		}
	}
	f.last = s
	return s, nil
}

// String returns the folder, and nothing of what is in it.
func (f *Files) String() string { return f.where() }

// GoString returns String, for %#v.
func (f *Files) GoString() string { return f.where() }

func (f *Files) where() string { return "folder " + f.Dir }

func (f *Files) fault(name string, err error) error {
	return fileFault(f.where(), name, err)
}

func fileFault(where, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &SecretError{Secret: where, Key: name, Rule: "must exist", Err: ErrMissing}
	}
	return &SecretError{Secret: where, Key: name, Rule: "must be readable", Err: err}
}

// look returns a text that changes with the files.
func (f *Files) look(keys Keys) (string, error) {
	var b strings.Builder
	for _, name := range []string{keys.CA, keys.Cert, keys.Key} {
		i, err := os.Stat(filepath.Join(f.Dir, name))
		if err != nil {
			return "", f.fault(name, err)
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

var materialFiles = []string{keyCA, keyTLSCert, keyServerCert, keyTLSKey, keyServerKey} //nolint:gochecknoglobals // a constant

// part returns the place of a file in m.
func part(m *Material, name string) *[]byte {
	switch name {
	case keyCA:
		return &m.Bundle
	case keyTLSCert:
		return &m.Client.Cert
	case keyTLSKey:
		return &m.Client.Key
	case keyServerCert:
		return &m.Server.Cert
	}
	return &m.Server.Key
}

// WriteFiles writes m as ca.crt, tls.crt, tls.key, server.crt and server.key into a folder for its owner alone (mode
// 0700), each for its owner alone (0600). It makes the folder, and refuses one that others can enter. Each file is
// replaced as a whole; a server that reads between two of them keeps what it has and reads again.
//
// It is for programs on a laptop. The CA's key is not written: Next with an empty state makes all anew.
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
	for _, name := range materialFiles {
		if err := replaceFile(filepath.Join(dir, name), *part(&m, name)); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a temporary file beside, which is made with mode 0600, and renames it.
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

// ReadFiles reads what WriteFiles wrote, for a client. Private keys must have mode 0600 or stricter.
func ReadFiles(dir string) (Material, error) {
	var m Material
	for _, name := range materialFiles {
		path := filepath.Join(dir, name)
		i, err := os.Stat(path)
		if err != nil {
			return Material{}, fileFault("folder "+dir, name, err)
		}
		if strings.HasSuffix(name, ".key") {
			if err := checkMode("folder "+dir, name, i); err != nil {
				return Material{}, err
			}
		}
		if *part(&m, name), err = os.ReadFile(path); err != nil {
			return Material{}, fileFault("folder "+dir, name, err)
		}
	}
	_, err := parseMaterial("folder "+dir, m)
	return m, err
}
