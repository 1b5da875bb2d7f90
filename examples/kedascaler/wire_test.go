package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/inferscale/inferscale/adapters/certs"
	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// laptop starts the program with two pages, and returns the first.
func laptop(t *testing.T, flags ...string) (*program, *page) {
	t.Helper()
	a, b := newPage(t, map[string]float64{waiting: 7, running: 3}), newPage(t, map[string]float64{waiting: 5, running: 2})
	return start(t, append([]string{"-static", a.URL + "," + b.URL, "-address", "127.0.0.1:0"}, flags...)...), a
}

// All five calls, in both modes, over the wire.
func TestWire(t *testing.T) {
	p, a := laptop(t)
	c := call(t, p.address(), nil)

	t.Run("metric", func(t *testing.T) {
		ref := trigger("chat", "threshold=10", "interval=1")
		spec, err := c.GetMetricSpec(t.Context(), ref)
		require.NoError(t, err)
		require.Len(t, spec.GetMetricSpecs(), 1)
		require.Equal(t, waiting, spec.GetMetricSpecs()[0].GetMetricName())
		require.InDelta(t, 10, spec.GetMetricSpecs()[0].GetTargetSizeFloat(), 0)
		require.EqualValues(t, 10, spec.GetMetricSpecs()[0].GetTargetSize())

		c.comes(t, ref, waiting, 12)
		got, err := c.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: ref, MetricName: waiting})
		require.NoError(t, err)
		require.EqualValues(t, 12, got.GetMetricValues()[0].GetMetricValue())
		active, err := c.IsActive(t.Context(), ref)
		require.NoError(t, err)
		require.True(t, active.GetResult())

		c.comes(t, trigger("mean", "threshold=10", "interval=1", "metricType=Value"), waiting, 6)
		c.comes(t, trigger("running", "threshold=10", "interval=1", "metricName="+running), running, 5)
		a.wait(40.25)
		c.comes(t, ref, waiting, 45.25)
		got, err = c.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: ref, MetricName: waiting})
		require.NoError(t, err)
		require.EqualValues(t, 46, got.GetMetricValues()[0].GetMetricValue(), "for KEDA before 2.17")
		a.wait(7)
	})

	t.Run("replicas", func(t *testing.T) {
		ref := trigger("copies", "mode=replicas", "threshold=2", "interval=1")
		spec, err := c.GetMetricSpec(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, "desired-replicas", spec.GetMetricSpecs()[0].GetMetricName())
		require.InDelta(t, 1, spec.GetMetricSpecs()[0].GetTargetSizeFloat(), 0)
		c.comes(t, ref, "desired-replicas", 6) // 12 requests wait, and each replica is to have 2
		active, err := c.IsActive(t.Context(), ref)
		require.NoError(t, err)
		require.True(t, active.GetResult())
		c.comes(t, trigger("few", "mode=replicas", "threshold=2", "interval=1", "maxReplicas=4"), "desired-replicas", 4)
	})

	t.Run("streams", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ref := trigger("pushed", "threshold=4.5", "interval=1")
		active, err := c.StreamIsActive(ctx, ref)
		require.NoError(t, err)
		first, err := active.Recv()
		require.NoError(t, err)
		require.True(t, first.GetResult())
		specs, err := c.StreamMetricSpec(ctx, ref)
		require.NoError(t, err)
		spec, err := specs.Recv()
		require.NoError(t, err)
		require.InDelta(t, 4.5, spec.GetMetricSpecs()[0].GetTargetSizeFloat(), 0)
		require.EqualValues(t, 5, spec.GetMetricSpecs()[0].GetTargetSize())
	})

	t.Run("InvalidArgument", func(t *testing.T) {
		for _, tt := range []struct {
			ref  *externalscaler.ScaledObjectRef
			want []string
		}{
			{&externalscaler.ScaledObjectRef{Namespace: "default"}, []string{`scaledObjectRef: "default/": must have a namespace and a name`}},
			{&externalscaler.ScaledObjectRef{Namespace: "default", Name: "a"}, []string{"scalerName: ", "must not be empty", "threshold: ", "must be given in mode metric"}},
			{trigger("a"), []string{"threshold: ", "must be given in mode metric"}},
			{trigger("a", "threshold=0"), []string{`threshold: "0": must be a number from 0.001 to below 1e+12: KEDA counts in thousandths`}},
			{trigger("a", "threshold=NaN"), []string{`threshold: "NaN": must be a number`}},
			{trigger("a", "threshold=1", "mode=both"), []string{`mode: "both": must be metric or replicas`}},
			{trigger("a", "threshold=1", "scalerName=other"), []string{`scalerName: "other": must be keda-kaito-scaler, the name of this scaler`}},
			{trigger("a", "threshold=1", "interval=0", "metricPath=metrics"), []string{`interval: "0": must be seconds or a duration`}},
			{trigger("a", "threshold=1", "metricPath=metrics"), []string{`metricPath: "metrics": `}},
			{trigger("a", "treshold=1"), []string{"threshold: ", "must be given in mode metric", `treshold: (not shown): is no key of this scaler`}},
			{trigger("a", "threshold=1", "workspaceNamespace=other"), []string{`workspaceNamespace: "other": must be the ScaledObject's namespace, default`}},
			{trigger("a", "mode=replicas", "threshold=1", "realtime.nonsense=1"), []string{`realtime.nonsense: 1: is not a field here; the fields are profile`}},
		} {
			_, err := c.GetMetricSpec(t.Context(), tt.ref)
			requireInvalid(t, err, tt.want...)
			_, err = c.value(t.Context(), tt.ref, waiting)
			requireInvalid(t, err, tt.want...)
			_, err = c.IsActive(t.Context(), tt.ref)
			requireInvalid(t, err, tt.want...)
			active, err := c.StreamIsActive(t.Context(), tt.ref)
			require.NoError(t, err)
			_, err = active.Recv()
			requireInvalid(t, err, tt.want...)
			specs, err := c.StreamMetricSpec(t.Context(), tt.ref)
			require.NoError(t, err)
			_, err = specs.Recv()
			requireInvalid(t, err, tt.want...)
		}
		ref := trigger("chat", "threshold=10", "interval=1")
		c.comes(t, ref, waiting, 12)
		_, err := c.value(t.Context(), ref, "other")
		requireInvalid(t, err, `metricName: "other": must be "vllm:num_requests_waiting", the one metric of this trigger`)
	})
}

