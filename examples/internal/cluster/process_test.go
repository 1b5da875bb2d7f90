//go:build linux

package cluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKilledTestLeavesNoServer kills a process that started one as this package does.
func TestKilledTestLeavesNoServer(t *testing.T) {
	const variable = "INFERSCALE_TEST_PARENT"
	if os.Getenv(variable) != "" {
		p, err := start("sleep", t.TempDir(), exec.Command("/bin/sleep", "60"))
		require.NoError(t, err)
		fmt.Println("child", p.cmd.Process.Pid)
		<-p.done
		return
	}
	parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), variable+"=1")
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	child := 0
	for lines := bufio.NewScanner(out); child == 0 && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "child "); ok {
			child, err = strconv.Atoi(text)
			require.NoError(t, err)
		}
	}
	require.NotZero(t, child)
	require.True(t, running(child))
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool { return !running(child) }, 10*time.Second, 10*time.Millisecond)
}

// running tells whether a process runs; one that ended and was not waited for does not.
func running(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func TestProcessThatIgnoresTheRequestToEndIsKilled(t *testing.T) {
	p, err := start("deaf", t.TempDir(), exec.Command("/bin/sh", "-c", `trap "" TERM; echo deaf; while :; do :; done`))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return tail(p.log, 1) == "deaf" }, 10*time.Second, 10*time.Millisecond)
	p.Stop()
	assert.False(t, running(p.cmd.Process.Pid))
}

func TestProcessThatEndsEarlyIsReportedWithItsLog(t *testing.T) {
	p, err := start("short", t.TempDir(), exec.Command("/bin/sh", "-c", "echo one; echo two; exit 3"))
	require.NoError(t, err)
	err = p.Ready(t.Context(), func(context.Context) error { return errExited })
	require.ErrorIs(t, err, errExited)
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "one\ntwo")
	assert.Equal(t, "two", tail(p.log, 1))
	assert.Equal(t, "one\ntwo", tail(p.log, 9))
}

func TestStartFailsWithTheLogAndLeavesNothing(t *testing.T) {
	if _, err := Assets(); err != nil {
		t.Skip(err) // TestCluster tells whether that is right
	}
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(t.Context(), Options{APIServerFlags: []string{"--no-such-flag"}})
	require.ErrorIs(t, err, errExited)
	require.ErrorContains(t, err, "unknown flag: --no-such-flag")
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	assert.Empty(t, left)
}
