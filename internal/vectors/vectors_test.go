package vectors_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/vectors"
)

// TestFilesInFolders: files below the folder, whatever their names, are read; those of hidden folders, which mounted volumes
// have, are not read twice.
func TestFilesInFolders(t *testing.T) {
	folder := t.TempDir()
	for name, data := range map[string]string{
		"a.json": "{}", "more/deep/b.json": "{}", "C.JSON": "{}", "d.jsonl": "{}\n{}\n", "..data/a.json": "{}", "README.md": "no",
	} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(folder, link))
	for _, named := range []string{folder, link} {
		t.Setenv("INFERSCALE_VECTORS", named)
		var names []string
		for _, file := range vectors.Files(t) {
			names = append(names, file.Name)
			require.Equal(t, file.Name == "d.jsonl", file.IsLines())
		}
		require.ElementsMatch(t, []string{"a.json", "more/deep/b.json", "C.JSON", "d.jsonl"}, names)
	}
}

func TestHas(t *testing.T) {
	require.NoError(t, vectors.Has(json.RawMessage(`{"a": 1, "b": null}`), "a", "b"))
	for _, row := range []string{`{"a": 1}`, `{}`, `null`, `[]`, `"x"`} {
		require.Error(t, vectors.Has(json.RawMessage(row), "a", "b"), row)
	}
}
