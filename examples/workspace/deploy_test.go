package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/webhook"
)

// kustomization is what these tests read of one.
type kustomization struct {
	Resources []string `json:"resources"`
}

// resourcesOf returns the files that a folder's kustomization names, with those of the folders that it names.
func resourcesOf(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	require.NoError(t, err)
	var k kustomization
	require.NoError(t, yaml.Unmarshal(text, &k))
	var files []string
	for _, name := range k.Resources {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		require.NoError(t, err)
		if info.IsDir() {
			files = append(files, resourcesOf(t, path)...)
		} else {
			files = append(files, path)
		}
	}
	return files
}

// manifests returns the objects that deploy/base names.
func manifests(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	var all []unstructured.Unstructured
	for _, file := range resourcesOf(t, "deploy/base") {
		all = append(all, objects(t, file)...)
	}
	return all
}

// objects returns the objects of a file.
func objects(t *testing.T, file string) []unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []unstructured.Unstructured
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var u unstructured.Unstructured
		err := documents.Decode(&u.Object)
		if err == io.EOF { //nolint:errorlint // the decoder returns it as it is
			return all
		}
		require.NoError(t, err, file)
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
}

// only returns the one object of a kind and name, and fails on fields that its type does not have.
func only[T any](t *testing.T, kind, name string) T {
	t.Helper()
	var out T
	for _, u := range manifests(t) {
		if u.GetKind() == kind && u.GetName() == name {
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &out, true))
			return out
		}
	}
	require.Failf(t, "not there", "%s %s", kind, name)
	return out
}

func TestEveryManifestIsInAKustomization(t *testing.T) {
	var listed, there []string
	for _, dir := range []string{"deploy/cert-manager", "deploy/self-signed"} {
		listed = append(listed, resourcesOf(t, dir)...)
	}
	for _, dir := range []string{"base", "cert-manager", "crd", "self-signed"} {
		files, err := filepath.Glob(filepath.Join("deploy", dir, "*.yaml"))
		require.NoError(t, err)
		for _, file := range files {
			if filepath.Base(file) != "kustomization.yaml" {
				there = append(there, file)
			}
		}
	}
	slices.Sort(listed)
	assert.ElementsMatch(t, slices.Compact(listed), there)
}

func TestDefinitionHasScale(t *testing.T) {
	crd := only[apiextensionsv1.CustomResourceDefinition](t, "CustomResourceDefinition", "workspaces.workspace.inferscale.io")
	assert.Equal(t, []string{"wk", "wks"}, crd.Spec.Names.ShortNames)
	require.Len(t, crd.Spec.Versions, 1)
	sub := crd.Spec.Versions[0].Subresources
	require.NotNil(t, sub.Status)
	assert.Equal(t, ".spec.inference.replicas", sub.Scale.SpecReplicasPath)
	assert.Equal(t, ".status.inference.replicas", sub.Scale.StatusReplicasPath)
	assert.Equal(t, ".status.inference.selector", *sub.Scale.LabelSelectorPath)
}

func TestWebhooksOfTheManifestAreServed(t *testing.T) {
	mutating := only[admissionregistrationv1.MutatingWebhookConfiguration](t, "MutatingWebhookConfiguration", "workspace")
	require.Len(t, mutating.Webhooks, 1)
	assert.Equal(t, webhook.DefaultPath, *mutating.Webhooks[0].ClientConfig.Service.Path)

	validating := only[admissionregistrationv1.ValidatingWebhookConfiguration](t, "ValidatingWebhookConfiguration", "workspace")
	resources := map[string]string{}
	for _, w := range validating.Webhooks {
		assert.Equal(t, admissionregistrationv1.Fail, *w.FailurePolicy)
		assert.Equal(t, admissionregistrationv1.SideEffectClassNone, *w.SideEffects)
		require.Len(t, w.Rules, 1)
		assert.Equal(t, []string{v1alpha1.Group}, w.Rules[0].APIGroups)
		assert.Equal(t, []string{v1alpha1.Version}, w.Rules[0].APIVersions)
		resources[strings.Join(w.Rules[0].Resources, " ")] = *w.ClientConfig.Service.Path
	}
	assert.Equal(t, map[string]string{
		"workspaces": webhook.ValidatePath, "workspaces/scale": webhook.ValidateScalePath,
	}, resources)
}

// The controller may do what it does and nothing else.
func TestLeastPrivilege(t *testing.T) {
	role := only[rbacv1.ClusterRole](t, "ClusterRole", "workspace-controller")
	granted := map[string][]string{}
	for _, r := range role.Rules {
		require.Len(t, r.APIGroups, 1)
		for _, resource := range r.Resources {
			granted[r.APIGroups[0]+"/"+resource] = r.Verbs
		}
	}
	assert.Equal(t, map[string][]string{
		"workspace.inferscale.io/workspaces":        {"get", "list", "watch"},
		"workspace.inferscale.io/workspaces/status": {"update", "patch"},
		"apps/deployments":                          {"list", "watch", "create", "patch"},
		"/events":                                   {"create", "patch"},
	}, granted)
}

func TestPodIsRestricted(t *testing.T) {
	d := only[appsv1.Deployment](t, "Deployment", "workspace-controller")
	pod := d.Spec.Template.Spec
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	assert.Equal(t, "RuntimeDefault", string(pod.SecurityContext.SeccompProfile.Type))
	for _, c := range pod.Containers {
		assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
		assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		assert.Equal(t, "ALL", string(c.SecurityContext.Capabilities.Drop[0]))
		_, err := parse(c.Args, io.Discard, io.Discard)
		require.NoError(t, err, "the arguments are flags of the program")
	}
}

func TestSamplesAreWorkspaces(t *testing.T) {
	for _, file := range []string{"preset", "template", "preferred-nodes"} {
		for _, u := range objects(t, "deploy/samples/"+file+".yaml") {
			var w v1alpha1.Workspace
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &w, true), file)
			assert.NotNil(t, w.Spec.Inference)
		}
	}
}
