package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/examples/variantautoscaler/controller"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/saturation"
)

func TestSample(t *testing.T) {
	text, err := os.ReadFile("deploy/sample/config.yaml")
	require.NoError(t, err)
	variants, thresholds, found := strings.Cut(string(text), "\n---\n")
	require.True(t, found)
	var m corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict([]byte(variants), &m))
	models, err := controller.Parse([]byte(m.Data[controller.Key]))
	require.NoError(t, err)
	require.Len(t, models, 1)
	assert.True(t, models[0].DryRun, "who tries it is not to be surprised")

	m = corev1.ConfigMap{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(thresholds), &m))
	assert.Equal(t, m.Name, models[0].Saturation.ThresholdsFrom.ConfigMap)
	_, err = policy.ReadThresholds(m.Data, saturation.Default)
	require.NoError(t, err)
}

// TestNetworkPolicy lets nobody read the metrics who was not asked to: they are plain HTTP.
func TestNetworkPolicy(t *testing.T) {
	text, err := os.ReadFile("deploy/base/networkpolicy.yaml")
	require.NoError(t, err)
	var policy networkingv1.NetworkPolicy
	require.NoError(t, yaml.UnmarshalStrict(text, &policy))
	text, err = os.ReadFile("deploy/base/deployment.yaml")
	require.NoError(t, err)
	var controller appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict(text, &controller))
	assert.Equal(t, controller.Spec.Template.Labels, policy.Spec.PodSelector.MatchLabels)
	from := make(map[string]int) // how many may come to a port; none is everybody
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			from[port.Port.StrVal] = len(rule.From)
		}
	}
	assert.Equal(t, map[string]int{"metrics": 1, "probes": 0}, from)
	for _, port := range controller.Spec.Template.Spec.Containers[0].Ports {
		assert.Contains(t, from, port.Name)
	}
	text, err = os.ReadFile("deploy/base/kustomization.yaml")
	require.NoError(t, err)
	assert.Contains(t, string(text), "networkpolicy.yaml")
}

// TestReadme reads the configurations that the README shows.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile(`(?s)## Configuration\n(.*?)    # or\n(.*?)\n\nThe fields`).FindSubmatch(text)
	require.NotNil(t, block)
	first := regexp.MustCompile(`(?m)^    `).ReplaceAllString(string(block[1]), "")
	models, err := controller.Parse([]byte(first))
	require.NoError(t, err)
	assert.Equal(t, policy.AlgorithmSaturation, models[0].Algorithm)

	head, _, _ := strings.Cut(first, "    saturation:")
	head = strings.Replace(head, "algorithm: saturation", "algorithm: hetero", 1)
	head = regexp.MustCompile(`.*capacity:.*\n`).ReplaceAllString(head, "")
	second := head + regexp.MustCompile(`(?m)^    `).ReplaceAllString(string(block[2]), "")
	models, err = controller.Parse([]byte(second))
	require.NoError(t, err, second)
	assert.Equal(t, policy.AlgorithmHetero, models[0].Algorithm)
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"now"}, exitUsage, "unexpected argument \"now\"\n"},
		{[]string{"-f", "variants.yaml"}, exitUsage, "-f needs -once: in a cluster the configuration is a ConfigMap\n"},
		{[]string{"-explain"}, exitUsage, "-explain needs -once; -v logs every decision\n"},
		{[]string{"-lease-duration", "1s"}, exitUsage, "-lease-duration 1s must be above -renew-deadline 10s, and that above 1.2 times -retry-period 2s\n"},
		{[]string{"-lease-duration", "900ms", "-renew-deadline", "700ms", "-retry-period", "100ms"}, exitUsage, "-lease-duration 900ms: its whole seconds, which other replicas see, must be at least -renew-deadline 700ms\n"},
		{[]string{"-timeout", "3s"}, exitUsage, "-timeout needs -once\n"}, // it had no effect, and nothing said so
		{[]string{"-timeout", "-3s", "-once"}, exitUsage, "-timeout -3s: must be above 0\n"},
		{[]string{"-kubeconfig", "none.yaml", "-once"}, exitFail, "none.yaml"},
	} {
		var out, log bytes.Buffer
		assert.Equal(t, c.code, run(t.Context(), c.args, &out, &log), c.args)
		assert.Contains(t, log.String(), c.want)
		assert.Empty(t, out.String())
	}
	var out, log bytes.Buffer
	assert.Equal(t, exitOK, run(t.Context(), []string{"-help"}, &out, &log))
	assert.Contains(t, out.String(), "-config-map string")
	assert.Empty(t, log.String())
}

