package main

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/certs"
	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/adapters/keda/defaulting"
	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/internal/kedacluster"
)

// manifests returns the objects of a folder below deploy, without the kustomization itself.
func manifests(t *testing.T, folder string) map[string][]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("deploy", folder, "*.yaml"))
	require.NoError(t, err)
	all := make(map[string][]*unstructured.Unstructured)
	for _, file := range files {
		name := filepath.Base(file)
		if name == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := documents.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			all[name] = append(all[name], object)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// one returns the only object of a kind and a name that the kustomization has, as another type if into is not nil.
func one(t *testing.T, kind, name string, into any) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	for _, objects := range manifests(t, "kustomize") {
		for _, object := range objects {
			if object.GetKind() == kind && object.GetName() == name {
				require.Nil(t, found, "%s %s is there twice", kind, name)
				found = object
			}
		}
	}
	require.NotNil(t, found, "%s %s", kind, name)
	if into != nil {
		text, err := json.Marshal(found.Object)
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict(text, into))
	}
	return found
}

// may lists what rules allow, a resource a line.
func may(t *testing.T, rules []rbacv1.PolicyRule) []string {
	t.Helper()
	var all []string
	for _, r := range rules {
		for _, resource := range r.Resources {
			line := strings.Join(r.APIGroups, ",") + "/" + resource
			if len(r.ResourceNames) > 0 {
				line += "[" + strings.Join(r.ResourceNames, ",") + "]"
			}
			all = append(all, line+" "+strings.Join(r.Verbs, ","))
		}
		require.Empty(t, r.NonResourceURLs)
	}
	for _, line := range all {
		assert.NotContains(t, line, "*")
		if resource, verbs, _ := strings.Cut(line, " "); strings.HasSuffix(resource, "/scale") {
			assert.Equal(t, "get", verbs, "only the HorizontalPodAutoscaler writes %s", resource)
		}
	}
	return all
}

// TestCertManagerLeavesNoRights: with certificates of cert-manager the scaler may write neither Secrets nor how it is found.
func TestCertManagerLeavesNoRights(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("deploy", "cert-manager", "kustomization.yaml"))
	require.NoError(t, err)
	var k struct {
		Patches []struct {
			Target struct{ Kind, Name string }
			Patch  string
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &k))
	patched := func(kind, name string) (role rbacv1.ClusterRole) {
		document, err := json.Marshal(one(t, kind, name, nil).Object)
		require.NoError(t, err)
		for _, p := range k.Patches {
			if p.Target.Kind != kind || !regexp.MustCompile("^(?:"+p.Target.Name+")$").MatchString(name) {
				continue
			}
			operations, err := yaml.YAMLToJSON([]byte(p.Patch))
			require.NoError(t, err)
			patch, err := jsonpatch.DecodePatch(operations)
			require.NoError(t, err)
			document, err = patch.Apply(document)
			require.NoError(t, err)
		}
		require.NoError(t, json.Unmarshal(document, &role))
		return role
	}
	unchanged := func(kind, name string, but ...string) []string {
		var all rbacv1.ClusterRole
		document, err := json.Marshal(one(t, kind, name, nil).Object)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(document, &all))
		return slices.DeleteFunc(may(t, all.Rules), func(line string) bool { return slices.Contains(but, line) })
	}
	assert.Equal(t, unchanged("ClusterRole", "kedascaler",
		"keda.sh/clustertriggerauthentications[keda-kaito-creds] get,create,patch",
		"admissionregistration.k8s.io/mutatingwebhookconfigurations[kedascaler] get,patch",
	), may(t, patched("ClusterRole", "kedascaler").Rules))
	assert.Equal(t, unchanged("Role", "kedascaler", "/secrets create", "/secrets[keda-kaito-scaler-ca] get,update"),
		may(t, patched("Role", "kedascaler").Rules))
	assert.Equal(t, []string{"/secrets[keda-kaito-scaler-certs] list,watch"}, may(t, patched("Role", "kedascaler-certs").Rules))
}

