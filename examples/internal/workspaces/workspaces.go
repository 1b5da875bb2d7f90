// Package workspaces runs the controller of examples/workspace beside a control plane, for end-to-end tests of what
// scales Workspaces.
package workspaces

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/internal/cluster"
)

const (
	system  = "workspace-system"
	account = "workspace-controller"
)

// Start installs what the manifests of examples/workspace say and runs its controller until the end of the test, as its
// service account. Folder is that of the example, as seen from the test.
func Start(tb testing.TB, c *cluster.Cluster, folder string) {
	tb.Helper()
	deploy := filepath.Join(folder, "deploy")
	require.NoError(tb, c.InstallCRDs(filepath.Join(deploy, "crd/workspace.inferscale.io_workspaces.yaml")))
	for _, file := range []string{"namespace", "service_account", "rbac"} {
		text, err := os.ReadFile(filepath.Join(deploy, "base", file+".yaml"))
		require.NoError(tb, err)
		require.NoError(tb, c.Apply(tb.Context(), text), file)
	}
	webhooks, err := c.InstallWebhooks(filepath.Join(deploy, "base/webhooks.yaml"))
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = webhooks.Close() })

	binary := filepath.Join(tb.TempDir(), "workspace")
	out, err := exec.Command("go", "build", "-o", binary, folder).CombinedOutput()
	require.NoError(tb, err, "%s", out)
	as, err := c.ServiceAccount(tb.Context(), system, account)
	require.NoError(tb, err)
	config := filepath.Join(tb.TempDir(), "kubeconfig")
	require.NoError(tb, cluster.WriteKubeconfig(config, as))
	flags := append(webhooks.Flags(), "-kubeconfig", config, "-leader-elect=false", "-metrics-address", "0", "-probe-address", "0")
	program, err := c.StartProgram("workspace", binary, os.Environ(), flags...)
	require.NoError(tb, err)
	tb.Cleanup(program.Stop)
}
