// Demo starts a Kubernetes control plane on the loopback of this machine, with the controller llmautoscaler, a fleet of
// pretended vLLM servers under a load that rises and falls, and one LLMAutoScaler, and shows what happens. No container
// engine, no kubelet and no root are needed.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/examples/internal/cluster"
)

const (
	system  = "inferscale-system"
	account = "llmautoscaler"
)

func main() {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	length := flags.Duration("for", 0, "how long to go on; 0 means until Ctrl-C")
	dir := flags.String("dir", "", "`directory` for kubeconfig; empty means a temporary one")
	switch err := cli.Parse(flags, os.Args[1:], os.Stdout, os.Stderr); {
	case err != nil:
		os.Exit(cli.Code(err))
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "demo: unexpected argument %q\n", flags.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard())
	if *length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *length)
		defer cancel()
	}
	if err := run(ctx, os.Stdout, *dir); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// run goes on until the context ends or something fails. After a failure its temporary directory stays, for the log.
func run(ctx context.Context, w io.Writer, dir string) (err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	if err := assets(ctx, w, root); err != nil {
		return err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "inferscale-demo"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				_ = os.RemoveAll(dir)
			}
		}()
	}
	binary := filepath.Join(dir, "llmautoscaler")
	if err := command(ctx, w, root, "go", "build", "-o", binary, "./examples/llmautoscaler").Run(); err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}

	fmt.Fprint(w, "starting etcd, kube-apiserver and kube-controller-manager ...\n")
	c, err := cluster.Start(ctx, cluster.Options{
		Controllers: cluster.Workloads(), CRDs: []string{filepath.Join(root, "adapters/k8s/api/crd")},
	})
	if err != nil {
		return err
	}
	defer c.Stop()
	manifests, err := collect(root)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, manifests); err != nil {
		return fmt.Errorf("apply the manifests: %w", err)
	}

	fleet := cluster.NewFleet(cluster.FleetOptions{Slots: 8, Service: time.Second})
	kubelet, err := cluster.StartKubelet(ctx, c.Config(), cluster.KubeletOptions{Fleet: fleet, Metrics: fleet.Metrics, StartDelay: 5 * time.Second})
	if err != nil {
		return err
	}
	defer kubelet.Stop()

	mine, theirs := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "controller.kubeconfig")
	if err := cluster.WriteKubeconfig(mine, c.Config()); err != nil {
		return err
	}
	as, err := c.ServiceAccount(ctx, system, account)
	if err != nil {
		return err
	}
	if err := cluster.WriteKubeconfig(theirs, as); err != nil {
		return err
	}
	logs, err := os.Create(filepath.Join(dir, "controller.log"))
	if err != nil {
		return err
	}
	defer func() { _ = logs.Close() }()
	controller := exec.CommandContext(ctx, binary,
		"-kubeconfig", theirs, "-leader-elect=false", "-health-address", "0", "-metrics-address", "0", "-allow-local-targets")
	controller.Stdout, controller.Stderr = logs, logs
	controller.Cancel = func() error { return controller.Process.Signal(syscall.SIGTERM) }
	controller.WaitDelay = 10 * time.Second
	if err := controller.Start(); err != nil {
		return fmt.Errorf("start the controller: %w", err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Wait()
		stop() // there is nothing more to see
	}()

	introduce(w, mine, logs.Name())
	go load(ctx, fleet)
	api, err := newClient(c.Config())
	if err != nil {
		return err
	}
	v := &viewer{out: w, inFlight: fleet.InFlight}
	err = v.watch(watching, api)
	select {
	case e := <-ended:
		if ctx.Err() == nil {
			return fmt.Errorf("the controller ended: %w; its log is %s", e, logs.Name())
		}
	default:
	}
	return err
}

// introduce says what runs and how to look at it.
func introduce(w io.Writer, kubeconfig, logs string) {
	fmt.Fprintf(w, "\nA control plane, the controller, a Deployment \"chat\" and its LLMAutoScaler run.\n")
	if _, err := exec.LookPath("kubectl"); err == nil {
		fmt.Fprintf(w, "In another terminal:\n\n    export KUBECONFIG=%s\n    kubectl get llmautoscaler -n models -w\n    kubectl describe llmautoscaler -n models chat\n\n", kubeconfig)
	} else {
		fmt.Fprintf(w, "kubectl is not on the PATH; with it you could look by KUBECONFIG=%s.\n", kubeconfig)
	}
	fmt.Fprintf(w, "The controller's log: %s\nCtrl-C ends it all.\n\n", logs)
}

// load is one up and down after the other: 4 requests a second, which one replica serves, and 30, which take four.
func load(ctx context.Context, fleet *cluster.Fleet) {
	for {
		for _, stage := range []struct {
			rate   float64
			length time.Duration
		}{{4, 15 * time.Second}, {30, 75 * time.Second}, {4, 90 * time.Second}} {
			fleet.SetRate(stage.rate)
			select {
			case <-ctx.Done():
				return
			case <-time.After(stage.length):
			}
		}
	}
}

// assets builds the control plane, if it is not there. It takes some minutes, once a machine.
func assets(ctx context.Context, w io.Writer, root string) error {
	_, err := cluster.Assets()
	if !errors.Is(err, cluster.ErrNoAssets) {
		return err
	}
	fmt.Fprint(w, "building etcd and Kubernetes from their modules, once a machine: about six minutes ...\n")
	if err := command(ctx, w, root, "internal/controlplane/build").Run(); err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	return nil
}

func command(ctx context.Context, w io.Writer, dir, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	if filepath.Base(name) != name {
		c.Path = filepath.Join(dir, name)
	}
	c.Dir, c.Stdout, c.Stderr = dir, w, w
	return c
}

// moduleRoot returns the folder of the repository.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/inferscale/inferscale").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: run it within a clone: %w", err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// collect returns the manifests of the controller that a control plane without nodes can use, and the sample.
func collect(root string) ([]byte, error) {
	roles, err := os.ReadFile(filepath.Join(root, "examples/llmautoscaler/deploy/kustomize/rbac.yaml"))
	if err != nil {
		return nil, err
	}
	if roles, err = cluster.InNamespace(roles, system); err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{[]byte(namespaces), roles, []byte(sample)}, []byte("\n---\n")), nil
}

const namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: inferscale-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: models}
`

const sample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: models}
spec:
  replicas: 1
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec: {containers: [{name: server, image: vllm/vllm-openai}]}
---
apiVersion: autoscaling.inferscale.io/v1alpha1
kind: LLMAutoScaler
metadata: {name: chat, namespace: models}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  minReplicas: 1
  maxReplicas: 8
  intervalSeconds: 2
  scaler:
    realtime:
      metrics:
        - threshold: {high: "5", low: "1"}
      scaleUpRule: {scaleStep: 1, cooldownSeconds: 8, stabilizationWindowSeconds: 4}
      scaleDownRule: {scaleStep: 1, cooldownSeconds: 15, stabilizationWindowSeconds: 10}
`