func requireInvalid(t *testing.T, err error, texts ...string) {
	t.Helper()
	require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
	for _, text := range texts {
		require.ErrorContains(t, err, text)
	}
}

// SIGTERM ends streams and the process, with exit code 0.
func TestSIGTERM(t *testing.T) {
	p, _ := laptop(t)
	c := call(t, p.address(), nil)
	ref := trigger("chat", "threshold=10", "interval=1")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	active, err := c.StreamIsActive(ctx, ref)
	require.NoError(t, err)
	_, err = active.Recv()
	require.NoError(t, err)
	specs, err := c.StreamMetricSpec(ctx, ref)
	require.NoError(t, err)
	_, err = specs.Recv()
	require.NoError(t, err)

	p.terminate()
	_, err = active.Recv()
	requireUnavailable(t, err)
	_, err = specs.Recv()
	requireUnavailable(t, err)
	require.Equal(t, 0, p.code(), p.said())
	require.Contains(t, p.said(), "the scaler is shutting down")
}

func TestQuery(t *testing.T) {
	p, _ := laptop(t)
	address := p.address()

	code, out, said := ran(t, "-query", address, "threshold=10", "interval=1")
	require.Equal(t, 0, code, said)
	require.Regexp(t, `^metric   vllm:num_requests_waiting
target   10
value    12
active   true
replicas 2, of a HorizontalPodAutoscaler with an AverageValue target and no tolerance
took     [0-9.]+[µm]?s for three calls
$`, out)
	require.Empty(t, said)

	code, out, said = ran(t, "-query", address, "mode=replicas", "threshold=2", "interval=1")
	require.Equal(t, 0, code, said)
	require.Contains(t, out, "metric   desired-replicas\ntarget   1\nvalue    6\nactive   true\nreplicas 6, ")

	code, out, said = ran(t, "-query", address, "-watch", "1s", "threshold=10", "interval=1")
	require.Equal(t, 0, code, said)
	require.Regexp(t, `^TIME +VALUE +REPLICAS +ACTIVE *\n[0-9:]{8} +12 +2 +true\n`, out)

	// What is not known is a line, with the message alone.
	code, out, said = ran(t, "-query", address, "-watch", "1s", "metricName=missing", "threshold=10", "interval=1")
	require.Equal(t, 0, code, said)
	require.Regexp(t, `\n[0-9:]{8} +- +- +- +metric missing: NotFound: no pod gave a value: 2 NotFound\n`, out)

	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-query", "127.0.0.1:1", "threshold=10"}, 1, "kedascaler: Unavailable: connection error"},
		{[]string{"-query", address, "threshold=ten"}, 1, `kedascaler: InvalidArgument: threshold: "ten": must be a number`},
		{[]string{"-query", address, "-scaler-name", "other", "threshold=1"}, 1, `InvalidArgument: scalerName: "other": must be keda-kaito-scaler`},
		{[]string{"-query", address, "threshold=10", "metricName=missing", "interval=1"}, 1, "kedascaler: Unavailable: metric missing: NotFound: no pod gave a value: 2 NotFound"},
		{[]string{"-query", address, "-cert-dir", t.TempDir(), "threshold=10"}, 1, "must exist"},
		{[]string{"-query", "nowhere", "threshold=10"}, 2, `-query: "nowhere": must be host:port`},
		{[]string{"-query", address, "-scaled-object", "chat"}, 2, `-scaled-object: "chat": must be namespace/name`},
		{[]string{"-query", address, "threshold"}, 2, `"threshold": must be key=value`},
		{[]string{"-query", address, "-static", "http://127.0.0.1:1"}, 2, "must be alone of -static, -fake and -query"},
	} {
		code, _, said := ran(t, tt.args...)
		require.Equal(t, tt.code, code, "%v: %s", tt.args, said)
		require.Contains(t, said, tt.want)
	}
}

