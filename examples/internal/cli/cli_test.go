package cli_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/internal/cli"
)

// TestHelpIsOnStdout: help that was asked for can be read with a pager; what is wrong is on stderr.
func TestHelpIsOnStdout(t *testing.T) {
	for args, want := range map[string][2]string{
		"-h":      {"Usage of p:\n  -n int\n    \thow many\n", ""},
		"-help":   {"Usage of p:\n  -n int\n    \thow many\n", ""},
		"-n=x":    {"", "invalid value \"x\" for flag -n: must be a whole number\nUsage of p:\n  -n int\n    \thow many\n"},
		"-x -h":   {"", "flag provided but not defined: -x\nUsage of p:\n  -n int\n    \thow many\n"},
		"-n=1 -h": {"Usage of p:\n  -n int\n    \thow many\n", ""},
		"-n=1":    {"", ""},
	} {
		f := flag.NewFlagSet("p", flag.ContinueOnError)
		f.Int("n", 0, "how many")
		var out, errs bytes.Buffer
		err := cli.Parse(f, strings.Fields(args), &out, &errs)
		require.Equal(t, want, [2]string{out.String(), errs.String()}, args)
		require.Equal(t, strings.HasSuffix(args, "-h") && args != "-x -h" || args == "-help", err == flag.ErrHelp, args) //nolint:errorlint // as it is
		require.Equal(t, &errs, f.Output())
	}
}

// TestRegressionValuesThatAreNone: of a time without a unit, as of anything else that cannot be read, programs said: parse error.
func TestRegressionValuesThatAreNone(t *testing.T) {
	for args, says := range map[string]string{
		"-slo-ttft 3":                     `invalid value "3" for flag -slo-ttft: must be a time with its unit, like 90s or 1h30m`,
		"-share 1%":                       `invalid value "1%" for flag -share: must be a number`,
		"-count 1.5":                      `invalid value "1.5" for flag -count: must be a whole number`,
		"-tokens 1e6":                     `invalid value "1e6" for flag -tokens: must be a whole number`,
		"-count " + "9999999999999999999": `invalid value "9999999999999999999" for flag -count: value out of range`,
		"-all=perhaps":                    `invalid boolean value "perhaps" for -all: must be true or false`,
		"-own for-flag--all":              `invalid value "for-flag--all" for flag -own: parse error`,
	} {
		f := flag.NewFlagSet("p", flag.ContinueOnError)
		f.Duration("slo-ttft", 0, "")
		f.Float64("share", 0, "")
		f.Int("count", 0, "")
		f.Int64("tokens", 0, "")
		f.Bool("all", false, "")
		f.Func("own", "", func(string) error { return errors.New("parse error") })
		var errs bytes.Buffer
		require.EqualError(t, cli.Parse(f, strings.Fields(args), &bytes.Buffer{}, &errs), says)
		require.True(t, strings.HasPrefix(errs.String(), says+"\nUsage of p:\n"), errs.String())
	}
}

// TestReadFileIsBounded: nothing takes more memory than a file may have.
func TestReadFileIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte("12345"), 0o600))
	data, err := cli.ReadFile(name, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(data))
	_, err = cli.ReadFile(name, 4)
	require.EqualError(t, err, name+": must not be larger than 4 bytes")
	_, err = cli.ReadFile(filepath.Dir(name), 4)
	require.ErrorContains(t, err, "is a directory")
	_, err = cli.ReadFile(name+"s", 4)
	require.ErrorIs(t, err, os.ErrNotExist)
	if _, err := os.Stat("/dev/zero"); err == nil {
		_, err = cli.ReadFile("/dev/zero", 1<<10)
		require.EqualError(t, err, "/dev/zero: must not be larger than 1024 bytes")
	}
}

// TestPlain: what a file has does not move the cursor, begin lines anew or turn what follows around.
func TestPlain(t *testing.T) {
	var out bytes.Buffer
	const text = "a\x1b[2J\rb\u009b\u202ec\x7f\xff\u2028\U000e0001\a\n\tÄ µ 汉 \\ '\"\n"
	n, err := cli.Plain(&out).Write([]byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
	require.Equal(t, `a\x1b[2J\rb\u009b\u202ec\x7f\xff\u2028\U000e0001\a`+"\n\tÄ µ 汉 \\ '\"\n", out.String())
	f, ok := cli.File(cli.Plain(os.Stderr))
	require.True(t, ok)
	require.Equal(t, os.Stderr, f)
	_, ok = cli.File(cli.Plain(&out))
	require.False(t, ok)
}
