// Package vectors finds the recorded answers of other systems that the tests named TestVectors... are run on.
package vectors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const variable = "INFERSCALE_VECTORS"

// A File is a file of recorded answers: one JSON value, or one on each line if its name ends in .jsonl.
type File struct {
	Name string // below the folder
	Data []byte
}

// Files returns the .json and .jsonl files of the folder that the environment names in INFERSCALE_VECTORS, or of
// testdata/vectors, and of the folders in it that are not hidden. No file at all fails the test, and so does one that is
// not JSON: a row must not get lost.
func Files(t *testing.T) []File {
	t.Helper()
	folder := os.Getenv(variable)
	if folder == "" {
		folder = filepath.Join("testdata", "vectors")
	}
	folder, err := filepath.EvalSymlinks(folder)
	require.NoError(t, err)
	var files []File
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		extension := strings.ToLower(filepath.Ext(path))
		switch {
		case entry.IsDir() && path != folder && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || extension != ".json" && extension != ".jsonl":
			return nil
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		values := [][]byte{data}
		if extension == ".jsonl" {
			values = bytes.Split(bytes.TrimSpace(data), []byte("\n"))
		}
		for i, v := range values {
			require.True(t, json.Valid(v), "%s: value %d is not JSON", path, i+1)
		}
		name, err := filepath.Rel(folder, path)
		require.NoError(t, err)
		files = append(files, File{filepath.ToSlash(name), data})
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, files, "no vectors in %s", folder)
	return files
}

// Covered ends a test that has found no row of its own: a failure on the package's own files, which have some, and a
// skip on a folder that the environment names, which may be for other packages.
func Covered(t *testing.T, rows int) {
	t.Helper()
	switch {
	case rows > 0 || t.Failed():
	case os.Getenv(variable) == "":
		t.Error("no row for this test")
	default:
		t.Skipf("no row for this test in %s", os.Getenv(variable))
	}
}

// IsLines reports whether the file has a JSON value on each line.
func (f File) IsLines() bool { return strings.EqualFold(filepath.Ext(f.Name), ".jsonl") }

// Section decodes one section of a file into v and reports whether there is one: a JSON object of that name, or a list, which
// stands for an object with the list as its cases. Anything else of that name fails the test. A file without it, or of another
// schema, has nothing for the test that asks.
func (f File) Section(t *testing.T, name string, v any) bool {
	t.Helper()
	var sections map[string]json.RawMessage
	if json.Unmarshal(f.Data, &sections) != nil || len(sections[name]) == 0 {
		return false
	}
	section := sections[name]
	switch section[0] {
	case '{':
	case '[':
		section = slices.Concat([]byte(`{"cases":`), section, []byte("}"))
	default:
		require.Fail(t, "neither an object nor a list", "%s: section %s", f.Name, name)
	}
	require.NoError(t, json.Unmarshal(section, v), "%s: section %s", f.Name, name)
	return true
}

// Has returns an error unless a row is an object that has all of these fields: without its answer a row says nothing.
func Has(row json.RawMessage, fields ...string) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(row, &object); err != nil {
		return err
	}
	for _, field := range fields {
		if _, ok := object[field]; !ok {
			return fmt.Errorf("no %s", field)
		}
	}
	return nil
}

// A Tally counts the rows of one section of one file.
type Tally struct {
	Met, Skipped int
	listed       []string
}

// List counts a row that is not met, with the reason, which the test has computed.
func (c *Tally) List(format string, args ...any) {
	c.listed = append(c.listed, fmt.Sprintf(format, args...))
}

// Rows returns how many rows were met or listed.
func (c *Tally) Rows() int { return c.Met + len(c.listed) }

// Report prints the reasons and the numbers.
func (c *Tally) Report(t *testing.T, file, section string) {
	t.Helper()
	for _, r := range c.listed {
		t.Logf("%s %s: listed: %s", file, section, r)
	}
	t.Logf("%s %s: %d met, %d listed, %d skipped", file, section, c.Met, len(c.listed), c.Skipped)
}