// The cases of KEDA's client about TLS, of the file of recorded answers, against a scaler with certificates of its own
// making. It always wants a client's certificate, so what works there against a server that wants none is refused here.
func TestMutualTLS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	p, _ := laptop(t, "-cert-dir", dir)
	address := p.address()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)

	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), f.Name())
	}

	own, err := certs.ReadFiles(dir)
	require.NoError(t, err)
	step, err := certs.Next(certs.Rules{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, certs.State{}, "", time.Now(), rand.Reader)
	require.NoError(t, err)
	other := step.State.Material
	roots := func(pem []byte) *x509.CertPool {
		pool := x509.NewCertPool()
		require.True(t, pool.AppendCertsFromPEM(pem))
		return pool
	}
	pair := func(p certs.Pair) []tls.Certificate {
		c, err := tls.X509KeyPair(p.Cert, p.Key)
		require.NoError(t, err)
		return []tls.Certificate{c}
	}
	const unknown, refused = "certificate signed by unknown authority", "" // a refusal comes as one of several texts
	for _, tt := range []struct {
		name, host string
		config     *tls.Config // nil: plaintext
		ok         bool
		want       string
	}{
		{name: "tls: caCert only", config: &tls.Config{RootCAs: roots(own.Bundle)}, want: refused},
		{name: "tls: enableTLS, system roots only", config: &tls.Config{}, want: unknown},
		{name: "tls: enableTLS + unsafeSsl", config: &tls.Config{InsecureSkipVerify: true}, want: refused},
		{name: "the same with KEDA's certificate", config: &tls.Config{InsecureSkipVerify: true, Certificates: pair(own.Client)}, ok: true},
		{name: "tls: unsafeSsl alone (no enableTLS) stays plaintext", want: refused},
		{name: "tls: plaintext client to TLS server", want: refused},
		{name: "tls: caCert in trigger metadata is not read as auth", want: refused},
		{name: "tls: wrong CA", config: &tls.Config{RootCAs: roots(other.Bundle)}, want: unknown},
		{name: "mtls: full", config: &tls.Config{RootCAs: roots(own.Bundle), Certificates: pair(own.Client)}, ok: true},
		{name: "mtls: host name localhost (SAN)", host: "localhost", config: &tls.Config{RootCAs: roots(own.Bundle), Certificates: pair(own.Client)}, ok: true},
		{name: "mtls: no client cert", config: &tls.Config{RootCAs: roots(own.Bundle)}, want: refused},
		{name: "mtls: client cert without key", config: &tls.Config{RootCAs: roots(own.Bundle), Certificates: []tls.Certificate{}}, want: refused},
		{name: "mtls: client cert, no CA", config: &tls.Config{Certificates: pair(own.Client)}, want: unknown},
		{name: "mtls: server cert for another host", config: &tls.Config{RootCAs: roots(own.Bundle), Certificates: pair(own.Client), ServerName: "127.0.0.2"}, want: "127.0.0.2"},
		{name: "seed TLS sketch: a host name and no SNI", host: "localhost", config: &tls.Config{RootCAs: roots(own.Bundle), Certificates: pair(own.Client), ServerName: "127.0.0.1"}, ok: true},
		{name: "client of another CA", config: &tls.Config{RootCAs: roots(own.Bundle), Certificates: pair(other.Client)}, want: refused},
		{name: "client with the server's certificate", config: &tls.Config{RootCAs: roots(own.Bundle), Certificates: pair(own.Server)}, want: refused},
		{name: "client of TLS 1.2", config: &tls.Config{RootCAs: roots(own.Bundle), Certificates: pair(own.Client), MaxVersion: tls.VersionTLS12}, ok: true},
		{name: "client of TLS 1.1", config: &tls.Config{RootCAs: roots(own.Bundle), Certificates: pair(own.Client), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, want: refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var creds credentials.TransportCredentials
			if tt.config != nil {
				creds = credentials.NewTLS(tt.config)
			}
			host := tt.host
			if host == "" {
				host = "127.0.0.1"
			}
			c := call(t, net.JoinHostPort(host, port), creds)
			ref := trigger("chat", "threshold=10", "interval=1")
			_, err := c.GetMetricSpec(t.Context(), ref)
			if tt.ok {
				require.NoError(t, err)
				c.comes(t, ref, waiting, 12)
				return
			}
			requireUnavailable(t, err, tt.want)
		})
	}

	code, out, said := ran(t, "-query", address, "-cert-dir", dir, "threshold=10", "interval=1")
	require.Equal(t, 0, code, said)
	require.Contains(t, out, "value    12\n")
	code, _, said = ran(t, "-query", address, "threshold=10", "interval=1")
	require.Equal(t, 1, code)
	require.Contains(t, said, "kedascaler: Unavailable: ")

	// The certificates are taken up again, not made anew.
	p.terminate()
	require.Equal(t, 0, p.code())
	second, _ := laptop(t, "-cert-dir", dir)
	c := call(t, second.address(), pairOf(t, dir))
	c.comes(t, trigger("chat", "threshold=10", "interval=1"), waiting, 12)
	again, err := certs.ReadFiles(dir)
	require.NoError(t, err)
	require.Equal(t, string(own.Server.Cert), string(again.Server.Cert))
}
