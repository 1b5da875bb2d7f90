package certs_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/keda/certs"
)

// TestAuthentication is the proposal's, with a label.
func TestAuthentication(t *testing.T) {
	var want map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: keda.sh/v1alpha1
kind: ClusterTriggerAuthentication
metadata:
  name: keda-kaito-creds
  labels: {autoscaling.inferscale.io/certs: authentication}
spec:
  secretTargetRef:
    - {parameter: caCert, name: keda-kaito-scaler-certs, key: ca.crt}
    - {parameter: tlsClientCert, name: keda-kaito-scaler-certs, key: tls.crt}
    - {parameter: tlsClientKey, name: keda-kaito-scaler-certs, key: tls.key}
`), &want))
	require.Equal(t, want, certs.Authentication(certs.DefaultAuthentication, certs.DefaultSecret).Object)
}

// TestKeepAuthentication applies only what differs, and leaves what is not ours.
func TestKeepAuthentication(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "clustertriggerauthentications"}
	as := func(secret string, labelled bool) *unstructured.Unstructured {
		u := certs.Authentication(certs.DefaultAuthentication, secret)
		if !labelled {
			u.SetLabels(nil)
		}
		return u
	}
	for _, tt := range []struct {
		name    string
		have    *unstructured.Unstructured
		applied bool
		want    string
	}{
		{"missing", nil, true, ""},
		{"as it has to be", as(certs.DefaultSecret, true), false, ""},
		{"as it has to be, somebody's", as(certs.DefaultSecret, false), false, ""},
		{"edited", as("other", true), true, ""},
		{"foreign", as("other", false), false, "ClusterTriggerAuthentication keda-kaito-creds: spec: must be that of Authentication, or have the label"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var have []runtime.Object
			if tt.have != nil {
				have = append(have, tt.have)
			}
			c := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "ClusterTriggerAuthenticationList"}, have...)
			var patches []clienttesting.PatchActionImpl
			c.PrependReactor("patch", resource.Resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
				p := a.(clienttesting.PatchActionImpl)
				patches = append(patches, p)
				return true, as(certs.DefaultSecret, true), nil
			})
			applied, err := certs.KeepAuthentication(t.Context(), c, "", "")
			require.Equal(t, tt.applied, applied)
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				require.ErrorIs(t, err, certs.ErrForeign)
			} else {
				require.NoError(t, err)
			}
			if !tt.applied {
				require.Empty(t, patches)
				return
			}
			require.Len(t, patches, 1)
			require.Equal(t, types.ApplyPatchType, patches[0].PatchType)
			require.Equal(t, certs.FieldManager, patches[0].PatchOptions.FieldManager)
			require.True(t, *patches[0].PatchOptions.Force)
			var sent map[string]any
			require.NoError(t, json.Unmarshal(patches[0].Patch, &sent))
			require.Equal(t, as(certs.DefaultSecret, true).Object, sent)
		})
	}
	c := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	c.PrependReactor("get", resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no")
	})
	_, err := certs.KeepAuthentication(t.Context(), c, "a", "b")
	require.EqualError(t, err, "cannot read ClusterTriggerAuthentication a: no")
}
