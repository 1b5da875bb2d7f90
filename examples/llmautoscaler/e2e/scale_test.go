package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// What 1,000 autoscalers of 10 pods may cost, decided every 15 s.
const (
	fullCores  = 0.5
	fullMiB    = 256
	fullLate   = 0.1 // s, at the 99th percentile
	mostWrites = 2.0 // a minute and autoscaler
)

// TestScale runs the program over many autoscalers at once, each with pods of its own that serve pages of 64 KB, and
// reports what it costs: at rest, while the load of all crosses the thresholds, and with one core busy. In the gate there
// are 20 of 2 pods for a few seconds; INFERSCALE_SCALE=1000x10x15x2m is the full measurement, every 15 s for two minutes of
// each, and its numbers are held to what is promised.
func TestScale(t *testing.T) {
	objects, pods, interval, span, full := 20, 2, 5, 10*time.Second, false
	if size := os.Getenv("INFERSCALE_SCALE"); size != "" {
		var lasts string
		_, err := fmt.Sscanf(size, "%dx%dx%dx%s", &objects, &pods, &interval, &lasts)
		require.NoError(t, err, "INFERSCALE_SCALE must be as 1000x10x15x2m: objects, pods of each, seconds between rounds, and for how long")
		span, err = time.ParseDuration(lasts)
		require.NoError(t, err)
		full = true
	}
	w := newBareWorld(t, nil)
	calm, idle, busy := vllm(t, 5), vllm(t, 0), vllm(t, 50)
	var moving atomic.Bool
	begin := time.Now()
	models := make([]model, objects)
	for i := range models {
		m := &models[i]
		*m = model{namespace: fmt.Sprintf("tenant-%02d", i%20), name: fmt.Sprintf("model-%04d", i), addresses: addresses(i*pods, pods), spec: thresholds(interval, pods, 600)}
		for _, address := range m.addresses {
			serve(t, address, func() []byte {
				if stage := (time.Now().Unix()/20 + int64(i)) % 3; moving.Load() && stage > 0 {
					return [][]byte{idle, busy}[stage-1]
				}
				return calm
			})
		}
	}
	w.deploy(models)
	t.Logf("%d autoscalers with %d pods each are there after %s", objects, pods, time.Since(begin).Round(time.Second))
	p := w.ship()
	decided := func() int {
		return len(scraped(t, p.address)["inferscale_last_decision_timestamp_seconds"].GetMetric())
	}
	w.eventually("each has been decided", 10*time.Minute, func() bool { return decided() >= objects })
	start := memoryMiB(t, p.cmd.Process.Pid, "VmHWM:")
	t.Logf("started with %d MiB at most", start)

	check := func(name string, f phase) {
		t.Logf("%s, %s", name, &f)
		writes := f.writes()
		assert.Zero(t, writes["deployments/scale update"], "nothing was to be scaled")
		mine := float64(writes["llmautoscalers patch"]+writes["llmautoscalers/status patch"]) / float64(objects) / (f.seconds() / 60)
		if full {
			assert.LessOrEqual(t, mine, mostWrites, "%s: writes a minute and autoscaler", name)
			assert.LessOrEqual(t, f.cores(), fullCores, "%s: cores", name)
			assert.LessOrEqual(t, max(start, f.most), fullMiB, "%s: MiB", name)
			assert.LessOrEqual(t, f.quantile(0.99, "inferscale_round_lateness_seconds", every), fullLate, "%s: lateness", name)
		}
	}
	if full { // the rounds of the first minutes write what is new
		w.measure(p, time.Minute)
	}
	rest := w.measure(p, span)
	check("at rest", rest)
	assert.Zero(t, rest.writes()["llmautoscalers patch"], "at rest no state is written")
	moving.Store(true)
	check("moving", w.measure(p, span))
	if full {
		stop := spin(t)
		check("moving, with one core busy", w.measure(p, span))
		stop()
	}
}

// spin keeps one core busy, until it is called off.
func spin(t *testing.T) (stop func()) {
	t.Helper()
	c := exec.Command("sh", "-c", "while :; do :; done")
	cluster.DieWithParent(c)
	require.NoError(t, c.Start())
	return func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}
