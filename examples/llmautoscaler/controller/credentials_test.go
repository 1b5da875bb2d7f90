package controller_test

import (
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
)

const secure = `
metadata: {name: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  maxReplicas: 8
  scaler: {realtime: {metrics: [{source: {protocol: https, port: PORT}, threshold: {high: 10, low: 2}}]}}
  scrape:
    tls: {caSecretRef: {name: pods}, serverName: example.com}
    bearerTokenSecretRef: {name: pods, key: password}
`

// TestCredentials reads what an object refers to, if it may, hands it to the scraper in files, and cleans up.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	w.deployment(1)
	tokens := make(map[string]int)
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		tokens[r.Header.Get("Authorization")]++
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = rw.Write([]byte("vllm:num_requests_waiting 5\n"))
	}))
	defer server.Close()
	w.port = server.Listener.Addr().(*net.TCPAddr).Port
	w.apply(secure)

	ready := func() string {
		return condition(w.round("chat"), k8s.ConditionReady) + ": " + w.get("chat").Status.Conditions[0].Message
	}
	require.Equal(t, `False CredentialsUnavailable: spec.scrape.tls.caSecretRef: secrets "pods" not found`, ready())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pods"}, Data: map[string][]byte{
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	require.NoError(t, w.client.Create(t.Context(), secret))
	require.Equal(t, `False CredentialsUnavailable: spec.scrape.tls.caSecretRef: secret "pods" does not have the label autoscaling.inferscale.io/scrape-credentials: "true"`, ready())
	secret.Labels = map[string]string{controller.CredentialsLabel: "true"}
	require.NoError(t, w.client.Update(t.Context(), secret))
	require.Equal(t, `False CredentialsUnavailable: spec.scrape.bearerTokenSecretRef: secret "pods" has no key "password"`, ready())
	secret.Data["password"] = []byte("first-token\n")
	require.NoError(t, w.client.Update(t.Context(), secret))
	require.Contains(t, ready(), "True Ready")
	require.Equal(t, map[string]int{"Bearer first-token": 1}, tokens)

	secret.Data["password"] = []byte("second-token")
	require.NoError(t, w.client.Update(t.Context(), secret))
	for range 5 {
		require.Contains(t, ready(), "True Ready")
	}
	require.Equal(t, map[string]int{"Bearer first-token": 4, "Bearer second-token": 2}, tokens, "it is read again each minute")

	files, err := filepath.Glob(filepath.Join(w.config.Credentials, "*", "*"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		if runtime.GOOS != "windows" { // which has no such permissions
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		}
	}
	for len(w.events.Events) > 0 {
		require.NotContains(t, <-w.events.Events, "token\n")
	}
	w.apply(strings.Replace(secure, "maxReplicas: 8", "maxReplicas: 9", 1)) // an edit keeps them
	require.Contains(t, ready(), "True Ready")
	require.NoError(t, w.client.Delete(t.Context(), whole(w.get("chat"))))
	w.now = w.now.Add(time.Minute)
	_, _ = w.ctl.Reconcile(t.Context(), request("chat"))
	files, err = filepath.Glob(filepath.Join(w.config.Credentials, "*"))
	require.NoError(t, err)
	require.Empty(t, files)
}

// TestCredentialsKeepTheirOwnFiles: the key a.b of the Secret pods is not the key b of the Secret pods.a.
func TestCredentialsKeepTheirOwnFiles(t *testing.T) {
	w := newWorld(t)
	w.deployment(1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = rw.Write([]byte("vllm:num_requests_waiting 5\n"))
	}))
	defer server.Close()
	w.port = server.Listener.Addr().(*net.TCPAddr).Port
	for name, data := range map[string]map[string][]byte{
		"pods":   {"a.b": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
		"pods.a": {"b": []byte("secret")},
	} {
		require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{controller.CredentialsLabel: "true"}}, Data: data,
		}))
	}
	w.apply(strings.NewReplacer("{name: pods}", "{name: pods, key: a.b}", "{name: pods, key: password}", "{name: pods.a, key: b}").Replace(secure))
	require.Equal(t, "True", strings.Fields(condition(w.round("chat"), k8s.ConditionReady))[0])
	require.Contains(t, condition(w.get("chat"), k8s.ConditionMetricsAvailable), "True")
}

// TestCredentialsOfANamespaceAreBounded: the directory is in memory and for all namespaces, and 16 objects that refer to one Secret
// of 1 MiB filled it.
func TestCredentialsOfANamespaceAreBounded(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pods", Labels: map[string]string{controller.CredentialsLabel: "true"}},
		Data:       map[string][]byte{"ca.crt": make([]byte, 1<<20-4<<10), "password": []byte("a-token")},
	}))
	named := func(i int) string { return fmt.Sprintf("chat%d", i) }
	ready := func(i int) string {
		return condition(w.round(named(i)), k8s.ConditionReady) + ": " + w.get(named(i)).Status.Conditions[0].Message
	}
	kept := func() (size int64) {
		files, err := filepath.Glob(filepath.Join(w.config.Credentials, "*", "*"))
		require.NoError(t, err)
		for _, file := range files {
			info, err := os.Stat(file)
			require.NoError(t, err)
			size += info.Size()
		}
		return size
	}
	for i := range 6 {
		w.apply(strings.ReplaceAll(secure, "name: chat", "name: "+named(i)))
		want := "has no certificate"
		if i >= 4 {
			want = "spec.scrape: 5242880: the LLMAutoScalers of a namespace must refer to at most 4194304 bytes of Secrets"
		}
		require.Contains(t, ready(i), want)
	}
	require.EqualValues(t, 4*(1<<20-4<<10+7), kept())
	for range 3 {
		require.Contains(t, ready(4), "must refer to at most")
	}
	w.apply(strings.ReplaceAll(strings.Replace(secure, "maxReplicas: 8", "maxReplicas: 9", 1), "name: chat", "name: "+named(0)))
	require.Contains(t, ready(0), "has no certificate", "an edit counts nothing twice")
	require.NoError(t, w.client.Delete(t.Context(), whole(w.get(named(1)))))
	_, _ = w.ctl.Reconcile(t.Context(), request(named(1)))
	require.Contains(t, ready(4), "has no certificate", "there is room again")
	require.Contains(t, ready(5), "must refer to at most")
	require.EqualValues(t, 4*(1<<20-4<<10+7), kept())
}

