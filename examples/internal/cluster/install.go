package cluster

import (
	"context"
	"fmt"
	"os"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Webhooks are where the API server calls the webhooks of [Cluster.InstallWebhooks], and the folder of the certificate that
// it expects there.
type Webhooks struct {
	Host    string
	Port    int
	CertDir string
}

// Flags tells a program here of it.
func (w Webhooks) Flags() []string {
	return []string{"-webhook-host", w.Host, "-webhook-port", strconv.Itoa(w.Port), "-webhook-cert-dir", w.CertDir}
}

// Close removes the folder.
func (w Webhooks) Close() error { return os.RemoveAll(w.CertDir) }

// Apply applies the objects of YAML documents, as kubectl apply --server-side --force-conflicts does. Objects without a
// namespace go to default if their kind has namespaces.
func (c *Cluster) Apply(ctx context.Context, manifests []byte) error { return c.apply(ctx, manifests) }

// DryRun has the objects of YAML documents checked by the API server and its admission, as kubectl apply --server-side
// --dry-run=server does, and changes nothing.
func (c *Cluster) DryRun(ctx context.Context, manifests []byte) error {
	return c.apply(ctx, manifests, client.DryRunAll)
}

func (c *Cluster) apply(ctx context.Context, manifests []byte, options ...client.ApplyOption) error {
	all, err := client.New(c.Config(), client.Options{})
	if err != nil {
		return err
	}
	return each(manifests, func(object *unstructured.Unstructured) error {
		if err := apply(ctx, all, object, options...); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		return nil
	})
}

func apply(ctx context.Context, all client.Client, object *unstructured.Unstructured, options ...client.ApplyOption) error {
	namespaced, err := all.IsObjectNamespaced(object)
	if err != nil {
		return err
	}
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return all.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		append(options, client.ForceOwnership, client.FieldOwner("inferscale-cluster"))...)
}

// Aggregate registers an API group that a server on 127.0.0.1 serves by TLS, as an adapter of external metrics is: the
// API server forwards its requests there. The certificate of that server is not checked.
func (c *Cluster) Aggregate(ctx context.Context, api schema.GroupVersion, port int) error {
	// There is no service network here, so the service is a name for this machine.
	manifests := fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: kube-system}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: %[2]s.%[3]s}
spec:
  group: %[3]s
  version: %[2]s
  service: {name: %[1]s, namespace: kube-system, port: %[4]d}
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
`, fmt.Sprintf("aggregated-%d", port), api.Version, api.Group, port)
	return c.Apply(ctx, []byte(manifests))
}