// TestRolesHaveNothingMore lists all that the scaler may do. Whoever adds a line here says why in rbac.yaml.
func TestRolesHaveNothingMore(t *testing.T) {
	may := func(rules []rbacv1.PolicyRule) []string { return may(t, rules) }
	var everywhere rbacv1.ClusterRole
	one(t, "ClusterRole", "kedascaler", &everywhere)
	assert.Nil(t, everywhere.AggregationRule)
	assert.ElementsMatch(t, []string{
		"/pods list,watch",
		"keda.sh/scaledobjects list,watch",
		"apps/deployments/scale get", "apps/statefulsets/scale get",
		"kaito.sh/workspaces/scale get", "kaito.sh/inferencesets/scale get",
		"workspace.inferscale.io/workspaces/scale get",
		"leaderworkerset.x-k8s.io/leaderworkersets/scale get",
		"keda.sh/clustertriggerauthentications[keda-kaito-creds] get,create,patch",
		"admissionregistration.k8s.io/mutatingwebhookconfigurations[kedascaler] get,patch",
		"authentication.k8s.io/tokenreviews create",
		"authorization.k8s.io/subjectaccessreviews create",
	}, may(everywhere.Rules))
	var own, ofKEDA rbacv1.Role
	one(t, "Role", "kedascaler", &own)
	assert.ElementsMatch(t, []string{
		"coordination.k8s.io/leases create", "coordination.k8s.io/leases[kedascaler] get,update",
		"/configmaps get,list,create,patch,delete",
		"/secrets create", "/secrets[keda-kaito-scaler-ca] get,update",
	}, may(own.Rules))
	one(t, "Role", "kedascaler-certs", &ofKEDA)
	assert.ElementsMatch(t, []string{"/secrets create", "/secrets[keda-kaito-scaler-certs] get,list,watch,update"}, may(ofKEDA.Rules))
	for file, objects := range manifests(t, "kustomize") {
		for _, object := range objects {
			bound, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
			assert.Contains(t, []string{"", "kedascaler", "kedascaler-certs"}, bound, file)
		}
	}
}

// TestSamples checks that the samples say what they mean: the webhook fills them in without a warning, KEDA's bounds
// are in order, and the scaler knows every key.
func TestSamples(t *testing.T) {
	c := defaulting.Default()
	c.Known = keda.Known
	defaulter, err := defaulting.New(c)
	require.NoError(t, err)
	triggers, err := keda.NewTriggers(keda.TriggersConfig{Scales: still{}, Observe: still{}.observe})
	require.NoError(t, err)
	modes := make(map[keda.Mode]int)
	for file, objects := range manifests(t, "samples") {
		for _, object := range objects {
			if object.GetKind() != "ScaledObject" {
				continue
			}
			filled := fill(t, defaulter, file, object)
			_, err := keda.ObjectOf(filled)
			require.NoError(t, err, file)
			list, _, err := unstructured.NestedSlice(filled.Object, "spec", "triggers")
			require.NoError(t, err, file)
			for _, one := range list {
				trigger, ok := one.(map[string]any)
				require.True(t, ok, file)
				if trigger["type"] != "external" {
					continue
				}
				metadata, _, err := unstructured.NestedStringMap(trigger, "metadata")
				require.NoError(t, err, file)
				m, err := keda.ParseMetadata(metadata)
				require.NoError(t, err, file)
				assert.Empty(t, m.Warnings, file)
				assert.Empty(t, m.Unknown, file)
				modes[m.Mode]++
				plan, err := triggers.Build(keda.Ref{Namespace: object.GetNamespace(), Name: object.GetName()}, metadata)
				require.NoError(t, err, file)
				plan.Trigger.Close()
			}
		}
	}
	assert.Equal(t, map[keda.Mode]int{keda.Metric: 2, keda.Replicas: 5}, modes)
}

