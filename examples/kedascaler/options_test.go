package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/keda"
)

// try runs the command line in this process.
func try(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // what should have ended at once would serve
	defer cancel()
	code = run(ctx, args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestCommandLine(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	code, out, _ := try(t, "-version")
	require.Equal(t, 0, code)
	require.True(t, strings.HasPrefix(out, "kedascaler "))

	pages := []string{"-static=http://127.0.0.1:1"}
	inCluster := []string{"-namespace=keda"}
	for _, tt := range []struct {
		with []string
		args string
		want string
	}{
		{nil, "-nonsense", "flag provided but not defined: -nonsense"},
		{nil, "-fake=many", `invalid value "many" for flag -fake`},
		{nil, "", `-namespace: "": must be given, or POD_NAMESPACE be set`},
		{nil, "-namespace=a b", `-namespace: "a b": must be at most 63 of a-z, 0-9 and -`},
		{inCluster, "-metrics-address=8443", `-metrics-address: "8443": must be host:port, or 0 for none`},
		{inCluster, "rest", `"rest": is not a flag`},
		{pages, "rest", `"rest": is not a flag`},
		{pages, "-fake=1", "-fake: 1: must be alone of -static, -fake and -query"},
		{pages, "-query=127.0.0.1:1", `-query: "127.0.0.1:1": must be alone of -static, -fake and -query`},
		{nil, "-static=,", `-static: ",": must have a URL`},
		{nil, "-static=ftp://a", `-static: "ftp://a": must be an http or https URL`},
		{nil, "-static=127.0.0.1:80", `-static: "127.0.0.1:80": must be an http or https URL`},
		{nil, "-fake=-1", "-fake: -1: must be between 0 and 1000"},
		{[]string{"-fake=1"}, "-replicas=3000000000", "-replicas: 3000000000: must be between 0 and 1000000"},
		{inCluster, "-server-names=bücher.example", `-server-names: "bücher.example": must be a name in DNS`},
		{nil, "-fake=1001", "-fake: 1001: must be between 0 and 1000"},
		// These had no effect, and nothing said so.
		{inCluster, "-replicas=3", "-replicas: 3: goes with -static or -fake"},
		{pages, "-watch=3s", "-watch: 3s: goes with -query"},
		{inCluster, "-scaled-object=a/b", `-scaled-object: "a/b": goes with -query`},
		{pages, "-replicas=-1", "-replicas: -1: must be between 0 and 1000000"},
		{pages, "-address=nowhere", `-address: "nowhere": must be host:port`},
		{pages, "-address=:10450", `-address: ":10450": must be a loopback address, as there is no TLS`},
		{pages, "-address=0.0.0.0:10450", `-address: "0.0.0.0:10450": must be a loopback address, as there is no TLS`},
		{pages, "-address=10.1.2.3:0", `-address: "10.1.2.3:0": must be a loopback address, as there is no TLS`},
		{[]string{"-namespace=keda", "-plaintext"}, "-address=:10450", `-address: ":10450": must be a loopback address, as there is no TLS`},
		{[]string{"-namespace=keda", "-plaintext"}, "-webhook", "-webhook: true: must not be given with -plaintext, as API servers speak TLS only"},
		{[]string{"-namespace=keda", "-webhook"}, "-address=127.0.0.1:0", `-address: "127.0.0.1:0": must have a port of 1 to 65535 with -webhook, which tells KEDA of it`},
		{inCluster, "-watch=-1s", "-watch: -1s: must not be negative"},
		{inCluster, "-kube-api-qps=0", "-kube-api-qps: 0: must be between 1 and 1000000"},
		{inCluster, "-kube-api-qps=NaN", "-kube-api-qps: NaN: must be between 1 and 1000000"},
		{inCluster, "-kube-api-burst=0", "-kube-api-burst: 0: must be at least 1"},
		{inCluster, "-max-triggers=0", "-max-triggers: 0: must be at least 1"},
		{inCluster, "-scrape-memory=31", "-scrape-memory: 31: must be at least 32 and less than 1048576"},
		{inCluster, "-idle=59s", "-idle: 59s: must be at least 1m"},
		{inCluster, "-shutdown-timeout=-1s", "-shutdown-timeout: -1s: must not be negative"},
		{inCluster, "-leader-elect-lease=5s", "-leader-elect-lease: 5s: lease must be above renew, renew above retry, and retry above 0"},
		{[]string{"-namespace=keda", "-leader-elect-renew=700ms", "-leader-elect-retry=100ms"}, "-leader-elect-lease=900ms", "-leader-elect-lease: 900ms: its whole seconds, which other replicas see, must be at least renew"},
		{inCluster, "-leader-elect-renew=2400ms", "-leader-elect-renew: 2.4s: must be above 1.2 times retry"},
		{inCluster, "-leader-elect-name=A", `-leader-elect-name: "A": must be at most 253 of a-z`},
		{inCluster, "-certs-secret=", `-certs-secret: "": must be at most 253 of a-z`},
		{inCluster, "-certs-secret=A", `-certs-secret: "A": must be at most 253 of a-z`},
		{inCluster, "-ca-secret=", `-ca-secret: "": must be at most 253 of a-z`},
		{inCluster, "-ca-secret=keda-kaito-scaler-certs", `-ca-secret: "keda-kaito-scaler-certs": must not be -certs-secret, which KEDA reads`},
		{inCluster, "-certs-namespace=a/b", `-certs-namespace: "a/b": must be at most 63 of a-z, 0-9 and -`},
		{inCluster, "-service=", `-service: "": must be at most 63 of a-z, 0-9 and -`},
		{inCluster, "-authentication=a b", `-authentication: "a b": must be at most 253 of a-z`},
		{inCluster, "-webhook-configuration=", `-webhook-configuration: "": must be at most 253 of a-z`},
		{inCluster, "-scaler-name=", `-scaler-name: "": must not be empty`},
		{inCluster, "-webhook-port=0", "-webhook-port: 0: must be between 1 and 65535"},
		{inCluster, "-webhook-port=65536", "-webhook-port: 65536: must be between 1 and 65535"},
		{inCluster, "-log-level=loud", `-log-level: "loud": must be debug, info, warn or error`},
		{inCluster, "-certificate-life=1ms", "-certificate-life: 1ms: must be at least 1s"},
		{inCluster, "-ca-overlap=2160h", "-ca-overlap: 2160h0m0s: must be"},
		{inCluster, "-ca-drop-after=1h", "-ca-drop-after: 1h0m0s: must be at least"},
		{[]string{"-query=127.0.0.1:1"}, "key", `"key": must be key=value, metadata of the trigger, after all flags`},
		{[]string{"-query=127.0.0.1:1"}, "=value", `"=value": must be key=value`},
		{[]string{"-query=127.0.0.1:1"}, "-scaled-object=/chat", `-scaled-object: "/chat": must be namespace/name`},
		{nil, "-query=nowhere", `-query: "nowhere": must be host:port`},
	} {
		args := tt.with
		if tt.args != "" {
			args = append(slices.Clip(args), tt.args)
		}
		code, out, said := try(t, args...)
		require.Equal(t, 2, code, "%v: %s", args, said)
		require.Contains(t, said, tt.want)
		require.Empty(t, out)
	}

	// All that is wrong is said at once.
	_, _, said := try(t, "-namespace=keda", "-idle=1s", "-log-level=loud", "-webhook-port=0")
	for _, flag := range []string{"-idle: 1s", `-log-level: "loud"`, "-webhook-port: 0", "kedascaler -help lists the flags"} {
		require.Contains(t, said, flag)
	}

	// And once.
	_, _, said = try(t, "-namespace=keda", "-webhook", "-address=127.0.0.1:0")
	require.Equal(t, 1, strings.Count(said, "-address: "), said)

	code, _, said = try(t, "-kubeconfig=/nowhere", "-namespace=keda")
	require.Equal(t, 1, code)
	require.Contains(t, said, `"msg":"ended","error":"how to reach the API server`)
}

// TestRegressionMetadataTwice: of a key that was given twice the last counted.
func TestRegressionMetadataTwice(t *testing.T) {
	for _, again := range []string{"threshold=20", "threshold=10", "threshold="} {
		code, _, said := try(t, "-query=127.0.0.1:1", "threshold=10", again)
		require.Equal(t, 2, code)
		require.Contains(t, said, "threshold: must be given once\n")
	}
	var o options
	o.scaler = "mine"
	require.NoError(t, o.metadata([]string{"scalerName=other", "threshold=1"})) // that of the flag is a default
	require.Equal(t, map[string]string{"scalerName": "other", "threshold": "1"}, o.keys)
}

// The help has every flag, and every mode.
func TestHelp(t *testing.T) {
	code, said, errs := try(t, "-help")
	require.Equal(t, 0, code)
	require.Empty(t, errs)
	for _, text := range []string{
		"kedascaler -static URL,URL", "kedascaler -fake 3", "kedascaler -query ADDRESS", "Exit codes: 0 asked to end, 1 failed, 2 the command line is wrong.",
	} {
		require.Contains(t, said, text)
	}
	listed := make(map[string]bool)
	for line := range strings.Lines(said) {
		if fields := strings.Fields(line); len(fields) > 0 && strings.HasPrefix(line, "  -") {
			listed[fields[0]] = true
		}
	}
	source, err := os.ReadFile("options.go")
	require.NoError(t, err)
	common, err := os.ReadFile("../internal/command/flags.go")
	require.NoError(t, err)
	defined := 0
	for part := range strings.SplitSeq(string(source)+"Var(&o."+string(common), "Var(&o.") {
		if _, rest, ok := strings.Cut(part, `, "`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			if !strings.HasPrefix(part, "package") {
				require.True(t, listed["-"+name], name)
				defined++
			}
		}
	}
	require.Len(t, listed, defined)
}

func TestAddressByDefault(t *testing.T) {
	for args, want := range map[string]string{
		"-namespace=keda":            ":10450",
		"-namespace=keda -plaintext": "127.0.0.1:10450",
		"-fake=1":                    "127.0.0.1:10450",
		"-static=http://127.0.0.1:1": "127.0.0.1:10450",
	} {
		o, err := parse(strings.Fields(args), io.Discard, io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, o.address, args)
	}
	for _, address := range []string{"localhost:1", "127.8.9.1:1", "[::1]:1"} {
		_, err := parse([]string{"-fake=1", "-address", address}, io.Discard, io.Discard)
		require.NoError(t, err)
	}
	_, err := parse([]string{"-fake=1", "-address", ":1", "-cert-dir", "certs"}, io.Discard, io.Discard)
	require.NoError(t, err, "with certificates any address will do")
	_, err = parse([]string{"-h"}, io.Discard, io.Discard)
	require.ErrorIs(t, err, flag.ErrHelp)
}

// A folder that cannot be used is said at the start.
func TestDamagedCertDir(t *testing.T) {
	open := t.TempDir()
	require.NoError(t, os.Chmod(open, 0o755)) //nolint:gosec // too open on purpose
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{open, file} {
		code, _, said := try(t, "-fake=1", "-address=127.0.0.1:0", "-cert-dir", dir)
		require.Equal(t, 1, code)
		require.Contains(t, said, dir)
	}
}

// A silent listener hands out one connection that says nothing, and has no deadlines.
type silent struct {
	net.Listener

	conn chan net.Conn
	end  chan struct{}
}

func (s *silent) Accept() (net.Conn, error) {
	select {
	case c := <-s.conn:
		return c, nil
	case <-s.end:
		return nil, net.ErrClosed
	}
}

func (s *silent) Close() error {
	close(s.end)
	return nil
}

type patientConn struct {
	net.Conn

	read chan struct{}
}

func (c patientConn) Read(b []byte) (int, error) {
	close(c.read)
	return c.Conn.Read(b)
}
func (patientConn) Write(b []byte) (int, error)     { return len(b), nil }
func (patientConn) SetDeadline(time.Time) error     { return nil }
func (patientConn) SetReadDeadline(time.Time) error { return nil }

// Regression: -shutdown-timeout did not hold while a connection had said nothing yet, for as long as gRPC waits for it.
func TestShutdownDoesNotWaitForSilentConnections(t *testing.T) {
	engine, err := keda.NewEngine(t.Context(), keda.EngineConfig{Build: func(keda.Ref, map[string]string) (keda.Plan, error) {
		return keda.Plan{}, io.EOF
	}})
	require.NoError(t, err)
	server, healthy, err := keda.NewGRPC(keda.GRPCConfig{Engine: engine})
	require.NoError(t, err)
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = inner.Close() })
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	listener := &silent{Listener: inner, conn: make(chan net.Conn, 1), end: make(chan struct{})}
	conn := patientConn{theirs, make(chan struct{})}
	listener.conn <- conn
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, time.Millisecond, server, healthy, listener, engine) }()
	<-conn.read
	cancel()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.FailNow(t, "it waits for a connection that says nothing")
	}
}
