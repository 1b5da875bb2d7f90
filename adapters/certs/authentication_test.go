package certs_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/certs"
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
			var asked []string
			var sent map[string]any
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.URL.String())
				w.Header().Set("Content-Type", "application/json")
				var answer any = tt.have
				switch {
				case r.Method == http.MethodPatch:
					assert.Equal(t, "application/apply-patch+yaml", r.Header.Get("Content-Type"))
					assert.NoError(t, json.NewDecoder(r.Body).Decode(&sent))
					answer = sent
				case tt.have == nil:
					w.WriteHeader(http.StatusNotFound)
					answer = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
				}
				assert.NoError(t, json.NewEncoder(w).Encode(answer))
			}))
			defer server.Close()
			c, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			applied, err := certs.KeepAuthentication(t.Context(), c, "", "")
			require.Equal(t, tt.applied, applied)
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				require.ErrorIs(t, err, certs.ErrForeign)
			} else {
				require.NoError(t, err)
			}
			const path = "/apis/keda.sh/v1alpha1/clustertriggerauthentications/keda-kaito-creds"
			want := []string{"GET " + path}
			if tt.applied {
				want = append(want, "PATCH "+path+"?fieldManager=inferscale-external-scaler&force=true")
				require.Equal(t, as(certs.DefaultSecret, true).Object, sent)
			}
			require.Equal(t, want, asked)
		})
	}
}

// TestKeepAuthenticationFails says what of.
func TestKeepAuthenticationFails(t *testing.T) {
	c := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	c.PrependReactor("get", "clustertriggerauthentications", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no")
	})
	_, err := certs.KeepAuthentication(t.Context(), c, "a", "b")
	require.EqualError(t, err, "cannot read ClusterTriggerAuthentication a: no")
}
