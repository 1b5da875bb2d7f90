package kedacluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// Namespace is that of KEDA: of its service account, and of the secrets that ClusterTriggerAuthentications name.
const Namespace = "keda"

// account is the service account that KEDA's manifests give roles to.
const account = "keda-operator"

// User is what KEDA is called in the audit log.
func User() string { return cluster.ServiceAccountUser(Namespace, account) }

// Options of [Start].
type Options struct {
	// OperatorFlags come after those of this package, and win.
	OperatorFlags []string
}

// A KEDA is a running KEDA. Its methods may be called from several goroutines.
type KEDA struct {
	options Options
	cluster *cluster.Cluster
	assets  string
	dir     string // of the certificates and the kubeconfig
	admin   *kubernetes.Clientset

	probePort, rpcPort, adapterPort int

	programs cluster.Programs
}

// Start installs KEDA in a cluster, starts it, and waits until the operator answers the adapter and the adapter answers
// the API server. The context bounds the start only; Stop ends KEDA, and must come before Stop of the cluster. An error
// has the end of the log of the program that failed.
func Start(ctx context.Context, c *cluster.Cluster, o Options) (*KEDA, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		k := &KEDA{options: o, cluster: c, assets: assets}
		err := k.start(ctx)
		if err == nil {
			return k, nil
		}
		k.Stop()
		// A port that was free a moment ago may be taken by now.
		if try == 3 || !strings.Contains(err.Error(), "address already in use") {
			return nil, fmt.Errorf("KEDA: %w", err)
		}
	}
}

func (k *KEDA) start(ctx context.Context) (err error) {
	if k.admin, err = kubernetes.NewForConfig(k.cluster.Config()); err != nil {
		return err
	}
	if err := k.install(ctx); err != nil {
		return err
	}
	for _, port := range []*int{&k.probePort, &k.rpcPort, &k.adapterPort} {
		if *port, err = cluster.FreePort(); err != nil {
			return err
		}
	}
	api := schema.GroupVersion{Group: "external.metrics.k8s.io", Version: "v1beta1"}
	if err := k.cluster.Aggregate(ctx, api, k.adapterPort); err != nil {
		return err
	}
	if err := k.StartOperator(ctx); err != nil {
		return err
	}
	return k.StartAdapter(ctx)
}

// install applies KEDA's definitions, its account and its roles, and writes its certificates and its kubeconfig.
func (k *KEDA) install(ctx context.Context) error {
	if err := k.cluster.InstallCRDs(filepath.Join(k.assets, crdFolder)); err != nil {
		return err
	}
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + Namespace + "}\n"
	if err := k.cluster.Apply(ctx, []byte(namespace)); err != nil {
		return err
	}
	manifests, err := filepath.Glob(filepath.Join(k.assets, rbacFolder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range manifests {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := k.cluster.Apply(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	k.dir = filepath.Join(k.cluster.Dir(), "keda")
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	if err := k.cluster.WriteCertificates(k.dir); err != nil {
		return err
	}
	config, err := k.cluster.ServiceAccount(ctx, Namespace, account)
	if err != nil {
		return err
	}
	return cluster.WriteKubeconfig(k.kubeconfig(), config)
}

// StartOperator starts the operator again after [KEDA.StopOperator], on the same ports, and waits until it would answer
// the adapter.
func (k *KEDA) StartOperator(ctx context.Context) error {
	p, err := k.launch(operatorProgram, append([]string{
		"--metrics-bind-address=0", // none
		"--health-probe-bind-address=" + cluster.Address(k.probePort),
		"--metrics-service-bind-address=" + cluster.Address(k.rpcPort),
		"--cert-dir=" + k.dir,
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--zap-stacktrace-level=panic", // errors are one line each
	}, k.options.OperatorFlags...))
	if err != nil {
		return err
	}
	return p.Ready(ctx, func(ctx context.Context) error {
		if err := get(ctx, "http://"+cluster.Address(k.probePort)+"/readyz"); err != nil {
			return err
		}
		// It listens for the adapter when it has read what the cluster has.
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", cluster.Address(k.rpcPort))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// StartAdapter starts the metrics adapter again after [KEDA.StopAdapter], on the same port, and waits until the API
// server has answers from it.
func (k *KEDA) StartAdapter(ctx context.Context) error {
	p, err := k.launch(adapterProgram, []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(k.adapterPort),
		"--port=0", // of its own metrics: any
		"--cert-dir=" + k.dir,
		"--tls-cert-file=" + filepath.Join(k.dir, "tls.crt"),
		"--tls-private-key-file=" + filepath.Join(k.dir, "tls.key"),
		"--authentication-kubeconfig=" + k.kubeconfig(),
		"--authorization-kubeconfig=" + k.kubeconfig(),
		"--lister-kubeconfig=" + k.kubeconfig(),
		"--metrics-service-address=" + cluster.Address(k.rpcPort),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--zap-stacktrace-level=panic", // errors are one line each
	})
	if err != nil {
		return err
	}
	return p.Ready(ctx, func(ctx context.Context) error {
		if err := get(ctx, "https://"+cluster.Address(k.adapterPort)+"/readyz"); err != nil {
			return err
		}
		_, err := k.admin.RESTClient().Get().AbsPath("/apis/external.metrics.k8s.io/v1beta1").DoRaw(ctx)
		return err
	})
}

// StopOperator stops the operator and leaves the adapter running. HorizontalPodAutoscalers get no metrics, and hold.
func (k *KEDA) StopOperator() { k.programs.Stop(operatorProgram) }

// StopAdapter stops the metrics adapter and leaves the operator running. HorizontalPodAutoscalers get no metrics, and
// hold.
func (k *KEDA) StopAdapter() { k.programs.Stop(adapterProgram) }

// Stop ends both programs. What they made stays in the cluster. It may be called more than once.
func (k *KEDA) Stop() {
	k.StopAdapter()
	k.StopOperator()
}

// Processes returns what runs.
func (k *KEDA) Processes() []cluster.Process { return k.programs.Of(operatorProgram, adapterProgram) }

// LogTails returns the last lines of each program's log, for people. It needs the cluster's folder.
func (k *KEDA) LogTails(lines int) string {
	return k.cluster.LogTails(lines, operatorProgram, adapterProgram)
}

func (k *KEDA) launch(name string, args []string) (*cluster.Program, error) {
	environment := []string{
		"KUBECONFIG=" + k.kubeconfig(),
		"POD_NAMESPACE=" + Namespace,
		"KEDA_CLUSTER_OBJECT_NAMESPACE=" + Namespace,
		"WATCH_NAMESPACE=", // all
		"HOME=" + k.dir,
		"TMPDIR=" + k.dir,
	}
	return k.programs.Start(name, func() (*cluster.Program, error) {
		return k.cluster.StartProgram(name, filepath.Join(k.assets, name), environment, args...)
	})
}

// kubeconfig is the file by which KEDA reaches the API server.
func (k *KEDA) kubeconfig() string { return filepath.Join(k.dir, "kubeconfig") }

// get asks for a page and fails unless the answer is 200. It does not check certificates: it asks a child process.
func get(ctx context.Context, url string) error {
	return cluster.Get(ctx, &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as the API server does
	}}, url)
}
