package history_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
)

// importing names the file that a child of the test imports.
const importing = "INFERSCALE_IMPORT"

// TestAWeekWithinAGigabyte imports a week of 20 pods at 15 s and calibrates a server of it, in a process that does nothing else and has
// one core: 60 s and 1 GB at most, by what the system counts.
func TestAWeekWithinAGigabyte(t *testing.T) {
	if name := os.Getenv(importing); name != "" {
		importWeek(t, name)
		return
	}
	long.Skip(t)
	name := filepath.Join(t.TempDir(), "week.json")
	f, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, generated(20, 7).Write(f))
	require.NoError(t, f.Close())
	runtime.GC()
	debug.FreeOSMemory()
	child := exec.Command(os.Args[0], "-test.run=^TestAWeekWithinAGigabyte$", "-test.v")
	child.Env = append(os.Environ(), importing+"="+name, "GOMAXPROCS=1")
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

func importWeek(t *testing.T, name string) {
	t.Helper()
	began := time.Now()
	f, err := os.Open(name)
	require.NoError(t, err)
	d, err := history.Read(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	fleet, err := history.Reduce(d)
	require.NoError(t, err)
	_, _, err = fleet.Workload()
	require.NoError(t, err)
	r, err := calibrate.Fit(fleet.Points(), calibrate.Options{})
	require.NoError(t, err)
	require.InEpsilon(t, 0.014, r.Base.Value, 0.05)
	took := time.Since(began)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("the system does not say how much memory there was")
	}
	peak := 0
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, err := fmt.Sscan(rest, &peak)
			require.NoError(t, err)
		}
	}
	all := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(all)
	t.Logf("%s, at most %d MB resident, %d MB of the runtime", took.Round(100*time.Millisecond), peak>>10, all[0].Value.Uint64()>>20)
	require.Positive(t, peak)
	require.Less(t, peak, 1<<20, "kB")
	require.Less(t, took, time.Minute)
}
