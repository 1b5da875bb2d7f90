//go:build linux

package cluster_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serveExternalMetric registers an adapter with one external metric of a fixed value.
func (w *world) serveExternalMetric(t *testing.T, name, value string) {
	t.Helper()
	version := schema.GroupVersion{Group: "external.metrics.k8s.io", Version: "v1beta1"}
	root := "/apis/" + version.String()
	mux := http.NewServeMux()
	answer := func(path string, object any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(object)
		})
	}
	answer(root, metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: version.String(),
		APIResources: []metav1.APIResource{
			{Name: name, Namespaced: true, Kind: "ExternalMetricValueList", Verbs: []string{"get"}},
		},
	})
	answer(root+"/namespaces/"+namespace+"/"+name, map[string]any{
		"kind": "ExternalMetricValueList", "apiVersion": version.String(),
		"items": []any{map[string]any{"metricName": name, "timestamp": metav1.Now(), "value": value}},
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	require.NoError(t, w.Aggregate(t.Context(), version, server.Listener.Addr().(*net.TCPAddr).Port))
}
