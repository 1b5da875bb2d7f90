// Package promtest runs Debian's prometheus for tests, filled with what was recorded of a simulated fleet.
package promtest

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/simhistory"
)

// Programs returns the paths of Debian's package prometheus.
func Programs(t *testing.T) (server, tool string) {
	t.Helper()
	if os.Getenv("INFERSCALE_PROMETHEUS") == "none" {
		t.Skip("INFERSCALE_PROMETHEUS=none")
	}
	for _, program := range []struct {
		name string
		path *string
	}{{"prometheus", &server}, {"promtool", &tool}} {
		path, err := exec.LookPath(program.name)
		if err != nil && os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed: apt-get install prometheus", program.name)
		}
		if err != nil {
			t.Skipf("%s is not installed: apt-get install prometheus, or any release of it in PATH", program.name)
		}
		*program.path = path
	}
	return server, tool
}

// Serve fills a Prometheus with a recording and starts it.
func Serve(t *testing.T, r *simhistory.Recording) (url string) {
	t.Helper()
	server, tool := Programs(t)
	dir := t.TempDir()
	file, data := filepath.Join(dir, "metrics.txt"), filepath.Join(dir, "data")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, r.OpenMetrics(f))
	require.NoError(t, f.Close())
	out, err := exec.Command(tool, "tsdb", "create-blocks-from", "openmetrics", file, data).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Remove(file))
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, []byte("global: {scrape_interval: 15s}\n"), 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	cmd := exec.Command(server, "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address="+address, "--storage.tsdb.retention.time=100y", "--log.level=warn")
	var says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &says, &says
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url = "http://" + address
	require.Eventually(t, func() bool {
		res, err := http.Get(url + "/-/ready")
		if err != nil {
			return false
		}
		defer res.Body.Close() //nolint:errcheck // nothing was asked for
		return res.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "%s", &says)
	return url
}
