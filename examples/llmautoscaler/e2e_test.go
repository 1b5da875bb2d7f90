package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// TestE2E is the program on a real control plane, under its own service account with the roles of deploy/ only. What
// happens when it, its neighbours or the control plane fail is in the tests of the folder e2e.
func TestE2E(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	i := install(t)
	t.Run("Samples", i.testSamples)
	p := i.start(t, i.hookFlags()...)
	eventually(t, func() error { return get(t.Context(), "http://"+p.health+"/readyz", nil) })
	_ = t.Run("Refusals", i.testRefusals) &&
		t.Run("Story", i.testStory) &&
		t.Run("DryRun", i.testDryRun) &&
		t.Run("Metrics", func(t *testing.T) { i.testMetrics(t, p) }) &&
		t.Run("Keeper", i.testKeeper) &&
		t.Run("Quiet", func(t *testing.T) { i.testQuiet(t, p) }) &&
		t.Run("Shutdown", func(t *testing.T) { i.testShutdown(t, p) })
}

const quick = `
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  maxReplicas: 3
  intervalSeconds: 1
  scaler:
    realtime:
      metrics: [{threshold: {high: 10, low: 2}}]
      scaleUpRule: {cooldownSeconds: 2, stabilizationWindowSeconds: 2}
      scaleDownRule: {cooldownSeconds: 2, stabilizationWindowSeconds: 2}
`

// quickly is a spec whose target is the Deployment of a name.
func quickly(name string) string { return strings.ReplaceAll(quick, "NAME", name) }

// What people are given to begin with is what the API server takes.
func (i *installation) testSamples(t *testing.T) {
	samples, err := filepath.Glob("deploy/samples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, samples)
	for _, file := range samples {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, i.Apply(t.Context(), data), file)
	}
	require.NoError(t, i.api.DeleteAllOf(t.Context(), &v1alpha1.LLMAutoScaler{}, client.InNamespace("default")))
}

