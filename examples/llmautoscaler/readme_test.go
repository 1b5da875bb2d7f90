package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/internal/simhistory"
	"github.com/inferscale/inferscale/internal/simhistory/promtest"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// commandsOf returns the commands of the first indented block under a heading of a page.
func commandsOf(t *testing.T, file, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, under, found := strings.Cut(string(text), heading+"\n")
	require.True(t, found, heading)
	block := regexp.MustCompile(`(?m)(^    \S.*\n)+`).FindString(under)
	require.NotEmpty(t, block)
	return strings.Split(strings.TrimSpace(regexp.MustCompile(`(?m)^    `).ReplaceAllString(block, "")), "\n")
}

// TestReadmeFromPrometheusToAnAppliedManifest carries the commands of README out as they stand: a clone, a real Prometheus, a real
// control plane with a workload, and the controller, which says Ready of what was applied. Another place takes the part of
// GitHub, and the Prometheus listens by itself, as there is nothing to forward a port to.
func TestReadmeFromPrometheusToAnAppliedManifest(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane, and builds programs")
	}
	promtest.Programs(t)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, program := range []string{"git", "kubectl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	if err := exec.Command("git", "-C", root, "rev-parse").Run(); err != nil {
		t.Skip("this is no clone")
	}
	commands := commandsOf(t, "../../README.md", "## From your Prometheus to a verdict")
	require.LessOrEqual(t, len(commands), 5)

	c := cluster.ForTest(t, cluster.Options{Controllers: append(cluster.Workloads(), "statefulset-controller")})
	require.NoError(t, c.Apply(t.Context(), []byte(`
apiVersion: v1
kind: Namespace
metadata: {name: `+simhistory.Namespace+`}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: `+simhistory.Workload+`, namespace: `+simhistory.Namespace+`}
spec:
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: llm}}
  template:
    metadata: {labels: {app: llm}}
    spec: {containers: [{name: server, image: vllm}]}
`)))
	kubelet, err := cluster.StartKubelet(t.Context(), c.Config(), cluster.KubeletOptions{Port: 8000, Metrics: func(cluster.Pod) map[string]float64 { return cluster.Page(1, 20, 0.3) }})
	require.NoError(t, err)
	t.Cleanup(kubelet.Stop)
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	require.NoError(t, cluster.WriteKubeconfig(kubeconfig, c.Config()))
	url := promtest.Serve(t, pastOfAFleet(t))

	at := dir
	run := func(command string) string {
		out := &bytes.Buffer{}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -e\n"+command+"\npwd > "+filepath.Join(dir, "at"))
		cmd.Dir, cmd.Env = at, append(os.Environ(), "KUBECONFIG="+kubeconfig)
		cmd.Stdout, cmd.Stderr = out, out
		require.NoError(t, cmd.Run(), "%s\n%s", command, out)
		now, err := os.ReadFile(filepath.Join(dir, "at"))
		require.NoError(t, err)
		at = strings.TrimSpace(string(now))
		return out.String()
	}
	forwarded := false
	for _, command := range commands {
		if forwarded = forwarded || strings.Contains(command, "port-forward"); strings.Contains(command, "port-forward") {
			require.Regexp(t, ` 9090 &$`, command)
			continue
		}
		command = strings.ReplaceAll(command, "https://github.com/inferscale/inferscale", "file://"+root+" inferscale")
		t.Logf("$ %s\n%s", command, run(strings.ReplaceAll(command, "http://localhost:9090", url)))
	}
	require.True(t, forwarded)
	require.Contains(t, run("kubectl get llmautoscaler -n "+simhistory.Namespace), simhistory.Workload)
	require.FileExists(t, filepath.Join(at, "simulate-report.html"))

	// What the page of the controller says to try it with, and where pods may be on the loopback.
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	try := regexp.MustCompile(`(?m)^    go run \./examples/llmautoscaler (.*)$`).FindStringSubmatch(string(text))
	require.Len(t, try, 2)
	self, err := os.Executable()
	require.NoError(t, err)
	log := &bytes.Buffer{}
	cmd := exec.CommandContext(t.Context(), self, append(strings.Fields(try[1]),
		"-kubeconfig", kubeconfig, "-metrics-address", cluster.FreeAddress(t), "-health-address", cluster.FreeAddress(t), "-allow-local-targets", "-credentials-dir", dir)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), asProgram+"=1"), log
	cluster.DieWithParent(cmd)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of the program:\n%s", tail(log.String(), 40))
		}
	})
	eventually(t, func() error {
		row := run("kubectl get llmautoscaler -n " + simhistory.Namespace + " " + simhistory.Workload)
		if !regexp.MustCompile(`(?m)^replica .* True +Ready `).MatchString(row) {
			return fmt.Errorf("%s", row)
		}
		t.Logf("$ kubectl get llmautoscaler\n%s", row)
		return nil
	})
}

// pastOfAFleet is what was recorded of seven hours until now.
func pastOfAFleet(t *testing.T) *simhistory.Recording {
	t.Helper()
	const length = 7 * time.Hour
	s := simhistory.Production(sim.Qwen32B(), simhistory.Conversations(1.5, 6, length))
	s.Start, s.Grace = time.Now().Truncate(15*time.Second).Add(-length-5*time.Minute), 5*time.Minute
	r, err := simhistory.Record(t.Context(), s, func() (scaling.Group, error) {
		return sim.Schedule(s.Begin(), 20*time.Minute, []int32{3, 4, 3, 5, 4, 3, 2, 3, 4, 3}), nil
	}, 1)
	require.NoError(t, err)
	return r
}
