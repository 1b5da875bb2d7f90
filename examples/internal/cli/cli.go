// Package cli has what the command lines of all programs have in common.
package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Main runs a program until it ends, or is interrupted or told to end, and exits with its code.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Flags returns an empty set of flags whose help is the usage and then the flags.
func Flags(name, usage string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprint(f.Output(), usage)
		f.PrintDefaults()
	}
	return f
}

// Parse reads the command line. Help that was asked for is on stdout, with flag.ErrHelp; what is wrong, and the usage after it, is
// on stderr.
func Parse(f *flag.FlagSet, args []string, stdout, stderr io.Writer) error {
	var said bytes.Buffer
	f.SetOutput(&said)
	err := f.Parse(args)
	f.SetOutput(stderr)
	w, text := stderr, said.String()
	if err == flag.ErrHelp { //nolint:errorlint // package flag returns it as it is
		w = stdout
	} else if err != nil {
		first := err.Error()
		err = ruled(f, err)
		text = strings.Replace(text, first, err.Error(), 1)
	}
	fmt.Fprint(w, text)
	return err
}

// Code returns the exit code of a program whose command line cannot be followed: 0 where it asks for help, and else 2.
func Code(err error) int {
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	return 2
}

// ruled says what a value must be, where package flag says no more than that it could not parse it.
func ruled(f *flag.FlagSet, err error) error {
	what, unread := strings.CutSuffix(err.Error(), ": parse error")
	known := f.Lookup(what[strings.LastIndex(what, " -")+len(" -"):])
	if !unread || known == nil {
		return err
	}
	getter, ok := known.Value.(flag.Getter)
	if !ok {
		return err
	}
	switch getter.Get().(type) {
	case time.Duration:
		return fmt.Errorf("%s: must be a time with its unit, like 90s or 1h30m", what)
	case int, int64, uint, uint64:
		return fmt.Errorf("%s: must be a whole number", what)
	case float64:
		return fmt.Errorf("%s: must be a number", what)
	case bool:
		return fmt.Errorf("%s: must be true or false", what)
	}
	return err
}

// Alone reads the command line of a program that takes no arguments. It ends the program where there are some, or where help was
// asked for.
func Alone(usage string) {
	f := flag.CommandLine // in a test of the program it has the flags of go test
	f.Init(f.Name(), flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), usage, "\n") }
	switch err := Parse(f, os.Args[1:], os.Stdout, os.Stderr); {
	case err != nil:
		os.Exit(Code(err))
	case f.NArg() > 0:
		f.Usage()
		os.Exit(2)
	}
}

// Document is how long a document may be that a program reads whole, in bytes. What reads it may want less.
const Document = 16 << 20

// ReadFile reads a file of so many bytes at most. Longer ones, and what has no end, are errors.
func ReadFile(name string, most int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > int64(most) {
		return nil, tooLarge(name, most) // without reading it
	}
	return Read(f, name, most)
}

// Read reads what is there, so many bytes at most.
func Read(r io.Reader, name string, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(data) > most {
		err = tooLarge(name, most)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func tooLarge(name string, most int) error {
	return fmt.Errorf("%s: must not be larger than %d bytes", name, most)
}