// What cannot be carried out is refused, by the schema or by the webhook, with the name of the field.
func (i *installation) testRefusals(t *testing.T) {
	const cron = `
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: refused}
  maxReplicas: 8
  scaler: {cron: {policies: [{name: a, schedule: "SCHEDULE", timeZone: ZONE, targetReplicas: 1}]}}
`
	timetable := func(schedule, zone string) string {
		return strings.NewReplacer("SCHEDULE", schedule, "ZONE", zone).Replace(cron)
	}
	for _, tt := range []struct{ spec, want string }{
		{quickly("refused") + "  minReplicas: 4\n", "spec.minReplicas: Invalid value: 4: must not be above maxReplicas 3"},
		{strings.Replace(quickly("refused"), "high: 10", "high: 1", 1), "must be above low 2"},
		{"\n  maxReplicas: 1\n  scaler: {}\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}", "must have at least one of realtime, proportional, saturation, capacity, static and cron"},
		{timetable("* * * *", "UTC"), "spec.scaler.cron.policies[0].schedule: Invalid value"},
		{timetable("0 0 31 2 *", "UTC"), `admission webhook "llmautoscalers.autoscaling.inferscale.io" denied the request: LLMAutoScaler.autoscaling.inferscale.io "refused" is invalid: spec.scaler.cron.policies[0].schedule: Invalid value: "0 0 31 2 *": never fires`},
		{timetable("0 8 * * *", "Mars/Base"), `spec.scaler.cron.policies[0].timeZone: Invalid value: "Mars/Base"`},
	} {
		err := i.create(t, "refused", tt.spec)
		require.ErrorContains(t, err, tt.want)
	}
	require.NoError(t, i.Apply(t.Context(), []byte(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: theirs, namespace: default}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: driven}, maxReplicas: 3}
`)))
	i.refuses(t, "beside", "driven", `"Deployment driven": is scaled by HorizontalPodAutoscaler theirs already`)
	require.NoError(t, i.create(t, "beside", quickly("driven")+"  dryRun: true\n"))
	require.NoError(t, i.create(t, "mine", quickly("shared")))
	i.refuses(t, "yours", "shared", `spec.scaleTargetRef: Invalid value: "Deployment shared": is scaled by LLMAutoScaler mine already`)
}

// refuses waits until the webhook refuses an object: its cache may lack what it knows it by, and it may answer late.
func (i *installation) refuses(t *testing.T, name, target, want string) {
	t.Helper()
	eventually(t, func() error {
		err := i.create(t, name, quickly(target))
		if err == nil {
			_ = i.api.Delete(t.Context(), &v1alpha1.LLMAutoScaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
			return io.ErrNoProgress
		}
		require.ErrorContains(t, err, want)
		return nil
	})
}

// Up, hold and down, from the pods' pages to the Deployment.
func (i *installation) testStory(t *testing.T) {
	i.queue("chat", 20)
	i.deployment(t, "chat", 1)
	require.NoError(t, i.create(t, "chat", quickly("chat")))
	i.reaches(t, "chat", 3)
	i.queue("chat", 5)
	eventually(t, func() error {
		las := &v1alpha1.LLMAutoScaler{}
		require.NoError(t, i.api.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "chat"}, las))
		if d := las.Status.LastDecision; d == nil || d.Code != "Between" || *las.Status.CurrentReplicas != 3 || las.Status.LastScaleTime == nil {
			return fmt.Errorf("%s", i.status(t, "chat"))
		}
		return nil
	})
	require.Equal(t, int32(3), i.replicas(t, "chat"))
	i.queue("chat", 0)
	i.reaches(t, "chat", 1)
	require.Contains(t, i.events(t, "chat"), "ScaledUp Up 1 -> 2: AboveHigh")
	eventually(t, func() error {
		if said := i.events(t, "chat"); !strings.Contains(said, "ScaledDown Down 3 -> 2: BelowLow") {
			return fmt.Errorf("%s", said)
		}
		return nil
	})
}

// A dry run says what it would do. The audit log of the API server has no write to the target.
func (i *installation) testDryRun(t *testing.T) {
	i.queue("dry", 20)
	i.deployment(t, "dry", 1)
	require.NoError(t, i.create(t, "dry", quickly("dry")+"  dryRun: true\n"))
	eventually(t, func() error {
		if said := i.events(t, "dry"); !strings.Contains(said, "WouldScaleUp dry run, nothing was written: Up 1 -> 2") {
			return fmt.Errorf("events: %s\n%s", said, i.status(t, "dry"))
		}
		return nil
	})
	require.Empty(t, i.scaleWrites(t, "dry"))
	require.NotEmpty(t, i.scaleWrites(t, "chat"))
	require.Equal(t, int32(1), i.replicas(t, "dry"))
	// Once it is earnest, it begins with a cooldown and a window of its own.
	las := &v1alpha1.LLMAutoScaler{}
	require.NoError(t, i.api.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "dry"}, las))
	require.NoError(t, i.api.Patch(t.Context(), las, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"dryRun":false}}`))))
	i.reaches(t, "dry", 3)
}

// scaleWrites are the writes of the program to the scale of a Deployment that were accepted.
func (i *installation) scaleWrites(t *testing.T, name string) []cluster.Write {
	t.Helper()
	all, err := i.Writes(cluster.ServiceAccountUser(system, "llmautoscaler"), "deployments", "*")
	require.NoError(t, err)
	var mine []cluster.Write
	for _, w := range all {
		if w.Name == name && w.Code < http.StatusBadRequest {
			mine = append(mine, w)
		}
	}
	return mine
}