// TestRegressionFileBeforeTheCluster: of a wrong file only a machine with a cluster was told, with the exit code of a failed round.
func TestRegressionFileBeforeTheCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "models.yaml")
	for text, want := range map[string]struct {
		code int
		said string
	}{
		"":                      {exitUsage, file + ": must have models; models: [] is none\n"},
		"models: [{name: a}]\n": {exitUsage, file + ":1: models[0].variants: must be given\n"},
		"models: []\n":          {exitFail, "none.yaml"}, // what is missing then is the cluster
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		var out, log bytes.Buffer
		assert.Equal(t, want.code, run(t.Context(), []string{"-kubeconfig", "none.yaml", "-once", "-f", file}, &out, &log), text)
		assert.Contains(t, log.String(), want.said)
		assert.Empty(t, out.String())
	}
	var out, log bytes.Buffer
	assert.Equal(t, exitUsage, run(t.Context(), []string{"-kubeconfig", "none.yaml", "-once", "-f", file + "x"}, &out, &log))
	assert.Contains(t, log.String(), "no such file")
}

// TestStatesAreNotFollowed: each state that was written came back, with those of all other models.
func TestStatesAreNotFollowed(t *testing.T) {
	for state, want := range map[string]string{"states": "metadata.name!=states", "variants": ""} {
		asked := make(chan string, 100)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/configmaps") {
				select {
				case asked <- r.URL.Query().Get("fieldSelector"):
				default:
				}
			}
			http.Error(w, "not now", http.StatusServiceUnavailable)
		}))
		t.Cleanup(server.Close)
		w, err := newWorld(&rest.Config{Host: server.URL}, "inferscale-system", options{configMap: "variants", state: state}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		w.follow(t.Context())
		select {
		case selector := <-asked:
			assert.Equal(t, want, selector)
		case <-time.After(20 * time.Second):
			require.Fail(t, "nothing was listed")
		}
	}
}

// TestRegressionWrongAddressesAndNamesAreOfTheCommandLine: a wrong address ended the program with the code of a failure, and with a
// namespace or a ConfigMap of a name that there cannot be it waited for ever.
func TestRegressionWrongAddressesAndNamesAreOfTheCommandLine(t *testing.T) {
	for flag, want := range map[string]string{
		"-metrics-address=8080": `-metrics-address "8080": must be host:port, or 0 for none`,
		"-probe-address=":       `-probe-address "": must be host:port, or 0 for none`,
		"-namespace=Models":     `-namespace "Models": must be at most 63 of a-z`,
		"-config-map=a/b":       `-config-map "a/b": must be at most 253 of a-z`,
		"-state-config-map=A":   `-state-config-map "A": must be at most 253 of a-z`,
		"-state-config-maps=0":  `-state-config-maps 0: must be within 1 and 100`,
		"-state-config-maps=3 -config-map=variantautoscaler-state-2":         `-config-map "variantautoscaler-state-2": must be none of those with the state`,
		"-state-config-maps=3 -state-config-map=" + strings.Repeat("a", 252): `with -state-config-maps 3: the last of them must have at most 253`,
		"-metrics-address=0 -x":      "flag provided but not defined: -x",
		"-probe-address=[::1]:80 -x": "flag provided but not defined: -x",
	} {
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		code := run(ctx, append([]string{"-kubeconfig", "/does/not/exist"}, strings.Fields(flag)...), &stdout, &stderr)
		cancel()
		assert.Equal(t, exitUsage, code, flag)
		assert.Contains(t, stderr.String(), want)
	}
}