// fill returns an object as the webhook leaves it.
func fill(t *testing.T, defaulter *defaulting.Defaulter, file string, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(object.Object)
	require.NoError(t, err)
	operations, warnings, err := defaulter.Default(text)
	require.NoError(t, err, file)
	assert.Empty(t, warnings, file)
	if file == "without-webhook.yaml" {
		assert.Empty(t, operations, "it is to have all of it")
	}
	patch, err := json.Marshal(operations)
	require.NoError(t, err)
	if len(operations) > 0 {
		decoded, err := jsonpatch.DecodePatch(patch)
		require.NoError(t, err)
		text, err = decoded.Apply(text)
		require.NoError(t, err, file)
	}
	filled := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal(text, &filled.Object))
	return filled
}

// definitions stand for KEDA's where it is not built: with them the API server takes anything of these kinds.
const definitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaledobjects.keda.sh}
spec:
  group: keda.sh
  scope: Namespaced
  names: {kind: ScaledObject, listKind: ScaledObjectList, plural: scaledobjects, singular: scaledobject}
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clustertriggerauthentications.keda.sh}
spec:
  group: keda.sh
  scope: Cluster
  names: {kind: ClusterTriggerAuthentication, listKind: ClusterTriggerAuthenticationList, plural: clustertriggerauthentications, singular: clustertriggerauthentication}
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// kedaDefinitions returns KEDA's own definitions, or what stands for them.
func kedaDefinitions(t *testing.T) string {
	t.Helper()
	if assets, err := kedacluster.Assets(); err == nil {
		return filepath.Join(assets, "crd")
	}
	file := filepath.Join(t.TempDir(), "definitions.yaml")
	require.NoError(t, os.WriteFile(file, []byte(definitions), 0o600))
	return file
}

// TestManifests has an API server check the manifests, and the scaler live with the rights that they give.
func TestManifests(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{CRDs: []string{kedaDefinitions(t)}})
	admin, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	namespace := []byte("{apiVersion: v1, kind: Namespace, metadata: {name: keda, labels: {pod-security.kubernetes.io/enforce: restricted}}}")
	require.NoError(t, c.Apply(t.Context(), namespace))
	installed := make(map[string][]byte)
	var all [][]byte
	for file := range manifests(t, "kustomize") {
		text, err := os.ReadFile(filepath.Join("deploy", "kustomize", file))
		require.NoError(t, err)
		installed[file], err = cluster.InNamespace(text, "keda")
		require.NoError(t, err, file)
		all = append(all, installed[file])
	}
	for file := range manifests(t, "samples") {
		text, err := os.ReadFile(filepath.Join("deploy", "samples", file))
		require.NoError(t, err)
		all = append(all, text)
	}
	require.NoError(t, c.DryRun(t.Context(), bytes.Join(all, []byte("\n---\n"))))
	require.NoError(t, c.Apply(t.Context(), slices.Concat(installed["rbac.yaml"], []byte("---\n"), installed["roles-for-people.yaml"])))

	pod := &unstructured.Unstructured{}
	pod.Object, _, err = unstructured.NestedMap(one(t, "Deployment", "kedascaler", nil).Object, "spec", "template")
	require.NoError(t, err)
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetName("kedascaler-0")
	pod.SetNamespace("keda")
	text, err := yaml.Marshal(pod.Object)
	require.NoError(t, err)
	require.NoError(t, c.DryRun(t.Context(), text), "the namespace takes restricted pods only")
	require.ErrorContains(t, c.DryRun(t.Context(), bytes.ReplaceAll(text, []byte("runAsNonRoot: true"), []byte("runAsNonRoot: false"))), "restricted")

	t.Run("the API server asks about triggers of ours only", func(t *testing.T) { asked(t, c, admin) })
	t.Run("the roles suffice", func(t *testing.T) { suffice(t, c, admin) })
}