// Metrics are for those that may read them.
func (i *installation) testMetrics(t *testing.T, p *program) {
	t.Helper()
	url := "https://" + p.metrics + "/metrics"
	require.ErrorContains(t, get(t.Context(), url, nil), "401")
	as := func(name string) http.Header {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		require.NoError(t, i.api.Create(t.Context(), account))
		request := &authenticationv1.TokenRequest{}
		require.NoError(t, i.api.SubResource("token").Create(t.Context(), account, request))
		return http.Header{
			"Authorization": {"Bearer " + request.Status.Token},
			"Want":          {`inferscale_decisions_total{autoscaler="chat",code="AboveHigh",kind="Deployment",name="chat",namespace="default",verdict="Up"} 2`},
		}
	}
	require.ErrorContains(t, get(t.Context(), url, as("stranger")), "403")
	header := as("reader")
	require.NoError(t, i.Apply(t.Context(), []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: llmautoscaler-metrics-reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
`)))
	eventually(t, func() error { return get(t.Context(), url, header) })
	i.reader = header
	header.Set("Want", "inferscale_round_lateness_seconds_count")
	require.NoError(t, get(t.Context(), url, header))
}

// The certificate of the webhook is made with the program's own roles.
func (i *installation) testKeeper(t *testing.T) {
	config, err := i.ServiceAccount(t.Context(), system, "llmautoscaler")
	require.NoError(t, err)
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	direct, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	k := &keeper{
		client: direct, namespace: system, secret: "llmautoscaler-webhook", service: "llmautoscaler-webhook", config: "llmautoscaler",
		logger: slog.New(slog.DiscardHandler), now: time.Now,
	}
	first, err := k.certificate(t.Context())
	require.NoError(t, err)
	second, err := k.certificate(t.Context())
	require.NoError(t, err)
	require.Equal(t, first.Certificate, second.Certificate)
	require.Error(t, direct.Get(t.Context(), types.NamespacedName{Namespace: system, Name: "other"}, &corev1.Secret{}))

	// The program as its Deployment starts it serves that certificate, and the API server is told to trust it.
	address := cluster.FreeAddress(t)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	i.start(t, "-webhook", "-webhook-host", host, "-webhook-port", port)
	hooks := &admissionv1.ValidatingWebhookConfiguration{}
	require.NoError(t, i.api.Get(t.Context(), types.NamespacedName{Name: "llmautoscaler"}, hooks))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(hooks.Webhooks[0].ClientConfig.CABundle))
	eventually(t, func() error {
		c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: k.host(), MinVersion: tls.VersionTLS12})
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

// What stays the same is not written again.
func (i *installation) testQuiet(t *testing.T, p *program) {
	t.Helper()
	i.queue("quiet", 5)
	i.deployment(t, "quiet", 1)
	require.NoError(t, i.create(t, "quiet", quickly("quiet")))
	writes := func() (n int) {
		all, err := i.Writes(cluster.ServiceAccountUser(system, "llmautoscaler"), "llmautoscalers", "status")
		require.NoError(t, err)
		for _, w := range all {
			if w.Name == "quiet" {
				n++
			}
		}
		return n
	}
	decisions := regexp.MustCompile(`inferscale_decisions_total\{autoscaler="quiet",code="Between",kind="Deployment",name="quiet",namespace="default",verdict="Hold"\} (\d+)`)
	rounds := func() (n int) {
		all, err := page(t.Context(), "https://"+p.metrics+"/metrics", i.reader)
		require.NoError(t, err)
		if found := decisions.FindStringSubmatch(all); found != nil {
			n, err = strconv.Atoi(found[1])
			require.NoError(t, err)
		}
		return n
	}
	after := func(n int) {
		eventually(t, func() error {
			if got := rounds(); got < n {
				return fmt.Errorf("%d rounds", got)
			}
			return nil
		})
	}
	eventually(t, func() error { // while the pod starts its status changes
		d := &appsv1.Deployment{}
		require.NoError(t, i.api.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "quiet"}, d))
		if d.Status.ReadyReplicas != 1 || d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("%+v", d.Status)
		}
		return nil
	})
	after(rounds() + 3)
	before := writes()
	require.Positive(t, before)
	after(rounds() + 6)
	require.Equal(t, before, writes())
}

// SIGTERM ends it well, and gives the lease back.
func (i *installation) testShutdown(t *testing.T, p *program) {
	t.Helper()
	require.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.command.Wait())
	require.Contains(t, p.log.String(), `"msg":"ended"`)
	for line := range strings.SplitSeq(p.log.String(), "\n") {
		if !strings.Contains(line, "leader election lost") { // controller-runtime says so of a lease that it gave back
			require.NotContains(t, line, `"level":"ERROR"`)
		}
	}
}
