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

// TestNamesMoveNoCursor: a name or a message of a file had what a terminal obeys, and it came there as it was.
func TestNamesMoveNoCursor(t *testing.T) {
	const server = "{format: inferscale.server/v1, name: \"a\\e[2Jb\"}"
	const dump = `{"version":1,"model":"a\u001b[2Jb","engine":"VLLM","start":"2026-01-05T00:00:00Z","end":"2026-01-05T00:01:00Z","step":"15","series":[]}`
	for _, row := range []struct{ args, text, want string }{
		{"-config ", "name: \"a\\e[2Jb\"\nrealtime: {}\n", `file:1: name: "a\x1b[2Jb": must be of printable characters`},
		{"-config ", "policies: [{name: \"a\\nb\", realtime: {}}]\n", `file:1: policies[0].name: "a\nb": must be of printable characters`},
		{"-config ", "policies: [{name: \"a\\u202eb\", realtime: {}}]\n", `policies[0].name: "a\u202eb": must be of printable characters`},
		{"-config ", "{apiVersion: autoscaling.inferscale.io/v1alpha1, kind: LLMAutoScaler, metadata: {name: \"a\\rb\"}, spec: {maxReplicas: 2, scaler: {static: {replicas: 1}}}}\n", `metadata.name: "a\rb": must be of printable characters`},
		{"-config ", "highest: [{name: \"a\\x9bb\", realtime: {}}]\n", `highest[0].name: "a\u009bb": must be of printable characters`},
		{"-config ", "\"a\\e[2J\": 1\nrealtime: {}\n", `file:1: a\x1b[2J: 1: is not a field here`},
		{"-server ", server, `file: name: "a\x1b[2Jb": must be of printable characters`},
		{"-history ", dump, `model: "a\x1b[2Jb": must be of printable characters`},
		{"-roofline ", `{"a\u001b[2J": 1, "a\u001b[2J": 2}`, `a\x1b[2J: 2: must be there once`},
		{"-lint ", "apiVersion: v1\nkind: List\nitems: [{a: \"\\e[2J\", \"\\e\": 1, \"\\e\": 2}]\n", `mapping key "\x1b" already defined`},
	} {
		name := filepath.Join(t.TempDir(), "file")
		if row.args == "-server " {
			for _, f := range []string{"base", "prefillToken", "sequence", "kvToken", "kvTokens", "maxSeqs", "tokenBudget"} {
				row.text = strings.TrimSuffix(row.text, "}") + ", " + f + ": {value: 1, lower: 0, upper: 2, source: given}}"
			}
		}
		require.NoError(t, os.WriteFile(name, []byte(row.text), 0o600))
		code, out, errs := start(t, row.args[:len(row.args)-1], name)
		require.Equal(t, exitUsage, code, row.text)
		require.Empty(t, out)
		require.Contains(t, errs, row.want)
		require.NotContains(t, errs, "\x1b")
	}
	_, out, errs := lintText(t, strings.Replace(scaled("maxReplicaCount: 8\n"+prometheusTrigger("sum(vllm:num_requests_waiting)", "")), "{name: chat}", `{name: "a\e[2J"}`, 1))
	require.Contains(t, out, `ScaledObject a\x1b[2J: zero:`)
	require.NotContains(t, out+errs, "\x1b")
}

// TestTheLongestTrace: a trace that ended within the time that a run has for its last requests was refused without its name.
func TestTheLongestTrace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "long.csv")
	require.NoError(t, os.WriteFile(name, []byte("arrival_ms,input_tokens,output_tokens\n0,10,10\n7775999999,10,10\n"), 0o600))
	code, _, errs := start(t, "-trace", name)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "-trace "+name+": lasts 2160h0m0s: must be at most 2159h45m0s, -from and -to cut a part out")
}