// asked puts a server of its own in the webhook's place and sees for which objects it is called.
func asked(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) {
	t.Helper()
	var mu sync.Mutex
	var names []string
	since := func() []string {
		mu.Lock()
		defer mu.Unlock()
		found := names
		names = nil
		slices.Sort(found)
		return found
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct{ UID, Name string }
		}
		if json.NewDecoder(r.Body).Decode(&review) == nil {
			mu.Lock()
			names = append(names, review.Request.Name)
			mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": %q, "allowed": true}}`, review.Request.UID)
	}))
	defer server.Close()
	hook := one(t, "MutatingWebhookConfiguration", "kedascaler", nil).DeepCopy()
	hooks, _, err := unstructured.NestedSlice(hook.Object, "webhooks")
	require.NoError(t, err)
	require.Len(t, hooks, 1)
	only, ok := hooks[0].(map[string]any)
	require.True(t, ok)
	service, _, err := unstructured.NestedString(only, "clientConfig", "service", "path")
	require.NoError(t, err)
	assert.Equal(t, webhookPath, service)
	authority := fmt.Appendf(nil, "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n", base64.StdEncoding.EncodeToString(server.Certificate().Raw))
	only["clientConfig"] = map[string]any{"url": server.URL + webhookPath, "caBundle": base64.StdEncoding.EncodeToString(authority)}
	only["failurePolicy"] = "Fail" // so that a condition that fails is seen
	require.NoError(t, unstructured.SetNestedSlice(hook.Object, hooks, "webhooks"))
	text, err := yaml.Marshal(hook.Object)
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), text))
	defer func() {
		require.NoError(t, admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(t.Context(), "kedascaler", metav1.DeleteOptions{}))
	}()

	object := func(name, triggers string) []byte {
		return fmt.Appendf(nil, `{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": %q, "namespace": "default"},
			"spec": {"scaleTargetRef": {"name": "x"}, "triggers": %s}}`, name, triggers)
	}
	ours := `{"type": "external", "metadata": {"scalerName": "keda-kaito-scaler"}}`
	require.NoError(t, c.Apply(t.Context(), object("ours", "["+ours+"]")))
	eventually(t, func() error { // the configuration takes a moment to be known
		if slices.Contains(since(), "ours") {
			return nil
		}
		return errors.Join(errors.New("not asked"), c.DryRun(t.Context(), object("ours", "["+ours+"]")))
	})
	since()
	for name, triggers := range map[string]string{
		"cron": `[{"type": "cron", "metadata": {"timezone": "UTC"}}]`, "nameless": `[{"type": "external", "metadata": {"scalerAddress": "a:1"}}]`,
		"other": `[{"type": "external", "metadata": {"scalerName": "other"}}]`, "kind": `[{"type": "kafka", "metadata": {"scalerName": "keda-kaito-scaler"}}]`,
	} {
		require.NoError(t, c.DryRun(t.Context(), object(name, triggers)), name)
	}
	assert.Empty(t, since())
	for name, triggers := range map[string]string{
		"beside": `[{"type": "cron", "metadata": {"timezone": "UTC"}}, ` + ours + `]`,
		"push":   `[{"type": "external-push", "metadata": {"scalerName": "keda-kaito-scaler"}}]`,
	} {
		require.NoError(t, c.DryRun(t.Context(), object(name, triggers)), name)
	}
	assert.Equal(t, []string{"beside", "push"}, since())
}

