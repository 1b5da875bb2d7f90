package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// loopback is where the servers of the control plane listen.
const loopback = "127.0.0.1"

// Options of [Start]. The zero value is etcd and an API server.
type Options struct {
	// Controllers are the controllers to run, by the names of kube-controller-manager, as [Workloads] or
	// "horizontal-pod-autoscaler-controller". None: no controller manager.
	Controllers []string
	// APIServerFlags come after those of this package, and win.
	APIServerFlags []string
	// CRDs are files and folders with custom resource definitions to install.
	CRDs []string
}

// Workloads are the controllers that make pods of Deployments and clean up after deletions.
func Workloads() []string {
	return []string{
		"deployment-controller", "replicaset-controller", "garbage-collector-controller", "namespace-controller",
	}
}

// HPA are [Workloads] and the controller of HorizontalPodAutoscalers; it looks at them once a second.
func HPA() []string {
	return append(Workloads(), "horizontal-pod-autoscaler-controller")
}

// A Cluster is a running control plane. Its methods may be called from several goroutines.
type Cluster struct {
	options Options
	assets  string
	dir     string
	clients *authority
	admin   *rest.Config

	etcdPort, apiPort, controllerPort int

	programs Programs
}

// A Process is one program of the control plane.
type Process struct {
	Name string
	PID  int
	Log  string // the file of its output
}

// Start starts a control plane and waits until it is ready. The context bounds the start only; Stop ends the cluster.
// An error has the end of the log of the program that failed.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		c := &Cluster{options: o, assets: assets}
		err := c.start(ctx)
		if err == nil {
			return c, nil
		}
		c.Stop()
		// A port that was free a moment ago may be taken by now.
		if try == 3 || !errors.Is(err, errExited) || !strings.Contains(err.Error(), "address already in use") {
			return nil, fmt.Errorf("cluster: %w", err)
		}
	}
}

func (c *Cluster) start(ctx context.Context) (err error) {
	if c.dir, err = os.MkdirTemp("", "inferscale-cluster-"); err != nil {
		return err
	}
	if c.clients, err = writeCertificates(c.dir); err != nil {
		return err
	}
	if err := os.WriteFile(c.path("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	for _, port := range []*int{&c.etcdPort, &c.apiPort, &c.controllerPort} {
		if *port, err = FreePort(); err != nil {
			return err
		}
	}
	if c.admin, err = c.User("inferscale-admin", "system:masters"); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if len(c.options.Controllers) > 0 {
		if err := c.startControllers(ctx); err != nil {
			return err
		}
	}
	if len(c.options.CRDs) > 0 {
		return c.InstallCRDs(c.options.CRDs...)
	}
	return nil
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	url := "http://" + Address(c.etcdPort)
	p, err := c.launch(etcdProgram,
		"--data-dir="+c.path("etcd"),
		"--listen-client-urls="+url,
		"--advertise-client-urls="+url,
		"--listen-peer-urls=http://"+loopback+":0",
		"--unsafe-no-fsync",
	)
	if err != nil {
		return err
	}
	return p.Ready(ctx, func(ctx context.Context) error { return Get(ctx, http.DefaultClient, url+"/health") })
}

// StartAPIServer starts the API server again after [Cluster.StopAPIServer], on the same port with the same data, and
// waits until it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	p, err := c.launch(apiServerProgram, c.apiServerFlags()...)
	if err != nil {
		return err
	}
	return c.ready(ctx, p, c.admin.Host+"/readyz")
}

// ready waits until a server of the cluster answers.
func (c *Cluster) ready(ctx context.Context, p *Program, url string) error {
	client, err := rest.HTTPClientFor(c.admin) // it trusts the authority that both servers have
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return p.Ready(ctx, func(ctx context.Context) error { return Get(ctx, client, url) })
}

// StopAPIServer stops the API server and leaves all else running: an outage.
func (c *Cluster) StopAPIServer() { c.programs.Stop(apiServerProgram) }

// RestartAPIServer is [Cluster.StopAPIServer] and [Cluster.StartAPIServer]. It takes about three seconds.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	c.StopAPIServer()
	return c.StartAPIServer(ctx)
}

// startControllers starts the controller manager. Each controller is a service account of its own, as in real
// clusters: the audit log tells them apart.
func (c *Cluster) startControllers(ctx context.Context) error {
	config, err := c.User("system:kube-controller-manager")
	if err != nil {
		return err
	}
	kubeconfig := c.path("controllers.kubeconfig")
	if err := WriteKubeconfig(kubeconfig, config); err != nil {
		return err
	}
	p, err := c.launch(controllerProgram, c.controllerFlags(kubeconfig)...)
	if err != nil {
		return err
	}
	return c.ready(ctx, p, "https://"+Address(c.controllerPort)+"/healthz")
}

// Stop ends the controllers, the API server and the store in this order, and removes the data. It may be called more than
// once.
func (c *Cluster) Stop() {
	c.stopProcesses()
	if c.dir != "" {
		_ = os.RemoveAll(c.dir) // in the folder for temporary files
	}
}

// stopProcesses stops what runs, and keeps the data and the logs.
func (c *Cluster) stopProcesses() {
	for _, name := range []string{controllerProgram, apiServerProgram, etcdProgram} {
		c.programs.Stop(name)
	}
}

func (c *Cluster) launch(name string, args ...string) (*Program, error) {
	return c.programs.Start(name, func() (*Program, error) {
		return start(name, c.dir, exec.Command(filepath.Join(c.assets, name), args...))
	})
}

// Processes returns what runs.
func (c *Cluster) Processes() []Process {
	return c.programs.Of(etcdProgram, apiServerProgram, controllerProgram)
}

// LogTails returns the last lines of the logs of programs beside the cluster that have one, for people; without names, those
// of the control plane.
func (c *Cluster) LogTails(lines int, names ...string) string {
	if len(names) == 0 {
		names = []string{etcdProgram, apiServerProgram, controllerProgram}
	}
	var text strings.Builder
	for _, name := range names {
		file := c.path(name + ".log")
		if _, err := os.Stat(file); err == nil {
			fmt.Fprintf(&text, "== %s\n%s\n", file, tail(file, lines))
		}
	}
	return text.String()
}

// Dir is the folder of the data, the certificates and the logs.
func (c *Cluster) Dir() string { return c.dir }

// Config returns the configuration of a client that may do everything.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.admin) }

func (c *Cluster) client() (*kubernetes.Clientset, error) { return kubernetes.NewForConfig(c.admin) }

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// Address is that of a port on the loopback.
func Address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// FreePort finds a port on the loopback where nothing listens. It is below those that outgoing connections take, so that
// it stays free while a server restarts.
func FreePort() (int, error) {
	var last error
	for range 100 {
		port := 20_000 + rand.IntN(12_000)
		l, err := net.Listen("tcp", Address(port))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, last
}

// Get asks for a page and fails unless the answer is 200.
func Get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, answer.Status)
	}
	return nil
}
