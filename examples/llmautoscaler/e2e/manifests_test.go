package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// TestManifestsDryRun has the API server check every manifest of every example, as kubectl apply --dry-run=server does,
// and what check.sh renders of the chart, which it compares with the kustomization too. Left out are kustomizations,
// which are none of its objects, and cert-manager's certificate, whose kind is not there.
func TestManifestsDryRun(t *testing.T) {
	t.Parallel()
	c := cluster.ForTest(t, cluster.Options{CRDs: []string{
		"../../../adapters/k8s/api/crd", "../../workspace/deploy/crd/workspace.inferscale.io_workspaces.yaml",
	}})
	inNamespace := regexp.MustCompile(`(?m)^\s*namespace: (\S+)`)
	manifests := map[string][]byte{}
	for _, root := range []string{"../deploy", "../../workspace/deploy", "../../variantautoscaler/deploy"} {
		require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "chart" || entry.Name() == "cert-manager"):
				return filepath.SkipDir
			case filepath.Ext(file) != ".yaml" || entry.Name() == "kustomization.yaml":
				return nil
			}
			manifests[file], err = os.ReadFile(file)
			return err
		}))
	}
	require.Greater(t, len(manifests), 25)
	maps.Copy(manifests, rendered(t))
	for file, text := range manifests {
		for _, match := range inNamespace.FindAllStringSubmatch(string(text), -1) {
			name := strings.Trim(match[1], `"'`)
			require.NoError(t, c.Apply(t.Context(), fmt.Appendf(nil, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", name)), "%s: namespace %s", file, name)
		}
	}
	for file, text := range manifests {
		require.NoError(t, c.DryRun(t.Context(), text), file)
	}
	typo := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong}\ndate: {}\n"
	require.ErrorContains(t, c.DryRun(t.Context(), []byte(typo)), "date", "the API server refuses what its schema does not have")
}

// TestDisruptionBudgets let nodes be drained, whatever the count of replicas: minAvailable 1 does not if there is one.
func TestDisruptionBudgets(t *testing.T) {
	require.GreaterOrEqual(t, eachOf(t, "PodDisruptionBudget", func(file, document string) {
		require.Contains(t, document, "\n  maxUnavailable: 1", file)
		require.NotContains(t, document, "minAvailable", file)
	}), 6)
}

// TestMemoryLimits: Go's own limit is nine tenths of the container's, so that what can be collected is, before it is killed.
func TestMemoryLimits(t *testing.T) {
	limit := regexp.MustCompile(`limits:\s+(?:\{memory: |memory: )(\d+)Mi`)
	soft := regexp.MustCompile(`name: GOMEMLIMIT.*\n\s+value: (\d+)MiB`)
	programs := 0
	eachOf(t, "Deployment", func(file, document string) {
		of := limit.FindStringSubmatch(document)
		if of == nil { // a model, or a template of a chart, which rendered ones are compared with
			return
		}
		programs++
		is := soft.FindStringSubmatch(document)
		require.NotNil(t, is, "%s: GOMEMLIMIT", file)
		hard, err := strconv.Atoi(of[1])
		require.NoError(t, err)
		held, err := strconv.Atoi(is[1])
		require.NoError(t, err)
		require.Equal(t, 9*hard/10, held, file)
	})
	require.Equal(t, 4, programs)
}

// TestEgress: no NetworkPolicy lets a program go everywhere, nor does one say nothing about it.
func TestEgress(t *testing.T) {
	require.GreaterOrEqual(t, eachOf(t, "NetworkPolicy", func(file, document string) {
		require.Contains(t, document, "policyTypes: [Ingress, Egress]", file)
		_, egress, ok := strings.Cut(document, "\n  egress:")
		require.True(t, ok, file)
		require.NotContains(t, egress, "    - {}", file)
	}), 5)
}

// TestEverythingIsPinned: what builds and publishes is named by what it contains, images by digest and actions by commit.
func TestEverythingIsPinned(t *testing.T) {
	t.Parallel()
	for _, rule := range []struct {
		files           string
		names, isPinned *regexp.Regexp
		atLeast         int
	}{
		{"../../Containerfile", regexp.MustCompile(`(?m)^FROM .*`), regexp.MustCompile(`:[\w.]+@sha256:[0-9a-f]{64}( AS \w+)?$`), 2},
		{"../../../.github/workflows/*.yml", regexp.MustCompile(`(?m)^[ -]+uses: .*`), regexp.MustCompile(`@[0-9a-f]{40} # v[\d.]+$`), 25},
	} {
		files, err := filepath.Glob(rule.files)
		require.NoError(t, err)
		found := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, line := range rule.names.FindAllString(strings.ReplaceAll(string(text), "\r", ""), -1) {
				found++
				require.Regexp(t, rule.isPinned, line, file)
			}
		}
		require.GreaterOrEqual(t, found, rule.atLeast, rule.files)
	}
	require.NoError(t, filepath.WalkDir("../..", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && regexp.MustCompile(`(?i)(container|docker)file`).MatchString(entry.Name()) {
			require.Equal(t, "../../Containerfile", file, "a second file that builds images")
		}
		return err
	}))
}

// eachOf calls f with every document of a kind in the manifests of all examples, and returns how many there are.
func eachOf(t *testing.T, kind string, f func(file, document string)) (found int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("../..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(strings.ReplaceAll(string(text), "\r", ""), "\n---\n") {
			if strings.Contains(document, "kind: "+kind+"\n") {
				found++
				f(file, document)
			}
		}
		return nil
	}))
	return found
}

// rendered returns what check.sh renders of kustomization and chart, or nothing in short tests: helm is built for it.
func rendered(t *testing.T) map[string][]byte {
	t.Helper()
	if testing.Short() {
		return nil
	}
	out := t.TempDir()
	c := exec.CommandContext(t.Context(), "../deploy/check.sh")
	c.Env = append(os.Environ(), "OUT="+out)
	said, err := c.CombinedOutput()
	require.NoError(t, err, "%s", said)
	files, err := filepath.Glob(filepath.Join(out, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 4, "%s", said)
	all := make(map[string][]byte, len(files))
	for _, file := range files {
		all["rendered "+filepath.Base(file)], err = os.ReadFile(file)
		require.NoError(t, err)
	}
	return all
}
