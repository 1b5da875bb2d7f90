package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// endless returns a file that has no end, as far as any flag goes: two gigabytes of nothing, which take no room.
func endless(t *testing.T, beginning string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "endless.yaml")
	require.NoError(t, os.WriteFile(name, []byte(beginning), 0o600))
	require.NoError(t, os.Truncate(name, 2<<30))
	return name
}

// TestFilesWithoutAnEnd: a file of any length, or a device, took all memory.
func TestFilesWithoutAnEnd(t *testing.T) {
	name := endless(t, "")
	const document = "must not be larger than 16777216 bytes"
	for args, want := range map[string]string{
		"-config ":                 document,
		"-server ":                 document,
		"-lint ":                   document,
		"-roofline ":               document,
		"-convert ":                document,
		"-calibrate ":              "must not be larger than 268435456 bytes",
		"-suite -quick -baseline ": document,
		"-suite -quick -resume ":   "line 1: must be a run, of at most 1048576 bytes",
		"-trace ":                  "must not have a record of more than 1048576 bytes",
		"-history ":                "dump, at byte 0",
	} {
		code, _, errs := start(t, strings.Fields(args+name)...)
		require.Equal(t, exitUsage, code, args)
		require.Contains(t, errs, want, args)
	}
}

// TestAResumedSuiteIsAFile: a device was read without an end, and a pipe for ever.
func TestAResumedSuiteIsAFile(t *testing.T) {
	code, _, errs := start(t, "-suite", "-quick", "-resume", os.DevNull)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, os.DevNull+": must be a regular file")
}

// TestASignalEndsWhatWaitsForAFile: a pipe that nobody writes to kept the program from its end, whatever the signal.
func TestASignalEndsWhatWaitsForAFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	forever := make(chan int)
	work := func() int {
		cancel()
		return <-forever
	}
	var said strings.Builder
	require.Equal(t, exitFail, patient(ctx, time.Millisecond, &said, work))
	require.Equal(t, "simulate: stopped\n", said.String())
	close(forever)
	require.Equal(t, exitRefused, patient(t.Context(), 0, io.Discard, func() int { return exitRefused }))
	require.Equal(t, exitUsage, patient(ctx, time.Hour, io.Discard, func() int { return exitUsage }))
}