// TestCredentialsFollowTheSpec has the requests go by what spec.scrape says from the first round after an edit.
func TestCredentialsFollowTheSpec(t *testing.T) {
	const token = "    bearerTokenSecretRef: {name: pods, key: password}\n"
	for _, tt := range []struct{ name, from, to, want, files string }{
		{"another secret", "bearerTokenSecretRef: {name: pods", "bearerTokenSecretRef: {name: other", "Bearer other-token", "other@password pods@ca.crt"},
		{"no token", token, "", "", "pods@ca.crt"},
		{"no authority", "caSecretRef: {name: pods}", "insecureSkipVerify: true", "Bearer pods-token", "pods@password"},
		{"nothing of scrape", secure[strings.Index(secure, "  scrape:"):], "", "-", ""},
		{"a spec that is wrong", "  maxReplicas: 8", "  maxReplicas: 8\n  minReplicas: 9", "-", ""},
		{"nothing to read", secure[strings.Index(secure, "  scaler:"):], "  scaler: {cron: {policies: [{name: a, schedule: '@daily', targetReplicas: 1}]}}\n", "-", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.deployment(1)
			var sent []string
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				w.mu.Lock()
				defer w.mu.Unlock()
				sent = append(sent, r.Header.Get("Authorization"))
				rw.Header().Set("Content-Type", "text/plain")
				_, _ = rw.Write([]byte("vllm:num_requests_waiting 5\n"))
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // some do not trust it: this is wanted
			server.StartTLS()
			defer server.Close()
			w.port = server.Listener.Addr().(*net.TCPAddr).Port
			for _, name := range []string{"pods", "other"} {
				require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{controller.CredentialsLabel: "true"}},
					Data: map[string][]byte{
						"ca.crt":   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
						"password": []byte(name + "-token"),
					},
				}))
			}
			w.apply(secure)
			w.round("chat")
			w.mu.Lock()
			require.Equal(t, []string{"Bearer pods-token"}, sent)
			sent = nil
			w.mu.Unlock()

			edited := strings.Replace(secure, tt.from, tt.to, 1)
			require.NotEqual(t, secure, edited)
			w.apply(edited)
			for range 8 { // two minutes
				w.round("chat")
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, header := range sent {
				require.Equal(t, tt.want, header)
			}
			require.Equal(t, tt.want != "-", len(sent) > 0, "%q", sent)
			files, err := filepath.Glob(filepath.Join(w.config.Credentials, "*", "*"))
			require.NoError(t, err)
			var got, want []string
			for _, file := range files {
				got = append(got, filepath.Base(file))
			}
			for name := range strings.FieldsSeq(tt.files) {
				want = append(want, fmt.Sprintf("%x", sha256.Sum256([]byte(name))))
			}
			require.ElementsMatch(t, want, got, "no file is left of what is not used")
		})
	}
}

// TestCredentialsOfLongNames: a name of 253 bytes and a key of as many are legal, and no file name takes both.
func TestCredentialsOfLongNames(t *testing.T) {
	w := newWorld(t)
	w.deployment(1)
	name, key := strings.Repeat("a", 253), strings.Repeat("k", 253)
	w.apply(strings.NewReplacer("    tls: {caSecretRef: {name: pods}, serverName: example.com}\n", "",
		"{name: pods, key: password}", "{name: "+name+", key: "+key+"}").Replace(secure))
	require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{controller.CredentialsLabel: "true"}},
		Data:       map[string][]byte{key: []byte("a-token")},
	}))
	las := w.round("chat")
	require.NotContains(t, condition(las, k8s.ConditionReady), "CredentialsUnavailable", las.Status.Conditions[0].Message)
	files, err := filepath.Glob(filepath.Join(w.config.Credentials, "*", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1, las.Status.Conditions[0].Message)
}

// TestCredentialsErrorsHaveNoPath: where files are is nobody's business.
func TestCredentialsErrorsHaveNoPath(t *testing.T) {
	w := newWorld(t)
	w.deployment(1)
	w.apply(secure)
	require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pods", Labels: map[string]string{controller.CredentialsLabel: "true"}},
		Data:       map[string][]byte{"ca.crt": []byte("a"), "password": []byte("a-token")},
	}))
	require.NoError(t, os.WriteFile(filepath.Join(w.config.Credentials, "uid-chat"), nil, 0o600)) // in place of the directory
	las := w.round("chat")
	require.Equal(t, "False CredentialsUnavailable", condition(las, k8s.ConditionReady))
	require.Contains(t, las.Status.Conditions[0].Message, "keep what was read of a Secret: ")
	require.NotContains(t, las.Status.Conditions[0].Message, w.config.Credentials)
}
