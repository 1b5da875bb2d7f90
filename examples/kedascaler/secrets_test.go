package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// TestServerTime: the API server's clock is the one that certificates are compared with, whatever it answers.
func TestServerTime(t *testing.T) {
	want := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		require.Equal(t, "/version", req.URL.Path)
		w.Header().Set("Date", want.Format(http.TimeFormat))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	got, err := serverTime(t.Context(), &rest.Config{Host: server.URL}, server.Client())
	require.NoError(t, err)
	require.Equal(t, want, got)
	server.Close()
	_, err = serverTime(t.Context(), &rest.Config{Host: server.URL}, server.Client())
	require.Error(t, err)
}

// TestTrustSaysWhatItDid: the log has a CA that was put into the configuration, and none where somebody else was faster.
func TestTrustSaysWhatItDid(t *testing.T) {
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "kedascaler", ResourceVersion: "7"},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "defaults.kedascaler"}},
	}
	kube := fake.NewClientset(hook, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "keda", Name: "certs"}, Data: map[string][]byte{"ca.crt": []byte("CA")}})
	faster := true
	kube.PrependReactor("patch", "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
		if faster {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "mutatingwebhookconfigurations"}, "kedascaler", nil)
		}
		return true, hook, nil
	})
	var log bytes.Buffer
	k := &process{
		options: &options{namespace: "keda", secret: "certs", webhook: true, webhookConfig: "kedascaler"},
		logger:  slog.New(slog.NewTextHandler(&log, nil)), kube: kube,
	}
	require.True(t, apierrors.IsConflict(k.trust(t.Context())))
	require.Empty(t, log.String())
	faster = false
	require.NoError(t, k.trust(t.Context()))
	require.Contains(t, log.String(), "CA put into the webhook's configuration")
}
