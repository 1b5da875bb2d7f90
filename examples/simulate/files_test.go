package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
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

// TestFilesAreApart: of two files under one name the later took the earlier's place, and what a flag cannot write to standard
// output was lost, or went into a file named -.
func TestFilesAreApart(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("folder", 0o700))
	require.NoError(t, os.Symlink("folder", "link"))
	require.NoError(t, os.WriteFile("one.csv", nil, 0o600))
	require.NoError(t, os.Link("one.csv", "two.csv"))
	for args, says := range map[string]string{
		"-json x -report ./x":                                             "-json and -report: only one of them can be ./x",
		"-json simulate-report.html":                                      "-json and -report: only one of them can be simulate-report.html",
		"-history d -manifest x -scaledobject x":                          "-manifest and -scaledobject: only one of them can be x",
		"-history d -json - -manifest -":                                  "-json and -manifest: only one of them can be -",
		"-history d -dump d -prometheus http://x":                         "-history does not go with -prometheus",
		"-history d -write-server d":                                      "-history and -write-server: only one of them can be d",
		"-history d -write-server -":                                      "-write-server -: must be a file",
		"-prometheus http://x -dump -":                                    "-dump -: must be a file",
		"-prometheus http://x -bearer-token-file token -dump token":       "-bearer-token-file and -dump: only one of them can be token",
		"-prometheus http://x -http-config c.yaml -json ./c.yaml":         "-http-config and -json: only one of them can be ./c.yaml",
		"-prometheus http://x -tls-ca one.csv -report two.csv":            "-tls-ca and -report: two.csv is the same file as",
		"-prometheus http://x -tls-cert c -tls-key k -write-server k":     "-tls-key and -write-server: only one of them can be k",
		"-prometheus http://x -tls-cert c -tls-key k -manifest c":         "-tls-cert and -manifest: only one of them can be c",
		"-prometheus http://x -tls-cert c -tls-key ./c":                   "-tls-cert, -tls-key: open c",
		"-trace mine.csv -json mine.csv":                                  "-trace and -json: only one of them can be mine.csv",
		"-trace link/mine.csv -json folder/mine.csv":                      "-trace and -json: only one of them can be folder/mine.csv",
		"-trace one.csv -json two.csv":                                    "-trace and -json: two.csv is the same file as",
		"-calibrate a.csv,b.csv -o ./b.csv":                               "-calibrate and -o: only one of them can be ./b.csv",
		"-convert log.csv -columns 1,2,3 -o log.csv":                      "-convert and -o: only one of them can be log.csv",
		"-suite -scores s.md -json s.csv":                                 "-json and -scores: only one of them can be s.csv",
		"-suite -scores -":                                                "-scores -: must be a file",
		"-suite -resume -":                                                "-resume -: must be a file",
		"-history d -server qwen32b -kv-tokens 5":                         "-kv-tokens goes with -calibrate, and without -server with",
		"-history d -cold-start-tail":                                     "-cold-start-tail goes with -cold-start where",
		"-history nowhere -json " + os.DevNull + " -report " + os.DevNull: "-history: open nowhere",
	} {
		code, _, errs := start(t, strings.Fields(args)...)
		require.Equal(t, exitUsage, code, args)
		require.Contains(t, errs, says, args)
	}
}

// TestOutputsAreTriedFirst: what cannot be written is said before the runs, which are called off here, and no file is
// left behind.
func TestOutputsAreTriedFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	for _, row := range []struct{ flag, name, says string }{
		{"-json", filepath.Join(dir, "no", "folder"), "-json: open " + filepath.Join(dir, "no", "folder")},
		{"-report", filepath.Join(dir, "no", "folder"), "-report: open " + filepath.Join(dir, "no", "folder")},
		{"-report", dir, "-report: open " + dir},
		{"-json", filepath.Join(dir, "new.json"), "simulate: stopped\n"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, exitFail, run(ctx, tiny(row.flag, row.name), &out, &errs))
		require.Contains(t, errs.String(), row.says)
	}
	require.NoFileExists(t, filepath.Join(dir, "new.json"))
}

// TestRegressionLinksToNewFilesStay: a symbolic link to a file that was not there yet was removed, the file was left behind empty, and
// two outputs could be one file by such a link.
func TestRegressionLinksToNewFilesStay(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "link.json"), filepath.Join(dir, "target.json")
	if os.Symlink("target.json", link) != nil || os.Symlink("round", filepath.Join(dir, "round")) != nil {
		t.Skip("no symbolic links")
	}
	require.NoError(t, try(link))
	require.NoFileExists(t, target)
	code, _, errs := start(t, tiny("-json", link, "-report", target)...)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "only one of them can be "+target)
	code, _, _ = start(t, tiny("-json", filepath.Join(dir, "round"))...)
	require.Equal(t, exitFail, code)

	require.NoError(t, writeThrough(link, 0o644, raw([]byte("{}"))))
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "{}", string(data))
	require.Error(t, writeThrough(link, 0o644, func(io.Writer) error { return io.ErrShortWrite }))
	require.NoFileExists(t, target)
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, "target.json", to)
}

// TestOutputsThatAreFull: -list said nothing of it, and the others not which flag it was.
func TestOutputsThatAreFull(t *testing.T) {
	const full = "/dev/full"
	f, err := os.OpenFile(full, os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close() //nolint:errcheck // it is full
	var errs bytes.Buffer
	require.Equal(t, exitFail, run(t.Context(), []string{"-list"}, f, &errs))
	require.Contains(t, errs.String(), "no space left")
	for _, args := range []string{"-roofline qwen3-32b", "-convert testdata/old-policies.yaml"} {
		code, _, errs := start(t, strings.Fields(args+" -o "+full)...)
		require.Equal(t, exitFail, code)
		require.Contains(t, errs, "-o: write "+full)
	}
}

// TestTheTableOutlivesItsFiles: a file that fails once the runs are made takes neither the table nor the other file away.
func TestTheTableOutlivesItsFiles(t *testing.T) {
	long.Skip(t)
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	report := filepath.Join(t.TempDir(), "report.html")
	code, out, errs := start(t, tiny("-json", full, "-report", report)...)
	require.Equal(t, exitFail, code)
	require.Contains(t, errs, "-json: write "+full)
	require.Contains(t, out, "POLICY")
	require.FileExists(t, report)
}

// TestStandardOutput: a file named - is standard output, and the table makes room for it.
func TestStandardOutput(t *testing.T) {
	long.Skip(t)
	t.Chdir(t.TempDir())
	code, out, errs := start(t, tiny("-json", "-")...)
	require.Equal(t, exitOK, code, errs)
	require.True(t, json.Valid([]byte(out)))
	require.Contains(t, errs, "POLICY")
	require.NoFileExists(t, "-")
}

// TestNothingHalfWritten: what a full disk, or an error on the way, left of a file looked as if it were whole.
func TestNothingHalfWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "dump.json")
	require.ErrorContains(t, writeThrough(name, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, "the first half")
		return errors.Join(err, errors.New("no space left"))
	}), "no space left")
	require.NoFileExists(t, name)
}
