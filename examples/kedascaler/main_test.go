package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/inferscale/inferscale/adapters/certs"
	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/examples/internal/command"
)

// patience is how long something may take that takes no time. It is for machines that are busy.
const patience = time.Minute

// binary makes the program once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "kedascaler")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "kedascaler"), ".").CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("%w: %s", err, out)
	}
	built = true
	return dir, nil
})

var built bool // that there is something to remove

// TestMain lets no test set the loggers of the process, and removes the program.
func TestMain(m *testing.M) {
	command.Log(slog.DiscardHandler)
	code := m.Run()
	if built {
		dir, _ := binary()
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// A program is a run of the built program as a process of its own.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
	err bytes.Buffer
}

// A guarded buffer may be read while the process writes.
type guarded struct {
	p *program
	b *bytes.Buffer
}

func (g guarded) Write(b []byte) (int, error) {
	g.p.mu.Lock()
	defer g.p.mu.Unlock()
	return g.b.Write(b)
}

// start starts the program. It ends with the test, and shows what it said if that failed.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	dir, err := binary()
	require.NoError(t, err)
	p := &program{t: t, cmd: exec.Command(filepath.Join(dir, "kedascaler"), args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = guarded{p, &p.out}, guarded{p, &p.err}
	cluster.DieWithParent(p.cmd)
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			said := p.said()
			t.Logf("program %d: ...%s", p.cmd.Process.Pid, said[max(0, len(said)-4000):])
		}
	})
	return p
}

// said is what came at stderr, the log.
func (p *program) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err.String()
}

// printed is what came at stdout.
func (p *program) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// kill ends the program as a lost machine would.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// terminate asks the program to end.
func (p *program) terminate() { require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM)) }

// code waits for the end and returns the exit code.
func (p *program) code() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		require.FailNow(p.t, "the program did not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// ran runs the program to its end.
func ran(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	p := start(t, args...)
	code = p.code()
	return code, p.printed(), p.said()
}

// address waits until the program serves, and returns where.
func (p *program) address() string {
	p.t.Helper()
	serving := regexp.MustCompile(`msg"?[=:]"?serving"?[ ,]"?address"?[=:]"?([0-9.:]+)`)
	var found []string
	eventually(p.t, func() error {
		select {
		case <-p.done:
			require.FailNow(p.t, "the program ended before it served")
		default:
		}
		if found = serving.FindStringSubmatch(p.said()); found == nil {
			return fmt.Errorf("the program does not serve: %s", p.said())
		}
		return nil
	})
	return found[1]
}

// resident returns the memory of the program now and at most, in MB; zeros where that cannot be told.
func (p *program) resident() (now, most int) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(line, ":")
		kb, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
		switch name {
		case "VmRSS":
			now = kb / 1024
		case "VmHWM":
			most = kb / 1024
		}
	}
	return now, most
}

// cpuTime returns the CPU time of the program so far; zero where that cannot be told.
func (p *program) cpuTime() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// eventually polls until there is no error.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			require.NoError(t, err)
		}
	}
}

// A caller asks a scaler as KEDA does.
type caller struct {
	externalscaler.ExternalScalerClient

	conn *grpc.ClientConn
}

// call connects to a scaler, in plaintext without credentials.
func call(t *testing.T, address string, creds credentials.TransportCredentials) caller {
	t.Helper()
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return caller{externalscaler.NewExternalScalerClient(conn), conn}
}

// pairOf returns KEDA's credentials of a folder.
func pairOf(t *testing.T, dir string) credentials.TransportCredentials {
	t.Helper()
	m, err := certs.ReadFiles(dir)
	require.NoError(t, err)
	config, err := certs.ClientTLS(m, "127.0.0.1")
	require.NoError(t, err)
	return credentials.NewTLS(config)
}

// trigger returns the ref of a trigger of this scaler; keys come as "key=value".
func trigger(name string, keys ...string) *externalscaler.ScaledObjectRef {
	ref := &externalscaler.ScaledObjectRef{Namespace: "default", Name: name, ScalerMetadata: map[string]string{"scalerName": "keda-kaito-scaler"}}
	for _, pair := range keys {
		key, value, _ := strings.Cut(pair, "=")
		ref.ScalerMetadata[key] = value
	}
	return ref
}

// value asks for the value of a metric.
func (c caller) value(ctx context.Context, ref *externalscaler.ScaledObjectRef, metric string) (float64, error) {
	got, err := c.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: ref, MetricName: metric})
	if err != nil {
		return 0, err
	}
	if len(got.GetMetricValues()) != 1 || got.GetMetricValues()[0].GetMetricName() != metric {
		return 0, fmt.Errorf("values: %v", got.GetMetricValues())
	}
	return got.GetMetricValues()[0].GetMetricValueFloat(), nil
}

// comes waits until the value of a metric is what it has to be.
func (c caller) comes(t *testing.T, ref *externalscaler.ScaledObjectRef, metric string, want float64) {
	t.Helper()
	eventually(t, func() error {
		got, err := c.value(t.Context(), ref, metric)
		if err == nil && got != want {
			err = fmt.Errorf("%s of %s: %v instead of %v", metric, ref, got, want)
		}
		return err
	})
}

// known waits until a trigger has had its first round.
func (c caller) known(t *testing.T, ref *externalscaler.ScaledObjectRef, metric string) (float64, error) {
	t.Helper()
	var value float64
	var err error
	eventually(t, func() error {
		value, err = c.value(t.Context(), ref, metric)
		if strings.Contains(fmt.Sprint(err), "cold start") {
			return err
		}
		return nil
	})
	return value, err
}

const (
	waiting = "vllm:num_requests_waiting"
	running = "vllm:num_requests_running"
)

// A page is what a test serves in place of a pod. Without a handler for the path it is that of a vLLM server.
type page struct {
	*httptest.Server

	mu       sync.Mutex
	numbers  map[string]float64
	handlers map[string]http.HandlerFunc
}

func newPage(t *testing.T, numbers map[string]float64) *page {
	t.Helper()
	p := &page{numbers: numbers, handlers: make(map[string]http.HandlerFunc)}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	handler := p.handlers[r.URL.Path]
	p.mu.Unlock()
	if handler != nil {
		handler(w, r)
		return
	}
	p.numbersTo(w)
}

// numbersTo writes the page of a vLLM server.
func (p *page) numbersTo(w http.ResponseWriter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for name, value := range p.numbers {
		fmt.Fprintf(w, "# TYPE %s gauge\n%s{model_name=\"m\"} %v\n", name, name, value)
	}
}

// wait sets how many requests wait.
func (p *page) wait(requests float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbers[waiting] = requests
}

// requireUnavailable requires that nothing is known, for a reason.
func requireUnavailable(t *testing.T, err error, reasons ...string) {
	t.Helper()
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	for _, reason := range reasons {
		require.ErrorContains(t, err, reason)
	}
}
