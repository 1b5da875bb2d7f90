package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// TestNamespaces is the chart's value namespaces: the program works in them with the roles that it gets there, has no
// rights in others, and its webhook leaves others alone.
func TestNamespaces(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane, and builds helm")
	}
	i := install(t)
	for _, name := range []string{"models", "elsewhere"} {
		require.NoError(t, i.Apply(t.Context(), []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n")))
	}
	hooks := i.chart(t)
	require.Equal(t, "default models", strings.Join(hooks.Webhooks[0].NamespaceSelector.MatchExpressions[0].Values, " "))
	installed := &admissionv1.ValidatingWebhookConfiguration{}
	require.NoError(t, i.api.Get(t.Context(), client.ObjectKeyFromObject(hooks), installed))
	installed.Webhooks[0].NamespaceSelector = hooks.Webhooks[0].NamespaceSelector
	require.NoError(t, i.api.Update(t.Context(), installed))

	p := i.start(t, append(i.hookFlags(), "-namespaces=default,models")...)
	eventually(t, func() error { return get(t.Context(), "http://"+p.health+"/readyz", nil) })
	i.queue("chat", 20)
	i.deployment(t, "chat", 2)
	require.NoError(t, i.create(t, "chat", quickly("chat")))
	i.reaches(t, "chat", 3)
	eventually(t, func() error {
		if said := i.events(t, "chat"); !strings.Contains(said, "ScaledUp") {
			return fmt.Errorf("events: %s", said)
		}
		return nil
	})
	las := &v1alpha1.LLMAutoScaler{}
	require.NoError(t, yaml.Unmarshal([]byte("metadata: {name: chat, namespace: elsewhere}\nspec:"+quickly("chat")), las))
	eventually(t, func() error { return i.api.Create(t.Context(), las) })

	for _, a := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Resource: "pods"},
		{Verb: "patch", Group: v1alpha1.Group, Resource: v1alpha1.Resource},
		{Verb: "patch", Group: v1alpha1.Group, Resource: v1alpha1.Resource, Subresource: "status"},
		{Verb: "create", Resource: "events"},
		{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale"},
	} {
		for _, namespace := range []string{"default", "models", "elsewhere", ""} {
			a.Namespace = namespace
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: cluster.ServiceAccountUser(system, "llmautoscaler"), ResourceAttributes: &a,
			}}
			require.NoError(t, i.api.Create(t.Context(), review))
			require.Equal(t, namespace == "default" || namespace == "models", review.Status.Allowed, "%+v", a)
		}
	}
	p.kill()
	require.NotContains(t, p.log.String(), "forbidden")
}

// chart has the chart's roles, as check.sh renders them with the value namespaces, in place of the kustomization's, and
// returns the webhook's configuration.
func (i *installation) chart(t *testing.T) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	out := t.TempDir()
	c := exec.CommandContext(t.Context(), "deploy/check.sh")
	c.Env = append(os.Environ(), "OUT="+out)
	said, err := c.CombinedOutput()
	require.NoError(t, err, "%s", said)
	data, err := os.ReadFile(filepath.Join(out, "namespaces.yaml"))
	require.NoError(t, err)
	hooks := &admissionv1.ValidatingWebhookConfiguration{}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		switch {
		case bytes.Contains(document, []byte("apiVersion: rbac.authorization.k8s.io/v1\n")):
			require.NoError(t, i.Apply(t.Context(), document))
		case bytes.Contains(document, []byte("kind: ValidatingWebhookConfiguration\n")):
			require.NoError(t, yaml.UnmarshalStrict(document, hooks))
		}
	}
	return hooks
}