// suffice runs the scaler as its service account until it has done everything that it asks the API server for.
func suffice(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	hook := one(t, "MutatingWebhookConfiguration", "kedascaler", nil)
	text, err := yaml.Marshal(hook.Object)
	require.NoError(t, err)
	require.NoError(t, c.Apply(ctx, text))
	require.NoError(t, c.Apply(ctx, []byte(`
{apiVersion: apps/v1, kind: Deployment, metadata: {name: chat, namespace: default}, spec: {selector: {matchLabels: {app: chat}},
 template: {metadata: {labels: {app: chat}}, spec: {containers: [{name: vllm, image: vllm}]}}}}
---
{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: chat, namespace: default}, spec: {scaleTargetRef: {name: chat}, triggers: [{type: cron, metadata: {timezone: UTC}}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: reader, namespace: keda}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reader},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kedascaler-metrics-reader}, subjects: [{kind: ServiceAccount, name: reader, namespace: keda}]}
`)))
	config, err := c.ServiceAccount(ctx, "keda", "kedascaler")
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, cluster.WriteKubeconfig(kubeconfig, config))
	var ports []string
	for range 4 {
		port, err := cluster.FreePort()
		require.NoError(t, err)
		ports = append(ports, fmt.Sprint(port))
	}
	p := start(t, "-kubeconfig", kubeconfig, "-namespace", "keda", "-address", "127.0.0.1:"+ports[3], "-server-names", "127.0.0.1",
		"-health-address", "127.0.0.1:"+ports[0], "-metrics-address", "127.0.0.1:"+ports[1], "-webhook", "-webhook-host", "127.0.0.1", "-webhook-port", ports[2])
	address := p.address()
	eventually(t, func() error { return page200("http://127.0.0.1:"+ports[0]+"/readyz", nil) })

	var secret *corev1.Secret
	eventually(t, func() error {
		hook, err := admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "kedascaler", metav1.GetOptions{})
		if err == nil && len(hook.Webhooks[0].ClientConfig.CABundle) == 0 {
			err = errors.New("there is no CA in the webhook's configuration")
		}
		return err
	})
	secret, err = admin.CoreV1().Secrets("keda").Get(ctx, "keda-kaito-scaler-certs", metav1.GetOptions{})
	require.NoError(t, err)
	pair := certs.Pair{Cert: secret.Data["tls.crt"], Key: secret.Data["tls.key"]}
	clientTLS, err := certs.ClientTLS(certs.Material{
		Bundle: secret.Data["ca.crt"], Client: pair, Server: certs.Pair{Cert: secret.Data["server.crt"], Key: secret.Data["server.key"]},
	}, "127.0.0.1")
	require.NoError(t, err)
	authentication, err := admin.CoreV1().RESTClient().Get().AbsPath("/apis/keda.sh/v1alpha1/clustertriggerauthentications/keda-kaito-creds").DoRaw(ctx)
	require.NoError(t, err)
	assert.Contains(t, string(authentication), "keda-kaito-scaler-certs")

	// The clock alone decides, as there are no pods: the target is read, and the state is stored.
	ref := trigger("chat", "mode=replicas", `cron.policies=[{name: year, schedule: "@yearly", targetReplicas: 3}]`)
	call(t, address, credentials.NewTLS(clientTLS)).comes(t, ref, keda.ReplicasMetric, 3)
	_, err = admin.CoreV1().ConfigMaps("keda").Get(ctx, stateName(keda.Ref{Namespace: "default", Name: "chat"}), metav1.GetOptions{})
	require.NoError(t, err)

	reader, err := c.ServiceAccount(ctx, "keda", "reader")
	require.NoError(t, err)
	metrics := "https://127.0.0.1:" + ports[1] + "/metrics"
	eventually(t, func() error { return page200(metrics, reader) })
	require.ErrorContains(t, page200(metrics, &rest.Config{}), "401")
	require.ErrorContains(t, page200(metrics, config), "403")
	assert.NotContains(t, strings.ToLower(p.said()), "forbidden")
	p.terminate()
	assert.Equal(t, 0, p.code())
}

// page200 asks for a page as somebody, and reports anything but 200.
func page200(url string, as *rest.Config) error {
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	if as != nil && as.BearerToken != "" {
		request.Header.Set("Authorization", "Bearer "+as.BearerToken)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a certificate of its own
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(url + " answers " + answer.Status)
	}
	return nil
}
